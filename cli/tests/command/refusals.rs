//! What is said about bad input: a line with what is wrong, and what to do.

use crate::harness::{ALLOCATION, LIBMPI, LIBMPICH, OPEN_MPI, Stage, run};

/// The code of launchers that show what they were told.
const STARTED: Option<i32> = Some(7);

/// The line with which it refuses, with the folder of the stand-ins left out.
fn refusal(stage: &Stage, arguments: &str, variables: &[(&str, &str)]) -> String {
    let line = stage.run(arguments, variables).refuses();
    line.replace(&format!("{}/", stage.bin().display()), "")
}

#[test]
fn no_launcher() {
    let stage = Stage::new("no-launcher");
    stage.program("of_mpich", &[LIBMPICH]);
    let refused = |arguments, variables| refusal(&stage, arguments, variables);
    let none = "none of mpiexec.mpich, mpiexec.hydra, mpiexec, mpirun on PATH or beside the \
                library belongs to it";
    let start = "no launcher found for MPICH (`of_mpich` is linked with libmpich.so.12): ";
    let end = "; install it or load its module, or let MPIEXEC name it";
    assert_eq!(refused("of_mpich", &[]), format!("{start}{none}{end}"));
    // Another MPI's does not count.
    stage.launcher("mpiexec", OPEN_MPI);
    assert_eq!(refused("of_mpich", &[]), format!("{start}{none}{end}"));
    let both = format!("{start}srun cannot be used (it is not on PATH), and {none}{end}");
    assert_eq!(refused("of_mpich", &ALLOCATION), both);
    assert_eq!(
        refused("--launcher srun of_mpich", &ALLOCATION),
        "srun cannot be used (it is not on PATH): load Slurm's module, or leave out `--launcher \
         srun`"
    );
    for named in ["nowhere", "/nowhere"] {
        let refused = refusal(&stage, "of_mpich", &[("MPIEXEC", named)]);
        let what = format!("MPIEXEC names `{named}`, which is no program");
        assert_eq!(refused, format!("{what}: mend MPIEXEC, or unset it"));
    }
}

#[test]
fn a_launcher_of_another_mpi() {
    let stage = Stage::with_both("another-mpi");
    assert_eq!(
        refusal(&stage, "--launcher openmpi of_mpich", &[]),
        "Open MPI's mpiexec cannot start `of_mpich`, which is linked with MPICH (libmpich.so.12): \
         each process would be a world of its own. Leave out --launcher, and the right one is found"
    );
    assert_eq!(
        refusal(&stage, "of_open_mpi", &[("MPIEXEC", "mpiexec.hydra")]),
        "mpiexec.hydra cannot start `of_open_mpi`, which is linked with Open MPI (libmpi.so.40): \
         each process would be a world of its own. Let MPIEXEC name another, or unset it"
    );
    stage.srun("\tpmi2");
    assert_eq!(
        refusal(&stage, "--launcher srun of_open_mpi", &ALLOCATION),
        "srun of this cluster cannot connect Open MPI processes: `srun --mpi=list` has no pmix (it \
         has none, pmi2); leave out `--launcher srun`, or build with the other MPI"
    );
}

#[test]
fn no_mpi_or_two_or_a_missing_one() {
    let stage = Stage::new("which-mpi");
    stage.program("without", &[]);
    assert_eq!(
        refusal(&stage, "without", &[]),
        "`without` is linked with no MPI library: build it with the default features of \
         `ultramarine` (MPICC names the MPI's compiler wrapper), or start it as it is, with \
         ULTRAMARINE_PES=4 for four PEs in one process"
    );
    stage.program("mixed", &[LIBMPICH, LIBMPI]);
    assert_eq!(
        refusal(&stage, "mixed", &[]),
        "`mixed` needs two MPIs, libmpich.so.12 (MPICH) and libmpi.so.40 (Open MPI), which cannot \
         work in one process: build it and the libraries that it uses anew with one MPICC (after \
         `cargo clean`)"
    );
    // No machine has one of this name.
    stage.program("missing", &[("libmpich.so.4711", "MPIR_stand_in")]);
    std::fs::remove_file(stage.libraries().join("libmpich.so.4711")).expect("it was made");
    assert_eq!(
        refusal(&stage, "missing", &[]),
        "`missing` needs libmpich.so.4711, which is not found on this host: load the module that \
         has it, or add its folder to LD_LIBRARY_PATH"
    );
    stage.script("script", "exec program");
    assert_eq!(
        refusal(&stage, "script", &[]),
        "`script` is no binary (a script), so that it cannot be seen which MPI it needs: name the \
         program itself rather than a script that starts it"
    );
}

#[test]
fn no_program() {
    let stage = Stage::new("no-program");
    assert_eq!(
        refusal(&stage, "nothing", &[]),
        "there is no program `nothing` on PATH or beside this command: give its path"
    );
    assert_eq!(
        refusal(&stage, "./nothing", &[]),
        "there is no file `./nothing`: build the program first, or mend the path"
    );
    assert_eq!(
        refusal(&stage, "/etc/passwd", &[]),
        "`/etc/passwd` cannot be executed: if it is the right file, `chmod +x` makes it a program"
    );
}

#[test]
fn an_allocation_that_is_too_small() {
    let stage = Stage::with_both("too-small");
    stage.srun("\tpmi2");
    assert_eq!(
        refusal(&stage, "-n 9 of_mpich", &ALLOCATION),
        "9 processes are asked for, but allocation 4711 has room for 8 (SLURM_JOB_CPUS_PER_NODE): \
         ask Slurm for more (sbatch -n 9), for fewer here, or let several share a CPU with \
         SLURM_OVERCOMMIT=1"
    );
    assert_eq!(
        refusal(&stage, "-N 3 of_mpich", &ALLOCATION),
        "3 nodes are asked for, but allocation 4711 has 2 (SLURM_JOB_NUM_NODES): ask Slurm for \
         more (sbatch -N 3), or for fewer here"
    );
    let tasks = refusal(&stage, "-n 7 of_mpich", &ALLOCATION[..2]);
    assert!(tasks.contains("allocation 4711 has room for 6 (SLURM_NTASKS)"), "{tasks}");
}

#[test]
fn a_host_that_is_not_in_the_allocation() {
    let stage = Stage::with_both("not-allocated");
    stage.srun("\tpmi2");
    let given = [&ALLOCATION[..], &[("SLURM_JOB_NODELIST", "n[1-2]")]].concat();
    for launcher in ["srun", "hydra"] {
        assert_eq!(
            refusal(&stage, &format!("--launcher {launcher} --hosts n2,nowhere of_mpich"), &given),
            "--hosts names `nowhere`, and allocation 4711 has n[1-2] (SLURM_JOB_NODELIST): name \
             hosts of these, or ask Slurm for that one (sbatch --nodelist=nowhere)"
        );
    }
    assert_eq!(stage.run("--hosts n[1-2] of_mpich", &given).code, STARTED, "by srun");
}

#[test]
fn a_part_of_a_heterogeneous_job() {
    let stage = Stage::with_both("heterogeneous");
    stage.srun("\tpmi2");
    let parts = [&ALLOCATION[..], &[("SLURM_HET_SIZE", "2")]].concat();
    assert_eq!(
        refusal(&stage, "of_mpich", &parts),
        "this job has 2 components (SLURM_HET_SIZE), and srun would use the first alone: start it \
         as slurm/heterogeneous.sbatch does, or name them after `--`, as in --het-group=0,1"
    );
    for flags in ["--het-group=0,1", "--het-group 0-1"] {
        assert_eq!(stage.run(&format!("of_mpich -- {flags}"), &parts).code, STARTED, "by srun");
    }
    for flags in ["", " -- --het-group=0,1"] {
        assert_eq!(
            refusal(&stage, &format!("--launcher hydra of_mpich{flags}"), &parts),
            "this job has 2 components (SLURM_HET_SIZE), and mpiexec.hydra would start on the \
             first alone: only srun starts on several, as in slurm/heterogeneous.sbatch"
        );
    }
}

#[test]
fn more_than_this_host_can_give() {
    let stage = Stage::with_both("this-host");
    assert_eq!(
        refusal(&stage, "-N 2 of_mpich", &[]),
        "2 hosts are asked for, but only this one is known: name them (--hosts a,b), or start \
         inside a Slurm allocation (salloc, sbatch)"
    );
    assert_eq!(
        refusal(&stage, "-n 3 --per-host 2 of_mpich", &[]),
        "3 processes do not fit on one host with at most 2 on each: ask for fewer, or for more per \
         host"
    );
    if cfg!(not(feature = "hwloc")) {
        println!("skipped: without hwloc nothing is known of this host");
        return;
    }
    let bound = refusal(&stage, "--bind numa --per-host 100000 of_mpich", &[]);
    let start =
        "--bind numa wants 100000 NUMA nodes on this host, one for each process, and it has ";
    let end = ": ask for fewer processes, or leave out --bind";
    assert!(bound.starts_with(start) && bound.ends_with(end), "{bound}");
}

#[test]
fn a_host_without_an_address() {
    let stage = Stage::with_both("no-address");
    // No name service may have a name that ends so.
    let arguments = "-n 2 --hosts localhost,nowhere.invalid";
    for program in ["of_mpich", "of_open_mpi"] {
        assert_eq!(
            refusal(&stage, &format!("{arguments} {program}"), &[]),
            "--hosts: `nowhere.invalid` stands for no address: mend the name, or use the one the \
             name service has"
        );
    }
    stage.run(&format!("--dry-run {arguments} of_mpich"), &[]).succeeded();
    let ended = stage.run("-n 2 --hosts localhost of_mpich", &[]);
    assert_eq!(ended.code, STARTED, "{}", ended.err);
}

#[test]
fn a_host_that_cannot_be_reached() {
    let stage = Stage::with_both("unreachable");
    // An address that no host has.
    let arguments = "-n 2 --hosts localhost,198.51.100.1";
    let refused =
        |variables: &[(&str, &str)]| refusal(&stage, &format!("{arguments} of_mpich"), variables);
    let code = |arguments: &str, variables: &[(&str, &str)]| stage.run(arguments, variables).code;
    let mend = |agent| format!("see that `{agent} 198.51.100.1 true` works without a password");
    // It shows what it was told.
    stage.script("ssh", "echo \"ssh: $*\" >&2; exit 255");
    assert_eq!(
        refused(&[]),
        format!(
            "`198.51.100.1` cannot be reached (ssh: -oBatchMode=yes 198.51.100.1 true): {}",
            mend("ssh")
        )
    );
    let agent = stage.script("agent", "echo \"$*\" >&2; exit 1");
    assert_eq!(
        refused(&[("HYDRA_LAUNCHER_EXEC", &agent)]),
        format!("`198.51.100.1` cannot be reached (agent: 198.51.100.1 true): {}", mend("agent"))
    );
    assert_eq!(code(&format!("--dry-run {arguments} of_mpich"), &[]), Some(0));
    assert_eq!(code("-n 2 --hosts localhost of_mpich", &[]), STARTED, "this host needs no ssh");
    // Open MPI's mpiexec says itself that it cannot, and ends.
    assert_eq!(code(&format!("{arguments} of_open_mpi"), &[]), STARTED);
    // Other launchers need no ssh.
    assert_eq!(code(&format!("{arguments} of_mpich -- -launcher x"), &[]), STARTED);
    assert_eq!(code(&format!("--launcher hydra {arguments} of_mpich"), &ALLOCATION), STARTED);
    stage.script("ssh", "PATH=/usr/bin:/bin; exec sleep 1000");
    assert_eq!(
        refused(&[]),
        format!("`198.51.100.1` cannot be reached (ssh: no answer in 10s): {}", mend("ssh"))
    );
    stage.script("ssh", "");
    assert_eq!(code(&format!("{arguments} of_mpich"), &[]), STARTED);
}

#[test]
fn a_slurm_that_does_not_bind() {
    let stage = Stage::with_both("does-not-bind");
    stage.srun("\tpmi2");
    let code = |arguments: &str| stage.run(&format!("{arguments} of_mpich"), &ALLOCATION).code;
    assert_eq!(code("--bind numa"), STARTED, "there is no scontrol to be asked");
    let scontrol = |text: &str| stage.script("scontrol", text);
    let config = |plugin: &str| scontrol(&format!("echo 'TaskPlugin              = {plugin}'"));
    config("task/none");
    assert_eq!(
        refusal(&stage, "--bind numa of_mpich", &ALLOCATION),
        "--bind numa was asked for, but this cluster's Slurm does not bind (TaskPlugin = \
         task/none): ask its administrator, or leave out --bind"
    );
    assert_eq!([code("--bind none"), code("")], [STARTED; 2], "nothing is to be bound");
    assert_eq!(code("--dry-run --bind numa"), Some(0));
    config("task/affinity,task/cgroup");
    assert_eq!(code("--bind numa"), STARTED);
    scontrol("echo 'TaskPlugin = task/none'; exit 1");
    assert_eq!(code("--bind numa"), STARTED, "what fails is not believed");
}

#[test]
fn a_number_of_nothing() {
    let stage = Stage::new("nothing");
    for arguments in ["-n 0 sh", "-N 0 sh", "--per-host 0 sh"] {
        let ended = stage.run(arguments, &[]);
        let first = ended.err.lines().next().unwrap_or_default();
        assert_eq!(ended.code, Some(2));
        assert!(first.starts_with("error: invalid value '0' for '"), "{first}");
        assert!(first.ends_with(": at least one is needed"), "{first}");
    }
    let ended = stage.run("-n 3", &[]);
    assert!(ended.code == Some(2) && ended.err.contains("<PROGRAM>"), "{}", ended.err);
}

#[test]
fn a_job_inside_a_job() {
    let stage = Stage::with_both("inside");
    assert_eq!(
        refusal(&stage, "of_mpich", &[("PMI_SIZE", "4"), ("PMI_RANK", "2")]),
        "PMI_SIZE says that a launcher has started this process already: under mpiexec or srun, \
         start the program itself instead of `ultramarine run`"
    );
    let step = [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
    let said = refusal(&stage, "of_mpich", &step);
    assert!(said.starts_with("SLURM_NTASKS says that a launcher has started"), "{said}");
}

#[test]
fn a_job_in_a_shell_that_is_a_step() {
    let stage = Stage::with_both("step");
    let step = [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
    assert_eq!(
        refusal(&stage, "of_mpich", &[&ALLOCATION[..1], &step].concat()),
        "this shell is a step of Slurm (srun --pty), in which no job can be started: get one with \
         `salloc`"
    );
}

#[test]
fn open_mpi_does_not_work_for_root() {
    let stage = Stage::with_both("root");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    if !is_root {
        println!("skipped: only root is refused");
        return;
    }
    let mut command = stage.ultramarine("run -n 2 of_open_mpi");
    command.env_remove("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
    assert_eq!(
        run(&mut command).refuses(),
        "Open MPI's mpiexec refuses to work for root: set OMPI_ALLOW_RUN_AS_ROOT=1 and \
         OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 (in a container that is all right), or add \
         `-- --allow-run-as-root` at the end"
    );
    let mut command = stage.ultramarine("run -n 2 of_open_mpi -- --allow-run-as-root");
    command.env_remove("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
    assert_eq!(run(&mut command).code, STARTED);
}
