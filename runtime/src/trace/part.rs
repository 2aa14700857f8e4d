//! The part of a trace that this process writes, and the thread that writes it.

use super::CURRENT;
use super::clock::{Clock, Skew};
use super::encoder::Encoder;
use super::track::Track;
use crate::lock::Lock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;
#[cfg(doc)]
use ultramarine_trace::TRUE_NS;
use ultramarine_trace::packet::{ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use ultramarine_trace::part_name;

/// What is recorded is in the file after this time: no more is lost when the process is killed.
const WRITES_EVERY: Duration = Duration::from_millis(100);

/// How long the end of a recording waits for what is still to be written.
const WRITES_WITHIN: Duration = Duration::from_secs(5);

/// How many tracks a PE may have: one for itself, and one for each thread.
const TRACKS_MAX: u32 = 1 << 12;

/// What this process records, if it does.
static RECORDER: Lock<Option<Recorder>> = Lock::new(None);

struct Recorder {
    recording: u64,
    clock: Clock,
    host: String,
    /// The track of each PE, and how many of its threads have one.
    pes: BTreeMap<Pe, (Arc<Track>, u32)>,
    tracks: Vec<Arc<Track>>,
}

/// A recording, until it is dropped. What has happened by then is in the file.
#[derive(Debug)]
pub struct Recording {
    number: u64,
    /// Dropped, it ends the thread that writes.
    goes_on: Option<mpsc::Sender<()>>,
    /// Closed when all is written, or the file cannot be written.
    is_written: mpsc::Receiver<()>,
}

/// Begins to record what this process does, whose first PE is `pe`, in a file of this folder. The
/// folder is made if it is not there; the file is made anew. A process records one job at a time:
/// what another does meanwhile is recorded as this one's. The clock is wrong by the skew, which is
/// for testing; then each slice says in its annotation [`TRUE_NS`] when it began.
///
/// # Errors
///
/// The file cannot be made, or the process records already.
pub fn record(folder: &Path, pe: Pe, host: &str, skew: Skew) -> io::Result<Recording> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let mut recorder = RECORDER.lock();
    if recorder.is_some() {
        return Err(io::Error::other("this process records a trace already"));
    }
    std::fs::create_dir_all(folder)?;
    let path = folder.join(part_name(pe.number()));
    let file = File::create(&path)?;
    let clock = Clock::new(skew);
    let recording = NUMBER.fetch_add(1, Ordering::Relaxed);
    let (goes_on, ends) = mpsc::channel();
    let (writes, is_written) = mpsc::channel();
    let write = move || {
        let _writes: mpsc::Sender<()> = writes;
        if let Err(error) = write(file, (recording, clock), &ends) {
            stop(recording);
            let path = path.display();
            tracing::warn!("the trace `{path}` ends here, as it cannot be written: {error}");
        }
    };
    Builder::new().name("trace".to_owned()).spawn(write)?;
    let (host, pes, tracks) = (host.to_owned(), BTreeMap::new(), Vec::new());
    *recorder = Some(Recorder { recording, clock, host, pes, tracks });
    CURRENT.store(recording, Ordering::Relaxed);
    Ok(Recording { number: recording, goes_on: Some(goes_on), is_written })
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Other threads are about to note their last runs.
        let begun = Instant::now();
        let is_amid_run = || tracks(self.number).iter().any(|track| track.is_amid_run());
        while is_amid_run() && begun.elapsed() < WRITES_EVERY {
            thread::sleep(WRITES_EVERY / 100);
        }
        stop(self.number);
        self.goes_on = None;
        let written = self.is_written.recv_timeout(WRITES_WITHIN);
        if written == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the end of the trace is not written within {WRITES_WITHIN:?}");
        }
        *RECORDER.lock() = None;
    }
}

/// Ends a recording, if it is the one that goes on.
fn stop(recording: u64) {
    let _ = CURRENT.compare_exchange(recording, 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// The tracks of a recording: none once it is over.
fn tracks(recording: u64) -> Vec<Arc<Track>> {
    let recorder = RECORDER.lock();
    let own = recorder.iter().filter(|recorder| recorder.recording == recording);
    own.flat_map(|recorder| recorder.tracks.clone()).collect()
}

/// Writes what the tracks of a recording with this clock have, until it ends or the file cannot be
/// written.
fn write(
    mut file: File,
    (recording, clock): (u64, Clock),
    ends: &mpsc::Receiver<()>,
) -> io::Result<()> {
    let (mut is_last, mut encoders) = (false, Vec::new());
    while !is_last {
        is_last = ends.recv_timeout(WRITES_EVERY) != Err(mpsc::RecvTimeoutError::Timeout);
        for (at, track) in tracks(recording).into_iter().enumerate() {
            if at == encoders.len() {
                encoders.push(Encoder::new(&track, clock));
            }
            let items = track.take(Instant::now(), is_last);
            file.write_all(&encoders[at].encode(items))?;
        }
    }
    Ok(())
}

/// Gives the calling thread a track.
pub(super) fn join(pe: Pe, thread: &str) {
    let mut recorder = RECORDER.lock();
    let Some(Recorder { recording, clock, host, pes, tracks }) = &mut *recorder else {
        return;
    };
    let first = 1 + pe.number() * TRACKS_MAX;
    let pid = Some(pe.number() as i32 + 1);
    let (_, threads) = pes.entry(pe).or_insert_with(|| {
        let process_name = Some(format!("PE {} on {host}", pe.number()));
        let argument = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let cmdline = std::env::args_os().map(argument).collect();
        let process = Some(ProcessDescriptor { pid, cmdline, process_name });
        let uuid = Some(first.into());
        let described = TrackDescriptor { uuid, process, ..TrackDescriptor::default() };
        let track = Arc::new(Track::new(clock.origin, first, described));
        tracks.push(track.clone());
        (track, 0)
    });
    *threads += 1;
    if *threads >= TRACKS_MAX {
        return;
    }
    let number = first + *threads;
    let thread_name = Some(thread.to_owned());
    let described = TrackDescriptor {
        uuid: Some(number.into()),
        parent_uuid: Some(first.into()),
        thread: Some(ThreadDescriptor { pid, tid: Some(number as i32), thread_name }),
        ..TrackDescriptor::default()
    };
    let track = Arc::new(Track::new(clock.origin, number, described));
    tracks.push(track.clone());
    track.bind(*recording);
}

/// What time it is.
pub(super) fn now() -> Option<u64> {
    RECORDER.lock().as_ref().map(|recorder| recorder.clock.now())
}

/// Runs `act` on the track of a PE, once one of its threads has one.
pub(super) fn with_pe(pe: Pe, act: impl FnOnce(&Track)) {
    if let Some((track, _)) = RECORDER.lock().as_ref().and_then(|recorder| recorder.pes.get(&pe)) {
        act(track);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{begin_run, is_on, note_run};
    use ultramarine_testkit::eventually;

    /// In one test, as a process records once at a time.
    #[test]
    fn a_disk_that_is_full_ends_the_recording_alone() {
        let place = tempfile::tempdir().expect("there is room");
        let folder = place.path();
        let path = folder.join(part_name(0));
        std::os::unix::fs::symlink("/dev/full", &path).expect("the folder is our own");
        let full = record(folder, Pe::ROOT, "here", Skew::default()).expect("it can be opened");
        assert!(record(folder, Pe::ROOT, "here", Skew::default()).is_err(), "it records already");
        eventually("it cannot be written", || {
            thread::scope(|scope| drop(scope.spawn(|| join(Pe::ROOT, "worker 0"))));
            !is_on()
        });
        drop(full);
        std::fs::remove_file(&path).expect("it is there");
        let recording =
            record(folder, Pe::ROOT, "here", Skew::default()).expect("the former has ended");
        thread::scope(|scope| {
            scope.spawn(|| {
                join(Pe::ROOT, "worker 0");
                let begun = begin_run();
                note_run(None, begun.expect("it records"));
            });
        });
        drop(recording);
        assert!(begin_run().is_none());
        let part = std::fs::read(&path).expect("it was written");
        let mut reader = ultramarine_trace::Reader::default();
        let read = ultramarine_trace::Packets::of(&part);
        assert_eq!(read.filter_map(|packet| reader.next(packet)).count(), 1);
    }
}
