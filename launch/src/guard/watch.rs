//! The guard's life: hand signals on, wait for the ward's end, judge it.

use super::farewell;
use super::segments::Segment;
use super::sys::{self, End};
use super::told::{self, Told};
use std::collections::HashSet;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// Signals that concern the guard alone: a child's end, and what a process gets that uses a terminal
/// from the background or writes to nobody.
const OWN: [i32; 4] = [libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU, libc::SIGPIPE];

/// How often a guard looks after its ward at least, in milliseconds: where a library has started threads,
/// one of them may take the word of its end.
const LOOK_EVERY_MS: u32 = 500;

/// How long a guard waits for its own copy of what has killed its ward, in milliseconds: who ends a
/// whole job sends the same signal to all its processes, one after the other.
const RUMOUR_MS: u32 = 100;

/// The most signals that a guard considers then, so that no timer keeps it for ever.
const RUMOURS_MAX: usize = 64;

/// What becomes of the ward's end.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The launcher is to see it as it is.
    PassOn,
    /// The ward could not take leave itself.
    TakeLeave { code: i32 },
    /// The job goes on without the ward.
    Mourn { signal: i32 },
}

/// Whether a job survives this end of one of its processes. `meant` has the signals that were meant
/// to end it.
fn judge(end: End, told: &Told, is_root: bool, meant: &HashSet<i32>) -> Verdict {
    match end {
        End::Code(code) if told.leaves => Verdict::TakeLeave { code },
        // A job does not survive its root, and before it is made up nobody.
        End::Signal(signal) if told.joined && !is_root && !meant.contains(&signal) => {
            Verdict::Mourn { signal }
        }
        _ => Verdict::PassOn,
    }
}

/// Watches over the ward, the process of the launcher's `rank`, and ends as it does.
pub(super) fn over(ward: i32, rank: u32, way: &UnixStream) -> ! {
    let socket = std::env::var("PMI_FD").ok().and_then(|number| number.trim().parse().ok());
    // A copy of what the ward has open would keep others from seeing that the ward closed it.
    sys::close_all_but(&[way.as_raw_fd(), socket.unwrap_or(-1)]);
    sys::rename("ultra-guard");
    let (mut seen, mut meant) = (Vec::new(), HashSet::new());
    let end = loop {
        if let Some(signal) = sys::next_signal(LOOK_EVERY_MS) {
            hand_on(signal, ward, &mut meant);
        }
        if let Some(end) = sys::reap(ward) {
            break end;
        }
        // What the program makes before that is its own.
        if let Some(began) = told::starting(way) {
            seen = Segment::of(ward as u32, began);
        }
    };
    let told = Told::receive(way);
    if !told.finalised {
        let segments = if told.joined { &told.segments } else { &seen };
        segments.iter().for_each(Segment::remove);
    }
    let limit_ms = match judge(end, &told, rank == 0, &meant) {
        Verdict::Mourn { .. } => RUMOUR_MS,
        _ => 0,
    };
    for _ in 0..RUMOURS_MAX {
        let Some(signal) = sys::next_signal(limit_ms) else { break };
        meant.insert(signal);
    }
    match (judge(end, &told, rank == 0, &meant), end) {
        (Verdict::PassOn, End::Code(code)) => sys::exit(code),
        (Verdict::PassOn, End::Signal(signal)) => sys::end_by(signal),
        (Verdict::TakeLeave { code }, _) => {
            take_leave(rank, told);
            sys::exit(code)
        }
        (Verdict::Mourn { signal }, _) => {
            let name = name(signal);
            log(&format!("rank {rank} was killed by {name}; the job goes on without it"));
            take_leave(rank, told);
            sys::exit(0)
        }
    }
}

/// Gives the ward the signals that are meant for it.
fn hand_on(signal: i32, ward: i32, meant: &mut HashSet<i32>) {
    let hydras_own = signal == libc::SIGUSR1 && is_under_hydra();
    if !OWN.contains(&signal) && !hydras_own {
        meant.insert(signal);
        sys::send(ward, signal);
    }
}

/// Whether hydra is the launcher, which tells all processes of a failure by SIGUSR1: it would end
/// those that know nothing of it. Elsewhere users have SIGUSR1 sent to their programs.
fn is_under_hydra() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    is_set("PMI_FD") && (is_set("HYDI_CONTROL_FD") || !is_set("SLURM_STEP_ID"))
}

fn take_leave(rank: u32, told: Told) {
    if let Err(reason) = farewell::say(told.server) {
        let what = "cannot be told that all is well with rank";
        log(&format!("the launcher {what} {rank}, and may end the job: {reason}"));
    }
}

/// Shows a line on standard error, if anybody listens.
fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "ultramarine: {line}");
}

fn name(signal: i32) -> String {
    let name = match signal {
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV (a memory fault)",
        libc::SIGBUS => "SIGBUS (a memory fault)",
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

    fn told(lines: &str) -> Told {
        let mut told = Told::default();
        told.read(lines);
        told
    }

    #[test]
    fn a_job_survives_who_has_joined_it_and_is_not_the_root() {
        let judge = |end, lines, root| judge(end, &told(lines), root, &HashSet::new());
        let killed = End::Signal(libc::SIGKILL);
        assert_eq!(judge(killed, "joined", false), Verdict::Mourn { signal: libc::SIGKILL });
        assert_eq!(judge(killed, "joined\nleaves", false), Verdict::Mourn { signal: 9 });
        assert_eq!(judge(killed, "joined\nleaves", true), Verdict::PassOn);
        assert_eq!(judge(killed, "", false), Verdict::PassOn);
    }

    #[test]
    fn a_signal_that_was_handed_on_is_no_accident() {
        let meant = HashSet::from([libc::SIGTERM]);
        let judge = |signal| judge(End::Signal(signal), &told("joined"), false, &meant);
        assert_eq!(judge(libc::SIGTERM), Verdict::PassOn);
        assert_eq!(judge(libc::SIGSEGV), Verdict::Mourn { signal: libc::SIGSEGV });
    }

    #[test]
    fn leave_is_taken_only_for_who_asks() {
        let judge = |code, lines| judge(End::Code(code), &told(lines), false, &HashSet::new());
        assert_eq!(judge(0, "joined"), Verdict::PassOn);
        assert_eq!(judge(0, "joined\nleaves"), Verdict::TakeLeave { code: 0 });
        assert_eq!(judge(3, "leaves"), Verdict::TakeLeave { code: 3 });
        assert_eq!(judge(101, "joined"), Verdict::PassOn);
    }
}
