//! Faults at given moments, as the command line says: `death:17@2s`.

use super::ExperimentError;
use super::number::nanoseconds;
use crate::fault::InjectedFault;
use crate::machine::Machine;
use std::ops::RangeInclusive;
use std::str::FromStr;
use ultramarine_topology::{Label, LevelKind, Pe};

/// The longest time for which a PE may be stopped, or all be overloaded, in nanoseconds: not so
/// long that it is taken for dead.
const STALL_NS_MAX: u64 = 10_000_000_000;

/// A fault and its moment, from a text:
///
/// ```
/// use ultramarine_simulator::experiment::TimedFault;
/// assert!("partition:rack1@2s+500ms".parse::<TimedFault>().is_ok());
/// let error = "death:17".parse::<TimedFault>().unwrap_err().to_string();
/// let allowed = "write death:PE@WHEN, such as death:17@2s";
/// assert_eq!(error, format!("`death:17` does not say when; {allowed}"));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TimedFault {
    text: String,
    at_ns: u64,
    what: What,
}

/// What goes wrong. PEs, hosts and racks are counted from 0, times are in nanoseconds; no time is
/// for ever.
#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Death(u32),
    BlockDies(Block),
    Stop(u32, u64),
    Cut { one: u32, other: u32, ns: Option<u64>, is_one_way: bool },
    Partition(Block, Option<u64>),
    Overload(u64),
}

/// A part of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Block {
    Host(u32),
    Rack(u32),
}

/// The kinds of faults: name, how it is written, and an example.
const KINDS: [(&str, &str, &str); 8] = [
    ("death", "death:PE@WHEN", "death:17@2s"),
    ("host", "host:HOST@WHEN", "host:3@2s"),
    ("rack", "rack:RACK@WHEN", "rack:1@500ms"),
    ("stop", "stop:PE@WHEN+FOR", "stop:17@1s+300ms"),
    ("cut", "cut:PE-PE@WHEN[+FOR]", "cut:3-17@2s+500ms"),
    ("oneway", "oneway:FROM-TO@WHEN[+FOR]", "oneway:3-17@2s+500ms"),
    ("partition", "partition:rackN@WHEN[+FOR] or partition:hostN", "partition:rack1@2s+500ms"),
    ("overload", "overload@WHEN+FOR", "overload@1s+200ms"),
];

/// Why a text is no fault.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimedFaultError {
    /// There is no such kind: what stands before the colon.
    #[error("there is no fault `{0}`; known are {all}", all = KINDS.map(|kind| kind.0).join(", "))]
    UnknownKind(String),

    /// The kind is known, and the rest cannot be meant: all of the text, what is wrong with it, how
    /// it is written, and an example.
    #[error("`{0}` {1}; write {2}, such as {3}")]
    Malformed(String, String, &'static str, &'static str),
}

impl FromStr for TimedFault {
    type Err = TimedFaultError;

    fn from_str(text: &str) -> Result<Self, TimedFaultError> {
        let (head, times) = match text.split_once('@') {
            Some((head, times)) => (head, Some(times)),
            None => (text, None),
        };
        let (kind, whom) = head.split_once(':').unwrap_or((head, ""));
        let known = KINDS.iter().find(|(name, ..)| *name == kind);
        let (_, form, example) =
            known.ok_or_else(|| TimedFaultError::UnknownKind(kind.to_owned()))?;
        let read = || {
            let (when, length) = match times.ok_or("does not say when")?.split_once('+') {
                Some((when, length)) => (when, Some(nanoseconds(length)?)),
                None => (times.unwrap_or_default(), None),
            };
            let what = what(kind, whom, length)?;
            Ok(TimedFault { text: text.to_owned(), at_ns: nanoseconds(when)?, what })
        };
        let malformed = |wrong| TimedFaultError::Malformed(text.to_owned(), wrong, form, example);
        read().map_err(malformed)
    }
}

/// What goes wrong, from the parts of the text.
fn what(kind: &str, whom: &str, length: Option<u64>) -> Result<What, String> {
    let number = |text: &str| {
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse::<u32>().ok());
        number.ok_or_else(|| format!("has `{text}` for a number, counted from 0"))
    };
    if length == Some(0) {
        return Err("lasts for no time".to_owned());
    }
    let pair = || match whom.split_once('-') {
        Some((one, other)) if one != other => Ok((number(one)?, number(other)?)),
        _ => Err("does not name two PEs".to_owned()),
    };
    let stall = || match length {
        Some(..=STALL_NS_MAX) => Ok(length.unwrap_or_default()),
        _ => Err("does not say for how long, above 0 and up to 10s".to_owned()),
    };
    let for_good = |what: What| match length {
        None => Ok(what),
        Some(_) => Err("says how long, and the dead are dead for good".to_owned()),
    };
    match kind {
        "death" => for_good(What::Death(number(whom)?)),
        "host" => for_good(What::BlockDies(Block::Host(number(whom)?))),
        "rack" => for_good(What::BlockDies(Block::Rack(number(whom)?))),
        "stop" => Ok(What::Stop(number(whom)?, stall()?)),
        "cut" | "oneway" => {
            let (one, other) = pair()?;
            Ok(What::Cut { one, other, ns: length, is_one_way: kind == "oneway" })
        }
        "partition" => {
            let block = if let Some(host) = whom.strip_prefix("host") {
                Block::Host(number(host)?)
            } else if let Some(rack) = whom.strip_prefix("rack") {
                Block::Rack(number(rack)?)
            } else {
                return Err("names neither a rack nor a host".to_owned());
            };
            Ok(What::Partition(block, length))
        }
        _ if !whom.is_empty() => Err("names a PE, and an overload is everywhere".to_owned()),
        _ => Ok(What::Overload(stall()?)),
    }
}

impl TimedFault {
    /// What happens on this machine: moments in nanoseconds, and faults.
    ///
    /// # Errors
    /// If the machine has no such PE, host or rack, if the root would die, or if no PE would be on
    /// the other side of a partition.
    pub fn on(&self, machine: &Machine) -> Result<Vec<(u64, InjectedFault)>, ExperimentError> {
        let refused = |allowed: String| {
            let text = format!("`{}` is impossible on {machine}; {allowed}", self.text);
            Err(ExperimentError::Refused(text))
        };
        let last = machine.pes() - 1;
        let (whom, dies) = match self.what {
            What::Death(pe) => (vec![pe], true),
            What::Stop(pe, _) => (vec![pe], false),
            What::Cut { one, other, .. } => (vec![one, other], false),
            What::BlockDies(_) | What::Partition(..) | What::Overload(_) => (Vec::new(), false),
        };
        if whom.iter().any(|pe| *pe > last) {
            return refused(format!("its PEs are 0 to {last}"));
        }
        if dies && whom.contains(&0) {
            return refused(format!("the root, PE 0, must live; PEs 1 to {last} may die"));
        }
        let pes = |block: Block| {
            let (name, depth, number) = match block {
                Block::Host(number) => ("hosts", Depth::Host, number),
                Block::Rack(number) => ("racks", Depth::Rack, number),
            };
            let mut blocks = blocks(machine, depth);
            if number as usize >= blocks.len() {
                return refused(format!("its {name} are 0 to {}", blocks.len() - 1)).map(|_| 0..=0);
            }
            Ok(blocks.swap_remove(number as usize))
        };
        let faults = match self.what {
            What::Death(pe) => vec![InjectedFault::Death(Pe::new(pe))],
            What::Stop(pe, ns) => vec![InjectedFault::Stop(Pe::new(pe), ns)],
            What::Overload(ns) => vec![InjectedFault::Overload(ns)],
            What::Cut { one, other, ns, is_one_way } => {
                let (from, to, ns) = (Pe::new(one), Pe::new(other), ns.unwrap_or(u64::MAX));
                let both = [
                    InjectedFault::Cut { from, to, ns },
                    InjectedFault::Cut { from: to, to: from, ns },
                ];
                both.into_iter().take(if is_one_way { 1 } else { 2 }).collect()
            }
            What::BlockDies(block) => {
                let pes = pes(block)?;
                if pes.contains(&0) {
                    return refused("the root, PE 0, must live, and is in it".to_owned());
                }
                let (first, last) = (Pe::new(*pes.start()), Pe::new(*pes.end()));
                vec![InjectedFault::HostDeaths { first, last }]
            }
            What::Partition(block, ns) => {
                let pes = pes(block)?;
                if pes == (0..=last) {
                    return refused("some PEs must be outside".to_owned());
                }
                let (first, last) = (Pe::new(*pes.start()), Pe::new(*pes.end()));
                vec![InjectedFault::Partition { first, last, ns: ns.unwrap_or(u64::MAX) }]
            }
        };
        Ok(faults.into_iter().map(|fault| (self.at_ns, fault)).collect())
    }
}

/// Which labels of a place name a block: those down to the host, or those above it.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Host,
    Rack,
}

/// The PEs of each host, or of each rack. They have consecutive numbers.
fn blocks(machine: &Machine, depth: Depth) -> Vec<RangeInclusive<u32>> {
    let is_part = |label: &&Label| {
        label.kind < LevelKind::Host || (depth == Depth::Host && label.kind == LevelKind::Host)
    };
    let labels = |pe: u32| machine.topology().place(Pe::new(pe)).labels().iter().filter(is_part);
    let mut firsts = vec![0];
    firsts.extend((1..machine.pes()).filter(|pe| !labels(*pe).eq(labels(pe - 1))));
    let ends = firsts.iter().skip(1).copied().chain([machine.pes()]);
    firsts.iter().zip(ends).map(|(first, end)| *first..=end - 1).collect()
}

#[cfg(test)]
mod tests;
