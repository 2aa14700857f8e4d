//! Host ranges as Slurm writes them: `nid[001-064,070]`.
//!
//! A list consists of names and ranges, separated by commas. Brackets contain numbers and spans of
//! numbers; a number with leading zeros keeps its width. A name with several brackets stands for
//! all combinations: `r[1-2]n[01-16]` is 32 hosts.

mod compress;

pub(crate) use compress::compress;

use std::iter::Peekable;
use std::str::Chars;

/// The largest number of hosts that one list may stand for: 2^20. Without a limit, a typing error
/// in a range could fill the memory.
pub const HOSTS_LIMIT: usize = 1 << 20;

/// Why a list of hosts is malformed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostListError {
    /// A name is empty: two consecutive commas, or an empty list.
    #[error("`{list}` has an empty name in it")]
    EmptyName {
        /// The list as it was written.
        list: String,
    },
    /// A bracket has no partner, or brackets are nested.
    #[error("`{list}` has a bracket without its partner")]
    Bracket {
        /// The list as it was written.
        list: String,
    },
    /// An item in brackets is neither a number nor a span.
    #[error("`{item}` in `{list}` is neither a number such as 070 nor a span such as 001-064")]
    Item {
        /// The list as it was written.
        list: String,
        /// The item.
        item: String,
    },
    /// A span that ends before it begins.
    #[error("the span `{item}` in `{list}` ends before it begins")]
    Reversed {
        /// The list as it was written.
        list: String,
        /// The span.
        item: String,
    },
    /// The list stands for more than [`HOSTS_LIMIT`] hosts.
    #[error("`{list}` stands for more than {HOSTS_LIMIT} hosts")]
    TooMany {
        /// The list as it was written.
        list: String,
    },
}

/// The names that a list stands for, in the order of the list.
///
/// ```
/// use ultramarine_topology::host_list::expand;
/// assert_eq!(expand("r[1-2]n[09-10]")?, ["r1n09", "r1n10", "r2n09", "r2n10"]);
/// # Ok::<(), ultramarine_topology::HostListError>(())
/// ```
///
/// # Errors
/// If the list is malformed or stands for more than [`HOSTS_LIMIT`] hosts.
pub fn expand(list: &str) -> Result<Vec<String>, HostListError> {
    let owned = || list.to_owned();
    let mut hosts = Vec::new();
    // The names that the text since the last comma stands for.
    let mut names = vec![String::new()];
    let mut chars = list.chars().peekable();
    loop {
        match chars.next() {
            Some('[') => {
                let numbers = bracket(list, &mut chars)?;
                if names.len().saturating_mul(numbers.len()) > HOSTS_LIMIT {
                    return Err(HostListError::TooMany { list: owned() });
                }
                names = names
                    .iter()
                    .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
                    .collect();
            }
            Some(']') => return Err(HostListError::Bracket { list: owned() }),
            end @ (None | Some(',')) => {
                if names.iter().any(String::is_empty) {
                    return Err(HostListError::EmptyName { list: owned() });
                }
                hosts.append(&mut names);
                if hosts.len() > HOSTS_LIMIT {
                    return Err(HostListError::TooMany { list: owned() });
                }
                if end.is_none() {
                    return Ok(hosts);
                }
                names.push(String::new());
            }
            // Spaces after a comma are ignored.
            Some(' ') if names == [""] => {}
            Some(c) => names.iter_mut().for_each(|name| name.push(c)),
        }
    }
}

/// Reads the rest of a bracket after its `[`; returns its numbers as they are written in names.
fn bracket(list: &str, chars: &mut Peekable<Chars<'_>>) -> Result<Vec<String>, HostListError> {
    let mut text = String::new();
    loop {
        match chars.next() {
            Some(']') => break,
            None | Some('[') => return Err(HostListError::Bracket { list: list.to_owned() }),
            Some(c) => text.push(c),
        }
    }
    let mut numbers = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let [from, to] = [first, last].map(number);
        let (Some(from), Some(to)) = (from, to) else {
            return Err(HostListError::Item { list: list.to_owned(), item: item.to_owned() });
        };
        if from > to {
            return Err(HostListError::Reversed { list: list.to_owned(), item: item.to_owned() });
        }
        if to - from >= HOSTS_LIMIT as u64 - numbers.len() as u64 {
            return Err(HostListError::TooMany { list: list.to_owned() });
        }
        let width = first.len();
        numbers.extend((from..=to).map(|n| format!("{n:0width$}")));
    }
    Ok(numbers)
}

/// A number of digits only; `str::parse` would accept a sign, too.
fn number(text: &str) -> Option<u64> {
    // Twenty digits are enough for any u64.
    let plain = text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_keep_their_width() {
        assert_eq!(expand("nid[008-010,070]").unwrap(), ["nid008", "nid009", "nid010", "nid070"]);
        assert_eq!(expand("n[9-11]").unwrap(), ["n9", "n10", "n11"]);
    }

    #[test]
    fn brackets_combine_and_commas_separate() {
        assert_eq!(
            expand("r[1-2]n[01-02]x, login").unwrap(),
            ["r1n01x", "r1n02x", "r2n01x", "r2n02x", "login"]
        );
    }

    #[test]
    fn errors_name_the_part() {
        let text = |list: &str| expand(list).unwrap_err().to_string();
        assert_eq!(text("a,,b"), "`a,,b` has an empty name in it");
        assert_eq!(text(""), "`` has an empty name in it");
        assert_eq!(text("n[1-2"), "`n[1-2` has a bracket without its partner");
        assert_eq!(text("n1]"), "`n1]` has a bracket without its partner");
        assert_eq!(
            text("n[1,+2]"),
            "`+2` in `n[1,+2]` is neither a number such as 070 nor a span such as 001-064"
        );
        assert_eq!(text("n[7-3]"), "the span `7-3` in `n[7-3]` ends before it begins");
    }

    #[test]
    fn a_typing_error_does_not_fill_the_memory() {
        for list in ["n[1-99999999999]", "n[0-1048575,1]", "a[0-9999]b[0-9999]", "n[0-1048575],m"] {
            assert_eq!(expand(list), Err(HostListError::TooMany { list: list.to_owned() }));
        }
        assert_eq!(expand("n[1-1048576]").unwrap().len(), HOSTS_LIMIT);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(list in "[a-c0-9\\[\\],\\- ]{0,24}") {
            if let Ok(hosts) = expand(&list) {
                proptest::prop_assert!(hosts.iter().all(|h| !h.is_empty()));
            }
        }
    }
}
