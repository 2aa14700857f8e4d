//! Guards and children under a real launcher. The tests start this very file under it, which runs
//! one of the programs below instead of tests, and kill some of the processes.

mod programs;

use super::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use ultramarine_testkit::{eventually, eventually_within, launcher};

/// How long processes may stay after their launcher has ended.
const STRAYS_END_WITHIN: Duration = Duration::from_secs(15);

/// How long the job of these tests bears with a child that is stopped, at the start or later.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// Longer than that, and than a guard waits for the others' verdict.
const STOPPED_TOO_LONG: Duration = Duration::from_secs(6);

/// Far beyond all patience of the tests: how long children wait, lest they end by themselves when
/// it is their guard that should end them.
const CHILDREN_WAIT: Duration = Duration::from_secs(400);

/// The variable by which all processes of a test are known; its value is the test's folder.
const FOLDER: &str = "GUARD_TEST_FOLDER";

/// The variable that says which program a process is to run.
const PROGRAM: &str = "GUARD_TEST_PROGRAM";

/// The file with what the processes of a job say.
const SAID: &str = "said";

/// How the names of files end in which children say what they have in shared memory.
const SEGMENTS: &str = "segments";

#[test]
fn a_mark_says_what_was_done() {
    assert_eq!(Mark::read(None), Mark::None);
    assert_eq!(Mark::read(Some("12:7")), Mark::Guarded { guard: 12, channel: 7 });
    assert_eq!(Mark::read(Some("no room")), Mark::Failed("no room".to_owned()));
    assert!(matches!(Mark::read(Some(BEGIN)), Mark::Failed(_)));
}

#[test]
fn the_program_is_known_by_its_name() {
    assert_eq!(Some(own_file()), std::env::current_exe().ok());
}

#[test]
fn a_process_alone_or_without_a_wish_for_a_guard_has_none() {
    let own = std::process::id();
    let launched = |processes| Launched { variable: "PMI_SIZE", processes, rank: 0 };
    let unwanted = install(launched(3), false, STALLED_AFTER, String::new, |_, _| {});
    let alone = install(launched(1), true, STALLED_AFTER, String::new, |_, _| {});
    assert!(!unwanted.is_guarded() && !alone.is_guarded());
    assert_eq!(std::process::id(), own);
}

/// A job under the launcher that belongs to this build.
struct Running {
    folder: PathBuf,
    launcher: Child,
}

impl Running {
    /// Starts this many processes of a program. `None` where no launcher belongs to this build.
    fn start(test: &str, program: &str, processes: u32) -> Option<Self> {
        let mut command = launcher()?;
        let folder = std::env::temp_dir().join(format!("guard-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        command.args(["-n", &processes.to_string()]).arg(own_file());
        command.env(PROGRAM, program).env(FOLDER, &folder);
        // What a launcher leaves that is killed goes with the folder.
        command.env("TMPDIR", &folder);
        let said = File::create(folder.join(SAID)).expect("the folder is there");
        let as_well = said.try_clone().expect("it is open");
        command.stdin(Stdio::null()).stdout(said).stderr(as_well);
        let launcher = command.spawn().expect("the launcher starts");
        Some(Running { folder, launcher })
    }

    /// The guards and the children, by rank, once all children have come this far.
    fn at_work(&self, processes: u32) -> BTreeMap<u32, (i32, i32)> {
        let line = |rank: u32| {
            let text = std::fs::read_to_string(self.folder.join(rank.to_string())).ok()?;
            let (guard, child) = text.strip_suffix('\n')?.split_once(' ')?;
            Some((rank, (guard.parse().ok()?, child.parse().ok()?)))
        };
        let all = || (0..processes).map(line).collect();
        eventually("all processes are at work", || Option::is_some(&all()));
        all().expect("they were there")
    }

    /// Lets the children go on.
    fn go_on(&self) {
        std::fs::write(self.folder.join("go"), "").expect("the folder is there");
    }

    /// How the launcher ended, and the output. Checks that no process is left, and no file in
    /// shared memory.
    fn end(mut self) -> (ExitStatus, String) {
        let mut status = None;
        eventually("the launcher ends", || {
            status = self.launcher.try_wait().expect("it is our child");
            status.is_some()
        });
        eventually_within(STRAYS_END_WITHIN, "all processes end", || self.alive().is_empty());
        let left: Vec<_> = self.segments().into_iter().filter(|path| path.exists()).collect();
        assert!(left.is_empty(), "{left:?}");
        let said = std::fs::read(self.folder.join(SAID)).expect("it was written");
        (status.expect("it ended"), String::from_utf8_lossy(&said).into_owned())
    }

    /// What the children that have come so far had in shared memory.
    fn segments(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.folder).expect("the folder is there");
        let files = files.map(|file| file.expect("it can be read").path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == SEGMENTS));
        let lists = files.map(|path| std::fs::read_to_string(path).expect("it was written"));
        lists.flat_map(|list| list.lines().map(PathBuf::from).collect::<Vec<_>>()).collect()
    }

    /// The guards and children of this test.
    fn alive(&self) -> Vec<i32> {
        let mark = format!("{FOLDER}={}", self.folder.display());
        let is_ours = |process: &i32| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == own_file())
                && environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let all = std::fs::read_dir("/proc").expect("on Linux");
        let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter(is_ours).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        self.alive().into_iter().for_each(|process| sys::send(process, libc::SIGKILL));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether a process has not ended. Its launcher may leave what is left of it for later.
fn is_there(process: i32) -> bool {
    std::fs::read_link(format!("/proc/{process}/exe")).is_ok()
}

/// Kills the child of rank 1; the others go on and end well.
fn survives_the_death_of_rank_1(test: &str, program: &str, signal: i32) {
    let Some(job) = Running::start(test, program, 3) else { return };
    let children = job.at_work(3);
    sys::send(children[&1].1, signal);
    eventually("the guard of the dead ends", || !is_there(children[&1].0));
    // Time for a launcher that has second thoughts.
    thread::sleep(Duration::from_millis(500));
    for (guard, child) in [children[&0], children[&2]] {
        assert!(is_there(guard) && is_there(child), "the launcher has killed the others");
    }
    job.go_on();
    let (status, said) = job.end();
    assert!(status.success(), "{status}: {said}");
    assert!(said.contains(" was killed by SIG"), "{said}");
    assert!(said.contains("rank 2 leaves") && !said.contains("rank 1 leaves"), "{said}");
}

#[test]
fn the_others_live_on_when_one_is_killed() {
    survives_the_death_of_rank_1("killed", "work", libc::SIGKILL);
    survives_the_death_of_rank_1("aborted", "work", libc::SIGABRT);
}

#[test]
fn a_program_with_threads_is_guarded_too() {
    survives_the_death_of_rank_1("threads", "work_with_threads", libc::SIGKILL);
}

#[test]
fn a_job_without_deaths_ends_as_without_guards() {
    for program in ["finalise", "work"] {
        let Some(job) = Running::start(&format!("peace-{program}"), program, 2) else { return };
        job.go_on();
        let (status, said) = job.end();
        assert!(status.success(), "{program}: {status}: {said}");
    }
}

#[test]
fn a_guard_that_stays_stopped_keeps_no_job_from_its_end() {
    for program in ["finalise", "work"] {
        let Some(job) = Running::start(&format!("held-{program}"), program, 2) else { return };
        sys::send(job.at_work(2)[&1].0, libc::SIGSTOP);
        job.go_on();
        let (status, said) = job.end();
        assert!(status.success(), "{program}: {status}: {said}");
    }
}

#[test]
fn a_job_of_which_none_but_the_root_is_left_ends_well() {
    let Some(job) = Running::start("last", "work", 3) else { return };
    let children = job.at_work(3);
    for rank in [2, 1] {
        sys::send(children[&rank].1, libc::SIGKILL);
        eventually("the guard of the dead ends", || !is_there(children[&rank].0));
    }
    job.go_on();
    let (status, said) = job.end();
    assert!(status.success() && said.contains("rank 0 leaves"), "{status}: {said}");
}

#[test]
fn a_job_ends_with_its_root() {
    let Some(job) = Running::start("root", "work", 3) else { return };
    sys::send(job.at_work(3)[&0].1, libc::SIGKILL);
    let (status, said) = job.end();
    assert!(!status.success() && !said.contains("leaves"), "{status}: {said}");
    assert!(said.contains("ultramarine: rank 0 on "), "{said}");
    assert!(said.contains(" was killed by SIGKILL: the job ends"), "{said}");
}

#[test]
fn a_child_ends_with_its_guard() {
    let Some(job) = Running::start("guard", "work", 2) else { return };
    let children = job.at_work(2);
    sys::send(children[&1].0, libc::SIGKILL);
    eventually("the child ends", || !is_there(children[&1].1));
    let (status, said) = job.end();
    assert!(!status.success() && !said.contains("rank 1 leaves"), "{status}: {said}");
}

#[test]
fn a_death_before_the_job_is_made_up_ends_it() {
    let Some(job) = Running::start("early", "die_early", 3) else { return };
    let (status, said) = job.end();
    assert!(!status.success() && !said.contains("leaves"), "{status}: {said}");
    assert!(said.contains(" was killed by SIGKILL before the job had begun: the job"), "{said}");
}

#[test]
fn signals_to_the_launcher_end_all() {
    // One that is killed tidies up nothing itself.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        let Some(job) = Running::start(&format!("signal-{signal}"), "work", 2) else { return };
        job.at_work(2);
        sys::send(job.launcher.id() as i32, signal);
        // Hydra may call a job that was interrupted a success.
        let (_, said) = job.end();
        assert!(!said.contains("leaves"), "{said}");
    }
}

#[test]
fn an_interrupt_at_the_start_is_no_crash() {
    let Some(job) = Running::start("interrupted", "linger_at_the_start", 2) else { return };
    job.at_work(2);
    sys::send(job.launcher.id() as i32, libc::SIGINT);
    let (status, said) = job.end();
    assert!(!said.contains("BAD TERMINATION"), "{status}: {said}");
    // Hydra calls one in ten such jobs a success, whatever its processes end with.
    assert!(!said.contains("[mpiexec@") || matches!(status.code(), Some(130 | 0)), "{status}");
}

/// The proxy between `mpiexec` and the guards is killed, before `mpiexec` ends or without its end.
/// It tells no other process.
#[test]
fn processes_end_with_their_launcher() {
    for (program, dies_alone) in [("work", true), ("work", false), ("defy", false)] {
        let Some(job) = Running::start(&format!("orphans-{program}"), program, 2) else { return };
        let children = job.at_work(2);
        let (guard, _) = children[&0];
        let status = std::fs::read_to_string(format!("/proc/{guard}/status")).expect("it is there");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
        let proxy = parent.expect("it has one").parse().expect("a number");
        let launcher = job.launcher.id() as i32;
        if !dies_alone {
            // While it is stopped it can end no process.
            sys::send(launcher, libc::SIGSTOP);
        }
        sys::send(proxy, libc::SIGKILL);
        let all_end =
            || children.values().all(|(guard, child)| !is_there(*guard) && !is_there(*child));
        eventually_within(STRAYS_END_WITHIN, "all guards and children end", all_end);
        sys::send(launcher, libc::SIGKILL);
        let (_, said) = job.end();
        assert!(!said.contains("leaves"), "{said}");
    }
}

/// Stops the launcher before the end, for longer than Open MPI's library waits for its answers.
fn ends_well_though_its_launcher_was_stopped(test: &str, program: &str, dies: bool) {
    let Some(job) = Running::start(test, program, 3) else { return };
    let children = job.at_work(3);
    let launcher = job.launcher.id() as i32;
    sys::send(launcher, libc::SIGSTOP);
    if dies {
        sys::send(children[&1].1, libc::SIGKILL);
    }
    job.go_on();
    thread::sleep(Duration::from_secs(5));
    sys::send(launcher, libc::SIGCONT);
    let (status, said) = job.end();
    assert!(status.success(), "{status}: {said}");
}

#[test]
fn a_launcher_that_was_stopped_hears_that_all_have_finalised() {
    ends_well_though_its_launcher_was_stopped("still", "finalise", false);
}

#[test]
fn a_launcher_that_was_stopped_is_taken_leave_of() {
    ends_well_though_its_launcher_was_stopped("still-and-dead", "work", true);
}

#[test]
fn a_child_that_was_given_up_is_killed() {
    let Some(job) = Running::start("stopped", "work", 3) else { return };
    let children = job.at_work(3);
    sys::send(children[&1].1, libc::SIGSTOP);
    eventually("the guard of the stopped ends", || !is_there(children[&1].0));
    job.go_on();
    let (status, said) = job.end();
    assert!(status.success(), "{status}: {said}");
    assert!(said.contains("ultramarine: rank 1 on "), "{said}");
    assert!(said.contains(" was killed by its guard; the job goes on"), "{said}");
}

/// The others may have begun the job, and end it: the launcher waited for this child without end.
#[test]
fn a_child_that_stays_stopped_at_the_start_is_killed() {
    let Some(job) = Running::start("stays-stopped", "linger_at_the_start", 2) else { return };
    sys::send(job.at_work(2)[&1].1, libc::SIGSTOP);
    let (status, said) = job.end();
    let expected = " was killed by its guard before the job had begun: the job";
    assert!(!status.success() && said.contains(expected), "{status}: {said}");
}

#[test]
fn a_job_may_be_stopped_as_a_whole() {
    let Some(job) = Running::start("whole", "work", 2) else { return };
    let children = job.at_work(2);
    let tell = |signal| {
        for (guard, child) in children.values() {
            sys::send(*guard, signal);
            sys::send(*child, signal);
        }
    };
    tell(libc::SIGSTOP);
    thread::sleep(STOPPED_TOO_LONG);
    // The guards go on first.
    children.values().for_each(|(guard, _)| sys::send(*guard, libc::SIGCONT));
    thread::sleep(STALLED_AFTER);
    tell(libc::SIGCONT);
    job.go_on();
    let (status, said) = job.end();
    assert!(status.success() && said.contains("rank 1 leaves"), "{status}: {said}");
}

/// Kills the guard of rank 1 at the start, as hydra does to all processes of a job that fails.
/// `before` is given the guard and its child.
fn leaves_nothing(test: &str, before: impl FnOnce(i32, i32)) {
    let Some(job) = Running::start(test, "linger_at_the_start", 2) else { return };
    let children = job.at_work(2);
    assert!(job.segments().iter().any(|path| path.exists()), "there is something to remove");
    let (guard, child) = children[&1];
    before(guard, child);
    sys::send(guard, libc::SIGKILL);
    let (status, said) = job.end();
    assert!(!status.success(), "{status}: {said}");
}

#[test]
fn a_guard_that_is_killed_at_the_start_leaves_nothing() {
    leaves_nothing("lingering", |_, _| {});
}

#[test]
fn a_child_that_is_stopped_at_the_start_ends_with_its_guard() {
    leaves_nothing("stopped-at-the-start", |_, child| sys::send(child, libc::SIGSTOP));
}

#[test]
fn a_guard_and_its_child_that_are_killed_at_the_start_leave_nothing() {
    leaves_nothing("both", |guard, child| {
        // It removes nothing itself.
        sys::send(guard, libc::SIGSTOP);
        sys::send(child, libc::SIGKILL);
    });
}

#[test]
fn a_signal_that_was_handed_on_ends_the_job() {
    for signal in [libc::SIGTERM, libc::SIGUSR2] {
        let Some(job) = Running::start(&format!("handed-{signal}"), "work", 2) else { return };
        sys::send(job.at_work(2)[&1].0, signal);
        let (status, said) = job.end();
        assert!(!status.success() && !said.contains("goes on without"), "{status}: {said}");
    }
}

/// As when a batch system ends a job: the program gets the signal first.
#[test]
fn a_signal_to_all_is_no_accident() {
    let Some(job) = Running::start("to-all", "work", 2) else { return };
    let children = job.at_work(2);
    sys::send(children[&1].1, libc::SIGTERM);
    sys::send(children[&1].0, libc::SIGTERM);
    let (status, said) = job.end();
    assert!(!status.success() && !said.contains("goes on without"), "{status}: {said}");
}

#[test]
fn a_code_of_failure_before_the_job_is_made_up_ends_it() {
    let Some(job) = Running::start("failure", "fail", 3) else { return };
    job.at_work(3);
    job.go_on();
    // Hydra may show the end of one that it has killed itself.
    let (status, said) = job.end();
    assert!(!status.success() && !said.contains("goes on without"), "{status}: {said}");
}

#[test]
fn the_roots_code_is_the_jobs() {
    let Some(job) = Running::start("code", "leave_with_3", 3) else { return };
    let children = job.at_work(3);
    sys::send(children[&1].1, libc::SIGKILL);
    eventually("the guard of the dead ends", || !is_there(children[&1].0));
    job.go_on();
    let (status, said) = job.end();
    assert_eq!(status.code(), Some(3), "{said}");
}

#[test]
fn a_guard_keeps_nothing_open_and_its_childs_programs_get_none() {
    let Some(job) = Running::start("files", "look_around", 2) else { return };
    let (status, said) = job.end();
    assert!(status.success() && said.contains("all is well"), "{status}: {said}");
}
