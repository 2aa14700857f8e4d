//! The functions that tasks have GAP call: `gap/pkg/ultramarine/lib/tasks.g` has their GAP side.

use crate::Answer;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use ultramarine::{Context, Distance, Shared, TaskError};
use ultramarine_gap::{Function, GapError, Needs, Pool, Settings, Value, another};
use ultramarine_journal::Digest;
use ultramarine_runtime::executor::AbortOnDrop;
use ultramarine_runtime::wire::encode;

/// A call whose GAP dies is tried by this number of other PEs.
const PES_TRIED: usize = 2;

/// How GAPs are started, and what they may take.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct GapFlags {
    /// Have the GAPs load the packages that GAP suggests.
    #[arg(long)]
    packages: bool,
    /// The longest that a call may take, in milliseconds: its GAP is killed then.
    #[arg(long)]
    call_limit_ms: Option<u64>,
    /// The most memory that each GAP may have, in bytes.
    #[arg(long)]
    gap_memory_bytes: Option<u64>,
}

static FLAGS: OnceLock<GapFlags> = OnceLock::new();

fn flags() -> GapFlags {
    FLAGS.get().copied().unwrap_or_default()
}

/// The GAPs of this process.
static GAP: LazyLock<Pool> = LazyLock::new(|| {
    let GapFlags { packages, call_limit_ms, gap_memory_bytes } = flags();
    let mut settings = Settings::default().loads_packages(packages);
    if let Some(limit) = call_limit_ms {
        settings = settings.limit(Duration::from_millis(limit));
    }
    if let Some(bytes) = gap_memory_bytes {
        settings = settings.memory(bytes);
    }
    Pool::new(settings.library(include_str!("../../gap/pkg/ultramarine/lib/tasks.g")))
});

/// Sets the flags of the GAPs, before the first one starts.
pub(crate) fn set_flags(flags: GapFlags) {
    let _ = FLAGS.set(flags);
}

/// Ends the GAPs of this process.
pub(crate) fn end_idle() {
    GAP.end_idle();
}

/// The number of the last request that was cancelled.
static CANCELLED: AtomicU64 = AtomicU64::new(0);

/// Has GAP stop on all PEs, if it works on this request or one before. A task that waits for others
/// ends only when a worker has time, and these may all wait for GAP.
pub(crate) fn cancel(cx: &Context, request: u64) {
    let note = async |_: Context, request: u64| {
        CANCELLED.fetch_max(request, Ordering::Relaxed);
    };
    // It fails if the job ends, which ends all.
    let _ = cx.tell_all(note, request);
}

/// A function that tasks have GAP call. It travels once to each process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Kernel(pub(crate) Shared<Made>);

/// What a request says of all its calls.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// The number of the request.
    pub(crate) request: u64,
    /// If GAP fails on a PE, others that are this near try.
    pub(crate) radius: Distance,
}

/// What a kernel is made of.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) terms: Terms,
    /// What each GAP has read before.
    definitions: Vec<String>,
    /// An expression of GAP, which each GAP evaluates once.
    text: String,
    /// A value that each GAP gets once, if there is one, and its digest.
    given: Option<(u128, Value)>,
}

impl Kernel {
    /// The kernel of this name, made of these functions.
    ///
    /// # Errors
    ///
    /// The given value cannot be encoded.
    pub(crate) fn new(
        cx: &Context,
        terms: Terms,
        name: &str,
        definitions: &[String],
        functions: &[String],
        given: Option<Value>,
    ) -> Answer<Self> {
        let mut text = "UltramarineKernel(".to_owned();
        quote(&mut text, name);
        text.push_str(",[");
        for (number, one) in functions.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            quote(&mut text, one);
        }
        text.push_str("])");
        let given = given.map(|value| Ok::<_, String>((digest(&value)?, value))).transpose()?;
        let definitions = definitions.to_vec();
        Ok(Kernel(cx.share(Made { terms, definitions, text, given })))
    }

    /// What a call of this kernel computes with these arguments, for a journal.
    pub(crate) fn digest(&self, arguments: &impl Serialize) -> Answer<u128> {
        let Made { definitions, text, given, terms: _ } = &*self.0;
        digest(&(definitions, text, given, flags().packages, arguments))
    }

    /// Has GAP call it here, or on other PEs if GAP fails here.
    pub(crate) async fn call(self, cx: &Context, arguments: Vec<Value>) -> Answer {
        let (mut answer, mut is_final) = self.try_here(cx, &arguments);
        let mut tried = vec![cx.pe()];
        while let (Err(message), false) = (&mut answer, is_final) {
            let Some(pe) =
                another(cx, self.0.terms.radius, &tried).filter(|_| tried.len() <= PES_TRIED)
            else {
                break;
            };
            tracing::warn!("{message}; PE {} tries", pe.number());
            tried.push(pe);
            let again = async |cx: Context, (kernel, arguments): (Kernel, Vec<Value>)| {
                kernel.try_here(&cx, &arguments)
            };
            let task = cx.spawn_at(pe, again, (self.clone(), arguments.clone()));
            match AbortOnDrop::new(task).await {
                Ok((Ok(value), _)) => return Ok(value),
                Ok((Err(more), is_last)) => {
                    is_final = is_last;
                    message.extend(["\n", &more]);
                }
                Err(error @ TaskError::Lost { .. }) => message.extend(["\n", &lost(&error)]),
                Err(error) => return Err(lost(&error)),
            }
        }
        answer
    }

    /// Has GAP call it here. The answer is final unless another GAP may have a better one.
    fn try_here(&self, cx: &Context, arguments: &[Value]) -> (Answer, bool) {
        let Made { terms, definitions, text, given } = &*self.0;
        let given = given.as_ref().map(|(digest, value)| (*digest, value));
        let needs = Needs { texts: definitions, given };
        let function = Function::Source(text);
        let is_given_up =
            || cx.is_cancelled() || CANCELLED.load(Ordering::Relaxed) >= terms.request;
        if is_given_up() {
            return (Err(said(cx, &GapError::GivenUp)), true);
        }
        match GAP.call_with_needs(is_given_up, needs, function, arguments) {
            Ok(value) => (Ok(value), true),
            Err(error) => (Err(said(cx, &error)), !error.is_of_this_place()),
        }
    }
}

/// Whether an answer is that its call was given up.
pub(crate) fn is_given_up(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|message| message.ends_with(&GapError::GivenUp.to_string()))
}

fn digest(value: &impl Serialize) -> Answer<u128> {
    let mut digest = Digest::default();
    digest.add(&encode(value).map_err(|error| format!("it cannot be encoded: {error}"))?);
    Ok(digest.finish())
}

/// What GAP's error says of a task that has ended without an answer.
pub(crate) fn lost(error: &TaskError) -> String {
    match error {
        TaskError::Lost { pe, .. } => format!(
            "a task may have been lost with {pe}, which died: with the option `supervised := \
             true` it runs again"
        ),
        error => error.to_string(),
    }
}

/// Writes a string of GAP.
fn quote(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            // Writing to a string never fails.
            '\0'..' ' => drop(write!(text, "\\{:03o}", u32::from(character))),
            _ => text.push(character),
        }
    }
    text.push('"');
}

/// An error, with the PE that has it.
fn said(cx: &Context, error: &GapError) -> String {
    let pe = cx.pe().number();
    match error {
        GapError::Said { message } => match unbound(message) {
            Some(name) if name.starts_with("Par") => {
                format!("on PE {pe}: {message} (in a task there are no parallel functions)")
            }
            Some(_) => format!("on PE {pe}: {message} (ParDefine defines it on all PEs)"),
            None => format!("on PE {pe}: {message}"),
        },
        error => format!("on PE {pe}: {error}"),
    }
}

/// The variable that an error is about, if it is bound in front, perhaps, but not here.
fn unbound(message: &str) -> Option<&str> {
    // Of a map its item stands before it.
    let (_, name) = message.split_once("Error, Variable: '")?;
    name.strip_suffix("' must have an assigned value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_string_of_gap() {
        let strange = "x -> \"a\\\n\t\u{1}é\"".to_owned();
        let mut text = "UltramarineQuoted := {} -> ".to_owned();
        quote(&mut text, &strange);
        text.push(';');
        let pool = Pool::new(Settings::default().library(text));
        assert_eq!(pool.call("UltramarineQuoted", &[]), Ok(strange.as_str().into()));
    }
}
