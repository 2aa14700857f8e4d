//! The link of a GAP in front, with this test as its job: it can stop within a reply.

use crate::harness::Stage;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use ultramarine_testkit::{PATIENCE, eventually};

/// A GAP with the package, and this side of its pipes.
struct Front {
    gap: Child,
    replies: File,
    /// The numbers of the requests that have come.
    requests: Receiver<u64>,
    stage: Stage,
}

impl Front {
    fn start(test: &str) -> Self {
        let stage = Stage::new(test);
        // Open for both, so that no side waits for the other.
        let pipe = |name| {
            let path = stage.bin().join(name);
            mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("the folder is our own");
            File::options().read(true).write(true).open(path).expect("it was made")
        };
        let (replies, asked) = (pipe("replies"), pipe("requests"));
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gap/pkg/ultramarine/lib");
        let files = ["values.g", "worker.g", "link.g", "functions.g", "coordinate.g"];
        let mut gap = Command::new("gap");
        gap.args(["-q", "-A"]).args(files.map(|file| library.join(file)));
        gap.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let gap = gap.spawn().expect("GAP is installed");
        let (come, requests) = channel();
        std::thread::spawn(move || {
            let mut asked = BufReader::new(asked);
            let mut header = String::new();
            while asked.read_line(&mut header).is_ok() {
                let numbers: Vec<u64> =
                    header.split_whitespace().map(|n| n.parse().expect("a number")).collect();
                asked.read_exact(&mut vec![0; (numbers[1] + numbers[2]) as usize]).expect("parts");
                header.clear();
                let _ = come.send(numbers[0]);
            }
        });
        let mut front = Front { gap, replies, requests, stage };
        let folder = front.stage.bin();
        front.types(&format!("UltramarineConnect(\"{}\");\n", folder.display()));
        front.asks(1);
        front.replies(&reply(1, ""));
        front
    }

    fn types(&mut self, text: &str) {
        let input = self.gap.stdin.as_mut().expect("it is piped");
        input.write_all(text.as_bytes()).expect("GAP reads");
    }

    /// Waits for the request with this number.
    #[track_caller]
    fn asks(&self, number: u64) {
        assert_eq!(self.requests.recv_timeout(PATIENCE), Ok(number), "GAP hangs");
    }

    fn replies(&mut self, bytes: &str) {
        self.replies.write_all(bytes.as_bytes()).expect("it is open");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.gap), signal).expect("it runs");
    }

    /// Interrupts it, as more of a reply comes.
    fn is_interrupted_amid(&mut self, more: &str) {
        let left = || ioctl_fionread(&self.replies).expect("it is a pipe");
        eventually("GAP has read all so far", || left() == 0);
        self.signal(Signal::STOP);
        self.signal(Signal::INT);
        self.replies(more);
        self.signal(Signal::CONT);
        self.types("quit;\n");
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.gap.kill();
        let _ = self.gap.wait();
    }
}

/// The frame of a reply with a string.
fn reply(number: u64, text: &str) -> String {
    let tokens = format!("\"1 [1 \"{}", text.len());
    format!("{number} {} {}\n{tokens}+{text}", tokens.len(), 1 + text.len())
}

#[test]
fn what_has_come_of_a_reply_at_an_interrupt_is_not_lost() {
    let mut front = Front::start("gap-link");
    front.types("ParMap(x -> x, [1]);\n");
    front.asks(2);
    // More than GAP reads at once.
    let long = reply(2, &"long".repeat(10_000));
    let (first, rest) = long.split_at(30_000);
    front.replies(first);
    let (more, last) = rest.split_at(rest.len() - 1);
    front.is_interrupted_amid(more);
    front.asks(3);
    front.replies(last);
    front.replies(&reply(3, ""));

    // The header, too. What follows comes at once.
    front.types("ParMap(x -> x, [1]);\n");
    front.asks(4);
    front.is_interrupted_amid("4 ");
    front.asks(5);
    front.replies(&(reply(4, "old")[2..].to_owned() + &reply(5, "")));

    front.types("Print(ParMap(x -> x, [1]), \"\\n\"); QUIT;\n");
    front.asks(6);
    front.replies(&reply(6, "new"));
    let mut printed = String::new();
    let output = front.gap.stdout.as_mut().expect("it is piped");
    output.read_to_string(&mut printed).expect("it is text");
    assert!(printed.ends_with("new\n"), "{printed}");
}
