//! Whether the launcher that has started this process is still there.
//!
//! A process whose parent ends is given another one. (A signal tells of that, too, but it also
//! comes when only the thread ends that started the process, as launchers have some.) Between the
//! launcher and this process may stand others, such as a shell that runs a script: they have the
//! variables that the launcher gives, and it has not. So these are watched as well, up to the
//! launcher. The launcher's own parent is not watched: a shell may end before the job does.

use std::os::unix::process::parent_id;

/// The most processes that are watched between this one and the launcher.
const DEPTH_MAX: usize = 16;

/// The processes above this one: its parent, the parent of that, and so on; last the launcher.
#[derive(Debug)]
pub(super) struct Lineage(Vec<u32>);

impl Lineage {
    /// That of this process. The launcher gives this variable.
    pub(super) fn own(variable: &str) -> Self {
        let mut above = vec![parent_id()];
        while let &[.., last] = &above[..]
            && above.len() < DEPTH_MAX
            && has_variable(last, variable)
            && let Some(parent) = parent_of(last)
        {
            above.push(parent);
        }
        Lineage(above)
    }

    /// The launcher's process.
    pub(super) fn launcher(&self) -> u32 {
        // There is a parent at least.
        self.0.last().copied().unwrap_or_default()
    }

    /// Whether the launcher has started this process itself.
    pub(super) fn is_direct(&self) -> bool {
        self.0.len() == 1
    }

    /// Whether all of them are still there.
    pub(super) fn is_whole(&self) -> bool {
        self.0[0] == parent_id()
            && self.0.windows(2).all(|pair| parent_of(pair[0]).is_none_or(|now| now == pair[1]))
            && self.0.windows(2).all(|pair| is_there(pair[0]))
    }
}

/// Whether a process was started with such a variable. One that cannot be looked into was not.
fn has_variable(process: u32, name: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let is_it = |text: &[u8]| {
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
    };
    environment.split(|byte| *byte == 0).any(is_it)
}

/// Whether there is such a process. One that cannot be looked at for another reason is there.
fn is_there(process: u32) -> bool {
    let looked = std::fs::metadata(format!("/proc/{process}"));
    looked.map_or_else(|error| error.kind() != std::io::ErrorKind::NotFound, |_| true)
}

fn parent_of(process: u32) -> Option<u32> {
    // As in `7 (a name) S 3 …`, and the name may have anything in it.
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_below_its_parent() {
        assert_eq!(parent_of(std::process::id()), Some(parent_id()));
        assert_eq!(parent_of(u32::MAX), None);
        let own = Lineage::own("NO_LAUNCHER_GIVES_THIS");
        assert!(own.is_direct() && own.is_whole(), "{own:?}");
    }

    #[test]
    fn a_process_with_the_variable_is_no_launcher() {
        // Everything that the test runner starts has it.
        let variable = "PATH";
        assert!(has_variable(std::process::id(), variable));
        assert!(!has_variable(std::process::id(), "PAT"));
        let own = Lineage::own(variable);
        assert!(!own.is_direct() && own.is_whole(), "{own:?}");
    }

    #[test]
    fn a_lineage_that_has_lost_one_is_not_whole() {
        assert!(!Lineage(vec![u32::MAX]).is_whole());
        assert!(!Lineage(vec![parent_id(), u32::MAX]).is_whole());
    }
}
