//! The guard at work: it hands signals on, waits for the end of its child, and decides how to
//! report it to the launcher.

use super::descendants;
use super::finalize;
use super::image::Image;
use super::lineage::Lineage;
use super::segments::Segment;
use super::standstill::{Standstill, is_process_stopped};
use super::status_channel::{ChildStatus, Ending, GivenUp};
use super::survivors::Calls;
use super::sweep;
use super::sys::{self, ChildExit, Fork};
use super::testimony::{Testify, Testimony};
use super::verdict::{
    Reaction, ends_by_interrupt, is_under_hydra, job_ends_with, judge, which_to_kill,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::system::uname;
use std::collections::HashSet;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_environment::launcher::{Launched, PMI_FD};

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

/// How long a guard stays to say that its child is gone: a testimony ends by itself before that.
const TESTIMONY_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The same where the launcher has to hear soon that the job has failed. Not every launcher ends
/// the other processes then, and they would wait for a root that is gone.
const PASSED_ON_WITHIN: Duration = Duration::from_millis(500);

/// How long a guard waits for a launcher that is stopped, and how long that may then take to read.
const STOPPED_MAX: Duration = Duration::from_mins(1);
const READS_WITHIN: Duration = Duration::from_millis(500);

/// The most signals that a guard considers within [`RUMOUR_MS`], so that no timer keeps it for
/// ever.
const RUMOURS_MAX: usize = 64;

/// Watches over the child, one of the launcher's processes, and ends as it does.
pub(super) fn over(child: i32, launched: Launched, channel: &UnixStream, testify: Testify) -> ! {
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
    watch.status.hear(channel);
    watch.end_after(end, testify)
}

/// Waits while the launcher is stopped, so that it reads that the child has finalised MPI before
/// this guard ends. (Open MPI's would see first that it has ended, and take that for a failure.)
fn wait_for_stopped_launcher(launcher: u32) {
    let start = Instant::now();
    let was_stopped = is_process_stopped(launcher);
    while is_process_stopped(launcher) && start.elapsed() < STOPPED_MAX {
        thread::sleep(READS_WITHIN / 10);
    }
    if was_stopped {
        thread::sleep(READS_WITHIN);
    }
}

/// Begins to tell others that the child is gone, in a process of its own: to take leave, this one
/// has to have a single thread. Returns its number.
fn begin(Testimony { listener, words }: &Testimony, testify: Testify) -> Option<i32> {
    match sys::fork() {
        Ok(Fork::Parent { child }) => Some(child),
        Ok(Fork::Child) => {
            sys::end_with_parent();
            testify(listener, words);
            sys::exit(0)
        }
        Err(_) => None,
    }
}

/// Lets others hear that the child is gone, for so long at most.
fn wait_for(witness: Option<i32>, within: Duration) {
    let start = Instant::now();
    let is_over = |process: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    while witness.is_some_and(|process| !is_over(process)) && start.elapsed() < within {
        thread::sleep(Duration::from_millis(5));
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
        let is_amid_job = self.status.is_amid_job();
        if is_amid_job && self.status.image.is_some_and(is_replaced) && !self.given_up {
            self.given_up = true;
            sys::send(self.child, libc::SIGKILL);
            log(&format!("rank {rank} has become another program (exec): it is killed"));
        }
    }

    /// Cleans up after the child, which has ended, and ends as it did.
    fn end_after(mut self, end: ChildExit, testify: Testify) -> ! {
        let process = format!("rank {} on {}", self.rank, uname().nodename().to_string_lossy());
        let status = &mut self.status;
        let may_have_died = matches!(end, ChildExit::Signal(_)) || status.is_amid_job();
        let is_gone = may_have_died || status.given_up == Some(GivenUp::AsDead);
        let testimony = status.testimony.take().filter(|_| is_gone);
        // Before the others hear of it: they may have waited for this process alone, and leave.
        let calls = Calls::begin(if may_have_died { &status.others } else { &[] });
        // Beside all that follows: others wait for it.
        let witness = testimony.and_then(|testimony| begin(&testimony, testify));
        let is_interrupt =
            self.meant.contains(&libc::SIGINT) && matches!(end, ChildExit::Signal(_));
        let is_vital = may_have_died
            && if is_interrupt {
                ends_by_interrupt(status, self.rank)
            } else {
                job_ends_with(status, self.rank, calls)
            };
        let left = descendants::kill(&which_to_kill(end, status, &self.meant), witness);
        if left > 0 {
            log(&format!("{process} had started {left} processes that still ran: they are killed"));
        }
        remove_segments(status);
        if self.orphaned.is_some() {
            // No launcher is there to hear how it ended.
            sys::exit(1);
        }
        self.hear_rumours(end);
        let reaction = judge(end, &self.status, is_vital, &self.meant);
        self.react(reaction, end, &process, witness)
    }

    /// Hears which signals were meant for the child, if one has killed it and was not handed on.
    fn hear_rumours(&mut self, end: ChildExit) {
        let limit_ms = match end {
            ChildExit::Signal(signal) if !self.meant.contains(&signal) => RUMOUR_MS,
            _ => 0,
        };
        for _ in 0..RUMOURS_MAX {
            let Some(signal) = sys::next_signal(limit_ms) else { break };
            self.meant.insert(signal);
        }
    }

    /// Says how the child has ended, and ends so that the launcher does what is right.
    fn react(self, reaction: Reaction, end: ChildExit, process: &str, witness: Option<i32>) -> ! {
        let Watch { rank, status, meant, given_up, lineage, .. } = self;
        let launcher = lineage.launcher();
        let by = |signal| if given_up { "its guard".to_owned() } else { name(signal) };
        let called_exit = |code| format!("{process} called exit({code}) amid the job");
        let log_the_end_by = |signal| {
            if !meant.contains(&signal) {
                let when = if status.joined { "" } else { " before the job had begun" };
                log(&format!("{process} was killed by {}{when}: the job ends", by(signal)));
            }
        };
        match (reaction, end) {
            (Reaction::PassOn, ChildExit::Code(code)) if status.is_amid_job() => {
                log(&format!("{}: the job ends", called_exit(code)));
                wait_for(witness, PASSED_ON_WITHIN);
                // The job has not succeeded, whatever the code.
                sys::exit(code.max(1))
            }
            (Reaction::PassOn, ChildExit::Code(code)) => {
                if status.ending == Some(Ending::Finalised) {
                    wait_for_stopped_launcher(launcher);
                }
                sys::exit(code)
            }
            (Reaction::PassOn, ChildExit::Signal(signal)) => {
                log_the_end_by(signal);
                wait_for(witness, PASSED_ON_WITHIN);
                sys::end_by(signal)
            }
            (Reaction::TakeLeave { code }, _) => {
                if let ChildExit::Signal(signal) = end {
                    log_the_end_by(signal);
                }
                take_leave(rank, launcher, status);
                wait_for(witness, TESTIMONY_ENDS_WITHIN);
                sys::exit(code)
            }
            (Reaction::Tolerate, _) => {
                take_leave(rank, launcher, status);
                let what = match end {
                    ChildExit::Code(code) => called_exit(code),
                    ChildExit::Signal(signal) => format!("{process} was killed by {}", by(signal)),
                };
                log(&format!("{what}; the job goes on without it"));
                wait_for(witness, TESTIMONY_ENDS_WITHIN);
                sys::exit(0)
            }
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

fn take_leave(rank: u32, launcher: u32, status: ChildStatus) {
    if let Err(reason) = finalize::on_behalf_of(status.server, launcher) {
        let what = "cannot be told that all is well with rank";
        log(&format!("the launcher {what} {rank}, and may end the job: {reason}"));
    }
}

/// Shows a line on standard error, if that takes it at once: a guard waits for no reader. (A pipe
/// that is ready takes a page, which is more than a line.)
pub(super) fn log(line: &str) {
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
