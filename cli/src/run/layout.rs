//! How many processes, and on which hosts.

use super::allocation::Allocation;
use super::error::RunError;
use std::collections::HashSet;
use std::net::IpAddr;
use ultramarine_topology::{Domains, Sources, host_list};

/// What processes are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bind {
    /// All CPUs that the launcher has for them; processes of one host share them
    None,
    /// A core each
    Core,
    /// A NUMA node each
    Numa,
    /// A package (what a socket holds) each
    Package,
}

impl Bind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Bind::None => "none",
            Bind::Core => "core",
            Bind::Numa => "numa",
            Bind::Package => "package",
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct JobRequest {
    /// Processes in all. [default: in a Slurm allocation the number that was asked for
    /// (`SLURM_NTASKS`); else one for each NUMA node of each host].
    #[arg(short = 'n', long, value_name = "PROCESSES", value_parser = count)]
    pub(super) processes: Option<u32>,
    /// Hosts to use. [default: those of the Slurm allocation, or that `--hosts` names, or this
    /// one].
    #[arg(short = 'N', long, value_name = "NODES", value_parser = count)]
    nodes: Option<u32>,
    /// At most this many processes on each host.
    #[arg(long, value_name = "K", value_parser = count)]
    per_host: Option<u32>,
    /// The hosts to use, by name, as in `a,b` or `r1n[01-16]`; the processes are spread evenly.
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,
    /// What each process is bound to. [default: what Slurm does; elsewhere `none`, or `numa` where
    /// the processes are one for each NUMA node by default]. They see it as `ULTRAMARINE_BIND`, and
    /// refuse to start as a job if they are not bound so.
    #[arg(long, value_enum)]
    pub(super) bind: Option<Bind>,
}

/// More than any machine has.
const COUNT_MAX: u32 = 1 << 24;

fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("at least one is needed".to_owned()),
        Ok(number) if number <= COUNT_MAX => Ok(number),
        _ => Err(format!("a whole number from 1 to {COUNT_MAX} is expected")),
    }
}

/// A job's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobLayout {
    pub(crate) processes: u32,
    /// The hosts that were named, each with its processes; none if the launcher may choose.
    pub(crate) hosts: Vec<(String, u32)>,
    pub(crate) nodes: Option<u32>,
    pub(crate) per_host: Option<u32>,
    pub(crate) bind: Option<Bind>,
    /// Whether that binding was asked for, so that the processes are to see to it.
    pub(crate) must_bind: bool,
    /// Whether the processes share cores, as far as that is known.
    pub(crate) shares_cores: bool,
}

impl JobRequest {
    /// This request, with this many processes if it names no number.
    pub(crate) fn or_processes(mut self, processes: u32) -> Self {
        if self.processes.is_none() && self.per_host.is_none() {
            self.processes = Some(processes);
        }
        self
    }

    /// The layout of the processes that fits the request. `domains` are those of this host, if they
    /// are known.
    pub(crate) fn layout(
        &self,
        allocation: Option<&Allocation>,
        domains: Option<Domains>,
    ) -> Result<JobLayout, RunError> {
        let hosts = self.host_names()?;
        let nodes = self.node_count(hosts.len() as u32, allocation)?;
        let mut bind = self.bind;
        let processes = match (self.processes, allocation) {
            (Some(processes), _) => processes,
            (None, Some(allocation)) => self.default_in(allocation, nodes),
            (None, None) => {
                let numa_nodes = domains.map_or(1, |domains| domains.numa_nodes);
                if self.per_host.is_none() && numa_nodes > 1 {
                    bind = bind.or(Some(Bind::Numa));
                }
                nodes.unwrap_or(1).saturating_mul(self.per_host.unwrap_or(numa_nodes))
            }
        };
        let nodes_known = nodes.or_else(|| allocation.map_or(Some(1), |given| given.nodes));
        self.refuse_what_cannot_be(processes, nodes, nodes_known)?;
        if let Some(allocation) = allocation {
            allocation.has_hosts(&hosts)?;
            allocation.has(processes, nodes)?;
        }
        // What other hosts are like is not known here.
        let here = domains.filter(|_| allocation.is_none() && are_all_this_one(&hosts));
        if let (Some(bind), Some(domains)) = (self.bind, here) {
            can_bind(bind, processes, domains)?;
        }
        Ok(JobLayout {
            processes,
            hosts: spread(&hosts, processes),
            // srun takes all nodes of the allocation, and complains if there are too many.
            nodes: nodes.or(nodes_known.filter(|nodes| processes < *nodes).map(|_| processes)),
            per_host: self.per_host,
            bind,
            must_bind: self.bind.is_some(),
            shares_cores: here.is_some_and(|domains| processes > domains.cores),
        })
    }

    /// The hosts that are named, each once.
    fn host_names(&self) -> Result<Vec<String>, RunError> {
        let Some(list) = &self.hosts else { return Ok(Vec::new()) };
        let odd = |what: String| {
            contradiction(format!(
                "--hosts: {what}: names are expected with commas between them, as in a,b or \
                 r1n[01-16]"
            ))
        };
        let hosts = host_list::expand(list).map_err(|error| odd(error.to_string()))?;
        if let Some(host) = hosts.iter().find(|host| !is_host_name(host)) {
            return Err(odd(format!("`{host}` is no host name")));
        }
        let mut seen = HashSet::new();
        match hosts.iter().find(|host| !seen.insert(host.as_str())) {
            Some(host) => Err(contradiction(format!(
                "--hosts names `{host}` twice: name each host once, and use --per-host for several \
                 processes on each"
            ))),
            None => Ok(hosts),
        }
    }

    /// How many hosts are asked for, if any number is.
    fn node_count(
        &self,
        named: u32,
        allocation: Option<&Allocation>,
    ) -> Result<Option<u32>, RunError> {
        match (self.nodes, named) {
            (Some(asked), named) if named > 0 && asked != named => Err(contradiction(format!(
                "--nodes asks for {asked} hosts, and --hosts names {named}: leave out one of the \
                 two"
            ))),
            (Some(asked), 0) if asked > 1 && allocation.is_none() => Err(RunError::TooSmall {
                asked: format!("{asked} hosts are asked for"),
                has: "only this one is known".to_owned(),
                mend:
                    "name them (--hosts a,b), or start inside a Slurm allocation (salloc, sbatch)"
                        .to_owned(),
            }),
            (asked, named) => Ok(asked.or((named > 0).then_some(named))),
        }
    }

    /// The processes of a job for which no number was given.
    fn default_in(&self, allocation: &Allocation, nodes: Option<u32>) -> u32 {
        let all = allocation.nodes.unwrap_or(1);
        let each = || (allocation.tasks.unwrap_or(all) / all).max(1);
        match (self.per_host, nodes) {
            (Some(each), nodes) => nodes.unwrap_or(all).saturating_mul(each),
            (None, Some(nodes)) => nodes.saturating_mul(each()),
            (None, None) => allocation.tasks.unwrap_or(all),
        }
    }

    fn refuse_what_cannot_be(
        &self,
        processes: u32,
        nodes: Option<u32>,
        nodes_known: Option<u32>,
    ) -> Result<(), RunError> {
        if let Some(nodes) = nodes.filter(|nodes| processes < *nodes) {
            return Err(contradiction(format!(
                "{processes} processes cannot stand on {nodes} hosts: ask for at least one process \
                 for each, or for fewer hosts"
            )));
        }
        match (self.per_host, nodes_known) {
            (Some(each), Some(nodes))
                if u64::from(processes) > u64::from(nodes) * u64::from(each) =>
            {
                let hosts =
                    if nodes == 1 { "one host".to_owned() } else { format!("{nodes} hosts") };
                Err(contradiction(format!(
                    "{processes} processes do not fit on {hosts} with at most {each} on each: ask \
                     for fewer, or for more per host"
                )))
            }
            _ => Ok(()),
        }
    }
}

fn contradiction(text: String) -> RunError {
    RunError::Contradiction(text)
}

/// Letters that no launcher takes for something else.
fn is_host_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(fits)
}

/// Whether all these names are of this host; so if there is none.
fn are_all_this_one(hosts: &[String]) -> bool {
    if hosts.is_empty() {
        return true;
    }
    let Ok(Sources { host_name: own, .. }) = Sources::from_env() else { return false };
    let without_domain = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    let is_own = |host: &String| match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || without_domain(host) == without_domain(&own),
    };
    hosts.iter().all(is_own)
}

/// Spreads processes evenly over hosts: the first ones have one more.
fn spread(hosts: &[String], processes: u32) -> Vec<(String, u32)> {
    let count = hosts.len().max(1) as u32;
    let (each, more) = (processes / count, processes % count);
    (0..).zip(hosts).map(|(i, host)| (host.clone(), each + u32::from(i < more))).collect()
}

fn can_bind(bind: Bind, processes: u32, domains: Domains) -> Result<(), RunError> {
    let (has, kind) = match bind {
        Bind::None => return Ok(()),
        Bind::Core => (domains.cores, "cores"),
        Bind::Numa => (domains.numa_nodes, "NUMA nodes"),
        Bind::Package => (domains.packages, "packages"),
    };
    if processes <= has {
        return Ok(());
    }
    Err(RunError::CannotBind { bind: bind.name(), asked: format!("{processes} {kind}"), has })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Domains = Domains { packages: 1, numa_nodes: 2, cores: 8 };

    fn allocation(tasks: u32, nodes: u32) -> Allocation {
        let (tasks, nodes) = (Some(tasks), Some(nodes));
        Allocation { job: "7".to_owned(), tasks, nodes, ..Allocation::default() }
    }

    fn on(list: &str) -> JobRequest {
        JobRequest { hosts: Some(list.to_owned()), ..JobRequest::default() }
    }

    #[test]
    fn a_number_that_is_not_given_is_one_for_each_numa_node_or_slurms() {
        let request = JobRequest::default();
        let layout = request.layout(None, Some(HOST)).expect("a layout");
        assert_eq!((layout.processes, layout.bind), (2, Some(Bind::Numa)));
        let layout = request.layout(None, None).expect("a layout");
        assert_eq!((layout.processes, layout.bind), (1, None));
        let two = on("a,b");
        assert_eq!(two.layout(None, Some(HOST)).expect("a layout").processes, 4);
        let given = allocation(12, 4);
        assert_eq!(request.layout(Some(&given), None).expect("a layout").processes, 12);
        let half = JobRequest { nodes: Some(2), ..JobRequest::default() };
        assert_eq!(half.layout(Some(&given), None).expect("a layout").processes, 6);
        let each = JobRequest { per_host: Some(2), ..JobRequest::default() };
        assert_eq!(each.layout(Some(&given), None).expect("a layout").processes, 8);
    }

    #[test]
    fn a_small_job_takes_a_part_of_an_allocation() {
        let nodes = |n| {
            let request = JobRequest { processes: Some(n), ..JobRequest::default() };
            request.layout(Some(&allocation(12, 4)), None).expect("a layout").nodes
        };
        assert_eq!((nodes(3), nodes(4), nodes(12)), (Some(3), None, None));
    }

    #[test]
    fn contradictions_are_refused() {
        let error = |request: JobRequest| {
            request.layout(None, Some(HOST)).expect_err("refused").to_string()
        };
        assert_eq!(
            error(JobRequest { processes: Some(2), ..on("a,b,c") }),
            "2 processes cannot stand on 3 hosts: ask for at least one process for each, or for \
             fewer hosts"
        );
        assert_eq!(
            error(JobRequest { nodes: Some(3), ..on("a,b") }),
            "--nodes asks for 3 hosts, and --hosts names 2: leave out one of the two"
        );
        assert_eq!(
            error(on("a,b,a")),
            "--hosts names `a` twice: name each host once, and use --per-host for several \
             processes on each"
        );
        let end = "names are expected with commas between them, as in a,b or r1n[01-16]";
        for (list, what) in [
            ("", "`` has an empty name in it"),
            ("a,", "`a,` has an empty name in it"),
            ("-a[1-2]", "`-a1` is no host name"),
            ("a[1", "`a[1` has a bracket without its partner"),
        ] {
            let text = error(on(list));
            assert_eq!(text, format!("--hosts: {what}: {end}"));
        }
    }

    #[test]
    fn a_binding_that_this_host_cannot_give_is_refused() {
        let bound = |bind, n| {
            let request =
                JobRequest { bind: Some(bind), per_host: Some(n), ..JobRequest::default() };
            request.layout(None, Some(HOST)).map(|layout| layout.processes)
        };
        assert_eq!(bound(Bind::Numa, 2).expect("two"), 2);
        assert_eq!(bound(Bind::None, 20).expect("any number"), 20);
        let refused = [(Bind::Numa, 4), (Bind::Package, 2), (Bind::Core, 9)];
        assert!(refused.into_iter().all(|(bind, n)| bound(bind, n).is_err()));
    }

    #[test]
    fn a_host_that_is_named_may_be_this_one() {
        let own = Sources::from_env().expect("this host has a name").host_name;
        let core = |list: &str| {
            let request = JobRequest { bind: Some(Bind::Core), per_host: Some(9), ..on(list) };
            request.layout(None, Some(HOST)).is_ok()
        };
        assert!(!core("localhost") && !core("127.0.0.1") && !core(&own));
        assert!(core("another") && core("localhost,another") && core("10.77.0.1"));
    }

    #[test]
    fn only_a_binding_that_is_asked_for_is_insisted_on() {
        let must_bind = |bind| {
            let layout = JobRequest { bind, ..JobRequest::default() }
                .layout(None, Some(HOST))
                .expect("a layout");
            (layout.bind, layout.must_bind)
        };
        assert_eq!(must_bind(None), (Some(Bind::Numa), false));
        assert_eq!(must_bind(Some(Bind::Numa)), (Some(Bind::Numa), true));
    }
}
