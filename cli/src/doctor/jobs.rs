//! Small jobs that are really started: one to see that the processes find each other, and one in
//! which a process is killed.

use super::check::Check;
use crate::probe;
use crate::run::allocation::Allocation;
use crate::run::{JobArguments, plan};
use crate::subprocess::{self, Ended};
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;
use ultramarine_environment::variables::{self, Scope};

/// Enough to tell a world from single processes, and to lose one of them.
const WORLD: u32 = 3;
const DEATHS: u32 = 4;

/// When a process is killed: after the start, and long before the end.
const KILL_AT: &str = "0.2";

/// How long the processes may take to find each other, and a job to end.
const START_DEADLINE: (&str, &str) = ("start_deadline", "30s");
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// Wall clocks farther apart make the times in logs of two hosts hard to compare.
const CLOCKS_APART_US: i64 = 50_000;

/// Variables that would make another job of it, and that of the setting which is given on the
/// command line.
fn not_for_probes() -> impl Iterator<Item = String> {
    let others = variables::TABLE.iter().filter(|variable| variable.scope != Scope::Machine);
    let settings = [START_DEADLINE.0, "steal_in_memory"].map(variables::of_setting);
    others.map(|variable| variable.name.to_owned()).chain(settings)
}

pub(super) fn checks(job: &JobArguments, allocation: Option<&Allocation>) -> Vec<Check> {
    with_jobs(|processes, arguments| small_job(job, allocation, processes, arguments))
}

/// The checks, by jobs that are `start`ed so.
fn with_jobs(start: impl Fn(u32, &[&str]) -> Result<SmallJob, String>) -> Vec<Check> {
    let mut checks = Vec::new();
    match start(WORLD, &["world"]) {
        Err(reason) => checks.push(not_started("world", &reason)),
        Ok(probe) => {
            let (check, hosts) = world(&probe);
            checks.push(check);
            checks.extend(clocks(&hosts));
            checks.extend(boards(&probe, hosts.len()));
            if !probe.has_ended() {
                let found = "not tried, since the first small job did not end";
                checks.push(Check::warning("deaths", found, "mend that first"));
                return checks;
            }
        }
    }
    match start(DEATHS, &["deaths", "--kill-at", KILL_AT]) {
        Err(reason) => checks.push(not_started("deaths", &reason)),
        Ok(probe) if probe.processes < 2 => {
            let found = "a job of one process cannot lose any";
            checks.push(Check::warning("deaths", found, "ask for two processes or more"));
        }
        Ok(probe) => checks.push(deaths(&probe)),
    }
    checks
}

/// A job that has ended.
struct SmallJob {
    /// How many were to be started.
    processes: u32,
    /// The launcher's file.
    launcher: String,
    ended: Ended,
    /// The objects that were printed.
    said: Vec<Value>,
}

impl SmallJob {
    fn has_ended(&self) -> bool {
        self.ended.status.is_some()
    }

    /// What to do about it: `mend`, if it has ended.
    fn mend(&self, mend: &'static str) -> &'static str {
        if self.has_ended() {
            return mend;
        }
        "see that the launcher gets to every host (as by `ssh HOST true`, without a password), and \
         that the hosts can call each other (a firewall? ULTRAMARINE_PORTS, ULTRAMARINE_LOG=info)"
    }

    /// Why it came to nothing.
    fn complaint(&self) -> String {
        if !self.has_ended() {
            // What comes later is about its being ended.
            let first = self.ended.err.lines().map(str::trim).find(|line| !line.is_empty());
            let first = first.map(|line| format!(" ({line})")).unwrap_or_default();
            return format!("a job of {} processes did not end{first}", self.processes);
        }
        let mut errors = self.ended.err.lines().filter_map(|line| line.strip_prefix("Error: "));
        errors.next_back().unwrap_or_else(|| self.ended.last_line()).to_owned()
    }
}

/// Starts the probe as a small job; or why it cannot be started.
fn small_job(
    job: &JobArguments,
    allocation: Option<&Allocation>,
    processes: u32,
    arguments: &[&str],
) -> Result<SmallJob, String> {
    let nodes = allocation.and_then(|allocation| allocation.nodes).unwrap_or(1);
    let room = allocation.and_then(Allocation::room).map_or(u32::MAX, |(room, _)| room);
    let request = job.request.clone().or_processes(processes.max(nodes).min(room));
    let job = JobArguments { request, ..job.clone() };
    let probe = probe::find().map_err(|error| error.to_string())?;
    let mut words = vec![probe.into_os_string()];
    words.extend(arguments.iter().map(OsString::from));
    let (setting, value) = START_DEADLINE;
    let setting = format!("{setting}={value}");
    words.extend(["--threads", "1", "--set", &setting].map(OsString::from));
    let is_wanted = |name: &str| not_for_probes().all(|other| other != name);
    let plan = plan(&job, &words, &[], is_wanted).map_err(|error| error.to_string())?;
    plan.is_ready(&job.request, &[]).map_err(|error| error.to_string())?;
    let mut command = plan.command();
    for name in not_for_probes() {
        command.env_remove(name);
    }
    let ended = subprocess::run(&mut command, ENDS_WITHIN).map_err(|error| error.to_string())?;
    let said = ended.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let launcher = plan.launcher.path.display().to_string();
    Ok(SmallJob { processes: plan.layout.processes, launcher, ended, said })
}

fn not_started(name: &'static str, reason: &str) -> Check {
    Check::wrong(name, "no job can be started", reason)
}

/// Whether processes on the same of these hosts take tasks from each other's memory, if there are
/// such and the job came so far.
fn boards(probe: &SmallJob, hosts: usize) -> Option<Check> {
    let [one] = &probe.said[..] else { return None };
    let is_shared = hosts > 0 && probe.processes as usize > hosts;
    let boards = one["boards"].as_u64().filter(|_| is_shared)?;
    Some(match boards {
        0 => Check::warning(
            "boards",
            "processes of a host take tasks from each other by message, not from memory",
            "give them one process and one user namespace, and let them see each other in /proc",
        ),
        _ => Check::ok("boards", "processes of a host take tasks from each other's memory"),
    })
}

/// Whether the processes are one world; and their hosts.
fn world(probe: &SmallJob) -> (Check, Vec<Value>) {
    let SmallJob { processes, launcher, .. } = probe;
    let mend = "see whether the launcher and the library are of one MPI (the lines `mpi` and \
                `launcher`), and try `ultramarine run -n 3 ultramarine topo`";
    let check = match &probe.said[..] {
        [one] if one["pes"] == *processes && probe.ended.succeeded() => {
            let hosts = one["hosts"].as_array().cloned().unwrap_or_default();
            let count = hosts.len();
            let on = if count == 1 { "one host".to_owned() } else { format!("{count} hosts") };
            let over = one["network"].as_str().map(|network| format!(", connected over {network}"));
            let over = over.unwrap_or_default();
            let found =
                format!("{launcher} makes one world of {processes} processes on {on}{over}");
            return (Check::ok("world", found), hosts);
        }
        all if all.len() > 1 => {
            let found = format!("{launcher} makes {} worlds of {processes} processes", all.len());
            Check::wrong("world", found, mend)
        }
        _ => {
            let found = format!("{launcher}: {}", probe.complaint());
            Check::wrong("world", found, probe.mend(mend))
        }
    };
    (check, Vec::new())
}

/// How far apart the clocks of several hosts are.
fn clocks(hosts: &[Value]) -> Option<Check> {
    let offset = |host: &Value| {
        let (ahead, took) = (host["ahead_us"].as_i64()?, host["took_us"].as_i64()?);
        // Half of the way is how wrong it may be.
        Some((host["name"].as_str()?.to_owned(), ahead, (ahead.abs() - took / 2).max(0)))
    };
    let all: Vec<_> = hosts.iter().filter_map(offset).collect();
    let (name, ahead, surely) = all.iter().max_by_key(|(_, _, surely)| *surely)?;
    if all.len() < 2 {
        return None;
    }
    let ahead_ms = *ahead as f64 / 1e3;
    if *surely <= CLOCKS_APART_US {
        let found = format!("the hosts' clocks agree within {:.1} ms", ahead_ms.abs());
        return Some(Check::ok("clocks", found));
    }
    let found = format!("the clock of {name} is {ahead_ms:+.0} ms off the first process's");
    let mend = "have chrony or ntpd set the clocks; until then times in logs and traces of \
                different hosts cannot be compared";
    Some(Check::warning("clocks", found, mend))
}

/// Whether the job went on without the process that was killed.
fn deaths(probe: &SmallJob) -> Check {
    let SmallJob { processes, launcher, .. } = probe;
    let mend = "start jobs with `ultramarine run`, leave the guard on (ULTRAMARINE_GUARD), and see \
                what ULTRAMARINE_LOG=info says";
    match &probe.said[..] {
        [one] if one["right"] == true && one["dead"] == 1 && probe.ended.succeeded() => {
            let found =
                format!("one of {processes} processes was killed, and the result was right");
            Check::ok("deaths", found)
        }
        [one] if one["right"] == true && one["dead"] == 1 => {
            let found =
                format!("the job survives a killed process, but {launcher} calls it failed");
            Check::wrong("deaths", found, mend)
        }
        [one] if one["dead"] == 0 => Check::wrong(
            "deaths",
            "no process could be killed",
            "look for what forbids signals here",
        ),
        [_] => Check::wrong("deaths", "a process was killed, and the result is wrong", mend),
        _ => {
            let found = format!("{launcher}: {}", probe.complaint());
            Check::wrong("deaths", found, probe.mend(mend))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(said: Vec<Value>, is_well: bool) -> SmallJob {
        use std::os::unix::process::ExitStatusExt as _;
        let status = Some(std::process::ExitStatus::from_raw(if is_well { 0 } else { 256 }));
        let err = "Error: bad luck\nbye\n".to_owned();
        let ended = Ended { status, took: Duration::ZERO, out: String::new(), err };
        SmallJob { processes: 3, launcher: "L".to_owned(), ended, said }
    }

    #[test]
    fn a_world_is_shown_with_its_network_or_why_there_is_none() {
        let host = json!({ "name": "a", "ahead_us": 0, "took_us": 9 });
        let one = json!({ "pes": 3, "hosts": [host], "network": "ib0 10.1.0.1/16" });
        assert_eq!(
            world(&job(vec![one], true)).0.to_string(),
            "ok       world     L makes one world of 3 processes on one host, connected over ib0 \
             10.1.0.1/16"
        );
        let none = world(&job(vec![], false)).0.to_string();
        assert!(none.starts_with("wrong    world     L: bad luck: see "), "{none}");
    }

    #[test]
    fn boards_are_shown_where_processes_share_a_host() {
        let shown = |open: u32, hosts| {
            let probe = job(vec![json!({ "pes": 3, "boards": open })], true);
            boards(&probe, hosts).map(|check| check.to_string())
        };
        assert_eq!([shown(0, 3), shown(0, 0)], [None, None]);
        assert!(shown(2, 2).is_some_and(|line| line.starts_with("ok       boards ")));
        assert!(shown(0, 1).is_some_and(|line| line.starts_with("warning  boards ")));
    }

    #[test]
    fn after_a_job_without_end_no_other_is_started() {
        let err = "\nssh: Connection refused\nkilled\n".to_owned();
        let hung = || Ended { status: None, ..job(vec![], true).ended };
        let hung = || Ended { err: err.clone(), ..hung() };
        let started = std::cell::Cell::new(0);
        let checks = with_jobs(|_, _| {
            started.set(started.get() + 1);
            Ok(SmallJob { ended: hung(), ..job(vec![], true) })
        });
        assert_eq!(started.get(), 1);
        let lines: Vec<_> = checks.iter().map(Check::to_string).collect();
        let start = "wrong    world     L: a job of 3 processes did not end (ssh: Connection \
                     refused): see that the launcher gets to every host ";
        assert!(lines[0].starts_with(start), "{lines:?}");
        let skipped = "warning  deaths    not tried, since the first small job did not end: mend \
                       that first";
        assert_eq!(lines[1..], [skipped]);
        started.set(0);
        with_jobs(|_, _| {
            started.set(started.get() + 1);
            Ok(job(vec![], false))
        });
        assert_eq!(started.get(), 2, "one that failed is no reason");
    }

    #[test]
    fn a_death_must_be_survived_with_the_right_result() {
        let line = |dead, right, is_well| {
            deaths(&job(vec![json!({ "dead": dead, "right": right })], is_well)).to_string()
        };
        assert!(line(1, true, true).starts_with("ok "));
        assert!(line(1, false, true).contains("the result is wrong"));
        assert!(line(0, true, true).contains("no process could be killed"));
        assert!(line(1, true, false).contains("L calls it failed"));
    }

    #[test]
    fn clocks_matter_between_hosts_only() {
        fn host(name: &str, ahead_us: i64) -> serde_json::Value {
            json!({ "name": name, "ahead_us": ahead_us, "took_us": 200 })
        }
        assert!(clocks(&[host("a", 0)]).is_none());
        let near = clocks(&[host("a", 0), host("b", 300)]).expect("two hosts");
        assert_eq!(near.to_string(), "ok       clocks    the hosts' clocks agree within 0.3 ms");
        let far = clocks(&[host("a", 0), host("b", -2_000_000)]).expect("two hosts").to_string();
        assert!(far.starts_with("warning  clocks    the clock of b is -2000 ms off "), "{far}");
    }
}
