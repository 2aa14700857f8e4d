//! Requests and replies as bytes: the counterpart of `pkg/ultramarine/lib/values.g`, which says
//! what a frame is, and lists the tokens.

use crate::value::{Permutation, Value};
use num_bigint::BigInt;
use num_rational::BigRational;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;
use std::str::FromStr;

/// GAP keeps integers from `-SMALL` to `SMALL - 1` without memory.
const SMALL: i64 = 1 << 60;

/// A reply has no more values inside each other than this, by GAP's count, and one for its own.
const DEPTH_MAX: u32 = 1002;

/// The first line of a frame has no more bytes: three numbers.
const HEADER_BYTES_MAX: usize = 70;

/// What GAP says to a request.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// The result.
    Value(Value),
    /// GAP's own error.
    Error(String),
    /// What the result is that does not travel.
    NotSendable(String),
}

/// Why some bytes are no frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It would be longer than allowed.
    #[error("it is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// What is wrong with it, in words.
    #[error("{0}")]
    Unreadable(String),
}

impl From<String> for BadFrame {
    fn from(reason: String) -> Self {
        BadFrame::Unreadable(reason)
    }
}

/// The tokens, with a space before each, and the bytes of the strings.
#[derive(Default)]
struct Writer {
    tokens: Vec<u8>,
    bytes: Vec<u8>,
}

/// The frame of a request.
pub fn request(number: u64, called: &Value, arguments: &[Value]) -> Vec<u8> {
    let mut parts = Writer::default();
    parts.value(called);
    parts.list(arguments);
    let Writer { mut tokens, mut bytes } = parts;
    tokens.remove(0);
    let mut frame = format!("{number} {} {}\n", tokens.len(), bytes.len()).into_bytes();
    frame.append(&mut tokens);
    frame.append(&mut bytes);
    frame
}

impl Writer {
    fn token(&mut self, kind: &str, rest: impl Display + Copy) {
        // Writing to memory never fails.
        let _ = write!(self.tokens, " {kind}{rest}");
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Nothing => self.token("n", ""),
            Value::Fail => self.token("!", ""),
            Value::Bool(value) => self.token(if *value { "t" } else { "f" }, ""),
            Value::Integer(value) => self.integer(value),
            Value::Rational(value) => {
                self.token("q", "");
                self.integer(value.numer());
                self.integer(value.denom());
            }
            Value::String(bytes) => self.string(bytes),
            Value::List(values) => self.list(values),
            Value::Permutation(permutation) => {
                self.token("p", permutation.images().len());
                permutation.images().iter().for_each(|image| self.token("", image));
            }
            Value::Record(components) => {
                self.token("r", components.len());
                for (name, value) in components {
                    self.string(name.as_bytes());
                    self.value(value);
                }
            }
        }
    }

    fn integer(&mut self, value: &BigInt) {
        match small(value) {
            Some(value) => self.token("", value),
            None => self.token("x", format_args!("{value:x}")),
        }
    }

    fn string(&mut self, bytes: &[u8]) {
        self.token("\"", bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn list(&mut self, values: &[Value]) {
        // The kernel of GAP reads a list of small integers in one go.
        let start = self.tokens.len();
        self.token("i", values.len());
        let mut smalls = values.iter().map(|value| match value {
            Value::Integer(value) => small(value),
            _ => None,
        });
        let mut write = |value: Option<i64>| value.map(|value| self.token("", value)).is_some();
        if !values.is_empty() && smalls.all(&mut write) {
            return;
        }
        self.tokens.truncate(start);
        self.token("[", values.len());
        values.iter().for_each(|value| self.value(value));
    }
}

fn small(value: &BigInt) -> Option<i64> {
    i64::try_from(value).ok().filter(|value| (-SMALL..SMALL).contains(value))
}

/// Reads the frame of a reply at the start of what has come. `None` if there is more to come, else
/// the number, the answer, and the length of the frame, which is at most `length_max`.
///
/// # Errors
///
/// It is no frame of a reply.
pub fn reply(come: &[u8], length_max: usize) -> Result<Option<(u64, Answer, usize)>, BadFrame> {
    let start = &come[..come.len().min(HEADER_BYTES_MAX)];
    let Some(end) = start.iter().position(|byte| *byte == b'\n') else {
        let is_whole = start.len() == HEADER_BYTES_MAX;
        return if is_whole { Err(unreadable(start).into()) } else { Ok(None) };
    };
    let header: Vec<_> = start[..end].split(|byte| *byte == b' ').collect();
    let [number, tokens, bytes] = header[..] else { return Err(unreadable(&start[..end]).into()) };
    let (number, tokens, bytes) = (parsed(number)?, parsed::<usize>(tokens)?, parsed(bytes)?);
    let tokens_end = tokens.saturating_add(end + 1);
    let length = tokens_end.saturating_add(bytes);
    if length > length_max {
        return Err(BadFrame::TooLong { bytes_max: length_max });
    }
    let Some(parts) = come.get(end + 1..length) else { return Ok(None) };
    let (tokens, bytes) = parts.split_at(tokens);
    let mut reader = Reader { tokens: Some(tokens), bytes };
    let answer = match reader.token()? {
        b"+" => Answer::Value(reader.value(0)?),
        b"-" => Answer::Error(reader.message()?),
        b"?" => Answer::NotSendable(reader.message()?),
        other => return Err(unreadable(other).into()),
    };
    match (reader.tokens, reader.bytes) {
        (None, []) => Ok(Some((number, answer, length))),
        (rest, bytes) => Err(format!("{} follows its end", shown(rest.unwrap_or(bytes))).into()),
    }
}

/// What was not read yet.
struct Reader<'a> {
    /// `None` behind the last token.
    tokens: Option<&'a [u8]>,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn token(&mut self) -> Result<&'a [u8], String> {
        let tokens = self.tokens.ok_or("it is cut off")?;
        let end = tokens.iter().position(|byte| *byte == b' ');
        self.tokens = end.map(|end| &tokens[end + 1..]);
        Ok(&tokens[..end.unwrap_or(tokens.len())])
    }

    fn value(&mut self, depth: u32) -> Result<Value, String> {
        let token = self.token()?;
        if depth > DEPTH_MAX {
            return Err(format!("values stand in more than {DEPTH_MAX} others"));
        }
        let (kind, rest) = token.split_first().ok_or("a token is empty")?;
        Ok(match kind {
            b'n' => Value::Nothing,
            b'!' => Value::Fail,
            b't' => Value::Bool(true),
            b'f' => Value::Bool(false),
            b'x' => {
                let value = BigInt::parse_bytes(rest, 16);
                Value::Integer(value.ok_or_else(|| unreadable(token))?)
            }
            b'q' => match (self.value(depth + 1)?, self.value(depth + 1)?) {
                (Value::Integer(numerator), Value::Integer(denominator))
                    if denominator > BigInt::ZERO =>
                {
                    Value::Rational(BigRational::new(numerator, denominator))
                }
                _ => return Err("a rational has no denominator".to_owned()),
            },
            b'"' => Value::String(self.string(rest)?.to_vec()),
            b'[' => {
                let values = (0..parsed::<usize>(rest)?).map(|_| self.value(depth + 1));
                Value::List(values.collect::<Result<_, _>>()?)
            }
            b'p' => {
                let images = (0..parsed::<usize>(rest)?).map(|_| parsed(self.token()?));
                let permutation = Permutation::new(images.collect::<Result<_, _>>()?);
                Value::Permutation(permutation.ok_or("a permutation has a point twice")?)
            }
            b'r' => {
                let components = (0..parsed::<usize>(rest)?)
                    .map(|_| Ok((self.text("a component has no name")?, self.value(depth + 1)?)));
                Value::Record(components.collect::<Result<BTreeMap<_, _>, String>>()?)
            }
            _ => Value::Integer(parsed::<i64>(token)?.into()),
        })
    }

    /// The bytes of a string of this length.
    fn string(&mut self, length: &[u8]) -> Result<&'a [u8], String> {
        let (string, rest) =
            self.bytes.split_at_checked(parsed(length)?).ok_or("a string is cut off")?;
        self.bytes = rest;
        Ok(string)
    }

    fn text(&mut self, missing: &str) -> Result<String, String> {
        let length = self.token()?.strip_prefix(b"\"").ok_or(missing)?;
        Ok(String::from_utf8_lossy(self.string(length)?).into_owned())
    }

    /// At the end of a text GAP's message of a syntax error has a byte that means nothing.
    fn message(&mut self) -> Result<String, String> {
        let is_empty = |c: char| c.is_whitespace() || c == char::REPLACEMENT_CHARACTER;
        Ok(self.text("there is no message")?.trim_end_matches(is_empty).to_owned())
    }
}

fn parsed<T: FromStr>(token: &[u8]) -> Result<T, String> {
    let digits = std::str::from_utf8(token).ok();
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| unreadable(token))
}

fn unreadable(token: &[u8]) -> String {
    format!("`{}` is unknown", shown(token))
}

/// The start of some bytes, for a message.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(40)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a reply with this number, these tokens and these bytes.
    #[track_caller]
    fn check(tokens: &str, bytes: &str, expected: Result<Answer, &str>) {
        let frame = format!("3 {} {}\n{tokens}{bytes}next", tokens.len(), bytes.len());
        let length = frame.len() - "next".len();
        for cut in 0..length {
            assert_eq!(reply(&frame.as_bytes()[..cut], 1 << 20), Ok(None));
        }
        let expected = expected.map(|answer| Some((3, answer, length))).map_err(str::to_owned);
        let read = reply(frame.as_bytes(), 1 << 20);
        assert_eq!(read.map_err(|bad| bad.to_string()), expected);
    }

    #[test]
    fn requests_are_frames() {
        let arguments =
            [vec![1, -2].into(), Value::from("a\nb"), Value::Fail, (1i128 << 64).into()];
        let frame = request(7, &"Phi".into(), &arguments);
        let expected = "7 37 6\n\"3 [4 i2 1 -2 \"3 ! x10000000000000000Phia\nb";
        assert_eq!(String::from_utf8_lossy(&frame), expected);
    }

    #[test]
    fn replies_are_read() {
        check("+ 4", "", Ok(Answer::Value(4.into())));
        check("+ [2 t x-1F", "", Ok(Answer::Value(vec![true.into(), Value::from(-31)].into())));
        check("- \"8", "Error, \n", Ok(Answer::Error("Error,".to_owned())));
        check("? \"1", "g", Ok(Answer::NotSendable("g".to_owned())));
    }

    #[test]
    fn a_damaged_reply_is_an_error() {
        let check = |tokens: &str, expected| check(tokens, "", Err(expected));
        check("", "`` is unknown");
        check("+", "it is cut off");
        check("* 4", "`*` is unknown");
        check("+ 4 5", "5 follows its end");
        check("+ 4x", "`4x` is unknown");
        check("+  4", "a token is empty");
        check("+ [2 4", "it is cut off");
        check("+ [-1", "`-1` is unknown");
        check("+ [99999999999999999999", "`99999999999999999999` is unknown");
        check("+ [9999999999999999", "it is cut off");
        check("+ p2 1 1", "a permutation has a point twice");
        check("+ q 1 0", "a rational has no denominator");
        check("+ r1 4 4", "a component has no name");
        check("+ \"1", "a string is cut off");
        check("- 4", "there is no message");
        check(&format!("+{}", " [1".repeat(2000)), "values stand in more than 1002 others");
    }

    #[test]
    fn a_damaged_header_is_an_error() {
        let check = |frame: &str, expected: &str| {
            let bad = reply(frame.as_bytes(), 1000).expect_err(frame);
            assert_eq!(bad.to_string(), expected);
        };
        check("hello\n", "`hello` is unknown");
        check("1 2 x\n", "`x` is unknown");
        check("1 3 2\n+ 1ab", "ab follows its end");
        check("1 900 200\n", "it is longer than 1000 bytes");
        check(&format!("1 {} {}\n", usize::MAX, usize::MAX), "it is longer than 1000 bytes");
        check(&"1".repeat(100), &format!("`{}` is unknown", "1".repeat(40)));
    }
}
