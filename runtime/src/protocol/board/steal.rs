//! What a thief does with the boards of others.

use crate::protocol::fish_state::{FishState, nearest_company};
use crate::protocol::message::Need;
use crate::protocol::node::{Host, Node};
use ultramarine_topology::{Ball, Distance, Pe};

/// A thief looks at no more boards than this before it casts a FISH, beside those on which there is
/// something for it.
const LOOKS_MAX: usize = 8;

impl Node {
    /// Takes tasks from the boards of other PEs, if this one has few and none on its own. Returns
    /// whether it has got any.
    pub(in crate::protocol) fn look_at_boards(&mut self, need: Need, host: &mut impl Host) -> bool {
        if host.boards().is_none() {
            return false;
        }
        let most = self.settings.fishing.max_fish;
        let queued = host.queued();
        if queued == 0 && need > Need::Ahead && self.take_back_youngest(host) {
            return true;
        }
        let missing = most.saturating_add(1).saturating_sub(queued + self.board.count);
        let Some(boards) = host.boards() else { return false };
        if missing == 0 {
            boards.set_need(None);
            return false;
        }
        boards.set_need(Some((need, queued as u64)));
        let neighbours = boards.host();
        let wanted = missing.min(self.settings.fishing.schedule_tasks_max);
        let giver = self.fishing.giver.filter(|giver| neighbours.contains(*giver));
        if giver.is_some_and(|giver| self.take_from(giver, wanted, host)) {
            return true;
        }
        host.boards().into_iter().for_each(|boards| boards.posters(&mut self.board.posters));
        self.board.posters.sort_unstable();
        self.board.posters.dedup();
        while let Some(from) = self.board.posters.pop() {
            if self.take_from(from, wanted, host) {
                return true;
            }
        }
        let near = match self.fishing.fish {
            FishState::Resting => self.nearest(neighbours, host),
            _ => Vec::new(),
        };
        near.into_iter().any(|from| self.take_from(from, wanted, host))
    }

    /// The nearest PEs of this host, beginning at a random one among equals.
    fn nearest(&self, neighbours: Ball, host: &mut impl Host) -> Vec<Pe> {
        let mut nearest = Vec::new();
        let mut inner = self.topology.ball(self.me, Distance::ZERO);
        for radius in self.topology.radii() {
            let ball = self.topology.ball(self.me, *radius);
            if ball == inner || ball.len() > neighbours.len() {
                continue;
            }
            let begin = (host.random() % u64::from(ball.len())) as u32;
            let all = (0..ball.len()).map(|n| ball.at((begin + n) % ball.len()));
            let new = all.filter(|pe| !inner.contains(*pe) && !self.living.is_dead(*pe));
            nearest.extend(new.take(LOOKS_MAX.saturating_sub(nearest.len())));
            inner = ball;
        }
        nearest
    }

    /// Takes tasks from the board of this PE. Returns whether there was one.
    fn take_from(&mut self, from: Pe, wanted: usize, host: &mut impl Host) -> bool {
        if from == self.me || self.living.is_dead(from) {
            return false;
        }
        let distance = self.topology.distance(self.me, from);
        let mut has_some = false;
        for _ in 0..wanted {
            let stolen = host.boards().and_then(|boards| boards.steal(from, distance));
            let Some((parcel, took)) = stolen else { break };
            has_some = true;
            let row = self.statistics.at(distance);
            row.steals += 1;
            row.from_boards += 1;
            row.bytes += parcel.body.len() as u64;
            took.into_iter().for_each(|took| self.statistics.steal_latency.record(took));
            self.take_in(from, parcel, host);
        }
        if has_some {
            self.note_giver(from);
            self.board.has_taken = true;
            if let FishState::BackingOff { .. } = self.fishing.fish {
                self.fishing.fish = FishState::Resting;
            }
            // There will be more when this PE looks again.
            host.boards().into_iter().for_each(|boards| boards.ask(from));
        }
        has_some
    }

    /// This PE has given tasks: it may have more.
    pub(in crate::protocol) fn note_giver(&mut self, from: Pe) {
        self.fishing.search_radius = nearest_company(&self.topology, self.me);
        self.fishing.giver = Some(from);
        self.fishing.delay = self.settings.fishing.min_fish_delay;
        self.fishing.may_ask_anew = true;
    }
}
