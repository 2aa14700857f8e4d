//! The tables to be searched.

use super::mutant::TablesMutant;
use super::state::Op;

/// A table to be searched: its PEs, what is asked, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct TablesCase {
    /// The number of PEs. At most 32.
    pub pes: u32,
    /// The number of copies beside the owner's.
    pub copies: usize,
    /// What is asked, and by which PE.
    pub asks: Vec<(u32, Op)>,
    /// The most PEs that die. One lives.
    pub deaths: u32,
    /// Whether the other PEs begin when they are invited, at any moment.
    pub are_invited: bool,
    /// A rule to leave out.
    pub mutant: Option<TablesMutant>,
}

impl TablesCase {
    /// Some PEs with this number of copies of their entries, one death, and these requests.
    pub fn new(pes: u32, copies: usize, asks: &[(u32, Op)]) -> Self {
        let asks = asks.to_vec();
        TablesCase { pes, copies, asks, deaths: 1, are_invited: false, mutant: None }
    }

    fn dying(self, deaths: u32) -> Self {
        TablesCase { deaths, ..self }
    }

    fn invited(self) -> Self {
        TablesCase { are_invited: true, ..self }
    }

    /// The cases that take seconds.
    pub fn quick() -> Vec<(&'static str, TablesCase)> {
        use Op::{Add, Claim, Read};
        let new = TablesCase::new;
        let adds = [(2, Add(0)), (1, Add(1))];
        let of_one = [(2, Add(0)), (2, Add(1))];
        let claims = [(2, Claim(0)), (1, Claim(1))];
        let reads = [(2, Add(0)), (1, Read(1))];
        let three = [(2, Add(0)), (1, Claim(1)), (2, Read(2))];
        vec![
            ("three PEs, two updates", new(3, 1, &adds).dying(2)),
            ("three PEs, two updates of one", new(3, 1, &of_one).dying(2)),
            ("three PEs, two claims", new(3, 1, &claims).dying(2)),
            ("three PEs that read", new(3, 1, &reads).dying(2)),
            ("three PEs, three requests", new(3, 1, &three).dying(2)),
            ("three PEs that are invited", new(3, 1, &adds).dying(2).invited()),
            ("three PEs without copies", new(3, 0, &adds).dying(2)),
            ("three PEs with two copies", new(3, 2, &adds).dying(2)),
            ("four PEs", new(4, 1, &[(3, Add(0)), (2, Add(1))]).dying(2)),
            ("four PEs, three deaths", new(4, 1, &[(3, Add(0))]).dying(3)),
            ("four PEs with two copies", new(4, 2, &[(3, Add(0))]).dying(3)),
        ]
    }

    /// The cases that take minutes.
    pub fn large() -> Vec<(&'static str, TablesCase)> {
        use Op::{Add, Claim, Read};
        let new = TablesCase::new;
        let three = [(2, Add(0)), (1, Claim(1)), (2, Read(2))];
        let of_four = [(3, Add(0)), (2, Add(1))];
        let three_of_four = [(3, Add(0)), (2, Claim(1)), (3, Read(2))];
        vec![
            ("three PEs with two copies, three requests", new(3, 2, &three).dying(2)),
            ("three PEs that are invited, three requests", new(3, 2, &three).dying(2).invited()),
            ("four PEs, three requests", new(4, 1, &three_of_four).dying(3)),
            ("four PEs with two copies, two updates", new(4, 2, &of_four).dying(3)),
            ("four PEs that are invited", new(4, 1, &of_four).dying(3).invited()),
        ]
    }
}
