//! What the end of a child is to the launcher, and what of the child's is not wanted any more.

use super::descendants::Which;
use super::status_channel::{ChildStatus, Ending};
use super::survivors::Calls;
use super::sys::ChildExit;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use ultramarine_environment::launcher::{HYDI_CONTROL_FD, PMI_FD, SLURM_STEP_ID};

/// How long a guard waits after an interrupt of the first process for the others of a job that
/// outlives it, at most. If they have heard of the interrupt, too, they end within that. If not,
/// they are there for a second at least after this death.
const INTERRUPT_SETTLES: Duration = Duration::from_millis(700);

/// The code of a process that was interrupted, as shells have it.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

/// What the guard does about the end of its child.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// The launcher is to see it as it is.
    PassOn,
    /// The child could not take leave itself.
    TakeLeave { code: i32 },
    /// The job goes on without the child.
    Tolerate,
}

/// Whether a job survives this end of one of its processes. `meant` has the signals that were meant
/// to end it; a process is vital if the job ends with it.
pub(super) fn judge(
    end: ChildExit,
    status: &ChildStatus,
    is_vital: bool,
    meant: &HashSet<i32>,
) -> Reaction {
    let is_interrupted = |signal| {
        let kills_at_second = signal == libc::SIGKILL && meant.contains(&libc::SIGKILL);
        // Passed on as it is, it would be or-ed with the launcher's SIGKILL to the others: mpiexec
        // of MPICH would report a segmentation fault.
        let is_meant = meant.contains(&libc::SIGINT);
        signal == libc::SIGINT && (is_meant || is_vital) || is_meant && kills_at_second
    };
    // Its guard alone was interrupted.
    let is_outlived = !is_vital && !status.others.is_empty();
    let has_died = match end {
        ChildExit::Code(code) if status.ending == Some(Ending::Leaves) => {
            return Reaction::TakeLeave { code };
        }
        // Elsewhere it is not known yet how the child talks to the launcher. (Hydra was interrupted
        // at 18 moments of the start: all jobs ended at once, with 130.)
        ChildExit::Signal(signal)
            if is_interrupted(signal) && !is_outlived && (status.joined || is_under_hydra()) =>
        {
            return Reaction::TakeLeave { code: INTERRUPTED };
        }
        ChildExit::Code(_) => status.is_amid_job(),
        ChildExit::Signal(signal) => {
            let is_meant = meant.contains(&signal) && !(is_outlived && is_interrupted(signal));
            status.joined && !is_meant
        }
    };
    if has_died && !is_vital { Reaction::Tolerate } else { Reaction::PassOn }
}

/// Whether the job ends with this child: with its root, or if it outlives that, with the last
/// process that is there, as far as the `calls` show.
pub(super) fn job_ends_with(status: &ChildStatus, rank: u32, calls: Calls) -> bool {
    match (&status.others[..], status.is_vital) {
        ([], _) => rank == 0,
        (_, Some(is_vital)) => is_vital,
        (_, None) => !calls.any_answers(),
    }
}

/// Whether none of the others of a job that outlives its root goes on after an interrupt.
pub(super) fn ends_by_interrupt(status: &ChildStatus, rank: u32) -> bool {
    let start = Instant::now();
    loop {
        let is_vital = job_ends_with(status, rank, Calls::begin(&status.others));
        let may_change = !status.others.is_empty() && status.is_vital.is_none();
        if is_vital || !may_change || start.elapsed() >= INTERRUPT_SETTLES {
            return is_vital;
        }
        std::thread::sleep(INTERRUPT_SETTLES / 10);
    }
}

/// Which of what the child has left behind are not wanted any more: all, or, if it has ended in
/// order, those that were started during the job and those that cannot go on.
pub(super) fn which_to_kill(end: ChildExit, status: &ChildStatus, meant: &HashSet<i32>) -> Which {
    let is_ended = [libc::SIGINT, libc::SIGTERM].iter().any(|signal| meant.contains(signal));
    let has_failed =
        status.is_amid_job() || status.ending == Some(Ending::Aborts) || status.given_up.is_some();
    match end {
        ChildExit::Code(_) if !has_failed && !is_ended => Which::StartedIn(status.job_ticks()),
        _ => Which::All,
    }
}

/// Whether hydra is the launcher, which tells all processes of a failure by SIGUSR1: it would end
/// those that know nothing of it. Elsewhere users have SIGUSR1 sent to their programs.
pub(super) fn is_under_hydra() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    is_set(PMI_FD) && (is_set(HYDI_CONTROL_FD) || !is_set(SLURM_STEP_ID))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    fn status(lines: &str) -> ChildStatus {
        let mut status = ChildStatus::default();
        status.read(lines);
        status
    }

    #[test]
    fn a_job_survives_who_has_joined_it_and_is_not_the_root() {
        let judge = |end, lines, rank| {
            let status = status(lines);
            let is_vital = job_ends_with(&status, rank, Calls::begin(&status.others));
            judge(end, &status, is_vital, &HashSet::new())
        };
        let killed = ChildExit::Signal(libc::SIGKILL);
        assert_eq!(judge(killed, "joined", 1), Reaction::Tolerate);
        assert_eq!(judge(killed, "joined\nleaves", 1), Reaction::Tolerate);
        assert_eq!(judge(killed, "joined\nleaves", 0), Reaction::PassOn);
        assert_eq!(judge(killed, "", 1), Reaction::PassOn);
    }

    #[test]
    fn a_job_may_outlive_its_root_but_not_its_last_process() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let lines = format!("joined\nother {}", other.local_addr().expect("it is bound"));
        let vital = |lines: &str| {
            let status = status(lines);
            [0, 1].map(|rank| job_ends_with(&status, rank, Calls::begin(&status.others)))
        };
        assert_eq!(vital(&lines), [false, false]);
        drop(other);
        assert_eq!(vital(&lines), [true, true]);
        for is_vital in [false, true] {
            assert_eq!(vital(&format!("{lines}\nvital {is_vital}")), [is_vital; 2]);
        }
    }

    #[test]
    fn a_signal_that_was_handed_on_is_no_accident() {
        let meant = HashSet::from([libc::SIGTERM]);
        let judge = |signal| judge(ChildExit::Signal(signal), &status("joined"), false, &meant);
        assert_eq!(judge(libc::SIGTERM), Reaction::PassOn);
        assert_eq!(judge(libc::SIGSEGV), Reaction::Tolerate);
    }

    #[test]
    fn an_interrupt_is_no_failure_of_a_process() {
        let interrupted = Reaction::TakeLeave { code: 130 };
        for (meant, signal, expected) in [
            (&[libc::SIGINT][..], libc::SIGINT, &interrupted),
            (&[libc::SIGINT, libc::SIGKILL], libc::SIGKILL, &interrupted),
            (&[libc::SIGINT], libc::SIGKILL, &Reaction::Tolerate),
            (&[libc::SIGTERM], libc::SIGTERM, &Reaction::PassOn),
            (&[], libc::SIGINT, &Reaction::Tolerate),
        ] {
            let meant: HashSet<i32> = meant.iter().copied().collect();
            let judge = |lines| judge(ChildExit::Signal(signal), &status(lines), false, &meant);
            assert_eq!(judge("joined"), *expected, "{signal}, {meant:?}");
            assert_eq!(judge(""), Reaction::PassOn, "{signal}, {meant:?}");
        }
        // The root's alone ends the job.
        let end = ChildExit::Signal(libc::SIGINT);
        assert_eq!(super::judge(end, &status("joined"), true, &HashSet::new()), interrupted);
    }

    #[test]
    fn an_interrupt_of_the_first_guard_alone_is_a_death() {
        let meant = HashSet::from([libc::SIGINT, libc::SIGKILL]);
        let status = status("joined\nother 127.0.0.1:1");
        for signal in [libc::SIGINT, libc::SIGKILL] {
            let judge = |is_vital| judge(ChildExit::Signal(signal), &status, is_vital, &meant);
            assert_eq!(judge(false), Reaction::Tolerate);
            assert_eq!(judge(true), Reaction::TakeLeave { code: 130 });
        }
    }

    #[test]
    fn what_is_left_behind_is_killed_unless_the_child_ended_in_order() {
        let of = |end, lines: &str, meant: &[i32]| {
            which_to_kill(end, &status(lines), &meant.iter().copied().collect())
        };
        let (left, killed) = (ChildExit::Code(0), ChildExit::Signal(libc::SIGKILL));
        let copies = Which::StartedIn(0..0);
        let joined = "began at 5\njoined";
        assert_eq!(of(left, &format!("{joined}\nfinalised"), &[]), copies);
        for ending in ["finalised", "leaves"] {
            let lines = format!("{joined}\nover at 9\n{ending}");
            assert_eq!(of(left, &lines, &[]), Which::StartedIn(5..9));
        }
        assert_eq!(of(left, "", &[]), copies);
        assert_eq!(of(left, "over at 9\nleaves", &[]), copies, "it has not joined");
        assert_eq!(of(left, "joined", &[]), Which::All);
        assert_eq!(of(left, "joined\naborts", &[]), Which::All);
        assert_eq!(of(left, "joined\ngives up\nleaves", &[]), Which::All);
        assert_eq!(of(left, "joined\nleaves", &[libc::SIGTERM]), Which::All);
        assert_eq!(of(killed, "joined", &[]), Which::All);
    }

    #[test]
    fn leave_is_taken_only_for_who_asks() {
        let judge =
            |code, lines| judge(ChildExit::Code(code), &status(lines), false, &HashSet::new());
        assert_eq!(judge(0, "joined\nfinalised"), Reaction::PassOn);
        assert_eq!(judge(0, "joined\nleaves"), Reaction::TakeLeave { code: 0 });
        assert_eq!(judge(3, "leaves"), Reaction::TakeLeave { code: 3 });
        assert_eq!(judge(101, "starts 7"), Reaction::PassOn);
    }

    #[test]
    fn an_exit_amid_the_job_is_a_death() {
        let judge =
            |lines, is_vital| judge(ChildExit::Code(0), &status(lines), is_vital, &HashSet::new());
        assert_eq!(judge("joined", false), Reaction::Tolerate);
        assert_eq!(judge("joined", true), Reaction::PassOn);
        assert_eq!(judge("joined\naborts", false), Reaction::PassOn);
        assert!(status("joined").is_amid_job() && !status("joined\naborts").is_amid_job());
    }
}
