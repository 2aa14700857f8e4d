//! A picture in a PNG file that is there as a whole or not at all.

use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use ultramarine::{Error, Result};

/// Where a picture will be.
///
/// It is written to a file with another name in the same folder, which begins with a dot and is
/// renamed at the end: a reader of the path sees what was there before, or all of the picture.
/// If writing fails, that file is removed.
#[derive(Debug)]
pub struct Picture {
    path: PathBuf,
}

impl Picture {
    /// Makes sure that there can be a file at this path, which may exist: a program calls this
    /// before the work that the picture is to show. Nothing is left there meanwhile.
    ///
    /// # Errors
    ///
    /// The folder does not exist or cannot be written to, or something else than a file is there.
    pub fn at(path: &Path) -> Result<Picture> {
        let picture = Picture { path: path.to_owned() };
        if path.metadata().is_ok_and(|there| !there.is_file()) || path.file_name().is_none() {
            return Err(picture.failure("something else than a file is there"));
        }
        picture.file()?;
        Ok(picture)
    }

    /// Writes the picture: for each pixel, row by row, which colour of the palette it has, and the
    /// palette's colours as red, green and blue.
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

    /// A file with another name, removed when it is dropped.
    fn file(&self) -> Result<NamedTempFile> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // As any new file; what is temporary would be its owner's alone.
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
