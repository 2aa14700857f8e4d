//! What the flags of several examples mean.

use clap::ValueEnum as _;
use std::num::NonZero;
use ultramarine::prelude::*;
use ultramarine::{Label, LaneKind, LevelKind, Options, Place};
use ultramarine_examples::{JournalFlags, MapSkeleton, splitting};

#[test]
fn valid_texts_are_read() {
    assert_eq!(splitting("ordered"), Ok(Splitting::Ordered));
    assert_eq!(splitting("steal-driven"), Ok(Splitting::StealDriven));
    assert_eq!(splitting("depth:0"), Ok(Splitting::Depth(0)));
    assert_eq!(splitting("budget:100"), Ok(Splitting::Budget(100)));
}

#[test]
fn other_texts_are_refused() {
    for (text, reason) in [
        ("", "`steal-driven`, `depth:N` or `budget:N` is expected"),
        ("depth", "is expected"),
        ("depth:", "cannot parse integer from empty string"),
        ("depth:-1", "`-1`: invalid digit"),
        ("depth:4294967296", "no tree has a depth of 4294967296"),
        ("budget:0", "one node at least"),
        ("steal-driven:1", "is expected"),
    ] {
        let said = splitting(text).expect_err(text);
        assert!(said.contains(reason), "{text}: {said}");
    }
}

/// Two of three PEs are nearer to each other, so the machine has two parts.
#[test]
fn the_predicted_number_of_tasks_is_started() {
    let rack = |name: &str| Place::new(vec![Label::new(LevelKind::Switch, name.to_owned())]);
    let racks = ["r0", "r0", "r1"].map(rack).to_vec();
    let options = Options::default().places(racks).threads(1).lane(LaneKind::Memory);
    let job = options.run(async |cx| {
        let (is_required, other_builds, copies) = (false, OtherBuilds::Keep, NonZero::<usize>::MIN);
        let journal = JournalFlags { file: None, is_required, other_builds, copies };
        for items in [0, 1, 2, 3, 4, 5, 61] {
            for skeleton in MapSkeleton::value_variants() {
                let before = cx.statistics().await?.tasks;
                let squares =
                    skeleton.map(&cx, &journal, |n: u64| n * n, (0..items).collect()).await?;
                let started = cx.statistics().await?.tasks - before;
                assert!(squares.into_iter().eq((0..items).map(|n| n * n)), "{skeleton:?}");
                let predicted = skeleton.tasks(&cx, items as usize);
                assert_eq!(started, predicted, "{skeleton:?} of {items} items");
            }
        }
        Ok(())
    });
    job.expect("the job is well");
}
