//! The batch scripts, as users submit them.

use super::{Folder, the_command};
use crate::common::cluster::{Cluster, run};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ultramarine_journal::inspect;
use ultramarine_testkit::eventually;

/// A folder with the programs of this build, where the scripts look for them. `None`: the examples
/// are not built.
fn with_programs() -> Option<Folder> {
    let program = Path::new(the_command()).with_file_name("sum_euler");
    if !program.exists() {
        println!("skipped: the examples are not built");
        return None;
    }
    let folder = Folder::new();
    let release = folder.join("target/release");
    std::fs::create_dir_all(&release).expect("the folder is ours");
    let gap = Path::new(the_command()).with_file_name("ultramarine-gap");
    for program in [Path::new(the_command()), &program, &gap] {
        let name = program.file_name().expect("it has one");
        std::os::unix::fs::symlink(program, release.join(name)).expect("the folder is ours");
    }
    Some(folder)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm")
}

fn script(name: &str) -> String {
    let path = scripts().join(format!("{name}.sbatch"));
    std::fs::read_to_string(path).expect("it is in the repository")
}

/// Submits a script as a user does, but with the programs of this build in `folder`, and less work:
/// seconds are more than a test needs. Returns the job's number.
fn submit(
    cluster: &Cluster,
    folder: &Folder,
    name: &str,
    flags: &[&str],
    arguments: &[&str],
) -> String {
    let mut sbatch = cluster.on("login");
    sbatch.args(["sbatch", "--parsable", &format!("--output={name}")]).args(flags);
    let shorter = folder.join(&format!("{name}.sbatch"));
    let shorter_sum = |text: String, sum| text.replace(sum, "--upto 8000");
    let text =
        ["--upto 100000 --tasks 2000", "--upto 20000"].into_iter().fold(script(name), shorter_sum);
    // `sbatch --wait` looks only now and then whether it has ended.
    std::fs::write(&shorter, text + "\necho \"ended with $?\"\n").expect("the folder is ours");
    sbatch.arg("--chdir").arg(folder.0.path()).arg(shorter).args(arguments);
    let ended = run(sbatch);
    assert!(ended.is_success, "{name}: {}", ended.err);
    ended.out.trim().to_owned()
}

/// Waits until a submitted script has ended well. Returns its output.
fn output(folder: &Folder, name: &str) -> String {
    let read = || std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    // Slurm looks at times of jobs twice a minute.
    let start = Instant::now();
    while !read().contains("ended with ") {
        assert!(start.elapsed() < Duration::from_mins(2), "{name} does not end: {}", read());
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = read();
    assert!(out.contains("ended with 0\n"), "{name}: {out}");
    out
}

/// What `walltime.sbatch` prints when it was asked to end: a part of the result.
fn is_partial(out: &str) {
    let json = out.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let report = json.unwrap_or_else(|| panic!("{out}"));
    let (ranges, of) = (report["ranges"].as_u64(), report["of"].as_u64());
    assert!(ranges > Some(0) && ranges < of, "{out}");
}

/// `numa.sbatch` cannot run here: this Slurm does not bind.
#[test]
fn batch_scripts_do_what_they_say() {
    let Some(cluster) = Cluster::up() else { return };
    let Some(folder) = with_programs() else { return };
    for name in ["plain", "requeue", "no-kill", "heterogeneous"] {
        submit(&cluster, &folder, name, &[], &[]);
        let out = output(&folder, name);
        assert!(out.contains("): 19455782"), "{name}: {out}");
        if name == "heterogeneous" {
            assert!(out.contains(": 5 PEs"), "{out}");
        }
    }
}

/// The tasks wait for each other, and so run on two hosts.
const GAP_SCRIPT: &str = r#"
host := function(x)
    PrintTo(Concatenation("begun", String(x)), x);
    repeat Sleep(0); until ForAll([1, 2], y -> IsExistingFile(Concatenation("begun", String(y))));
    return Chomp(ReadLine(InputTextFile("/proc/sys/kernel/hostname")));
end;;
Print(Set(ParMap(host, [1, 2])), "\n");
"#;

#[test]
fn gap_computes_on_all_hosts_of_a_script() {
    // GAP 4.12 crashes when it is asked for its version.
    let mut gap = Command::new("gap");
    gap.args(["-q", "-A", "-c", "QuitGap(0);"]).stdin(Stdio::null());
    if !gap.output().is_ok_and(|ended| ended.status.success()) {
        println!("skipped: GAP is not installed");
        return;
    }
    let Some(cluster) = Cluster::up() else { return };
    let Some(folder) = with_programs() else { return };
    std::fs::write(folder.join("hosts.g"), GAP_SCRIPT).expect("the folder is ours");
    submit(&cluster, &folder, "gap", &["--nodelist=r1n2,r2n1"], &["hosts.g"]);
    let out = output(&folder, "gap");
    assert!(out.contains("[ \"r1n2\", \"r2n1\" ]"), "{out}");
}

/// The signal is the one that Slurm sends before the time is up, to the same processes.
#[test]
fn a_script_that_is_asked_to_end_prints_what_it_has() {
    let Some(cluster) = Cluster::up() else { return };
    let Some(folder) = with_programs() else { return };
    let job = submit(&cluster, &folder, "walltime", &[], &[]);
    let slurm = |words: &[&str]| cluster.run_on("login", words).out;
    let step = format!("{job}.0");
    eventually("the processes run", || slurm(&["squeue", "--steps", "--noheader"]).contains(&step));
    // In the first moments there may be no process yet to hear it.
    std::thread::sleep(Duration::from_secs(2));
    slurm(&["scancel", "--signal=TERM", &job]);
    is_partial(&output(&folder, "walltime"));
}

/// Two minutes instead of ten. Slurm looks twice a minute, and sends the signal if its next look
/// would be too late: here at its first look when ten seconds have passed.
#[test]
#[ignore = "takes a minute"]
fn slurm_asks_a_script_to_end_before_its_time_is_up() {
    let Some(cluster) = Cluster::up() else { return };
    let Some(folder) = with_programs() else { return };
    submit(&cluster, &folder, "walltime", &["--time=2", "--signal=TERM@80"], &[]);
    is_partial(&output(&folder, "walltime"));
}

/// A job that is told that its time is nearly up, as Slurm does two minutes before, goes on in its
/// next allocation, and computes the rest.
#[test]
fn a_job_goes_on_in_its_next_allocation() {
    let Some(cluster) = Cluster::up() else { return };
    let Some(folder) = with_programs() else { return };
    let text = script("requeue").replace("--upto 20000", "--upto 12000 --tasks 1000");
    std::fs::write(folder.join("script"), text).expect("the folder is ours");
    let slurm = |words: &[&str]| cluster.run_on("login", words);
    let own = folder.0.path().to_str().expect("it is a plain path");
    let batch = slurm(&["sh", "-c", "cd $0; sbatch --parsable --output=out script", own]);
    let job = batch.out.trim();
    let journal = folder.join(&format!("sum_euler-{job}.journal"));
    let done = || inspect(&journal).map_or(0, |found| found.report.done.count());
    eventually("results are in the journal", || done() > 50);
    slurm(&["scancel", "--batch", "--signal=USR1", job]);
    let out = || std::fs::read_to_string(folder.join("out")).unwrap_or_default();
    eventually("the job is ended", || out().contains("DUE TO JOB REQUEUE"));
    assert!(done() < 1000, "it was over before: {}", out());
    // In the queue again it would wait for two minutes, in case that its nodes are not ready. (It
    // cannot be told otherwise before it is there.) On a busy machine nodes seem to be away. A node
    // that has ended a job refuses to start it in the same second ("job credential revoked"), and
    // then the job is over.
    std::thread::sleep(Duration::from_secs(2));
    let limit = Duration::from_mins(2);
    let start = Instant::now();
    while !out().contains("attempt 2 of job") {
        let queue = slurm(&["squeue", "--format=%i %T %r %N"]).out;
        assert!(start.elapsed() < limit, "it does not run again: {queue}\n{}", out());
        slurm(&["scontrol", "update", &format!("JobId={job}"), "StartTime=now"]);
        std::thread::sleep(Duration::from_secs(1));
    }
    let start = Instant::now();
    while !out().contains("): 43772258") {
        assert!(start.elapsed() < limit, "it does not end: {}", out());
        std::thread::sleep(Duration::from_millis(20));
    }
    let found = inspect(&journal).expect("it is there").report;
    assert_eq!((found.done.count(), found.records_repeated), (1000, 0), "none came home twice");
}

#[test]
fn batch_scripts_are_accepted() {
    let Some(cluster) = Cluster::up() else { return };
    let entries = std::fs::read_dir(scripts()).expect("it is in the repository");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let scripts: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == "sbatch")).collect();
    assert!(scripts.len() >= 6, "{scripts:?}");
    for script in scripts {
        let mut sbatch = cluster.on("login");
        sbatch.args(["sbatch", "--test-only"]).arg(&script);
        let ended = run(sbatch);
        let is_fine = ended.is_success && ended.err.contains("to start at");
        assert!(is_fine, "{}: {}{}", script.display(), ended.out, ended.err);
        let mut bash = Command::new("bash");
        bash.arg("-n").arg(&script);
        let read = run(bash);
        assert!(read.is_success, "{}", read.err);
    }
}
