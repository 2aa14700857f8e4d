//! Places from host names.
//!
//! Many machines name a host after its position. A pattern says which parts of the name are levels.
//! The label of the host is always the whole name, without the domain.
//!
//! # Patterns
//!
//! | in the pattern | matches |
//! |---|---|
//! | `#` | one or more digits |
//! | `%` | exactly one digit |
//! | `@` | one or more letters |
//! | `*` | one or more characters other than a dot |
//! | `(…)` | whatever `…` matches, and makes it a level above the host |
//! | any other character | itself |
//!
//! Levels are in order, outermost first. The pattern must match the whole name without its domain.
//! For example, `(r#)(c#)n#` finds the switches `r3` and `c1` above the host `r3c1n07`, and
//! `nid(%%%%)%%` groups hosts by the first four of six digits, 100 to a group.
//!
//! # Schemes known without a pattern
//!
//! The [`SCHEMES`] are tried in order. If none matches, the name says nothing about levels: `cn12`
//! is a host and no more. So is `nid001234`: machines with consecutive numbers differ in how many
//! hosts share a switch, and a wrong guess would be worse than none. Give a pattern there.
//!
//! # Domains
//!
//! The part after the first dot of a name is its domain. It becomes the site, so that hosts of one
//! domain are nearer to each other than to hosts of another. An address such as `10.0.0.7` is not a
//! name and has no domain.

use crate::{Label, LevelKind, Place};
use std::net::IpAddr;

/// The patterns of common naming schemes, in the order in which they are tried.
pub const SCHEMES: [&str; 6] = [
    // Cabinet, chassis, slot. Board and node are on one blade.
    "(x#)(c#)(s#)b#n#",
    // Rack, chassis (or individual rack unit), node.
    "(r#)(c#)n#",
    "(r#)(i#)n#",
    "(r#)n#",
    "(rack#)-@#",
    // Group and number, as in node-3-12.
    "@-(#)-#",
];

/// The largest length of a pattern, in bytes. Host names have at most 253.
pub const PATTERN_LIMIT: usize = 256;

/// Why a host pattern cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is not a pattern.
    #[error("the host pattern `{pattern}` {reason}")]
    Malformed {
        /// The pattern as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It does not match the name of a host.
    #[error(
        "the host pattern `{pattern}` does not match the host name `{host}`; in a \
         pattern, # stands for a number, % for one digit, @ for letters, * for anything, and what \
         is in parentheses is a level, as in (r#)(c#)n# for r3c1n07"
    )]
    NoMatch {
        /// The pattern as it was given.
        pattern: String,
        /// The name of the host, without its domain.
        host: String,
    },
}

/// The place of a host by its name, read by the user's pattern, if there is one, or by [`SCHEMES`].
pub(crate) fn place(name: &str, pattern: Option<&str>) -> Result<Place, PatternError> {
    let (host, domain) = split(name);
    let levels = match pattern {
        Some(text) => Pattern::parse(text)?.levels(host).ok_or_else(|| PatternError::NoMatch {
            pattern: text.to_owned(),
            host: host.to_owned(),
        })?,
        None => SCHEMES
            .iter()
            .find_map(|scheme| Pattern::parse(scheme).ok()?.levels(host))
            .unwrap_or_default(),
    };
    let site = domain.map(|domain| Label::new(LevelKind::Site, domain));
    let switches = levels.into_iter().map(|level| Label::new(LevelKind::Switch, level));
    let host = Label::new(LevelKind::Host, host);
    Ok(Place::new(site.into_iter().chain(switches).chain([host]).collect()))
}

/// Splits a name into the host and the domain.
pub(crate) fn split(name: &str) -> (&str, Option<&str>) {
    let is_address = name.parse::<IpAddr>().is_ok();
    match name.split_once('.') {
        Some((host, domain)) if !is_address && !host.is_empty() && !domain.is_empty() => {
            (host, Some(domain))
        }
        _ => (name, None),
    }
}

struct Pattern {
    tokens: Vec<Token>,
}

#[derive(Clone, Copy)]
enum Token {
    /// One character of a class.
    One(CharClass),
    /// One or more characters of a class.
    Many(CharClass),
    /// The beginning and the end of a level.
    Open,
    Close,
}

#[derive(Clone, Copy)]
enum CharClass {
    Digit,
    Letter,
    NoDot,
    Just(char),
}

impl CharClass {
    fn has(self, c: char) -> bool {
        match self {
            CharClass::Digit => c.is_ascii_digit(),
            CharClass::Letter => c.is_ascii_alphabetic(),
            CharClass::NoDot => c != '.',
            CharClass::Just(own) => own == c,
        }
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, PatternError> {
        let malformed = |reason| PatternError::Malformed { pattern: text.to_owned(), reason };
        if text.is_empty() {
            return Err(malformed("is empty"));
        }
        if text.len() > PATTERN_LIMIT {
            return Err(malformed("is longer than 256 bytes"));
        }
        let mut tokens = Vec::new();
        for c in text.chars() {
            let inside = matches!(
                tokens.iter().rev().find(|t| matches!(t, Token::Open | Token::Close)),
                Some(Token::Open)
            );
            tokens.push(match c {
                '#' => Token::Many(CharClass::Digit),
                '%' => Token::One(CharClass::Digit),
                '@' => Token::Many(CharClass::Letter),
                '*' => Token::Many(CharClass::NoDot),
                '(' if inside => return Err(malformed("has parentheses in parentheses")),
                '(' => Token::Open,
                ')' if !inside => return Err(malformed("has a `)` without a `(`")),
                ')' if matches!(tokens.last(), Some(Token::Open)) => {
                    return Err(malformed("has nothing between `(` and `)`"));
                }
                ')' => Token::Close,
                other => Token::One(CharClass::Just(other)),
            });
        }
        match tokens.iter().rev().find(|t| matches!(t, Token::Open | Token::Close)) {
            Some(Token::Open) => Err(malformed("has a `(` without a `)`")),
            _ => Ok(Pattern { tokens }),
        }
    }

    /// The levels that this pattern finds in a name; `None` if it does not match.
    fn levels(&self, name: &str) -> Option<Vec<String>> {
        let name: Vec<char> = name.chars().collect();
        // ends[t][c]: whether the tokens from `t` on match the characters from `c` on. Filling it
        // from the back takes tokens × characters steps for every pattern; backtracking would take
        // exponentially many for `#######x`.
        let mut ends = vec![vec![false; name.len() + 2]; self.tokens.len() + 1];
        ends[self.tokens.len()][name.len()] = true;
        for (t, token) in self.tokens.iter().enumerate().rev() {
            for c in (0..=name.len()).rev() {
                let fits = |class: CharClass| name.get(c).is_some_and(|&found| class.has(found));
                ends[t][c] = match *token {
                    Token::Open | Token::Close => ends[t + 1][c],
                    Token::One(class) => fits(class) && ends[t + 1][c + 1],
                    Token::Many(class) => fits(class) && (ends[t][c + 1] || ends[t + 1][c + 1]),
                };
            }
        }
        if !ends[0][0] {
            return None;
        }
        // Walk along a match in which each repetition is as long as possible.
        let (mut c, mut levels) = (0, Vec::new());
        let mut level: Option<String> = None;
        for (t, token) in self.tokens.iter().enumerate() {
            match *token {
                Token::Open => level = Some(String::new()),
                Token::Close => levels.extend(level.take()),
                Token::One(_) | Token::Many(_) => loop {
                    if let Some(level) = &mut level {
                        level.push(name[c]);
                    }
                    c += 1;
                    let goes_on = matches!(*token, Token::Many(_)) && ends[t][c];
                    if !goes_on {
                        break;
                    }
                },
            }
        }
        Some(levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, pattern: Option<&str>) -> String {
        place(name, pattern).unwrap().to_string()
    }

    #[test]
    fn common_schemes() {
        let by_scheme = |name| path(name, None);
        assert_eq!(by_scheme("r3c1n07"), "switch r3, switch c1, host r3c1n07");
        assert_eq!(by_scheme("r1i2n3"), "switch r1, switch i2, host r1i2n3");
        assert_eq!(by_scheme("r12n3"), "switch r12, host r12n3");
        assert_eq!(by_scheme("rack4-node17"), "switch rack4, host rack4-node17");
        assert_eq!(by_scheme("node-3-12"), "switch 3, host node-3-12");
        assert_eq!(
            by_scheme("x1000c2s7b0n1"),
            "switch x1000, switch c2, switch s7, host x1000c2s7b0n1"
        );
    }

    #[test]
    fn names_without_levels() {
        for name in ["nid001234", "cn12", "login", "ip-10-0-1-23", "10.0.0.7", ".", "a..b"] {
            assert!(place(name, None).unwrap().labels().len() <= 2, "{name}");
        }
        assert_eq!(path("nid001234", None), "host nid001234");
        assert_eq!(path("10.0.0.7", None), "host 10.0.0.7");
    }

    #[test]
    fn the_domain_is_the_site() {
        assert_eq!(path("r1n2.hpc.example", None), "site hpc.example, switch r1, host r1n2");
    }

    #[test]
    fn patterns() {
        assert_eq!(path("nid001234", Some("nid(%%%%)%%")), "switch 0012, host nid001234");
        assert_eq!(path("eu-a-17", Some("(@)-(@)-#")), "switch eu, switch a, host eu-a-17");
        assert_eq!(path("b7_x9z", Some("(b#)_*")), "switch b7, host b7_x9z");
        // A repetition leaves enough characters for the rest.
        assert_eq!(path("n1234", Some("n(#)%")), "switch 123, host n1234");
        assert_eq!(path("n12.a.org", Some("n(%)%")), "site a.org, switch 1, host n12");
    }

    #[test]
    fn a_pattern_that_does_not_match_says_so() {
        let text = place("cn12", Some("(r#)n#")).unwrap_err().to_string();
        assert!(text.starts_with(
            "the host pattern `(r#)n#` does not match the host name `cn12`; in a pattern, #"
        ));
    }

    #[test]
    fn malformed_patterns_say_why() {
        let text = |pattern: &str| place("n1", Some(pattern)).unwrap_err().to_string();
        assert_eq!(text(""), "the host pattern `` is empty");
        assert_eq!(text("(n#"), "the host pattern `(n#` has a `(` without a `)`");
        assert_eq!(text("n#)"), "the host pattern `n#)` has a `)` without a `(`");
        assert_eq!(text("((n)#)"), "the host pattern `((n)#)` has parentheses in parentheses");
        assert_eq!(text("()n#"), "the host pattern `()n#` has nothing between `(` and `)`");
        assert!(text(&"#".repeat(257)).ends_with("is longer than 256 bytes"));
    }

    #[test]
    fn no_pattern_takes_exponential_time() {
        let (pattern, name) = (format!("{}x", "#".repeat(200)), "1".repeat(250));
        assert!(matches!(place(&name, Some(&pattern)), Err(PatternError::NoMatch { .. })));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(name in "\\PC{0,24}", pattern in "[()#%@*a1.\\-]{0,10}") {
            let _ = place(&name, Some(&pattern));
            proptest::prop_assert!(place(&name, None).is_ok());
        }

        #[test]
        fn a_name_matches_the_pattern_it_is_an_instance_of(
            rack in 0..999u32, chassis in 0..99u32, node in 0..9999u32
        ) {
            let name = format!("r{rack}c{chassis}n{node:04}");
            proptest::prop_assert_eq!(
                path(&name, Some("(r#)(c#)n%%%%")),
                format!("switch r{rack}, switch c{chassis}, host {name}")
            );
        }
    }
}
