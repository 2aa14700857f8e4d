//! How wide text is, as nearly as can be known without the reader's font.

/// The width of text in a font of this many pixels, in pixels: rather too much than too little, for
/// the wider of the usual fonts.
pub(super) fn width(text: &str, size: u32) -> u32 {
    let thousandths: u32 = text.chars().map(thousandths).sum();
    (thousandths * size).div_ceil(1000)
}

/// The width of a character, in thousandths of the font's size.
fn thousandths(c: char) -> u32 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 360,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' | '·' => 440,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1010,
        'A'..='Z' => 770,
        c if c.is_ascii() => 650,
        '\u{80}'..='\u{24f}' => 700,
        _ => 1100,
    }
}

/// The text without what no picture can hold, and with its middle left out if it is wider than
/// this.
pub(super) fn fit(text: &str, size: u32, width_max: u32) -> String {
    let mut chars: Vec<char> = text.chars().map(printable).collect();
    let text = |chars: &[char]| chars.iter().collect::<String>();
    if width(&text(&chars), size) <= width_max {
        return text(&chars);
    }
    while chars.len() > 1 {
        let middle = chars.len() / 2;
        chars.remove(middle);
        let (start, end) = chars.split_at(middle);
        let cut = format!("{}…{}", text(start), text(end));
        if width(&cut, size) <= width_max {
            return cut;
        }
    }
    "…".to_owned()
}

/// What may stand in XML.
pub(super) fn printable(c: char) -> char {
    let is_barred = c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    if is_barred { char::REPLACEMENT_CHARACTER } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_loses_its_middle() {
        assert_eq!(fit("host n1", 13, 200), "host n1");
        let long = format!("switch {}end", "x".repeat(300));
        let cut = fit(&long, 13, 200);
        assert!(width(&cut, 13) <= 200 && width(&cut, 13) > 180, "{cut}");
        assert!(cut.starts_with("switch ") && cut.ends_with("end") && cut.contains('…'), "{cut}");
        assert_eq!(fit("wide", 13, 1), "…");
    }

    #[test]
    fn what_xml_does_not_know_is_replaced() {
        assert_eq!(fit("a\u{1}b\nc", 13, 200), "a\u{fffd}b\u{fffd}c");
    }
}
