//! `ultramarine run`: starts a program on many processes with the launcher that fits.
//!
//! | file | what |
//! |---|---|
//! | `program` | the file that is meant |
//! | `linked`, `family` | the MPI that it is linked with |
//! | `allocation` | what Slurm has given |
//! | `layout` | how many processes, and where |
//! | `launcher` | which launcher starts them |
//! | `command_line` | the launcher's command line |
//! | `ready` | what could still go wrong, just before the start |
//! | `ssh_check` | whether an mpiexec gets to the hosts |
//! | `error` | why not |

pub(crate) mod allocation;
mod command_line;
pub(crate) mod error;
mod family;
pub(crate) mod launcher;
pub(crate) mod layout;
pub(crate) mod linked;
pub(crate) mod program;
mod ready;
mod ssh_check;

pub(crate) use self::error::RunError;

use self::allocation::Allocation;
use self::command_line::ProgramCall;
use self::launcher::{Launcher, LauncherChoice, LauncherKind, LauncherSearch};
use self::layout::{JobLayout, JobRequest};
use self::linked::Linked;
use crate::error::{Error, Result};
use crate::probe;
use crate::subprocess;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use ultramarine_environment::launcher::{
    OMPI_ALLOW_RUN_AS_ROOT, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, SLURM_STEP_ID, launched,
};
use ultramarine_environment::variables::{self, Scope};
use ultramarine_topology::Domains;

/// Start a program on many processes: with srun inside a Slurm allocation, else with the mpiexec of
/// the MPI that the program is linked with.
///
/// The command becomes the launcher, so signals and exit codes are the launcher's. What follows the
/// last `--` is handed to the launcher as it is.
#[derive(clap::Args)]
#[command(override_usage = "ultramarine run [OPTIONS] PROGRAM [ARGUMENTS]… [-- LAUNCHER FLAGS…]")]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Print the launcher's command line, and start nothing.
    #[arg(long)]
    dry_run: bool,
    /// The program with its arguments: a path, a name on PATH, or the name of a file beside this
    /// command. After the last `--`: flags for the launcher.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    words: Vec<OsString>,
}

/// How many processes, where, and by whom.
#[derive(Clone, clap::Args)]
pub(crate) struct JobArguments {
    #[command(flatten)]
    pub(crate) request: JobRequest,
    /// The launcher to use. `MPIEXEC` names the file of an mpiexec, if a special one is wanted.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) launcher: LauncherChoice,
}

/// A job that can be started.
pub(crate) struct LaunchPlan {
    pub(crate) launcher: Launcher,
    pub(crate) layout: JobLayout,
    /// The launcher and its arguments.
    pub(crate) words: Vec<OsString>,
}

impl LaunchPlan {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        if let Some(bind) = command_line::bind_variable(&self.layout) {
            command.env(command_line::BIND, bind);
        }
        command
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    subprocess::end_on_signals()?;
    let (words, flags) = split(&arguments.words);
    let plan = plan(&arguments.job, words, flags, |_| true)?;
    refuse_parts(&plan, flags)?;
    if arguments.dry_run {
        let mut line = command_line::quoted(&plan.words);
        line.push("\n");
        return Ok(std::io::stdout().write_all(line.as_bytes())?);
    }
    plan.is_ready(&arguments.job.request, flags)?;
    if let Some(reason) = &plan.launcher.not_srun {
        let launcher = plan.launcher.path.display();
        let _ = writeln!(std::io::stderr(), "ultramarine: {reason}: {launcher} starts the job");
    }
    let source = plan.command().exec();
    Err(Error::from(RunError::Exec { launcher: plan.launcher.path, source }))
}

/// The words of the program, and the flags of the launcher. The last `--` is between them, so that
/// the program's arguments can contain another.
fn split(words: &[OsString]) -> (&[OsString], &[OsString]) {
    match words.iter().rposition(|word| word == "--") {
        Some(place) => (&words[..place], &words[place + 1..]),
        None => (words, &[]),
    }
}

/// How this program is started. Of the runtime's variables, the processes have those that are
/// wanted.
///
/// # Errors
///
/// It is no MPI program, no launcher fits it, or the machine cannot give what was asked for.
pub(crate) fn plan(
    job: &JobArguments,
    words: &[OsString],
    launcher_flags: &[OsString],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<LaunchPlan, RunError> {
    if let Some(launched) = launched(variables::text) {
        return Err(refuse_launched(launched.variable));
    }
    let mut allocation = own_allocation();
    let is_of_components = names_components(launcher_flags)
        && allocation.as_ref().is_some_and(|given| given.components > Some(1));
    if is_of_components {
        allocation = allocation.map(Allocation::of_all_components);
    }
    let layout = job.request.layout(allocation.as_ref(), Domains::of_this_host().ok())?;
    let (name, arguments) = words
        .split_first()
        .map_or((OsStr::new(""), &[][..]), |(name, rest)| (name.as_os_str(), rest));
    let linked = examine(name)?;
    let launcher =
        LauncherSearch::from_environment().launcher(job.launcher, &linked, allocation.as_ref())?;
    if launcher.kind == LauncherKind::OpenMpi {
        refuse_root(launcher_flags)?;
    }
    let mut variables = own_variables();
    variables.retain(|name| is_wanted(name));
    let program = linked.program.as_os_str();
    // Each component has a number of its own, unless the user wants the same for all.
    let is_counted = !is_of_components || job.request.processes.is_some();
    let what =
        ProgramCall { program, arguments, launcher_flags, is_counted, variables: &variables };
    let words = command_line::command_line(&launcher, &layout, allocation.as_ref(), &what);
    Ok(LaunchPlan { launcher, layout, words })
}

/// Where this variable says that a launcher has started this process. Slurm also does so with a
/// shell that is asked for as the only process of a step.
fn refuse_launched(variable: &'static str) -> RunError {
    let text = |name| std::env::var(name).unwrap_or_default();
    let is_step = !text(SLURM_STEP_ID).is_empty();
    if is_step && text(variable).trim() == "1" {
        return RunError::InStep;
    }
    RunError::Launched { variable }
}

fn examine(name: &OsStr) -> Result<Linked, RunError> {
    let own = std::env::current_exe().ok();
    let path = std::env::var_os("PATH");
    let program = program::find(name, path.as_deref(), own.as_deref().and_then(Path::parent))?;
    // This command is no MPI program. Its part under MPI is the probe's.
    linked::examine(&if probe::is_this_command(&program) { probe::find()? } else { program })
}

/// Open MPI's mpiexec says the same in twenty lines.
fn refuse_root(launcher_flags: &[OsString]) -> Result<(), RunError> {
    let is_set = |name| std::env::var_os(name).is_some();
    let is_allowed = launcher_flags.iter().any(|flag| flag == "--allow-run-as-root")
        || [OMPI_ALLOW_RUN_AS_ROOT, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM].into_iter().all(is_set);
    if rustix::process::geteuid().is_root() && !is_allowed {
        return Err(RunError::Root);
    }
    Ok(())
}

/// Of a heterogeneous job launchers take the first component, and say nothing about the others.
fn refuse_parts(plan: &LaunchPlan, launcher_flags: &[OsString]) -> Result<(), RunError> {
    let is_srun = matches!(plan.launcher.kind, LauncherKind::Srun { .. });
    let Some(components @ 2..) = own_allocation().and_then(|given| given.components) else {
        return Ok(());
    };
    match (is_srun, names_components(launcher_flags)) {
        (true, true) => Ok(()),
        (true, false) => Err(RunError::Heterogeneous { components }),
        (false, _) => {
            let launcher = plan.launcher.path.clone();
            Err(RunError::NotOfComponents { components, launcher })
        }
    }
}

/// Whether srun is told which components of a heterogeneous job take part.
fn names_components(launcher_flags: &[OsString]) -> bool {
    launcher_flags.iter().any(|flag| flag.as_bytes().starts_with(b"--het-group"))
}

fn own_allocation() -> Option<Allocation> {
    Allocation::from(|name| std::env::var(name).ok())
}

/// The variables of this runtime that are set, for the processes of a job.
fn own_variables() -> Vec<String> {
    let is_for_command = |name: &str| {
        variables::named(name).is_some_and(|variable| variable.scope == Scope::Command)
    };
    let names = variables::all_set().map(|(name, _)| name);
    let mut own: Vec<_> = names.filter(|name| !is_for_command(name)).collect();
    own.sort_unstable();
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dashes_part_the_program_from_the_launcher() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        for (all, program, launcher) in [
            ("p -n 3", "p -n 3", ""),
            ("p -- -v", "p", "-v"),
            ("p -- x -- -v", "p -- x", "-v"),
            ("p -- x --", "p -- x", ""),
        ] {
            let all = words(all);
            let (before, after) = split(&all);
            assert_eq!((before, after), (&words(program)[..], &words(launcher)[..]));
        }
    }
}
