//! The flags of the examples that compute a graph: `--dot` and `--svg` write who has computed what
//! to files. `--progress` shows the number of computed nodes.

use crate::whole_file::WholeFile;
use crate::{Job, JournalFlags};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ultramarine::skeletons::dag::{Builder, Dag, Picture, Wanted};
use ultramarine::{Error, Portable, Result, Stateless, progress_display};

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Which files show a graph and its run.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphFlags {
    /// Write the graph, and which PE has computed which node, to this file for Graphviz.
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Write the same to this file as an SVG picture, if the graph has at most 500 nodes.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A graph that is computed, and the files that show that.
#[derive(Debug)]
pub struct GraphRun {
    files: Vec<(Format, WholeFile)>,
    journal: Option<JournalFlags>,
    picture: Option<Picture>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Dot,
    Svg,
}

impl GraphFlags {
    /// Checks that the files can be written: a program must not compute for hours in vain. They
    /// must differ from the program's journal, if it has one.
    ///
    /// # Errors
    ///
    /// One cannot be written, two are the same, or the skeleton is not `dag`.
    pub fn begin(&self, skeleton: &str, journal: Option<JournalFlags>) -> Result<GraphRun> {
        let flags = [
            (Format::Dot, "--dot", "graph", &self.dot),
            (Format::Svg, "--svg", "picture", &self.svg),
        ];
        let mut files = Vec::new();
        let journal_file = journal.as_ref().and_then(|journal| journal.file.as_deref());
        let mut paths: Vec<PathBuf> = journal_file.map(real).into_iter().collect();
        for (format, flag, what, path) in flags {
            let Some(path) = path else { continue };
            if skeleton != "dag" {
                return Err(Error::other(format!("{flag}: the skeleton {skeleton} has no graph")));
            }
            if paths.contains(&real(path)) {
                let path = path.display();
                return Err(Error::other(format!("{flag}: {path} is that of another flag, too")));
            }
            paths.push(real(path));
            files.push((format, WholeFile::at(path, what)?));
        }
        Ok(GraphRun { files, journal, picture: None })
    }
}

/// A path without links and detours, to compare it: the file need not exist yet.
fn real(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

impl GraphRun {
    /// Computes a graph, with a journal, and with its progress, if the flags say so.
    ///
    /// # Errors
    ///
    /// The graph has no result, or is too large for a picture, or the journal cannot be used.
    pub async fn run<F, A, W>(&mut self, job: &Job, mut graph: Dag<F, A>) -> Result<W::Results>
    where
        F: Fn(&mut Builder, &A) -> W + Stateless,
        A: Portable + Sync + Clone,
        W: Wanted,
    {
        let cx = &job.cx;
        if self.files.iter().any(|(format, _)| *format == Format::Svg) {
            let (nodes, most) = (graph.nodes(cx)?, Picture::SVG_NODES_MAX);
            if nodes > most {
                return Err(Error::other(format!(
                    "--svg: the graph has {nodes} nodes, and a picture shows at most {most}; take \
                     a smaller problem, or --dot and Graphviz"
                )));
            }
        }
        if job.flags.progress {
            graph = graph.progress(PROGRESS_EVERY, progress_display("nodes computed"));
        }
        let graph = match &self.journal {
            Some(journal) => journal.set(graph.optional_journal(journal.file.as_ref())),
            None => graph.optional_journal(None::<&Path>),
        };
        if self.files.is_empty() {
            return Ok(graph.run(cx).await?);
        }
        let (results, picture) = graph.run_with_picture(cx).await?;
        self.picture = Some(picture);
        Ok(results)
    }

    /// Writes the files.
    ///
    /// # Errors
    ///
    /// One cannot be written.
    pub fn finish(self) -> Result<()> {
        let Some(picture) = self.picture else { return Ok(()) };
        for (format, file) in self.files {
            let text = match format {
                Format::Dot => picture.to_dot(),
                // `run` has refused what is too large.
                Format::Svg => picture.to_svg().unwrap_or_default(),
            };
            file.save(|file| file.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}
