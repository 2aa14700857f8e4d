//! `ultramarine man`: manual pages, made from the same text as `--help`.

use crate::error::{Error, Result};
use clap::CommandFactory as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Print the manual page of this command, or write one for each subcommand.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write all pages (`ultramarine.1`, `ultramarine-run.1`, …) into this folder, as in
    /// `--dir ~/.local/share/man/man1`. It is made if it is not there.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let command = crate::Command::command();
    let Some(dir) = &arguments.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return Ok(std::io::stdout().write_all(&page)?);
    };
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.map_err(|error| Error::from(format!("{}: {error}", dir.display())))
}
