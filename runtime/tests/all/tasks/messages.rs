//! Messages without a reply.

use super::{PATIENCE, alone, among, jobs, until};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, JobError, Key, lead, serve};
use ultramarine_topology::{Distance, Pe};

type Heard = Mutex<Vec<(Pe, Vec<u64>)>>;

async fn note(cx: Context, (key, from, values): (Key, Pe, Vec<u64>)) {
    cx.shared(key, Heard::default).lock().expect("no panic").push((from, values));
}

/// The messages that a PE has received, once there are `count`.
async fn heard(cx: &Context, pe: Pe, key: Key, count: usize) -> Vec<(Pe, Vec<u64>)> {
    let look = async |cx: Context, (key, count): (Key, usize)| {
        let heard = cx.shared(key, Heard::default);
        until(&cx, || heard.lock().expect("no panic").len() >= count).await;
        heard.lock().expect("no panic").clone()
    };
    cx.spawn_at(pe, look, (key, count)).await.expect("all are well")
}

#[test]
fn what_one_pe_tells_another_is_begun_in_order() {
    among(3, 4, async |cx| {
        let key = cx.new_key();
        let tell = async |cx: Context, (key, to): (Key, Pe)| {
            for n in 0..500 {
                // Some are long, and no other may overtake them.
                let length = if n % 50 == 7 { 50_000 } else { 1 };
                cx.tell(to, note, (key, cx.pe(), vec![n; length])).expect("there is such a PE");
            }
        };
        let [to, other] = [1, 2].map(Pe::new);
        let tellers: Vec<_> =
            [Pe::ROOT, to, other].map(|teller| cx.spawn_at(teller, tell, (key, to))).into();
        for teller in tellers {
            teller.await.expect("all are well");
        }
        let heard = heard(&cx, to, key, 1500).await;
        for teller in [Pe::ROOT, to, other] {
            let of = heard.iter().filter(|(from, _)| *from == teller).map(|(_, values)| values[0]);
            assert_eq!(of.collect::<Vec<_>>(), (0..500).collect::<Vec<_>>(), "by {teller}");
        }
    });
}

#[test]
fn a_value_goes_with_a_message() {
    among(3, 1, async |cx| {
        let key = cx.new_key();
        let note = |cx: &Context, (key, from), values: Result<Arc<Vec<u64>>, TaskError>| {
            let heard = cx.shared(key, Heard::default);
            let values = values.expect("numbers can be decoded");
            heard.lock().expect("no panic").push((from, values.to_vec()));
        };
        let values: Vec<Vec<u64>> = [0, 1, 9, 100_000].map(|length| (0..length).collect()).to_vec();
        for (value, pe) in values.iter().flat_map(|value| [0, 1, 2].map(|pe| (value, Pe::new(pe))))
        {
            let value = Arc::new(value.clone());
            cx.tell_with(pe, note, (key, cx.pe()), value).expect("there is such a PE");
        }
        cx.tell_all_with(note, (key, cx.pe()), Arc::new(vec![7])).expect("all is well");
        for pe in (0..3).map(Pe::new) {
            let mut heard = heard(&cx, pe, key, 5).await;
            heard.sort_by_key(|(_, values)| values.len());
            let lengths = heard.iter().map(|(_, values)| values.len()).collect::<Vec<_>>();
            assert_eq!(lengths, [0, 1, 1, 9, 100_000]);
            assert_eq!(heard[4].1, values[3], "{pe}");
        }
        let words = |_: &Context, (): (), _: Result<Arc<Vec<String>>, TaskError>| ();
        let none = Pe::new(9);
        let error = cx.tell_with(none, words, (), Arc::new(vec!["a".to_owned()])).unwrap_err();
        assert_eq!(error, TaskError::NoSuchPe { pe: none, pes: 3 });
    });
}

#[test]
fn all_hear_what_one_tells_all() {
    among(7, 2, async |cx| {
        let key = cx.new_key();
        let tell = async |cx: Context, key: Key| {
            let note_at_once = |cx: &Context, (key, from, n): (Key, Pe, u64)| {
                let heard = cx.shared(key, Heard::default);
                heard.lock().expect("no panic").push((from, vec![n]));
            };
            for n in 0..100 {
                let told = match n % 2 {
                    0 => cx.tell_all(note, (key, cx.pe(), vec![n])),
                    _ => cx.tell_all_fn(note_at_once, (key, cx.pe(), n)),
                };
                told.expect("all is well");
            }
        };
        cx.spawn_at(Pe::new(3), tell, key).await.expect("all are well");
        let all: Vec<_> = (0..100).map(|n| (Pe::new(3), vec![n])).collect();
        for pe in (0..7).map(Pe::new) {
            assert_eq!(heard(&cx, pe, key, 100).await, all, "{pe}");
        }
        let statistics = cx.statistics().await.expect("all are well");
        assert_eq!(statistics.tasks, 8, "messages are no tasks");
    });
}

/// The next message begins as soon as the one before waits for something, and not earlier.
#[test]
fn messages_of_a_pe_do_not_run_side_by_side() {
    static INSIDE: AtomicU32 = AtomicU32::new(0);
    among(2, 4, async |cx| {
        let key = cx.new_key();
        let visit = async |cx: Context, key: Key| {
            assert_eq!(INSIDE.fetch_add(1, SeqCst), 0, "two are inside");
            thread::sleep(Duration::from_micros(100));
            INSIDE.fetch_sub(1, SeqCst);
            cx.yield_now().await;
            note(cx, (key, Pe::ROOT, vec![])).await;
        };
        (0..200).for_each(|_| cx.tell(Pe::new(1), visit, key).expect("there is such a PE"));
        heard(&cx, Pe::new(1), key, 200).await;
    });
}

/// A value stays for as long as its array is being sent, which may be until the job ends.
#[test]
fn values_that_were_sent_are_dropped_when_the_job_has_ended() {
    static ALIVE: AtomicU32 = AtomicU32::new(0);
    struct Counted(());
    impl Default for Counted {
        fn default() -> Self {
            ALIVE.fetch_add(1, SeqCst);
            Counted(())
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, SeqCst);
        }
    }
    #[derive(Serialize, Deserialize)]
    struct Long(Vec<u64>, #[serde(skip)] Counted);
    alone(1, async |cx| {
        let ignore = async |_: Context, _: Long| ();
        for _ in 0..20 {
            let long = Long(vec![7; 100_000], Counted::default());
            cx.tell(cx.pe(), ignore, long).expect("it is sent");
        }
    });
    // Workers may still be at it.
    let end = Instant::now() + PATIENCE;
    while ALIVE.load(SeqCst) > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ALIVE.load(SeqCst), 0);
}

#[test]
fn a_message_that_cannot_be_sent_is_an_error() {
    among(2, 1, async |cx| {
        let ignore = async |_: Context, _: Vec<u8>| {};
        let (pe, pes) = (Pe::new(2), 2);
        assert_eq!(cx.tell(pe, ignore, vec![]), Err(TaskError::NoSuchPe { pe, pes }));
        let too_large = vec![0u8; 2 << 30];
        let refused = cx.tell_all(ignore, too_large);
        assert!(matches!(refused, Err(TaskError::TooLarge { .. })), "{refused:?}");
        let ignore = async |_: Context, _: (u8, Vec<u8>)| {};
        let refused = cx.tell(Pe::new(1), ignore, (1, vec![0; 2 << 30]));
        assert!(matches!(refused, Err(TaskError::TooLarge { .. })), "{refused:?}");
    });
}

#[test]
fn several_tasks_may_wait_at_one_mailbox() {
    among(1, 2, async |cx| {
        let key = cx.new_key();
        let by_name = async |cx: Context, key| cx.mailbox::<u64>(key).receive(cx.pe()).await;
        let any = async |cx: Context, key| {
            cx.mailbox::<u64>(key).receive_any().await.map(|(_, value)| value)
        };
        let begun = (0..3).map(|_| cx.spawn(Distance::ZERO, by_name, key));
        let begun: Vec<_> =
            begun.chain((0..3).map(|_| cx.spawn(Distance::ZERO, any, key))).collect();
        cx.sleep(Duration::from_millis(20)).await;
        (0..6_u64).for_each(|n| cx.mailbox(key).send(cx.pe(), n).expect("it is sent"));
        let mut found = Vec::new();
        for task in begun {
            let value = cx.timeout(PATIENCE, task).await.expect("no task is forgotten");
            found.push(value.expect("it is well").expect("it has come"));
        }
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn a_message_whose_function_panics_ends_the_job() {
    for (threads, waits) in [(1, true), (2, true), (1, false)] {
        let mut jobs = jobs(2, threads, |_| None).into_iter();
        let root = jobs.next().expect("there is one");
        jobs.for_each(|job| drop(thread::spawn(move || drop(serve(job)))));
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let (result, parting) = lead(root, async move |cx: Context| {
                let fail = async |_: Context, n: u32| assert_eq!(n, 3, "it is not three");
                let fail_at_once = |_: &Context, n: u32| assert_eq!(n, 3, "it is not three");
                let told = if waits {
                    cx.tell(Pe::new(1), fail, 4)
                } else {
                    cx.tell_fn(Pe::new(1), fail_at_once, 4)
                };
                told.expect("there is such a PE");
                cx.sleep(PATIENCE).await;
            });
            parting.goodbye();
            drop(done.send(result));
        });
        let error = is_done.recv_timeout(PATIENCE).expect("it ends").expect_err("it cannot go on");
        let said = error.to_string();
        assert!(matches!(error, JobError::Elsewhere { .. }), "{said}");
        assert!(said.contains("PE 1: a message for it failed"), "{said}");
        assert!(said.contains("a_message_whose_function_panics"), "{said}");
        assert!(said.contains("it is not three"), "{said}");
    }
}

#[test]
fn a_mailbox_keeps_the_order_of_each_sender() {
    const VALUES: u64 = 1000;
    among(3, 1, async |cx: Context| {
        let key = cx.new_key();
        let send = async |cx: Context, key| {
            let mail = cx.mailbox::<(u32, u64)>(key);
            (0..VALUES).for_each(|n| mail.send(Pe::ROOT, (cx.pe().number(), n)).expect("it goes"));
        };
        let sent = [1, 2].map(|pe| cx.spawn_at(Pe::new(pe), send, key));
        let mail = cx.mailbox::<(u32, u64)>(key);
        for n in 0..VALUES / 2 {
            for pe in [1, 2] {
                assert_eq!(mail.receive(Pe::new(pe)).await, Ok((pe, n)));
            }
        }
        let mut next = [VALUES / 2; 2];
        for _ in 0..VALUES {
            let (from, (pe, n)) = mail.receive_any().await.expect("no PE dies");
            assert_eq!((from.number(), n), (pe, next[pe as usize - 1]));
            next[pe as usize - 1] += 1;
        }
        for sent in sent {
            sent.await.expect("it does not fail");
        }
        let none = mail.receive(Pe::new(3)).await;
        assert!(matches!(none, Err(TaskError::NoSuchPe { .. })), "{none:?}");
    });
}

#[test]
fn a_receiver_learns_that_its_mailbox_is_forgotten() {
    among(2, 2, async |cx: Context| {
        let key = cx.new_key();
        let wait = async |cx: Context, (key, is_named): (Key, bool)| {
            let mail = cx.mailbox::<u32>(key);
            mail.send(cx.pe(), 7)?;
            if is_named {
                assert_eq!(mail.receive(cx.pe()).await?, 7);
                mail.receive(Pe::new(0)).await
            } else {
                assert_eq!(mail.receive_any().await?, (cx.pe(), 7));
                mail.receive_any().await.map(|(_, value)| value)
            }
        };
        for is_named in [true, false] {
            let waiting = cx.spawn_at(Pe::new(1), wait, (key, is_named));
            cx.sleep(Duration::from_millis(20)).await;
            let forget = async |cx: Context, key| cx.forget(key);
            cx.spawn_at(Pe::new(1), forget, key).await.expect("it forgets");
            assert_eq!(waiting.await, Ok(Err(TaskError::Cancelled)));
        }
    });
}

#[test]
fn a_shared_value_is_made_once() {
    static MADE: AtomicU32 = AtomicU32::new(0);
    const A_WHILE: Duration = Duration::from_millis(20);
    async fn ask(cx: Context, (sync, later): (Key, Key)) -> (u32, u32) {
        let waiting = cx.sleep(A_WHILE);
        let make = || async {
            waiting.await;
            MADE.fetch_add(1, SeqCst)
        };
        let later = *cx.shared_async(later, make).await.expect("it is made");
        let sync = *cx.shared(sync, || {
            thread::sleep(A_WHILE);
            MADE.fetch_add(1, SeqCst)
        });
        (sync, later)
    }
    among(1, 8, async |cx: Context| {
        let keys = (cx.new_key(), cx.new_key());
        let asked: Vec<_> = (0..8).map(|_| cx.spawn(Distance::ZERO, ask, keys)).collect();
        for answer in asked {
            assert_eq!(answer.await, Ok((1, 0)));
        }
        assert_eq!(MADE.load(SeqCst), 2);
        let panics = cx.shared_async::<(), _>(cx.new_key(), async || panic!("no")).await;
        assert!(matches!(panics, Err(TaskError::Panicked { .. })), "{panics:?}");
    });
}
