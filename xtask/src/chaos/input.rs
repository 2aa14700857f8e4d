//! What some programs read, the same each time, and what must come out of any program.

use std::io;
use std::path::Path;
use std::{fs, iter};

use serde_json::Value;

/// The input of a program, besides its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Nothing,
    /// A new arena, in which its results are kept. All PEs are on one host.
    Arena,
    /// Two files, each with a number of this many decimal digits.
    Numbers(usize),
    /// Two FASTA files, each with a sequence of this length.
    Sequences(usize),
    /// A text of this many words.
    Words(usize),
}

/// What comes out of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This, as JSON.
    Is(&'static str),
    /// The error of a computation with floating-point numbers, which is small.
    Small,
    /// The product of [`Input::Numbers`] of this length.
    Product(usize),
}

/// The largest error that is small.
const SMALL: f64 = 1e-12;

/// Of a result, this number of characters is shown.
const SHOWN: usize = 60;

impl Input {
    /// The arguments by which a program gets it. Files are in this folder, and written if they are
    /// not there.
    pub(crate) fn arguments(self, folder: &Path) -> io::Result<Vec<String>> {
        Ok(match self {
            Input::Nothing | Input::Arena => Vec::new(),
            Input::Numbers(length) => {
                let numbers = [("nines", "9".repeat(length)), ("digits", digits(length))];
                let file = |(name, digits): (&str, String)| {
                    Ok(format!("@{}", write(&folder.join(name), &digits)?))
                };
                numbers.into_iter().map(file).collect::<io::Result<_>>()?
            }
            Input::Sequences(length) => {
                // Not the same letters in both.
                let mut letters = random(2).map(|number| ['A', 'C', 'G', 'T'][number % 4]);
                let mut record = || {
                    let sequence: String = letters.by_ref().take(length).collect();
                    format!(">random\n{sequence}\n")
                };
                let files = [("a.fasta", record()), ("b.fasta", record())];
                let written = files.map(|(name, text)| write(&folder.join(name), &text));
                written.into_iter().collect::<io::Result<_>>()?
            }
            Input::Words(count) => {
                let letters = random(3).map(|number| char::from(b'a' + (number % 26) as u8));
                vec![write(&folder.join("words.txt"), &words(letters, count))?]
            }
        })
    }
}

impl Answer {
    /// Whether a program's result is right; if not, what is wrong with it.
    pub(crate) fn check(self, result: &Value) -> Result<(), String> {
        let found = result.to_string();
        let (is_right, expected) = match self {
            Answer::Is(expected) => (found == expected, expected.to_owned()),
            Answer::Small => (
                result.as_f64().is_some_and(|error| error.abs() <= SMALL),
                format!("at most {SMALL:e}"),
            ),
            Answer::Product(length) => {
                let expected = product(&digits(length));
                (*result == expected, expected)
            }
        };
        let shown = |text: String| text.chars().take(SHOWN).collect::<String>();
        if is_right {
            return Ok(());
        }
        Err(format!("the result is {} instead of {}", shown(found), shown(expected)))
    }
}

/// Random numbers below 256, the same for each seed.
fn random(seed: u32) -> impl Iterator<Item = usize> {
    let next = |number: &u32| Some(number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    iter::successors(Some(seed), next).skip(1).map(|number| (number >> 24) as usize)
}

/// A number of this many digits, none of which is 0.
fn digits(length: usize) -> String {
    random(1).take(length).map(|number| char::from(b'1' + (number % 9) as u8)).collect()
}

/// The product of a number, whose last digit is not 0, with as many nines: the number less one, and
/// what its digits lack to nine.
fn product(number: &str) -> String {
    let mut less = number.as_bytes().to_vec();
    less.iter_mut().next_back().into_iter().for_each(|digit| *digit -= 1);
    let lacking = less.iter().map(|digit| b'9' - (digit - b'0'));
    less.iter().copied().chain(lacking).map(char::from).collect()
}

/// This number of words of three letters, ten in each line.
fn words(mut letters: impl Iterator<Item = char>, count: usize) -> String {
    let mut text = String::with_capacity(4 * count);
    for word in 1..=count {
        text.extend(letters.by_ref().take(3));
        text.push(if word % 10 == 0 { '\n' } else { ' ' });
    }
    text
}

/// Writes a file, if it is not there; returns its path.
fn write(path: &Path, text: &str) -> io::Result<String> {
    if !path.exists() {
        fs::write(path, text)?;
    }
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::leftover;

    #[test]
    fn what_comes_out_is_compared_with_what_should() {
        let check = |answer: Answer, json: &str| {
            answer.check(&serde_json::from_str(json).expect("it is JSON"))
        };
        assert_eq!(check(Answer::Is("-3"), "-3"), Ok(()));
        let wrong = "the result is 4 instead of -3".to_owned();
        assert_eq!(check(Answer::Is("-3"), "4"), Err(wrong));
        assert_eq!(check(Answer::Small, "1.5e-15"), Ok(()));
        for json in ["0.1", "null", "\"1e-15\""] {
            check(Answer::Small, json).expect_err(json);
        }
        check(Answer::Product(1), "\"99\"").expect_err("it is another product");
    }

    #[test]
    fn nines_have_a_known_product() {
        assert_eq!(product("1728"), (1728 * 9999).to_string());
        let number = digits(9);
        let parsed: u64 = number.parse().expect("it has nine digits");
        assert_eq!(product(&number), (parsed * 999_999_999).to_string());
        let result = Value::from(product(&number));
        assert_eq!(Answer::Product(9).check(&result), Ok(()));
    }

    #[test]
    fn files_are_written_once() {
        let folder = leftover::folder().expect("there is room");
        let texts = |input: Input| -> Vec<String> {
            let files = input.arguments(folder.path()).expect("there is room");
            files.iter().map(|file| fs::read_to_string(file).expect("it is there")).collect()
        };
        assert_eq!(texts(Input::Nothing), [""; 0]);
        let sequences = texts(Input::Sequences(100));
        assert!(sequences.iter().all(|text| text.len() == 109 && text.starts_with(">random\n")));
        assert_ne!(sequences[0], sequences[1]);
        fs::write(folder.path().join("a.fasta"), "kept").expect("there is room");
        assert_eq!(texts(Input::Sequences(100)), ["kept", &sequences[1]]);
        let text = texts(Input::Words(25)).concat();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().count()).collect();
        assert_eq!(lines, [10, 10, 5]);
    }
}
