//! The environment variables that are read: one table, from which the flags, the check for misspelt
//! names, the command and the test of the guide's page on settings take them.
//!
//! | list | whose |
//! |---|---|
//! | [`TABLE`] | this project's own |
//! | `NAMES` of the runtime's settings | each setting has one: see [`of_setting`] |
//! | [`FOREIGN`] | other programs', which users set |
//! | [`launcher::VARIABLES`](crate::launcher::VARIABLES) | those of launchers |
//!
//! Beside them, the topology reads where Slurm says that a host stands, and the runtime's build
//! reads what rsmpi does.

/// What every variable's name begins with.
pub const PREFIX: &str = "ULTRAMARINE_";

/// What a variable is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The machine and its hosts: it holds for any job.
    Machine,
    /// One job: the small jobs of `ultramarine doctor` run without it.
    Job,
    /// The runtime itself sets it for the processes that it starts.
    Internal,
    /// The `ultramarine` command alone: no job is told.
    Command,
}

/// An environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The whole name.
    pub name: &'static str,
    /// What it is about.
    pub scope: Scope,
}

impl Variable {
    /// The name without [`PREFIX`].
    pub fn short_name(self) -> &'static str {
        &self.name[PREFIX.len()..]
    }

    /// Its value in this process. Text that is not UTF-8 is replaced, and so refused where it
    /// matters.
    pub fn value(self) -> Option<String> {
        text(self.name)
    }
}

/// The variable of a setting of the runtime: [`PREFIX`] and the setting's name in capitals.
pub fn of_setting(name: &str) -> String {
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// The value of any environment variable of this process. Text that is not UTF-8 is replaced.
pub fn text(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

/// The variables of this process that begin with [`PREFIX`], with their values.
pub fn all_set() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

/// The variable of this name, if the table has it.
pub fn named(name: &str) -> Option<&'static Variable> {
    TABLE.iter().find(|variable| variable.name == name)
}

/// A flag or a variable has a value that cannot be, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Gives an option the value of a variable, by name and text, unless it has one. An empty variable
/// says nothing.
pub fn complete<T>(
    option: &mut Option<T>,
    (name, text): (&str, Option<String>),
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), Refused> {
    if let (None, Some(text)) = (&option, text.filter(|text| !text.is_empty())) {
        let value = parse(text.trim());
        let named = |reason| Refused(format!("{name} = `{text}`: {reason}"));
        *option = Some(value.map_err(named)?);
    }
    Ok(())
}

/// Makes a constant of each row, the table, and its documentation.
macro_rules! variables {
    ($($name:ident, $scope:ident, $about:literal;)+) => {
        $(
            #[doc = concat!("`ULTRAMARINE_", stringify!($name), "`: ", $about, ".")]
            pub const $name: Variable = Variable {
                name: concat!("ULTRAMARINE_", stringify!($name)),
                scope: Scope::$scope,
            };
        )+

        /// All of them:
        ///
        /// | variable | what it says |
        /// |---|---|
        $(#[doc = concat!("| `ULTRAMARINE_", stringify!($name), "` | ", $about, " |")])+
        pub const TABLE: &[Variable] = &[$($name),+];
    };
}

variables! {
    PES, Job, "the number of PEs that run as threads of one process (`--pes`)";
    LANE, Job, "what carries messages: `mpi`, `tcp` or `memory` (`--lane`)";
    THREADS, Job, "worker threads of each PE (`--threads`)";
    TOPOLOGY, Machine, "the topology file (`--topology`)";
    HOST_PATTERN, Machine, "how host names are read (`--host-pattern`)";
    CALIBRATE, Machine, "whether processes measure how fast they compute (`--calibrate`)";
    TRACE, Job, "the folder of the job's trace, if one is to be recorded (`--trace`)";
    CLOCK_SKEW, Job, "for testing: seconds and millionths by which clocks of traces are wrong";
    STATUS, Job, "the file that says how `ultramarine top` reaches the job (`--status`)";
    METRICS, Job, "the port or the file of metrics for Prometheus (`--metrics`)";
    GUARD, Machine, "`off`: no guard stands between launcher and process (`--guard`)";
    PORTS, Machine, "the ports that PEs listen on, as in `40000-40100` (`--ports`)";
    INTERFACE, Machine, "the network interface between hosts, by name or network (`--interface`)";
    BIND, Machine, "what each process must be bound to; `ultramarine run --bind` sets it";
    KILL_AT, Job, "for testing: when processes kill themselves, in seconds (`--kill-at`)";
    CHAOS_MONKEY, Job, "for testing: the seed of random deaths, or `random` (`--chaos-monkey`)";
    CHAOS_WITHIN, Job, "for testing: the time within which these happen (`--chaos-within`)";
    GAP, Machine, "the program GAP that computes for tasks, by name or path";
    LOG, Machine, "what the runtime logs: a level such as `debug`, or `module=level`";
    PROBE, Command, "the program that `ultramarine topo` and `doctor` start under MPI";
    GUARDED, Internal, "the guard of this process, and the way to it";
}

/// Makes a constant of the name of each foreign variable, their list, and its documentation.
macro_rules! foreign {
    ($(#[$about_list:meta])* $list:ident: $($name:ident, $about:literal;)+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: ", $about, ".")]
            pub const $name: &str = stringify!($name);
        )+

        $(#[$about_list])*
        ///
        /// | variable | what it says |
        /// |---|---|
        $(#[doc = concat!("| `", stringify!($name), "` | ", $about, " |")])+
        pub const $list: &[&str] = &[$($name),+];
    };
}
pub(crate) use foreign;

foreign! {
    /// Variables of other programs that users set, and that are heeded here:
    FOREIGN:
    NO_COLOR, "no colours in the log";
    OMP_NUM_THREADS, "the most threads of a process; of a list the first counts";
    RAYON_NUM_THREADS, "the most threads of a process; 0 says nothing";
    MPIEXEC, "the mpiexec that `ultramarine run` uses";
    MPICC, "when building: the compiler wrapper of the MPI to link with";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_whole_and_stands_once() {
        for (row, variable) in TABLE.iter().enumerate() {
            assert_eq!(variable.name, format!("{PREFIX}{}", variable.short_name()));
            assert_eq!(TABLE.iter().position(|other| other.name == variable.name), Some(row));
            assert_eq!(named(variable.name), Some(variable));
        }
        assert_eq!(named("ULTRAMARINE_PESS"), None);
    }
}
