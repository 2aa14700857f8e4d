//! The arrays of a value that has arrived.

use crate::array::Array;
use crate::wire::DecodeError;
use bytemuck::Pod;

/// The arrays of a value.
pub(super) enum Beside<'de> {
    /// Each holds one array or several. `open`: one of several, and how many of its bytes have been
    /// taken.
    Blocks { open: Option<(Array, usize)>, closed: std::vec::IntoIter<Array> },
    /// At the end of all bytes. `left`: those that have not been taken, once any have been.
    AtTheEnd { all: &'de [u8], left: Option<&'de [u8]> },
}

impl<'de> Beside<'de> {
    /// Those of the value with this encoding. Without an array they are at its end, if anywhere.
    pub(super) fn of(encoding: &'de [u8], array: Option<Array>) -> Self {
        match array {
            Some(array) => Beside::Blocks { open: None, closed: array.into_blocks().into_iter() },
            None => Beside::AtTheEnd { all: encoding, left: None },
        }
    }

    /// The number of bytes that belong to nothing, if this many were not decoded.
    pub(super) fn left_over(&self, undecoded: usize) -> usize {
        match self {
            Beside::Blocks { open, closed } => {
                let open = open.as_ref().map_or(0, |(block, taken)| block.bytes().len() - taken);
                let closed = closed.as_slice().iter().map(|block| block.bytes().len());
                undecoded + open + closed.sum::<usize>()
            }
            Beside::AtTheEnd { all, left: None } => undecoded.min(all.len()),
            Beside::AtTheEnd { all, left: Some(left) } => {
                left.len() + undecoded.abs_diff(at_the_end(all).map_or(0, |end| end.len() + 8))
            }
        }
    }

    /// The next elements: without a copy, if they are all of a block.
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
        match self {
            Beside::Blocks { open, closed } => {
                if open.as_ref().is_none_or(|(block, taken)| *taken == block.bytes().len()) {
                    let next = closed.next().ok_or_else(|| missing(0))?;
                    if next.bytes().len() == bytes {
                        return Ok(Next::Array(next));
                    }
                    *open = Some((next, 0));
                }
                let (block, taken) = open.as_mut().ok_or_else(|| missing(0))?;
                let left = &block.bytes()[*taken..];
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
    /// All of a block.
    Array(Array),
    Bytes(&'a [u8]),
}

/// The arrays at the end of an encoding, before their length.
fn at_the_end(all: &[u8]) -> Option<&[u8]> {
    let (rest, length) = all.split_last_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.len().checked_sub(length).map(|begin| &rest[begin..])
}
