//! The ports of a job, as its processes see them.

use std::collections::BTreeMap;

/// The variable that says from which to which port a job may listen.
pub(crate) const PORTS: &str = "ULTRAMARINE_PORTS";

/// Ports for a job, as [`PORTS`] wants them: others than those that the system gives to a program
/// that asks for any (from 32768), as MPI does, and mostly others than those of the tests beside
/// this one.
pub(crate) fn some() -> String {
    let first = 10_000 + std::process::id() % 360 * 61;
    format!("{first}-{}", first + 60)
}

/// The ports of the job that this process listens on, by the numbers of the sockets: of one that is
/// open twice the first. (A socket may be listed twice, if others come and go meanwhile.)
pub(crate) fn own() -> BTreeMap<i32, u16> {
    let range = std::env::var(PORTS).expect("the test says which");
    let (first, last) = range.split_once('-').expect("two");
    let range = first.parse::<u16>().expect("a port")..=last.parse().expect("a port");
    let files = std::fs::read_dir("/proc/self/fd").expect("on Linux").filter_map(|file| {
        let file = file.ok()?;
        let number = file.file_name().to_str()?.parse().ok()?;
        Some((std::fs::read_link(file.path()).ok()?.to_string_lossy().into_owned(), number))
    });
    let mut files: Vec<(String, i32)> = files.collect();
    files.sort_unstable_by_key(|(_, number)| std::cmp::Reverse(*number));
    let files: BTreeMap<String, i32> = files.into_iter().collect();
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("on Linux");
    let port = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // Number, own address, the other's, state (10: it listens), six more, the file.
        let number = *files.get(&format!("socket:[{}]", fields.get(9)?))?;
        let port = u16::from_str_radix(fields[1].rsplit(':').next()?, 16).ok()?;
        (fields[3] == "0A" && range.contains(&port)).then_some((number, port))
    };
    sockets.lines().filter_map(port).collect()
}
