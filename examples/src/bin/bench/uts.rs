//! Unbalanced Tree Search on a bushy tree of 102 million nodes and on a deep, thin one of 111
//! million: one PE, two, and two supervised, against a plain sequential loop.

use crate::launch::Bench;
use crate::{Goal, Report, Unit};
use serde_json::Value;
use ultramarine::Result;

const ROUNDS: usize = 5;

/// A tree, by the flags of the reference program.
struct TreeFlags {
    name: &'static str,
    flags: &'static str,
    nodes: u64,
}

/// The goal for two PEs: this percentage of twice the sequential nodes per second.
const SHARE_MIN: f64 = 98.0;

const TREES: [TreeFlags; 2] = [
    TreeFlags { name: "T1L", flags: "-t 1 -a 3 -d 13 -b 4 -r 29", nodes: 102_181_082 },
    TreeFlags { name: "T3L", flags: "-t 0 -b 2000 -q 0.200014 -m 5 -r 7", nodes: 111_345_631 },
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for tree in TREES {
        let with =
            |more: &str| bench.program("uts", &format!("{} --json --threads 1 {more}", tree.flags));
        let contenders = [
            ("sequential", with("--skeleton sequential")),
            ("1 PE", bench.on(1, &with(""))),
            ("2 PEs", bench.on(2, &with(""))),
            ("2 PEs, supervised", bench.on(2, &with("--supervised"))),
        ];
        let nodes = Value::from(tree.nodes);
        let seconds = report.contest(bench, ROUNDS, tree.name, contenders, nodes)?;
        let [sequential, one, two, supervised] = &seconds;
        let named = |what: &str| format!("{}: {what}", tree.name);
        let what = named("2 PEs are faster than 1");
        report.goal(&what, &one.over(two), Unit::TIMES, Goal::AtLeast(1.9));
        let share = sequential.with(two, |sequential, two| 100.0 * sequential / (2.0 * two));
        let what = named("2 PEs, of twice the sequential nodes per second");
        report.goal(&what, &share, Unit::PERCENT, Goal::AtLeast(SHARE_MIN));
        let more = two.with(supervised, |two, supervised| 100.0 * (supervised / two - 1.0));
        report.goal(&named("supervision takes"), &more, Unit::PERCENT, Goal::AtMost(3.0));
    }
    Ok(())
}
