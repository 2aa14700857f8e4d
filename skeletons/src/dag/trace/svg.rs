//! A picture of a small graph.

use super::Trace;
use super::layout::{Layout, Link, Sizes};
use super::picture::{COLOURS_LEN, PictureError, PictureNode, colours, duration, labels};
use std::fmt::Write as _;

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
rect{stroke-width:1.4}.inner{fill:none}.none{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
.grey{fill:#59636e}path{fill:none;stroke-width:1.1}.own{stroke:#b4bcc6}.sent{stroke-width:1.6}
@media(prefers-color-scheme:dark){.title,.legend{fill:#e6edf3}.grey{fill:#9198a1}
.page{fill:#0d1117;stroke:#3d444d}.own{stroke:#525b66}}";

impl Trace {
    /// The most nodes of a graph that [`to_svg`](Self::to_svg) draws.
    pub const SVG_NODES_MAX: u32 = NODES_MAX;

    /// A picture of a graph of at most 500 nodes, as the text of an SVG file. Each node stands
    /// below its inputs, and has the colour of the PE that has computed it. One that was not
    /// computed is dashed, and a wanted one has a double border. An edge is coloured if its result
    /// was needed by another PE. The tooltip of a node says when it was computed, and by which
    /// thread.
    ///
    /// # Errors
    ///
    /// The graph is larger, or was built [in blocks](crate::dag::Dag::blocks).
    pub fn to_svg(&self) -> Result<String, PictureError> {
        let graph = self.graph()?;
        let count = graph.block.len();
        if count > NODES_MAX {
            return Err(PictureError::TooLarge { nodes: count, most: NODES_MAX });
        }
        let labels = labels(&graph.block);
        let nodes = self.nodes(graph, &labels);
        let inputs: Vec<&[u32]> = nodes.iter().map(|node| &node.inputs[..]).collect();
        let letters = nodes.iter().map(|node| node.label.chars().count()).max().unwrap_or(0);
        let width = (letters.clamp(10, LABEL_MAX) as f64) * LETTER + 14.0;
        let layout = Layout::new(&inputs, &Sizes { node: width, bend: 8.0, gap: 16.0 });
        let whole = layout.width.max(WIDTH_MIN);
        let mut drawing = Drawing { svg: String::new(), nodes, layout, width, left: 0.0, top: 0.0 };
        drawing.left = MARGIN + (whole - drawing.layout.width) / 2.0;
        drawing.top = self.legend(&mut drawing, whole);
        drawing.links();
        (0..count).for_each(|index| drawing.node(index));
        let (width, height) = (
            whole + 2.0 * MARGIN,
            drawing.top + drawing.layout.rows as f64 * ROW - ROW + BOX + MARGIN,
        );
        Ok(format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0}' height='{height:.0}' \
             viewBox='0 0 {width:.0} {height:.0}' role='img'>\n<title>A graph of {count} nodes, \
             and who ran what</title>\n<style>{STYLE}</style>\n<rect class='page' x='.5' y='.5' \
             width='{:.0}' height='{:.0}' rx='8'/>\n{}</svg>\n",
            width - 1.0,
            height - 1.0,
            drawing.svg
        ))
    }

    /// Draws what stands above the graph. Returns where that begins.
    fn legend(&self, drawing: &mut Drawing<'_>, width: f64) -> f64 {
        let shares = self.shares();
        let computed = drawing.nodes.iter().filter(|node| node.ran.is_some()).count();
        let (all, took) = (drawing.nodes.len(), duration(self.took_ns()));
        let (is, pes) = (if computed == 1 { "is" } else { "are" }, shares.len());
        let title = if all == computed {
            format!("{all} nodes, computed on {pes} PEs in {took}")
        } else {
            format!("{all} nodes, of which {computed} {is} computed, on {pes} PEs in {took}")
        };
        drawing.text(MARGIN, MARGIN + 12.0, "title", &title);
        let mut entries: Vec<(Swatch, String)> = Vec::new();
        for (pe, share) in &shares {
            let says = format!("PE {pe}: {} nodes, {}", share.nodes, duration(share.busy_ns));
            entries.push((Swatch::Pe(*pe), says));
        }
        entries.push((Swatch::Wanted, "wanted".to_owned()));
        if computed < all {
            entries.push((Swatch::None, "not computed".to_owned()));
        }
        if shares.len() > 1 {
            entries.push((Swatch::Sent, "needed by another PE".to_owned()));
        }
        let columns = ((width / LEGEND_ENTRY) as usize).max(1);
        let mut y = MARGIN + 12.0 + LEGEND_LINE + 4.0;
        for line in entries.chunks(columns) {
            for (column, (swatch, says)) in line.iter().enumerate() {
                let x = MARGIN + column as f64 * LEGEND_ENTRY;
                drawing.swatch(x, y, swatch);
                drawing.text(x + 28.0, y, "legend", says);
            }
            y += LEGEND_LINE;
        }
        if shares.len() > COLOURS_LEN {
            let says = format!("PEs that differ by {COLOURS_LEN} have the same colour.");
            drawing.text(MARGIN, y, "legend grey", &says);
            y += LEGEND_LINE;
        }
        y + 14.0
    }
}

/// What an entry of the legend is about.
enum Swatch {
    Pe(u32),
    Wanted,
    None,
    Sent,
}

struct Drawing<'a> {
    svg: String,
    nodes: Vec<PictureNode<'a>>,
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
                let style = match self.nodes[*node].ran {
                    Some(span) if is_sent => {
                        format!("class='sent' stroke='{}'", colours(span.pe.number()).0)
                    }
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
            let maker = self.nodes[*node].ran.map(|span| span.pe);
            is_sent[at] = match self.nodes.get(*to) {
                Some(reader) => reader.ran.is_some_and(|ran| maker.is_some_and(|pe| pe != ran.pe)),
                None => leads_to_other[*to],
            };
            leads_to_other[*from] |= is_sent[at];
        }
        is_sent
    }

    fn node(&mut self, index: u32) {
        let (middle, y) = self.point(index as usize);
        let (x, width, node) = (middle - self.width / 2.0, self.width, &self.nodes[index as usize]);
        let ran = node.ran.map(|span| (span.pe, colours(span.pe.number())));
        let who = ran.map_or(index.to_string(), |(pe, _)| format!("{index} · {pe}"));
        let grey = if ran.is_some() { "" } else { " grey" };
        let (label, details) = (shortened(node.label), escaped(&node.details(index)));
        let (style, stroke) = ran.map_or_else(
            || ("class='none'".to_owned(), "#8c959f"),
            |(_, (stroke, fill))| (format!("fill='{fill}' stroke='{stroke}'"), stroke),
        );
        let inner = if node.is_wanted {
            format!(
                "<rect class='inner' stroke='{stroke}' x='{:.1}' y='{:.1}' width='{:.1}' \
                 height='{}' rx='3'/>",
                x + 3.0,
                y + 3.0,
                width - 6.0,
                BOX - 6.0
            )
        } else {
            String::new()
        };
        let _ = writeln!(
            self.svg,
            "<g><title>{details}</title><rect {style} x='{x:.1}' y='{y:.1}' width='{width:.1}' \
             height='{BOX}' rx='5'/>{inner}"
        );
        self.text(middle, y + 16.5, &format!("middle{grey}"), &label);
        self.text(middle, y + 29.5, &format!("who middle{grey}"), &who);
        self.svg.push_str("</g>\n");
    }

    /// Draws what an entry of the legend is about, left of its text.
    fn swatch(&mut self, x: f64, y: f64, swatch: &Swatch) {
        let (top, height) = (y - 10.0, 12.0);
        let boxed = |style: &str| {
            format!("<rect {style} x='{x}' y='{top}' width='20' height='{height}' rx='3'/>")
        };
        let shape = match swatch {
            Swatch::Pe(pe) => {
                let (stroke, fill) = colours(*pe);
                boxed(&format!("fill='{fill}' stroke='{stroke}'"))
            }
            Swatch::None => boxed("class='none'"),
            Swatch::Wanted => format!(
                "{}<rect class='inner' stroke='#8c959f' x='{}' y='{}' width='14' height='6'/>",
                boxed("class='inner' stroke='#8c959f'"),
                x + 3.0,
                top + 3.0
            ),
            Swatch::Sent => {
                let stroke = colours(0).0;
                format!("<path class='sent' stroke='{stroke}' d='M{x} {}h20'/>", y - 4.0)
            }
        };
        self.svg.push_str(&shape);
        self.svg.push('\n');
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
