//! Other processes of this machine.

use rustix::process::{Pid, Signal, kill_process};

/// The processes whose environment has this variable with this value. A test that marks what it
/// starts finds all of that again, and of nothing else.
pub fn marked(variable: &str, value: &str) -> Vec<i32> {
    let mark = format!("{variable}={value}");
    let is_ours = |process: &i32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("on Linux");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(is_ours).collect()
}

/// Kills a process by its number; it may have ended by itself.
pub fn kill(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    #[test]
    fn a_marked_process_is_found_and_killed() {
        let value = std::process::id().to_string();
        assert!(marked("TESTKIT_MARK", &value).is_empty());
        let mut child =
            Command::new("sleep").arg("60").env("TESTKIT_MARK", &value).spawn().unwrap();
        let number = child.id() as i32;
        crate::eventually("it is there", || marked("TESTKIT_MARK", &value) == [number]);
        kill(number);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
