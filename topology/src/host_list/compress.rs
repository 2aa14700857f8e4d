//! The way back: names written as ranges.

use super::number;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lists that stand for these names, one for all names that differ only in their last number; in no
/// particular order. `Err` is a name that no list can hold.
pub(crate) fn compress<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, &'a str> {
    // By what is before and behind the number: the numbers as they are written, ascending.
    let mut families = BTreeMap::<_, BTreeMap<(u64, usize), &str>>::new();
    let mut lists = Vec::new();
    for name in names {
        if name.is_empty() || name.starts_with(' ') || name.contains(['[', ']', ',']) {
            return Err(name);
        }
        match last_number(name) {
            None => lists.push(name.to_owned()),
            Some((before, digits, value, behind)) => {
                let family = families.entry((before, behind)).or_default();
                family.insert((value, digits.len()), digits);
            }
        }
    }
    lists.extend(families.into_iter().map(|((before, behind), numbers)| {
        let items = items(numbers);
        match items.split_once([',', '-']) {
            None => format!("{before}{items}{behind}"),
            Some(_) => format!("{before}[{items}]{behind}"),
        }
    }));
    Ok(lists)
}

/// A name cut at its last number.
fn last_number(name: &str) -> Option<(&str, &str, u64, &str)> {
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit());
    let start = start.map_or(0, |at| at + name[at..].chars().next().map_or(0, char::len_utf8));
    let digits = &name[start..end];
    Some((&name[..start], digits, number(digits)?, &name[end..]))
}

/// Numbers and spans with commas between them, as they stand in brackets.
fn items(numbers: BTreeMap<(u64, usize), &str>) -> String {
    let mut spans: Vec<(&str, u64, &str)> = Vec::new();
    for ((value, _), digits) in numbers {
        match spans.last_mut() {
            // A span has the width of its first number.
            Some((first, end, last))
                if end.checked_add(1) == Some(value)
                    && format!("{value:0width$}", width = first.len()) == digits =>
            {
                (*end, *last) = (value, digits);
            }
            _ => spans.push((digits, value, digits)),
        }
    }
    let mut text = String::new();
    for (first, _, last) in spans {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{first}");
        if first != last {
            let _ = write!(text, "-{last}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::expand;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn compressed(names: &[&str]) -> Vec<String> {
        compress(names.iter().copied()).unwrap()
    }

    #[test]
    fn neighbours_become_ranges() {
        assert_eq!(compressed(&["n9", "n10", "n11", "n13"]), ["n[9-11,13]"]);
        assert_eq!(compressed(&["nid008", "nid010", "nid009"]), ["nid[008-010]"]);
        assert_eq!(compressed(&["r1n1", "r1n2", "r2n1"]), ["r1n[1-2]", "r2n1"]);
        assert_eq!(compressed(&["login", "b7-x"]), ["login", "b7-x"]);
        assert_eq!(compressed(&["n1", "n01", "n02"]), ["n[1,01-02]"]);
        assert_eq!(compress(["a", "b[1]"]), Err("b[1]"));
    }

    proptest! {
        #[test]
        fn what_is_compressed_expands_to_the_same(
            names in prop::collection::btree_set(
                "[a-c]{0,2}[0-9]{0,3}[a-cé]{0,1}[0-9]{1,2}|[a-c]{1,3}",
                0..40,
            ),
        ) {
            let lists = compress(names.iter().map(String::as_str)).unwrap();
            let expanded = lists.iter().flat_map(|list| expand(list).unwrap());
            let expanded: Vec<String> = expanded.collect();
            prop_assert_eq!(expanded.len(), names.len());
            prop_assert_eq!(expanded.into_iter().collect::<BTreeSet<_>>(), names);
        }

        #[test]
        fn any_name_is_written_or_refused(name in "\\PC{0,12}") {
            if let Ok(lists) = compress([&*name]) {
                prop_assert_eq!(expand(&lists[0]).unwrap(), [name]);
            }
        }
    }
}
