//! Everything that one PE can send to another.

use crate::array::Array;
use crate::error::TaskError;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, Range};
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

/// A message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A thief asks for work. Passed on from victim to victim.
    Fish(Fish),
    /// A victim gives tasks to the thief.
    Schedule {
        /// The FISH that this answers.
        serial: u64,
        /// At least one task.
        tasks: Vec<Parcel>,
    },
    /// The last victim has nothing for the thief either.
    NoWork {
        /// The FISH that this answers.
        serial: u64,
    },
    /// A task placed here by `spawn_at`. It runs before all tasks that can be stolen.
    Place(Parcel),
    /// A task placed here by the runtime itself, to ask for something. It runs before all others.
    Ask(Parcel),
    /// A victim tells a task's home that it is about to hand the task on.
    Notify {
        /// The future's number at the addressee, which is the task's home.
        future: u64,
        /// The copy of the task, and its steps so far, this one included.
        version: Version,
        /// The PE that gets the task; the sender had it.
        to: Pe,
    },
    /// A thief tells a task's home that it has the task. (Not if the task came from home itself.)
    Ack {
        /// The future's number at the addressee, which is the task's home.
        future: u64,
        /// The copy of the task, and its steps so far, this one included.
        version: Version,
    },
    /// A task that came from the addressee has ended.
    Result {
        /// The future's number at the addressee, which is the task's home.
        future: u64,
        /// Its value, or why there is none.
        outcome: Outcome,
    },
    /// The sender, home of these tasks, does not want their results any more.
    Cancel {
        /// The futures' numbers at the sender.
        futures: Vec<u64>,
    },
    /// A message of the program for these PEs. The addressee is one of them, and passes the message
    /// on to the others. There is no reply.
    Tell {
        /// The numbers of the PEs.
        pes: Range<u32>,
        /// Those of them of whose death the sender has heard, or a PE before it on the way.
        dead: Vec<Pe>,
        /// The code to run and its argument.
        body: Bytes,
    },
    /// The sender cannot go on. Sent to the root, which ends the job with this reason.
    Failed {
        /// What happened, in words.
        reason: String,
    },
    /// The main task has ended: start no more tasks. Goes down the tree from the root.
    Shutdown,
    /// The sender and all PEs below it in the tree will send no more messages. Goes up the tree.
    Farewell,
    /// No PE will send any more messages: leave. Goes down the tree.
    Release,
}

/// A thief's request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fish {
    /// The PE that wants work.
    pub thief: Pe,
    /// The thief's number for this request.
    pub serial: u64,
    /// How many more times the FISH may be passed on.
    pub hops_left: u8,
    /// How much the thief needs work.
    pub need: Need,
    /// The number of tasks that wait in the thief's pool.
    pub queued: u64,
    /// How long the FISH waits at the last PE for work, if it finds none.
    pub patience: Duration,
}

/// How much a PE needs work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Need {
    /// All its workers have something to do: it asks ahead of time.
    Ahead,
    /// Some worker has nothing to do.
    Starving,
    /// None of its workers has anything to do.
    Idle,
}

/// The value of a task in bytes, or why there is none.
pub type Outcome = Result<Bytes, TaskError>;

/// Bytes that the protocol carries and never reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bytes {
    /// The first bytes; each clone copies them.
    pub few: SmallBytes,
    /// The bytes after them, if any; all clones share them.
    pub many: Option<Array>,
}

impl Bytes {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.few.len() + self.many.as_ref().map_or(0, Array::size_bytes)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<B: Into<SmallBytes>> From<B> for Bytes {
    fn from(few: B) -> Self {
        Bytes { few: few.into(), many: None }
    }
}

/// Bytes that need no allocation as long as they are as few as those of most tasks: a reference to
/// the code, and 16 bytes of arguments. (For a placed task that saves two allocations of five.)
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct SmallBytes(SmallVec<[u8; SmallBytes::IN_LINE]>);

impl Clone for SmallBytes {
    fn clone(&self) -> Self {
        // The library's own clone copies byte by byte.
        SmallBytes::from(&self.0[..])
    }
}

impl SmallBytes {
    /// This many bytes, or fewer, need no allocation.
    pub const IN_LINE: usize = 32;
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> Self {
        SmallBytes(bytes.into())
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> Self {
        SmallBytes(SmallVec::from_slice(bytes))
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for SmallBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for SmallBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = SmallBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<SmallBytes, E> {
                Ok(bytes.into())
            }
        }
        deserializer.deserialize_bytes(Reader)
    }
}

/// Names a task uniquely in the job, by its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// The PE that spawned the task and holds its future.
    pub home: Pe,
    /// The number of that future on its home.
    pub future: u64,
}

/// Which copy of a task a message is about, and how many steps the copy had made by then. So home
/// can tell news about a task from outdated messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The number of copies that were lost before this one.
    pub replica: u32,
    /// The number of steps that this copy has made: one when it leaves a PE, one when it arrives.
    pub age: u32,
}

/// A task on its way between PEs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parcel {
    /// The task's name.
    pub task: TaskId,
    /// How far from its home the task may go.
    pub radius: Distance,
    /// Whether the task's home keeps a copy, and runs it again if this one is lost.
    pub supervised: bool,
    /// Which copy this is, and its steps so far.
    pub version: Version,
    /// The task's code and argument.
    pub body: Bytes,
}

impl Parcel {
    /// The most bytes that the encoding of a parcel adds to its body.
    const OVERHEAD_BYTES: usize = 50;

    /// An upper bound of the parcel's length on the wire, in bytes.
    pub fn bytes(&self) -> usize {
        let blocks = self.body.many.as_ref().map_or(0, |array| array.blocks().len());
        self.body.len() + Self::OVERHEAD_BYTES + blocks * Array::BLOCK_OVERHEAD_BYTES
    }
}

impl Message {
    /// An array of this many bytes or more is sent beside its message, a smaller one in it.
    pub const ARRAY_BYTES_MIN: usize = 4 << 10;

    /// The body whose array can be sent beside the message. (Several tasks that share a message are
    /// small.)
    fn body(&mut self) -> Option<&mut Bytes> {
        match self {
            Message::Schedule { tasks, .. } => match &mut tasks[..] {
                [parcel] => Some(&mut parcel.body),
                _ => None,
            },
            Message::Place(parcel) | Message::Ask(parcel) => Some(&mut parcel.body),
            Message::Result { outcome: Ok(value), .. } => Some(value),
            Message::Tell { body, .. } => Some(body),
            _ => None,
        }
    }

    /// Whether the message has a value that may be sent beside it. Messages that are sent later may
    /// then arrive earlier; but see [`is_in_order`](Self::is_in_order).
    pub fn may_be_overtaken(&self) -> bool {
        match self {
            Message::Schedule { tasks, .. } => tasks.len() == 1,
            Message::Place(_)
            | Message::Ask(_)
            | Message::Tell { .. }
            | Message::Result { outcome: Ok(_), .. } => true,
            _ => false,
        }
    }

    /// Whether the message arrives after all others from the same PE of which this is true.
    pub fn is_in_order(&self) -> bool {
        matches!(self, Message::Tell { .. })
    }

    /// Takes out the array that is to be sent beside the message, if there is one.
    pub fn take_array(&mut self) -> Option<Array> {
        let is_long = |array: &mut Array| array.size_bytes() >= Self::ARRAY_BYTES_MIN;
        self.body()?.many.take_if(is_long)
    }

    /// Puts back an array that arrived beside the message. Returns whether such a message has one.
    pub fn put_array(&mut self, array: Array) -> bool {
        let place = self.body().filter(|body| body.many.is_none());
        place.is_some_and(|body| body.many.replace(array).is_none())
    }

    /// Whether the message names only PEs that a job of `pes` PEs has. Any other message comes from
    /// a defect and must not be handled.
    pub fn is_of_a_job_of(&self, pes: u32) -> bool {
        let knows = |pe: Pe| pe.number() < pes;
        match self {
            Message::Fish(fish) => knows(fish.thief),
            Message::Schedule { tasks, .. } => tasks.iter().all(|task| knows(task.task.home)),
            Message::Place(parcel) | Message::Ask(parcel) => knows(parcel.task.home),
            Message::Notify { to, .. } => knows(*to),
            Message::Tell { pes: told, dead, .. } => {
                let is_told = |pe: &Pe| told.contains(&pe.number());
                !told.is_empty() && told.end <= pes && dead.iter().all(is_told)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(home: u32, body: Bytes) -> Parcel {
        Parcel {
            task: TaskId { home: Pe::new(home), future: 1 },
            radius: Distance::ONE,
            supervised: false,
            version: Version::default(),
            body,
        }
    }

    fn array(bytes: usize) -> Array {
        Array::from(vec![7_u8; bytes])
    }

    fn schedule(bodies: Vec<Bytes>) -> Message {
        let tasks = bodies.into_iter().map(|body| parcel(1, body)).collect();
        Message::Schedule { serial: 1, tasks }
    }

    #[test]
    fn a_long_array_of_a_task_alone_goes_beside_its_message() {
        let long = || Bytes { few: SmallBytes::default(), many: Some(array(4096)) };
        let short = || Bytes { few: SmallBytes::default(), many: Some(array(4095)) };
        let result = |value| Message::Result { future: 1, outcome: Ok(value) };
        let alone: [fn(Bytes) -> Message; 5] = [
            |body| schedule(vec![body]),
            |body| Message::Place(parcel(1, body)),
            |body| Message::Ask(parcel(1, body)),
            |value| Message::Result { future: 1, outcome: Ok(value) },
            |body| Message::Tell { pes: 0..2, dead: Vec::new(), body },
        ];
        for message in alone {
            assert!(message(long()).may_be_overtaken());
            assert!(message(short()).take_array().is_none());
            let mut taken = message(long());
            let array = taken.take_array().expect("it is long");
            assert!(taken.take_array().is_none());
            assert!(taken.put_array(array));
            assert_eq!(taken, message(long()));
            assert!(!taken.put_array(super::tests::array(1)), "it has one");
        }
        let several = || schedule(vec![long(), long()]);
        assert!(!several().may_be_overtaken() && several().take_array().is_none());
        assert!(!several().put_array(array(4096)));
        assert!(!schedule(Vec::new()).may_be_overtaken());
        assert!(!Message::Shutdown.may_be_overtaken());
        assert_ne!(result(long()), result(short()));
    }

    #[test]
    fn a_message_names_only_pes_that_the_job_has() {
        let fish = |thief| {
            let (need, patience) = (Need::Idle, Duration::ZERO);
            let thief = Pe::new(thief);
            Message::Fish(Fish { thief, serial: 1, hops_left: 0, need, queued: 0, patience })
        };
        let notify = |to| {
            let (version, to) = (Version::default(), Pe::new(to));
            Message::Notify { future: 1, version, to }
        };
        let tell = |pes, dead| {
            let dead = vec![Pe::new(dead)];
            Message::Tell { pes, dead, body: Bytes::default() }
        };
        let place = |home| Message::Place(parcel(home, Bytes::default()));
        let schedule = |home| {
            let tasks = [1, home].map(|home| parcel(home, Bytes::default())).to_vec();
            Message::Schedule { serial: 1, tasks }
        };
        for message in [fish(2), notify(2), tell(0..3, 2), place(2), schedule(2), Message::Farewell]
        {
            assert!(message.is_of_a_job_of(3), "{message:?}");
        }
        for message in [fish(3), notify(3), place(3), schedule(3)] {
            assert!(!message.is_of_a_job_of(3), "{message:?}");
        }
        for message in [tell(0..4, 1), tell(1..1, 1), tell(1..3, 0)] {
            assert!(!message.is_of_a_job_of(3), "{message:?}");
        }
    }
}
