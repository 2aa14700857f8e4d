//! Requests and replies as lines of tokens: the counterpart of `pkg/ultramarine/lib/values.g`, which
//! lists the tokens.

use crate::value::{Permutation, Value};
use num_bigint::BigInt;
use num_rational::BigRational;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;
use std::slice::Split;
use std::str::FromStr;

/// Stands in front of each token but the first.
const SEPARATOR: u8 = 0x1f;

/// Begins what stands for a byte that a line cannot have.
const ESCAPE: u8 = 0x1b;

/// These bytes, and what stands for them behind [`ESCAPE`].
const ESCAPES: [(u8, u8); 4] = [(ESCAPE, b'e'), (SEPARATOR, b's'), (b'\n', b'n'), (0, b'0')];

/// Small integers, which GAP keeps without memory, are those from `-SMALL` to `SMALL - 1`.
const SMALL: i64 = 1 << 60;

/// A reply has no more values inside each other than this, by GAP's count, and one for its own.
const DEPTH_MAX: u32 = 1002;

/// What GAP says to a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// The result.
    Value(Value),
    /// GAP's own error.
    Error(String),
    /// What the result is that does not travel.
    NotSendable(String),
}

/// The line of a request.
pub(crate) fn request(number: u64, called: &Value, arguments: &[Value]) -> Vec<u8> {
    let mut line = number.to_string().into_bytes();
    write_value(&mut line, called);
    write_list(&mut line, arguments);
    line.push(b'\n');
    line
}

fn token(line: &mut Vec<u8>, kind: &str, rest: impl Display + Copy) {
    line.push(SEPARATOR);
    // Writing to memory never fails.
    let _ = write!(line, "{kind}{rest}");
}

fn write_value(line: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nothing => token(line, "n", ""),
        Value::Fail => token(line, "!", ""),
        Value::Bool(value) => token(line, if *value { "t" } else { "f" }, ""),
        Value::Integer(value) => write_integer(line, value),
        Value::Rational(value) => {
            token(line, "q", "");
            write_integer(line, value.numer());
            write_integer(line, value.denom());
        }
        Value::String(bytes) => write_string(line, bytes),
        Value::List(values) => write_list(line, values),
        Value::Permutation(permutation) => {
            token(line, "p", permutation.images().len());
            permutation.images().iter().for_each(|image| token(line, "", image));
        }
        Value::Record(components) => {
            token(line, "r", components.len());
            for (name, value) in components {
                write_string(line, name.as_bytes());
                write_value(line, value);
            }
        }
    }
}

fn small(value: &Value) -> Option<i64> {
    let Value::Integer(value) = value else { return None };
    i64::try_from(value).ok().filter(|value| (-SMALL..SMALL).contains(value))
}

fn write_integer(line: &mut Vec<u8>, value: &BigInt) {
    match i64::try_from(value).ok().filter(|value| (-SMALL..SMALL).contains(value)) {
        Some(value) => token(line, "", value),
        None => token(line, "x", format_args!("{value:x}")),
    }
}

fn write_string(line: &mut Vec<u8>, bytes: &[u8]) {
    token(line, "\"", "");
    for byte in bytes {
        match ESCAPES.iter().find(|(escaped, _)| escaped == byte) {
            Some((_, code)) => line.extend_from_slice(&[ESCAPE, *code]),
            None => line.push(*byte),
        }
    }
}

fn write_list(line: &mut Vec<u8>, values: &[Value]) {
    // The kernel of GAP reads a list of small integers in one go.
    let start = line.len();
    token(line, "i", values.len());
    let mut smalls = values.iter().map(small);
    if !values.is_empty() && smalls.all(|value| value.map(|value| token(line, "", value)).is_some())
    {
        return;
    }
    line.truncate(start);
    token(line, "[", values.len());
    values.iter().for_each(|value| write_value(line, value));
}

/// The number and the answer in the line of a reply, which comes without its end.
///
/// # Errors
///
/// It is no whole reply; in words.
pub(crate) fn reply(line: &[u8]) -> Result<(u64, Answer), String> {
    let mut tokens = Tokens(line.split(|byte| *byte == SEPARATOR));
    let number = number(tokens.next()?)?;
    let answer = match tokens.next()? {
        b"+" => Answer::Value(tokens.value(0)?),
        b"-" => Answer::Error(tokens.words()?),
        b"?" => Answer::NotSendable(tokens.words()?),
        other => return Err(unreadable(other)),
    };
    match tokens.0.next() {
        None => Ok((number, answer)),
        Some(token) => Err(format!("{} follows its end", shown(token))),
    }
}

struct Tokens<'a, F: FnMut(&u8) -> bool>(Split<'a, u8, F>);

impl<'a, F: FnMut(&u8) -> bool> Tokens<'a, F> {
    fn next(&mut self) -> Result<&'a [u8], String> {
        self.0.next().ok_or_else(|| "it is cut off".to_owned())
    }

    fn words(&mut self) -> Result<String, String> {
        match self.value(0)? {
            Value::String(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
            _ => Err("there is no message".to_owned()),
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value, String> {
        let token = self.next()?;
        if depth > DEPTH_MAX {
            return Err(format!("values stand in more than {DEPTH_MAX} others"));
        }
        let (kind, rest) = token.split_first().ok_or("a token is empty")?;
        Ok(match kind {
            b'n' => Value::Nothing,
            b'!' => Value::Fail,
            b't' => Value::Bool(true),
            b'f' => Value::Bool(false),
            b'x' => Value::Integer(BigInt::parse_bytes(rest, 16).ok_or_else(|| unreadable(token))?),
            b'q' => {
                let (numerator, denominator) = (self.value(depth + 1)?, self.value(depth + 1)?);
                match (numerator, denominator) {
                    (Value::Integer(numerator), Value::Integer(denominator))
                        if denominator > BigInt::ZERO =>
                    {
                        Value::Rational(BigRational::new(numerator, denominator))
                    }
                    _ => return Err("a rational has no denominator".to_owned()),
                }
            }
            b'"' => Value::String(unescaped(rest)?),
            b'[' => {
                let count = number::<usize>(rest)?;
                Value::List((0..count).map(|_| self.value(depth + 1)).collect::<Result<_, _>>()?)
            }
            b'p' => {
                let count = number::<usize>(rest)?;
                let images = (0..count).map(|_| number(self.next()?));
                let permutation = Permutation::new(images.collect::<Result<_, _>>()?);
                Value::Permutation(permutation.ok_or("a permutation has a point twice")?)
            }
            b'r' => {
                let count = number::<usize>(rest)?;
                let components = (0..count).map(|_| Ok((self.name()?, self.value(depth + 1)?)));
                Value::Record(components.collect::<Result<BTreeMap<_, _>, String>>()?)
            }
            _ => Value::Integer(number::<i64>(token)?.into()),
        })
    }

    fn name(&mut self) -> Result<String, String> {
        match self.value(DEPTH_MAX)? {
            Value::String(bytes) => {
                String::from_utf8(bytes).map_err(|_| "a name is not in UTF-8".to_owned())
            }
            _ => Err("a component has no name".to_owned()),
        }
    }
}

fn number<T: FromStr>(token: &[u8]) -> Result<T, String> {
    let digits = std::str::from_utf8(token).ok();
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| unreadable(token))
}

fn unescaped(token: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.iter();
    while let Some(byte) = rest.next() {
        if *byte != ESCAPE {
            bytes.push(*byte);
            continue;
        }
        let code = rest.next();
        let escaped = ESCAPES.iter().find(|(_, known)| Some(known) == code);
        bytes.push(escaped.ok_or("a string has an unknown escape")?.0);
    }
    Ok(bytes)
}

fn unreadable(token: &[u8]) -> String {
    format!("{} is unknown", shown(token))
}

/// The start of a token, for a message.
fn shown(token: &[u8]) -> String {
    format!("`{}`", token[..token.len().min(40)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<(u64, Answer), &str>) {
        let line = line.replace(' ', "\x1f");
        assert_eq!(reply(line.as_bytes()), expected.map_err(str::to_owned));
    }

    #[test]
    fn requests_are_lines() {
        let arguments =
            [vec![1, -2].into(), Value::from("a\nb"), Value::Fail, (1i128 << 64).into()];
        let line = request(7, &"Phi".into(), &arguments);
        let expected = "7 \"Phi [4 i2 1 -2 \"a\x1bnb ! x10000000000000000\n".replace(' ', "\x1f");
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn replies_are_read() {
        check("3 + 4", Ok((3, Answer::Value(4.into()))));
        check("3 + [2 t x-1F", Ok((3, Answer::Value(vec![true.into(), Value::from(-31)].into()))));
        check("4 - \"Error,", Ok((4, Answer::Error("Error,".to_owned()))));
    }

    #[test]
    fn a_damaged_reply_is_an_error() {
        check("", Err("`` is unknown"));
        check("3", Err("it is cut off"));
        check("3 * 4", Err("`*` is unknown"));
        check("3 + 4 5", Err("`5` follows its end"));
        check("3 + 4x", Err("`4x` is unknown"));
        check("3 + [2 4", Err("it is cut off"));
        check("3 + [-1", Err("`-1` is unknown"));
        check("3 + [99999999999999999999", Err("`99999999999999999999` is unknown"));
        check("3 + [9999999999999999", Err("it is cut off"));
        check("3 + p2 1 1", Err("a permutation has a point twice"));
        check("3 + q 1 0", Err("a rational has no denominator"));
        check("3 + r1 4 4", Err("a component has no name"));
        check("3 + \"\x1bz", Err("a string has an unknown escape"));
        check("3 - 4", Err("there is no message"));
        check(&format!("3 +{}", " [1".repeat(2000)), Err("values stand in more than 1002 others"));
    }
}
