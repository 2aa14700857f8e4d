//! Where the nodes of a graph stand in a picture: in rows, each below all of its inputs (Sugiyama,
//! Tagawa and Toda, *Methods for Visual Understanding of Hierarchical System Structures*, 1981).
//!
//! 1. The row of a node is the length of the longest path to it. A node without inputs stands right
//!    above its first reader.
//! 2. An edge that passes rows gets a *bend* in each of them. Edges of one node share their bends.
//! 3. The order in a row is by the barycentre of what is linked in the row above, then below, a few
//!    times. The order with the fewest crossings counts.
//! 4. Points move to the middle of what they are linked with, as far as their order allows.
//!
//! It must never know what a node is.

use std::ops::Range;

/// How often the rows are put in order, down and up.
const SWEEPS: usize = 12;

/// How often points are moved, down and up.
const MOVES: usize = 12;

/// The width of a bend, and the gap between two points, in pixels.
const BEND: f64 = 8.0;
const GAP: f64 = 16.0;

/// A line from a point to one in the next row.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The node whose result it is.
    pub(super) node: usize,
}

/// See the [module](self). Points are nodes, and after them bends.
pub(super) struct Layout {
    pub(super) links: Vec<Link>,
    /// The row of each point.
    pub(super) row: Vec<usize>,
    /// The middle of each point.
    pub(super) x: Vec<f64>,
    pub(super) width: f64,
    pub(super) rows: usize,
    /// The points of each row, in order.
    order: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The place of each point in its row.
    place: Vec<usize>,
}

impl Layout {
    /// Nodes of this width with these inputs, each of which has a smaller number.
    pub(super) fn new(inputs: &[&[u32]], width: f64) -> Self {
        let mut row = rows(inputs);
        let links = links(inputs, &mut row);
        let (mut above, mut below) = (vec![Vec::new(); row.len()], vec![Vec::new(); row.len()]);
        for link in &links {
            above[link.to].push(link.from);
            below[link.from].push(link.to);
        }
        let rows = row.iter().max().map_or(0, |last| last + 1);
        let mut order = vec![Vec::new(); rows];
        for (point, row) in row.iter().enumerate() {
            order[*row].push(point);
        }
        let (x, place) = (vec![0.0; row.len()], vec![0; row.len()]);
        let mut layout = Layout { links, row, x, width: 0.0, rows, order, above, below, place };
        (0..rows).for_each(|row| layout.note_places(row));
        layout.lessen_crossings();
        layout.spread(inputs.len(), width);
        layout
    }

    fn note_places(&mut self, row: usize) {
        for (place, point) in self.order[row].iter().enumerate() {
            self.place[*point] = place;
        }
    }

    fn lessen_crossings(&mut self) {
        let mut best = (self.crossings(), self.order.clone());
        for sweep in 0..SWEEPS {
            if best.0 == 0 {
                break;
            }
            if sweep % 2 == 0 {
                (1..self.rows).for_each(|row| self.sort(row, true));
            } else {
                (0..self.rows.saturating_sub(1)).rev().for_each(|row| self.sort(row, false));
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
        (0..self.rows).for_each(|row| self.note_places(row));
    }

    /// Puts a row in the order of what it is linked with, above or below.
    fn sort(&mut self, row: usize, by_above: bool) {
        let linked = if by_above { &self.above } else { &self.below };
        let middle = |point: &usize| {
            let others = linked[*point].iter().map(|other| self.place[*other] as f64);
            mean(others).unwrap_or(self.place[*point] as f64)
        };
        let mut keyed: Vec<(f64, usize)> =
            self.order[row].iter().map(|p| (middle(p), *p)).collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.order[row] = keyed.into_iter().map(|(_, point)| point).collect();
        self.note_places(row);
    }

    /// How many pairs of links cross.
    fn crossings(&self) -> u64 {
        let between = |row: usize| {
            let mut ends = Vec::new();
            for point in &self.order[row] {
                let from = ends.len();
                ends.extend(self.below[*point].iter().map(|other| self.place[*other]));
                ends[from..].sort_unstable();
            }
            inversions(&ends, self.order[row + 1].len())
        };
        (0..self.rows.saturating_sub(1)).map(between).sum()
    }

    fn spread(&mut self, nodes: usize, width: f64) {
        let half = |point: usize| if point < nodes { width / 2.0 } else { BEND / 2.0 };
        // The least distance of the middles of two neighbours.
        let apart = |a: usize, b: usize| half(a) + half(b) + GAP;
        for turn in 0..MOVES {
            for row in 0..self.rows {
                let row = if turn % 2 == 0 { row } else { self.rows - 1 - row };
                let order = &self.order[row];
                let wish = |point: &usize| {
                    let x = |others: &[usize]| mean(others.iter().map(|other| self.x[*other]));
                    let (above, below) = (x(&self.above[*point]), x(&self.below[*point]));
                    let is_last = turn + 2 >= MOVES;
                    match (above, below) {
                        (Some(above), Some(below)) if is_last => above.midpoint(below),
                        _ if turn % 2 == 0 => above.or(below).unwrap_or(self.x[*point]),
                        _ => below.or(above).unwrap_or(self.x[*point]),
                    }
                };
                let wishes: Vec<f64> = order.iter().map(wish).collect();
                let mut least = vec![0.0];
                for two in order.windows(2) {
                    least.push(least[least.len() - 1] + apart(two[0], two[1]));
                }
                let placed = nearest(&wishes, &least);
                order.iter().zip(placed).for_each(|(point, x)| self.x[*point] = x);
            }
        }
        let left = (0..self.x.len()).map(|point| self.x[point] - half(point));
        let left = left.fold(f64::INFINITY, f64::min);
        let left = if left.is_finite() { left } else { 0.0 };
        self.x.iter_mut().for_each(|x| *x -= left);
        let right = (0..self.x.len()).map(|point| self.x[point] + half(point));
        self.width = right.fold(0.0, f64::max);
    }
}

/// The row of each node.
fn rows(inputs: &[&[u32]]) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::with_capacity(inputs.len());
    let mut first_reader = vec![None; inputs.len()];
    for own in inputs {
        let row = own.iter().map(|input| rows[*input as usize] + 1).max().unwrap_or(0);
        rows.push(row);
        for input in *own {
            let first: &mut Option<usize> = &mut first_reader[*input as usize];
            *first = Some(first.map_or(row, |first| first.min(row)));
        }
    }
    for (node, own) in inputs.iter().enumerate() {
        if let (true, Some(reader)) = (own.is_empty(), first_reader[node]) {
            rows[node] = reader - 1;
        }
    }
    rows
}

/// All links; bends are added to the rows.
fn links(inputs: &[&[u32]], row: &mut Vec<usize>) -> Vec<Link> {
    let mut readers = vec![Vec::new(); inputs.len()];
    for (reader, own) in inputs.iter().enumerate() {
        own.iter().for_each(|input| readers[*input as usize].push(reader));
    }
    let mut links = Vec::new();
    for (node, mut readers) in readers.into_iter().enumerate() {
        readers.sort_by_key(|reader| row[*reader]);
        let mut from = node;
        for reader in readers {
            while row[from] + 1 < row[reader] {
                let bend = row.len();
                row.push(row[from] + 1);
                links.push(Link { from, to: bend, node });
                from = bend;
            }
            links.push(Link { from, to: reader, node });
        }
    }
    links
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = numbers.fold((0, 0.0), |(count, sum), number| (count + 1, sum + number));
    (count > 0).then(|| sum / f64::from(count))
}

/// How many pairs of these numbers, all less than `end`, are in the wrong order.
fn inversions(numbers: &[usize], end: usize) -> u64 {
    let mut counts = vec![0; end];
    let greater_before = |number: &usize| {
        counts[*number] += 1;
        counts[number + 1..].iter().sum::<u64>()
    };
    numbers.iter().map(greater_before).sum()
}

/// The places nearest to these wishes, by the squares of the differences, that are as far apart as
/// `least`, places from 0, says. (Neighbours whose wishes conflict move together: isotonic
/// regression, by pooling adjacent violators.)
fn nearest(wishes: &[f64], least: &[f64]) -> Vec<f64> {
    let mut groups: Vec<(f64, Range<usize>)> = Vec::new();
    for (place, wish) in wishes.iter().enumerate() {
        let (mut shift, mut members) = (wish - least[place], place..place + 1);
        while let Some((before, others)) = groups.pop_if(|(before, _)| *before > shift) {
            let (own, theirs) = (members.len() as f64, others.len() as f64);
            shift = (shift * own + before * theirs) / (own + theirs);
            members.start = others.start;
        }
        groups.push((shift, members));
    }
    let places = groups.into_iter().flat_map(|(shift, members)| members.map(move |m| (shift, m)));
    places.map(|(shift, member)| shift + least[member]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_below_their_inputs_and_apart() {
        // 5 reads 0, past a row; 3 is read by 4 only, which is late.
        let inputs: [&[u32]; 6] = [&[], &[0], &[0, 1], &[], &[2, 3], &[0, 2]];
        let layout = Layout::new(&inputs, 10.0);
        assert_eq!(layout.row[..6], [0, 1, 2, 2, 3, 3]);
        assert_eq!(layout.row[6..], [1, 2], "two bends for both readers of node 0");
        for link in &layout.links {
            assert_eq!(layout.row[link.from] + 1, layout.row[link.to]);
        }
        for order in &layout.order {
            for two in order.windows(2) {
                assert!(layout.x[two[1]] - layout.x[two[0]] > 23.9);
            }
        }
        assert!(layout.x.iter().all(|x| *x >= 0.9 && *x < layout.width));
    }

    #[test]
    fn trees_do_not_cross() {
        // Two trees of four leaves each, whose leaves were built in turn.
        let inputs: [&[u32]; 12] =
            [&[], &[], &[], &[], &[], &[], &[], &[], &[0, 4], &[1, 5], &[2, 6], &[3, 7]];
        let layout = Layout::new(&inputs, 10.0);
        assert_eq!(layout.crossings(), 0);
        for parent in 8..12 {
            let above: Vec<f64> = layout.above[parent].iter().map(|leaf| layout.x[*leaf]).collect();
            assert!((layout.x[parent] - mean(above.into_iter()).unwrap()).abs() < 0.01);
        }
    }

    #[test]
    fn crossings_are_counted_and_lessened() {
        // Each node of the lower row reads one of the upper, in the opposite order.
        let inputs: [&[u32]; 6] = [&[], &[], &[], &[2], &[1], &[0]];
        let layout = Layout::new(&inputs, 10.0);
        assert_eq!((layout.crossings(), layout.rows), (0, 2));
        // Two that read the same two: one crossing, whatever the order.
        let inputs: [&[u32]; 4] = [&[], &[], &[0, 1], &[0, 1]];
        assert_eq!(Layout::new(&inputs, 10.0).crossings(), 1);
        // Three that read the same three.
        let inputs: [&[u32]; 6] = [&[], &[], &[], &[0, 1, 2], &[0, 1, 2], &[0, 1, 2]];
        assert_eq!(Layout::new(&inputs, 10.0).crossings(), 9);
    }

    #[test]
    fn points_stand_in_the_middle_of_what_they_are_linked_with() {
        let inputs: [&[u32]; 5] = [&[], &[], &[0, 1], &[], &[2, 3]];
        let layout = Layout::new(&inputs, 10.0);
        assert_eq!(layout.row, [0, 0, 1, 1, 2]);
        // The last is on its way to 31.
        let expected = [5.0, 31.0, 18.0, 44.0, 33.4375];
        let is_near = |(x, expected): (&f64, f64)| (x - expected).abs() < 0.01;
        assert!(layout.x.iter().zip(expected).all(is_near), "{:?}", layout.x);
        assert!((layout.width - 49.0).abs() < 0.01, "{}", layout.width);
    }

    #[test]
    fn an_empty_graph_has_no_rows() {
        assert_eq!(Layout::new(&[], 10.0).rows, 0);
    }

    #[test]
    fn inversions_are_counted() {
        assert_eq!(inversions(&[0, 1, 1, 2], 3), 0);
        assert_eq!(inversions(&[2, 1, 0, 0], 3), 5);
    }

    #[test]
    fn wishes_that_conflict_are_met_in_the_mean() {
        assert_eq!(nearest(&[5.0, 5.0, 20.0], &[0.0, 4.0, 8.0]), [3.0, 7.0, 20.0]);
    }
}
