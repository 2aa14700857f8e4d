//! The page: one file of HTML that needs no network. Each picture has a table beside it.

use super::advice::advice;
use super::charts;
use super::figures::{CLASSES, Function, Summary, Task};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::time::Duration;

/// How many functions and PEs are shown.
const ROWS_MAX: usize = 50;

/// Of how many functions it is shown how long their runs took, and what share of the time they
/// must have.
const HISTOGRAMS: (usize, f64) = (3, 0.01);

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
code { overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; }
th.n, td.n { text-align: right; white-space: nowrap; }
thead th { border-bottom: 1px solid #8888; }
.wide { overflow-x: auto; }
.bar { background: #8883; min-width: 6rem; width: 12rem; }
.bar div { background: #2a6fdb; height: 1rem; }
figure { margin: 1rem 0; } figure svg { height: auto; width: 100%; }
figure svg text { fill: currentColor; } figure svg rect { shape-rendering: crispEdges; }
img.heat { background: #8882; height: auto; image-rendering: pixelated; min-height: 4rem;
  width: 100%; }
.advice { border-left: .3rem solid #2a6fdb; padding-left: 1rem; }
summary { cursor: pointer; }
";

/// Nanoseconds, for people.
pub(super) fn duration(ns: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(ns))
}

/// A share, for people.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub(super) fn page(job: &Summary<'_>) -> Markup {
    let program =
        job.command.first().map_or("A job", |path| path.rsplit('/').next().unwrap_or(path));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Report of " (program) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Where the time of " (program) " went" }
                main {
                    (summary(job))
                    section.advice aria-label="Advice" {
                        @for sentence in advice(job) { p { (sentence) } }
                    }
                    (times(job))
                    (over_time(job))
                    (functions(job))
                    (longest(job))
                    (counters(job))
                    (events(job))
                }
            }
        }
    }
}

fn summary(job: &Summary<'_>) -> Markup {
    let computing = job.times.share(job.times.computing);
    let hosts: Vec<_> = job.hosts.iter().take(ROWS_MAX).copied().collect();
    let more = job.hosts.len() - hosts.len();
    html! {
        @if !job.command.is_empty() { p { code { (job.command.join(" ")) } } }
        table {
            tr { th scope="row" { "Time" } td { (duration(job.took_ns)) } }
            tr { th scope="row" { "PEs" } td { (job.pes.len()) } }
            tr { th scope="row" { "Workers" } td { (job.workers) } }
            tr {
                th scope="row" { "Hosts" }
                td { (hosts.join(", ")) @if more > 0 { " and " (more) " more" } }
            }
            tr { th scope="row" { "Workers computed" } td { (percent(computing)) " of the time" } }
        }
        @if job.lost > 0 {
            p { (job.lost) " runs and spans are missing: the disk was too slow." }
        }
    }
}

fn times(job: &Summary<'_>) -> Markup {
    let times = &job.times;
    let rows = [
        ("computing", times.computing),
        ("before their first work", times.start),
        ("waiting between tasks or without any, and the runtime's own work", times.between),
        ("after their last work", times.end),
    ];
    html! {
        h2 { "What the workers did" }
        div.wide {
            table {
                thead { tr { th { "What" } th.n { "Share" } th.n { "Time of all" } th { } } }
                tbody {
                    @for (what, ns) in rows {
                        tr {
                            th scope="row" { (what) }
                            td.n { (percent(times.share(ns))) }
                            td.n { (duration(ns)) }
                            td { (bar(times.share(ns))) }
                        }
                    }
                }
            }
        }
    }
}

fn bar(share: f64) -> Markup {
    let width = format!("width:{:.1}%", 100.0 * share);
    html! { div.bar aria-hidden="true" { div style=(width) {} } }
}

fn over_time(job: &Summary<'_>) -> Markup {
    let pieces = job.busy.first().map_or(0, Vec::len);
    let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len().max(1) as f64;
    html! {
        h2 { "Over time" }
        @if let Some(clocks) = &job.clocks { p { (clocks) "." } }
        @if let Some(svg) = charts::utilisation(job) {
            figure {
                div role="img" aria-label="The share of busy workers over time" {
                    (PreEscaped(svg))
                }
                figcaption { "The share of the workers that compute." }
            }
        }
        @if let Some(image) = charts::heat_map(job) {
            figure {
                img.heat src=(image) alt="How busy each PE was over time: see the table";
                figcaption {
                    "Each PE, in the order of the hierarchy from above, from left to right over "
                    (duration((pieces as f64 * job.piece_s * 1e9) as u64))
                    ": the stronger the colour, the busier."
                }
            }
        }
        details {
            summary { "As a table" }
            div.wide {
                table {
                    thead { tr { th.n { "PE" } th.n { "Busy" } th { } } }
                    tbody {
                        @for (pe, row) in job.pes.iter().zip(&job.busy).take(ROWS_MAX) {
                            tr {
                                th.n scope="row" { (pe) }
                                td.n { (percent(mean(row))) }
                                td { (bar(mean(row))) }
                            }
                        }
                    }
                }
            }
            (more_than(job.pes.len()))
        }
    }
}

fn more_than(rows: usize) -> Markup {
    html! {
        @if let Some(more) = rows.checked_sub(ROWS_MAX).filter(|more| *more > 0) {
            p { (more) " more" }
        }
    }
}

fn functions(job: &Summary<'_>) -> Markup {
    let all: f64 = job.functions.iter().map(|(_, function)| function.busy_ns as f64).sum();
    let share = |function: &Function| function.busy_ns as f64 / all.max(1.0);
    let (most, least_share) = HISTOGRAMS;
    let large = job.functions.iter().take(most).filter(|(_, of)| share(of) >= least_share);
    html! {
        h2 { "Functions" }
        div.wide {
            table {
                thead {
                    tr {
                        th.n { "Runs" } th.n { "Time" } th.n { "Share" } th.n { "Mean" }
                        th.n { "Longest" } th { "Function" }
                    }
                }
                tbody {
                    @for (name, function) in job.functions.iter().take(ROWS_MAX) {
                        tr {
                            td.n { (function.runs) }
                            td.n { (duration(function.busy_ns)) }
                            td.n { (percent(share(function))) }
                            td.n { (duration(function.mean_ns())) }
                            td.n { (duration(function.longest_ns)) }
                            td { code { (name) } }
                        }
                    }
                }
            }
        }
        (more_than(job.functions.len()))
        @for (name, function) in large { (histogram(name, function)) }
    }
}

/// A run is what a task does without a break.
fn histogram(name: &str, function: &Function) -> Markup {
    let known = function.classes.iter().enumerate().filter(|(_, runs)| **runs > 0);
    html! {
        @if let Some(svg) = charts::durations(&function.classes) {
            figure {
                div role="img" aria-label={ "How long the runs of " (name) " took" } {
                    (PreEscaped(svg))
                }
                figcaption { "How long the runs of " code { (name) } " took." }
                details {
                    summary { "As a table" }
                    table {
                        thead { tr { th.n { "From" } th.n { "Until" } th.n { "Runs" } } }
                        tbody {
                            @for (class, runs) in known {
                                tr {
                                    td.n { (duration(1 << class)) }
                                    td.n { @if class + 1 < CLASSES { (duration(2 << class)) } }
                                    td.n { (runs) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn longest(job: &Summary<'_>) -> Markup {
    html! {
        @if !job.longest.is_empty() {
            h2 { "The longest runs" }
            div.wide {
                table {
                    thead {
                        tr {
                            th.n { "Took" } th.n { "Ended after" } th.n { "PE" }
                            th { "Function" }
                        }
                    }
                    tbody {
                        @for Task { function, pe, end_ns, took_ns } in job.longest {
                            tr {
                                td.n { (duration(*took_ns)) }
                                td.n { (duration(end_ns.saturating_sub(job.begin_ns))) }
                                td.n { (pe) }
                                td { code { (function) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn counters(job: &Summary<'_>) -> Markup {
    html! {
        @if !job.counters.is_empty() {
            h2 { "Counted at the end" }
            div.wide {
                table {
                    tbody {
                        @for (name, value) in &job.counters {
                            tr { th scope="row" { (name) } td.n { (value) } }
                        }
                    }
                }
            }
        }
    }
}

fn events(job: &Summary<'_>) -> Markup {
    html! {
        @if !job.events.is_empty() {
            h2 { "What happened" }
            div.wide {
                table {
                    thead {
                        tr {
                            th.n { "After" } th.n { "First on PE" } th.n { "Times" }
                            th { "What" }
                        }
                    }
                    tbody {
                        @for (text, happened) in job.events.iter().take(ROWS_MAX) {
                            tr {
                                td.n { (duration(happened.first_ns.saturating_sub(job.begin_ns))) }
                                td.n { (happened.pe) }
                                td.n { (happened.times) }
                                td { (text) }
                            }
                        }
                    }
                }
            }
            (more_than(job.events.len()))
        }
    }
}
