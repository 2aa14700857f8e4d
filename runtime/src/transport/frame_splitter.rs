//! Splits a stream of bytes into frames, each of which stands behind its length.

/// The length in front of each frame is a little-endian `u32`.
pub(crate) const PREFIX_BYTES: usize = 4;

/// A buffer that has held a frame longer than this, in bytes, is given back to the allocator.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// A stream that is being split.
#[derive(Default)]
pub(crate) struct FrameSplitter {
    /// The beginning of a frame (with its length) whose end has not arrived yet. Grows with the
    /// bytes that arrive, never by what a length promises.
    partial: Vec<u8>,
}

/// A frame's length, in bytes, is over the limit. The stream cannot be split any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong(pub(super) usize);

impl FrameSplitter {
    /// Whether the stream so far ends with a whole frame.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.partial.is_empty()
    }

    /// Takes the stream's next bytes and delivers each frame that they complete. A frame that lies
    /// within `bytes` is not copied.
    pub(crate) fn split(
        &mut self,
        mut bytes: &[u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<(), TooLong> {
        if !self.partial.is_empty() {
            bytes = self.complete(bytes, bytes_max, deliver)?;
        }
        while let Some(frame_bytes) = length(bytes, bytes_max)? {
            let Some(frame) = bytes.get(PREFIX_BYTES..PREFIX_BYTES + frame_bytes) else {
                break;
            };
            deliver(frame);
            bytes = &bytes[PREFIX_BYTES + frame_bytes..];
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds to the frame in `partial`. Returns the bytes that are not part of it.
    fn complete<'a>(
        &mut self,
        mut bytes: &'a [u8],
        bytes_max: usize,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<&'a [u8], TooLong> {
        bytes = self.fill(bytes, PREFIX_BYTES);
        let Some(frame_bytes) = length(&self.partial, bytes_max)? else {
            return Ok(bytes);
        };
        bytes = self.fill(bytes, PREFIX_BYTES + frame_bytes);
        if self.partial.len() == PREFIX_BYTES + frame_bytes {
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

/// The length of the frame that begins here, in bytes, if its prefix is complete.
fn length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, TooLong> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let frame_bytes = u32::from_le_bytes(*prefix) as usize;
    if frame_bytes > bytes_max { Err(TooLong(frame_bytes)) } else { Ok(Some(frame_bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_cutting_yields_the_frames(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            cuts in prop::collection::vec(1..80_usize, 1..50),
        ) {
            let stream: Vec<u8> = frames
                .iter()
                .flat_map(|frame| [&(frame.len() as u32).to_le_bytes()[..], frame].concat())
                .collect();
            let (mut rest, mut delivered) = (&stream[..], Vec::new());
            let mut splitter = FrameSplitter::default();
            for &bytes in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at(bytes.min(rest.len()));
                let taken = splitter.split(now, 50, &mut |frame| delivered.push(frame.to_vec()));
                prop_assert_eq!(taken, Ok(()));
                rest = later;
            }
            prop_assert_eq!(delivered, frames);
            prop_assert!(splitter.is_at_boundary());
        }

        #[test]
        fn random_bytes_do_no_harm(inputs: Vec<Vec<u8>>) {
            let mut splitter = FrameSplitter::default();
            for bytes in inputs {
                let mut deliver = |frame: &[u8]| assert!(frame.len() <= 1000);
                if splitter.split(&bytes, 1000, &mut deliver).is_err() {
                    break;
                }
                prop_assert!(splitter.partial.len() < PREFIX_BYTES + 1000);
            }
        }
    }

    #[test]
    fn an_over_long_frame_reserves_nothing() {
        let mut splitter = FrameSplitter::default();
        assert_eq!(splitter.split(&[0xff; 3], 1 << 28, &mut |_| panic!("no frame")), Ok(()));
        let taken = splitter.split(&[0xff; 3], 1 << 28, &mut |_| panic!("no frame"));
        assert_eq!(taken, Err(TooLong(u32::MAX as usize)));
        assert!(splitter.partial.capacity() < 100);
    }
}
