//! What is searched: how many PEs there are, and how much goes wrong.

use ultramarine_runtime::protocol::membership::MembershipMutant;

/// What is searched.
#[derive(Clone, Debug)]
pub struct MembershipCase {
    /// How many PEs there are, the root included.
    pub pes: u32,
    /// How many crash at most.
    pub crashes: u32,
    /// Whether the root may be one of them.
    pub root_may_crash: bool,
    /// How many paths break at most.
    pub cuts: u32,
    /// The most times that a PE is suspected although there is contact with it.
    pub doubts: u32,
    /// The most times that a PE is lost although there is contact with it.
    pub slandered: u32,
    /// How many notices are lost at most.
    pub lost: u32,
    /// Whether all PEs ignore heartbeats, to see that the search notices.
    pub deaf: bool,
    /// Which rule is left out, to see that the search notices.
    pub mutant: Option<MembershipMutant>,
}

impl MembershipCase {
    /// This many PEs, of which this many crash.
    pub fn new(pes: u32, crashes: u32) -> MembershipCase {
        MembershipCase {
            pes,
            crashes,
            cuts: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            root_may_crash: false,
            deaf: false,
            mutant: None,
        }
    }

    /// What takes seconds.
    pub fn quick() -> Vec<(&'static str, MembershipCase)> {
        let three = MembershipCase::new(3, 0);
        let four = MembershipCase::new(4, 0);
        vec![
            ("two of four crash", MembershipCase::new(4, 2)),
            (
                "two of five crash, perhaps the root",
                MembershipCase { crashes: 2, ..MembershipCase::new(5, 0).root_may_crash() },
            ),
            (
                "one of everything",
                MembershipCase {
                    crashes: 1,
                    cuts: 1,
                    doubts: 1,
                    lost: 1,
                    ..three.clone().root_may_crash()
                },
            ),
            ("one path breaks", MembershipCase { cuts: 1, lost: 1, ..four.clone() }),
            ("two paths break", MembershipCase { cuts: 2, ..four.clone() }),
            (
                "one path breaks, and one crashes",
                MembershipCase { cuts: 1, crashes: 1, ..four.clone() },
            ),
            (
                "one crashes, and one is suspected",
                MembershipCase { crashes: 1, doubts: 1, ..four.clone().root_may_crash() },
            ),
            ("one is slandered", MembershipCase { slandered: 1, lost: 1, ..four }),
        ]
    }

    /// What takes minutes.
    pub fn large() -> Vec<(&'static str, MembershipCase)> {
        let four = MembershipCase::new(4, 0);
        vec![
            ("three of six crash", MembershipCase::new(6, 3)),
            (
                "one of everything, with four",
                MembershipCase {
                    crashes: 1,
                    cuts: 1,
                    doubts: 1,
                    lost: 1,
                    ..four.clone().root_may_crash()
                },
            ),
            ("two paths of five break", MembershipCase { cuts: 2, ..MembershipCase::new(5, 0) }),
            (
                "one of five crashes, a path breaks, one is suspected",
                MembershipCase { crashes: 1, cuts: 1, doubts: 1, ..MembershipCase::new(5, 0) },
            ),
            (
                "two are slandered, and a notice is lost",
                MembershipCase { slandered: 2, lost: 1, ..four },
            ),
        ]
    }

    fn root_may_crash(self) -> MembershipCase {
        MembershipCase { root_may_crash: true, ..self }
    }
}
