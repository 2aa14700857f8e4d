//! Writes a picture to a PNG file, all of it or nothing.

use crate::whole_file::WholeFile;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use ultramarine::Result;

/// A picture file that a program will write at its end.
#[derive(Debug)]
pub struct Picture(WholeFile);

impl Picture {
    /// Checks that the file can be written; it may exist already. A program calls this before the
    /// long computation whose picture it is. It leaves no file behind.
    ///
    /// # Errors
    ///
    /// The folder does not exist or is not writable, or something other than a file is at the path.
    pub fn at(path: &Path) -> Result<Picture> {
        Ok(Picture(WholeFile::at(path, "picture")?))
    }

    /// Writes the picture. `pixels` are indexes into the palette, row by row; `palette` has red,
    /// green and blue of each colour.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn save(self, (width, height): (u32, u32), palette: &[u8], pixels: &[u8]) -> Result<()> {
        self.0.save(|file| {
            let mut buffer = BufWriter::new(file);
            let mut encoder = png::Encoder::new(&mut buffer, width, height);
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_palette(palette);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(pixels)?;
            writer.finish()?;
            buffer.flush()
        })
    }
}
