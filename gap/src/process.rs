//! One GAP that serves calls, one after the other.

use crate::child::{Broken, GapChild, Patience, is_about_memory};
use crate::error::{Death, GapError};
use crate::frame::{self, Answer};
use crate::settings::{Library, Settings};
use crate::value::Value;
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

/// What an idle process keeps of the memory for its replies.
const COME_BYTES_KEPT: usize = 1 << 16;

/// What a call calls.
#[derive(Clone, Copy, Debug)]
pub enum Function<'a> {
    /// The global function of this name.
    Global(&'a str),
    /// The function with this source text, such as `x -> x^2` or `function(x) … end`. Each GAP
    /// compiles it once.
    Source(&'a str),
}

/// What calls need beside their arguments. Each GAP gets it once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs<'a> {
    /// Source texts that it has read, in this order. Later calls of a pool need the same ones, and
    /// perhaps more behind them.
    pub texts: &'a [String],
    /// The value of the global variable `UltramarineGiven`, with a number by which equal values
    /// are known. A GAP keeps the last one.
    pub given: Option<(u128, &'a Value)>,
}

/// Why a process has no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The process can serve on.
    Error(GapError),
    /// It cannot, and must be killed.
    Broken(Broken),
}

impl<T: Into<Broken>> From<T> for Trouble {
    fn from(broken: T) -> Self {
        Trouble::Broken(broken.into())
    }
}

pub(crate) struct Process {
    child: GapChild,
    /// What has come of the next reply.
    come: Vec<u8>,
    reply_bytes_max: usize,
    version: String,
    /// The number of the last request.
    last: u64,
    /// The numbers of functions by their source text.
    compiled: HashMap<String, Value>,
    /// The number of texts that it has read for calls.
    texts: usize,
    /// The number of the value that it has for calls.
    given: Option<u128>,
}

impl Process {
    /// Starts a GAP, and has it read the libraries.
    pub(crate) fn start(
        settings: &Settings,
        is_given_up: Option<&dyn Fn() -> bool>,
    ) -> Result<Self, GapError> {
        let program = settings.program.display().to_string();
        if !is_there(&settings.program) {
            return Err(GapError::NotFound { program });
        }
        let no_start = |how, printed| {
            let program = program.clone();
            GapError::NoStart { program, how, printed }
        };
        let child =
            GapChild::start(settings).map_err(|error| no_start(error.into(), String::new()))?;
        let mut process = Process {
            child,
            come: Vec::new(),
            reply_bytes_max: settings.reply_bytes_max,
            version: String::new(),
            last: 0,
            compiled: HashMap::new(),
            texts: 0,
            given: None,
        };
        let (limit, since) = (Some(settings.start_limit), Instant::now());
        let patience = Patience { limit, since, is_given_up };
        match process.get_ready(settings, &patience) {
            Ok(()) => Ok(process),
            Err(Trouble::Error(error)) => Err(error),
            Err(Trouble::Broken(Broken::GivenUp)) => Err(GapError::GivenUp),
            Err(Trouble::Broken(Broken::Died(how))) => Err(no_start(how, process.kill())),
        }
    }

    fn get_ready(&mut self, settings: &Settings, patience: &Patience<'_>) -> Result<(), Trouble> {
        let version = self.answer(patience)?;
        let unknown = |_| Death::BadReply { reason: "it does not begin with a version".to_owned() };
        self.version = version.try_into().map_err(unknown)?;
        if numbers(&self.version) < numbers(crate::OLDEST) {
            let program = settings.program.display().to_string();
            let found = self.version.clone();
            return Err(Trouble::Error(GapError::TooOld { program, found }));
        }
        for library in &settings.libraries {
            let (read, of, argument) = match library {
                Library::Text(text) => ("UltramarineReadText", "a library's text", text.as_str()),
                Library::File(path) => {
                    let path = path.to_str().unwrap_or_default();
                    ("UltramarineRead", path, path)
                }
            };
            let argument = argument.into();
            let of_library = |trouble| match trouble {
                Trouble::Error(GapError::Said { message }) => {
                    Trouble::Error(GapError::Library { library: of.to_owned(), message })
                }
                other => other,
            };
            self.call_value(&read.into(), &[argument], patience).map_err(of_library)?;
        }
        Ok(())
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.child.is_dead()
    }

    /// Sends what a call needs, and is not there yet.
    pub(crate) fn prepare(
        &mut self,
        needs: Needs<'_>,
        patience: &Patience<'_>,
    ) -> Result<(), Trouble> {
        for text in needs.texts.iter().skip(self.texts) {
            self.call_value(&"UltramarineReadText".into(), &[text.as_str().into()], patience)?;
            self.texts += 1;
        }
        if let Some((number, value)) = needs.given.filter(|given| self.given != Some(given.0)) {
            self.given = None;
            let value = std::slice::from_ref(value);
            self.call_value(&"UltramarineGive".into(), value, patience)?;
            self.given = Some(number);
        }
        Ok(())
    }

    pub(crate) fn call(
        &mut self,
        function: Function<'_>,
        arguments: &[Value],
        patience: &Patience<'_>,
    ) -> Result<Value, Trouble> {
        let source = match function {
            Function::Global(name) => return self.call_value(&name.into(), arguments, patience),
            Function::Source(source) => source,
        };
        if !self.compiled.contains_key(source) {
            let compile = "UltramarineCompile".into();
            let number = self.call_value(&compile, &[source.into()], patience)?;
            self.compiled.insert(source.to_owned(), number);
        }
        let number = self.compiled[source].clone();
        self.call_value(&number, arguments, patience)
    }

    /// Calls a function by its name or number.
    fn call_value(
        &mut self,
        called: &Value,
        arguments: &[Value],
        patience: &Patience<'_>,
    ) -> Result<Value, Trouble> {
        self.last += 1;
        self.child.send(&frame::request(self.last, called, arguments), patience)?;
        self.answer(patience)
    }

    /// Receives the answer to the last request.
    fn answer(&mut self, patience: &Patience<'_>) -> Result<Value, Trouble> {
        let bad = |reason| Death::BadReply { reason };
        let (number, answer) = loop {
            match frame::reply(&self.come, self.reply_bytes_max)? {
                Some((number, answer, length)) => {
                    self.come.drain(..length);
                    self.come.shrink_to(COME_BYTES_KEPT);
                    break (number, answer);
                }
                None => self.child.receive(&mut self.come, patience)?,
            }
        };
        if number != self.last {
            let last = self.last;
            return Err(bad(format!("its number is {number} instead of {last}")).into());
        }
        match answer {
            Answer::Value(value) => Ok(value),
            Answer::NotSendable(what) => Err(Trouble::Error(GapError::NotSendable { what })),
            // GAP lifts its limit after the first such error.
            Answer::Error(message) if is_about_memory(&message) => Err(Death::OutOfMemory.into()),
            Answer::Error(message) => Err(Trouble::Error(GapError::Said { message })),
        }
    }

    /// Kills it, and returns the last lines that it printed.
    pub(crate) fn kill(&mut self) -> String {
        self.child.kill();
        self.child.last_words()
    }

    pub(crate) fn ask_to_end(&mut self) {
        self.child.ask_to_end();
    }
}

/// Whether the program is there: a path, or a name in one of the folders of `PATH`.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// The numbers of a version, as in `4.12.1` and `4.15dev`.
fn numbers(version: &str) -> Vec<u32> {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map_while(|part| digits(part).parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_long_reply_is_not_kept() {
        let mut process = Process::start(&Settings::default(), None).unwrap();
        let (limit, since) = (Some(Duration::from_mins(1)), Instant::now());
        let patience = Patience { limit, since, is_given_up: None };
        let long = Value::from("long".repeat(1 << 20));
        let same = process.call(Function::Global("IdFunc"), std::slice::from_ref(&long), &patience);
        assert_eq!(same.unwrap(), long);
        assert!(process.come.capacity() <= COME_BYTES_KEPT, "{}", process.come.capacity());
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("4.9.3") < numbers("4.12"));
        for version in ["4.12", "4.12.1", "4.15dev", "4.15.0-beta1", "5.0"] {
            assert!(numbers(version) >= numbers("4.12"), "{version}");
        }
    }
}
