//! What is searched: how many PEs there are, and how much goes wrong.

use ultramarine_runtime::protocol::membership::Mutant;

/// What is searched.
#[derive(Clone, Debug)]
pub struct Case {
    /// How many PEs there are, the root included.
    pub pes: u32,
    /// How many crash at most.
    pub crashes: u32,
    /// Whether the root may be one of them.
    pub root_may_crash: bool,
    /// How many paths break at most.
    pub cuts: u32,
    /// How many times at most somebody is suspected though there is contact with it.
    pub doubts: u32,
    /// How many times at most somebody is lost though there is contact with it.
    pub slandered: u32,
    /// How many notices are lost at most.
    pub lost: u32,
    /// Whether nobody listens to heartbeats, to see that the search notices.
    pub deaf: bool,
    /// Which rule is left out, to see that the search notices.
    pub mutant: Option<Mutant>,
}

impl Case {
    /// This many PEs, of which this many crash.
    pub fn new(pes: u32, crashes: u32) -> Case {
        Case {
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
    pub fn quick() -> Vec<(&'static str, Case)> {
        let three = Case::new(3, 0);
        let four = Case::new(4, 0);
        vec![
            ("two of four crash", Case::new(4, 2)),
            (
                "two of five crash, perhaps the root",
                Case { crashes: 2, ..Case::new(5, 0).root_may_crash() },
            ),
            (
                "one of everything",
                Case { crashes: 1, cuts: 1, doubts: 1, lost: 1, ..three.clone().root_may_crash() },
            ),
            ("one path breaks", Case { cuts: 1, lost: 1, ..four.clone() }),
            ("two paths break", Case { cuts: 2, ..four.clone() }),
            ("one path breaks, and one crashes", Case { cuts: 1, crashes: 1, ..four.clone() }),
            (
                "one crashes, and one is suspected",
                Case { crashes: 1, doubts: 1, ..four.clone().root_may_crash() },
            ),
            ("one is slandered", Case { slandered: 1, lost: 1, ..four }),
        ]
    }

    /// What takes minutes.
    pub fn large() -> Vec<(&'static str, Case)> {
        let four = Case::new(4, 0);
        vec![
            ("three of six crash", Case::new(6, 3)),
            (
                "one of everything, with four",
                Case { crashes: 1, cuts: 1, doubts: 1, lost: 1, ..four.clone().root_may_crash() },
            ),
            ("two paths of five break", Case { cuts: 2, ..Case::new(5, 0) }),
            (
                "one of five crashes, a path breaks, one is suspected",
                Case { crashes: 1, cuts: 1, doubts: 1, ..Case::new(5, 0) },
            ),
            ("two are slandered, and a notice is lost", Case { slandered: 2, lost: 1, ..four }),
        ]
    }

    fn root_may_crash(self) -> Case {
        Case { root_may_crash: true, ..self }
    }
}
