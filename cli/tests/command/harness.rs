//! Running the command, and stand-ins for programs and launchers where their command lines matter.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
pub(crate) use ultramarine_testkit::{Ended, scrub};
use ultramarine_testkit::{eventually, finish, marked};

/// The longest that the command may run; reached only when the test fails.
const PATIENCE: Duration = Duration::from_mins(3);

/// The command with these arguments, in an environment without launchers and settings.
pub(crate) fn ultramarine<A: AsRef<OsStr>>(arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine"));
    scrub(command.args(arguments));
    command
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    finish(command, PATIENCE)
}

/// What launchers of the two families say of themselves.
pub(crate) const HYDRA: &str = "HYDRA build details: Version: 4.0.2";
pub(crate) const OPEN_MPI: &str = "mpiexec (OpenRTE) 4.1.4";

/// MPI libraries: their names, and a symbol of each.
pub(crate) const LIBMPICH: (&str, &str) = ("libmpich.so.12", "MPIR_stand_in");
pub(crate) const LIBMPI: (&str, &str) = ("libmpi.so.40", "ompi_mpi_comm_world");

/// A folder with stand-ins.
pub(crate) struct Stage {
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command").join(test);
        let _ = std::fs::remove_dir_all(&folder);
        for part in ["bin", "lib"] {
            std::fs::create_dir_all(folder.join(part)).expect("cargo gives tests a folder");
        }
        Stage { folder }
    }

    /// A stage with programs of both MPIs, and a launcher for each.
    pub(crate) fn with_both(test: &str) -> Self {
        let stage = Stage::new(test);
        stage.launcher("mpiexec", OPEN_MPI);
        stage.launcher("mpiexec.hydra", HYDRA);
        stage.program("of_mpich", &[LIBMPICH]);
        stage.program("of_open_mpi", &[LIBMPI]);
        stage
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    pub(crate) fn libraries(&self) -> PathBuf {
        self.folder.join("lib")
    }

    /// A script in `bin`.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let file = self.bin().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("the folder is our own");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("the file is our own");
        file.display().to_string()
    }

    /// A launcher that says whose it is, and shows what it was told.
    pub(crate) fn launcher(&self, name: &str, version: &str) -> String {
        let text = format!(
            "[ \"$1\" = --version ] && echo '{version}' && exit\nprintf '<%s>' \"$@\"\nexit 7"
        );
        self.script(name, &text)
    }

    /// An srun with these plugins.
    pub(crate) fn srun(&self, plugins: &str) -> String {
        let list = format!("MPI plugin types are...\n\tnone\n{plugins}");
        let text = format!(
            "[ \"$1\" = --mpi=list ] && echo '{list}' && exit\nprintf '<%s>' \"$@\"\nexit 7"
        );
        self.script("srun", &text)
    }

    /// A program that is linked with these libraries, made by the compiler that Rust links with.
    pub(crate) fn program(&self, name: &str, libraries: &[(&str, &str)]) -> String {
        let source = |name: &str, text: String| {
            let file = self.folder.join(name);
            std::fs::write(&file, text).expect("the folder is our own");
            file
        };
        let cc = |arguments: &mut Command| {
            let output = arguments.output().expect("Rust links with cc");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let mut files = Vec::new();
        for (library, symbol) in libraries {
            let file = self.libraries().join(library);
            let text = source("library.c", format!("int {symbol};\n"));
            let soname = format!("-Wl,-soname,{library}");
            cc(Command::new("cc").args(["-shared", "-fPIC", &soname, "-o"]).arg(&file).arg(text));
            files.push(file);
        }
        let symbols = || libraries.iter().map(|(_, symbol)| *symbol);
        let declared: String =
            symbols().map(|symbol| ["extern int ", symbol, ";\n"].concat()).collect();
        let used: String = symbols().map(|symbol| [" + ", symbol].concat()).collect();
        let text = source("main.c", format!("{declared}int main(void) {{ return 0{used}; }}\n"));
        let program = self.bin().join(name);
        let rpath = format!("-Wl,-rpath,{}", self.libraries().display());
        cc(Command::new("cc").arg(text).arg("-o").arg(&program).args(files).arg(rpath));
        program.display().to_string()
    }

    /// How `ultramarine run` ends with these arguments and variables.
    pub(crate) fn run(&self, arguments: &str, variables: &[(&str, &str)]) -> Ended {
        let mut command = self.ultramarine(&format!("run {arguments}"));
        run(command.envs(variables.iter().copied()))
    }

    /// The command, with nothing but this folder's programs on `PATH`.
    pub(crate) fn ultramarine(&self, arguments: &str) -> Command {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let mut command = ultramarine(&arguments);
        command.env("PATH", self.bin()).env_remove("LD_LIBRARY_PATH");
        command.env_remove("HYDRA_LAUNCHER").env_remove("HYDRA_LAUNCHER_EXEC");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

/// Variables of an allocation of two nodes with four CPUs each.
pub(crate) const ALLOCATION: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "4711"),
    ("SLURM_NTASKS", "6"),
    ("SLURM_JOB_NUM_NODES", "2"),
    ("SLURM_JOB_CPUS_PER_NODE", "4(x2)"),
];

/// A mark in the environment of all processes that one test starts.
pub(crate) const MARK: &str = "MARK_FOR_TESTS";

/// Waits until no process has the mark; those that are ending may take a moment.
pub(crate) fn nothing_is_left(mark: &str) {
    eventually("no process is left", || marked(MARK, mark).is_empty());
}

/// Waits until a stand-in has made this file.
pub(crate) fn is_there(file: &Path) {
    eventually("the stand-in has begun", || file.exists());
}
