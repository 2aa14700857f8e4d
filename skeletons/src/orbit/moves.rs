//! What follows from states: by a function of one state, or of many at once.

use crate::table::{TableError, TableKey};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Portable, Shared};

/// What follows from states.
pub trait Moves<D: Portable + Sync, S>: Stateless {
    /// Calls `add` with each state, the number of a successor, from 0, and the successor.
    fn follow(
        self,
        cx: &Context,
        data: &Shared<D>,
        states: Vec<S>,
        add: impl FnMut(&S, u32, S) + Send,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
}

/// See [`reachable`](super::reachable).
#[derive(Clone, Copy, Debug)]
pub struct Successors<F>(pub(in crate::orbit) F);

impl<D, S, F> Moves<D, S> for Successors<F>
where
    D: Portable + Sync,
    S: TableKey,
    F: Fn(&D, &S, &mut Vec<S>) + Stateless,
{
    async fn follow(
        self,
        _: &Context,
        data: &Shared<D>,
        states: Vec<S>,
        mut add: impl FnMut(&S, u32, S) + Send,
    ) -> Result<(), TableError> {
        let mut next = Vec::new();
        for state in &states {
            (self.0)(data, state, &mut next);
            (0..).zip(next.drain(..)).for_each(|(number, next)| add(state, number, next));
        }
        Ok(())
    }
}

/// See [`reachable_batched`](super::reachable_batched).
#[derive(Clone, Copy, Debug)]
pub struct Batches<F>(pub(super) F);

impl<D, S, F, T> Moves<D, S> for Batches<F>
where
    D: Portable + Sync,
    S: TableKey,
    F: Fn(Context, Shared<D>, Vec<S>) -> T + Stateless,
    T: Future<Output = Result<Vec<Vec<S>>, String>> + Send,
{
    async fn follow(
        self,
        cx: &Context,
        data: &Shared<D>,
        states: Vec<S>,
        mut add: impl FnMut(&S, u32, S) + Send,
    ) -> Result<(), TableError> {
        let next = (self.0)(cx.clone(), data.clone(), states.clone()).await;
        let next = next.map_err(|message| TableError::Failed { message })?;
        if next.len() != states.len() {
            let (lists, states) = (next.len(), states.len());
            let message = format!("the successors of {states} states are {lists} lists");
            return Err(TableError::Failed { message });
        }
        for (state, next) in states.iter().zip(next) {
            (0..).zip(next).for_each(|(number, next)| add(state, number, next));
        }
        Ok(())
    }
}

/// See [`orbit`](super::orbit).
#[derive(Clone, Copy, Debug)]
pub struct Action<F>(pub(super) F);

impl<G, S, F> Moves<Vec<G>, S> for Action<F>
where
    G: Portable + Sync,
    S: TableKey,
    F: Fn(&G, &S) -> S + Stateless,
{
    async fn follow(
        self,
        _: &Context,
        generators: &Shared<Vec<G>>,
        states: Vec<S>,
        mut add: impl FnMut(&S, u32, S) + Send,
    ) -> Result<(), TableError> {
        for state in &states {
            let images = generators.iter().map(|generator| (self.0)(generator, state));
            (0..).zip(images).for_each(|(number, image)| add(state, number, image));
        }
        Ok(())
    }
}
