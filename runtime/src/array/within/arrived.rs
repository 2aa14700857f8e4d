//! The arrays of a value that has arrived.

use crate::array::Array;
use crate::wire::DecodeError;
use bytemuck::Pod;

/// The arrays of a value.
pub(super) enum Beside<'de> {
    Array {
        array: Array,
        taken: usize,
    },
    /// The array has become that of the value.
    Gone,
    /// At the end of all bytes. `left`: those that have not been taken, once any have been.
    AtTheEnd {
        all: &'de [u8],
        left: Option<&'de [u8]>,
    },
}

impl<'de> Beside<'de> {
    /// Those of the value with this encoding. Without an array they are at its end, if anywhere.
    pub(super) fn of(encoding: &'de [u8], array: Option<Array>) -> Self {
        match array {
            Some(array) => Beside::Array { array, taken: 0 },
            None => Beside::AtTheEnd { all: encoding, left: None },
        }
    }

    /// The number of bytes that belong to nothing, if this many were not decoded.
    pub(super) fn left_over(&self, undecoded: usize) -> usize {
        match self {
            Beside::Array { array, taken } => undecoded + array.bytes().len() - taken,
            Beside::Gone => undecoded,
            Beside::AtTheEnd { all, left: None } => undecoded.min(all.len()),
            Beside::AtTheEnd { all, left: Some(left) } => {
                left.len() + undecoded.abs_diff(at_the_end(all).map_or(0, |end| end.len() + 8))
            }
        }
    }

    /// The next elements: without a copy, if they are all of an array.
    pub(super) fn take<N: Pod + Send + Sync>(
        &mut self,
        length: usize,
    ) -> Result<Vec<N>, DecodeError> {
        let bytes = length.checked_mul(size_of::<N>()).ok_or(DecodeError::LimitExceeded)?;
        match self.next(bytes)? {
            Next::Array(array) => array.into_vec().ok_or(DecodeError::LimitExceeded),
            Next::Bytes(bytes) => Ok(bytemuck::pod_collect_to_vec(bytes)),
        }
    }

    /// The next bytes.
    pub(super) fn next(&mut self, bytes: usize) -> Result<Next<'_>, DecodeError> {
        let missing = |left: usize| DecodeError::UnexpectedEnd { additional: bytes - left };
        if let Beside::Array { array, taken: 0 } = self
            && array.bytes().len() == bytes
            && let Beside::Array { array, .. } = std::mem::replace(self, Beside::Gone)
        {
            return Ok(Next::Array(array));
        }
        match self {
            Beside::Gone => Err(missing(0)),
            Beside::Array { array, taken } => {
                let left = &array.bytes()[*taken..];
                *taken += bytes.min(left.len());
                left.get(..bytes).map(Next::Bytes).ok_or_else(|| missing(left.len()))
            }
            Beside::AtTheEnd { all, left } => {
                let rest = match left {
                    Some(rest) => rest,
                    None => left.insert(at_the_end(all).ok_or_else(|| missing(0))?),
                };
                let split = rest.split_at_checked(bytes);
                let (taken, behind) = split.ok_or_else(|| missing(rest.len()))?;
                *rest = behind;
                Ok(Next::Bytes(taken))
            }
        }
    }
}

/// Bytes of arrays.
pub(super) enum Next<'a> {
    /// All of an array.
    Array(Array),
    Bytes(&'a [u8]),
}

/// The arrays at the end of an encoding, before their length.
fn at_the_end(all: &[u8]) -> Option<&[u8]> {
    let (rest, length) = all.split_last_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.len().checked_sub(length).map(|begin| &rest[begin..])
}
