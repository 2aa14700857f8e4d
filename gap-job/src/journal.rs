//! Results that outlive the job: one file for all calls of a script.
//!
//! A call is known by what it computes: a digest of its functions, of the definitions before it and
//! of its arguments, with the number of equal calls before it, whose results may be of chance. So a
//! script that is run again finds what it had, wherever the call stands in it; what has changed is
//! computed. How many items make a task, and which PEs compute, may differ.
//!
//! ```text
//!    record   0         1         2         3          …
//!           ┌─────────┬─────────┬─────────┬─────────┬──
//!           │ call a  │ call a  │ call b  │ call a  │      each has the answer of a task:
//!           │ 0..7    │ 14..21  │ 0..1    │ 7..14   │      these items of this call
//!           └─────────┴─────────┴─────────┴─────────┴──
//! ```

use crate::Answer;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use ultramarine::{Error, Result};
use ultramarine_gap::Value;
use ultramarine_journal::{Builds, Digest, Identity, Journal, OnFailure, WriteError};
use ultramarine_runtime::wire::{WireError, decode, encode};

/// How long the end of the job waits for the disk.
const FINISH_WITHIN: Duration = Duration::from_mins(1);

/// The answers that the journal has of a call: of these items, by the first.
type Answers = BTreeMap<u64, (u64, Value)>;

/// A call, by what it computes, and the number of equal calls before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Call(u128);

pub(crate) struct Kept {
    journal: Journal,
    /// The number of the next record.
    next: u64,
    /// Of calls that are not complete in this run.
    answers: HashMap<Call, Answers>,
    /// The number of equal calls that are complete.
    equal: HashMap<u128, u64>,
    /// Why a journal that is required cannot be written any more.
    failure: Arc<OnceLock<WriteError>>,
    is_required: bool,
}

impl Kept {
    /// Opens the journal, or begins it.
    ///
    /// # Errors
    ///
    /// It is another program's, or in use, or cannot be opened.
    pub(crate) fn open(path: &Path, is_required: bool) -> Result<Self> {
        let identity = Identity {
            program: "ultramarine-gap".to_owned(),
            call: "the calls of a script".to_owned(),
            result: "the answers of tasks".to_owned(),
            items: Identity::ANY_NUMBER,
            digest: 0,
        };
        let failure = Arc::new(OnceLock::new());
        let on_failure = if is_required {
            let failure = failure.clone();
            OnFailure::Call(Box::new(move |error| drop(failure.set(error.clone()))))
        } else {
            OnFailure::Warn
        };
        let (mut answers, mut next) = (HashMap::<_, Answers>::new(), 0);
        let note = |positions: Range<u64>, record: Option<&[u8]>| {
            next = next.max(positions.end);
            if let Some(record) = record {
                let (call, first, end, answer): (u128, u64, u64, Value) = decode(record)?;
                answers.entry(Call(call)).or_default().insert(first, (end, answer));
            }
            Ok(())
        };
        let opened = Journal::open(path, &identity, Builds::default(), on_failure, note);
        let (journal, report) = opened.map_err(Error::other)?;
        for damage in &report.damage {
            let path = path.display();
            tracing::warn!("the journal `{path}` is damaged: {damage}; that is computed again");
        }
        Ok(Kept { journal, next, answers, equal: HashMap::new(), failure, is_required })
    }

    /// The call with this digest of what it computes.
    pub(crate) fn call(&self, digest: u128) -> Call {
        let mut numbered = Digest::default();
        numbered.add(&digest.to_le_bytes());
        numbered.add(&self.equal.get(&digest).copied().unwrap_or(0).to_le_bytes());
        Call(numbered.finish())
    }

    /// The items without answers, in groups of `size` at most.
    pub(crate) fn missing(&self, call: Call, items: usize, size: usize) -> Vec<Range<usize>> {
        let (mut missing, mut next) = (Vec::new(), 0);
        let known = self.answers.get(&call).into_iter().flatten();
        let known = known.map(|(first, (end, _))| (*first as usize, *end as usize));
        for (first, end) in known.chain([(items, items)]) {
            let groups = (next..first).step_by(size);
            missing.extend(groups.map(|group| group..first.min(group + size)));
            next = end;
        }
        missing
    }

    /// Keeps the answer for these items.
    pub(crate) fn keep(&mut self, call: Call, items: Range<usize>, answer: Value) -> Answer<()> {
        let (first, end) = (items.start as u64, items.end as u64);
        let record = encode(&(call.0, first, end, &answer));
        let record = record.map_err(|error: WireError| format!("for the journal: {error}"))?;
        self.journal.append(self.next..self.next + 1, &record);
        self.next += 1;
        self.answers.entry(call).or_default().insert(first, (end, answer));
        match self.failure.get() {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        }
    }

    /// The answers of a call that is complete, in the order of its items.
    pub(crate) fn complete(&mut self, digest: u128) -> Vec<Value> {
        let call = self.call(digest);
        *self.equal.entry(digest).or_default() += 1;
        let answers = self.answers.remove(&call).unwrap_or_default();
        answers.into_values().map(|(_, answer)| answer).collect()
    }

    /// Puts all on the disk.
    ///
    /// # Errors
    ///
    /// It cannot be written, and is required.
    pub(crate) fn finish(self) -> Result<()> {
        match self.journal.finish(FINISH_WITHIN) {
            Err(error) if self.is_required => Err(Error::other(error)),
            Err(error @ WriteError::Late { .. }) => {
                tracing::warn!("{error}");
                Ok(())
            }
            // Another failure was told when it happened.
            _ => Ok(()),
        }
    }
}
