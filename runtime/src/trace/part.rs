//! The part of a trace that this process writes, and the thread that writes it.

use super::IS_ON;
use super::lane::{Lane, Origin, Shared};
use crate::lock::Lock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ultramarine_topology::Pe;
use ultramarine_trace::packet::{
    ProcessDescriptor, SequenceFlags, ThreadDescriptor, TracePacket, TrackDescriptor,
};
use ultramarine_trace::{PART, append};

/// What was recorded is in the file after this time: more is not lost when the process is killed.
const WRITES_EVERY: Duration = Duration::from_millis(100);

/// How many lanes a PE may have: one for itself, and one for each thread.
const LANES_MAX: u32 = 1 << 12;

/// What this process records, if it does.
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

struct Recorder {
    origin: Origin,
    host: String,
    /// How many lanes each PE of this process has.
    lanes: BTreeMap<Pe, u32>,
    shared: Vec<Arc<Shared>>,
}

/// A recording, until it is dropped. What has happened by then is in the file.
#[derive(Debug)]
pub struct Recording {
    /// Dropped, it ends the thread.
    goes_on: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins to record what this process does, whose first PE is `pe`, in a file of this folder. The
/// folder is made if it is not there; the file is made anew.
///
/// # Errors
///
/// The file cannot be made, or the process records already.
pub fn record(folder: &Path, pe: Pe, host: &str) -> io::Result<Recording> {
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    if recorder.is_some() {
        return Err(io::Error::other("this process records a trace already"));
    }
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("pe{:06}.{PART}", pe.number()));
    let file = File::create(&path)?;
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let origin = Origin { at: Instant::now(), unix };
    let (goes_on, ends) = mpsc::channel();
    let write = move || {
        if let Err(error) = write(file, &ends) {
            IS_ON.store(false, Ordering::Relaxed);
            let path = path.display();
            tracing::warn!("the trace `{path}` ends here, as it cannot be written: {error}");
        }
    };
    let thread = Builder::new().name("trace".to_owned()).spawn(write)?;
    let (lanes, shared) = (BTreeMap::new(), Vec::new());
    *recorder = Some(Recorder { origin, host: host.to_owned(), lanes, shared });
    IS_ON.store(true, Ordering::Relaxed);
    Ok(Recording { goes_on: Some(goes_on), thread: Some(thread) })
}

impl Drop for Recording {
    fn drop(&mut self) {
        super::pause();
        // Other threads are about to note their last runs.
        let begun = Instant::now();
        while shared().iter().any(|lane| lane.is_amid_run.load(Ordering::Acquire))
            && begun.elapsed() < WRITES_EVERY
        {
            thread::sleep(WRITES_EVERY / 100);
        }
        IS_ON.store(false, Ordering::Relaxed);
        self.goes_on = None;
        self.thread.take().map(JoinHandle::join);
        *RECORDER.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// All lanes.
fn shared() -> Vec<Arc<Shared>> {
    let recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    recorder.iter().flat_map(|recorder| recorder.shared.clone()).collect()
}

/// Writes what the lanes have, until the recording ends or the file cannot be written.
fn write(mut file: File, ends: &mpsc::Receiver<()>) -> io::Result<()> {
    loop {
        let is_over = ends.recv_timeout(WRITES_EVERY) != Err(mpsc::RecvTimeoutError::Timeout);
        for lane in shared() {
            let bytes = std::mem::take(&mut *lane.out.lock());
            file.write_all(&bytes)?;
        }
        if is_over {
            return Ok(());
        }
    }
}

/// Gives the calling thread a lane.
pub(super) fn join(pe: Pe, thread: &str) {
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Recorder { origin, host, lanes, shared }) = &mut *recorder else { return };
    let before = *lanes.entry(pe).and_modify(|lanes| *lanes += 1).or_insert(0);
    let first = 1 + pe.number() * LANES_MAX;
    if before + 1 >= LANES_MAX {
        return;
    }
    let pid = Some(pe.number() as i32 + 1);
    if before == 0 {
        let process_name = Some(format!("PE {} on {host}", pe.number()));
        let cmdline = std::env::args().collect();
        let process = Some(ProcessDescriptor { pid, cmdline, process_name });
        let uuid = Some(first.into());
        let described = TrackDescriptor { uuid, process, ..TrackDescriptor::default() };
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(first),
            sequence_flags: Some(SequenceFlags::Begins as u32),
            track_descriptor: Some(described),
            ..TracePacket::default()
        };
        let mut bytes = Vec::new();
        append(&packet, &mut bytes);
        let out = Lock::new(bytes);
        shared.push(Arc::new(Shared { out, ..Shared::default() }));
    }
    let number = first + 1 + before;
    let thread_name = Some(thread.to_owned());
    let described = TrackDescriptor {
        uuid: Some(number.into()),
        parent_uuid: Some(first.into()),
        thread: Some(ThreadDescriptor { pid, tid: Some(number as i32), thread_name }),
        ..TrackDescriptor::default()
    };
    let own = Arc::<Shared>::default();
    shared.push(own.clone());
    Lane::begin(*origin, number, described, own);
}
