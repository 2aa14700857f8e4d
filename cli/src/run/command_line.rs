//! The launcher's command line: how many processes, on which hosts, and that the death of one must
//! not end the others.

use super::allocation::Allocation;
use super::launcher::{Launcher, LauncherKind};
use super::layout::{Bind, JobLayout};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use ultramarine_environment::variables;

/// A program with its arguments, and what the launcher is to be told beside that.
pub(crate) struct ProgramCall<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) arguments: &'a [OsString],
    pub(crate) launcher_flags: &'a [OsString],
    /// Whether srun is told how many processes there are.
    pub(crate) is_counted: bool,
    /// Names of variables for the processes, where a launcher does not hand on all.
    pub(crate) variables: &'a [String],
}

/// The whole command, the launcher first.
pub(crate) fn command_line(
    launcher: &Launcher,
    layout: &JobLayout,
    allocation: Option<&Allocation>,
    what: &ProgramCall<'_>,
) -> Vec<OsString> {
    let flags = match &launcher.kind {
        LauncherKind::Srun { plugin } => srun(plugin, layout, allocation, what),
        LauncherKind::Hydra => hydra(layout),
        LauncherKind::OpenMpi => open_mpi(layout, what.variables),
    };
    let mut words = vec![launcher.path.clone().into_os_string()];
    words.extend(flags.into_iter().map(OsString::from));
    words.extend_from_slice(what.launcher_flags);
    words.push(what.program.to_owned());
    words.extend_from_slice(what.arguments);
    words
}

fn srun(
    plugin: &str,
    layout: &JobLayout,
    allocation: Option<&Allocation>,
    what: &ProgramCall<'_>,
) -> Vec<String> {
    let mut flags = vec![
        format!("--mpi={plugin}"),
        // A node that fails ends neither the step nor the allocation,
        "--no-kill".to_owned(),
        // nor does a process that fails,
        "--kill-on-bad-exit=0".to_owned(),
        // nor one that has ended while others go on.
        "--wait=0".to_owned(),
        // Ctrl-C reaches the processes at once: else srun only says which of them run.
        "--disable-status".to_owned(),
    ];
    let mut add = |name: &str, value: Option<String>| {
        flags.extend(value.map(|value| format!("--{name}={value}")));
    };
    add("ntasks", what.is_counted.then(|| layout.processes.to_string()));
    add("nodes", layout.nodes.map(|nodes| nodes.to_string()));
    add("ntasks-per-node", layout.per_host.map(|each| each.to_string()));
    // Since Slurm 22.05 srun does not take this over from the allocation by itself.
    let cpus = allocation.and_then(|allocation| allocation.cpus_per_task);
    add("cpus-per-task", cpus.map(|cpus| cpus.to_string()));
    let names: Vec<_> = layout.hosts.iter().map(|(host, _)| host.as_str()).collect();
    add("nodelist", (!names.is_empty()).then(|| names.join(",")));
    let bind = |bind| match bind {
        Bind::None => "none",
        Bind::Core => "cores",
        Bind::Numa => "ldoms",
        Bind::Package => "sockets",
    };
    // Where it is not said how many cores a process needs, some Slurms bind it to one of them.
    // Workers divide among themselves what cores there are.
    let hints = allocation.is_some_and(|allocation| allocation.hints);
    let is_said = cpus.is_some() || hints || says_cores(what.launcher_flags);
    let by_itself = (!is_said).then_some(Bind::None);
    add("cpu-bind", layout.bind.or(by_itself).map(|request| bind(request).to_owned()));
    flags
}

/// Whether these flags for srun say what processes are bound to, or how many cores each needs. With
/// some of them srun takes no --cpu-bind beside.
fn says_cores(flags: &[OsString]) -> bool {
    let says = ["--cpu-bind", "--cpu_bind", "--cpus-per-task", "-c", "--hint"];
    flags.iter().any(|flag| says.iter().any(|start| flag.as_bytes().starts_with(start.as_bytes())))
}

/// Hydra needs no flag about deaths: the guards hide them from it.
fn hydra(layout: &JobLayout) -> Vec<String> {
    let mut flags = vec!["-n".to_owned(), layout.processes.to_string()];
    if !layout.hosts.is_empty() {
        flags.extend(["-hosts".to_owned(), host_list(layout)]);
    } else if let Some(each) = most_per_host(layout) {
        flags.extend(["-ppn".to_owned(), each.to_string()]);
    }
    if let Some(bind) = layout.bind {
        flags.extend(["-bind-to".to_owned(), domain(bind).to_owned()]);
    }
    flags
}

/// Open MPI needs to be told nothing about deaths of processes either. With `--enable-recovery` it
/// lets survivors of a host go on, too, but then (4.1.4) exits with 0 whatever the program says,
/// even after `MPI_Abort`: a failed job would look like a good one. A user who wants it all the
/// same can add it.
fn open_mpi(layout: &JobLayout, variables: &[String]) -> Vec<String> {
    let mut flags = vec!["-n".to_owned(), layout.processes.to_string()];
    let mut add = |words: &[&str]| flags.extend(words.iter().map(|word| (*word).to_owned()));
    // By itself it binds two processes to a core each, whatever threads they have.
    add(&["--bind-to", domain(layout.bind.unwrap_or(Bind::None))]);
    if !layout.hosts.is_empty() {
        add(&["--host", &host_list(layout)]);
    }
    let place = match most_per_host(layout) {
        Some(each) if layout.hosts.is_empty() => format!("ppr:{each}:node"),
        _ => String::new(),
    };
    let oversubscribe = if layout.shares_cores { ":OVERSUBSCRIBE" } else { "" };
    let mapping = place + oversubscribe;
    if !mapping.is_empty() {
        add(&["--map-by", &mapping]);
    }
    // To other hosts it hands on only its own variables.
    let bind = bind_variable(layout);
    let is_other = |name: &&String| bind.is_none() || *name != BIND;
    variables.iter().filter(is_other).for_each(|name| add(&["-x", name]));
    if let Some(word) = bind {
        add(&["-x", &format!("{BIND}={word}")]);
    }
    flags
}

/// What tells the processes what they are to be bound to, so that they see whether they are.
pub(crate) const BIND: &str = variables::BIND.name;

/// Its value, if a binding was asked for.
pub(crate) fn bind_variable(layout: &JobLayout) -> Option<&'static str> {
    layout.bind.filter(|_| layout.must_bind).map(Bind::name)
}

/// The most processes that a host may have. Neither mpiexec can be told a number of hosts: they
/// take as many of the allocation as they fill so.
fn most_per_host(layout: &JobLayout) -> Option<u32> {
    layout.per_host.or_else(|| Some(layout.processes.div_ceil(layout.nodes?)))
}

/// `a:2,b:1`, as both mpiexecs read it.
fn host_list(layout: &JobLayout) -> String {
    let hosts = layout.hosts.iter().map(|(host, count)| format!("{host}:{count}"));
    hosts.collect::<Vec<_>>().join(",")
}

/// What both mpiexecs call it.
fn domain(bind: Bind) -> &'static str {
    match bind {
        Bind::None => "none",
        Bind::Core => "core",
        Bind::Numa => "numa",
        Bind::Package => "socket",
    }
}

/// The command as one would type it: a shell reads from it these very words.
pub(crate) fn quoted(words: &[OsString]) -> OsString {
    let quoted = words.iter().map(|word| match word.as_bytes() {
        plain if is_plain_flag(plain) => plain.into(),
        // No word has a zero byte in it: none of this process's arguments can have.
        bytes => shlex::bytes::try_quote(bytes).unwrap_or_else(|_| bytes.into()),
    });
    OsString::from_vec(quoted.collect::<Vec<_>>().join(&b' '))
}

/// Whether no shell sees anything in it but a flag. Most quote more than they need to.
fn is_plain_flag(word: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=.,:/".contains(byte);
    let starts = word.first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'-');
    // `a=b` at the start of a line would be an assignment.
    starts && word.iter().all(is_plain) && (word[0] == b'-' || !word.contains(&b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(processes: u32) -> JobLayout {
        let (hosts, nodes, per_host) = (Vec::new(), None, None);
        JobLayout {
            processes,
            hosts,
            nodes,
            per_host,
            bind: None,
            must_bind: false,
            shares_cores: false,
        }
    }

    fn shown(kind: LauncherKind, layout: &JobLayout, allocation: Option<&Allocation>) -> String {
        let launcher = Launcher { path: "L".into(), kind, not_srun: None };
        let what = ProgramCall {
            program: OsStr::new("p"),
            arguments: &["a b".into()],
            launcher_flags: &["-f".into()],
            is_counted: true,
            variables: &["ULTRAMARINE_LOG".to_owned()],
        };
        quoted(&command_line(&launcher, layout, allocation, &what)).into_string().expect("text")
    }

    fn on_two_hosts() -> JobLayout {
        let hosts = vec![("a".to_owned(), 2), ("b".to_owned(), 1)];
        JobLayout { hosts, nodes: Some(2), bind: Some(Bind::Package), must_bind: true, ..layout(3) }
    }

    #[test]
    fn each_launcher_is_told_how_to_bind_and_how_many_fit_a_host() {
        let srun = shown(LauncherKind::Srun { plugin: "pmi2".to_owned() }, &on_two_hosts(), None);
        let rest = "--ntasks=3 --nodes=2 --nodelist=a,b --cpu-bind=sockets -f p 'a b'";
        assert!(srun.ends_with(rest), "{srun}");
        let (part, hydra) = (JobLayout { nodes: Some(2), ..layout(5) }, LauncherKind::Hydra);
        assert_eq!(shown(hydra, &part, None), "L -n 5 -ppn 3 -f p 'a b'");
        let crowd = JobLayout { per_host: Some(9), shares_cores: true, ..layout(9) };
        assert_eq!(
            shown(LauncherKind::OpenMpi, &crowd, None),
            "L -n 9 --bind-to none --map-by ppr:9:node:OVERSUBSCRIBE -x ULTRAMARINE_LOG -f p 'a b'"
        );
    }

    #[test]
    fn who_says_what_cores_a_process_needs_is_left_alone() {
        for flag in ["--cpu-bind=cores", "-c4", "--cpus-per-task", "--hint=nomultithread"] {
            assert!(says_cores(&["--label".into(), flag.into()]), "{flag}");
        }
        assert!(!says_cores(&["--label".into(), "--core-spec=1".into(), "c".into()]));
    }

    #[test]
    fn a_shell_reads_back_what_is_shown() {
        let words = ["a b", "it's", "$HOME", "", "*", "plain", "--x=1", "\n"].map(OsString::from);
        let mut script = OsString::from("printf '%s\\0' ");
        script.push(quoted(&words));
        let shell = std::process::Command::new("sh").arg("-c").arg(script).output();
        let read = shell.expect("a shell").stdout;
        let expected: Vec<u8> =
            words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        assert_eq!(read, expected);
    }
}
