//! The hierarchy as a picture: nested boxes from the whole job on the left to its PEs on the right,
//! below a scale of distances.
//!
//! It has no background, so its colours suit light and dark pages: boxes bring their own, and what
//! stands outside of them is grey. They run from dark to light blue with the distance, and PEs are
//! pale amber, which looks like none of the blues.

mod layout;
mod text;

use super::findings::micros;
use layout::{Block, BlockKind, LETTERS, LINE, Layout, PADDING, lay_out};
use svg::Document;
use svg::node::element::{Description, Group, Line, Rectangle, Text, Title};
use text::{printable, width};
use ultramarine::latency::Latency;
use ultramarine::{Distance, Topology};

/// Fonts that systems have for their own texts.
const FONTS: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// Grey that can be read on white and on black.
const GREY: &str = "#767676";

/// The colours of boxes and of the text in them.
const AMBER: &str = "#fdeecb";
const PALE: &str = "#e8eaed";
const INK: &str = "#1b2430";
const SNOW: &str = "#ffffff";
const EDGE: &str = "#7f8fa3";
const GOLD: &str = "#d9a02b";

/// The blues of the first and of the last distance: red, green, blue.
const BLUES: [[u32; 3]; 2] = [[32, 66, 107], [205, 224, 243]];

/// Around the picture, and the height of the scale above it without times, in pixels.
const MARGIN: u32 = 16;
const SCALE: u32 = 40;

/// The size of small text, in pixels.
const SMALL: u32 = 11;

/// The picture, as the text of an SVG file. `latency` is by ascending distance, or empty.
pub(super) fn draw(job: &Topology, latency: &[Latency]) -> String {
    // In a column all PEs of different boxes have the same distance; the PEs' own is 0.
    let distances: Vec<Distance> = job.radii().iter().rev().copied().collect();
    let headings: Vec<[String; 2]> =
        distances.iter().map(|distance| heading(*distance, latency)).collect();
    let wide = |[name, times]: &[String; 2]| width(name, LETTERS).max(width(times, SMALL));
    let layout = lay_out(job, &headings.iter().map(wide).collect::<Vec<_>>());
    let (x, across) = layout.columns[layout.columns.len() - 1];
    let above = SCALE + if latency.is_empty() { 0 } else { LINE };
    let (width, height) = (x + across + 2 * MARGIN, above + layout.height + 2 * MARGIN);

    let mut scale = Group::new().set("transform", format!("translate({MARGIN} {MARGIN})"));
    for (column, heading) in headings.iter().enumerate() {
        scale = draw_heading(scale, &layout, column, above, heading);
    }
    let mut boxes =
        Group::new().set("transform", format!("translate({MARGIN} {})", MARGIN + above));
    for block in &layout.blocks {
        boxes = boxes.add(draw_block(block, distances.len() - 1));
    }
    let about = "Each box holds those to its right. PEs in different boxes of a column are as far \
                 from each other as the scale above says. Power is the number of worker threads, \
                 times their speed where that was measured.";
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("role", "img")
        .set("font-family", FONTS)
        .set("font-size", LETTERS)
        .add(Title::new(format!("The hierarchy of a job of {} PEs", job.pes())))
        .add(Description::new().add(svg::node::Text::new(about)))
        .add(scale)
        .add(boxes);
    format!("{document}\n")
}

/// What stands above a column.
fn heading(distance: Distance, latency: &[Latency]) -> [String; 2] {
    let measured = latency.iter().find(|row| row.distance == distance);
    let times = |row| format!("p50 {:.1} µs, p99 {:.1} µs", micros(row, 0.5), micros(row, 0.99));
    match distance {
        Distance::ZERO => ["PEs".to_owned(), String::new()],
        _ => [format!("distance {distance}"), measured.map(times).unwrap_or_default()],
    }
}

/// Text and, below it, a stroke as wide as the column, in its colour.
fn draw_heading(
    scale: Group,
    layout: &Layout,
    column: usize,
    above: u32,
    [name, times]: &[String; 2],
) -> Group {
    let (x, across) = layout.columns[column];
    let last = layout.columns.len() - 1;
    let kind = if column == last { BlockKind::Pe } else { BlockKind::Branch };
    let stroke = Line::new()
        .set("x1", x)
        .set("x2", x + across)
        .set("y1", above - 12)
        .set("y2", above - 12)
        .set("stroke", if column == last { GOLD.to_owned() } else { fill(kind, column, last) })
        .set("stroke-width", 4)
        .set("stroke-linecap", "butt");
    let line = |text: &str, y: u32| Text::new(text).set("x", x).set("y", y).set("fill", GREY);
    scale
        .add(line(name, 14).set("font-weight", 600))
        .add(line(times, 14 + LINE).set("font-size", SMALL))
        .add(stroke)
}

fn draw_block(block: &Block, last: usize) -> Group {
    let frame = Rectangle::new()
        .set("x", block.x)
        .set("y", block.y)
        .set("width", block.width)
        .set("height", block.height)
        .set("rx", 6)
        .set("fill", fill(block.kind, block.until, last))
        .set("stroke", EDGE)
        .set("stroke-width", 1);
    let frame = match block.kind {
        BlockKind::More => frame.set("stroke-dasharray", "5 4"),
        _ => frame,
    };
    let full: String = block.full.chars().map(printable).collect();
    let mut group = Group::new().add(Title::new(full)).add(frame);
    // In the middle, as seen from top to bottom.
    let lines = block.lines.len() as u32;
    let top = block.y + (block.height.saturating_sub(lines * LINE)) / 2;
    let is_dark = block.kind == BlockKind::Branch && luminance(blue(block.until, last)) < 140;
    for (line, text) in block.lines.iter().enumerate() {
        let baseline = top + line as u32 * LINE + LETTERS;
        let text = Text::new(text)
            .set("x", block.x + PADDING)
            .set("y", baseline)
            .set("fill", if is_dark { SNOW } else { INK });
        let is_title = line < block.titles && block.kind != BlockKind::More;
        group = group.add(if is_title { text.set("font-weight", 600) } else { text });
    }
    group
}

/// The colour of a box, if the column `last` is that of the PEs.
fn fill(kind: BlockKind, column: usize, last: usize) -> String {
    match kind {
        BlockKind::Pe => AMBER.to_owned(),
        BlockKind::More => PALE.to_owned(),
        BlockKind::Branch => {
            let [red, green, blue] = blue(column, last);
            format!("#{red:02x}{green:02x}{blue:02x}")
        }
    }
}

/// From dark to light over the columns before the last.
fn blue(column: usize, last: usize) -> [u32; 3] {
    let steps = last.saturating_sub(1).max(1) as u32;
    // Lighter at first, so that text can be read on all that is between.
    let share = (f64::from((column as u32).min(steps)) / f64::from(steps)).sqrt();
    let mix = |from: u32, to: u32| f64::from(from) * (1.0 - share) + f64::from(to) * share;
    std::array::from_fn(|part| mix(BLUES[0][part], BLUES[1][part]).round() as u32)
}

/// How bright a colour looks, from 0 to 255.
fn luminance([red, green, blue]: [u32; 3]) -> u32 {
    (red * 299 + green * 587 + blue * 114) / 1000
}
