//! Messages of Perfetto, with the fields that are needed here. Names and numbers are those of
//! `protos/perfetto/trace/` in its sources. Times are in nanoseconds since 1970.

/// Something that happened, or a description of what others are about.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// When it happened.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Packets of one sequence share a table of names.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// What happened.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names that later packets of the sequence use.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// Whether the table of names begins here, or is used: see [`SequenceFlags`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track, before anything happens on it.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// What a packet has to do with the table of names of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SequenceFlags {
    /// It begins.
    Begins = 1,
    /// It is used.
    Uses = 2,
}

/// Something on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// More about it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// What it is.
    #[prost(enumeration = "Kind", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The number of its name in the table.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// The value of a counter from now on.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Which kind of thing it is.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// What it is, if that is in no table.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
}

/// What kind of event one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// None: what others write and this does not know.
    Unspecified = 0,
    /// Something begins...
    SliceBegin = 1,
    /// ... and ends: what began last on the track.
    SliceEnd = 2,
    /// It takes no time.
    Instant = 3,
    /// A counter has another value.
    Counter = 4,
}

/// A name and a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// The value, if it is a number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// The value, if it is made of others.
    #[prost(message, repeated, tag = "11")]
    pub dict_entries: Vec<DebugAnnotation>,
}

/// New names.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<EventName>,
}

/// A name and its number, which is not 0.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EventName {
    /// The number.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A row of the picture.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name, unless it is a process or a thread.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// It is a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The number of the row that it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {}

/// A process. Here it is a PE, whose number stands in for the process's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Its number: two of different hosts must not have the same.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its command line.
    #[prost(string, repeated, tag = "2")]
    pub cmdline: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    /// The number of its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its own.
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}
