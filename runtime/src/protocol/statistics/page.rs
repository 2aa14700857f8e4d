//! Statistics in words, on a screen of 80 columns.

use super::{Statistics, Traffic};
use std::fmt::{Display, Formatter, Result};

/// A screen of 80 columns and, on a machine of four levels, 12 lines. Lines and rows of zeros are
/// left out. Times are quantiles, right to 12.5 %.
impl Display for Statistics {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let ended: u64 = self.ended.values().sum();
        line(f, "tasks", [(self.tasks, "run"), (ended, "ended"), (self.placed, "placed")])?;
        self.table(f)?;
        let [median, late, most] = [0.5, 0.99, 1.0].map(|q| self.steal_latency.quantile(q));
        if let (Some(median), Some(late), Some(most)) = (median, late, most) {
            writeln!(f, "a steal takes {median:.1?}, 1 in 100 {late:.1?}, at most {most:.1?}")?;
        }
        let supervision = [
            (self.notifies, "NOTIFYs"),
            (self.acks, "ACKs"),
            (self.replicas, "tasks run again"),
            (self.lost, "lost"),
            (self.orphans, "orphans"),
            (self.fishes_lost, "FISHes lost"),
        ];
        line(f, "supervision", supervision)?;
        for (name, upkeep) in [("all PEs", self.upkeep), ("one PE, most", self.upkeep_most)] {
            let figures = [
                (upkeep.connections_opened, "connections made"),
                (upkeep.connections_accepted, "accepted"),
                (upkeep.bootstrap_sent_bytes, "B sent at start-up"),
                (upkeep.bootstrap_received_bytes, "B received"),
            ];
            line(f, name, figures)?;
        }
        line(f, "memory", [(self.boards, "boards open")])
    }
}

impl Statistics {
    /// The table of what moved at which distance.
    fn table(&self, f: &mut Formatter<'_>) -> Result {
        let rows = self.by_distance.iter().map(|row| (row.distance.to_string(), columns(row)));
        let mut rows =
            rows.filter(|(_, columns)| columns.iter().any(|count| *count > 0)).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let names = ["FISHes", "passed on", "SCHEDULEs", "stolen", "by board", "bytes", "NOWORKs"];
        write!(f, "{:8}", "distance")?;
        names.iter().try_for_each(|name| write!(f, " {name:>9}"))?;
        for (distance, columns) in rows {
            write!(f, "\n{distance:8}")?;
            columns.iter().try_for_each(|count| write!(f, " {count:>9}"))?;
        }
        writeln!(f)
    }
}

fn columns(row: &Traffic) -> [u64; 7] {
    let Traffic { fishes, forwards, schedules, steals, from_boards, bytes, no_works, .. } = *row;
    [fishes, forwards, schedules, steals, from_boards, bytes, no_works]
}

/// A line of those figures that are not zero, if any is not.
fn line<const N: usize>(f: &mut Formatter<'_>, name: &str, figures: [(u64, &str); N]) -> Result {
    let figures = figures.iter().filter(|(count, _)| *count > 0);
    let figures: Vec<String> = figures.map(|(count, what)| format!("{count} {what}")).collect();
    if figures.is_empty() { Ok(()) } else { writeln!(f, "{name}: {}", figures.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::all_different;
    use super::*;
    use std::time::Duration;
    use ultramarine_topology::Distance;

    #[test]
    fn all_figures_are_on_the_screen() {
        let mut statistics = all_different(1);
        statistics.ended = [(0, 25), (1, 1)].into();
        (1..=100).for_each(|n| statistics.steal_latency.record(Duration::from_micros(n)));
        let expected = "\
tasks: 7 run, 26 ended, 8 placed
distance    FISHes passed on SCHEDULEs    stolen  by board     bytes   NOWORKs
1                1         2         3         4        24         5         6
a steal takes 49.2µs, 1 in 100 98.3µs, at most 98.3µs
supervision: 10 NOTIFYs, 11 ACKs, 12 tasks run again, 13 lost, 14 orphans, 9 FISHes lost
all PEs: 17 connections made, 18 accepted, 15 B sent at start-up, 16 B received
one PE, most: 21 connections made, 22 accepted, 19 B sent at start-up, 20 B received
memory: 23 boards open
";
        assert_eq!(statistics.to_string(), expected);
    }

    #[test]
    fn what_is_zero_is_left_out_and_nothing_is_longer_than_a_screen() {
        assert_eq!(Statistics::new(&[Distance::ONE]).to_string(), "");
        let mut statistics = Statistics::new(&[Distance::ONE.half(), Distance::ONE]);
        statistics.at(Distance::ONE).no_works = 3;
        let page = statistics.to_string();
        assert!(page.lines().count() == 2 && page.ends_with("        3\n"), "{page}");
        let debugged = format!("{:#?}", all_different(1));
        assert!(debugged.lines().count() < 60, "{debugged}");
    }
}
