//! A PE receives malformed messages. The test plays their sender: a port without a PE.

use crate::job;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Job, JobError, Leave, Parting, lead, serve};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Message, Outcome, Parcel, TaskId, Version};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::{Port, PortSettings, memory};
use ultramarine_runtime::wire;
use ultramarine_testkit::PATIENCE;
use ultramarine_topology::{Distance, Pe};

const ONE: Pe = Pe::new(1);

/// A PE that the test plays.
struct Played {
    port: Port,
    to: Pe,
    start: Instant,
}

impl Played {
    fn say(&mut self, message: &Message) {
        self.say_raw(&wire::encode(message).expect("a message can be encoded"));
    }

    fn say_raw(&mut self, bytes: &[u8]) {
        self.port.send(self.to, bytes, None).expect("the port takes it");
        self.port.flush(self.start.elapsed()).expect("the lane is open");
    }

    /// Receives messages until `wanted` returns something.
    fn hear<T>(&mut self, mut wanted: impl FnMut(Message) -> Option<T>) -> T {
        let mut found = None;
        while found.is_none() {
            assert!(self.start.elapsed() < PATIENCE, "waited in vain");
            let now = self.start.elapsed();
            let mut deliver = |_, mut packet: &[u8], _| {
                while !packet.is_empty() {
                    let message = wire::decode_first(&mut packet);
                    let message = message.expect("what a PE says can be read");
                    found = found.take().or_else(|| wanted(message));
                }
            };
            self.port.poll(now, &mut deliver).expect("the lane is open");
            std::thread::sleep(Duration::from_micros(100));
        }
        found.expect("the loop has ended")
    }

    /// Takes leave, as a PE with nothing more to send.
    fn leave(mut self) {
        self.hear(|message| (message == Message::Shutdown).then_some(()));
        self.say(&Message::Farewell);
        self.hear(|message| (message == Message::Release).then_some(()));
        self.fall_silent();
    }

    /// Polls until all messages from here are acknowledged.
    fn fall_silent(&mut self) {
        while !self.port.is_idle() {
            assert!(self.start.elapsed() < PATIENCE, "waited in vain");
            self.port.poll(self.start.elapsed(), &mut |_, _, _| {}).expect("the lane is open");
        }
    }

    /// The outcome of a task placed there with this body.
    fn outcome_of(&mut self, body: Vec<u8>) -> Outcome {
        let task = TaskId { home: ONE, future: 77 };
        self.say(&Message::Place(Parcel {
            task,
            radius: Distance::ONE,
            supervised: false,
            version: Version::default(),
            body: Bytes::from(body),
        }));
        self.hear(|message| match message {
            Message::Result { future: 77, outcome } => Some(outcome),
            _ => None,
        })
    }
}

/// The two PEs of a job: a real one, and one that the test plays.
fn pair(real: Pe) -> (Job, Played) {
    let settings = Settings { shutdown_grace: Duration::from_secs(10), ..Settings::for_threads(1) };
    let mut lanes: Vec<_> = memory::network(2).into_iter().map(Some).collect();
    let mut lane = |pe: Pe| lanes[pe.index()].take().expect("once");
    let other = if real == Pe::ROOT { ONE } else { Pe::ROOT };
    let port = Port::new(other, 2, Box::new(lane(other)), PortSettings::default());
    let job = job(real, 2, lane(real), settings, None);
    (job, Played { port, to: real, start: Instant::now() })
}

/// Runs this in a new thread. The returned function waits for its end.
fn ending<T: Send + 'static>(
    run: impl FnOnce() -> (T, Parting) + Send + 'static,
) -> impl FnOnce() -> (T, Leave) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let (result, parting) = run();
        drop(done.send((result, parting.leave)));
    });
    move || is_done.recv_timeout(PATIENCE).expect("it panicked above, or hangs")
}

type Ended = (Result<(), JobError>, Leave);

/// A root whose main task sleeps until the job ends by other means.
fn sleeping_root(job: Job) -> impl FnOnce() -> Ended {
    ending(|| lead(job, async |cx: Context| cx.sleep(PATIENCE * 2).await))
}

/// A root whose main task ends when the played PE has answered a task placed there.
fn asking_root(job: Job) -> impl FnOnce() -> (Result<Result<u64, TaskError>, JobError>, Leave) {
    ending(|| lead(job, async |cx: Context| cx.spawn_at(ONE, async |_, n: u64| n, 5).await))
}

/// The future and the body of the task that the root placed.
fn placed(played: &mut Played) -> (u64, Vec<u8>) {
    played.hear(|message| match message {
        Message::Place(parcel) => Some((parcel.task.future, parcel.body.few.to_vec())),
        _ => None,
    })
}

#[test]
fn code_that_the_program_does_not_have_is_refused() {
    let (job, mut played) = pair(Pe::ROOT);
    let ended = asking_root(job);
    let (future, right) = placed(&mut played);
    // Too short, beyond the end, misaligned, not a task, of another type; and then at random.
    let mut wrong = vec![Vec::new(), vec![1; 15], vec![0xff; 16], vec![0; 16]];
    for byte in 0..16 {
        for bit in 0..8 {
            let mut body = right.clone();
            body[byte] ^= 1 << bit;
            wrong.push(body);
        }
    }
    for body in wrong {
        let outcome = played.outcome_of(body.clone());
        let Err(TaskError::UnknownCode { pe: Pe::ROOT, reason }) = outcome else {
            panic!("{body:?} gave {outcome:?}");
        };
        assert!(reason.starts_with("its code"), "{reason}");
    }
    // The right code still runs.
    assert_eq!(played.outcome_of(right), Ok(Bytes::from(vec![5])));
    played.say(&Message::Result { future, outcome: Ok(Bytes::from(vec![6])) });
    played.leave();
    let (result, leave) = ended();
    assert_eq!((result.expect("the job is well"), leave), (Ok(6), Leave::Orderly));
}

#[test]
fn an_argument_that_does_not_decode_is_refused() {
    let (job, mut played) = pair(Pe::ROOT);
    let ended = asking_root(job);
    let (future, body) = placed(&mut played);
    let code = &body[..16];
    for argument in [&[][..], &[253, 1][..], &[5, 5][..]] {
        let outcome = played.outcome_of([code, argument].concat());
        let Err(TaskError::Codec { what, .. }) = &outcome else { panic!("{outcome:?}") };
        assert!(what.starts_with("argument of the task `"), "{what}");
        assert!(what.contains("`, of type `"), "{what}");
    }
    played.say(&Message::Result { future, outcome: Ok(Bytes::from(vec![1])) });
    played.leave();
    assert!(matches!(ended(), (Ok(Ok(1)), Leave::Orderly)));
}

#[test]
fn a_result_that_does_not_decode_ends_its_future_with_an_error() {
    let (job, mut played) = pair(Pe::ROOT);
    let ended = asking_root(job);
    let (future, _) = placed(&mut played);
    // A result for a future that does not exist is dropped.
    played.say(&Message::Result { future: future + 5, outcome: Ok(Bytes::from(vec![3])) });
    played.say(&Message::Result { future, outcome: Ok(Bytes::from(vec![1, 2, 3])) });
    // A second one comes too late.
    played.say(&Message::Result { future, outcome: Ok(Bytes::from(vec![9])) });
    played.leave();
    let (result, leave) = ended();
    let error = result.expect("the job is well").expect_err("there is no such number");
    let TaskError::Codec { what, .. } = &error else { panic!("{error}") };
    assert!(what.starts_with("result of the task `"), "{what}");
    assert!(error.to_string().contains("`skip_serializing_if`"), "{error}");
    assert_eq!(leave, Leave::Orderly);
}

#[test]
fn a_message_that_cannot_be_read_ends_the_job() {
    let fish = wire::encode(&Message::NoWork { serial: 3 }).expect("it can");
    let left_over = [&fish[..], &[0]].concat();
    for bytes in [vec![200; 40], vec![], vec![0], left_over] {
        let (job, mut played) = pair(Pe::ROOT);
        let ended = sleeping_root(job);
        played.say_raw(&bytes);
        played.leave();
        let (result, leave) = ended();
        let error = result.expect_err("it makes no sense");
        assert!(matches!(error, JobError::Message { me: Pe::ROOT, from: ONE, .. }), "{error}");
        assert!(error.to_string().contains("PE 0 got a message from PE 1"), "{error}");
        assert_eq!(leave, Leave::Orderly);
    }
}

#[test]
fn a_pe_that_cannot_read_a_message_tells_the_root() {
    let (job, mut played) = pair(ONE);
    let ended = ending(|| serve(job));
    played.say_raw(&[200; 40]);
    let reason = played.hear(|message| match message {
        Message::Failed { reason } => Some(reason),
        _ => None,
    });
    assert!(reason.contains("PE 1 got a message from PE 0 that it cannot read"), "{reason}");
    played.say(&Message::Shutdown);
    played.hear(|message| (message == Message::Farewell).then_some(()));
    played.say(&Message::Release);
    played.fall_silent();
    let (result, leave) = ended();
    assert!(matches!(result, Err(JobError::Message { me: ONE, .. })));
    assert_eq!(leave, Leave::Orderly);
}

#[test]
fn a_failure_elsewhere_ends_the_job_with_its_reason() {
    let (job, mut played) = pair(Pe::ROOT);
    let ended = sleeping_root(job);
    played.say(&Message::Failed { reason: "the disk is full".to_owned() });
    played.leave();
    let (result, leave) = ended();
    let text = result.expect_err("it failed").to_string();
    assert_eq!(text, "the job was ended because of PE 1: the disk is full");
    assert_eq!(leave, Leave::Orderly);
}

/// No PE is released before all have taken leave. A PE that never does is waited for until
/// `shutdown_grace` is over.
#[test]
fn a_pe_that_never_takes_leave_is_not_waited_for_for_ever() {
    let (mut job, _played) = pair(Pe::ROOT);
    job.settings.shutdown_grace = Duration::from_millis(50);
    let ended = ending(|| lead(job, async |_: Context| 7));
    let (result, leave) = ended();
    assert_eq!((result.expect("main has ended"), leave), (7, Leave::Hasty));
}

#[test]
fn a_message_over_the_limit_ends_the_job() {
    let (mut job, mut played) = pair(Pe::ROOT);
    job.settings.port.message_bytes_max = 10_000;
    // The stream is closed, so that no leave-taking can be heard.
    job.settings.shutdown_grace = Duration::from_millis(50);
    let ended = sleeping_root(job);
    played.say(&Message::NoWork { serial: 1 });
    played.say_raw(&vec![0; 20_000]);
    let (result, leave) = ended();
    let error = result.expect_err("too long");
    assert_eq!(leave, Leave::Hasty);
    assert!(matches!(error, JobError::Link { me: Pe::ROOT, .. }), "{error}");
    assert!(error.to_string().contains("over the limit of 10000 bytes"), "{error}");
}
