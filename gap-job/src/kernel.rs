//! The functions that tasks have GAP call: `gap/pkg/ultramarine/lib/tasks.g` has their GAP side.

use crate::Answer;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine::{Context, Distance, Shared};
use ultramarine_gap::{Function, GapError, Pool, Settings, Value, elsewhere};
use ultramarine_journal::Digest;
use ultramarine_runtime::wire::encode;

/// A call whose GAP dies is tried by this number of other PEs.
const PES_TRIED: u32 = 2;

static LOADS_PACKAGES: AtomicBool = AtomicBool::new(false);

/// The GAPs of this process.
static GAP: LazyLock<Pool> = LazyLock::new(|| {
    let settings = Settings::default().loads_packages(LOADS_PACKAGES.load(Ordering::Relaxed));
    Pool::new(settings.library(include_str!("../../gap/pkg/ultramarine/lib/tasks.g")))
});

/// The GAPs that are yet to start load the packages that GAP suggests.
pub(crate) fn load_packages() {
    LOADS_PACKAGES.store(true, Ordering::Relaxed);
}

/// Ends the GAPs of this process.
pub(crate) fn end_idle() {
    GAP.end_idle();
}

/// A function that tasks have GAP call. It travels once to each process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Kernel(pub(crate) Shared<Made>);

/// What a kernel is made of.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Made {
    /// An expression of GAP, which each GAP evaluates once.
    text: String,
    /// The last argument of each call, if there is one.
    given: Option<Value>,
}

impl Kernel {
    /// The kernel of this name, made of these functions.
    pub(crate) fn new(
        cx: &Context,
        name: &str,
        definitions: &[String],
        functions: &[String],
        given: Option<Value>,
    ) -> Self {
        let mut text = "UltramarineKernel(".to_owned();
        quote(&mut text, name);
        for texts in [definitions, functions] {
            text.push_str(",[");
            for (number, one) in texts.iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                quote(&mut text, one);
            }
            text.push(']');
        }
        text.push(')');
        Kernel(cx.share(Made { text, given }))
    }

    /// What a call of this kernel computes with these arguments, for a journal.
    pub(crate) fn digest(&self, arguments: &impl Serialize) -> Answer<u128> {
        let mut digest = Digest::default();
        let packages = LOADS_PACKAGES.load(Ordering::Relaxed);
        let encoded = encode(&(&*self.0, packages, arguments));
        digest.add(&encoded.map_err(|error| format!("for the journal: {error}"))?);
        Ok(digest.finish())
    }

    /// Has GAP call it here, or on another PE if GAP fails here.
    pub(crate) async fn call(self, cx: &Context, arguments: Vec<Value>) -> Answer {
        match self.try_here(Some(cx), &arguments) {
            Err(error) if error.is_of_this_place() && cx.pes() > 1 => {
                let again =
                    |(kernel, arguments): (Kernel, Vec<Value>)| kernel.try_here(None, &arguments);
                tracing::warn!("{}, and another PE tries", said(cx, &error));
                let argument = (self, arguments);
                let done = elsewhere(cx, Distance::ONE, PES_TRIED, again, argument).await;
                done.map_err(|lost| lost.to_string())?.map_err(|_| said(cx, &error))
            }
            done => done.map_err(|error| said(cx, &error)),
        }
    }

    /// Has GAP call it here.
    pub(crate) fn call_here(&self, cx: &Context, arguments: &[Value]) -> Answer {
        self.try_here(Some(cx), arguments).map_err(|error| said(cx, &error))
    }

    /// Without a context, the call is not cancelled with its task.
    fn try_here(&self, cx: Option<&Context>, arguments: &[Value]) -> Result<Value, GapError> {
        let arguments: Vec<_> = arguments.iter().chain(&self.0.given).cloned().collect();
        let is_given_up = || cx.is_some_and(Context::is_cancelled);
        GAP.call_unless(is_given_up, Function::Source(&self.0.text), &arguments)
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
        GapError::Said { message } if is_unbound(message) => {
            format!("on PE {pe}: {message} (ParDefine defines it on all PEs)")
        }
        GapError::Said { message } => format!("on PE {pe}: {message}"),
        error => format!("on PE {pe}: {error}"),
    }
}

/// Whether an error is about a variable that is bound in front, perhaps, but not here.
fn is_unbound(message: &str) -> bool {
    // Of a map its item stands before it.
    message.contains("Error, Variable: ") && message.ends_with(" value")
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
