//! Shows how far a long computation is.

use crate::log::log_line;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::IsTerminal;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::Context;

/// How often the tasks are counted. Costs one small task per PE.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// How long the last count may take, when the work has ended.
const LAST_COUNT_WITHIN: Duration = Duration::from_secs(1);

/// Without a terminal, how often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(1);

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
    let mut work = pin!(work);
    let mut progress = Progress::begin(cx, total.into()).await;
    let result = {
        let mut show = pin!(progress.show_on(cx));
        poll_fn(|waker| match work.as_mut().poll(waker) {
            Poll::Ready(result) => Poll::Ready(result),
            // The display ends only when the PEs cannot be asked any more. The work goes on
            // without it.
            Poll::Pending => {
                let _ = show.as_mut().poll(waker);
                Poll::Pending
            }
        })
        .await
    };
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
                std::future::pending::<()>().await;
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
    /// On a terminal, once something is shown.
    bar: Option<ProgressBar>,
    start: Instant,
    next_line: Instant,
}

impl Display {
    fn new(what: &'static str) -> Self {
        let start = Instant::now();
        Display { what, bar: None, start, next_line: start + LINE_EVERY }
    }

    fn show(&mut self, done: u64, of: Option<u64>) {
        let Display { what, bar, start, next_line } = self;
        if std::io::stderr().is_terminal() {
            bar.get_or_insert_with(|| new_bar(what, of).with_elapsed(start.elapsed()))
                .set_position(done);
            return;
        }
        let has_lines = *next_line > *start + LINE_EVERY;
        if Instant::now() >= *next_line || (has_lines && of == Some(done)) {
            let of_all = of.map_or_else(String::new, |of| format!("/{of}"));
            let took = start.elapsed();
            log_line(format_args!("{done}{of_all} {what} after {took:.0?}"));
            *next_line = Instant::now() + LINE_EVERY;
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn new_bar(what: &str, of: Option<u64>) -> ProgressBar {
    let (style, bar) = match of {
        Some(of) => {
            (format!("{{bar:40}} {{pos}}/{{len}} {what}, {{elapsed}}"), ProgressBar::new(of))
        }
        None => (format!("{{pos}} {what}, {{elapsed}}"), ProgressBar::no_length()),
    };
    let style = ProgressStyle::with_template(&style);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
