//! A picture of a small graph.

use super::Picture;
use super::layout::{Layout, Link};
use super::nodes::{COLOURS_LEN, DrawnNode, Share, colours, duration};
use std::fmt::Write as _;
use ultramarine_topology::Pe;

/// The most nodes of a graph that is drawn.
const NODES_MAX: u32 = 500;

/// In pixels: the margin, a box and the distance of rows, the width of a letter, and the least
/// width of a picture without its margins.
const MARGIN: f64 = 24.0;
const BOX: f64 = 38.0;
const ROW: f64 = 84.0;
const LETTER: f64 = 6.7;
const WIDTH_MIN: f64 = 620.0;

/// The longest label, in letters.
const LABEL_MAX: usize = 28;

/// A line of the legend, and an entry.
const LEGEND_LINE: f64 = 22.0;
const LEGEND_ENTRY: f64 = 205.0;

/// On light and on dark pages.
const STYLE: &str = "
text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#1b2430}
.title{font-weight:600;font-size:15px}.title,.legend{fill:#1f2328}.legend{font-size:12px}
.middle{text-anchor:middle}.who{font-size:10px}.page{fill:#fff;stroke:#d0d7de}
.box{stroke-width:1.4}.wanted{stroke-width:3.6}.none{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
.grey{fill:#59636e}.own,.sent{fill:none;stroke-width:1.1}.own{stroke:#b4bcc6}.sent{stroke-width:1.6}
@media(prefers-color-scheme:dark){.title,.legend{fill:#e6edf3}.grey{fill:#9198a1}
.page{fill:#0d1117;stroke:#3d444d}.own{stroke:#525b66}}";

impl Picture {
    /// The most nodes of a graph that [`to_svg`](Self::to_svg) draws.
    pub const SVG_NODES_MAX: u32 = NODES_MAX;

    /// The text of an SVG file that shows a graph of at most 500 nodes; there is none of a larger
    /// one. Each node stands below its inputs, and has the colour of the PE that has computed it.
    /// One that was not computed is dashed, and a wanted one has a thick border. An edge is
    /// coloured if its result was needed by another PE. The tooltip of a node says how long it
    /// took.
    pub fn to_svg(&self) -> Option<String> {
        let nodes = (self.block.len() <= NODES_MAX).then(|| self.nodes())?;
        let inputs: Vec<&[u32]> = nodes.iter().map(|node| &node.inputs[..]).collect();
        let letters = nodes.iter().map(|node| node.label.chars().count()).max().unwrap_or(0);
        let width = (letters.clamp(10, LABEL_MAX) as f64) * LETTER + 14.0;
        let layout = Layout::new(&inputs, width);
        let whole = layout.width.max(WIDTH_MIN);
        let left = MARGIN + (whole - layout.width) / 2.0;
        let mut drawing = Drawing { svg: String::new(), nodes, layout, width, left, top: 0.0 };
        drawing.top = self.legend(&mut drawing, whole);
        drawing.links();
        (0..drawing.nodes.len()).for_each(|index| drawing.node(index));
        let (width, height) = (
            whole + 2.0 * MARGIN,
            drawing.top + drawing.layout.rows as f64 * ROW - ROW + BOX + MARGIN,
        );
        Some(format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0}' height='{height:.0}' \
             viewBox='0 0 {width:.0} {height:.0}' role='img'>\n<title>A graph of {} nodes, \
             and who ran what</title>\n<style>{STYLE}</style>\n<rect class='page' x='.5' y='.5' \
             width='{:.0}' height='{:.0}' rx='8'/>\n{}</svg>\n",
            drawing.nodes.len(),
            width - 1.0,
            height - 1.0,
            drawing.svg
        ))
    }

    /// Draws what stands above the graph. Returns where that begins.
    fn legend(&self, drawing: &mut Drawing<'_>, width: f64) -> f64 {
        let shares = self.shares();
        let computed = drawing.nodes.iter().filter(|node| node.pe().is_some()).count();
        let (all, pes) = (drawing.nodes.len(), shares.len());
        let of_which = match computed {
            _ if computed == all => String::new(),
            1 => " of which 1 is".to_owned(),
            _ => format!(" of which {computed} are"),
        };
        let title = format!("{all} nodes,{of_which} computed on {pes} PEs");
        drawing.text(MARGIN, MARGIN + 12.0, "title", &title);
        let columns = ((width / LEGEND_ENTRY) as usize).max(1);
        let top = MARGIN + 12.0 + LEGEND_LINE + 4.0;
        let mut entries = 0;
        let mut entry = |style: &str, shape: &str, says: &str| {
            let x = MARGIN + (entries % columns) as f64 * LEGEND_ENTRY;
            let y = top + (entries / columns) as f64 * LEGEND_LINE;
            let _ = writeln!(drawing.svg, "<path {style} d='M{x} {y}{shape}'/>");
            drawing.text(x + 28.0, y, "legend", says);
            entries += 1;
        };
        let (filled, line) = ("m0-10h20v12h-20z", "m0-4h20");
        for (pe, Share { nodes, busy_ns }) in &shares {
            let says = format!("{pe}: {nodes} nodes, {}", duration(*busy_ns));
            entry(&style(Some(*pe), false), filled, &says);
        }
        entry("class='wanted' fill='none' stroke='#8c959f'", filled, "wanted");
        if computed < all {
            entry(&style(None, false), filled, "not computed");
        }
        if pes > 1 {
            let style = format!("class='sent' stroke='{}'", colours(Pe::ROOT).0);
            entry(&style, line, "needed by another PE");
        }
        let mut y = top + entries.div_ceil(columns) as f64 * LEGEND_LINE;
        if pes > COLOURS_LEN {
            let says = format!("PEs that differ by {COLOURS_LEN} have the same colour.");
            drawing.text(MARGIN, y, "legend grey", &says);
            y += LEGEND_LINE;
        }
        y + 14.0
    }
}

/// How a box looks.
fn style(pe: Option<Pe>, is_wanted: bool) -> String {
    let wanted = if is_wanted { " wanted" } else { "" };
    match pe.map(colours) {
        None => format!("class='box none{wanted}'"),
        Some((stroke, fill)) => format!("class='box{wanted}' fill='{fill}' stroke='{stroke}'"),
    }
}

struct Drawing<'a> {
    svg: String,
    nodes: Vec<DrawnNode<'a>>,
    layout: Layout,
    /// The width of a box.
    width: f64,
    /// Where the graph begins.
    left: f64,
    top: f64,
}

impl Drawing<'_> {
    /// Where the middle of a point's upper edge is.
    fn point(&self, point: usize) -> (f64, f64) {
        (self.left + self.layout.x[point], self.top + self.layout.row[point] as f64 * ROW)
    }

    /// Draws all edges: first those that stay on a PE.
    fn links(&mut self) {
        let sent: Vec<bool> = self.sent();
        for is_sent in [false, true] {
            for (at, Link { from, to, node }) in self.layout.links.iter().enumerate() {
                if sent[at] != is_sent {
                    continue;
                }
                let ((x, y), (end, bottom)) = (self.point(*from), self.point(*to));
                let (y, middle) = (y + BOX, y + BOX + (ROW - BOX) / 2.0);
                let style = match self.nodes[*node].pe() {
                    Some(pe) if is_sent => format!("class='sent' stroke='{}'", colours(pe).0),
                    _ => "class='own'".to_owned(),
                };
                // A bend passes its row.
                let passing =
                    if *to < self.nodes.len() { String::new() } else { format!("v{BOX}") };
                let _ = writeln!(
                    self.svg,
                    "<path {style} d='M{x:.1} {y:.1}C{x:.1} {middle:.1} {end:.1} {middle:.1} \
                     {end:.1} {bottom:.1}{passing}'/>"
                );
            }
        }
    }

    /// Whether another PE than the one that has computed the node has read what went along a link.
    fn sent(&self) -> Vec<bool> {
        let links = &self.layout.links;
        let mut is_sent = vec![false; links.len()];
        let mut leads_to_other = vec![false; self.layout.row.len()];
        // The links of a node come from above: what lies below a bend is known before.
        for (at, Link { from, to, node }) in links.iter().enumerate().rev() {
            is_sent[at] = match self.nodes.get(*to) {
                Some(reader) => {
                    let pes = (self.nodes[*node].pe(), reader.pe());
                    matches!(pes, (Some(made), Some(used)) if made != used)
                }
                None => leads_to_other[*to],
            };
            leads_to_other[*from] |= is_sent[at];
        }
        is_sent
    }

    fn node(&mut self, index: usize) {
        let (middle, y) = self.point(index);
        let (width, node) = (self.width, &self.nodes[index]);
        let who = node.pe().map_or(index.to_string(), |pe| format!("{index} · {pe}"));
        let grey = if node.pe().is_some() { "" } else { " grey" };
        let (label, details) = (shortened(&node.label), escaped(&node.details(index)));
        let (style, x) = (style(node.pe(), node.is_wanted), middle - width / 2.0);
        let _ = writeln!(
            self.svg,
            "<g><title>{details}</title><rect {style} x='{x:.1}' y='{y:.1}' width='{width:.1}' \
             height='{BOX}' rx='5'/>"
        );
        self.text(middle, y + 16.5, &format!("middle{grey}"), &label);
        self.text(middle, y + 29.5, &format!("who middle{grey}"), &who);
        self.svg.push_str("</g>\n");
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.svg, "<text x='{x:.1}' y='{y:.1}' class='{class}'>{text}</text>");
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL_MAX {
        return label.to_owned();
    }
    label.chars().take(LABEL_MAX - 1).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
