//! The lines that the log makes of what `tracing` is told, here and in the crates below.
//!
//! `tracing-subscriber` would also show spans, of which the runtime has none, and records of the
//! crate `log`. A program that wants these installs a subscriber of its own before `run`, and keeps
//! it.

use crate::error::StartError;
use crate::log::log_line;
use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use ultramarine_environment::variables;

/// Shows the runtime's log on standard error. `ULTRAMARINE_LOG` chooses how much, as
/// in `ULTRAMARINE_LOG=debug`.
pub(crate) fn log_to_stderr() -> Result<(), StartError> {
    let filter = Filter::parse(&variables::LOG.value().unwrap_or_default())?;
    // A file of a batch job's output shows no colours.
    let is_allowed = variables::text(variables::NO_COLOR).is_none_or(|text| text.is_empty());
    let has_colours = is_allowed && std::io::stderr().is_terminal();
    // A program that has installed a subscriber keeps it.
    let _ = tracing::subscriber::set_global_default(Lines { filter, has_colours, write: log_line });
    Ok(())
}

/// What to show: a level for each beginning of a module's path. The longest counts.
#[derive(Debug)]
struct Filter(Vec<(String, LevelFilter)>);

impl Filter {
    fn parse(text: &str) -> Result<Self, StartError> {
        let refuse = || {
            let hint = "a level such as `debug`, or `module=level`, is expected";
            StartError::Options(format!("ULTRAMARINE_LOG = `{text}`: {hint}"))
        };
        let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
        if parts.peek().is_none() {
            return Ok(Filter(vec![(String::new(), LevelFilter::WARN)]));
        }
        let level_of = |part: &str| {
            let (module, level) = part.rsplit_once('=').unwrap_or(("", part));
            let (module, level) = (module.trim(), level.trim());
            // An empty level would be parsed as one.
            let is_wrong = level.is_empty() || module.contains(['[', '{']);
            let level = level.parse().ok().filter(|_| !is_wrong).ok_or_else(refuse)?;
            Ok((module.to_owned(), level))
        };
        parts.map(level_of).collect::<Result<_, _>>().map(Filter)
    }

    fn level(&self, target: &str) -> LevelFilter {
        let fitting = self.0.iter().filter(|(start, _)| target.starts_with(start));
        fitting.max_by_key(|(start, _)| start.len()).map_or(LevelFilter::OFF, |(_, level)| *level)
    }
}

/// Writes each event as a line.
struct Lines<W> {
    filter: Filter,
    has_colours: bool,
    write: W,
}

impl<W> Lines<W> {
    fn line(&self, event: &Event<'_>) -> String {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let time = humantime::format_rfc3339_micros(SystemTime::now());
        let mut line = if self.has_colours {
            let colour = match *level {
                Level::ERROR => 31,
                Level::WARN => 33,
                Level::INFO => 32,
                Level::DEBUG => 34,
                Level::TRACE => 35,
            };
            let grey = |text: &dyn fmt::Display| format!("\x1b[2m{text}\x1b[0m");
            format!("{} \x1b[{colour}m{level:>5}\x1b[0m {}:", grey(&time), grey(&target))
        } else {
            format!("{time} {level:>5} {target}:")
        };
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        // What a message cites must not steer the terminal.
        line.push_str(&fields.0.replace('\x1b', "\\x1b"));
        line
    }
}

impl<W: Fn(String) + 'static> Subscriber for Lines<W>
where
    Self: Send + Sync,
{
    fn enabled(&self, what: &Metadata<'_>) -> bool {
        what.is_event() && self.filter.level(what.target()) >= *what.level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.filter.0.iter().map(|(_, level)| *level).max()
    }

    fn event(&self, event: &Event<'_>) {
        (self.write)(self.line(event));
    }

    // No span is enabled, so what follows is not called.

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message of an event, and its other fields as `name=value`, each after a space.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A `String` takes all.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::{debug, info, info_span, trace, warn};

    #[test]
    fn what_to_log_is_a_level_or_one_for_a_module() {
        for right in ["", "debug", "INFO", "off", "warn,ultramarine_runtime=trace"] {
            Filter::parse(right).expect(right);
        }
        for wrong in ["bogus=", "loud", "debug,runtime=", "ultramarine=loud", "[span]=info"] {
            let error = Filter::parse(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("ULTRAMARINE_LOG = `{wrong}`: ")), "{error}");
        }
    }

    #[test]
    fn the_longest_beginning_of_a_module_counts() {
        let filter = Filter::parse("info,a=off,a::b=trace,c=debug,c=error").unwrap();
        for (target, level) in [
            ("b", LevelFilter::INFO),
            ("a", LevelFilter::OFF),
            ("a::c", LevelFilter::OFF),
            ("a::b::c", LevelFilter::TRACE),
            ("c", LevelFilter::ERROR),
        ] {
            assert_eq!(filter.level(target), level, "{target}");
        }
        assert_eq!(Filter::parse("a=debug").unwrap().level("b"), LevelFilter::OFF);
        assert_eq!(Filter::parse("").unwrap().level("b"), LevelFilter::WARN);
    }

    /// The lines that are written, without the time.
    fn lines(has_colours: bool, say: impl Fn()) -> Vec<String> {
        let filter = Filter::parse("info,loud=trace").unwrap();
        let (sender, written) = std::sync::mpsc::channel();
        let write = move |line: String| sender.send(line).unwrap();
        tracing::subscriber::with_default(Lines { filter, has_colours, write }, say);
        let without_time = |line: String| line.split_once('Z').unwrap().1.to_owned();
        written.iter().map(without_time).collect()
    }

    #[test]
    fn an_event_is_a_line() {
        let say = || {
            let _entered = info_span!("a span").entered();
            info!(target: "quiet", pe = 3, name = "n1", why = %"no\x1b[1m word", "it {}", "began");
            debug!(target: "quiet", "not shown");
            trace!(target: "loud::part", "shown");
        };
        assert_eq!(
            lines(false, say),
            [
                "  INFO quiet: it began pe=3 name=\"n1\" why=no\\x1b[1m word",
                " TRACE loud::part: shown",
            ]
        );
        assert_eq!(
            lines(true, || warn!(target: "quiet", "it")),
            ["\x1b[0m \x1b[33m WARN\x1b[0m \x1b[2mquiet\x1b[0m: it"]
        );
    }
}
