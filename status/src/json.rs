//! The status of a job as a JSON object.
//!
//! It is written here and not by `serde_json`, since every program would be linked with that. It
//! compares its values with numbers, and then the compiler asks of which type a sum is wherever one
//! is compared in a program.

use crate::metrics::ROWS;
use crate::{JobStatus, PeStatus, Stolen};
use std::fmt::Write as _;

pub(crate) fn object(job: &JobStatus) -> String {
    let JobStatus { version, program, process, seconds, is_running, dead, silent, pes } = job;
    let (version, program) = (string(version), string(program));
    let [dead, silent] = [dead, silent].map(|pes| array(pes, u32::to_string));
    let pes = array(pes, of_pe);
    format!(
        "{{\"version\":{version},\"program\":{program},\"process\":{process},\
         \"seconds\":{seconds},\"is_running\":{is_running},\"dead\":{dead},\"silent\":{silent},\
         \"pes\":{pes}}}"
    )
}

fn of_pe(pe: &PeStatus) -> String {
    let mut text = format!("{{\"pe\":{},\"host\":{}", pe.pe, string(&pe.host));
    for row in ROWS {
        let _ = write!(text, ",\"{}\":{}", row.field, (row.value)(pe));
    }
    let stolen = |Stolen { distance, tasks, bytes }: &Stolen| {
        let distance = string(distance);
        format!("{{\"distance\":{distance},\"tasks\":{tasks},\"bytes\":{bytes}}}")
    };
    text + ",\"stolen\":" + &array(&pe.stolen, stolen) + "}"
}

fn array<T>(values: &[T], one: impl Fn(&T) -> String) -> String {
    let values: Vec<_> = values.iter().map(one).collect();
    format!("[{}]", values.join(","))
}

fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        let _ = match letter {
            '"' | '\\' => write!(quoted, "\\{letter}"),
            letter if letter.is_control() => write!(quoted, "\\u{:04x}", u32::from(letter)),
            letter => write!(quoted, "{letter}"),
        };
    }
    quoted + "\""
}
