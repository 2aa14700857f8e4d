//! Tasks that are cancelled on their way.

use super::world::{World, fish_of, settings};
use crate::protocol::Message;
use ultramarine_topology::{Distance, Topology};

/// A task is stolen, comes home as stolen work, and is cancelled there while the next FISH has
/// arrived already.
#[test]
fn what_has_come_home_is_not_given_away_once_it_is_cancelled() {
    let mut world = World::new(Topology::flat(2), &settings(), 1);
    let task = world.spawn(0, Distance::ONE, 0);
    for (victim, thief) in [(0, 1), (1, 0)] {
        world.handle(victim, thief, Message::Fish(fish_of(thief)));
        while !world.flying.is_empty() {
            world.deliver(0);
        }
    }
    assert_eq!(world.queued(0), 1, "it is at home again");
    world.cancel(0, vec![task.future]);
    world.handle(0, 1, Message::Fish(fish_of(1)));
    let sent: Vec<_> = world.flying.iter().map(|letter| &letter.message).collect();
    assert_eq!(sent, [&Message::NoWork { serial: 1 }]);
    assert_eq!(world.queued(0), 0);
}
