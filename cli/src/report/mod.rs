//! `ultramarine report`: one page that says where the time of a job went.
//!
//! | file | what |
//! |---|---|
//! | `figures` | adds up what a trace tells |
//! | `heat` | how busy each PE was, over time |
//! | `waiting` | when its workers waited |
//! | `advice` | what stands out, in plain words |
//! | `charts` | pictures of it |
//! | `page` | the page |

mod advice;
mod charts;
mod figures;
mod heat;
mod page;
mod waiting;

use crate::error::Result;
use crate::output::write_whole;
use crate::trace::parts::{Parts, is_no_part};
use figures::Figures;
use std::io::Write as _;
use std::path::PathBuf;

/// Write a page that says where the time of a job went: what each PE did over time, the longest
/// tasks, steals, deaths, and what could be better.
///
/// The job must have been started with `--trace FOLDER`. The page is one file, and needs no
/// network.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder that the job was told to record in, or a file that was joined of it.
    #[arg(value_name = "FOLDER|FILE")]
    trace: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    is_no_part(&arguments.output)?;
    let mut figures = Figures::default();
    let parts = Parts::at(&arguments.trace)?;
    let (reader, clocks) = parts.read(|reader, noted| figures.add(reader, noted))?;
    let page = page::page(&figures.summed_up(&reader, clocks.said(&reader)));
    write_whole(&arguments.output, |out| Ok(out.write_all(page.into_string().as_bytes())?))?;
    Ok(writeln!(std::io::stdout(), "{}", arguments.output.display())?)
}
