//! The jobs to be searched.

use ultramarine_runtime::protocol::membership::MembershipMutant;

/// A job to be searched: its PEs, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct MembershipCase {
    /// The number of PEs, including the root.
    pub pes: u32,
    /// The most PEs that crash.
    pub crashes: u32,
    /// Whether the root may be one of them.
    pub root_may_crash: bool,
    /// The most paths that break.
    pub cuts: u32,
    /// The most times that a PE suspects another with which it has contact.
    pub doubts: u32,
    /// The most times that a PE loses another with which it has contact.
    pub slandered: u32,
    /// The most notices that are lost.
    pub lost: u32,
    /// Whether all PEs ignore heartbeats: the search must fail then.
    pub deaf: bool,
    /// A rule of the protocol to leave out: the search must fail then.
    pub mutant: Option<MembershipMutant>,
}

impl MembershipCase {
    /// This many PEs, of which at most `crashes` crash.
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

    /// The cases that take seconds.
    pub fn quick() -> Vec<(&'static str, MembershipCase)> {
        let three = MembershipCase::new(3, 0);
        let four = MembershipCase::new(4, 0);
        vec![
            ("two of four crash", MembershipCase::new(4, 2)),
            (
                "two of four crash, perhaps the root",
                MembershipCase { crashes: 2, ..four.clone().root_may_crash() },
            ),
            ("one of five crashes, perhaps the root", MembershipCase::new(5, 1).root_may_crash()),
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

    /// The cases that take minutes.
    pub fn large() -> Vec<(&'static str, MembershipCase)> {
        let four = MembershipCase::new(4, 0);
        vec![
            ("three of five crash", MembershipCase::new(5, 3)),
            (
                "two of five crash, perhaps the root",
                MembershipCase { crashes: 2, ..MembershipCase::new(5, 0).root_may_crash() },
            ),
            ("two paths break", MembershipCase { cuts: 2, ..four.clone() }),
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
