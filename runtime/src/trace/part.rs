//! The part of a trace that this process writes, and the thread that writes it.

use super::IS_ON;
use super::lane::{Lane, Origin};
use crate::lock::Lock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
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
    /// What the lanes have for the file.
    outs: Vec<Arc<Lock<Vec<u8>>>>,
}

/// A recording, until it is dropped. What has happened by then is in the file.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    /// Dropped, it ends the thread.
    goes_on: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
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
    let thread = Builder::new().name("trace".to_owned()).spawn(move || write(file, &ends))?;
    let (lanes, outs) = (BTreeMap::new(), Vec::new());
    *recorder = Some(Recorder { origin, host: host.to_owned(), lanes, outs });
    IS_ON.store(true, Ordering::Relaxed);
    Ok(Recording { path, goes_on: Some(goes_on), thread: Some(thread) })
}

impl Drop for Recording {
    fn drop(&mut self) {
        super::pause();
        IS_ON.store(false, Ordering::Relaxed);
        self.goes_on = None;
        let written = self.thread.take().map(JoinHandle::join);
        *RECORDER.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(Ok(Err(error))) = written {
            let path = self.path.display();
            tracing::warn!("the trace `{path}` ends early, as it cannot be written: {error}");
        }
    }
}

/// Writes what the lanes have, until the recording ends or the file cannot be written.
fn write(mut file: File, ends: &mpsc::Receiver<()>) -> io::Result<()> {
    loop {
        let is_over = ends.recv_timeout(WRITES_EVERY) != Err(mpsc::RecvTimeoutError::Timeout);
        let outs: Vec<_> = {
            let recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
            recorder.iter().flat_map(|recorder| recorder.outs.clone()).collect()
        };
        for out in outs {
            let bytes = std::mem::take(&mut *out.lock());
            if let Err(error) = file.write_all(&bytes) {
                IS_ON.store(false, Ordering::Relaxed);
                return Err(error);
            }
        }
        if is_over {
            return Ok(());
        }
    }
}

/// Gives the calling thread a lane.
pub(super) fn join(pe: Pe, thread: &str) {
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Recorder { origin, host, lanes, outs }) = &mut *recorder else { return };
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
        outs.push(Arc::new(Lock::new(bytes)));
    }
    let number = first + 1 + before;
    let thread_name = Some(thread.to_owned());
    let described = TrackDescriptor {
        uuid: Some(number.into()),
        parent_uuid: Some(first.into()),
        thread: Some(ThreadDescriptor { pid, tid: Some(number as i32), thread_name }),
        ..TrackDescriptor::default()
    };
    let out = Arc::new(Lock::new(Vec::new()));
    outs.push(out.clone());
    Lane::begin(*origin, number, described, out);
}
