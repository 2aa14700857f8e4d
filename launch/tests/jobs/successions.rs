//! Jobs that outlive their roots. Each program below is a test that only a launcher runs.
#![cfg(feature = "mpi")]

use crate::common::launcher::launched;
use rustix::process::{Signal, getpid, kill_process};
use std::process::Output;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine_testkit::program;

/// Far more than any of these jobs takes, and far less than a launcher's patience.
const SOON: Duration = Duration::from_secs(40);

/// Runs a program on this many processes over each lane, and looks at how it ended.
fn ends(processes: u32, program: &str, check: impl Fn(&Output, &str, &str)) {
    for lane in ["mpi", "tcp"] {
        let start = Instant::now();
        let Some(output) = launched(processes, program!(program), lane) else { return };
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        check(&output, &out, &format!("{lane}: {out}\n{err}"));
        assert!(start.elapsed() < SOON, "{lane}: {:?}", start.elapsed());
    }
}

#[test]
fn root_after_root_may_die_until_one_process_is_left() {
    ends(4, "lose_root_after_root", |output, out, all| {
        assert!(output.status.success() && out.contains("all is well"), "{all}");
        for rank in 0..3 {
            let told = format!("rank {rank} on");
            assert!(all.contains(&told), "`{told}` is not in: {all}");
        }
        assert_eq!(all.matches("the job goes on without it").count(), 3, "{all}");
    });
}

#[test]
fn what_the_successor_returns_counts() {
    ends(3, "fail_at_the_successor", |output, _, all| {
        assert!(!output.status.success(), "{all}");
        assert!(all.contains("no luck at the second attempt"), "{all}");
    });
}

#[test]
fn a_job_does_not_outlive_its_last_process() {
    ends(3, "lose_all", |output, _, all| {
        assert!(!output.status.success(), "{all}");
        assert!(all.contains("was killed by SIGKILL: the job ends"), "{all}");
    });
}

#[test]
fn a_root_that_calls_exit_is_succeeded() {
    ends(3, "call_exit_at_the_first_root", |output, out, all| {
        assert!(output.status.success() && out.contains("all is well"), "{all}");
        assert!(all.contains("called exit(5) amid the job; the job goes on without it"), "{all}");
    });
}

#[test]
fn the_others_pass_over_signals_after_a_succession_too() {
    ends(4, "be_asked_after_a_succession", |output, out, all| {
        assert!(output.status.success() && out.contains("all is well"), "{all}");
    });
}

#[test]
fn a_root_that_is_killed_after_it_was_asked_to_end_is_a_failure() {
    ends(3, "die_when_asked_to_end", |output, out, all| {
        assert!(!output.status.success(), "{all}");
        assert!(!out.contains("went on"), "{all}");
    });
}

#[test]
fn one_that_was_signalled_before_does_not_end_the_successors_job() {
    ends(4, "go_on_without_the_signalled", |output, out, all| {
        assert!(output.status.success() && out.contains("all is well"), "{all}");
    });
}

#[test]
fn a_job_without_deaths_starts_its_main_task_once() {
    ends(3, "lose_none", |output, out, all| {
        assert!(output.status.success(), "{all}");
        assert_eq!(out.matches("attempt 1 on PE 0").count(), 1, "{all}");
    });
}

/// The programs, as tests that are run under a launcher only.
mod programs {
    use super::*;
    use futures_util::future::poll_immediate;
    use std::pin::pin;
    use ultramarine::{EndRequest, Error, shutdown_requested};

    fn run<T>(main: impl Fn(Context) -> T + Send + Sync + 'static) -> ultramarine::Result<()>
    where
        T: Future<Output = ultramarine::Result<()>> + Send + 'static,
    {
        ultramarine::run_restartable(main)
    }

    /// Ends this process as the kernel does when memory is short.
    fn die() {
        let kill = kill_process(getpid(), Signal::KILL);
        std::thread::sleep(SOON);
        panic!("still alive: {kill:?}");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_root_after_root() {
        run(async |cx| {
            assert_eq!(cx.root(), cx.pe());
            // A root that died at once may have been unknown to this PE.
            let (first, latest) = (cx.pe() == Pe::ROOT, cx.pe().number() + 1);
            assert!(first || (2..=latest).contains(&cx.attempt()), "{}", cx.attempt());
            let slow = async |cx: Context, n: u64| {
                cx.sleep(Duration::from_millis(2)).await;
                n * n
            };
            let supervised = cx.supervised();
            let tasks: Vec<_> =
                (0..200).map(|n| supervised.spawn(Distance::ONE, slow, n)).collect();
            let mut sum = 0;
            for (n, task) in tasks.into_iter().enumerate() {
                sum += task.await?;
                if n == 100 && cx.dead() < cx.pes() - 1 {
                    die();
                }
            }
            assert_eq!(sum, (0..200).map(|n| n * n).sum::<u64>());
            assert_eq!(cx.dead(), cx.pes() - 1);
            println!("all is well");
            Ok(())
        })
        .expect("the job ends well");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn fail_at_the_successor() {
        run(async |cx| {
            if cx.attempt() == 1 {
                die();
            }
            Err(Error::other("no luck at the second attempt"))
        })
        .expect("it fails at one process");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_all() {
        run(async |_| {
            die();
            Ok(())
        })
        .expect("this process is killed");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn call_exit_at_the_first_root() {
        run(async |cx| {
            if cx.attempt() == 1 {
                std::process::exit(5);
            }
            println!("all is well");
            Ok(())
        })
        .expect("the job ends well");
    }

    async fn hear_of_root(cx: Context, root: Pe) {
        while cx.root() != root {
            cx.sleep(Duration::from_millis(1)).await;
        }
    }

    /// Has a process ask itself to end.
    async fn ask(_: Context, (): ()) {
        kill_process(getpid(), Signal::TERM).expect("it is this one");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_asked_after_a_succession() {
        run(async |cx| {
            if cx.attempt() == 1 {
                die();
            }
            let mut asked = pin!(shutdown_requested());
            // From the first poll on it listens.
            assert_eq!(poll_immediate(asked.as_mut()).await, None);
            for pe in 2..cx.pes() {
                // One that is asked before it has heard of this root would not follow it.
                cx.spawn_at(Pe::new(pe), hear_of_root, cx.pe()).await?;
                cx.spawn_at(Pe::new(pe), ask, ()).await?;
                assert_eq!(cx.spawn_at(Pe::new(pe), async |_, n: u32| n, 3).await?, 3);
            }
            ask(cx.clone(), ()).await;
            assert_eq!(asked.await, EndRequest::Terminate);
            assert_eq!(cx.dead(), 1, "only the first root");
            println!("all is well");
            Ok(())
        })
        .expect("the job ends well");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn die_when_asked_to_end() {
        run(async |cx| {
            if cx.attempt() > 1 {
                println!("went on");
                return Ok(());
            }
            for pe in 1..cx.pes() {
                cx.spawn_at(Pe::new(pe), ask, ()).await?;
            }
            die();
            Ok(())
        })
        .expect("one process says so");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn go_on_without_the_signalled() {
        run(async |cx| {
            if cx.attempt() == 1 {
                cx.spawn_at(Pe::new(3), ask, ()).await?;
                die();
            }
            let slow = async |cx: Context, n: u64| {
                cx.sleep(Duration::from_millis(20)).await;
                n
            };
            let numbers = map_async(slow, 0..100).run(&cx.supervised()).await?;
            assert!(numbers.into_iter().eq(0..100));
            println!("all is well");
            Ok(())
        })
        .expect("the job ends well");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_none() {
        run(async |cx| {
            assert_eq!(par_map(&cx, |n: u64| n + 1, 0..3).await?, [1, 2, 3]);
            println!("attempt {} on {}", cx.attempt(), cx.pe());
            Ok(())
        })
        .expect("the job ends well");
    }
}
