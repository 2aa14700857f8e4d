//! What each launcher is told, with stand-ins for the launchers and for programs of each MPI.

use crate::harness::{ALLOCATION, HYDRA, Stage, run};

/// The line, with the folder of the stand-ins left out.
fn line(stage: &Stage, arguments: &str, variables: &[(&str, &str)]) -> String {
    let ended = stage.run(&format!("--dry-run {arguments}"), variables);
    let line = ended.succeeded().replace(&format!("{}/", stage.bin().display()), "");
    line.strip_suffix('\n').expect("a line").to_owned()
}

#[test]
fn a_program_of_mpich_is_started_by_hydra() {
    let stage = Stage::with_both("hydra");
    let line = |arguments| line(&stage, arguments, &[]);
    assert_eq!(line("-n 3 of_mpich"), "mpiexec.hydra -n 3 of_mpich");
    assert_eq!(
        line("-n 3 of_mpich -n 5 $HOME -- -iface eth0"),
        "mpiexec.hydra -n 3 -iface eth0 of_mpich -n 5 '$HOME'"
    );
    assert_eq!(
        line("-n 5 --hosts a,b --bind core of_mpich"),
        "mpiexec.hydra -n 5 -hosts a:3,b:2 -bind-to core of_mpich"
    );
    assert_eq!(
        line("-n 3 --hosts n[09-10],m of_mpich"),
        "mpiexec.hydra -n 3 -hosts n09:1,n10:1,m:1 of_mpich"
    );
    assert_eq!(
        line("--hosts a,b --per-host 2 of_mpich -- --"),
        "mpiexec.hydra -n 4 -hosts a:2,b:2 of_mpich --"
    );
}

#[test]
fn a_program_of_open_mpi_is_started_by_its_mpiexec() {
    let stage = Stage::with_both("open-mpi");
    let settings = [("ULTRAMARINE_LOG", "info"), ("ULTRAMARINE_PORTS", "40000-40100")];
    assert_eq!(line(&stage, "-n 1 of_open_mpi", &[]), "mpiexec -n 1 --bind-to none of_open_mpi");
    assert_eq!(
        line(&stage, "-n 4 --hosts a,b --bind package of_open_mpi", &settings),
        "mpiexec -n 4 --bind-to socket --host a:2,b:2 -x ULTRAMARINE_LOG \
         -x ULTRAMARINE_PORTS -x 'ULTRAMARINE_BIND=package' of_open_mpi"
    );
    if cfg!(feature = "hwloc") {
        assert_eq!(
            line(&stage, "-n 100000 of_open_mpi", &[]),
            "mpiexec -n 100000 --bind-to none --map-by :OVERSUBSCRIBE of_open_mpi"
        );
    }
}

#[test]
fn inside_an_allocation_srun_starts_what_it_can_connect() {
    let stage = Stage::with_both("srun");
    let flags = "--no-kill --kill-on-bad-exit=0 --wait=0 --disable-status";
    stage.srun("\tpmi2");
    assert_eq!(
        line(&stage, "of_mpich", &ALLOCATION),
        format!("srun --mpi=pmi2 {flags} --ntasks=6 --cpu-bind=none of_mpich")
    );
    assert_eq!(
        line(&stage, "-n 4 -N 2 --per-host 2 --bind numa of_mpich x -- --label", &ALLOCATION),
        format!(
            "srun --mpi=pmi2 {flags} --ntasks=4 --nodes=2 --ntasks-per-node=2 --cpu-bind=ldoms \
             --label of_mpich x"
        )
    );
    assert_eq!(
        line(&stage, "--hosts n1 of_mpich", &ALLOCATION),
        format!(
            "srun --mpi=pmi2 {flags} --ntasks=3 --nodes=1 --nodelist=n1 --cpu-bind=none of_mpich"
        )
    );
    // It has no plugin for Open MPI, whose mpiexec knows about Slurm by itself.
    let open_mpi = line(&stage, "of_open_mpi", &ALLOCATION);
    assert_eq!(open_mpi, "mpiexec -n 6 --bind-to none of_open_mpi");
    let wide = [&ALLOCATION[..], &[("SLURM_CPUS_PER_TASK", "2")]].concat();
    stage.srun("\tpmi2\n\tpmix_v4");
    assert_eq!(
        line(&stage, "-n 4 of_open_mpi", &wide),
        format!("srun --mpi=pmix_v4 {flags} --ntasks=4 --cpus-per-task=2 of_open_mpi")
    );
    // A choice of cores is left alone.
    let hint = [&ALLOCATION[..], &[("SLURM_HINT", "nomultithread")]].concat();
    for (variables, flag) in [(&ALLOCATION[..], " --cpu-bind=cores"), (&hint, "")] {
        assert_eq!(
            line(&stage, &format!("of_mpich --{flag}"), variables),
            format!("srun --mpi=pmi2 {flags} --ntasks=6{flag} of_mpich")
        );
    }
    let by_hydra = line(&stage, "--launcher hydra of_mpich", &ALLOCATION);
    assert_eq!(by_hydra, "mpiexec.hydra -n 6 of_mpich");
    let on_both = line(&stage, "--launcher hydra -N 2 -n 2 of_mpich", &ALLOCATION);
    assert_eq!(on_both, "mpiexec.hydra -n 2 -ppn 1 of_mpich");
    let on_one = line(&stage, "--launcher openmpi -N 1 of_open_mpi", &ALLOCATION);
    assert_eq!(on_one, "mpiexec -n 3 --bind-to none --map-by ppr:3:node of_open_mpi");
}

#[test]
fn components_of_a_heterogeneous_job_keep_their_own_numbers() {
    let stage = Stage::with_both("components");
    stage.srun("\tpmi2");
    // All but the last is about the first component.
    let parts = [
        ("SLURM_JOB_ID", "4711"),
        ("SLURM_NTASKS", "1"),
        ("SLURM_JOB_NUM_NODES", "1"),
        ("SLURM_JOB_NODELIST", "n1"),
        ("SLURM_JOB_CPUS_PER_NODE", "4"),
        ("SLURM_CPUS_PER_TASK", "4"),
        ("SLURM_HET_SIZE", "2"),
    ];
    let start = "srun --mpi=pmi2 --no-kill --kill-on-bad-exit=0 --wait=0 --disable-status";
    for (asked, told) in [
        ("", " --cpu-bind=none"),
        ("-n 4", " --ntasks=4 --cpu-bind=none"),
        ("-N 2 --per-host 3", " --nodes=2 --ntasks-per-node=3 --cpu-bind=none"),
        ("--bind core", " --cpu-bind=cores"),
    ] {
        assert_eq!(
            line(&stage, &format!("{asked} of_mpich -- --het-group=0,1"), &parts),
            format!("{start}{told} --het-group=0,1 of_mpich")
        );
    }
    // Outside of such a job the flag changes nothing.
    assert_eq!(
        line(&stage, "of_mpich -- --het-group=0", &ALLOCATION),
        format!("{start} --ntasks=6 --cpu-bind=none --het-group=0 of_mpich")
    );
}

#[test]
fn odd_variables_are_lived_with() {
    let stage = Stage::with_both("odd");
    for cpus in ["4294967295(x2)", "1,1(x18446744073709551615)"] {
        let odd = [&ALLOCATION[..3], &[("SLURM_JOB_CPUS_PER_NODE", cpus)]].concat();
        assert_eq!(line(&stage, "-n 2 of_mpich", &odd), "mpiexec.hydra -n 2 of_mpich");
    }
}

#[test]
fn the_mpiexec_that_was_installed_with_the_library_comes_first() {
    let (stage, elsewhere) = (Stage::with_both("beside"), Stage::new("elsewhere"));
    let foreign = elsewhere.launcher("mpiexec.mpich", HYDRA);
    let program = stage.bin().join("of_mpich").display().to_string();
    let shown = |variables: &[(&str, &str)]| {
        let mut command = stage.ultramarine(&format!("run -n 2 --dry-run {program}"));
        command.env("PATH", elsewhere.bin()).envs(variables.iter().copied());
        run(&mut command).succeeded().to_owned()
    };
    let own = stage.bin().join("mpiexec.hydra").display().to_string();
    assert_eq!(shown(&[]), format!("{own} -n 2 {program}\n"));
    let named = [("MPIEXEC", "mpiexec.mpich")];
    assert_eq!(shown(&named), format!("{foreign} -n 2 {program}\n"));
    std::fs::remove_file(own).expect("it was made");
    assert_eq!(shown(&[]), format!("{foreign} -n 2 {program}\n"));
}

#[test]
fn the_command_becomes_the_launcher() {
    let stage = Stage::with_both("exec");
    let ended = stage.run("-n 2 of_mpich x", &[]);
    let program = stage.bin().join("of_mpich");
    assert_eq!(ended.code, Some(7), "the launcher's code");
    assert_eq!(ended.out, format!("<-n><2><{}><x>", program.display()));
}

#[test]
fn it_is_said_why_srun_does_not_start_the_job() {
    let stage = Stage::with_both("not-srun");
    stage.script("srun", "echo 'srun: fatal: no configuration' >&2; exit 1");
    let ended = stage.run("-n 2 of_mpich", &ALLOCATION);
    let mpiexec = stage.bin().join("mpiexec.hydra");
    let said = format!(
        "ultramarine: srun cannot be used (`srun --mpi=list` fails: srun: fatal: no \
         configuration): {} starts the job\n",
        mpiexec.display()
    );
    assert_eq!((ended.code, ended.err), (Some(7), said));
}
