//! The guard at work: it hands signals on, waits for the end of its child, and decides how to
//! report it to the launcher.

use super::descendants::{self, Which};
use super::finalize;
use super::image::Image;
use super::lineage::Lineage;
use super::segments::Segment;
use super::standstill::Standstill;
use super::status_channel::{ChildStatus, Ending};
use super::survivors::any_listens;
use super::sweep;
use super::sys::{self, ChildExit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::system::uname;
use std::collections::HashSet;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use ultramarine_environment::launcher::{HYDI_CONTROL_FD, Launched, PMI_FD, SLURM_STEP_ID};

/// Signals that concern the guard alone: a child's end (or the launcher's), and those of a process
/// that uses a terminal from the background, or writes to a closed pipe.
const OWN: [i32; 4] = [libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU, libc::SIGPIPE];

/// How often a guard looks after its child at least, in milliseconds: where a library has started
/// threads, one of them may take the word of its end.
const LOOK_EVERY_MS: u32 = 500;

/// How long a guard waits for its own copy of what has killed its child, in milliseconds: a user
/// who ends a job sends the same signal to all its processes, one after the other.
const RUMOUR_MS: u32 = 100;

/// How long a child has to end in order when the launcher has gone, before it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// How long a guard waits after an interrupt of the first process for the others of a job that
/// outlives it, at most. If they have heard of the interrupt, too, they end within that. If not,
/// they are there for a second at least after this death.
const INTERRUPT_SETTLES: Duration = Duration::from_millis(700);

/// The most signals that a guard considers then, so that no timer keeps it for ever.
const RUMOURS_MAX: usize = 64;

/// The code of a process that was interrupted, as shells have it.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

/// What the guard does about the end of its child.
#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    /// The launcher is to see it as it is.
    PassOn,
    /// The child could not take leave itself.
    TakeLeave { code: i32 },
    /// The job goes on without the child.
    Tolerate,
}

/// Whether a job survives this end of one of its processes. `meant` has the signals that were meant
/// to end it; a process is vital if the job ends with it.
fn judge(end: ChildExit, status: &ChildStatus, is_vital: bool, meant: &HashSet<i32>) -> Reaction {
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
/// process that is there.
fn job_ends_with(status: &ChildStatus, rank: u32) -> bool {
    match (&status.others[..], status.is_vital) {
        ([], _) => rank == 0,
        (_, Some(is_vital)) => is_vital,
        (others, None) => !any_listens(others),
    }
}

/// Whether none of the others of a job that outlives its root goes on after an interrupt.
fn ends_by_interrupt(status: &ChildStatus, rank: u32) -> bool {
    let start = Instant::now();
    loop {
        let is_vital = job_ends_with(status, rank);
        let may_change = !status.others.is_empty() && status.is_vital.is_none();
        if is_vital || !may_change || start.elapsed() >= INTERRUPT_SETTLES {
            return is_vital;
        }
        std::thread::sleep(INTERRUPT_SETTLES / 10);
    }
}

/// What the child has left behind is not wanted any more, or only what cannot go on.
fn which_to_kill(end: ChildExit, status: &ChildStatus, meant: &HashSet<i32>) -> Which {
    let is_ended = [libc::SIGINT, libc::SIGTERM].iter().any(|signal| meant.contains(signal));
    match end {
        ChildExit::Code(_) if !status.is_amid_job() && !status.has_given_up && !is_ended => {
            Which::Copies
        }
        _ => Which::All,
    }
}

/// Watches over the child, one of the launcher's processes, and ends as it does.
pub(super) fn over(child: i32, launched: Launched, channel: &UnixStream) -> ! {
    let rank = launched.rank;
    let socket = std::env::var(PMI_FD).ok().and_then(|number| number.trim().parse().ok());
    // A copy of what the child has open would keep others from seeing that the child closed it.
    sys::close_all_but(&[0, 1, 2, channel.as_raw_fd(), socket.unwrap_or(-1)]);
    sys::rename("ultra-guard");
    sys::hear_of_parents_end();
    sys::adopt_descendants();
    let mut watch = Watch::new(child, launched);
    let end = loop {
        let signal = sys::next_signal(LOOK_EVERY_MS);
        watch.status.hear(channel);
        signal.into_iter().for_each(|signal| watch.hand_on(signal));
        if let Some(end) = sys::reap(child) {
            break end;
        }
        watch.end_what_is_left_behind();
    };
    let Watch { mut status, mut meant, given_up, orphaned, .. } = watch;
    let process = format!("rank {rank} on {}", uname().nodename().to_string_lossy());
    status.hear(channel);
    let may_have_died = matches!(end, ChildExit::Signal(_)) || status.is_amid_job();
    // At once: the others do not stay for long when the job is over.
    let is_interrupt = meant.contains(&libc::SIGINT) && matches!(end, ChildExit::Signal(_));
    let ends_job = if is_interrupt { ends_by_interrupt } else { job_ends_with };
    let is_vital = may_have_died && ends_job(&status, rank);
    let left = descendants::kill(which_to_kill(end, &status, &meant));
    if left > 0 {
        log(&format!("{process} had started {left} processes that still ran: they are killed"));
    }
    remove_segments(&status);
    if orphaned.is_some() {
        // No launcher is there to hear how it ended.
        sys::exit(1);
    }
    let by = |signal| if given_up { "its guard".to_owned() } else { name(signal) };
    let limit_ms = match end {
        ChildExit::Signal(signal) if !meant.contains(&signal) => RUMOUR_MS,
        _ => 0,
    };
    for _ in 0..RUMOURS_MAX {
        let Some(signal) = sys::next_signal(limit_ms) else { break };
        meant.insert(signal);
    }
    let called_exit = |code| format!("{process} called exit({code}) amid the job");
    let log_the_end_by = |signal| {
        if !meant.contains(&signal) {
            let when = if status.joined { "" } else { " before the job had begun" };
            log(&format!("{process} was killed by {}{when}: the job ends", by(signal)));
        }
    };
    match (judge(end, &status, is_vital, &meant), end) {
        (Reaction::PassOn, ChildExit::Code(code)) if status.is_amid_job() => {
            log(&format!("{}: the job ends", called_exit(code)));
            // The job has not succeeded, whatever the code.
            sys::exit(code.max(1))
        }
        (Reaction::PassOn, ChildExit::Code(code)) => sys::exit(code),
        (Reaction::PassOn, ChildExit::Signal(signal)) => {
            log_the_end_by(signal);
            sys::end_by(signal)
        }
        (Reaction::TakeLeave { code }, _) => {
            if let ChildExit::Signal(signal) = end {
                log_the_end_by(signal);
            }
            take_leave(rank, status);
            sys::exit(code)
        }
        (Reaction::Tolerate, _) => {
            take_leave(rank, status);
            let what = match end {
                ChildExit::Code(code) => called_exit(code),
                ChildExit::Signal(signal) => format!("{process} was killed by {}", by(signal)),
            };
            log(&format!("{what}; the job goes on without it"));
            sys::exit(0)
        }
    }
}

/// What a guard knows while its child lives.
struct Watch {
    child: i32,
    rank: u32,
    lineage: Lineage,
    status: ChildStatus,
    standstill: Standstill,
    /// The signals that were meant to end the child.
    meant: HashSet<i32>,
    /// How many interrupts have come while the child listened.
    interrupts: u32,
    /// The child was stopped for too long, or has become another program, and is killed.
    given_up: bool,
    /// Since when the launcher has been gone.
    orphaned: Option<Instant>,
}

impl Watch {
    fn new(child: i32, launched: Launched) -> Self {
        Watch {
            child,
            rank: launched.rank,
            lineage: Lineage::own(launched.variable),
            status: ChildStatus::default(),
            standstill: Standstill::watched_from(Instant::now()),
            meant: HashSet::new(),
            interrupts: 0,
            given_up: false,
            orphaned: None,
        }
    }

    /// Gives the child the signals that are meant for it.
    fn hand_on(&mut self, signal: i32) {
        let hydras_own = signal == libc::SIGUSR1 && is_under_hydra();
        if !OWN.contains(&signal) && !hydras_own {
            self.meant.insert(signal);
            self.standstill.hands_on(signal);
            sys::send(self.child, signal);
        }
        if signal == libc::SIGINT && self.status.listens {
            self.interrupts += 1;
            if self.interrupts > 1 {
                self.meant.insert(libc::SIGKILL);
                sys::send(self.child, libc::SIGKILL);
            }
        }
    }

    /// Kills the child when the launcher has gone, or when the job has given it up.
    fn end_what_is_left_behind(&mut self) {
        let now = Instant::now();
        let rank = self.rank;
        match self.orphaned {
            None if !self.lineage.is_whole() => {
                self.orphaned = Some(now);
                sys::send(self.child, libc::SIGTERM);
                log(&format!("rank {rank} ends: its launcher has gone"));
            }
            Some(since) if now - since >= GRACE => sys::send(self.child, libc::SIGKILL),
            _ => {}
        }
        let stopped = self.standstill.too_long(self.child, now, self.status.stalled_after);
        if let Some(stopped) = stopped.filter(|_| !self.given_up) {
            self.given_up = true;
            sys::send(self.child, libc::SIGKILL);
            log(&format!("rank {rank} has been stopped for {} s: it is killed", stopped.as_secs()));
        }
        let is_replaced = |image: Image| image.is_replaced(self.child as u32);
        if self.status.image.is_some_and(is_replaced) && !self.given_up {
            self.given_up = true;
            sys::send(self.child, libc::SIGKILL);
            log(&format!("rank {rank} has become another program (exec): it is killed"));
        }
    }
}

/// Removes what the child's MPI has left in shared memory, if it was not finalised.
fn remove_segments(status: &ChildStatus) {
    if status.ending == Some(Ending::Finalised) {
        return;
    }
    if status.joined {
        status.segments.iter().for_each(Segment::remove);
    } else if let Some(began) = status.began {
        sweep::after_child(began);
    }
}

/// Whether hydra is the launcher, which tells all processes of a failure by SIGUSR1: it would end
/// those that know nothing of it. Elsewhere users have SIGUSR1 sent to their programs.
fn is_under_hydra() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    is_set(PMI_FD) && (is_set(HYDI_CONTROL_FD) || !is_set(SLURM_STEP_ID))
}

fn take_leave(rank: u32, status: ChildStatus) {
    if let Err(reason) = finalize::on_behalf_of(status.server) {
        let what = "cannot be told that all is well with rank";
        log(&format!("the launcher {what} {rank}, and may end the job: {reason}"));
    }
}

/// Shows a line on standard error, if that takes it at once: a guard waits for no reader. (A pipe
/// that is ready takes a page, which is more than a line.)
fn log(line: &str) {
    let stderr = std::io::stderr();
    let mut is_ready = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut is_ready, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        let _ = stderr.lock().write_all(format!("ultramarine: {line}\n").as_bytes());
    }
}

fn name(signal: i32) -> String {
    let name = match signal {
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV (a memory fault, or a full stack)",
        libc::SIGBUS => "SIGBUS (a memory fault, or a full stack)",
        libc::SIGABRT => "SIGABRT",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTERM => "SIGTERM",
        libc::SIGINT => "SIGINT",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
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
            judge(end, &status, job_ends_with(&status, rank), &HashSet::new())
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
        let vital = |lines: &str| [0, 1].map(|rank| job_ends_with(&status(lines), rank));
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
        assert_eq!(of(left, "joined\nfinalised", &[]), Which::Copies);
        assert_eq!(of(left, "joined\nleaves", &[]), Which::Copies);
        assert_eq!(of(left, "", &[]), Which::Copies);
        assert_eq!(of(left, "joined", &[]), Which::All);
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
