//! What a [machine](super::machine) of a program handles: states as they are, and the rest as
//! bytes.

use super::error::BspError;
use super::machine::{self, Kind};
use super::program::Program;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use ultramarine_runtime::array::Encoded;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Portable, caught};

/// A message, behind its tag.
pub(super) type Tagged<M> = (u32, M);

/// A run of this program.
pub(super) struct Run<P>(PhantomData<P>);

impl<P: Program> Kind for Run<P> {
    /// In a box, since it is handed on several times in each superstep.
    type State = Box<(P, P::Stage)>;
    type Content = Tagged<P::Message>;
    type Saved = Encoded;
    type Output = Left;
    type Value = Value;
    type Operation = Operation;
    type Error = BspError;

    fn bytes(saved: &Encoded) -> usize {
        saved.size_bytes()
    }

    fn output_bytes(left: &Left) -> usize {
        left.output.size_bytes()
    }

    fn digest(operation: &Operation) -> u64 {
        let Operation { names, is_scan, only_to, .. } = operation;
        let mut hasher = DefaultHasher::new();
        (names, is_scan, only_to).hash(&mut hasher);
        hasher.finish()
    }

    fn is_scan(operation: &Operation) -> bool {
        operation.is_scan
    }

    fn has_result(operation: &Operation, rank: u32) -> bool {
        operation.only_to.is_none_or(|only| only == rank)
    }

    fn combine(operation: &Operation, left: &Value, right: &Value) -> Value {
        (operation.combine)(left, right)
    }
}

/// What a rank leaves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) output: Encoded,
    /// What ranks of its PE had not taken by then: tags, and stages to which they were sent.
    pub(super) unread: BTreeSet<(u32, String)>,
}

impl From<machine::Trouble> for BspError {
    fn from(trouble: machine::Trouble) -> Self {
        BspError::Program { message: trouble.to_string() }
    }
}

/// A value of a collective operation: its encoding, or why there is none; and a digest of its
/// type's name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Value(u64, Result<Encoded, String>);

impl Value {
    pub(super) fn of<T: Serialize>(value: &T) -> Self {
        Self::encoding::<T>(value)
    }

    /// The value is encoded as a `T`.
    pub(super) fn encoding<T>(value: &impl Serialize) -> Self {
        Value(digest_of::<T>(), Encoded::of(value).map_err(|error| error.to_string()))
    }

    fn decoded<T: Portable>(&self) -> Result<T, String> {
        let Value(of, encoded) = self;
        let encoded = encoded.as_ref().map_err(Clone::clone)?;
        if *of != digest_of::<T>() {
            return Err("it is of another type".to_owned());
        }
        encoded.decode().map_err(|error| error.to_string())
    }

    #[track_caller]
    pub(super) fn get<T: Portable>(&self) -> T {
        match self.decoded() {
            Ok(value) => value,
            Err(error) => {
                panic!("the result of a collective operation, as a {}: {error}", type_name::<T>())
            }
        }
    }
}

/// Types are told from each other by their names: the program is the same everywhere.
fn digest_of<T>() -> u64 {
    let mut hasher = DefaultHasher::new();
    type_name::<T>().hash(&mut hasher);
    hasher.finish()
}

/// Combines a value of ranks with one of ranks behind these.
type Combine = dyn Fn(&Value, &Value) -> Value + Send + Sync;

/// How values are combined.
pub(super) struct Operation {
    /// Of the function, and of the values.
    names: [&'static str; 2],
    is_scan: bool,
    /// The only rank that has the result.
    only_to: Option<u32>,
    combine: Box<Combine>,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        (self.is_scan, self.only_to, self.names) == (other.is_scan, other.only_to, other.names)
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.names[0])
    }
}

impl Operation {
    pub(super) fn of<T, F>(is_scan: bool, function: F) -> Self
    where
        T: Portable,
        F: Fn(T, T) -> T + Stateless,
    {
        let names = [type_name::<F>(), type_name::<T>()];
        let combine = move |left: &Value, right: &Value| {
            let both = || {
                let value = function(left.decoded()?, right.decoded()?);
                Encoded::of(&value).map_err(|error| error.to_string())
            };
            Value(digest_of::<T>(), caught(type_name::<F>(), both).unwrap_or_else(Err))
        };
        // It has no bytes, so nothing is allocated.
        Operation { names, is_scan, only_to: None, combine: Box::new(combine) }
    }

    pub(super) fn only_to(self, rank: u32) -> Self {
        Operation { only_to: Some(rank), ..self }
    }
}
