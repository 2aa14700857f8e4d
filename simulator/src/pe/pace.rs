//! When a PE takes its next turn at the engine: the rules of the runtime's threads
//! (`executor/pe/worker.rs` and `drive.rs`), which the engine does not know.
//!
//! - A worker takes a turn after each long task, before it takes the next one; with short tasks,
//!   only after several.
//! - A worker that has run out of work takes turns without pause for a while. If nothing comes, it
//!   sleeps, and takes none until the driver has work for it.
//! - The driver takes a turn, sleeps, and takes the next: ever more seldom while no work comes,
//!   and as soon as something is due. It only knows what was due at its own last turn.
//!
//! Turns of the driver in which nothing happens are not simulated. Where it stands in its pauses is
//! computed when something arrives.

use ultramarine_runtime::executor::engine::Turn;
use ultramarine_runtime::protocol::Need;

// The times of those threads, in nanoseconds.

/// How long an idle worker polls before it sleeps.
const SPIN: u64 = 100_000;
/// The shortest time between two turns of a worker with short tasks, also while nothing arrives.
const WORKER_EVERY: u64 = 4_000;
const WORKER_EVERY_QUIET: u64 = 16_000;
/// The shortest pause of the driver.
const DRIVER_MIN: u64 = 50_000;
/// Its longest pause while workers compute.
const DRIVER_BUSY_MAX: u64 = 5_000_000;
/// Its longest pause while none does, and always on the root.
pub(crate) const DRIVER_RESTING_MAX: u64 = 2_000_000;

/// What differs from job to job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PaceSettings {
    /// Whether tasks let workers take turns while they compute.
    pub(crate) tasks_poll: bool,
    /// How much later than asked for the system ends a pause, in nanoseconds.
    pub(crate) sleep_late: u64,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// `None`: it takes a turn as soon as there is a reason to.
    settings: Option<PaceSettings>,
    is_root: bool,
    last_turn: u64,
    need: Need,
    /// Until then a worker without work polls.
    polls_until: u64,
    driver: DriverPace,
}

/// A driver that has something to do takes its next turn after this, in nanoseconds.
const AT_ONCE: u64 = 1_000;

/// Where the driver stands in its pauses.
#[derive(Clone, Copy, Debug)]
struct DriverPace {
    /// When it takes its next turn.
    wakes_at: u64,
    pause: u64,
    /// What the engine has to do at this moment: no pause is longer.
    due: u64,
    /// Whether it has noticed that all workers sleep.
    is_resting: bool,
}

impl DriverPace {
    /// It takes turns, in which nothing happens, until the next one is at `at` or later.
    fn go_on_until(&mut self, at: u64, longest: u64, late: u64) {
        while self.wakes_at < at {
            if self.due <= self.wakes_at {
                self.wakes_at = at;
            } else if self.pause == longest {
                let slept = longest + late;
                self.wakes_at += (at.min(self.due) - self.wakes_at) / slept * slept;
            }
            if self.wakes_at < at {
                self.sleep(longest, late);
            }
        }
    }

    /// It has taken a turn, and sleeps until the next.
    fn sleep(&mut self, longest: u64, late: u64) {
        if self.due > self.wakes_at {
            let grown = if self.is_resting { self.pause + self.pause / 8 } else { self.pause * 2 };
            self.pause = grown.min(longest);
            self.wakes_at += self.pause.min(self.due - self.wakes_at) + late;
        } else {
            self.wakes_at += AT_ONCE;
        }
    }
}

impl Pace {
    pub(crate) fn new(settings: Option<PaceSettings>, is_root: bool) -> Self {
        let driver = DriverPace { wakes_at: 0, pause: DRIVER_MIN, due: u64::MAX, is_resting: true };
        Pace { settings, is_root, last_turn: 0, need: Need::Idle, polls_until: 0, driver }
    }

    /// Whether the PE runs the main task: once the root, always the root.
    pub(crate) fn note_root(&mut self, is_root: bool) {
        self.is_root |= is_root;
    }

    /// When the PE notices something that comes at `now`.
    pub(crate) fn notices_at(&mut self, now: u64) -> u64 {
        let Some(settings) = self.settings else { return now };
        if self.is_polling(now) {
            return now;
        }
        if settings.tasks_poll && self.need != Need::Idle {
            return now.next_multiple_of(WORKER_EVERY_QUIET);
        }
        self.drive_until(now, &settings);
        self.driver.wakes_at
    }

    /// When the PE does what is due at `due`, if nothing else makes it take a turn.
    pub(crate) fn does_at(&self, due: u64) -> u64 {
        let mut later = *self;
        later.notices_at(due)
    }

    /// When a worker that has just ended a task takes a turn, if there is another task for it.
    pub(crate) fn after_task(&self, now: u64) -> u64 {
        if self.settings.is_none() { now } else { now.max(self.last_turn + WORKER_EVERY) }
    }

    /// A worker has run out of work, and begins to poll.
    pub(crate) fn note_idle(&mut self, now: u64) {
        let Some(settings) = self.settings else { return };
        self.drive_until(now, &settings);
        self.polls_until = now + SPIN;
    }

    /// A turn was taken. The need is that after it; `ran_dry` says whether a worker has run out of
    /// work in it.
    pub(crate) fn note_turn(&mut self, now: u64, turn: &Turn, need: Need, ran_dry: bool) {
        let Some(settings) = self.settings else { return };
        self.drive_until(now, &settings);
        let was_polling = self.is_polling(now);
        if ran_dry || was_polling && turn.something_happened {
            self.polls_until = now + SPIN;
        }
        self.last_turn = now;
        self.need = need;
        self.driver.is_resting &= need == Need::Idle && !ran_dry;
        self.driver.due = turn.due.map_or(u64::MAX, |due| due.as_nanos() as u64);
        if !was_polling && self.driver.wakes_at == now {
            if turn.work_came || turn.is_streaming {
                self.driver.pause = DRIVER_MIN;
            }
            self.driver.sleep(self.longest(), settings.sleep_late);
        }
    }

    fn is_polling(&self, now: u64) -> bool {
        self.need != Need::Ahead && now < self.polls_until
    }

    fn longest(&self) -> u64 {
        if self.driver.is_resting || self.is_root { DRIVER_RESTING_MAX } else { DRIVER_BUSY_MAX }
    }

    /// Lets the driver take turns in which nothing happens, until its next one is at `now` or
    /// later.
    fn drive_until(&mut self, now: u64, settings: &PaceSettings) {
        let late = settings.sleep_late;
        let rests_at = self.polls_until;
        if self.need == Need::Idle && !self.driver.is_resting && rests_at <= now {
            // The last worker has found nothing, and calls the driver, whose pauses begin anew.
            let longest = self.longest();
            self.driver.go_on_until(rests_at, longest, late);
            let (wakes_at, pause) = (rests_at, DRIVER_MIN);
            self.driver = DriverPace { wakes_at, pause, is_resting: true, ..self.driver };
        }
        let longest = self.longest();
        self.driver.go_on_until(now, longest, late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn pace(is_root: bool, sleep_late: u64) -> Pace {
        Pace::new(Some(PaceSettings { sleep_late, ..PaceSettings::default() }), is_root)
    }

    fn due(at: u64) -> Turn {
        Turn { due: Some(Duration::from_nanos(at)), ..Turn::default() }
    }

    #[test]
    fn the_driver_of_a_busy_pe_looks_ever_more_seldom() {
        for (is_root, longest) in [(false, 5 * MS), (true, 2 * MS)] {
            let mut pace = pace(is_root, 0);
            pace.note_turn(0, &Turn::default(), Need::Ahead, false);
            assert_eq!(pace.notices_at(90_000), 100_000);
            assert_eq!(pace.notices_at(100_001), 300_000);
            let later = pace.notices_at(900 * MS);
            assert_eq!(pace.notices_at(later + 1), later + longest);
        }
    }

    #[test]
    fn pauses_take_longer_than_asked_for() {
        let mut pace = pace(false, 70_000);
        pace.note_turn(0, &Turn::default(), Need::Ahead, false);
        assert_eq!(pace.notices_at(90_000), 170_000);
        assert_eq!(pace.notices_at(170_001), 170_000 + 270_000);
    }

    #[test]
    fn a_worker_without_work_polls_and_then_the_pauses_begin_anew() {
        let mut pace = pace(false, 0);
        pace.note_turn(0, &Turn::default(), Need::Ahead, false);
        pace.note_turn(50 * MS, &Turn::default(), Need::Idle, true);
        assert_eq!(pace.notices_at(50 * MS + 99_999), 50 * MS + 99_999);
        // It polls for longer if something has come.
        let news = Turn { something_happened: true, ..Turn::default() };
        pace.note_turn(50 * MS + 90_000, &news, Need::Idle, false);
        assert_eq!(pace.notices_at(50 * MS + 189_999), 50 * MS + 189_999);
        // The driver is called, and pauses for 9/8 of its shortest pause.
        let called = 50 * MS + 190_000;
        assert_eq!(pace.notices_at(called + 1), called + 56_250);
        // What comes to the driver does not make the worker poll.
        pace.note_turn(called + 56_250, &news, Need::Idle, false);
        assert_eq!(pace.notices_at(called + 60_000), called + 56_250 + 63_281);
    }

    #[test]
    fn the_driver_knows_what_is_due_from_its_own_turns_only() {
        let mut pace = pace(false, 0);
        pace.note_turn(0, &due(40_000), Need::Ahead, false);
        assert_eq!(pace.does_at(40_000), 40_000, "its own turn");
        pace.note_turn(40_000, &Turn::default(), Need::Ahead, false);
        let asleep_until = pace.notices_at(50_000);
        assert_eq!(asleep_until, 240_000);
        // A worker's turn, between two tasks.
        pace.note_turn(60_000, &due(90_000), Need::Ahead, false);
        assert_eq!(pace.does_at(90_000), asleep_until);
        pace.note_turn(60_000, &due(300_000), Need::Ahead, false);
        assert_eq!(pace.does_at(300_000), 300_000, "it has woken up meanwhile");
    }
}
