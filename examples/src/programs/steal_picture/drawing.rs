//! The hierarchy as nested boxes, and above them an arc for each pair of PEs between which tasks
//! moved: the wider, the more tasks; its colour is the distance. It must never know what the tasks
//! did.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use ultramarine::{Distance, LevelKind, Outline, OutlineKind, Pe, Topology};

/// In pixels: the picture's width without its margins, the margin, a PE's height and the height of
/// a line below it.
const WIDTH: f64 = 760.0;
const MARGIN: f64 = 24.0;
const PE: f64 = 44.0;
const LINE: f64 = 24.0;

/// The widest arc.
const STROKE_MAX: f64 = 11.0;

/// Colours on light and on dark pages. Those of the distances can be told apart by people who do
/// not see red or green (Okabe and Ito 2008).
const STYLE: &str = "
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}.grey{fill:#59636e;font-size:12px}.middle{text-anchor:middle}.end{text-anchor:end}
.page{fill:#fff;stroke:#d0d7de}.box{fill:#5c82aa;fill-opacity:.09;stroke:#8c9cae}
.pe{fill:#fdeecb;stroke:#d9a02b}.onpe{fill:#1b2430}.ran{font-size:11px}path{fill:none;stroke-opacity:.8}
.d0{stroke:#b0458f}.d1{stroke:#0072b2}.d2{stroke:#e08a00}.d3{stroke:#009e73}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grey{fill:#9198a1}.onpe{fill:#1b2430}
.page{fill:#0d1117;stroke:#3d444d}.d0{stroke:#e38fc8}.d1{stroke:#58b1f0}.d2{stroke:#f5b342}
.d3{stroke:#3fcf9f}}";

/// How many distances have a colour of their own; those below share the last.
const COLOURS: usize = 4;

struct Drawing {
    svg: String,
    /// The middle of each PE's upper edge.
    middles: Vec<f64>,
    /// Of the PEs, and how wide one is.
    top: f64,
    across: f64,
    /// How many tasks each PE ran.
    ran: Vec<u64>,
}

/// The picture, as the text of an SVG file. `moved` says how many tasks the first PE of each pair
/// made and the second ran.
pub fn draw(job: &Topology, moved: &BTreeMap<(Pe, Pe), u64>) -> String {
    let far: Vec<Distance> =
        job.radii().iter().rev().copied().filter(|radius| *radius > Distance::ZERO).collect();
    let class = |distance| far.iter().position(|d| *d == distance).unwrap_or(0).min(COLOURS - 1);
    let mut arcs = BTreeMap::<(Pe, Pe), u64>::new();
    let mut of_class = [0; COLOURS];
    let mut ran = vec![0; job.pes() as usize];
    for ((from, to), tasks) in moved {
        ran[to.number() as usize] += tasks;
        if from != to {
            of_class[class(job.distance(*from, *to))] += tasks;
            *arcs.entry((*from.min(to), *from.max(to))).or_default() += tasks;
        }
    }
    let (all, away) = (moved.values().sum::<u64>(), of_class.iter().sum::<u64>());
    let room = 170.0;
    let outline = job.outline(usize::MAX);
    let across = (WIDTH - gaps(&outline)) / f64::from(job.pes());
    let (svg, top) = (String::new(), MARGIN + 30.0 + room);
    let mut drawing = Drawing { svg, middles: vec![], top, across, ran };
    let depth = depth(&outline);
    drawing.boxes(&outline, MARGIN, depth);
    let most = arcs.values().copied().max().unwrap_or(1) as f64;
    let mut arcs: Vec<_> = arcs.into_iter().collect();
    arcs.sort_by_key(|((a, b), _)| job.distance(*a, *b));
    for ((a, b), tasks) in arcs.into_iter().rev() {
        let [x, end] = [a, b].map(|pe| drawing.middles[pe.number() as usize]);
        let up = top - 26.0 - (room - 26.0) * 1.5 * (end - x) / WIDTH;
        let stroke = (STROKE_MAX * (tasks as f64 / most).sqrt()).max(1.0);
        let class = class(job.distance(a, b));
        let _ = writeln!(
            drawing.svg,
            "<path class='d{class}' stroke-width='{stroke:.1}' d='M{x:.0} {top}C{x:.0} {up:.0} \
             {end:.0} {up:.0} {end:.0} {top}'><title>{a} and {b}: {tasks} tasks</title></path>"
        );
    }
    let heading = format!("{} tasks, of which {} were stolen", comma(all), comma(away));
    drawing.text(MARGIN, MARGIN + 14.0, "title", &heading);
    let arc = "The wider an arc, the more tasks went that way.";
    drawing.text(WIDTH + MARGIN, MARGIN + 14.0, "grey end", arc);
    let (mut x, y) = (MARGIN, top + PE + depth * LINE + 36.0);
    for (distance, tasks) in far.iter().zip(of_class) {
        let (class, middle) = (class(*distance), y - 4.5);
        let line = format!("<path class='d{class}' stroke-width='6' d='M{x} {middle}h28'/>\n");
        drawing.svg.push_str(&line);
        let share = 100.0 * tasks as f64 / away.max(1) as f64;
        let says = format!("distance {distance}: {} tasks, {share:.0} %", comma(tasks));
        drawing.text(x + 36.0, y, "", &says);
        x += WIDTH / far.len() as f64;
    }
    let (width, height) = (WIDTH + 2.0 * MARGIN, y + MARGIN);
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img'>\n\
         <title>The tasks of a job that moved between its {} PEs</title>\n<style>{STYLE}</style>\n\
         <rect class='page' x='.5' y='.5' width='{}' height='{}' rx='8'/>\n{}</svg>\n",
        job.pes(),
        width - 1.0,
        height - 1.0,
        drawing.svg
    )
}

/// What the boxes need in width beside the PEs: 8 pixels on either side of each.
fn gaps(part: &Outline) -> f64 {
    match &part.kind {
        OutlineKind::Branch { parts, .. } => {
            16.0 + 8.0 * (parts.len() - 1) as f64 + parts.iter().map(gaps).sum::<f64>()
        }
        _ => 0.0,
    }
}

/// How many boxes stand inside each other.
fn depth(part: &Outline) -> f64 {
    match &part.kind {
        OutlineKind::Branch { parts, .. } => 1.0 + parts.iter().map(depth).fold(0.0, f64::max),
        _ => 0.0,
    }
}

impl Drawing {
    /// Draws a part from `x` on, `depth` boxes above its PEs. Returns where it ends.
    fn boxes(&mut self, part: &Outline, x: f64, depth: f64) -> f64 {
        let OutlineKind::Branch { parts, .. } = &part.kind else {
            for pe in part.ball.iter() {
                self.pe(pe, x);
            }
            return x + self.across;
        };
        let place = self.svg.len();
        let mut end = x;
        for part in parts {
            end = self.boxes(part, end + 8.0, depth - 1.0);
        }
        end += 8.0;
        let (y, height) = (self.top - 5.0 * depth, PE + 5.0 * depth + LINE * depth);
        let box_ = format!(
            "<rect class='box' x='{x:.1}' y='{y}' width='{:.1}' height='{height}' rx='6'/>\n",
            end - x
        );
        self.svg.insert_str(place, &box_);
        let names = part.path.iter().map(|label| match label.kind {
            LevelKind::Switch => label.name.clone(),
            _ => label.to_string(),
        });
        let name = names.collect::<Vec<_>>().join(", ");
        let name = if name.is_empty() { "job".to_owned() } else { name };
        self.text(x.midpoint(end), y + height - 8.0, "grey middle", &name);
        end
    }

    fn pe(&mut self, pe: Pe, x: f64) {
        let (top, across, middle) = (self.top, self.across, x + self.across / 2.0);
        let _ = writeln!(
            self.svg,
            "<rect class='pe' x='{x:.1}' y='{top}' width='{across:.1}' height='{PE}' rx='4'/>"
        );
        self.middles.push(middle);
        self.text(middle, top + 18.0, "onpe middle", &pe.to_string());
        let ran = format!("ran {}", comma(self.ran[pe.number() as usize]));
        self.text(middle, top + 35.0, "onpe ran middle", &ran);
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = writeln!(self.svg, "<text x='{x:.1}' y='{y}' class='{class}'>{text}</text>");
    }
}

/// A number with commas between its thousands.
fn comma(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
