//! Detectors in separate processes, which the tests kill and stop.
//!
//! Each test starts itself as a program, once for each PE. A PE prints its address, reads the
//! addresses of the others, and then prints its events, each after the time.

use super::PATIENCE;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};
use ultramarine_runtime::detector::{Detector, DetectorEndpoint, DetectorSettings, FailureEvent};
use ultramarine_runtime::handshake::JobKey;
use ultramarine_runtime::wire;
use ultramarine_testkit::itself;
use ultramarine_topology::{LevelKind, Pe, Place, Topology};

/// Its value is the number of the PE that this process is.
const VARIABLE: &str = "ULTRAMARINE_TEST_DETECTOR_PE";

/// A PE's lines begin with this. Other lines on its standard output are the test harness's.
const MARK: &str = "detector: ";

const SETTINGS: DetectorSettings = DetectorSettings {
    heartbeat: Duration::from_millis(100),
    dead_after: Duration::from_secs(2),
    stalled_after: Duration::from_secs(5),
    root_after: Duration::from_secs(5),
    succession: false,
};

/// The input of a PE: the hosts, the addresses and the key.
type Bootstrap = (Vec<u32>, Vec<SocketAddr>, JobKey);

/// One PE of the jobs below.
fn pe_process() {
    let me = Pe::new(std::env::var(VARIABLE).unwrap().parse().unwrap());
    let endpoint = DetectorEndpoint::bind("127.0.0.1".parse().unwrap(), None).unwrap();
    println!("{MARK}{}", endpoint.address());
    let mut lines = std::io::stdin().lines().map(Result::unwrap);
    let (hosts, addresses, key): Bootstrap = wire::decode(&unhex(&lines.next().unwrap())).unwrap();
    let place = |host: &u32| Place::from_pairs([(LevelKind::Host, &*host.to_string())]);
    let places: Vec<_> = hosts.iter().map(place).collect();
    let topology = Arc::new(Topology::new(&places, &vec![1; places.len()]).unwrap());
    let report = |event: FailureEvent| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{MARK}{now} {}", say(&event)).unwrap();
        out.flush().unwrap();
        if matches!(
            event,
            FailureEvent::Expelled | FailureEvent::Broken { .. } | FailureEvent::RootLost { .. }
        ) {
            // It leaves soon, as a real one does.
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                std::process::exit(0);
            });
        }
    };
    let detector =
        Detector::start(me, topology, endpoint, addresses, key, SETTINGS, Box::new(report))
            .unwrap();
    // Until the test sends the word to say goodbye, or ends.
    if lines.next().is_some() {
        println!("{MARK}0 {:?}", detector.goodbye());
    }
}

fn say(event: &FailureEvent) -> String {
    match event {
        FailureEvent::Dead(pes) => {
            let numbers: Vec<_> = pes.iter().map(|pe| pe.number().to_string()).collect();
            format!("dead {}", numbers.join(" "))
        }
        FailureEvent::Expelled => "expelled".to_owned(),
        FailureEvent::Broken { reason } => format!("broken {reason}"),
        FailureEvent::RootLost { reason } => format!("root lost {reason}"),
        FailureEvent::Succession { judge } => format!("succession {}", judge.number()),
        FailureEvent::EndAgreed => "end agreed".to_owned(),
        FailureEvent::JobOver { .. } => "over".to_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// One process, and its lines that the test has not read yet.
struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

struct Job {
    processes: Vec<Process>,
}

impl Job {
    /// One PE for each of the hosts that are listed; equal numbers are the same host.
    fn start(hosts: &[u32]) -> Job {
        let program = itself(pe_process);
        let processes: Vec<_> = (0..hosts.len()).map(|pe| Process::start(&program, pe)).collect();
        let job = Job { processes };
        let address = |process: &Process| process.line().parse::<SocketAddr>().unwrap();
        let addresses: Vec<_> = job.processes.iter().map(address).collect();
        let bootstrap: Bootstrap = (hosts.to_vec(), addresses, JobKey::random().unwrap());
        let bytes = wire::encode(&bootstrap).unwrap();
        let text = hex(&bytes);
        let mut job = job;
        for process in &mut job.processes {
            process.tell(&text);
        }
        // All have met; nothing is measured while they start.
        std::thread::sleep(Duration::from_millis(500));
        job
    }

    /// Sends a signal, and returns when that was begun.
    fn signal(&self, pe: usize, signal: Signal) -> Duration {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let pid = Pid::from_child(&self.processes[pe].child);
        kill_process(pid, signal).unwrap();
        now
    }

    /// The time from `killed` until each of these PEs reported that these are dead.
    fn expect_dead(
        &self,
        killed: Duration,
        by: impl IntoIterator<Item = usize>,
        expected: &[usize],
    ) -> Vec<Duration> {
        let mut latencies = Vec::new();
        let mut orders = Vec::new();
        for pe in by {
            let mut dead = Vec::new();
            while dead.len() < expected.len() {
                let (at, event) = self.processes[pe].event();
                let numbers = event.strip_prefix("dead ").unwrap_or_else(|| {
                    panic!("PE {pe} says {event}, when {expected:?} are to be dead")
                });
                dead.extend(numbers.split(' ').map(|n| n.parse::<usize>().unwrap()));
                latencies.push(at.saturating_sub(killed));
            }
            orders.push(dead);
        }
        assert!(orders.iter().all(|order| *order == orders[0]), "in one order: {orders:?}");
        let mut sorted = orders[0].clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        latencies.sort();
        latencies
    }

    /// No PE has reported anything.
    #[track_caller]
    fn is_quiet(&self) {
        let said: Vec<_> = self.processes.iter().map(|process| process.lines.try_recv()).collect();
        assert!(said.iter().all(Result::is_err), "{said:?}");
    }

    fn goodbye(mut self) {
        for process in &mut self.processes {
            process.tell("goodbye");
        }
        for process in &mut self.processes {
            assert!(process.wait());
        }
        for process in &mut self.processes {
            let said: Vec<_> = process.lines.iter().collect();
            assert!(said.iter().all(|line| !line.contains("dead ")), "{said:?}");
            assert!(said.iter().all(|line| !line.contains("lost")), "{said:?}");
        }
    }
}

impl Process {
    fn start(program: &[OsString], number: usize) -> Process {
        let mut child = Command::new(&program[0])
            .args(&program[1..])
            .env(VARIABLE, number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test harness does not end its own line first.
                if let Some((_, said)) = line.split_once(MARK) {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Process { child, lines }
    }

    fn tell(&mut self, text: &str) {
        // A dead PE reads nothing.
        let _ = writeln!(self.child.stdin.as_mut().unwrap(), "{text}");
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the PE says something")
    }

    /// The next event, and its time.
    fn event(&self) -> (Duration, String) {
        let line = self.line();
        let (time, event) = line.split_once(' ').unwrap();
        (Duration::from_nanos(time.parse().unwrap()), event.to_owned())
    }

    /// Waits for the end of the process. Returns whether it succeeded.
    fn wait(&mut self) -> bool {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each of these processes loses its root and ends; the time from `killed` until it says so.
fn lose_their_root(processes: &mut [Process], killed: Duration) -> Vec<Duration> {
    let lose = |process: &mut Process| {
        let (at, event) = process.event();
        assert!(event.starts_with("root lost"), "{event}");
        assert!(process.wait());
        at.saturating_sub(killed)
    };
    let mut latencies: Vec<_> = processes.iter_mut().map(lose).collect();
    latencies.sort();
    latencies
}

fn show(what: &str, latencies: &[Duration]) {
    let (first, last) = (latencies[0], latencies[latencies.len() - 1]);
    println!("{what}: noticed after {first:?} (first) to {last:?} (last) by {}", latencies.len());
}

#[test]
fn all_notice_that_one_is_killed() {
    let mut job = Job::start(&[0, 0, 0, 1, 1, 1, 2, 2]);
    let mut living: Vec<_> = (0..8).collect();
    for victim in [5, 1, 7] {
        let killed = job.signal(victim, Signal::KILL);
        living.retain(|pe| *pe != victim);
        show("one of eight killed", &job.expect_dead(killed, living.iter().copied(), &[victim]));
    }
    // In falling order, so that those to be removed stay where they are.
    for victim in [7, 5, 1] {
        drop(job.processes.remove(victim));
    }
    job.goodbye();
}

#[test]
fn all_notice_that_several_are_killed_at_once() {
    let hosts: Vec<u32> = (0..20).map(|pe| pe / 5).collect();
    let mut job = Job::start(&hosts);
    // Neighbours, a whole host but one, and others.
    let victims = [6, 7, 8, 9, 13];
    let killed: Vec<_> = victims.iter().map(|victim| job.signal(*victim, Signal::KILL)).collect();
    let living = (0..20).filter(|pe| !victims.contains(pe));
    show("five of twenty killed", &job.expect_dead(killed[0], living, &victims));
    for victim in victims.iter().rev() {
        drop(job.processes.remove(*victim));
    }
    job.goodbye();
}

#[test]
fn all_leave_when_the_root_is_killed() {
    let mut job = Job::start(&[0, 0, 0, 1, 1, 1, 2, 2]);
    let killed = job.signal(0, Signal::KILL);
    show("root of eight killed", &lose_their_root(&mut job.processes[1..], killed));
}

#[test]
fn one_that_is_stopped_for_a_while_is_not_dead() {
    let job = Job::start(&[0, 0, 1, 1]);
    for stopped in [2, 0] {
        job.signal(stopped, Signal::STOP);
        // Its host answers, so it may be silent for longer than a host may.
        std::thread::sleep(SETTINGS.dead_after * 2);
        job.signal(stopped, Signal::CONT);
        std::thread::sleep(SETTINGS.dead_after);
        job.is_quiet();
    }
    job.goodbye();
}

#[test]
fn one_that_is_stopped_for_too_long_is_dead_and_learns_it() {
    let mut job = Job::start(&[0, 0, 1, 1]);
    let stopped = job.signal(2, Signal::STOP);
    show("one of four stopped", &job.expect_dead(stopped, [0, 1, 3], &[2]));
    job.signal(2, Signal::CONT);
    assert_eq!(job.processes[2].event().1, "expelled");
    assert!(job.processes.remove(2).wait());
    job.goodbye();
}

#[test]
fn stopped_together_they_do_not_blame_each_other() {
    let job = Job::start(&[0, 0, 1, 1]);
    // As when a whole machine sleeps: longer than the patience of any PE, but all at the same time.
    for pe in 0..4 {
        job.signal(pe, Signal::STOP);
    }
    std::thread::sleep(SETTINGS.dead_after * 2);
    for pe in 0..4 {
        job.signal(pe, Signal::CONT);
    }
    std::thread::sleep(SETTINGS.dead_after * 2);
    job.is_quiet();
    job.goodbye();
}

#[test]
fn a_stopped_root_is_lost() {
    let mut job = Job::start(&[0, 0, 1, 1]);
    let stopped = job.signal(0, Signal::STOP);
    lose_their_root(&mut job.processes[1..], stopped);
    // It is alone when it comes back.
    let continued = job.signal(0, Signal::CONT);
    job.expect_dead(continued, [0], &[1, 2, 3]);
}
