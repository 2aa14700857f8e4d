//! Several GAPs that serve the threads of a process.

use crate::child::{Broken, Patience};
use crate::error::{Death, GapError};
use crate::process::{Function, Needs, Process, Trouble};
use crate::settings::Settings;
use crate::value::Value;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest until a thread that waits for a process sees that it was given up.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// GAPs that are started when they are needed, and kept. One that dies is replaced.
///
/// Any thread may call; a call takes its thread until GAP has an answer. Calls know nothing of each
/// other: what one leaves in a global variable of GAP, the next finds only by chance.
///
/// Dropping the pool ends its processes. A pool in a `static` is not dropped: its processes are
/// killed with the program, unless they have [ended](Self::end_idle) before.
#[derive(Debug)]
pub struct Pool {
    settings: Settings,
    state: Mutex<State>,
    /// A process has become idle or has ended.
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Process>,
    /// The processes that there are, or that are being started.
    processes: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} processes, {} of them idle", self.processes, self.idle.len())
    }
}

impl Pool {
    /// A pool without processes yet.
    pub fn new(settings: Settings) -> Self {
        Pool { settings, state: Mutex::default(), freed: Condvar::new() }
    }

    /// The version of GAP, which is started for that unless it runs already.
    ///
    /// # Errors
    ///
    /// GAP is not installed, or too old, or cannot start, or cannot read a library.
    pub fn available(&self) -> Result<String, GapError> {
        let mut taken = self.take(None)?;
        let version = taken.process().version().to_owned();
        taken.give_back();
        Ok(version)
    }

    /// Calls the global function of this name.
    ///
    /// # Errors
    ///
    /// GAP says that there is an error, or the result cannot be sent, or GAP cannot be started, or
    /// has died in each try.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, GapError> {
        self.call_with(Needs::default(), Function::Global(name), arguments, None)
    }

    /// Calls the function with this source text, which each process compiles once and keeps: what
    /// differs from call to call belongs in the arguments.
    ///
    /// # Errors
    ///
    /// As of [`call`](Self::call).
    pub fn call_source(&self, source: &str, arguments: &[Value]) -> Result<Value, GapError> {
        self.call_with(Needs::default(), Function::Source(source), arguments, None)
    }

    /// Calls a function, but GAP is killed, within some 20 ms, once the call `is_given_up`. (A task
    /// gives up what is not wanted any more with `|| cx.is_cancelled()`.)
    ///
    /// # Errors
    ///
    /// As of [`call`](Self::call), and [`GapError::GivenUp`].
    pub fn call_unless(
        &self,
        is_given_up: impl Fn() -> bool,
        function: Function<'_>,
        arguments: &[Value],
    ) -> Result<Value, GapError> {
        self.call_with(Needs::default(), function, arguments, Some(&is_given_up))
    }

    /// The same, in a GAP that has what the call needs.
    ///
    /// # Errors
    ///
    /// As of [`call_unless`](Self::call_unless); GAP may say them of what it needs, too.
    pub fn call_with_needs(
        &self,
        is_given_up: impl Fn() -> bool,
        needs: Needs<'_>,
        function: Function<'_>,
        arguments: &[Value],
    ) -> Result<Value, GapError> {
        self.call_with(needs, function, arguments, Some(&is_given_up))
    }

    /// Ends the processes that serve no call. A program does so behind `ultramarine::run`, so that
    /// the guard of its process has none to kill, and to warn of. A later call starts another.
    pub fn end_idle(&self) {
        let mut idle = std::mem::take(&mut self.state().idle);
        // All are asked before the first is waited for.
        idle.iter_mut().for_each(Process::ask_to_end);
        let ended = idle.len();
        drop(idle);
        self.state().processes -= ended;
        for _ in 0..ended {
            self.freed.notify_one();
        }
    }

    fn call_with(
        &self,
        needs: Needs<'_>,
        function: Function<'_>,
        arguments: &[Value],
        is_given_up: Option<&dyn Fn() -> bool>,
    ) -> Result<Value, GapError> {
        let mut tries = 0;
        loop {
            let mut taken = self.take(is_given_up)?;
            let (limit, since) = (self.settings.limit, Instant::now());
            let patience = Patience { limit, since, is_given_up };
            let process = taken.process();
            let prepared = process.prepare(needs, &patience);
            match prepared.and_then(|()| process.call(function, arguments, &patience)) {
                // What it was to define counts for nothing: the process ends with it.
                Ok(_) if is_given_up.is_some_and(|is_given_up| is_given_up()) => {
                    return Err(GapError::GivenUp);
                }
                Ok(value) => {
                    taken.give_back();
                    return Ok(value);
                }
                Err(Trouble::Error(error)) => {
                    taken.give_back();
                    return Err(error);
                }
                Err(Trouble::Broken(Broken::GivenUp)) => return Err(GapError::GivenUp),
                Err(Trouble::Broken(Broken::Died(how))) => {
                    tries += 1;
                    let printed = taken.process().kill();
                    tracing::warn!("GAP died amid a call (try {tries}): {how}");
                    let would_die_again = match how {
                        Death::TooSlow { .. } | Death::TooLong { .. } => true,
                        // Of one that has served others, their remains may have filled it.
                        Death::OutOfMemory => taken.is_fresh,
                        _ => false,
                    };
                    if tries == self.settings.tries || would_die_again {
                        return Err(GapError::Died { tries, how, printed });
                    }
                }
            }
        }
    }

    /// Takes a process that has nothing to do, or starts one.
    fn take(&self, is_given_up: Option<&dyn Fn() -> bool>) -> Result<Taken<'_>, GapError> {
        let mut state = self.state();
        loop {
            // The one that served last: its memory is still in the caches.
            while let Some(process) = state.idle.pop() {
                if !process.is_dead() {
                    return Ok(Taken { pool: self, process: Some(process), is_fresh: false });
                }
                state.processes -= 1;
            }
            if state.processes < self.settings.processes {
                break;
            }
            let waited = self.freed.wait_timeout(state, LOOK_EVERY);
            drop(waited);
            if is_given_up.is_some_and(|is_given_up| is_given_up()) {
                return Err(GapError::GivenUp);
            }
            state = self.state();
        }
        state.processes += 1;
        drop(state);
        match Process::start(&self.settings, is_given_up) {
            Ok(process) => Ok(Taken { pool: self, process: Some(process), is_fresh: true }),
            Err(error) => {
                self.state().processes -= 1;
                self.freed.notify_one();
                Err(error)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end_idle();
    }
}

/// A process that serves one call. Unless it is given back, it is killed.
struct Taken<'a> {
    pool: &'a Pool,
    /// `None` once it is given back.
    process: Option<Process>,
    /// It was started for this call.
    is_fresh: bool,
}

impl Taken<'_> {
    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("nothing is asked of it once it is given back")
    }

    fn give_back(mut self) {
        self.pool.state().idle.extend(self.process.take());
        self.pool.freed.notify_one();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
            self.pool.state().processes -= 1;
            self.pool.freed.notify_one();
        }
    }
}
