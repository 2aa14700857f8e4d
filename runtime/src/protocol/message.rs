//! Everything that one PE can say to another.

use crate::array::Array;
use crate::error::TaskError;
use crate::wire::ByteSink;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, Range};
use ultramarine_topology::{Distance, Pe};

/// A message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A thief asks for work; travels from victim to victim.
    Fish(Fish),
    /// A victim hands tasks to the thief.
    Schedule {
        /// The FISH that this answers.
        serial: u64,
        /// At least one task.
        tasks: Vec<Parcel>,
    },
    /// The last victim asked has nothing for the thief either.
    NoWork {
        /// The FISH that this answers.
        serial: u64,
    },
    /// A task placed here by `spawn_at`: it runs before anything stealable.
    Place(Parcel),
    /// The same for a task that runs before all others: a question of the runtime's own.
    Ask(Parcel),
    /// A victim tells a task's home that it is about to hand the task on.
    Notify {
        /// The future's number at the addressee, which is the task's home.
        future: u64,
        /// The copy of the task, and its steps so far, this one included.
        version: Version,
        /// Who gets it; the sender had it.
        to: Pe,
    },
    /// A thief tells a task's home that it has the task. (Not if it has it from home itself.)
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
    /// The results of these tasks, whose home is the sender, are not wanted any more.
    Cancel {
        /// The futures' numbers at the sender.
        futures: Vec<u64>,
    },
    /// A message of the program's for these PEs, of which the addressee is one: it tells the
    /// others. There is no reply.
    Tell {
        /// Their numbers.
        pes: Range<u32>,
        /// What to do when it is heard: code and argument.
        body: Bytes,
    },
    /// A PE cannot go on; told to the root, which ends the job with this reason.
    Failed {
        /// What happened, in words.
        reason: String,
    },
    /// The main task has ended: start nothing more. Goes down the tree from the root.
    Shutdown,
    /// The sender and all below it in the tree will send no more messages. Goes up the tree.
    Farewell,
    /// Nobody will send any more messages: leave. Goes down the tree.
    Release,
}

/// A thief's request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fish {
    /// Who wants work.
    pub thief: Pe,
    /// The thief's number for this request.
    pub serial: u64,
    /// How many more times it may be passed on.
    pub hops_left: u8,
    /// How much it wants it.
    pub need: Need,
    /// How many tasks wait in the thief's pool.
    pub queued: u64,
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

/// Bytes that the protocol carries and never looks into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bytes {
    /// Copied with each clone.
    pub few: SmallBytes,
    /// Shared by all clones.
    pub many: Option<Array>,
}

impl Bytes {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.few.len() + self.many.as_ref().map_or(0, |array| array.bytes().len())
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

/// Bytes that need no memory of their own as long as they are as few as those of most tasks: a
/// reference to the code, and 16 bytes of arguments. (For a placed task that saves two allocations
/// of five.)
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct SmallBytes(SmallVec<[u8; SmallBytes::IN_LINE]>);

impl Clone for SmallBytes {
    fn clone(&self) -> Self {
        // The library's own way is byte by byte.
        SmallBytes(SmallVec::from_slice(&self.0))
    }
}

impl SmallBytes {
    /// How many need no memory of their own.
    pub const IN_LINE: usize = 32;
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> Self {
        SmallBytes(bytes.into())
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl ByteSink for SmallBytes {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
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
                Ok(SmallBytes(SmallVec::from_slice(bytes)))
            }
        }
        deserializer.deserialize_bytes(Reader)
    }
}

/// Names a task in the whole job, by its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// The PE that spawned the task and holds its future.
    pub home: Pe,
    /// The number of that future there.
    pub future: u64,
}

/// Which copy of a task is spoken of, and when in its travels: what tells the news about a task
/// from what is outdated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// How many copies were lost before this one.
    pub replica: u32,
    /// How many steps this copy has made: it grows when the copy leaves a PE, and when it arrives.
    pub age: u32,
}

/// A task on its way between PEs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parcel {
    /// Which task it is.
    pub task: TaskId,
    /// How far from its home it may go.
    pub radius: Distance,
    /// Whether its home keeps a copy, to have it run again should this one be lost.
    pub supervised: bool,
    /// Which copy this is.
    pub version: Version,
    /// Its code and argument.
    pub body: Bytes,
}

impl Parcel {
    /// What the rest of a parcel takes at most when it is encoded, in bytes.
    const OVERHEAD_BYTES: usize = 50;

    /// Its length on the wire, in bytes; at most so much.
    pub fn bytes(&self) -> usize {
        self.body.len() + Self::OVERHEAD_BYTES
    }
}

impl Message {
    /// An array of this many bytes or more is sent beside its message, a smaller one in it.
    pub const ARRAY_BYTES_MIN: usize = 4 << 10;

    /// What can be sent beside the message. Several tasks that share a message are small.
    fn body(&mut self) -> Option<&mut Bytes> {
        match self {
            Message::Schedule { tasks, .. } => match &mut tasks[..] {
                [parcel] => Some(&mut parcel.body),
                _ => None,
            },
            Message::Place(parcel) | Message::Ask(parcel) => Some(&mut parcel.body),
            Message::Result { outcome: Ok(value), .. } => Some(value),
            _ => None,
        }
    }

    /// Whether it has a value that may be sent beside it: other messages that are sent later may
    /// then arrive earlier.
    pub fn may_be_overtaken(&self) -> bool {
        match self {
            Message::Schedule { tasks, .. } => tasks.len() == 1,
            Message::Place(_) | Message::Ask(_) | Message::Result { outcome: Ok(_), .. } => true,
            _ => false,
        }
    }

    /// Takes the array out that is to be sent beside the message, if there is one.
    pub fn take_array(&mut self) -> Option<Array> {
        let is_long = |array: &mut Array| array.bytes().len() >= Self::ARRAY_BYTES_MIN;
        self.body()?.many.take_if(is_long)
    }

    /// Puts an array back that came beside the message. Whether it belongs to such a message.
    pub fn put_array(&mut self, array: Array) -> bool {
        let place = self.body().filter(|body| body.many.is_none());
        place.is_some_and(|body| body.many.replace(array).is_none())
    }

    /// Whether it speaks only of PEs that a job of `pes` PEs has. Any other is the work of a
    /// defect, and is not to be handled.
    pub fn is_of_a_job_of(&self, pes: u32) -> bool {
        let knows = |pe: Pe| pe.number() < pes;
        match self {
            Message::Fish(fish) => knows(fish.thief),
            Message::Schedule { tasks, .. } => tasks.iter().all(|task| knows(task.task.home)),
            Message::Place(parcel) | Message::Ask(parcel) => knows(parcel.task.home),
            Message::Notify { to, .. } => knows(*to),
            Message::Tell { pes: told, .. } => !told.is_empty() && told.end <= pes,
            _ => true,
        }
    }
}
