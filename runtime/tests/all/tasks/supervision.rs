//! Which tasks are supervised.

use super::among;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::{Distance, Pe};

const ELSEWHERE: Pe = Pe::new(1);

#[test]
fn one_word_covers_a_whole_computation() {
    among(2, 1, async |cx| {
        let told = async |cx: Context, ()| cx.is_supervised();
        let child = async |cx: Context, pe: Pe| {
            let told = async |cx: Context, ()| cx.is_supervised();
            let at_home = cx.spawn(Distance::ZERO, told, ()).await.expect("all are well");
            let placed = cx.spawn_at(pe, told, ()).await.expect("all are well");
            let forked = cx.fork(Distance::ZERO, told, ()).leave().await.expect("all are well");
            [cx.is_supervised(), at_home, placed, forked]
        };
        for cx in [cx.clone(), cx.supervised(), cx.supervised().unsupervised()] {
            let is_supervised = cx.is_supervised();
            for pe in [Pe::ROOT, ELSEWHERE] {
                assert_eq!(cx.spawn_at(pe, told, ()).await, Ok(is_supervised));
                for other in [Pe::ROOT, ELSEWHERE] {
                    let all = cx.spawn_at(pe, child, other).await;
                    assert_eq!(all, Ok([is_supervised; 4]), "by {pe}, on {other}");
                }
            }
        }
        assert!(!cx.is_supervised(), "the main task's own is not");
    });
}
