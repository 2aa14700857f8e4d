//! The items: drawn at random, or read from a file.

use crate::{random, read_text};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::Path;
use ultramarine::{Error, Result};

/// The largest number of items.
pub(crate) const ITEMS_MAX: usize = 1000;

/// The largest size of a file: 1 MiB, far more than [`ITEMS_MAX`] lines need.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The greatest weight and value of an item.
const NUMBER_MAX: u64 = 1_000_000_000;

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Item {
    /// Its number among the items, counted from 1.
    pub(crate) number: u32,
    pub(crate) weight: u64,
    pub(crate) value: u64,
}

/// Items, and the weight that the knapsack can carry.
pub(crate) struct Items {
    pub(crate) capacity: u64,
    pub(crate) items: Vec<Item>,
}

impl Items {
    /// Items that are hard to choose from: heavy items are worth more, and all have nearly the same
    /// value by weight (strongly correlated: Pisinger, Where are the hard knapsack problems?,
    /// 2005).
    pub(crate) fn drawn(items: u32, seed: u64) -> Self {
        let mut random = random(seed);
        let draw = |number| {
            let weight = 10_000 + random() % 90_001;
            Item { number, weight, value: weight + 10_000 }
        };
        let items: Vec<_> = (1..=items).map(draw).collect();
        Items { capacity: items.iter().map(|item| item.weight).sum::<u64>() / 2, items }
    }

    /// Reads a file: the capacity on its first line, then a weight and a value on each line.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        Items::parse(&read_text(path, "items", FILE_BYTES_MAX)?).map_err(|(line, reason)| {
            Error::other(format!("the file {name} is malformed: line {line}: {reason}"))
        })
    }

    /// An error is the number of a line, and the reason.
    fn parse(text: &str) -> std::result::Result<Self, (usize, String)> {
        let (mut capacity, mut items) = (None, Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            let malformed = |reason| (line, reason);
            let words: Vec<_> = text.split_whitespace().collect();
            match words[..] {
                [] => {}
                [word] if capacity.is_none() => {
                    let most = ITEMS_MAX as u64 * NUMBER_MAX;
                    capacity = Some(number(word, 0..=most).map_err(malformed)?);
                }
                [_, _] if items.len() == ITEMS_MAX => {
                    return Err((line, format!("there are more than {ITEMS_MAX} items")));
                }
                [weight, value] if capacity.is_some() => {
                    let weight = number(weight, 1..=NUMBER_MAX).map_err(malformed)?;
                    let value = number(value, 1..=NUMBER_MAX).map_err(malformed)?;
                    items.push(Item { number: items.len() as u32 + 1, weight, value });
                }
                _ => {
                    let expected = if capacity.is_some() { "`WEIGHT VALUE`" } else { "`CAPACITY`" };
                    return Err((line, format!("{expected} is expected, not `{}`", text.trim())));
                }
            }
        }
        let capacity = capacity.ok_or_else(|| (1, "`CAPACITY` is expected".to_owned()))?;
        Ok(Items { capacity, items })
    }
}

fn number(text: &str, range: RangeInclusive<u64>) -> std::result::Result<u64, String> {
    let number = text.parse().map_err(|e| format!("`{text}`: {e}"))?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!("{number} is not from {} to {}", range.start(), range.end()))
}
