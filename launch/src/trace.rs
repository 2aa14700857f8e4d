//! Recording a trace: where the parts go, and what a program's own spans become.

use crate::beside::beside;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::span::Id;
use tracing_subscriber::Layer;
use tracing_subscriber::layer;
use tracing_subscriber::registry::LookupSpan;
use ultramarine_environment::variables;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::trace::{self, Recording, Skew};
use ultramarine_topology::{Pe, Topology};

/// Removes what an earlier job has left in the folder: it would be read as part of this one. Not
/// what another job of this process records.
pub(crate) fn remove_former(folder: &Path) {
    let files = fs::read_dir(folder).ok().filter(|_| !trace::is_on());
    let paths = files.into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
    for path in paths.filter(|path| trace::is_part(path)) {
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!("the part `{}` of a former trace stays: {error}", path.display());
        }
    }
}

/// Records what this process does, whose first PE this is, if there is a folder for it.
pub(crate) fn record(folder: Option<&Path>, me: Pe, topology: &Topology) -> Option<Recording> {
    let folder = folder?;
    let host = topology.place(me).host().unwrap_or("its host");
    let not_recorded = |error: std::io::Error| {
        let folder = folder.display();
        tracing::warn!("{me} records no trace in `{folder}`: {error}");
    };
    trace::record(folder, me, host, skew(me)).map_err(not_recorded).ok()
}

/// How wrong the clock of a PE is made, for testing: those of every second PE go ahead and faster
/// than that of the root, the others the other way.
fn skew(me: Pe) -> Skew {
    let asked = variables::CLOCK_SKEW.value().unwrap_or_default();
    let numbers = asked.split_once(',').and_then(|(ahead_s, drift_ppm)| {
        Some((ahead_s.trim().parse::<f64>().ok()?, drift_ppm.trim().parse::<f64>().ok()?))
    });
    let sign = [0.0, 1.0, -1.0][if me == Pe::ROOT { 0 } else { 2 - me.number() as usize % 2 }];
    let (ahead_s, drift_ppm) = numbers.unwrap_or_default();
    Skew { ahead_ns: (sign * ahead_s * 1e9) as i64, drift_ppm: sign * drift_ppm }
}

/// How often the clocks of all PEs are compared.
const CLOCKS_EVERY: Duration = Duration::from_secs(5);

/// How long the first and the last comparison may take.
const CLOCKS_WITHIN: Duration = Duration::from_millis(500);

/// Awaits the main task, and has the clocks of all PEs compared before it, meanwhile and at the
/// end. When no task runs, PEs answer soonest: the first and the last comparison count the most.
pub(crate) async fn with_clocks<T>(cx: Context, main: impl Future<Output = T>) -> T {
    let _ = cx.timeout(CLOCKS_WITHIN, cx.compare_clocks()).await;
    let now_and_then = async {
        loop {
            cx.sleep(CLOCKS_EVERY).await;
            if cx.compare_clocks().await.is_err() {
                break;
            }
        }
    };
    let result = beside(main, now_and_then).await;
    let _ = cx.timeout(CLOCKS_WITHIN, cx.compare_clocks()).await;
    result
}

thread_local! {
    /// The spans that the thread is in, and since when.
    static ENTERED: RefCell<Vec<(Id, Instant)>> = const { RefCell::new(Vec::new()) };
}

/// Has the spans of `tracing` in the trace: each time that a thread is in one, from entering it
/// until leaving it. For a program that has a subscriber of its own:
///
/// ```
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::layer::SubscriberExt as _;
/// use tracing_subscriber::util::SubscriberInitExt as _;
/// use tracing_subscriber::{Layer as _, fmt, registry};
///
/// let lines = fmt::layer().with_filter(LevelFilter::WARN);
/// let spans = ultramarine::TraceSpans.with_filter(LevelFilter::INFO);
/// registry().with(lines).with(spans).init();
/// ```
///
/// A program that has none gets one that does it, if a trace is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceSpans;

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceSpans {
    fn on_enter(&self, id: &Id, _: layer::Context<'_, S>) {
        // A thread that ends has none any more.
        let _ = ENTERED.try_with(|entered| {
            entered.borrow_mut().push((id.clone(), Instant::now()));
        });
    }

    fn on_exit(&self, id: &Id, spans: layer::Context<'_, S>) {
        let left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let at = entered.iter().rposition(|(other, _)| other == id)?;
            Some(entered.remove(at).1)
        });
        if let (Ok(Some(begun)), Some(span)) = (left, spans.span(id)) {
            trace::note_span(span.name(), begun);
        }
    }
}
