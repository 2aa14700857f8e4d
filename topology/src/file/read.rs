//! Reads a topology file from the disk: a regular file of limited size.

use super::FileError;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest size of a topology file in bytes: 1 MiB, enough for 10 000 hosts with one entry
/// each.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// The text of the file at `path`. Pipes and devices are refused: a pipe could block the process,
/// and a device such as `/dev/zero` never ends.
pub(super) fn text(path: &Path) -> Result<String, FileError> {
    let unreadable = |cause: io::Error| FileError::Unreadable { path: path.to_owned(), cause };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileError::NotRegular { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge { path: path.to_owned() });
    }
    let not_text = |cause| unreadable(io::Error::new(io::ErrorKind::InvalidData, cause));
    String::from_utf8(bytes).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use super::super::place;
    use super::*;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    /// The error for this file, which must come in time.
    fn refusal(path: &Path) -> String {
        let (said, is_said) = mpsc::channel();
        let own = path.to_owned();
        std::thread::spawn(move || said.send(place(&own, "n1").unwrap_err().to_string()));
        is_said.recv_timeout(Duration::from_secs(30)).expect("nothing is waited for")
    }

    #[test]
    fn only_regular_files_are_read() {
        let pipe = std::env::temp_dir().join(format!("topology-pipe-{}", std::process::id()));
        let made = Command::new("mkfifo").arg(&pipe).status().expect("it is there");
        assert!(made.success());
        let paths = [Path::new("/dev/null"), Path::new("/"), &pipe];
        let said = paths.map(|path| (path, refusal(path)));
        std::fs::remove_file(&pipe).unwrap();
        for (path, said) in said {
            let text = format!("the topology file {} is no regular file", path.display());
            assert!(said.starts_with(&text), "{said}");
        }
    }

    #[test]
    fn a_file_is_read_to_a_limit() {
        let path = std::env::temp_dir().join(format!("topology-size-{}", std::process::id()));
        let mut text = "[[hosts]]\nnames = \"n1\"\n#".to_owned();
        text.push_str(&"x".repeat(FILE_BYTES_MAX as usize - text.len()));
        std::fs::write(&path, &text).unwrap();
        let whole = place(&path, "n1").map(|place| place.to_string());
        std::fs::write(&path, text + "x").unwrap();
        let said = refusal(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(whole.unwrap(), "host n1");
        assert!(said.contains("has more than 1048576 bytes: name hosts in ranges"), "{said}");
    }
}
