//! Faults at given moments, as the command line says: `death:17@2s`.

use super::ExperimentError;
use super::number::nanoseconds;
use crate::fault::InjectedFault;
use crate::machine::Machine;
use std::str::FromStr;
use ultramarine_topology::{LevelKind, Pe};

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

/// What goes wrong. PEs, hosts and racks are counted from 0.
#[derive(Clone, PartialEq, Debug)]
enum What {
    /// These faults, of PEs up to this one.
    Of(Vec<InjectedFault>, u32),
    BlockDies(Block),
    /// For this long, in nanoseconds; the longest time is for ever.
    Partition(Block, u64),
}

/// A part of a machine: what hosts or racks are called, down to which level of the hierarchy they
/// go, and which of them.
type Block = (&'static str, LevelKind, u32);

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
    let host = |text: &str| Ok::<Block, String>(("hosts", LevelKind::Host, number(text)?));
    let rack = |text: &str| Ok::<Block, String>(("racks", LevelKind::Switch, number(text)?));
    let ns = length.unwrap_or(u64::MAX);
    match kind {
        "death" => {
            let pe = number(whom)?;
            for_good(What::Of(vec![InjectedFault::Death(Pe::new(pe))], pe))
        }
        "host" => for_good(What::BlockDies(host(whom)?)),
        "rack" => for_good(What::BlockDies(rack(whom)?)),
        "stop" => {
            let pe = number(whom)?;
            Ok(What::Of(vec![InjectedFault::Stop(Pe::new(pe), stall()?)], pe))
        }
        "cut" | "oneway" => {
            let (one, other) = pair()?;
            let (from, to) = (Pe::new(one), Pe::new(other));
            let back = InjectedFault::Cut { from: to, to: from, ns };
            let there = InjectedFault::Cut { from, to, ns };
            let cuts = if kind == "cut" { vec![there, back] } else { vec![there] };
            Ok(What::Of(cuts, one.max(other)))
        }
        "partition" => match (whom.strip_prefix("host"), whom.strip_prefix("rack")) {
            (Some(number), _) => Ok(What::Partition(host(number)?, ns)),
            (_, Some(number)) => Ok(What::Partition(rack(number)?, ns)),
            _ => Err("names neither a rack nor a host".to_owned()),
        },
        _ if !whom.is_empty() => Err("names a PE, and an overload is everywhere".to_owned()),
        _ => Ok(What::Of(vec![InjectedFault::Overload(stall()?)], 0)),
    }
}

impl TimedFault {
    /// What happens on this machine: moments in nanoseconds, and faults.
    ///
    /// # Errors
    /// If the machine has no such PE, host or rack, if the root would die, or if no PE would be on
    /// the other side of a partition.
    pub fn on(&self, machine: &Machine) -> Result<Vec<(u64, InjectedFault)>, ExperimentError> {
        let refusal = |allowed: String| {
            let text = format!("`{}` is impossible on {machine}; {allowed}", self.text);
            ExperimentError::Refused(text)
        };
        let end = Pe::new(machine.pes() - 1);
        let pes = |(name, level, number): Block| {
            let blocks = machine.blocks(level);
            let wrong = || refusal(format!("its {name} are 0 to {}", blocks.len() - 1));
            blocks.get(number as usize).copied().ok_or_else(wrong)
        };
        let faults = match &self.what {
            What::Of(_, most) if *most > end.number() => {
                return Err(refusal(format!("its PEs are 0 to {}", end.number())));
            }
            What::Of(faults, _) if faults.iter().any(|it| it.victim() == Some(Pe::ROOT)) => {
                let last = end.number();
                let text = format!("the root, PE 0, must live; PEs 1 to {last} may die");
                return Err(refusal(text));
            }
            What::Of(faults, _) => faults.clone(),
            What::BlockDies(block) => match pes(*block)? {
                (Pe::ROOT, _) => {
                    let text = "the root, PE 0, must live, and is in it";
                    return Err(refusal(text.to_owned()));
                }
                (first, last) => vec![InjectedFault::HostDeaths { first, last }],
            },
            What::Partition(block, ns) => match pes(*block)? {
                (Pe::ROOT, last) if last == end => {
                    return Err(refusal("some PEs must be outside".to_owned()));
                }
                (first, last) => vec![InjectedFault::Partition { first, last, ns: *ns }],
            },
        };
        Ok(faults.into_iter().map(|fault| (self.at_ns, fault)).collect())
    }
}

#[cfg(test)]
mod tests;
