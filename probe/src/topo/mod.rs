//! `ultramarine topo`: where the PEs of a job stand, and how far that is in time.
//!
//! | file | what |
//! |---|---|
//! | `findings` | what is found out, as text and as JSON |
//! | `picture` | the hierarchy as a picture |
//! | `draft` | files that come to be as a whole or not at all |

mod draft;
mod findings;
mod picture;

use draft::Draft;
use findings::Findings;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use ultramarine::{Context, Error, Options, Result, TaskError, latency, network, topology_file};
use ultramarine_environment::topo::TopoFlags;

pub(crate) fn run(flags: TopoFlags) -> Result<()> {
    let TopoFlags { hosts, per_host, svg, write, force, no_latency, json, job } = flags;
    let options = Options::from(job);
    let wishes = Wishes { svg, write, force, json };
    if let Some(hosts) = hosts {
        let drafts = Drafts::begin(&wishes)?;
        let topology = options.describe(&hosts, per_host)?;
        return drafts.finish(&Findings::described(&topology), &wishes);
    }
    options.run(async move |cx| {
        // What cannot be written is said before anything is measured.
        let drafts = Drafts::begin(&wishes)?;
        let findings = find_out(&cx, !no_latency).await?;
        drafts.finish(&findings, &wishes)
    })
}

/// What is to become of the findings.
struct Wishes {
    svg: Option<PathBuf>,
    write: Option<PathBuf>,
    force: bool,
    json: bool,
}

impl Wishes {
    /// Whether standard output is for something else than text.
    fn takes_stdout(&self) -> bool {
        self.json || [&self.svg, &self.write].into_iter().flatten().any(|path| is_stdout(path))
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The files that are to be written.
struct Drafts {
    svg: Option<Draft>,
    write: Option<Draft>,
}

impl Drafts {
    fn begin(wishes: &Wishes) -> Result<Drafts> {
        let on_stdout = [&wishes.svg, &wishes.write].into_iter().flatten();
        if on_stdout.filter(|path| is_stdout(path)).count() + usize::from(wishes.json) > 1 {
            let text =
                "--json, --svg - and --write - all need standard output: give the others a file";
            return Err(Error::other(text));
        }
        let draft = |path: &Option<PathBuf>, replaces| {
            let path = path.as_ref().filter(|path| !is_stdout(path));
            path.map(|path| Draft::begin(path, replaces)).transpose()
        };
        Ok(Drafts { write: draft(&wishes.write, wishes.force)?, svg: draft(&wishes.svg, true)? })
    }

    fn finish(self, findings: &Findings<'_>, wishes: &Wishes) -> Result<()> {
        let mut stdout = std::io::stdout();
        if wishes.json {
            writeln!(stdout, "{}", findings.json()).map_err(Error::Output)?;
        } else if !wishes.takes_stdout() {
            write!(stdout, "{findings}").map_err(Error::Output)?;
        }
        findings.warn(&mut std::io::stderr())?;
        if wishes.svg.is_some() {
            let svg = picture::draw(findings.topology, &findings.latency);
            match self.svg {
                Some(draft) => draft.finish(&svg)?,
                None => write!(stdout, "{svg}").map_err(Error::Output)?,
            }
        }
        if wishes.write.is_some() {
            let file = topology_file::to_toml(findings.topology)?;
            match self.write {
                Some(draft) => draft.finish(&file)?,
                None => write!(stdout, "{file}").map_err(Error::Output)?,
            }
        }
        Ok(())
    }
}

/// All that can be known of a job.
async fn find_out(cx: &Context, with_latency: bool) -> Result<Findings<'_>> {
    let unmeasured = |error: TaskError| {
        let cause = match error {
            TaskError::Lost { pe } => format!("{pe} has died"),
            other => other.to_string(),
        };
        Error::other(format!(
            "the latency could not be measured: {cause}; --no-latency shows the rest without it"
        ))
    };
    let latency = if with_latency && cx.pes() > 1 {
        latency::by_distance(cx).await.map_err(unmeasured)?
    } else {
        Vec::new()
    };
    let statistics = cx.statistics().await?;
    let (topology, statistics) = (cx.topology(), Some(statistics));
    Ok(Findings { topology, latency, statistics, network: network::of_this_job() })
}
