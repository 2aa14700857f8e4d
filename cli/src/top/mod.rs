//! `ultramarine top`: what a running job does.
//!
//! | file | what |
//! |---|---|
//! | `rows` | a row for each host or PE, of what the job has said twice |
//! | `screen` | the page on a terminal |

mod rows;
mod screen;

use crate::error::{Error, Result};
use rows::{Each, Seen};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use ultramarine_status::JobStatus;
use ultramarine_status::client::{self, AskError};
use ultramarine_status::contact::Contact;

/// How long after the first answer `--once` asks again, to know how fast the job is.
const ONCE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Watch a running job: hosts and PEs, how busy they are, how many tasks wait and run, what was
/// stolen, what died.
///
/// The job must have been started with `--status FILE`. It is asked over the network of its hosts:
/// so this may run on any host that reaches them and sees the file. On a terminal: `p` shows PEs
/// in place of hosts, arrows scroll, `q` ends this, and not the job.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file that the job was told to write.
    #[arg(value_name = "FILE")]
    contact: PathBuf,
    /// Print what the job does now, by host, and end.
    #[arg(long)]
    once: bool,
    /// The same as a JSON object, by PE.
    #[arg(long)]
    json: bool,
    /// How often the job is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    every: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.2..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "seconds from 0.2 to 3600 are expected".to_owned())
}

/// What the job does now.
fn ask(contact: &Contact) -> Result<JobStatus, AskError> {
    client::ask(contact, |body| Ok(serde_json::from_slice(body)?))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = arguments.contact.display();
    let contact = Contact::read(&arguments.contact).map_err(|error| {
        let hint = "a job that is started with --status writes it, and removes it at its end";
        Error::from(format!("`{file}` cannot be read: {error} ({hint})"))
    })?;
    let mut out = std::io::stdout();
    let first = ask(&contact)?;
    if arguments.json {
        let object = serde_json::to_string_pretty(&first).map_err(std::io::Error::other)?;
        return Ok(writeln!(out, "{object}")?);
    }
    if arguments.once {
        thread::sleep(ONCE_AGAIN_AFTER);
        let mut seen = Seen::new(first);
        match ask(&contact) {
            Ok(job) => seen.add(job),
            Err(AskError::Gone { .. } | AskError::Stranger { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        return Ok(write!(out, "{}", seen.text(Each::Host))?);
    }
    if !out.is_terminal() {
        return Err(Error::from("this page needs a terminal: --once prints what there is"));
    }
    let last = screen::show(&contact, Seen::new(first), Duration::from_secs_f64(arguments.every))?;
    Ok(writeln!(out, "{last}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_not_asked_all_the_time() {
        assert_eq!(interval("0.5"), Ok(0.5));
        for wrong in ["0", "0.1", "-1", "NaN", "inf", "1e9", "often"] {
            interval(wrong).expect_err(wrong);
        }
    }
}
