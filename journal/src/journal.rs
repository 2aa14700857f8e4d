//! A journal that is open for writing, and the two threads behind it: one writes the file, and the
//! other puts it on the disk. A disk that is slow at that keeps no record from the file.

use crate::builds::Builds;
use crate::error::{OpenError, Refusal, WriteError};
use crate::header::Identity;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::process;
use crate::queue::{Batch, Figures, OnFailure, Queue};
use crate::report::Report;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// No record is taken while this many bytes wait in memory to be written. So these, one record and
/// some 4 MiB are the most memory that a journal needs.
pub const WAITING_BYTES_MAX: u64 = 64 << 20;

/// How often what is new is put on the disk, and how often the writer looks whether the file is
/// still there.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How long dropping a journal waits for the disk.
const DROP_LIMIT: Duration = Duration::from_secs(5);

/// A journal that is open for writing.
///
/// While it is open, its file is locked: no other `Journal` can be opened there, in this process or
/// another. Dropping it writes what waits, as [`finish`](Journal::finish) does, but waits 5 s at
/// most and returns no error.
pub struct Journal {
    queue: Arc<Queue>,
    items: u64,
    build: Option<u64>,
    is_finished: bool,
}

impl Journal {
    /// Opens the journal at `path`, or begins it if there is no file, or one that holds nothing.
    ///
    /// `visit` gets each record that counts, in the order of the file: the positions of its items
    /// and the bytes of its result. Of the records for the same positions the first intact one
    /// counts. Only one record is in memory at a time. If `visit` fails, nothing is opened.
    ///
    /// Results that another build has computed may be dropped, now or at an earlier opening
    /// ([`OtherBuilds::Anew`](crate::OtherBuilds::Anew)). Then `visit` has got them, and gets their
    /// positions again, with `None`: no result for these counts any more. Others may follow.
    ///
    /// A torn tail, which is what a crash leaves, is cut off. Damaged places stay where they are.
    /// The report tells of both.
    ///
    /// If the file system has no locks, that is said in a warning, and the journal is opened all
    /// the same.
    ///
    /// # Errors
    /// See [`OpenError`]. The file is then as it was, but for a new one, which is empty.
    ///
    /// # Panics
    /// If the names in `identity` have more than 1,048,000 bytes together.
    pub fn open(
        path: impl AsRef<Path>,
        identity: &Identity,
        builds: Builds,
        on_failure: OnFailure,
        visit: impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), Refusal>,
    ) -> Result<(Self, Report), OpenError> {
        let opened = open::open(path.as_ref(), identity, builds, visit)?;
        let Opened { mark, output, report, drops_others } = opened;
        let items = identity.items;
        let mut journal = Journal::start(mark, output, items, WAITING_BYTES_MAX, on_failure)?;
        journal.build = builds.this;
        journal.queue.begin(report.build, drops_others);
        Ok((journal, report))
    }

    fn start(
        mark: u64,
        output: Output,
        items: u64,
        waiting_bytes_max: u64,
        on_failure: OnFailure,
    ) -> Result<Self, WriteError> {
        let path = output.path().to_owned();
        let queue = Queue::new(path.clone(), mark, output.end(), waiting_bytes_max, on_failure);
        let queue = Arc::new(queue);
        let writers = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        thread
            .spawn(move || write(&writers, output))
            .map_err(|error| WriteError::Io { path, source: Arc::new(error) })?;
        process::note(&queue);
        Ok(Journal { queue, items, build: None, is_finished: false })
    }

    /// Appends the result for the items at these positions, which this build has computed.
    ///
    /// It copies the bytes and never waits for the disk: that takes some 50 ns, and for a long
    /// result about half a millisecond for each MiB. The bytes are in the file about 20 ms later,
    /// where they outlive the process, and on the disk after about a second, where they outlive the
    /// machine.
    ///
    /// If [`WAITING_BYTES_MAX`] wait, the record is dropped: a job does not need its journal for
    /// its results, and its next start computes this one again. As soon as the disk has caught up,
    /// records are taken again. After a failure all records are dropped.
    ///
    /// # Panics
    /// If there are no positions, or one is not below the number of items.
    pub fn append(&self, positions: Range<u64>, result: &[u8]) {
        self.append_of(self.build, positions, result);
    }

    /// [Appends](Self::append) a result that another build, or an unknown one, has computed.
    ///
    /// # Panics
    /// As [`append`](Self::append).
    pub fn append_of(&self, build: Option<u64>, positions: Range<u64>, result: &[u8]) {
        assert!(
            positions.start < positions.end && positions.end <= self.items,
            "positions {positions:?} of {} items",
            self.items
        );
        self.queue.append(build, positions, result);
    }

    /// The mark of the file: a random number that no other journal has.
    pub fn mark(&self) -> u64 {
        self.queue.mark
    }

    /// What has been done so far.
    pub fn figures(&self) -> Figures {
        self.queue.figures()
    }

    /// Puts all on the disk and closes the file. Waits for that, `limit` at the most.
    ///
    /// # Errors
    /// If writing has failed, now or before, or is not done in time. After
    /// [`WriteError::Late`] the file stays locked, and is still being written.
    pub fn finish(mut self, limit: Duration) -> Result<Figures, WriteError> {
        self.is_finished = true;
        self.queue.close(limit)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // Any other error has been told.
        if let Err(error @ WriteError::Late { .. }) = self.queue.close(DROP_LIMIT) {
            tracing::warn!("{error}");
        }
    }
}

/// Says that the writer has ended, even if the owner's callback panics.
struct Ending<'a>(&'a Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The thread that writes.
fn write(queue: &Queue, output: Output) {
    // In this order: the owner may open the file again as soon as it hears of the end.
    let _ending = Ending(queue);
    let mut output = output;
    if let Err(error) = write_until_closed(queue, &mut output) {
        queue.fail(&error);
        // What another program has made of the file is left as it is.
        if !matches!(error, WriteError::Spoilt { .. }) {
            output.cut(output.end());
        }
    }
    drop(output);
}

fn write_until_closed(queue: &Queue, output: &mut Output) -> Result<(), WriteError> {
    // The other thread is asked only while it waits.
    let (ask, asked) = mpsc::sync_channel(0);
    let (file, begin) = (output.on_disk(), output.end());
    let put_on_disk = move || {
        // What an earlier owner wrote before it was killed may not be on the disk yet.
        file.sync(begin)?;
        file.sync_folder();
        queue.durable(0, begin);
        asked.into_iter().try_for_each(|Written { records, bytes }| {
            file.sync(bytes)?;
            queue.durable(records, bytes);
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("journal-disk".to_owned());
        let thread = thread
            .spawn_scoped(scope, put_on_disk)
            .map_err(|error| WriteError::Io { path: queue.path.clone(), source: error.into() })?;
        let written = write_and_ask(queue, output, &ask);
        // Now the other thread ends.
        drop(ask);
        let on_disk = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(on_disk)?;
        output.look()
    })
}

/// How much was written.
struct Written {
    records: u64,
    bytes: u64,
}

/// Writes, and asks for what is written to be put on the disk. Ends when all is written and asked
/// for, or when the other thread has ended.
fn write_and_ask(
    queue: &Queue,
    output: &mut Output,
    ask: &SyncSender<Written>,
) -> Result<(), WriteError> {
    let mut ask_at = None;
    let mut look_at = Instant::now() + SYNC_EVERY;
    loop {
        let due = ask_at.map_or(look_at, |ask_at| look_at.min(ask_at));
        let Batch { chunks, records_appended: records, is_last } = queue.next_batch(due);
        if look_at <= Instant::now() {
            output.look()?;
            look_at = Instant::now() + SYNC_EVERY;
        }
        if !chunks.is_empty() {
            chunks.iter().try_for_each(|chunk| output.write(chunk))?;
            queue.written(chunks);
            ask_at.get_or_insert_with(|| Instant::now() + SYNC_EVERY);
        }
        let written = Written { records, bytes: output.end() };
        if is_last {
            let _ = ask.send(written);
            return Ok(());
        }
        if ask_at.is_some_and(|at| at <= Instant::now()) {
            ask_at = match ask.try_send(written) {
                Ok(()) => None,
                Err(TrySendError::Full(_)) => Some(Instant::now() + SYNC_EVERY),
                Err(TrySendError::Disconnected(_)) => return Ok(()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::LockedFile;
    use std::fs::OpenOptions;
    use std::io::Read as _;
    use std::process::Command;
    use std::sync::Mutex;
    use ultramarine_testkit::{Log, bounded, eventually};

    /// A pipe without a reader stands for a disk that stands still.
    #[test]
    fn a_disk_that_stands_still_holds_up_no_caller() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().expect("on Unix");
        assert!(made.success());
        let both = OpenOptions::new().read(true).write(true).open(&path);
        let mut reader = both.expect("on Linux this waits for no writer");
        let writer = reader.try_clone().expect("there are files");
        let output = Output::new(&path, LockedFile(writer), 0);
        let told = Arc::new(Mutex::new(Vec::new()));
        let tellers = Arc::clone(&told);
        let call = OnFailure::Call(Box::new(move |error: &WriteError| {
            tellers.lock().expect("no thread panics").push(error.clone());
        }));
        let limit = 1_000_000;
        let journal = Journal::start(1, output, 1000, limit, call).expect("there are threads");
        let figures = bounded(move || {
            // More than a pipe holds.
            (0..1000).for_each(|item| journal.append(item..item + 1, &[7; 10_000]));
            let figures = journal.figures();
            assert!(matches!(
                journal.finish(Duration::from_millis(50)),
                Err(WriteError::Late { .. })
            ));
            figures
        });
        assert_eq!(figures.records_appended + figures.records_dropped, 1000);
        assert!((90..=100).contains(&figures.records_appended), "{figures:?}");
        assert!(figures.waiting_bytes < limit + 10_048, "{figures:?}");
        {
            let told = told.lock().expect("no thread panics");
            assert!(matches!(told[..], [WriteError::Behind { .. }]), "{told:?}");
        }
        // The pipe cannot be put on a disk, which ends the writer.
        std::thread::spawn(
            move || while reader.read(&mut [0; 10_000]).is_ok_and(|count| count > 0) {},
        );
        eventually("writing fails", || told.lock().expect("no thread panics").len() == 2);
        let told = told.lock().expect("no thread panics");
        assert!(matches!(told[1], WriteError::Io { .. }), "{told:?}");
    }

    #[test]
    fn the_log_says_once_that_records_are_dropped_and_then_that_there_is_no_journal() {
        let queue = Queue::new("a.journal".into(), 1, 0, 0, OnFailure::Warn);
        let log = Log::default();
        log.note(|| (0..3).for_each(|item| queue.append(None, item..item + 1, b"")));
        let [line] = &log.take()[..] else { panic!("it is said once") };
        assert!(line.starts_with("WARN: the journal `a.journal` "), "{line}");
        assert!(!line.contains("without a journal"), "{line}");
        let error = WriteError::Spoilt { path: "a.journal".into(), what: "cut" };
        log.note(|| queue.fail(&error));
        assert_eq!(log.take(), [format!("WARN: {error}. The job goes on without a journal")]);
        log.note(|| queue.append(None, 3..4, b""));
        assert_eq!((log.take().len(), queue.figures().records_dropped), (0, 4));
    }

    /// Another program has cut the file since it was read.
    #[test]
    fn what_was_there_before_is_put_on_the_disk_first() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.journal");
        let file = std::fs::File::create(&path).expect("there is room");
        let output = Output::new(&path, LockedFile(file), 100);
        let (say, said) = std::sync::mpsc::channel();
        let call = OnFailure::Call(Box::new(move |error: &WriteError| {
            say.send(error.to_string()).expect("it is awaited");
        }));
        let journal = Journal::start(1, output, 1000, 1000, call).expect("there are threads");
        assert!(journal.finish(Duration::from_secs(30)).is_err());
        assert!(said.recv().expect("it fails").contains("was cut by another program"));
    }

    /// A pipe stands for the folder: who opens it waits for the other end to be opened, too.
    #[test]
    fn the_folder_of_a_new_file_is_put_on_the_disk() {
        let folder = tempfile::tempdir().expect("there is room");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("on Unix");
        assert!(made.success());
        let file = std::fs::File::create(folder.path().join("file")).expect("there is room");
        let output = Output::new(&pipe.join("a.journal"), LockedFile(file), 0);
        let journal = Journal::start(1, output, 1000, 1000, OnFailure::Warn);
        let journal = journal.expect("there are threads");
        bounded(move || OpenOptions::new().write(true).open(pipe)).expect("it is opened");
        journal.finish(Duration::from_secs(30)).expect("all is written");
    }

    #[test]
    #[should_panic(expected = "positions 3..5 of 4 items")]
    fn positions_beyond_the_items_are_refused() {
        let folder = tempfile::tempdir().expect("there is room");
        let identity = Identity {
            program: String::new(),
            call: String::new(),
            result: String::new(),
            items: 4,
            digest: 0,
        };
        let path = folder.path().join("a.journal");
        let builds = Builds::default();
        let opened = Journal::open(path, &identity, builds, OnFailure::Warn, |_, _| Ok(()));
        opened.expect("there is room").0.append(3..5, b"");
    }
}
