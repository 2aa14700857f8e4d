//! Shows how far a long computation is.

use crate::log::log_line;
use indicatif::{ProgressBar, ProgressStyle};
use std::future::poll_fn;
use std::io::IsTerminal;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::Context;

/// How often the tasks are counted. Costs one small task per PE.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// Without a terminal, how often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Awaits `work` and shows how many tasks of the job have been started since, on standard error. On
/// a terminal this is a bar, or a number if `total` is `None`; else a line is written each second.
///
/// `total` is how many tasks the work starts on all PEs together: then the display ends with the
/// last of them. Where tasks are run again because a PE has died, they count again, and the display
/// stays at `total`. A search makes few tasks, however many nodes it visits: the cookbook has a
/// program that counts these.
///
/// The PEs are asked for their counts every 250 ms, which costs a small task on each. If they
/// cannot be asked any more, the display ends, and the work goes on.
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
    let (mut work, mut show) = (pin!(work), pin!(show(cx, total.into())));
    poll_fn(|waker| match work.as_mut().poll(waker) {
        Poll::Ready(result) => Poll::Ready(result),
        // The display ends only when the PEs cannot be asked any more. The work goes on without it.
        Poll::Pending => {
            let _ = show.as_mut().poll(waker);
            Poll::Pending
        }
    })
    .await
}

/// Shows the count until all tasks have been started; after that, nothing changes any more.
async fn show(cx: &Context, total: Option<u64>) {
    let before = cx.statistics().await.map_or(0, |statistics| statistics.tasks);
    let (style, bar, of_all) = match total {
        Some(total) => {
            let style = "{bar:40} {pos}/{len} tasks started, {elapsed}";
            (style, ProgressBar::new(total), format!("/{total}"))
        }
        None => ("{pos} tasks started, {elapsed}", ProgressBar::no_length(), String::new()),
    };
    let style =
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = bar.with_style(style);
    let (terminal, start) = (std::io::stderr().is_terminal(), Instant::now());
    let mut next_line = start + LINE_EVERY;
    loop {
        cx.sleep(COUNT_EVERY).await;
        let Ok(statistics) = cx.statistics().await else { break };
        let started = statistics.tasks.saturating_sub(before).min(total.unwrap_or(u64::MAX));
        if terminal {
            bar.set_position(started);
        } else if Instant::now() >= next_line {
            let took = start.elapsed();
            log_line(format_args!("{started}{of_all} tasks started after {took:.0?}"));
            next_line += LINE_EVERY;
        }
        if Some(started) == total {
            break;
        }
    }
    bar.finish_and_clear();
    std::future::pending::<()>().await;
}
