//! The jobs to be searched.

use ultramarine_runtime::protocol::membership::MembershipMutant;

/// What happens when the root crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootCrash {
    /// It does not.
    Never,
    /// The job ends.
    EndsJob,
    /// Another PE takes its place.
    Succession,
}

/// What becomes of what two PEs send each other whose path is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It is swallowed.
    Silent,
    /// Calls are refused, as by a firewall that rejects.
    Answers,
    /// The same, but what one of them sends still arrives, if it is no call.
    AnswersOneWay,
}

/// A job to be searched: its PEs, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct MembershipCase {
    /// The number of PEs, including the root.
    pub pes: u32,
    /// The most PEs that crash.
    pub crashes: u32,
    /// Whether the root may be one of them, and what happens then.
    pub root: RootCrash,
    /// Whether the host crashes with each PE, so that no other PE sees that it is gone.
    pub hosts_crash: bool,
    /// The most paths that break.
    pub cuts: u32,
    /// How they break.
    pub cut: Cut,
    /// The most times that all paths break between some PEs and the others.
    pub partitions: u32,
    /// The most times that all broken paths become whole again.
    pub heals: u32,
    /// The most times that a PE suspects another with which it has contact.
    pub doubts: u32,
    /// The most times that a PE loses another with which it has contact.
    pub slandered: u32,
    /// The most notices that are lost.
    pub lost: u32,
    /// On how many PEs at a time the main task may have ended.
    pub ends: u32,
    /// Whether PEs exchange heartbeats and repeat what they said only while no notice is on its
    /// way.
    pub patient: bool,
    /// Whether all PEs ignore heartbeats: the search must fail then.
    pub deaf: bool,
    /// A rule of the protocol to leave out: the search must fail then.
    pub mutant: Option<MembershipMutant>,
}

impl MembershipCase {
    /// Whether another PE takes the root's place.
    pub(super) fn has_succession(&self) -> bool {
        self.root == RootCrash::Succession
    }

    /// This many PEs, of which at most `crashes` crash.
    pub fn new(pes: u32, crashes: u32) -> MembershipCase {
        MembershipCase {
            pes,
            crashes,
            hosts_crash: false,
            cuts: 0,
            cut: Cut::Silent,
            partitions: 0,
            heals: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            ends: 0,
            root: RootCrash::Never,
            patient: false,
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
                MembershipCase { cuts: 1, crashes: 1, patient: true, ..four.clone() },
            ),
            (
                "one crashes, and one is suspected",
                MembershipCase {
                    crashes: 1,
                    doubts: 1,
                    patient: true,
                    ..four.clone().root_may_crash()
                },
            ),
            ("one is slandered", MembershipCase { slandered: 1, lost: 1, ..four }),
        ]
    }

    /// The cases that take minutes.
    pub fn large() -> Vec<(&'static str, MembershipCase)> {
        let (four, gone) = (MembershipCase::new(4, 0), MembershipCase::processes);
        vec![
            ("three of five crash", MembershipCase::new(5, 3)),
            (
                "two of five crash, perhaps the root",
                MembershipCase { crashes: 2, ..MembershipCase::new(5, 0).root_may_crash() },
            ),
            (
                "one path breaks, and one crashes",
                MembershipCase { cuts: 1, crashes: 1, ..four.clone() },
            ),
            (
                "one crashes, and one is suspected",
                MembershipCase { crashes: 1, doubts: 1, ..four.clone().root_may_crash() },
            ),
            (
                "succession: of three processes one crashes, and a path breaks",
                MembershipCase { cuts: 1, ..gone(3, 1) },
            ),
            (
                "succession: of three hosts one crashes, and a path breaks",
                MembershipCase { cuts: 1, ..MembershipCase::hosts(3, 1) },
            ),
            (
                "succession: of three hosts one crashes, and one is slandered",
                MembershipCase { slandered: 1, ..MembershipCase::hosts(3, 1) },
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
            (
                "succession: of three, a path breaks, one crashes, and a notice is lost",
                MembershipCase { cuts: 1, lost: 1, ..gone(3, 1) },
            ),
            (
                "succession: of three processes one crashes, a path breaks, and one is slandered",
                MembershipCase { cuts: 1, slandered: 1, ..gone(3, 1) },
            ),
            (
                "succession: of three hosts one crashes, and one is suspected",
                MembershipCase { doubts: 1, ..MembershipCase::hosts(3, 1) },
            ),
            (
                "succession: one of four hosts crashes",
                MembershipCase { patient: true, ..MembershipCase::hosts(4, 1) },
            ),
            (
                "succession: two of four processes crash",
                MembershipCase { patient: true, ..gone(4, 2) },
            ),
            (
                "succession: three are parted for a while, and a main task ends",
                MembershipCase { partitions: 1, heals: 1, ends: 2, patient: true, ..gone(3, 0) },
            ),
            (
                "succession: four are parted",
                MembershipCase { partitions: 1, patient: true, ..gone(4, 0) },
            ),
            (
                "succession: five are parted",
                MembershipCase { partitions: 1, patient: true, ..gone(5, 0) },
            ),
            (
                "succession: three are parted, and a main task ends",
                MembershipCase { partitions: 1, ends: 2, ..gone(3, 0) },
            ),
            (
                "succession: four are parted, and a main task ends",
                MembershipCase { partitions: 1, ends: 2, patient: true, ..gone(4, 0) },
            ),
            (
                "succession: one of five processes crashes, and a main task ends",
                MembershipCase { ends: 2, patient: true, ..gone(5, 1) },
            ),
            (
                "succession: one of five hosts crashes",
                MembershipCase { patient: true, ..MembershipCase::hosts(5, 1) },
            ),
        ]
    }

    /// The cases in which another PE takes the root's place.
    pub fn with_succession() -> Vec<(&'static str, MembershipCase)> {
        let (gone, silent) = (MembershipCase::processes, MembershipCase::hosts);
        vec![
            ("two of three processes crash", gone(3, 2)),
            ("one of three hosts crashes", silent(3, 1)),
            ("two are parted", MembershipCase { partitions: 1, ..gone(2, 0) }),
            (
                "two are parted, and a main task ends",
                MembershipCase { partitions: 1, ends: 2, ..gone(2, 0) },
            ),
            (
                "three are parted by a firewall that answers",
                MembershipCase { partitions: 1, cut: Cut::Answers, ..gone(3, 0) },
            ),
            (
                "three are parted for a while",
                MembershipCase { partitions: 1, heals: 1, patient: true, ..gone(3, 0) },
            ),
            (
                "of three processes one crashes, and a path breaks one way for a while",
                MembershipCase {
                    cuts: 1,
                    cut: Cut::AnswersOneWay,
                    heals: 1,
                    patient: true,
                    ..gone(3, 1)
                },
            ),
            (
                "three are parted, and a main task ends",
                MembershipCase { partitions: 1, ends: 2, patient: true, ..gone(3, 0) },
            ),
            (
                "one of three processes crashes, and a main task ends",
                MembershipCase { ends: 2, patient: true, ..gone(3, 1) },
            ),
            ("three are parted, and one crashes", MembershipCase { partitions: 1, ..gone(3, 1) }),
            (
                "of three processes one crashes, and a path breaks",
                MembershipCase { cuts: 1, patient: true, ..gone(3, 1) },
            ),
            (
                "of three hosts one crashes, and a path breaks",
                MembershipCase { cuts: 1, patient: true, ..silent(3, 1) },
            ),
            (
                "of three hosts one crashes, and one is slandered",
                MembershipCase { slandered: 1, patient: true, ..silent(3, 1) },
            ),
            ("one of four processes crashes", MembershipCase { patient: true, ..gone(4, 1) }),
        ]
    }

    /// Processes crash, and their hosts say so.
    pub fn processes(pes: u32, crashes: u32) -> MembershipCase {
        let case = MembershipCase::new(pes, crashes);
        MembershipCase { root: RootCrash::Succession, ..case }
    }

    /// Hosts crash, with a process each.
    pub fn hosts(pes: u32, crashes: u32) -> MembershipCase {
        MembershipCase { hosts_crash: true, ..MembershipCase::processes(pes, crashes) }
    }

    fn root_may_crash(self) -> MembershipCase {
        MembershipCase { root: RootCrash::EndsJob, ..self }
    }
}
