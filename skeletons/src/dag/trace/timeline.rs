//! The timeline of a run, in the Trace Event Format (Google, 2016).

use super::picture::{labels, short};
use super::{Span, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

impl Trace {
    /// The spans as JSON, which <https://ui.perfetto.dev> and `chrome://tracing` show: a process
    /// for each PE, and a row for each of its threads.
    pub fn to_timeline(&self) -> String {
        let graph = self.graph.as_ref().map(|graph| (graph, labels(&graph.block)));
        let mut shorts: BTreeMap<&str, String> = BTreeMap::new();
        let mut events: Vec<String> = Vec::with_capacity(self.spans.len());
        let pes: BTreeSet<u32> = self.spans.iter().map(|span| span.pe.number()).collect();
        for pe in pes {
            for (what, value) in [
                ("process_name", format!("{{\"name\":\"PE {pe}\"}}")),
                ("process_sort_index", format!("{{\"sort_index\":{pe}}}")),
            ] {
                events.push(format!(
                    "{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{pe},\"tid\":0,\"args\":{value}}}"
                ));
            }
        }
        for span in &self.spans {
            let Span { node, name, pe, thread, start_ns, end_ns } = span;
            let label = match &graph {
                Some((graph, labels)) => &labels[graph.block.kind_of(node.index) as usize],
                None => shorts.entry(name).or_insert_with(|| short(name)),
            };
            events.push(format!(
                "{{\"name\":{},\"cat\":\"node\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{},\
                 \"tid\":{thread},\"args\":{{\"node\":{},\"block\":{},\"function\":{}}}}}",
                quoted(label),
                micros(*start_ns),
                micros(end_ns - start_ns),
                pe.number(),
                node.index,
                node.block,
                quoted(name)
            ));
        }
        format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
    }
}

/// Nanoseconds as microseconds.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
