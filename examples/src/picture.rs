//! Writes a picture to a PNG file, all of it or nothing.

use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use ultramarine::{Error, Result};

/// A picture file that a program will write at its end.
///
/// The picture is first written to a temporary file in the same folder, whose name begins with a
/// dot, and renamed at the end. So a reader of the path sees either the former file or the whole
/// picture. If writing fails, the temporary file is removed.
#[derive(Debug)]
pub struct Picture {
    path: PathBuf,
}

impl Picture {
    /// Checks that the file can be written; it may exist already. A program calls this before the
    /// long computation whose picture it is. It leaves no file behind.
    ///
    /// # Errors
    ///
    /// The folder does not exist or is not writable, or something other than a file is at the path.
    pub fn at(path: &Path) -> Result<Picture> {
        let picture = Picture { path: path.to_owned() };
        if path.metadata().is_ok_and(|there| !there.is_file()) || path.file_name().is_none() {
            return Err(picture.failure("something else than a file is there"));
        }
        picture.file()?;
        Ok(picture)
    }

    /// Writes the picture. `pixels` are indexes into the palette, row by row; `palette` has red,
    /// green and blue of each colour.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn save(self, (width, height): (u32, u32), palette: &[u8], pixels: &[u8]) -> Result<()> {
        let mut file = self.file()?;
        let mut buffer = BufWriter::new(&mut file);
        let mut encoder = png::Encoder::new(&mut buffer, width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(pixels)?;
            writer.finish()
        });
        written.map_err(|error| self.failure(error))?;
        buffer.flush().map_err(|error| self.failure(error))?;
        drop(buffer);
        file.persist(&self.path).map_err(|error| self.failure(error.error))?;
        Ok(())
    }

    /// A temporary file, which is removed when it is dropped.
    fn file(&self) -> Result<NamedTempFile> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The permissions of any new file; by default temporary files belong to the owner alone.
        tempfile::Builder::new()
            .prefix(".picture")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| self.failure(error))
    }

    fn failure(&self, reason: impl std::fmt::Display) -> Error {
        Error::other(format!("cannot write the picture {}: {reason}", self.path.display()))
    }
}
