//! The status of a job in Prometheus' text format.
//!
//! Source: Prometheus, "Exposition formats", text-based format 0.0.4.

use crate::{JobStatus, PeStatus};
use std::fmt::Write as _;

/// The type of this text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A figure of each PE.
pub(crate) struct Row {
    /// Its name in JSON, which is that of the field.
    pub(crate) field: &'static str,
    /// Its name and type for Prometheus, and what it is.
    name: &'static str,
    kind: &'static str,
    about: &'static str,
    pub(crate) value: fn(&PeStatus) -> u64,
}

const fn row(
    field: &'static str,
    name: &'static str,
    kind: &'static str,
    about: &'static str,
    value: fn(&PeStatus) -> u64,
) -> Row {
    Row { field, name, kind, about, value }
}

pub(crate) const ROWS: [Row; 12] = [
    row("workers", "workers", "gauge", "Worker threads.", |pe| pe.workers),
    row("idle", "workers_idle", "gauge", "Worker threads that have no task.", |pe| pe.idle),
    row("waiting", "tasks_waiting", "gauge", "Tasks that thieves may take.", |pe| pe.waiting),
    row("away", "tasks_away", "gauge", "Tasks of the PE that are on other PEs.", |pe| pe.away),
    row("memory", "memory_bytes", "gauge", "What the process of the PE has in memory.", |pe| {
        pe.memory
    }),
    row("started", "tasks_started_total", "counter", "Tasks started on the PE.", |pe| pe.started),
    row("ended", "tasks_ended_total", "counter", "Tasks of the PE that have ended.", |pe| pe.ended),
    row(
        "again",
        "tasks_rerun_total",
        "counter",
        "Tasks of the PE spawned anew after a loss.",
        |pe| pe.again,
    ),
    row("lost", "tasks_lost_total", "counter", "Tasks of the PE that were lost.", |pe| pe.lost),
    row("messages", "messages_sent_total", "counter", "Messages that the PE has sent.", |pe| {
        pe.messages
    }),
    row(
        "moved_bytes",
        "moved_bytes_total",
        "counter",
        "Bytes sent to or copied from others.",
        |pe| pe.moved_bytes,
    ),
    row("orphans", "tasks_orphaned_total", "counter", "Tasks dropped with their home.", |pe| {
        pe.orphans
    }),
];

pub(crate) fn text(job: &JobStatus) -> String {
    let mut text = String::new();
    let mut single = |name, about, value: f64| {
        let _ = writeln!(text, "{}ultramarine_{name} {value}", head(name, "gauge", about));
    };
    single("job_running", "Whether the job runs.", f64::from(u8::from(job.is_running)));
    single("job_seconds", "Seconds since the main task began.", job.seconds);
    single("pes", "PEs that have answered.", job.pes.len() as f64);
    single("pes_silent", "PEs that live and have not answered.", job.silent.len() as f64);
    single("pes_dead", "PEs that have died.", job.dead.len() as f64);
    for Row { name, kind, about, value, .. } in ROWS {
        text += &head(name, kind, about);
        for pe in &job.pes {
            let _ = writeln!(text, "ultramarine_{name}{{{}}} {}", labels(pe), value(pe));
        }
    }
    for (name, about, value) in [
        ("tasks_stolen_total", "Tasks that the PE has stolen.", 0),
        ("stolen_bytes_total", "Bytes of the tasks that the PE has stolen.", 1),
    ] {
        text += &head(name, "counter", about);
        for pe in &job.pes {
            for row in &pe.stolen {
                let (labels, distance) = (labels(pe), escaped(&row.distance));
                let value = [row.tasks, row.bytes][value];
                let _ = writeln!(
                    text,
                    "ultramarine_{name}{{{labels},distance=\"{distance}\"}} {value}"
                );
            }
        }
    }
    text
}

fn head(name: &str, kind: &str, about: &str) -> String {
    format!("# HELP ultramarine_{name} {about}\n# TYPE ultramarine_{name} {kind}\n")
}

fn labels(pe: &PeStatus) -> String {
    format!("pe=\"{}\",host=\"{}\"", pe.pe, escaped(&pe.host))
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stolen;

    #[test]
    fn names_and_labels_are_as_prometheus_wants_them() {
        let stolen = vec![Stolen { distance: "1/2".to_owned(), tasks: 3, bytes: 99 }];
        let pe =
            PeStatus { pe: 7, host: "a\"b\\c".to_owned(), idle: 2, stolen, ..Default::default() };
        let job = JobStatus { pes: vec![pe], seconds: 1.5, is_running: true, ..Default::default() };
        let text = text(&job);
        for line in [
            "# TYPE ultramarine_workers_idle gauge",
            "ultramarine_job_running 1",
            "ultramarine_job_seconds 1.5",
            r#"ultramarine_workers_idle{pe="7",host="a\"b\\c"} 2"#,
            r#"ultramarine_tasks_stolen_total{pe="7",host="a\"b\\c",distance="1/2"} 3"#,
            r#"ultramarine_stolen_bytes_total{pe="7",host="a\"b\\c",distance="1/2"} 99"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
