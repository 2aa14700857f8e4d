//! The flags `--journal`, `--journal-required`, `--journal-build` and `--journal-copies`. The
//! examples in supersteps and on graphs have none, since their tasks depend on each other and leave
//! their results on the PEs; `sweep` has none, since it writes each result to a file itself.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::num::NonZero;
use std::path::PathBuf;
use ultramarine::prelude::*;
use ultramarine::skeletons::journal::Journalled;
use ultramarine::{Error, Result};

use crate::name_of;

/// Where the results are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct JournalFlags {
    /// Keep the results in this file; if it has some of an earlier start, compute only the rest.
    #[arg(long = "journal", value_name = "FILE", id = "journal")]
    pub file: Option<PathBuf>,
    /// End the job if the journal cannot be written, instead of a warning.
    #[arg(long = "journal-required", requires = "journal")]
    pub is_required: bool,
    /// What becomes of results in the journal that another build of the program has computed: they
    /// are kept, with a warning; or the journal is refused; or they are computed anew.
    #[arg(
        long = "journal-build",
        value_name = "CHOICE",
        requires = "journal",
        value_parser = other_builds(),
        default_value = "keep"
    )]
    pub other_builds: OtherBuilds,
    /// Keep the journal on this number of hosts, each under the same path: for disks of their own.
    #[arg(
        long = "journal-copies",
        value_name = "HOSTS",
        requires = "journal",
        default_value_t = NonZero::<usize>::MIN
    )]
    pub copies: NonZero<usize>,
}

pub(crate) fn other_builds() -> impl TypedValueParser<Value = OtherBuilds> {
    PossibleValuesParser::new(["keep", "refuse", "anew"]).map(|choice| match choice.as_str() {
        "refuse" => OtherBuilds::Refuse,
        "anew" => OtherBuilds::Anew,
        _ => OtherBuilds::Keep,
    })
}

impl JournalFlags {
    /// Sets whether the journal is required, what becomes of the results of other builds, and how
    /// many hosts keep it.
    pub fn set<S>(&self, skeleton: Journalled<S>) -> Journalled<S> {
        let skeleton = skeleton.copies(self.copies.get()).other_builds(self.other_builds);
        if self.is_required { skeleton.required() } else { skeleton }
    }

    /// Refuses a journal for a skeleton that has no tasks.
    ///
    /// # Errors
    ///
    /// The flags ask for one.
    pub fn refuse_for(&self, skeleton: &impl ValueEnum) -> Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let what = "has no tasks whose results could be kept";
        Err(Error::other(format!("--journal: the skeleton {} {what}", name_of(skeleton))))
    }
}
