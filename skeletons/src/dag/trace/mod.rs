//! Which PE has computed which node, and when: gathered at the end of a run, and shown.
//!
//! | question | file |
//! |---|---|
//! | What does a PE note? | `notes` |
//! | How does it come to the program? | `mod` |
//! | What do pictures show of a node? | `picture` |
//! | Where does a node stand in a picture? | `layout` |
//! | How is it written? | `dot`, `svg`, `timeline` |

mod dot;
mod layout;
mod notes;
mod picture;
mod svg;
mod timeline;

use super::block::Block;
use super::handles::NodeId;
use super::part::RunPart;
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use ultramarine_group::{GroupId, Groups};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

pub(super) use self::notes::{Notes, Page};
pub use self::picture::PictureError;

/// Which PE has computed which node, and when. A [traced run](super::Dag::traced_run) gives it.
///
/// A node that was computed again, after a death or since [memory](super::Dag::memory) was short,
/// has several spans. What only PEs had noted that are dead is lost.
#[derive(Clone)]
pub struct Trace {
    /// In the order in which the nodes were begun.
    pub spans: Vec<Span>,
    /// What the graph is, unless it was built in blocks.
    graph: Option<TracedGraph>,
}

/// The time in which a PE computed a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Span {
    /// The node.
    pub node: NodeId,
    /// The name of its function, with its path.
    pub name: Arc<str>,
    /// The PE.
    pub pe: Pe,
    /// The thread of that PE: they are numbered from 0 as they compute their first node of the run.
    pub thread: u32,
    /// When the node was begun, in nanoseconds since the run began: since the first PE had the
    /// graph. The clocks of hosts may differ, mostly by less than a millisecond.
    pub start_ns: u64,
    /// When it was computed, likewise.
    pub end_ns: u64,
}

/// A graph that was built as a whole.
#[derive(Clone)]
pub(super) struct TracedGraph {
    pub(super) block: Arc<Block>,
    pub(super) wanted: Vec<NodeId>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("spans", &self.spans).finish_non_exhaustive()
    }
}

impl Trace {
    /// Asks all PEs that live what they have noted. One that dies meanwhile is left out.
    pub(super) async fn gather(
        cx: &Context,
        id: GroupId,
        graph: Option<TracedGraph>,
    ) -> Result<Self, TaskError> {
        // A PE that dies is not replaced by another.
        let cx = &cx.unsupervised();
        let living = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe));
        let pages = try_join_all(living.map(async |pe| Ok((pe, pages_of(cx, id, pe).await?))));
        Ok(Trace { spans: spans(pages.await?), graph })
    }
}

/// What a PE has noted so far.
async fn pages_of(cx: &Context, id: GroupId, pe: Pe) -> Result<Vec<Page>, TaskError> {
    let noted = async |cx: Context, (id, from): (GroupId, usize)| {
        let run = Groups::<RunPart>::on(&cx).get(id.name);
        run.and_then(|run| run.with(|_, part| part.notes.page(from)))
    };
    let (mut pages, mut count) = (Vec::new(), 0);
    loop {
        match cx.ask(pe, noted, (id, count)).await {
            Ok(Some(page)) => {
                let got = page.spans.len();
                count += got;
                pages.push(page);
                if got < notes::PAGE_SPANS {
                    return Ok(pages);
                }
            }
            // It has no part of the run, or dies.
            Ok(None) | Err(TaskError::Lost { .. }) => return Ok(pages),
            Err(error) => return Err(error),
        }
    }
}

/// The spans of all PEs, on one clock.
fn spans(noted: Vec<(Pe, Vec<Page>)>) -> Vec<Span> {
    let pages = noted.into_iter().flat_map(|(pe, pages)| pages.into_iter().map(move |p| (pe, p)));
    let pages: Vec<(Pe, Page)> = pages.collect();
    let began = pages.iter().map(|(_, page)| page.opened_ns).min().unwrap_or(0);
    let mut names: HashMap<String, Arc<str>> = HashMap::new();
    let mut spans = Vec::with_capacity(pages.iter().map(|(_, page)| page.spans.len()).sum());
    for (pe, page) in pages {
        let since = page.opened_ns - began;
        let shared =
            |name: String| names.entry(name).or_insert_with_key(|n| n.as_str().into()).clone();
        let names: Vec<Arc<str>> = page.names.into_iter().map(shared).collect();
        spans.extend(page.spans.into_iter().map(|(name, span)| Span {
            node: span.node,
            name: names[name as usize].clone(),
            pe,
            thread: span.thread,
            start_ns: since + span.start_ns,
            end_ns: since + span.end_ns,
        }));
    }
    spans.sort_by_key(|span| (span.start_ns, span.pe, span.thread));
    spans
}

#[cfg(test)]
mod tests;
