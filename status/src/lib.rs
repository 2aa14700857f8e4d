//! What a running job says of itself, and how others ask it.
//!
//! The process of the job's root answers over HTTP, one request after the other, on a thread of its
//! own. While no one asks, this costs nothing.
//!
//! | module | what |
//! |---|---|
//! | [`contact`] | the file that says where a job answers, and holds the token that it wants |
//! | [`server`] | the answering thread |
//! | [`client`] | asking |
//! | `http` | requests and answers, with limits on time and size |
//! | `json` | the status as an object |
//! | `metrics` | the status as Prometheus reads it |
//!
//! Who has the token sees these numbers, and can do nothing else with it: the job's own key is
//! another. It travels as it is, so who can listen on the network between the two can have it.
#![forbid(unsafe_code)]

pub mod client;
pub mod contact;
mod http;
mod json;
mod metrics;
pub mod server;

use serde::{Deserialize, Serialize};

/// What a job does now, and has done since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    /// The version of the runtime.
    pub version: String,
    /// The name of the program.
    pub program: String,
    /// The number of the process that answers: that of the root.
    pub process: u32,
    /// Seconds since the main task began.
    pub seconds: f64,
    /// Whether it still runs.
    pub is_running: bool,
    /// The PEs that have died.
    pub dead: Vec<u32>,
    /// The PEs that live, and have not answered in time: they may be stopped, or short of a core.
    pub silent: Vec<u32>,
    /// Those that have answered, by number.
    pub pes: Vec<PeStatus>,
}

/// What a PE does now, and has done since the start of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeStatus {
    /// Its number.
    pub pe: u32,
    /// Its host.
    pub host: String,
    /// Its worker threads.
    pub workers: u64,
    /// Of these, threads that have no task.
    pub idle: u64,
    /// Tasks that thieves may take.
    pub waiting: u64,
    /// Tasks of this PE that are on other PEs.
    pub away: u64,
    /// What its process has in memory, in bytes.
    pub memory: u64,
    /// Tasks started here, wherever they came from.
    pub started: u64,
    /// Tasks of this PE that have ended, wherever they ran, since it was first asked.
    pub ended: u64,
    /// New copies of its tasks, made because earlier ones were lost.
    pub again: u64,
    /// Its tasks that ended with an error, since they may have been lost.
    pub lost: u64,
    /// Tasks dropped here since their home had died.
    pub orphans: u64,
    /// Messages that it has sent, also those to itself.
    pub messages: u64,
    /// Bytes that it has sent to other PEs, or copied from the memory of others.
    pub moved_bytes: u64,
    /// Tasks that it has stolen, by distance.
    pub stolen: Vec<Stolen>,
}

/// Tasks that a PE has stolen at one distance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stolen {
    /// The distance, as in `1/2`.
    pub distance: String,
    /// How many.
    pub tasks: u64,
    /// Bytes of their closures and arguments.
    pub bytes: u64,
}

impl PeStatus {
    /// Tasks that it has stolen, at all distances.
    pub fn stolen_tasks(&self) -> u64 {
        self.stolen.iter().fold(0, |sum, row| sum.saturating_add(row.tasks))
    }
}
