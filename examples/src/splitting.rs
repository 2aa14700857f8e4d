//! The flag `--splitting` of the examples that search trees.

use ultramarine::prelude::Splitting;

/// Reads `steal-driven`, `depth:N` or `budget:N`.
///
/// # Errors
///
/// The text is none of these. The error says what is expected.
pub fn splitting(text: &str) -> Result<Splitting, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("`{text}`: {e}"));
    match text.split_once(':') {
        None if text == "steal-driven" => Ok(Splitting::StealDriven),
        Some(("depth", depth)) => {
            let limit = u32::try_from(number(depth)?);
            limit.map(Splitting::Depth).map_err(|_| format!("no tree has a depth of {depth}"))
        }
        Some(("budget", nodes)) => match number(nodes)? {
            0 => Err("a task visits one node at least".to_owned()),
            nodes => Ok(Splitting::Budget(nodes)),
        },
        _ => Err("`steal-driven`, `depth:N` or `budget:N` is expected".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_texts_are_read() {
        assert_eq!(splitting("steal-driven"), Ok(Splitting::StealDriven));
        assert_eq!(splitting("depth:0"), Ok(Splitting::Depth(0)));
        assert_eq!(splitting("budget:100"), Ok(Splitting::Budget(100)));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, reason) in [
            ("", "`steal-driven`, `depth:N` or `budget:N` is expected"),
            ("depth", "is expected"),
            ("depth:", "cannot parse integer from empty string"),
            ("depth:-1", "`-1`: invalid digit"),
            ("depth:4294967296", "no tree has a depth of 4294967296"),
            ("budget:0", "one node at least"),
            ("steal-driven:1", "is expected"),
        ] {
            let said = splitting(text).expect_err(text);
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
