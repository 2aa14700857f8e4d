//! Forks of threads that have no deque.

use super::alone;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Distance;

#[test]
fn what_a_foreign_thread_forks_and_leaves_is_run_once() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    alone(1, async |cx| {
        let task = async |_: Context, n: u32| {
            RUN.fetch_add(1, SeqCst);
            n
        };
        let foreign = cx.clone();
        let fork_all = move || {
            let forks: Vec<_> = (0..9).map(|n| foreign.fork(Distance::ONE, task, n)).collect();
            let mut left = Vec::new();
            for (n, fork) in (0..).zip(forks) {
                match n % 3 {
                    0 => left.push((n, fork.leave())),
                    // The worker runs this main task, and none of them.
                    1 => assert!(matches!(fork.take_back(), Ok(argument) if argument == n)),
                    _ => drop(fork),
                }
            }
            left
        };
        let left = thread::spawn(fork_all).join().expect("no panic");
        for (n, future) in left {
            assert_eq!(future.await, Ok(n));
        }
        assert_eq!(cx.spawn(Distance::ONE, task, 7).await, Ok(7));
        assert_eq!(RUN.load(SeqCst), 3 + 1);
    });
}
