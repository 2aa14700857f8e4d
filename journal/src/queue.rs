//! What waits to be written. Appending puts records here, and the writer's thread takes them out.
//!
//! The records are laid down as they will be in the file, in chunks, so that one system call writes
//! thousands of small ones. The lock is held to copy one small record, or to hand over a list, and
//! never during a write.

use crate::builds::{BuildNote, NOTE_BYTES};
use crate::error::WriteError;
use crate::record::{HEAD_BYTES, Head};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a chunk has room for.
const CHUNK_BYTES: usize = 256 << 10;

/// A longer result has a chunk of its own, and is copied before the lock is taken. As it is half a
/// chunk, chunks are half full at least.
const COPIED_INSIDE_BYTES_MAX: usize = CHUNK_BYTES / 2 - HEAD_BYTES;

/// Empty chunks that are kept for the next records.
const SPARE_CHUNKS_MAX: usize = 16;

/// After this many bytes the build is noted again. After a damaged place it is not known up to the
/// next note.
const NOTE_EVERY_BYTES: u64 = 4 << 10;

/// How long the writer lets records gather after the first one, unless there is a chunk of them.
/// So a job with few results wakes its writer 50 times a second, and not for each of them.
const GATHER: Duration = Duration::from_millis(20);

/// What a journal has done with the records that were appended since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The records that are written, or will be.
    pub records_appended: u64,
    /// Those of them that are on the disk. They are the first ones that were appended.
    pub records_durable: u64,
    /// The records that were dropped: the disk did not keep up, or writing has failed.
    pub records_dropped: u64,
    /// The part of the file that is on the disk, in bytes.
    pub durable_bytes: u64,
    /// What waits in memory to be written, in bytes.
    pub waiting_bytes: u64,
}

/// Who is told that records are not written.
pub enum OnFailure {
    /// The log, by a warning.
    Warn,
    /// The owner, instead of the log. It is called at once, by the thread of the writer or by one
    /// that appends, so it must not wait. There are at most two calls: with
    /// [`WriteError::Behind`] when the first record is dropped since the disk does not keep up, and
    /// when writing has failed for good.
    Call(Box<dyn Fn(&WriteError) + Send + Sync>),
}

pub(crate) struct Queue {
    pub(crate) path: PathBuf,
    pub(crate) mark: u64,
    /// The last record that is taken may go beyond.
    pub(crate) waiting_bytes_max: u64,
    pub(crate) on_failure: OnFailure,
    state: Mutex<State>,
    /// The writer waits for records.
    wake: Condvar,
    /// The owner waits for the writer's end.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    chunks: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// What waits is in `chunks`, or is just being written.
    figures: Figures,
    /// Where in the file the next record will be.
    end: u64,
    /// What the file says of the build of the next record.
    build: Option<u64>,
    note_again_at: u64,
    /// The next note drops the results of other builds.
    drops_others: bool,
    /// The writer sleeps until this many bytes wait.
    wake_at_bytes: Option<u64>,
    phase: Phase,
    is_behind: bool,
    failure: Option<WriteError>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// The writer is to write what there is, and to end.
    Closing,
    Ended,
}

/// What the writer takes out at once.
pub(crate) struct Batch {
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The number of records that were appended up to the end of this batch.
    pub(crate) records_appended: u64,
    pub(crate) is_last: bool,
}

impl Queue {
    /// An empty queue for a file whose next record is at the offset `end`.
    pub(crate) fn new(path: PathBuf, mark: u64, end: u64, max: u64, on_failure: OnFailure) -> Self {
        Queue {
            path,
            mark,
            waiting_bytes_max: max,
            on_failure,
            state: Mutex::new(State { end, note_again_at: u64::MAX, ..State::default() }),
            wake: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// Says what the file says of the build of the next record, and whether the results of other
    /// builds are to be dropped.
    pub(crate) fn begin(&self, build: Option<u64>, drops_others: bool) {
        let mut state = self.lock();
        (state.build, state.drops_others) = (build, drops_others);
        state.plan_note();
    }

    pub(crate) fn append(&self, build: Option<u64>, positions: Range<u64>, result: &[u8]) {
        let bytes = HEAD_BYTES + result.len();
        let is_long = result.len() > COPIED_INSIDE_BYTES_MAX;
        if is_long && self.admit().is_none() {
            return;
        }
        let head = Head::new(self.mark, positions, result);
        let copied = is_long.then(|| [&[0; HEAD_BYTES], result].concat());
        let Some(mut state) = self.admit() else { return };
        if build != state.build || state.drops_others || state.end >= state.note_again_at {
            state.note(self.mark, build);
        }
        // Only now is it known where in the file the record will be.
        let head = head.encode(self.mark, state.end);
        if let Some(mut chunk) = copied {
            chunk[..HEAD_BYTES].copy_from_slice(&head);
            state.chunks.push(chunk);
        } else {
            let chunk = state.chunk_with_room(bytes);
            chunk.extend_from_slice(&head);
            chunk.extend_from_slice(result);
        }
        state.grow(bytes);
        state.figures.records_appended += 1;
        if state.wake_at_bytes.is_some_and(|bytes| state.figures.waiting_bytes >= bytes) {
            state.wake_at_bytes = None;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// The state, if there is room for a record. Else the record is dropped.
    fn admit(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        let is_open = state.phase == Phase::Open && state.failure.is_none();
        let waiting_bytes = state.figures.waiting_bytes;
        // Whatever its own length: a long record is not worth less than a short one.
        let is_full = waiting_bytes >= self.waiting_bytes_max;
        if is_open && !is_full {
            return Some(state);
        }
        state.figures.records_dropped += 1;
        if is_open && !std::mem::replace(&mut state.is_behind, true) {
            drop(state);
            self.tell(&WriteError::Behind { path: self.path.clone(), waiting_bytes });
        }
        None
    }

    pub(crate) fn figures(&self) -> Figures {
        self.lock().figures
    }

    /// Has the writer write what waits and end; waits for that, up to `limit`.
    pub(crate) fn close(&self, limit: Duration) -> Result<Figures, WriteError> {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
            self.wake.notify_one();
        }
        let waited =
            self.ended.wait_timeout_while(state, limit, |state| state.phase != Phase::Ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.failure {
            Some(error) => Err(error.clone()),
            None if state.phase == Phase::Ended => Ok(state.figures),
            None => Err(WriteError::Late { path: self.path.clone(), limit }),
        }
    }

    /// Waits for records, but not beyond `due`, and takes all that there are.
    pub(crate) fn next_batch(&self, due: Instant) -> Batch {
        let mut state = self.wait(self.lock(), 1, due);
        if !state.chunks.is_empty() {
            state = self.wait(state, CHUNK_BYTES as u64, Instant::now() + GATHER);
        }
        Batch {
            chunks: std::mem::take(&mut state.chunks),
            records_appended: state.figures.records_appended,
            is_last: state.phase == Phase::Closing,
        }
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        bytes: u64,
        until: Instant,
    ) -> MutexGuard<'a, State> {
        while state.phase == Phase::Open && state.figures.waiting_bytes < bytes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.wake_at_bytes = Some(bytes);
            // A thread that panics with this lock leaves a state that is whole.
            state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wake_at_bytes = None;
        state
    }

    /// Takes back chunks that are written, so that they need no new memory.
    pub(crate) fn written(&self, chunks: Vec<Vec<u8>>) {
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        // What is freed is freed without the lock: that may take longer than appending may.
        let (mut kept, freed): (Vec<_>, Vec<_>) =
            chunks.into_iter().partition(|chunk| chunk.capacity() == CHUNK_BYTES);
        drop(freed);
        kept.iter_mut().for_each(Vec::clear);
        let mut state = self.lock();
        state.figures.waiting_bytes -= bytes as u64;
        let missing = SPARE_CHUNKS_MAX.saturating_sub(state.spare.len()).min(kept.len());
        state.spare.extend(kept.drain(..missing));
    }

    /// All records up to this number, and the file up to this offset, are on the disk.
    pub(crate) fn durable(&self, records: u64, bytes: u64) {
        let figures = &mut self.lock().figures;
        (figures.records_durable, figures.durable_bytes) = (records, bytes);
    }

    /// Writing has failed: no record is taken any more.
    pub(crate) fn fail(&self, error: &WriteError) {
        let mut state = self.lock();
        state.failure = Some(error.clone());
        state.figures.waiting_bytes = 0;
        let (chunks, spare) = (std::mem::take(&mut state.chunks), std::mem::take(&mut state.spare));
        drop(state);
        drop((chunks, spare));
        self.tell(error);
    }

    /// The writer has closed the file.
    pub(crate) fn end(&self) {
        self.lock().phase = Phase::Ended;
        self.ended.notify_all();
    }

    fn tell(&self, error: &WriteError) {
        match &self.on_failure {
            OnFailure::Call(call) => call(error),
            OnFailure::Warn if matches!(error, WriteError::Behind { .. }) => {
                tracing::warn!("{error}");
            }
            OnFailure::Warn => tracing::warn!("{error}. The job goes on without a journal"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes the build of the records that follow.
    fn note(&mut self, mark: u64, build: Option<u64>) {
        let drops_others = std::mem::take(&mut self.drops_others);
        self.build = build;
        let note = BuildNote { build, drops_others }.encode();
        let head = Head::of_note(mark, &note).encode(mark, self.end);
        let chunk = self.chunk_with_room(HEAD_BYTES + NOTE_BYTES);
        chunk.extend_from_slice(&head);
        chunk.extend_from_slice(&note);
        self.grow(HEAD_BYTES + NOTE_BYTES);
        self.plan_note();
    }

    fn plan_note(&mut self) {
        let is_known = self.build.is_some();
        self.note_again_at = if is_known { self.end + NOTE_EVERY_BYTES } else { u64::MAX };
    }

    /// This number of bytes more is to be written.
    fn grow(&mut self, bytes: usize) {
        self.end += bytes as u64;
        self.figures.waiting_bytes += bytes as u64;
    }

    fn chunk_with_room(&mut self, bytes: usize) -> &mut Vec<u8> {
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= bytes;
        if !self.chunks.last().is_some_and(has_room) {
            let chunk = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
            self.chunks.push(chunk);
        }
        self.chunks.last_mut().expect("there is one by now")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::whole_records;
    use std::sync::Arc;

    fn queue(max: u64) -> Queue {
        Queue::new("a.journal".into(), 1, 100, max, OnFailure::Warn)
    }

    /// A moment that no test waits for.
    fn later() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    fn waiting(queue: &Queue) -> (u64, u64) {
        let Figures { records_appended, waiting_bytes, .. } = queue.figures();
        (records_appended, waiting_bytes)
    }

    #[test]
    fn what_is_taken_out_waits_until_it_is_written() {
        let queue = queue(1000);
        (0..3).for_each(|item| queue.append(None, item..item + 1, b"ab"));
        assert_eq!(waiting(&queue), (3, 150));
        let Batch { chunks, records_appended, is_last } = queue.next_batch(later());
        assert_eq!((chunks.len(), records_appended, is_last), (1, 3, false));
        assert_eq!(whole_records(&chunks[0], 1000), 150);
        for (at, item) in [(0, 0), (50, 1), (100, 2)] {
            let head = Head::decode(&chunks[0][at..], 1, 100 + at as u64).expect("it is there");
            assert_eq!(head, Head::new(1, item..item + 1, b"ab"));
        }
        assert_eq!(waiting(&queue), (3, 150), "it is not written yet");
        queue.written(chunks);
        assert_eq!(waiting(&queue), (3, 0));
        queue.durable(3, 250);
        let figures = queue.figures();
        assert_eq!((figures.records_durable, figures.durable_bytes), (3, 250));
        assert_eq!(queue.next_batch(Instant::now()).chunks.len(), 0);
    }

    #[test]
    fn chunks_are_filled_and_used_again_and_long_results_have_their_own() {
        let queue = queue(u64::MAX);
        let each = COPIED_INSIDE_BYTES_MAX;
        for bytes in [each, each, each, each + 1, each] {
            queue.append(None, 0..1, &vec![7; bytes]);
        }
        let chunks = queue.next_batch(later()).chunks;
        let lengths: Vec<_> = chunks.iter().map(Vec::len).collect();
        let half = CHUNK_BYTES / 2;
        assert_eq!(lengths, [2 * half, half, half + 1, half]);
        let first = chunks[0].as_ptr();
        queue.written(chunks);
        assert_eq!(queue.lock().spare.len(), 3, "the long one is freed");
        assert!(queue.lock().spare.iter().all(Vec::is_empty));
        queue.lock().spare.truncate(1);
        queue.append(None, 0..1, b"");
        let again = queue.next_batch(Instant::now()).chunks;
        assert_eq!((again.len(), again[0].as_ptr()), (1, first));
        let many = (0..2 * SPARE_CHUNKS_MAX).map(|_| Vec::with_capacity(CHUNK_BYTES));
        queue.lock().spare.clear();
        queue.written(many.chain(again).collect());
        let spare = queue.lock().spare.len();
        assert_eq!((spare, waiting(&queue).1), (SPARE_CHUNKS_MAX, 0));
    }

    /// Whatever its own length: a long record is not worth less than a short one.
    #[test]
    fn a_record_is_dropped_once_as_much_as_may_waits() {
        let queue = queue(96);
        (0..4).for_each(|item| queue.append(None, item..item + 1, b""));
        queue.append(None, 4..5, &vec![7; COPIED_INSIDE_BYTES_MAX + 1]);
        let figures = queue.figures();
        assert_eq!((figures.records_appended, figures.records_dropped), (2, 3));
        let chunks = queue.next_batch(later()).chunks;
        queue.written(chunks);
        queue.append(None, 5..6, &[7; 1000]);
        assert_eq!(waiting(&queue), (3, 1048));
    }

    #[test]
    fn after_a_failure_nothing_is_taken_and_closing_says_why() {
        let queue = queue(1000);
        queue.append(None, 0..1, b"");
        let error = WriteError::Behind { path: "a.journal".into(), waiting_bytes: 7 };
        queue.fail(&error);
        queue.append(None, 1..2, b"");
        let figures = queue.figures();
        assert_eq!((figures.waiting_bytes, figures.records_dropped), (0, 1));
        assert!(queue.lock().chunks.is_empty());
        queue.end();
        let closed = queue.close(Duration::ZERO).expect_err("it has failed");
        assert_eq!(closed.to_string(), error.to_string());
    }

    #[test]
    fn a_queue_that_is_closed_gives_its_rest_and_takes_no_more() {
        let queue = Arc::new(queue(1000));
        queue.append(None, 0..1, b"");
        assert!(matches!(queue.close(Duration::ZERO), Err(WriteError::Late { .. })));
        queue.append(None, 1..2, b"");
        let batch = queue.next_batch(later());
        assert_eq!((batch.records_appended, batch.is_last), (1, true));
        queue.written(batch.chunks);
        let ending = Arc::clone(&queue);
        let end = std::thread::spawn(move || ending.end());
        let figures = queue.close(Duration::from_secs(30)).expect("it has ended");
        assert_eq!((figures.records_appended, figures.records_dropped), (1, 1));
        end.join().expect("no panic");
    }
}
