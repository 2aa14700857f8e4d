//! Where everything stands in the picture: columns from the whole job on the left to the PEs on the
//! right, one for each distance; in them boxes, each as high as all that it holds.

use super::text::{fit, width};
use std::fmt::Write as _;
use ultramarine::{Label, Outline, OutlineKind, Topology};

/// The height of letters, of a line, and what is left free around the lines of a box, in pixels.
pub(super) const LETTERS: u32 = 13;
pub(super) const LINE: u32 = 18;
pub(super) const PADDING: u32 = 10;

/// Between two boxes, in pixels.
pub(super) const GAP: u32 = 5;

/// The narrowest and the widest column, in pixels.
const COLUMN_MIN: u32 = 130;
const COLUMN_MAX: u32 = 340;

/// About this many boxes are drawn in the last column at most, and this many are tried per branch.
const LEAVES_MAX: usize = 60;
const PARTS_TRIED: [usize; 6] = [32, 16, 8, 4, 3, 2];

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockKind {
    /// A part that branches.
    Branch,
    /// A PE.
    Pe,
    /// Siblings that are only counted.
    More,
}

/// A box with some lines of text.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// The last column that it reaches into.
    pub(super) until: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    /// How many of the first lines are its name.
    pub(super) titles: usize,
    pub(super) lines: Vec<String>,
    /// All that it says, uncut.
    pub(super) full: String,
}

/// The picture without its colours.
#[derive(Debug)]
pub(super) struct Layout {
    /// By column: where it begins, and how wide it is.
    pub(super) columns: Vec<(u32, u32)>,
    pub(super) blocks: Vec<Block>,
    pub(super) height: u32,
}

/// A part with its text and the room that it needs.
struct Sized {
    kind: BlockKind,
    from: usize,
    until: usize,
    titles: usize,
    lines: Vec<String>,
    parts: Vec<Sized>,
    height: u32,
}

/// Lays out a job. Columns are at least as wide as these headings, of which there is one for each
/// distance and one for the PEs.
pub(super) fn lay_out(job: &Topology, headings: &[u32]) -> Layout {
    let last = headings.len() - 1;
    let outlines = PARTS_TRIED.map(|parts_max| job.outline(parts_max));
    let small = outlines.iter().find(|outline| leaves(outline) <= LEAVES_MAX);
    let mut root = measured(job, small.unwrap_or(&outlines[PARTS_TRIED.len() - 1]), 0, last);
    root.lines.insert(0, "job".to_owned());
    root.titles += 1;
    root.height = root.height.max(height_of(root.lines.len()));

    let fits = |heading: &u32| (heading + 2 * PADDING).clamp(COLUMN_MIN, COLUMN_MAX);
    let mut widths: Vec<u32> = headings.iter().map(fits).collect();
    widen(&root, &mut widths);
    let mut columns = Vec::new();
    let mut x = 0;
    for width in widths {
        columns.push((x, width));
        x += width + GAP;
    }
    let mut layout = Layout { columns, blocks: Vec::new(), height: root.height };
    let height = root.height;
    layout.place(root, 0, height);
    layout
}

/// How many boxes there will be in the last column.
fn leaves(outline: &Outline) -> usize {
    match &outline.kind {
        OutlineKind::Branch { parts, .. } => parts.iter().map(leaves).sum(),
        _ => 1,
    }
}

fn height_of(lines: usize) -> u32 {
    lines as u32 * LINE + PADDING
}

/// A part with its text, which begins in the column `from`, while `last` is that of the
/// PEs. Recurses as deep as places are, which is limited.
fn measured(job: &Topology, part: &Outline, from: usize, last: usize) -> Sized {
    let named = |labels: &[Label]| labels.iter().map(Label::to_string).collect::<Vec<_>>();
    let mut lines = named(&part.path);
    let (kind, parts, until) = match &part.kind {
        OutlineKind::Branch { distance, parts } => {
            // A level that branches only elsewhere is passed over.
            let until = distance.exponent().map_or(from, usize::from);
            let below = parts.iter().map(|part| measured(job, part, until + 1, last));
            (BlockKind::Branch, below.collect(), until)
        }
        OutlineKind::Pe => (BlockKind::Pe, Vec::new(), last),
        OutlineKind::More { .. } => (BlockKind::More, Vec::new(), last),
    };
    let (first, end) = (part.ball.first(), part.ball.at(part.ball.len() - 1));
    let titles = match part.kind {
        OutlineKind::Branch { .. } => {
            let titles = lines.len();
            lines.push(format!("{} PEs, power {}", part.ball.len(), job.power_of(part.ball)));
            titles
        }
        OutlineKind::Pe => {
            let (rank, power) = (job.rank_of(first), job.power(first));
            lines = vec![lines.join(", "), format!("{first}, rank {rank}, power {power}")];
            lines.retain(|line| !line.is_empty());
            lines.len() - 1
        }
        OutlineKind::More { siblings, are_alike } => {
            let more = if are_alike { "more like it" } else { "others" };
            let to =
                if lines.is_empty() { String::new() } else { format!(", to {}", lines.join(", ")) };
            lines = vec![format!("… {siblings} {more}{to}"), format!("{first} to {end}")];
            if let Some((first, last)) = job.ranks_in_order(part) {
                let _ = write!(lines[1], ", ranks {first} to {last}");
            }
            1
        }
    };
    let heights = parts.iter().map(|part: &Sized| part.height + GAP).sum::<u32>();
    let height = heights.saturating_sub(GAP).max(height_of(lines.len()));
    Sized { kind, from, until, titles, lines, parts, height }
}

/// The size of a line's letters; bold ones are as wide as if they were larger.
fn letters(part: &Sized, line: usize) -> u32 {
    LETTERS + u32::from(line < part.titles)
}

/// Makes columns as wide as what stands in them.
fn widen(part: &Sized, widths: &mut [u32]) {
    let lines = part.lines.iter().enumerate();
    let text = lines.map(|(line, text)| width(text, letters(part, line))).max().unwrap_or(0);
    let needed = (text + 2 * PADDING).min(COLUMN_MAX);
    let columns = &mut widths[part.from..=part.until];
    let present = columns.iter().map(|width| width + GAP).sum::<u32>() - GAP;
    if let Some(last) = columns.last_mut() {
        *last += needed.saturating_sub(present);
    }
    part.parts.iter().for_each(|part| widen(part, widths));
}

impl Layout {
    /// Places a part, and what it branches into, from `y` down.
    fn place(&mut self, part: Sized, y: u32, height: u32) {
        let (x, end) = (self.columns[part.from].0, self.columns[part.until]);
        let width = end.0 + end.1 - x;
        let lines = part.lines.iter().enumerate();
        let cut =
            |(line, text): (usize, &String)| fit(text, letters(&part, line), width - 2 * PADDING);
        self.blocks.push(Block {
            kind: part.kind,
            until: part.until,
            x,
            y,
            width,
            height,
            titles: part.titles,
            full: part.lines.join(", "),
            lines: lines.map(cut).collect(),
        });
        // What a branch needs for its own lines its parts have, too.
        let needed =
            part.parts.iter().map(|part| part.height + GAP).sum::<u32>().saturating_sub(GAP);
        let (mut spare, mut left) = (height - needed.min(height), part.parts.len() as u32);
        let mut y = y;
        for below in part.parts {
            let more = spare / left;
            (spare, left) = (spare - more, left - 1);
            let height = below.height + more;
            self.place(below, y, height);
            y += height + GAP;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine::Options;

    fn job(hosts: &str, per_host: u32) -> Topology {
        Options::default().describe(hosts, per_host).expect("a job")
    }

    #[test]
    fn nothing_overlaps_or_is_clipped() {
        let long = format!("r1n1,{}.example.org", "x".repeat(200));
        let racks: Vec<String> = (1..40).map(|rack| format!("r{rack}n[1-{rack}]")).collect();
        for (hosts, per_host) in [
            ("n1", 1),
            ("n1", 4),
            ("n[1-2]", 3),
            ("r1n[1-2],r2n[1-2],login", 2),
            ("r1c1n[1-9],r1c2n1,r2c1n1,lone.example.org", 6),
            (&long, 1),
            (&racks.join(","), 1),
        ] {
            let job = job(hosts, per_host);
            let headings = vec![50; job.radii().len()];
            let layout = lay_out(&job, &headings);
            let (x, across) = layout.columns[layout.columns.len() - 1];
            for (place, block) in layout.blocks.iter().enumerate() {
                assert!(block.x + block.width <= x + across, "{hosts}: {block:?}");
                assert!(block.y + block.height <= layout.height, "{hosts}: {block:?}");
                assert!(height_of(block.lines.len()) <= block.height, "{hosts}: {block:?}");
                for line in &block.lines {
                    assert!(
                        width(line, LETTERS) + 2 * PADDING <= block.width,
                        "{hosts}: {block:?}"
                    );
                }
                for other in &layout.blocks[..place] {
                    let beside = other.x + other.width <= block.x;
                    let above = other.y + other.height <= block.y;
                    assert!(beside || above, "{hosts}: {other:?} and {block:?}");
                }
            }
        }
    }

    #[test]
    fn pictures_stay_small() {
        let racks: Vec<String> = (1..100).map(|rack| format!("r{rack}n[1-{rack}]")).collect();
        let layout = lay_out(&job(&racks.join(","), 8), &[50; 4]);
        assert!(layout.blocks.len() < 200, "{} boxes", layout.blocks.len());
    }
}
