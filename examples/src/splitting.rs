//! The flag `--splitting` of the examples that search trees.

use ultramarine::prelude::Splitting;

/// Reads `ordered`, `steal-driven`, `depth:N` or `budget:N`.
///
/// # Errors
///
/// The text is none of these. The error says what is expected.
pub fn splitting(text: &str) -> Result<Splitting, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("`{text}`: {e}"));
    match text.split_once(':') {
        None if text == "ordered" => Ok(Splitting::Ordered),
        None if text == "steal-driven" => Ok(Splitting::StealDriven),
        Some(("depth", depth)) => {
            let limit = u32::try_from(number(depth)?);
            limit.map(Splitting::Depth).map_err(|_| format!("no tree has a depth of {depth}"))
        }
        Some(("budget", nodes)) => match number(nodes)? {
            0 => Err("a task visits one node at least".to_owned()),
            nodes => Ok(Splitting::Budget(nodes)),
        },
        _ => Err("`ordered`, `steal-driven`, `depth:N` or `budget:N` is expected".to_owned()),
    }
}
