//! Shows how far a long computation is.

use crate::beside::beside;
use crate::log::{self, log_line, log_text};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::Context;

/// How often the tasks are counted. Costs one small task per PE.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// How long the last count may take, when the work has ended.
const LAST_COUNT_WITHIN: Duration = Duration::from_secs(1);

/// Without a terminal, how often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// On a terminal, how often the bar is drawn.
const BAR_EVERY: Duration = Duration::from_millis(50);
const BAR_COLUMNS: usize = 40;

/// Empties the terminal's line, and goes to its beginning.
const CLEAR: &str = "\r\x1b[2K";

/// Awaits `work` and shows how many tasks of the job have ended since, on standard error. On a
/// terminal this is a bar, or a number if `total` is `None`; else a line is written each second.
///
/// `total` is how many tasks the work spawns in all: then the display ends with the last of them.
/// Each task counts once, also if it has run twice because a PE has died. If the PE dies that had
/// spawned it, such as a coordinator of `two_level`, it counts when it has ended anew; until then
/// the display stands still. What is found in a journal counts at once, each record as a task. A
/// search makes few tasks, however many nodes it visits: the cookbook has a program that counts
/// these.
///
/// The PEs are asked for their counts at the beginning, every 250 ms and at the end, which costs a
/// small task on each. If they cannot be asked any more, the display ends, and the work goes on.
///
/// ```
/// use ultramarine::prelude::*;
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     let work = map(|n: u64| n * n, 0..100_000).chunks(100).run(cx);
///     ultramarine::with_progress(cx, 1000, work).await
/// }
/// ```
pub async fn with_progress<T>(
    cx: &Context,
    total: impl Into<Option<u64>>,
    work: impl Future<Output = T>,
) -> T {
    let mut progress = Progress::begin(cx, total.into()).await;
    let result = beside(work, progress.show_on(cx)).await;
    let _ = cx.timeout(LAST_COUNT_WITHIN, progress.show(cx)).await;
    result
}

/// How many tasks have ended, and what is shown of it.
struct Progress {
    /// The counts at the beginning, by the PEs that had spawned the tasks.
    before: BTreeMap<u32, u64>,
    total: Option<u64>,
    shown: u64,
    display: Display,
}

impl Progress {
    async fn begin(cx: &Context, total: Option<u64>) -> Self {
        let before = cx.statistics().await.map_or_else(|_| BTreeMap::new(), |found| found.ended);
        Progress { before, total, shown: 0, display: Display::new("tasks ended") }
    }

    /// Shows the present count. Returns whether the PEs can still be asked.
    async fn show(&mut self, cx: &Context) -> bool {
        let Ok(statistics) = cx.statistics().await else { return false };
        let since = |(pe, ended): (&u32, &u64)| {
            ended.saturating_sub(self.before.get(pe).copied().unwrap_or(0))
        };
        let ended: u64 = statistics.ended.iter().map(since).sum();
        // What a PE had spawned that has died is not counted for a while.
        self.shown = self.shown.max(ended.min(self.total.unwrap_or(u64::MAX)));
        self.display.show(self.shown, self.total);
        true
    }

    /// Shows the count now and then, for as long as that is possible.
    async fn show_on(&mut self, cx: &Context) {
        loop {
            cx.sleep(COUNT_EVERY).await;
            if !self.show(cx).await {
                return;
            }
        }
    }
}

/// Shows numbers that a skeleton tells, on standard error: what is done, and of how many, if that
/// is known. On a terminal this is a bar, or a number; else a line is written each second at most,
/// and one for the last number if there were others. `what` is named after the numbers. The bar
/// vanishes when the function is dropped.
///
/// ```
/// use std::time::Duration;
/// use ultramarine::prelude::*;
/// use ultramarine::skeletons::dag::{Builder, DagError, Node, dag};
///
/// async fn squares(cx: &Context) -> Result<Vec<u64>, DagError> {
///     let build = |g: &mut Builder, (): &()| -> Vec<Node<u64>> {
///         (0..100).map(|n| g.source(|n| n * n, n)).collect()
///     };
///     let show = ultramarine::progress_display("nodes computed");
///     dag(build, ()).progress(Duration::from_millis(250), show).run(cx).await
/// }
/// ```
pub fn progress_display(what: &'static str) -> impl FnMut(u64, Option<u64>) + Send + 'static {
    let mut display = Display::new(what);
    move |done, of| display.show(done, of)
}

/// A bar on a terminal, or lines.
struct Display {
    what: &'static str,
    is_bar: bool,
    start: Instant,
    /// When something is shown again.
    next: Instant,
    has_shown: bool,
}

impl Display {
    fn new(what: &'static str) -> Self {
        let (is_bar, start) = (std::io::stderr().is_terminal(), Instant::now());
        let next = if is_bar { start } else { start + LINE_EVERY };
        Display { what, is_bar, start, next, has_shown: false }
    }

    fn show(&mut self, done: u64, of: Option<u64>) {
        let is_last = self.has_shown && of == Some(done);
        if Instant::now() < self.next && !is_last {
            return;
        }
        let of_all = of.map_or_else(String::new, |of| format!("/{of}"));
        let took = self.start.elapsed();
        let text = format!("{done}{of_all} {} after {took:.0?}", self.what);
        if self.is_bar {
            let bar = of.map_or_else(String::new, |of| bar(done, of));
            let line: String = bar.chars().chain(text.chars()).take(columns() - 1).collect();
            log_text(format!("{CLEAR}{line}"));
        } else {
            log_line(text);
        }
        self.next = Instant::now() + if self.is_bar { BAR_EVERY } else { LINE_EVERY };
        self.has_shown = true;
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if self.is_bar && self.has_shown {
            log_text(CLEAR);
            // What the program prints next is not to stand behind the bar.
            log::flush();
        }
    }
}

/// A bar of which the part is filled that is done, and a space.
fn bar(done: u64, of: u64) -> String {
    let share = if of == 0 { 1.0 } else { done as f64 / of as f64 };
    let filled = ((share * BAR_COLUMNS as f64) as usize).min(BAR_COLUMNS);
    format!("{}{} ", "█".repeat(filled), "░".repeat(BAR_COLUMNS - filled))
}

/// The width of the terminal, at least 1.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_filled_as_far_as_the_work_is_done() {
        let filled = |done, of| bar(done, of).chars().filter(|c| *c == '█').count();
        let found =
            [(0, 10), (5, 10), (10, 10), (11, 10), (0, 0)].map(|(done, of)| filled(done, of));
        assert_eq!(found, [0, 20, 40, 40, 40]);
        assert_eq!(bar(1, 3).chars().count(), BAR_COLUMNS + 1);
    }
}
