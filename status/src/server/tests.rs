use super::*;
use crate::client::{self, AskError};
use crate::{PeStatus, Stolen};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

const WITHIN: Duration = Duration::from_secs(20);

fn job() -> JobStatus {
    let stolen = vec![Stolen { distance: "1/2".to_owned(), tasks: 13, bytes: 14 }];
    let pe = PeStatus {
        pe: 3,
        host: "a \"host\"\\\n\u{85}".to_owned(),
        workers: 1,
        idle: 2,
        waiting: 3,
        away: 4,
        memory: 5,
        started: 6,
        ended: 7,
        again: 8,
        lost: 9,
        orphans: 10,
        messages: 11,
        moved_bytes: u64::MAX,
        stolen,
    };
    JobStatus {
        version: "0.1".to_owned(),
        program: "prover".to_owned(),
        process: 7,
        seconds: 1.25,
        is_running: true,
        dead: vec![1, 2],
        silent: vec![0],
        pes: vec![pe.clone(), pe],
    }
}

fn ask(contact: &Contact) -> Result<JobStatus, AskError> {
    client::ask(contact, |body| Ok(serde_json::from_slice(body)?))
}

fn start(ways: &Ways) -> Server {
    Server::start(ways, Box::new(|| Ok(job()))).expect("there is a way")
}

/// What comes after these bytes.
fn answer_to(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(WITHIN)).expect("a time");
    stream.write_all(request).expect("it reads");
    let mut answer = String::new();
    // It closes the connection with what it has not read: that is an error here.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn who_has_the_token_is_answered_until_the_end() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    fs::write(&file, "of an earlier job").expect("there is room");
    let server = start(&Ways { contact: Some(file.clone()), ..Ways::default() });
    let contact = Contact::read(&file).expect("it was written");
    let mode = fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for _ in 0..3 {
        assert_eq!(ask(&contact).expect("it answers"), job());
    }
    let other = Contact { token: "0".repeat(32), ..contact.clone() };
    assert!(matches!(ask(&other), Err(AskError::Stranger { .. })));
    let address = contact.addresses[0];
    for (request, code) in [
        ("GET /job HTTP/1.1\r\n\r\n", "401"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "401"),
        ("POST /job HTTP/1.1\r\n\r\n", "400"),
        ("hello\r\n\r\n", "400"),
    ] {
        let answer = answer_to(address, request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{request:?}: {answer}");
    }
    // One that says nothing, and one that says too much, keep others waiting for a while only.
    let silent = TcpStream::connect(address).expect("it listens");
    assert_eq!(answer_to(address, "x".repeat(100_000).as_bytes()), "");
    assert_eq!(ask(&contact).expect("it answers"), job());
    let silent_at_the_end = TcpStream::connect(address).expect("it listens");
    drop(server);
    assert!(!file.exists());
    drop((silent, silent_at_the_end));
    assert!(matches!(ask(&contact), Err(AskError::Gone { .. })));
}

#[test]
fn a_job_that_does_not_know_says_so_and_another_ones_file_stays() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let ways = Ways { contact: Some(file.clone()), ..Ways::default() };
    let server = Server::start(&ways, Box::new(|| Err("too busy".to_owned()))).expect("a way");
    let own = Contact::read(&file).expect("it was written");
    let error = ask(&own).expect_err("it does not know");
    assert_eq!(error.to_string(), "the job does not know now: too busy");
    let other = Contact { token: "another".to_owned(), ..own };
    other.write(&file).expect("there is room");
    drop(server);
    assert_eq!(Contact::read(&file).expect("it is another's"), other);
}

#[test]
fn metrics_are_in_a_file_also_at_the_end_and_at_a_port() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("job.prom");
    let ways = Ways { metrics: Some(Metrics::File(file.clone())), ..Ways::default() };
    drop(start(&ways));
    let text = fs::read_to_string(&file).expect("it was written");
    assert!(text.contains("\nultramarine_job_running 0\n"), "{text}");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");

    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let address = port.expect("there is one");
    let ways = Ways { metrics: Some(Metrics::Port(address.port())), ..Ways::default() };
    let server = start(&ways);
    let answer = answer_to(address, b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.contains("\nultramarine_job_running 1\n"), "{answer}");
    assert!(answer_to(address, b"GET /job HTTP/1.1\r\n\r\n").contains(" 401 "));
    assert!(Server::start(&ways, Box::new(|| Ok(job()))).is_none(), "it is in use");
    drop(server);
}

#[test]
fn metrics_that_are_not_known_are_not_written_before_the_end() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("job.prom");
    let ways = Ways { metrics: Some(Metrics::File(file.clone())), ..Ways::default() };
    let (asked, asks) = mpsc::channel();
    let look = move || {
        let _ = asked.send(());
        Err("too busy".to_owned())
    };
    let server = Server::start(&ways, Box::new(look)).expect("there is a way");
    asks.recv_timeout(WITHIN).expect("it looks");
    assert!(!file.exists());
    drop(server);
    let text = fs::read_to_string(&file).expect("it was written");
    assert!(text.contains("\nultramarine_job_running 0\n"), "{text}");
}

#[test]
fn what_cannot_be_written_is_left_out() {
    let folder = tempfile::tempdir().expect("there is room");
    for nowhere in [PathBuf::from("/nonexistent/status"), folder.path().to_owned()] {
        let ways = Ways { contact: Some(nowhere), ..Ways::default() };
        assert!(Server::start(&ways, Box::new(|| Ok(job()))).is_none());
    }
    assert_eq!("9100".parse(), Ok(Metrics::Port(9100)));
    assert_eq!("./9100".parse(), Ok(Metrics::File("./9100".into())));
    for wrong in ["0", "65536", "99999999999"] {
        wrong.parse::<Metrics>().expect_err(wrong);
    }
}
