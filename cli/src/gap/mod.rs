//! `ultramarine gap`: GAP in front, and behind it a job that computes for it.
//!
//! GAP and the job are children of this command. GAP has the terminal, because a launcher gives its
//! processes none. Two named pipes in a private folder join them (`gap-job` has a picture). The
//! end of GAP closes the requests, and so ends the job; whichever process is killed, no other is
//! left.
//!
//! | question | file |
//! |---|---|
//! | What is in the folder? | `folder` |
//! | How do the two begin and end? | `children` |

mod children;
mod folder;

use self::children::{Job, Signals};
use self::folder::Folder;
use crate::error::Result;
use crate::probe;
use crate::run::{self, JobArguments};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;
use ultramarine_environment::variables;

/// Where the results of parallel functions are kept.
#[derive(clap::Args)]
struct JournalArguments {
    /// Keep the results of parallel functions in this file. A script that is run again with it
    /// computes only what is missing, or has changed.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// End a call if the journal cannot be written, instead of a warning.
    #[arg(long, requires = "journal")]
    journal_required: bool,
}

/// What the GAPs on the PEs may take.
#[derive(clap::Args)]
struct Limits {
    /// Kill a GAP on a PE if a call, which is a task of a map or a step of another function, takes
    /// longer, such as 10min. Up to two other PEs try then. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    call_limit: Option<Duration>,
    /// Kill a GAP on a PE if it needs more memory, such as 2GiB. Default: GAP's own limit.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    gap_memory: Option<u64>,
}

/// The bytes of a size.
fn size(text: &str) -> Result<u64, String> {
    let units = ["KiB", "MiB", "GiB", "TiB"].into_iter().zip(1..);
    let of_unit = |(unit, power): (&str, u32)| {
        let number = text.trim().strip_suffix(unit)?.trim_end().parse::<u64>().ok()?;
        number.checked_mul(1 << (10 * power)).filter(|bytes| *bytes > 0)
    };
    let wrong = "a size such as 500MiB or 2GiB is expected (KiB, MiB, GiB or TiB)";
    units.into_iter().find_map(of_unit).ok_or_else(|| wrong.to_owned())
}

/// Start GAP with parallel functions, such as `ParMap`: they run on the processes of a job, which
/// begins and ends with it.
///
/// With a script GAP runs it and ends; its status is 1 if the script has an error. Without one it
/// is interactive. The guide (docs/guide/tasks.md) lists the functions. What follows `--` is for
/// the job: the flags that every program takes.
#[derive(clap::Args)]
#[command(override_usage = "ultramarine gap [OPTIONS] [SCRIPT] [-- FLAGS OF THE JOB…]")]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Run this many PEs as threads of one process, without a launcher.
    #[arg(long, value_name = "P", conflicts_with_all = ["processes", "nodes", "hosts", "per_host"])]
    pes: Option<u32>,
    /// Supervise all tasks: run those again that are lost when processes die.
    #[arg(long)]
    supervised: bool,
    /// Show from time to time how many tasks of an operation have ended.
    #[arg(long)]
    progress: bool,
    /// Let GAP load the packages that it suggests, here and on all PEs. It starts more slowly then.
    #[arg(long)]
    packages: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    journal: JournalArguments,
    /// The file that GAP runs.
    script: Option<PathBuf>,
    /// Flags of the job.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// Why GAP or its job has not done all that it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GapError {
    #[error(
        "there is no program `{}`: install GAP (on Debian or Ubuntu: `apt-get install \
         --no-install-recommends gap-core`), or let ULTRAMARINE_GAP name it", .0.display()
    )]
    NoGap(PathBuf),
    #[error("there is no script `{}` that can be read", .0.display())]
    NoScript(PathBuf),
    #[error(
        "there is no `{}`, which computes for GAP: build it with the MPI in use (`MPICC=<its \
         mpicc> cargo build --release -p ultramarine-gap-job`), and put it beside this command",
        .0.display()
    )]
    NoJob(PathBuf),
    #[error(
        "the job has ended before GAP could begin ({0}): if it has said why, that stands above"
    )]
    NoStart(ExitStatus),
    #[error("the job has not begun within {} s, and was ended", .0.as_secs())]
    Silent(Duration),
    #[error("the job ended with {0}: if it has said why, that stands above")]
    JobFailed(ExitStatus),
    #[error("the file of the journal: {0}")]
    Journal(std::io::Error),
    #[error("the folder for the pipes to the job: {0}")]
    Folder(std::io::Error),
    #[error("the job has not ended, and was killed")]
    NoEnd,
    #[error("signal {0} came before GAP could begin, and the job was ended")]
    Signal(i32),
    #[error("cannot start `{}`: {source}", .program.display())]
    Start { program: PathBuf, source: std::io::Error },
}

impl GapError {
    fn start(command: &Command, source: std::io::Error) -> Self {
        GapError::Start { program: command.get_program().into(), source }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let gap = gap_program()?;
    if let Some(script) = arguments.script.as_ref().filter(|script| !script.is_file()) {
        return Err(GapError::NoScript(script.clone()).into());
    }
    let mut signals = Signals::note()?;
    let folder = Folder::new().map_err(GapError::Folder)?;
    let mut job = Job::start(job_command(arguments, folder.path())?, &folder, &mut signals)?;
    let front = front_command(arguments, &gap, folder.path());
    let code = job.run_front(front, &folder, &mut signals)?;
    match job.end() {
        Some(status) if status.success() => Ok(ExitCode::from(code)),
        Some(status) => Err(GapError::JobFailed(status).into()),
        None => Err(GapError::NoEnd.into()),
    }
}

/// GAP, as `ULTRAMARINE_GAP` or `PATH` has it.
fn gap_program() -> Result<PathBuf, GapError> {
    let named = variables::GAP.value().filter(|name| !name.is_empty());
    let name = PathBuf::from(named.unwrap_or_else(|| "gap".to_owned()));
    let path = std::env::var_os("PATH");
    run::program::find(name.as_os_str(), path.as_deref(), None).map_err(|_| GapError::NoGap(name))
}

/// The job: under a launcher, unless its PEs are threads.
fn job_command(arguments: &Arguments, folder: &Path) -> Result<Command> {
    let program = probe::beside_this_command(JOB)?;
    if !run::program::is_program(&program) {
        return Err(GapError::NoJob(program).into());
    }
    let mut words: Vec<OsString> = vec![program.into(), "--folder".into(), folder.into()];
    let flags = [
        ("--supervised", arguments.supervised),
        ("--progress", arguments.progress),
        ("--packages", arguments.packages),
        ("--journal-required", arguments.journal.journal_required),
    ];
    words.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.into()));
    if let Some(file) = &arguments.journal.journal {
        // A launcher may start the job in another folder.
        let file = std::path::absolute(file).map_err(GapError::Journal)?;
        words.extend(["--journal".into(), file.into()]);
    }
    let limits = [
        ("--call-limit-ms", arguments.limits.call_limit.map(|limit| limit.as_millis().max(1))),
        ("--gap-memory-bytes", arguments.limits.gap_memory.map(u128::from)),
    ];
    for (flag, limit) in limits {
        words.extend(limit.iter().flat_map(|limit| [flag.into(), limit.to_string().into()]));
    }
    words.extend(arguments.flags.iter().cloned());
    if let Some(pes) = arguments.pes {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--pes", &pes.to_string()]);
        return Ok(command);
    }
    let plan = run::plan(&arguments.job, &words, &[], |_| true)?;
    plan.is_ready(&arguments.job.request, &[])?;
    Ok(plan.command())
}

/// How the file of the job's program is called.
const JOB: &str = "ultramarine-gap";

/// Has the system kill GAP if this command is killed, and becomes GAP. To write to a job that has
/// ended is an error then, and not the end of GAP.
const BECOME_GAP: &str = r#"
trap '' PIPE
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@"
"#;

/// Loads the package. GAP would go on without one for which it is too old, or that is damaged.
const LOAD: &str = r#"if LoadPackage("ultramarine", false) <> true then
    PrintTo("*errout*", "Error, GAP ", GAPInfo.Version, " cannot load the package `ultramarine`, ",
            "which needs GAP 4.12 or later\n");
    QuitGap(1);
fi;"#;

/// GAP with its package, which then opens the pipes.
fn front_command(arguments: &Arguments, gap: &Path, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", BECOME_GAP, "gap"]).arg(gap);
    if !arguments.packages {
        command.arg("-A");
    }
    let folder = folder.display().to_string();
    let connect = format!("UltramarineConnect({});", quoted(&folder));
    command.args(["-l", &format!(";{folder}"), "-c", LOAD]);
    command.args(["-c", &connect]);
    if let Some(script) = &arguments.script {
        let prepare = format!("UltramarinePrepareScript({});", quoted(&script.to_string_lossy()));
        command.args(["-q", "-c", &prepare]).arg(script);
        // The end of a line that the script has not ended is still in GAP.
        command.args(["-c", r#"Print("\c"); QuitGap(0);"#]);
    }
    command
}

/// A string of GAP.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
