//! When a PE takes its next turn at the engine: the rules of the runtime's threads
//! (`executor/pe/worker.rs` and `drive.rs`), which the engine does not know.
//!
//! An idle worker takes turns without pause for a while; a worker takes one after each long task,
//! and after several short ones; the driver takes one from time to time, ever more seldom while
//! nothing comes.

use ultramarine_runtime::protocol::Need;

/// The times of those threads, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceSettings {
    /// How long an idle worker polls before it sleeps.
    pub(crate) spin: u64,
    /// The shortest time between two turns of a worker with short tasks.
    pub(crate) worker_every: u64,
    /// The same while nothing arrives.
    pub(crate) worker_every_quiet: u64,
    /// Whether tasks let workers take turns while they compute.
    pub(crate) tasks_poll: bool,
    /// The shortest pause of the driver.
    pub(crate) driver_min: u64,
    /// Its longest pause while workers compute.
    pub(crate) driver_busy_max: u64,
    /// Its longest pause while none does.
    pub(crate) driver_resting_max: u64,
}

impl Default for PaceSettings {
    fn default() -> Self {
        PaceSettings {
            spin: 100_000,
            worker_every: 4_000,
            worker_every_quiet: 16_000,
            tasks_poll: false,
            driver_min: 50_000,
            driver_busy_max: 5_000_000,
            driver_resting_max: 2_000_000,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// `None`: it takes a turn as soon as there is a reason to.
    settings: Option<PaceSettings>,
    last_turn: u64,
    /// When something last happened, or a worker last ran out of work.
    last_news: u64,
    /// When the driver takes its next turn.
    driver_at: u64,
    driver_pause: u64,
    is_resting: bool,
}

impl Pace {
    pub(crate) fn new(settings: Option<PaceSettings>) -> Self {
        let driver_pause = settings.map_or(0, |settings| settings.driver_min);
        Pace { settings, last_turn: 0, last_news: 0, driver_at: 0, driver_pause, is_resting: true }
    }

    /// When the PE notices something that comes at `now`.
    pub(crate) fn notices_at(&mut self, now: u64, need: Need, is_root: bool) -> u64 {
        let Some(settings) = self.settings else { return now };
        if need != Need::Ahead && now < self.last_news + settings.spin {
            return now;
        }
        if settings.tasks_poll && need != Need::Idle {
            return now.next_multiple_of(settings.worker_every_quiet);
        }
        let longest = if need == Need::Idle || is_root {
            settings.driver_resting_max
        } else {
            settings.driver_busy_max
        };
        while self.driver_at < now {
            let grown = match need {
                Need::Idle => self.driver_pause + self.driver_pause / 8,
                _ => self.driver_pause * 2,
            };
            self.driver_pause = grown.min(longest);
            let missed = (now - self.driver_at) / self.driver_pause;
            let steps = if self.driver_pause == longest { missed.max(1) } else { 1 };
            self.driver_at += steps * self.driver_pause;
        }
        self.driver_at
    }

    /// When a worker that has just ended a task takes a turn, if there is another task for it.
    pub(crate) fn after_task(&self, now: u64) -> u64 {
        let Some(settings) = self.settings else { return now };
        now.max(self.last_turn + settings.worker_every)
    }

    /// Says how much the PE needs work now. When its last worker has run out of work, the driver's
    /// pauses begin anew.
    pub(crate) fn note_need(&mut self, now: u64, need: Need) {
        let Some(settings) = self.settings else { return };
        if need == Need::Idle && !std::mem::replace(&mut self.is_resting, need == Need::Idle) {
            self.last_news = self.last_news.max(now);
            self.driver_pause = settings.driver_min;
            self.driver_at = now + settings.spin;
        }
        self.is_resting = need == Need::Idle;
    }

    /// A worker has run out of work, and begins to poll.
    pub(crate) fn note_idle(&mut self, now: u64) {
        self.last_news = now;
    }

    /// A turn was taken.
    pub(crate) fn note_turn(&mut self, now: u64, something_happened: bool, work_came: bool) {
        let Some(settings) = self.settings else { return };
        self.last_turn = now;
        if something_happened {
            self.last_news = now;
        }
        if work_came && now == self.driver_at {
            self.driver_pause = settings.driver_min;
        }
    }
}
