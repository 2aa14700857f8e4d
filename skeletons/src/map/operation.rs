//! What a map does with an item: it must never know who does it.

use std::future::ready;
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Future, Placement, Portable, Shared};

/// What a function is given for all items.
pub trait Given {
    /// What travels with each task.
    type Handle: Carry;
    /// Makes it ready to travel.
    fn share(self, cx: &Context) -> Self::Handle;
}

/// Nothing.
impl Given for () {
    type Handle = ();
    fn share(self, _: &Context) {}
}

/// One value, which goes once to each process.
#[derive(Debug)]
pub struct Common<G>(pub(super) G);

impl<G: Portable + Sync> Given for Common<G> {
    type Handle = Shared<G>;
    fn share(self, cx: &Context) -> Shared<G> {
        cx.share(self.0)
    }
}

/// It travels already.
impl<G: Portable + Sync> Given for Shared<G> {
    type Handle = Self;
    fn share(self, _: &Context) -> Self {
        self
    }
}

/// What travels with each task.
pub trait Carry: Clone + Send + Sync + 'static {
    /// It and something else.
    type With<U: Portable>: Portable;
    /// Puts them together.
    fn with<U: Portable>(self, other: U) -> Self::With<U>;
    /// Parts them again.
    fn part<U: Portable>(both: Self::With<U>) -> (Self, U);
}

/// Nothing: the other may travel in a way of its own, as an array.
impl Carry for () {
    type With<U: Portable> = U;
    fn with<U: Portable>(self, other: U) -> U {
        other
    }
    fn part<U: Portable>(other: U) -> ((), U) {
        ((), other)
    }
}

impl<G: Portable + Sync> Carry for Shared<G> {
    type With<U: Portable> = (Shared<G>, U);
    fn with<U: Portable>(self, other: U) -> (Shared<G>, U) {
        (self, other)
    }
    fn part<U: Portable>(both: (Shared<G>, U)) -> (Shared<G>, U) {
        both
    }
}

/// A function as a map applies it to an item.
pub trait Operation<A: Portable>: Stateless {
    /// What it is given for all items.
    type Given: Carry;
    /// What it makes of an item.
    type Output: Portable;

    /// Applies it here.
    fn apply(
        self,
        cx: &Context,
        given: &Self::Given,
        item: A,
    ) -> impl std::future::Future<Output = Self::Output> + Send;

    /// Has a task apply it to an item.
    fn spawn(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Given,
        item: A,
    ) -> Future<Self::Output> {
        let task = move |cx: Context, both| async move {
            let (given, item) = Self::Given::part(both);
            self.apply(&cx, &given, item).await
        };
        spawn(cx, place, task, given.with(item))
    }

    /// Has a task apply it to some items.
    fn spawn_group(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Given,
        items: Vec<A>,
    ) -> Future<Vec<Self::Output>> {
        let task = move |cx: Context, both| async move {
            let (given, items) = Self::Given::part::<Vec<A>>(both);
            let mut results = Vec::with_capacity(items.len());
            for item in items.into_iter().take_while(|_| !cx.is_cancelled()) {
                results.push(self.apply(&cx, &given, item).await);
            }
            results
        };
        spawn(cx, place, task, given.with(items))
    }

    /// Has a task apply it to some items and reduce what comes out.
    fn spawn_reduced(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Given,
        items: Vec<A>,
        (identity, reduce): (
            impl Fn() -> Self::Output + Stateless,
            impl Fn(Self::Output, Self::Output) -> Self::Output + Stateless,
        ),
    ) -> Future<Self::Output> {
        let task = move |cx: Context, both| async move {
            let (given, items) = Self::Given::part::<Vec<A>>(both);
            let mut result = identity();
            for item in items.into_iter().take_while(|_| !cx.is_cancelled()) {
                result = reduce(result, self.apply(&cx, &given, item).await);
            }
            result
        };
        spawn(cx, place, task, given.with(items))
    }
}

fn spawn<A, T>(
    cx: &Context,
    place: Placement,
    task: impl Fn(Context, A) -> T + Stateless,
    argument: A,
) -> Future<T::Output>
where
    A: Portable,
    T: std::future::Future<Output: Portable> + Send + 'static,
{
    match place {
        Placement::On(pe) => cx.spawn_at(pe, task, argument),
        Placement::Within(radius) => cx.spawn(radius, task, argument),
    }
}

/// A function of the item alone.
#[derive(Clone, Copy, Debug)]
pub struct Plain<F>(pub(super) F);

impl<F, A, R> Operation<A> for Plain<F>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    type Given = ();
    type Output = R;

    fn apply(self, _: &Context, (): &(), item: A) -> impl std::future::Future<Output = R> + Send {
        ready((self.0)(item))
    }

    fn spawn(self, cx: &Context, place: Placement, (): (), item: A) -> Future<R> {
        match place {
            Placement::On(pe) => cx.spawn_at(pe, move |_, item| ready((self.0)(item)), item),
            // A task that only computes takes half the time of another.
            Placement::Within(radius) => cx.spawn_fn(radius, self.0, item),
        }
    }
}

/// A function of what is given and the item.
#[derive(Debug)]
pub struct With<F, G>(pub(super) F, pub(super) PhantomData<fn(&G)>);

impl<F: Copy, G> Clone for With<F, G> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Copy, G> Copy for With<F, G> {}

impl<F, G, A, R> Operation<A> for With<F, G>
where
    F: Fn(&G, A) -> R + Stateless,
    G: Portable + Sync,
    A: Portable,
    R: Portable,
{
    type Given = Shared<G>;
    type Output = R;

    fn apply(
        self,
        _: &Context,
        given: &Shared<G>,
        item: A,
    ) -> impl std::future::Future<Output = R> + Send {
        ready((self.0)(given, item))
    }
}

/// An async function of the context and the item.
#[derive(Clone, Copy, Debug)]
pub struct Async<F>(pub(super) F);

impl<F, A, T> Operation<A> for Async<F>
where
    F: Fn(Context, A) -> T + Stateless,
    A: Portable,
    T: std::future::Future<Output: Portable> + Send + 'static,
{
    type Given = ();
    type Output = T::Output;

    fn apply(
        self,
        cx: &Context,
        (): &(),
        item: A,
    ) -> impl std::future::Future<Output = T::Output> + Send {
        (self.0)(cx.clone(), item)
    }
}

/// An async function of the context, what is given, and the item.
#[derive(Debug)]
pub struct AsyncWith<F, G>(pub(super) F, pub(super) PhantomData<fn(&G)>);

impl<F: Copy, G> Clone for AsyncWith<F, G> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Copy, G> Copy for AsyncWith<F, G> {}

impl<F, G, A, T> Operation<A> for AsyncWith<F, G>
where
    F: Fn(Context, Shared<G>, A) -> T + Stateless,
    G: Portable + Sync,
    A: Portable,
    T: std::future::Future<Output: Portable> + Send + 'static,
{
    type Given = Shared<G>;
    type Output = T::Output;

    fn apply(
        self,
        cx: &Context,
        given: &Shared<G>,
        item: A,
    ) -> impl std::future::Future<Output = T::Output> + Send {
        (self.0)(cx.clone(), given.clone(), item)
    }
}
