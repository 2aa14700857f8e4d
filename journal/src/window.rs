//! A journal's file as its reader sees it: the next bytes, and the way to the next intact head.

use crate::record::{HEAD_BYTES, Head};
use std::io::{self, Read};
use std::ops::Range;

/// Read at once, unless a record is longer.
const WINDOW_BYTES: usize = 1 << 20;

/// Part of a file in memory.
pub(crate) struct Window<R> {
    source: R,
    /// Where in the file the next byte is.
    pub(crate) offset: u64,
    file_bytes: u64,
    buffer: Vec<u8>,
    /// What of the buffer is read and not yet skipped.
    filled: Range<usize>,
}

/// How a search for the next intact head ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Found,
    /// There is none up to the end of the file.
    NotFound,
    /// There is none, and all that was skipped is zero.
    OnlyZeros,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(source: R, offset: u64, file_bytes: u64) -> Self {
        Window { source, offset, file_bytes, buffer: Vec::new(), filled: 0..0 }
    }

    /// The bytes of the file that are not yet skipped.
    pub(crate) fn left(&self) -> u64 {
        self.file_bytes - self.offset
    }

    /// The next bytes, of which there are at least `count` but at the end of the file.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.filled.len() < count {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
            self.buffer.resize(self.buffer.len().max(count).max(WINDOW_BYTES), 0);
        }
        while self.filled.len() < count {
            let wanted = self.left() - self.filled.len() as u64;
            let free = &mut self.buffer[self.filled.end..];
            let free_bytes = free.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
            match self.source.read(&mut free[..free_bytes]) {
                Ok(0) => break,
                Ok(bytes) => self.filled.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.filled.clone()])
    }

    /// Skips bytes that were seen.
    pub(crate) fn advance(&mut self, count: usize) {
        self.filled.start += count;
        assert!(self.filled.start <= self.filled.end, "only what was seen is skipped");
        self.offset += count as u64;
    }

    /// Skips at least one byte, and goes on to the next intact head or to the end.
    pub(crate) fn skip_to_head(&mut self, mark: u64) -> io::Result<Search> {
        let first = mark.to_le_bytes();
        let mut is_zero = true;
        let mut skipped = 1;
        loop {
            let offset = self.offset;
            let bytes = self.peek(HEAD_BYTES)?;
            if bytes.len() < HEAD_BYTES {
                let count = bytes.len();
                is_zero &= bytes.iter().all(|byte| *byte == 0);
                self.advance(count);
                return Ok(if is_zero { Search::OnlyZeros } else { Search::NotFound });
            }
            let places = bytes.len() - HEAD_BYTES + 1;
            let is_head = |place: &usize| {
                bytes[*place..].starts_with(&first)
                    && Head::decode(&bytes[*place..], mark, offset + *place as u64).is_some()
            };
            if let Some(place) = (skipped..places).find(is_head) {
                self.advance(place);
                return Ok(Search::Found);
            }
            is_zero = is_zero && bytes[..places].iter().all(|byte| *byte == 0);
            self.advance(places);
            skipped = 0;
        }
    }
}
