//! The picture that `steal_picture` draws.

use std::collections::BTreeMap;
use ultramarine::{Options, Pe};
use ultramarine_examples::programs::steal_picture::drawing::draw;

#[test]
fn the_picture_shows_what_moved_at_which_distance() {
    let job = Options::default().describe("r1n[1-2],r2n[1-2]", 2).expect("a job");
    let pe = Pe::new;
    // To itself, to its host, to its rack and back, to the other rack.
    let moved = [(0, 0, 1000), (0, 1, 3), (1, 2, 2), (2, 1, 4), (7, 0, 1)];
    let moved = moved.map(|(from, to, tasks)| ((pe(from), pe(to)), tasks));
    let svg = draw(&job, &BTreeMap::from(moved));
    for text in [
        "1,010 tasks, of which 10 were stolen",
        "distance 1: 1 tasks, 10 %",
        "distance 1/2: 6 tasks, 60 %",
        "distance 1/4: 3 tasks, 30 %",
        "PE 1 and PE 2: 6 tasks",
        "ran 1,001",
        "host r2n2",
    ] {
        assert!(svg.contains(text), "`{text}` is not in {svg}");
    }
    // Three arcs, and a line for each distance.
    assert_eq!(svg.matches("<path").count(), 6, "{svg}");
    assert_eq!(svg.matches("class='pe'").count(), 8, "{svg}");
}
