//! Cutting what comes on a connection back into the pieces, each behind its length, that were put
//! into it: the frames.

/// Bytes of a piece's length in front of it, a little-endian `u32`.
pub(crate) const PREFIX_BYTES: usize = 4;

/// A buffer that has held a piece longer than this, in bytes, is given back to the allocator.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// A stream that is being cut.
#[derive(Default)]
pub(crate) struct Pieces {
    /// The beginning of a piece (with its length) whose end has not arrived yet. Grows with the
    /// bytes that arrive, never by what a length promises.
    partial: Vec<u8>,
}

/// A piece whose length, in bytes, is over the limit. The stream cannot be cut any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong(pub(super) usize);

impl Pieces {
    /// Whether the stream so far ends with a whole piece.
    pub(crate) fn is_between(&self) -> bool {
        self.partial.is_empty()
    }

    /// Takes the stream's next bytes and hands on each piece that they complete. A piece that lies
    /// within `bytes` is not copied.
    pub(crate) fn cut(
        &mut self,
        mut bytes: &[u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<(), TooLong> {
        if !self.partial.is_empty() {
            bytes = self.complete(bytes, bytes_max, deliver)?;
        }
        while let Some(piece_bytes) = length(bytes, bytes_max)? {
            let Some(piece) = bytes.get(PREFIX_BYTES..PREFIX_BYTES + piece_bytes) else {
                break;
            };
            deliver(piece);
            bytes = &bytes[PREFIX_BYTES + piece_bytes..];
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds to the piece in `partial`, and returns the bytes that are not part of it.
    fn complete<'a>(
        &mut self,
        mut bytes: &'a [u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<&'a [u8], TooLong> {
        bytes = self.fill(bytes, PREFIX_BYTES);
        let Some(piece_bytes) = length(&self.partial, bytes_max)? else {
            return Ok(bytes);
        };
        bytes = self.fill(bytes, PREFIX_BYTES + piece_bytes);
        if self.partial.len() == PREFIX_BYTES + piece_bytes {
            deliver(&self.partial[PREFIX_BYTES..]);
            self.partial.clear();
            self.partial.shrink_to(BUFFER_KEPT_MAX);
        }
        Ok(bytes)
    }

    fn fill<'a>(&mut self, bytes: &'a [u8], up_to: usize) -> &'a [u8] {
        let missing = up_to.saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        rest
    }
}

/// The length of the piece that begins here, in bytes, if its prefix is complete.
fn length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, TooLong> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let piece_bytes = u32::from_le_bytes(*prefix) as usize;
    if piece_bytes > bytes_max { Err(TooLong(piece_bytes)) } else { Ok(Some(piece_bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_cutting_yields_the_pieces(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            cuts in prop::collection::vec(1..80_usize, 1..50),
        ) {
            let stream: Vec<u8> = pieces
                .iter()
                .flat_map(|piece| [&(piece.len() as u32).to_le_bytes()[..], piece].concat())
                .collect();
            let (mut rest, mut cut, mut delivered) = (&stream[..], Pieces::default(), Vec::new());
            for &bytes in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at(bytes.min(rest.len()));
                let taken = cut.cut(now, 50, &mut |piece| delivered.push(piece.to_vec()));
                prop_assert_eq!(taken, Ok(()));
                rest = later;
            }
            prop_assert_eq!(delivered, pieces);
            prop_assert!(cut.is_between());
        }

        #[test]
        fn random_bytes_do_no_harm(inputs: Vec<Vec<u8>>) {
            let mut pieces = Pieces::default();
            for bytes in inputs {
                if pieces.cut(&bytes, 1000, &mut |piece| assert!(piece.len() <= 1000)).is_err() {
                    break;
                }
                prop_assert!(pieces.partial.len() < PREFIX_BYTES + 1000);
            }
        }
    }

    #[test]
    fn an_over_long_piece_reserves_nothing() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.cut(&[0xff; 3], 1 << 28, &mut |_| panic!("no piece")), Ok(()));
        let taken = pieces.cut(&[0xff; 3], 1 << 28, &mut |_| panic!("no piece"));
        assert_eq!(taken, Err(TooLong(u32::MAX as usize)));
        assert!(pieces.partial.capacity() < 100);
    }
}
