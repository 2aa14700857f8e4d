//! What each process tells the others about itself at the start.

use super::binding::Binding;
use super::{calibration, cpu};
use crate::cpu_budget::CpuBudget;
use crate::error::StartError;
use crate::faults::Faults;
use crate::network;
use crate::options::Options;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;
use ultramarine_environment::flags::LaneKind;
use ultramarine_environment::interface::{Interface, InterfaceChoice};
use ultramarine_environment::variables;
use ultramarine_topology::{Discovery, LevelKind, Place, PlaceSource, Sources};

/// One process, as the others need to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RankInfo {
    pub(crate) host: String,
    finding: Finding,
    /// What is found without Slurm's word, if `finding` is by it.
    without_slurm: Option<Finding>,
    pub(crate) cpu_budget: CpuBudget,
    /// What it is bound to, if that was asked for.
    binding: Option<Binding>,
    /// What its CPU can do.
    pub(super) cpu: cpu::Features,
    /// How fast a worker thread is, if that was to be measured.
    pub(super) speed: Option<u64>,
    /// Those in which others may be able to call it.
    pub(super) interfaces: Vec<Interface>,
    /// How the user has chosen that, if so.
    pub(super) interface: Option<String>,
    /// Whether its lane is `tcp`.
    pub(crate) over_tcp: bool,
    message_bytes_max: usize,
    heartbeat: Duration,
    dead_after: Duration,
    stalled_after: Duration,
    root_after: Duration,
    outlives_root: bool,
    /// The deaths that were asked for, if any.
    pub(crate) faults: Option<Faults>,
}

/// Where a process is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finding {
    place: Place,
    /// What the place was found out from.
    source: String,
}

impl Finding {
    fn of(sources: &Sources, discovery: Discovery) -> Self {
        let source = match (discovery.source, &sources.host_pattern) {
            (PlaceSource::HostName, Some(pattern)) => format!("the host name, read as `{pattern}`"),
            (PlaceSource::HostName, None) => "the host name".to_owned(),
            (PlaceSource::Slurm, _) => discovery.source.to_string(),
            (PlaceSource::File, _) => "a topology file".to_owned(),
        };
        Finding { place: discovery.place, source }
    }

    /// The place down to the host: below, processes of one host may differ.
    fn of_host(&self) -> Place {
        let labels = self.place.labels();
        let end = labels.iter().position(|label| label.kind == LevelKind::Host);
        Place::new(labels[..end.map_or(labels.len(), |host| host + 1)].to_vec())
    }
}

impl RankInfo {
    /// This process's own.
    pub(crate) fn own(options: &Options) -> Result<Self, StartError> {
        let sources = options.sources()?;
        let discovery = sources.discover()?;
        discovery.notes.iter().for_each(|note| tracing::info!("{note}"));
        let by_slurm = discovery.source == PlaceSource::Slurm;
        let finding = Finding::of(&sources, discovery);
        let without_slurm = Sources { slurm_addr: None, ..sources.clone() };
        let other = || Ok(Finding::of(&without_slurm, without_slurm.discover()?));
        let without_slurm = by_slurm.then(other).transpose().map_err(StartError::Topology)?;
        let threads = options.thread_count();
        // A process with a bad setting says so before the job begins.
        let settings = options.settings(threads.unwrap_or(1))?;
        Ok(RankInfo {
            host: sources.host_name,
            finding,
            without_slurm,
            cpu_budget: CpuBudget::own(threads, variables::text),
            binding: Binding::own(variables::text)?,
            cpu: cpu::Features::own(),
            speed: options.calibrates().then(calibration::speed),
            interfaces: network::usable(options.interface())?,
            interface: options.interface().map(InterfaceChoice::to_string),
            over_tcp: options.lane_kind() == Some(LaneKind::Tcp),
            message_bytes_max: settings.port.message_bytes_max,
            heartbeat: settings.detector.heartbeat,
            dead_after: settings.detector.dead_after,
            stalled_after: settings.detector.stalled_after,
            root_after: settings.detector.root_after,
            outlives_root: settings.detector.succession,
            faults: Faults::of(options.faults(), settings.seed),
        })
    }

    /// The settings that all processes must have alike.
    fn alike(&self) -> [(&'static str, String); 8] {
        let interface = self.interface.clone();
        let bind = self.binding.as_ref().map_or("none", Binding::name);
        [
            ("ULTRAMARINE_BIND", bind.to_owned()),
            ("interface", interface.unwrap_or_else(|| "not chosen".to_owned())),
            ("message_bytes_max", self.message_bytes_max.to_string()),
            ("heartbeat", format!("{:?}", self.heartbeat)),
            ("dead_after", format!("{:?}", self.dead_after)),
            ("stalled_after", format!("{:?}", self.stalled_after)),
            ("root_after", format!("{:?}", self.root_after)),
            (
                "main task",
                if self.outlives_root { "restartable" } else { "not restartable" }.into(),
            ),
        ]
    }

    /// Where all processes are, by rank.
    pub(crate) fn places(all: &[RankInfo]) -> impl Iterator<Item = &Place> {
        Self::findings(all).map(|finding| &finding.place)
    }

    /// What each process has found, by rank. Slurm's word counts only if all have it: a launcher
    /// other than Slurm's may hand the variables of one host to all, or to none.
    fn findings(all: &[RankInfo]) -> impl Iterator<Item = &Finding> {
        let all_by_slurm = all.iter().all(|own| own.without_slurm.is_some());
        all.iter().map(move |own| match &own.without_slurm {
            Some(other) if !all_by_slurm => other,
            _ => &own.finding,
        })
    }

    /// How many worker threads each process has, by rank.
    pub(crate) fn worker_threads(all: &[RankInfo]) -> Vec<u32> {
        let mut sharers = HashMap::new();
        for own in all {
            *sharers.entry((&own.host, own.cpu_budget.shared())).or_insert(0) += 1;
        }
        let processes = |own: &RankInfo| sharers[&(&own.host, own.cpu_budget.shared())];
        all.iter().map(|own| own.cpu_budget.worker_threads(processes(own), 1) as u32).collect()
    }
}

/// An error unless all processes, by rank, were told what they must have alike.
pub(crate) fn compare(all: &[RankInfo]) -> Result<(), StartError> {
    let refuse = |rank: usize, reason: String| {
        Err(StartError::Rank { rank, host: all[rank].host.clone(), reason })
    };
    let same_file = "give all processes the same topology file, or none (not every launcher hands \
                     ULTRAMARINE_ variables on to other hosts)";
    let (mut places, mut bound) = (HashMap::new(), HashMap::new());
    let findings: Vec<_> = RankInfo::findings(all).collect();
    for (rank, (own, finding)) in all.iter().zip(&findings).enumerate() {
        if own.over_tcp != all[0].over_tcp {
            return refuse(rank, "it was told to use another lane than rank 0".to_owned());
        }
        for ((name, own), (_, first)) in own.alike().into_iter().zip(all[0].alike()) {
            if own != first {
                let reason = format!(
                    "its {name} is {own}, and that of rank 0 is {first}: give all processes the \
                     same settings"
                );
                return refuse(rank, reason);
            }
        }
        if own.faults != all[0].faults {
            let reason = "it was told to kill others than rank 0 was (--kill-at, --chaos-monkey, \
                          --chaos-within): give all processes the same";
            return refuse(rank, reason.to_owned());
        }
        if let Some(reason) = binding_fault(own, rank, &mut bound) {
            return refuse(rank, reason);
        }
        let (source, first) = (&finding.source, &findings[0].source);
        if source != first {
            let reason =
                format!("it knows its place from {source}, and rank 0 from {first}: {same_file}");
            return refuse(rank, reason);
        }
        let here = finding.of_host();
        let (other, there) = places.entry(&own.host).or_insert_with(|| (rank, here.clone()));
        if here != *there {
            let reason = format!(
                "it is at `{here}`, and rank {other} on the same host at `{there}`: {same_file}"
            );
            return refuse(rank, reason);
        }
    }
    Ok(())
}

/// What is wrong with what this process is bound to, if it was asked for. `bound` are the processes
/// before it, by host and CPUs.
fn binding_fault<'a>(
    own: &'a RankInfo,
    rank: usize,
    bound: &mut HashMap<(&'a str, &'a str), usize>,
) -> Option<String> {
    let binding = own.binding.as_ref()?;
    binding.excess().or_else(|| {
        let other = bound.insert((&own.host, binding.cpus()?), rank)?;
        Some(binding.shared_with(other))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ultramarine_topology::LevelKind::{Host, Package, Switch};

    pub(in crate::world) fn rank_info(
        host: &str,
        processors: &str,
        cores: usize,
        threads: Option<usize>,
    ) -> RankInfo {
        RankInfo {
            host: host.into(),
            finding: found("the host name", &[(Host, host)]),
            without_slurm: None,
            cpu_budget: CpuBudget::of(cores, processors, threads),
            binding: None,
            cpu: cpu::Features::default(),
            speed: None,
            interfaces: Vec::new(),
            interface: None,
            over_tcp: false,
            message_bytes_max: 1 << 20,
            heartbeat: Duration::from_millis(200),
            dead_after: Duration::from_secs(2),
            stalled_after: Duration::from_secs(30),
            root_after: Duration::from_secs(30),
            outlives_root: false,
            faults: None,
        }
    }

    /// On the host of this number, with a loopback and two networks that all hosts are on.
    pub(in crate::world) fn on_network(of: RankInfo, number: u32) -> RankInfo {
        let at = |name: &str, network: u32, speed_mbits| {
            let address = std::net::Ipv4Addr::from_bits(network | number).into();
            let address = ipnet::IpNet::new(address, 16).expect("a prefix");
            Interface { name: name.to_owned(), address, speed_mbits }
        };
        let interfaces = vec![
            Interface {
                name: "lo".into(),
                address: "127.0.0.1/8".parse().unwrap(),
                speed_mbits: 0,
            },
            at("eth0", 10 << 24, 1000),
            at("ib0", (10 << 24) + (1 << 16), 100_000),
        ];
        RankInfo { interfaces, ..of }
    }

    fn found(source: &str, labels: &[(LevelKind, &str)]) -> Finding {
        Finding { place: Place::from_pairs(labels.iter().copied()), source: source.into() }
    }

    /// A process at that switch, by a topology file, bound to a package.
    fn by_file(host: &str, switch: &str, package: &str) -> RankInfo {
        let labels = [(Switch, switch), (Host, host), (Package, package)];
        RankInfo { finding: found("a topology file", &labels), ..rank_info(host, "0", 1, None) }
    }

    fn disagreement(all: &[RankInfo]) -> (usize, String) {
        match compare(all) {
            Err(StartError::Rank { rank, reason, .. }) => (rank, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn processes_that_know_their_places_alike_agree() {
        compare(&[by_file("a", "s", "0"), by_file("a", "s", "1"), by_file("b", "t", "0")])
            .expect("packages may differ");
        compare(&[by_slurm("a"), rank_info("b", "0", 1, None)]).expect("Slurm is left out");
    }

    #[test]
    fn a_host_in_two_places_is_refused() {
        let all = [by_file("a", "s", "0"), by_file("b", "t", "0"), by_file("a", "t", "0")];
        let (rank, reason) = disagreement(&all);
        assert_eq!(rank, 2);
        assert!(reason.contains("at `switch t, host a`, and rank 0 on the same host"), "{reason}");
    }

    #[test]
    fn a_topology_file_for_some_is_refused() {
        let (rank, reason) = disagreement(&[rank_info("a", "0", 1, None), by_file("b", "t", "0")]);
        assert_eq!(rank, 1);
        assert!(reason.contains("from a topology file, and rank 0 from the host name"), "{reason}");
    }

    #[test]
    fn lanes_and_some_settings_must_be_alike() {
        let plain = rank_info("a", "0", 1, None);
        let other = RankInfo { over_tcp: true, ..plain.clone() };
        assert_eq!(disagreement(&[plain.clone(), plain.clone(), other]).0, 2);
        let other = RankInfo { dead_after: Duration::from_millis(400), ..plain.clone() };
        let (_, reason) = disagreement(&[plain.clone(), other]);
        assert!(reason.contains("its dead_after is 400ms, and that of rank 0 is 2s"), "{reason}");
        let other = RankInfo { message_bytes_max: 5000, ..plain.clone() };
        let (_, reason) = disagreement(&[plain, other]);
        assert!(reason.contains("its message_bytes_max is 5000"), "{reason}");
    }

    fn bound(host: &str, to: &str, has: u32, cpus: &str) -> RankInfo {
        let binding = Some(Binding::of(to, has, cpus));
        RankInfo { binding, ..rank_info(host, cpus, 1, None) }
    }

    #[test]
    fn processes_that_are_bound_as_was_asked_for_agree() {
        let numa = |host, cpus| bound(host, "numa", 1, cpus);
        compare(&[numa("a", "0-3"), numa("a", "4-7"), numa("b", "0-3")]).expect("each has its own");
        compare(&[numa("a", "0-7")]).expect("a host may have one only");
        compare(&[rank_info("a", "0-7", 8, None), rank_info("a", "0-7", 8, None)])
            .expect("no wish");
    }

    #[test]
    fn processes_that_are_not_bound_as_was_asked_for_are_refused() {
        let core = |host, cpus| bound(host, "core", 1, cpus);
        let all = [core("a", "0"), core("b", "1"), core("a", "1"), core("b", "1")];
        let (rank, reason) = disagreement(&all);
        assert_eq!(rank, 3);
        assert!(reason.contains("has the same CPUs as rank 1 (1): ask for fewer"), "{reason}");
        let (rank, reason) = disagreement(&[core("a", "0"), bound("b", "core", 8, "0-7")]);
        assert_eq!(rank, 1);
        assert!(reason.contains("1 of the cores at most, and this one may use 8"), "{reason}");
        let (rank, reason) = disagreement(&[core("a", "0"), rank_info("b", "0-7", 8, None)]);
        assert_eq!(rank, 1);
        assert!(
            reason.contains("its ULTRAMARINE_BIND is none, and that of rank 0 is core"),
            "{reason}"
        );
    }

    fn by_slurm(host: &str) -> RankInfo {
        let finding = found("SLURM_TOPOLOGY_ADDR", &[(Switch, "s1"), (Host, host)]);
        let plain = rank_info(host, "0", 1, None);
        RankInfo { without_slurm: Some(plain.finding.clone()), finding, ..plain }
    }

    #[test]
    fn slurm_is_believed_only_if_all_have_its_word() {
        let depths = |all: &[RankInfo]| {
            RankInfo::places(all).map(|place| place.labels().len()).collect::<Vec<_>>()
        };
        assert_eq!(depths(&[by_slurm("a"), by_slurm("b")]), [2, 2]);
        assert_eq!(depths(&[by_slurm("a"), rank_info("b", "0", 1, None)]), [1, 1]);
    }

    #[test]
    fn processes_on_the_same_cores_share_them() {
        let all = [
            rank_info("a", "0-7", 8, None),
            rank_info("a", "0-7", 8, None),
            rank_info("a", "0-7", 8, Some(3)),
            rank_info("b", "0-3", 4, None),
            rank_info("b", "4-7", 4, None),
            rank_info("c", "0", 1, None),
            rank_info("c", "0", 1, None),
        ];
        assert_eq!(RankInfo::worker_threads(&all), [4, 4, 3, 4, 4, 1, 1]);
    }
}
