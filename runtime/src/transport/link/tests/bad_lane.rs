//! A lane that loses, doubles, damages and refuses frames.

use super::*;

/// The faults of a lane, each with its probability in percent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Faults {
    pub(super) lose: u64,
    pub(super) double: u64,
    pub(super) damage: u64,
    pub(super) refuse: u64,
}

pub(super) type Inbox = VecDeque<(Pe, Vec<u8>)>;

/// Between the first two PEs frames are shorter.
#[derive(Clone)]
pub(super) struct BadLane {
    pub(super) me: Pe,
    pub(super) inboxes: Arc<Mutex<Vec<Inbox>>>,
    pub(super) frame_bytes_max: usize,
    pub(super) faults: Faults,
    pub(super) seed: u64,
}

pub(super) fn bad_network(
    pes: u32,
    frame_bytes_max: usize,
    faults: Faults,
    seed: u64,
) -> Vec<BadLane> {
    let inboxes = Arc::new(Mutex::new(vec![Inbox::new(); pes as usize]));
    (0..pes)
        .map(|pe| BadLane {
            me: Pe::new(pe),
            inboxes: Arc::clone(&inboxes),
            frame_bytes_max,
            faults,
            seed: seed ^ u64::from(pe),
        })
        .collect()
}

/// The longest frame where frames are shorter.
pub(super) fn shorter(frame_bytes_max: usize) -> usize {
    frame_bytes_max - (frame_bytes_max - HEADER_BYTES) / 4
}

impl BadLane {
    /// A random number below this; the generator is `SplitMix64`.
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    pub(super) fn port(self, settings: PortSettings) -> Port {
        let pes = self.inboxes.lock().unwrap().len() as u32;
        Port::new(self.me, pes, Box::new(self), settings)
    }

    pub(super) fn put(&self, to: Pe, frame: &[u8]) {
        self.inboxes.lock().unwrap()[to.index()].push_back((self.me, frame.to_vec()));
    }
}

struct NoSleep;

impl Sleeper for NoSleep {
    fn sleep(&self, _: Duration) {}
    fn wake(&self) {}
    fn wakes_on_traffic(&self) -> bool {
        false
    }
}

impl Lane for BadLane {
    fn name(&self) -> &'static str {
        "bad"
    }
    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }
    fn shorter_frames(&self) -> Option<(Ball, usize)> {
        let near = Topology::flat(2).ball(Pe::ROOT, Distance::ONE);
        (self.me.number() < 2).then(|| (near, shorter(self.frame_bytes_max)))
    }
    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        let is_near = self.me.number() < 2 && to.number() < 2;
        let limit = if is_near { shorter(self.frame_bytes_max) } else { self.frame_bytes_max };
        assert!(frame.len() <= limit);
        if self.random(100) < self.faults.refuse {
            return Ok(false);
        }
        if self.random(100) < self.faults.lose {
            return Ok(true);
        }
        let frame = &mut std::mem::take(frame);
        if self.random(100) < self.faults.double {
            self.put(to, frame);
        }
        if self.random(100) < self.faults.damage {
            let bit = self.random(frame.len() as u64 * 8) as usize;
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        self.put(to, frame);
        Ok(true)
    }
    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let count = self.random(20) as usize;
        let mut inboxes = self.inboxes.lock().unwrap();
        let inbox = &mut inboxes[self.me.index()];
        let count = count.min(inbox.len());
        inbox.drain(..count).for_each(|(from, frame)| deliver(from, &frame));
        Ok(count)
    }
    fn is_flushed(&mut self) -> bool {
        true
    }
    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::new(NoSleep)
    }
}
