//! What a map does with an item. This module must never know which PE does it.
//!
//! Programs need none of these types by name: they only appear in the types of maps.

use std::future::ready;
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Future, Placement, Portable, Shared};
use ultramarine_runtime::wire::{WireError, encode};

/// A value that all items of a map share, as the program gives it: nothing, a value, or a
/// [`Shared`].
pub trait IntoShared {
    /// The handle that each task carries.
    type Handle: SharedHandle;
    /// Shares the value, so that it is sent once to each process.
    fn share(self, cx: &Context) -> Self::Handle;
    /// The value's encoding.
    ///
    /// # Errors
    ///
    /// It cannot be encoded.
    fn encoded(&self) -> Result<Vec<u8>, WireError>;
}

/// No shared value.
impl IntoShared for () {
    type Handle = ();
    fn share(self, _: &Context) {}
    fn encoded(&self) -> Result<Vec<u8>, WireError> {
        Ok(Vec::new())
    }
}

/// A value that is not shared yet.
#[derive(Debug)]
pub struct Unshared<G>(pub(super) G);

impl<G: Portable + Sync> IntoShared for Unshared<G> {
    type Handle = Shared<G>;
    fn share(self, cx: &Context) -> Shared<G> {
        cx.share(self.0)
    }
    fn encoded(&self) -> Result<Vec<u8>, WireError> {
        encode(&self.0)
    }
}

/// A value that is shared already.
impl<G: Portable + Sync> IntoShared for Shared<G> {
    type Handle = Self;
    fn share(self, _: &Context) -> Self {
        self
    }
    fn encoded(&self) -> Result<Vec<u8>, WireError> {
        encode::<G>(self)
    }
}

/// A handle that each task of a map carries: `()` or a [`Shared`].
pub trait SharedHandle: Clone + Send + Sync + 'static {
    /// The handle together with another value: the argument of a task.
    type Bundle<U: Portable>: Portable;
    /// Makes the argument of a task.
    fn bundle<U: Portable>(self, other: U) -> Self::Bundle<U>;
    /// Splits the argument of a task.
    fn unbundle<U: Portable>(both: Self::Bundle<U>) -> (Self, U);
}

/// The argument is the other value alone, so that an array still travels as an array.
impl SharedHandle for () {
    type Bundle<U: Portable> = U;
    fn bundle<U: Portable>(self, other: U) -> U {
        other
    }
    fn unbundle<U: Portable>(other: U) -> ((), U) {
        ((), other)
    }
}

impl<G: Portable + Sync> SharedHandle for Shared<G> {
    type Bundle<U: Portable> = (Shared<G>, U);
    fn bundle<U: Portable>(self, other: U) -> (Shared<G>, U) {
        (self, other)
    }
    fn unbundle<U: Portable>(both: (Shared<G>, U)) -> (Shared<G>, U) {
        both
    }
}

/// A function that a map applies to items.
pub trait Operation<A: Portable>: Stateless {
    /// The handle of the value that all items share.
    type Handle: SharedHandle;
    /// The result for an item.
    type Output: Portable;

    /// Applies the function, in the calling task.
    fn apply(
        self,
        cx: &Context,
        given: &Self::Handle,
        item: A,
    ) -> impl std::future::Future<Output = Self::Output> + Send;

    /// Spawns a task that applies the function to an item.
    fn spawn(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Handle,
        item: A,
    ) -> Future<Self::Output> {
        let task = move |cx: Context, both| async move {
            let (given, item) = Self::Handle::unbundle(both);
            self.apply(&cx, &given, item).await
        };
        spawn(cx, place, task, given.bundle(item))
    }

    /// Spawns a task that applies the function to some items.
    fn spawn_group(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Handle,
        items: Vec<A>,
    ) -> Future<Vec<Self::Output>> {
        let task = move |cx: Context, both| async move {
            let (given, items) = Self::Handle::unbundle::<Vec<A>>(both);
            let mut results = Vec::with_capacity(items.len());
            for item in items.into_iter().take_while(|_| !cx.is_cancelled()) {
                results.push(self.apply(&cx, &given, item).await);
            }
            results
        };
        spawn(cx, place, task, given.bundle(items))
    }

    /// Spawns a task that applies the function to some items and reduces the results.
    fn spawn_reduced(
        self,
        cx: &Context,
        place: Placement,
        given: Self::Handle,
        items: Vec<A>,
        (identity, reduce): (
            impl Fn() -> Self::Output + Stateless,
            impl Fn(Self::Output, Self::Output) -> Self::Output + Stateless,
        ),
    ) -> Future<Self::Output> {
        let task = move |cx: Context, both| async move {
            let (given, items) = Self::Handle::unbundle::<Vec<A>>(both);
            let mut result = identity();
            for item in items.into_iter().take_while(|_| !cx.is_cancelled()) {
                result = reduce(result, self.apply(&cx, &given, item).await);
            }
            result
        };
        spawn(cx, place, task, given.bundle(items))
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

/// A function of the item: the operation of [`map()`](super::map()).
#[derive(Clone, Copy, Debug)]
pub struct Apply<F>(pub(super) F);

impl<F, A, R> Operation<A> for Apply<F>
where
    F: Fn(A) -> R + Stateless,
    A: Portable,
    R: Portable,
{
    type Handle = ();
    type Output = R;

    fn apply(self, _: &Context, (): &(), item: A) -> impl std::future::Future<Output = R> + Send {
        ready((self.0)(item))
    }

    fn spawn(self, cx: &Context, place: Placement, (): (), item: A) -> Future<R> {
        match place {
            Placement::On(pe) => cx.spawn_at(pe, move |_, item| ready((self.0)(item)), item),
            // Spawning a plain function takes half the time of spawning an async one.
            Placement::Within(radius) => cx.spawn_fn(radius, self.0, item),
        }
    }
}

/// A function of the shared value and the item: the operation of [`map_with`](super::map_with()).
#[derive(Debug)]
pub struct ApplyWith<F, G>(pub(super) F, pub(super) PhantomData<fn(&G)>);

impl<F: Copy, G> Clone for ApplyWith<F, G> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Copy, G> Copy for ApplyWith<F, G> {}

impl<F, G, A, R> Operation<A> for ApplyWith<F, G>
where
    F: Fn(&G, A) -> R + Stateless,
    G: Portable + Sync,
    A: Portable,
    R: Portable,
{
    type Handle = Shared<G>;
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

/// An async function of the context and the item: the operation of
/// [`map_async`](super::map_async()).
#[derive(Clone, Copy, Debug)]
pub struct ApplyAsync<F>(pub(super) F);

impl<F, A, T> Operation<A> for ApplyAsync<F>
where
    F: Fn(Context, A) -> T + Stateless,
    A: Portable,
    T: std::future::Future<Output: Portable> + Send + 'static,
{
    type Handle = ();
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

/// An async function of the context, the shared value, and the item: the operation of
/// [`map_async_with`](super::map_async_with()).
#[derive(Debug)]
pub struct ApplyAsyncWith<F, G>(pub(super) F, pub(super) PhantomData<fn(&G)>);

impl<F: Copy, G> Clone for ApplyAsyncWith<F, G> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Copy, G> Copy for ApplyAsyncWith<F, G> {}

impl<F, G, A, T> Operation<A> for ApplyAsyncWith<F, G>
where
    F: Fn(Context, Shared<G>, A) -> T + Stateless,
    G: Portable + Sync,
    A: Portable,
    T: std::future::Future<Output: Portable> + Send + 'static,
{
    type Handle = Shared<G>;
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
