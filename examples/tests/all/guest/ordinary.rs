//! Users are not root.

use super::LIOUVILLE;
use super::job::Job;
use crate::common::launcher;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use ultramarine_testkit::{behind, eventually};

/// A user who owns nothing.
const NOBODY: &str = "65534";

#[test]
fn an_ordinary_user_loses_processes_and_gets_the_result() {
    let Some(launched) = launcher() else { return };
    if Path::new("/proc/self").metadata().expect("on Linux").uid() != 0 {
        println!("skipped: all tests are run by an ordinary user here");
        return;
    }
    let home = Home::make();
    let program = home.0.join("liouville");
    std::fs::copy(LIOUVILLE, &program).expect("there is room");

    let user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let mut command = behind(user, &launched);
    command.args(["-n", "4"]).arg(&program);
    command.args("--upto 100000000 --tasks 200 --json --supervised --kill-at 0.05,0.1".split(' '));
    command.env("HOME", &home.0).env("TMPDIR", &home.0).current_dir(&home.0);
    let mut job = Job::start(&mut command);
    for process in job.begun(4).into_values() {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        // One that is killed by now has none.
        assert!(status.is_empty() || status.contains(&format!("\nUid:\t{NOBODY}\t")), "{status}");
    }
    let ended = job.end();
    let report = ended.report();
    assert_eq!((&report["result"], &report["dead"]), (&(-3884).into(), &2.into()), "{}", ended.err);
    std::fs::remove_file(&program).expect("it is ours");
    eventually("the launcher has tidied up", || home.files().is_empty());
}

/// A folder that everybody may use.
struct Home(PathBuf);

impl Home {
    fn make() -> Self {
        // Where ordinary users can get at it; the folder that cargo gives to tests may be root's
        // alone.
        let path = std::env::temp_dir().join(format!("guest-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("there is room");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))
            .expect("it is ours");
        Home(path)
    }

    /// All that is in it but folders.
    fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut folders) = (Vec::new(), vec![self.0.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder { folders.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
