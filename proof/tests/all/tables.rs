//! Distributed tables, searched exhaustively; and mutants of them, which the search must find.
//!
//! A search prints how many states it has visited.

use crate::hold;
use ultramarine_proof::search::first_fault;
use ultramarine_proof::tables::{
    ANSWERS_STAY, COPIES_AGREE, EVERY_REQUEST_ENDS, Op, REQUESTS_ARE_DONE_ONCE, TablesCase,
    TablesMutant,
};

#[test]
fn three_pes_do_each_request_once_and_forget_nothing() {
    hold(TablesCase::quick(), |name| name.starts_with("three"));
}

#[test]
fn four_pes_do_each_request_once_and_forget_nothing() {
    hold(TablesCase::quick(), |name| name.starts_with("four"));
}

#[test]
fn each_rule_is_needed() {
    use Op::{Add, Read};
    use TablesMutant::{
        AnswersReadersAtOnce, BelievesFormerOwners, ForgetsEarlyRequests, ForgetsRequests,
        MakesNoCopies, TakesPieces, TrustsCopies,
    };
    let one = TablesCase::new(3, 1, &[(2, Add(0))]);
    let two_copies = TablesCase { copies: 2, ..one.clone() };
    let pieces = TablesCase { deaths: 2, ..TablesCase::new(3, 2, &[(2, Add(0)), (2, Add(1))]) };
    let reads = TablesCase::new(3, 1, &[(2, Add(0)), (2, Read(2)), (1, Add(1))]);
    for (mutant, case, broken) in [
        (ForgetsRequests, &one, REQUESTS_ARE_DONE_ONCE),
        (TrustsCopies, &one, ANSWERS_STAY),
        (AnswersReadersAtOnce, &reads, ANSWERS_STAY),
        (MakesNoCopies, &one, COPIES_AGREE),
        (BelievesFormerOwners, &two_copies, COPIES_AGREE),
        (ForgetsEarlyRequests, &one, EVERY_REQUEST_ENDS),
        (TakesPieces, &pieces, REQUESTS_ARE_DONE_ONCE),
    ] {
        let search = first_fault(TablesCase { mutant: Some(mutant), ..case.clone() });
        println!("{mutant:?}: {search}");
        assert!(search.breaks(broken), "{mutant:?}: {search}");
    }
}
