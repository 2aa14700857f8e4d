//! Finds the places of a file where a small mistake could be made.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Item, Lit, Pat, ReturnType, Signature, Stmt};

use super::site::{Change, Site};
use crate::process::{Failure, Result};

/// Larger numbers are mostly tuned: one more or less is no mistake.
const NUMBER_MAX: u64 = 3;

/// The traits whose methods only make texts for people.
const FOR_PEOPLE: [&str; 3] = ["Debug", "Display", "Error"];

/// The names of the files' modules that are below a file, and the places in it.
pub(crate) struct Found {
    pub(crate) modules: Vec<String>,
    /// The outer ones before those inside.
    pub(crate) sites: Vec<Site>,
}

/// Looks through the `text` of the file at this path.
///
/// # Errors
/// It is not Rust.
pub(crate) fn find(path: &str, text: &str) -> Result<Found> {
    let file = syn::parse_file(text)
        .map_err(|error| Failure(format!("{path}: cannot be parsed: {error}")))?;
    let is_module = |item: &Item| match item {
        Item::Mod(module) if module.content.is_none() && !is_conditional(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    };
    let modules = file.items.iter().filter_map(is_module).collect();
    let mut finder = Finder { text, sites: Vec::new(), function: 0..0 };
    finder.visit_file(&file);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end));
    Ok(Found { modules, sites })
}

struct Finder<'a> {
    text: &'a str,
    sites: Vec<Site>,
    function: Range<usize>,
}

/// Whether it is compiled for tests only, or not always.
fn is_conditional(attributes: &[Attribute]) -> bool {
    let is_so = |attribute: &Attribute| {
        ["cfg", "cfg_attr", "test"].iter().any(|name| attribute.path().is_ident(name))
    };
    attributes.iter().any(is_so)
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, change: Change, mutated: String) {
        self.sites.push(Site { range, change, mutated, function: self.function.clone() });
    }

    fn code(&self, of: &impl Spanned) -> &str {
        &self.text[of.span().byte_range()]
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        let is_left_out =
            signature.constness.is_some() || matches!(signature.safety, syn::Safety::Unsafe(_));
        if is_left_out {
            return;
        }
        let range = signature.span().byte_range().start..block.span().byte_range().end;
        let outer = std::mem::replace(&mut self.function, range);
        self.block(block, matches!(signature.output, ReturnType::Default));
        self.function = outer;
    }

    /// A block; its last expression has no value if it `is_unit`.
    fn block(&mut self, block: &Block, is_unit: bool) {
        for (index, statement) in block.stmts.iter().enumerate() {
            match statement {
                Stmt::Expr(expression, Some(_)) => {
                    self.drop_of(statement.span().byte_range(), expression, "");
                    self.visit_expr(expression);
                }
                Stmt::Expr(expression, None) if is_unit || index + 1 < block.stmts.len() => {
                    self.without_value(expression);
                }
                _ => self.visit_stmt(statement),
            }
        }
    }

    /// An expression whose type is `()`, if it has one.
    fn without_value(&mut self, expression: &Expr) {
        match expression {
            Expr::If(one) if one.attrs.is_empty() => {
                self.condition(&one.cond);
                self.block(&one.then_branch, true);
                if let Some((_, otherwise)) = &one.else_branch {
                    self.without_value(otherwise);
                }
            }
            Expr::Match(one) if one.attrs.is_empty() => {
                self.visit_expr(&one.expr);
                for arm in one.arms.iter().filter(|arm| !is_conditional(&arm.attrs)) {
                    self.visit_pat(&arm.pat);
                    self.without_value(&arm.body);
                }
            }
            Expr::Block(one) if one.attrs.is_empty() => self.block(&one.block, true),
            _ => {
                self.drop_of(expression.span().byte_range(), expression, "{}");
                self.visit_expr(expression);
            }
        }
    }

    /// What does something, and may be left out: then this is there instead.
    fn drop_of(&mut self, range: Range<usize>, expression: &Expr, instead: &str) {
        let change = match expression {
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => Change::ExitDropped,
            // It would be dropped at the end of its block, mostly a line later.
            Expr::Call(call) if is_drop(call) => return,
            Expr::MethodCall(_)
            | Expr::Call(_)
            | Expr::Assign(_)
            | Expr::Try(_)
            | Expr::Await(_) => Change::Dropped,
            Expr::Binary(binary) if is_assignment(self.code(&binary.op)) => Change::Dropped,
            _ => return,
        };
        self.add(range, change, instead.to_owned());
    }

    fn condition(&mut self, condition: &Expr) {
        match condition {
            // A chain with a `let` is no value: each part of it is a condition of its own.
            Expr::Binary(binary) if has_let(condition) => {
                self.condition(&binary.left);
                self.condition(&binary.right);
            }
            Expr::Let(_) => self.visit_expr(condition),
            // Negated it is what its operator becomes.
            Expr::Binary(binary) if matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_)) => {
                self.visit_expr(condition);
            }
            _ => {
                let range = condition.span().byte_range();
                let mutated = format!("!({})", &self.text[range.clone()]);
                self.add(range, Change::Negated, mutated);
                self.visit_expr(condition);
            }
        }
    }
}

/// Whether it is `drop(variable)`.
fn is_drop(call: &syn::ExprCall) -> bool {
    let is_named = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("drop"));
    is_named && matches!(call.args.first(), Some(Expr::Path(_)))
}

/// Whether the chain of conditions has a `let`.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Operators that are easily written for each other.
const NEIGHBOURS: [(&str, &str); 6] =
    [("<", "<="), (">", ">="), ("==", "!="), ("&&", "||"), ("+", "-"), ("+=", "-=")];

/// The operator, and the one that is easily written instead.
fn neighbour(operator: &str) -> Option<(&'static str, &'static str)> {
    let both = NEIGHBOURS.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]);
    both.into_iter().find(|(from, _)| *from == operator)
}

/// Whether it changes what is to its left.
fn is_assignment(operator: &str) -> bool {
    operator.ends_with('=') && !["==", "!=", "<=", ">="].contains(&operator)
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(one) if !is_conditional(&one.attrs) => {
                self.function(&one.sig, &one.block);
            }
            Item::Mod(one) if !is_conditional(&one.attrs) => visit::visit_item_mod(self, one),
            Item::Trait(one) if !is_conditional(&one.attrs) => visit::visit_item_trait(self, one),
            Item::Impl(one) if !is_conditional(&one.attrs) => {
                let name = one.trait_.as_ref().and_then(|(path, _)| path.segments.last());
                if !name.is_some_and(|name| FOR_PEOPLE.iter().any(|known| name.ident == known)) {
                    visit::visit_item_impl(self, one);
                }
            }
            // Types, constants, and macros, whose code is no code yet.
            _ => {}
        }
    }

    fn visit_impl_item_fn(&mut self, one: &'ast syn::ImplItemFn) {
        if !is_conditional(&one.attrs) {
            self.function(&one.sig, &one.block);
        }
    }

    fn visit_trait_item_fn(&mut self, one: &'ast syn::TraitItemFn) {
        if let Some(block) = one.default.as_ref().filter(|_| !is_conditional(&one.attrs)) {
            self.function(&one.sig, block);
        }
    }

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    /// The length of an array is part of its type.
    fn visit_expr_repeat(&mut self, one: &'ast syn::ExprRepeat) {
        self.visit_expr(&one.expr);
    }

    /// Of patterns only the guards are code.
    fn visit_pat(&mut self, pattern: &'ast Pat) {
        let Pat::Guard(one) = pattern else { return };
        let range = one.guard.span().byte_range();
        if !has_let(&one.guard) {
            self.add(range.clone(), Change::Guard(true), "true".to_owned());
            self.add(range, Change::Guard(false), "false".to_owned());
        }
        self.visit_expr(&one.guard);
    }

    fn visit_local(&mut self, one: &'ast syn::Local) {
        if !is_conditional(&one.attrs) {
            visit::visit_local(self, one);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.block(block, false);
    }

    fn visit_expr_if(&mut self, one: &'ast syn::ExprIf) {
        self.condition(&one.cond);
        self.visit_block(&one.then_branch);
        if let Some((_, otherwise)) = &one.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, one: &'ast syn::ExprWhile) {
        self.condition(&one.cond);
        self.block(&one.body, true);
    }

    fn visit_expr_for_loop(&mut self, one: &'ast syn::ExprForLoop) {
        self.visit_expr(&one.expr);
        self.block(&one.body, true);
    }

    fn visit_expr_loop(&mut self, one: &'ast syn::ExprLoop) {
        self.block(&one.body, true);
    }

    fn visit_expr_binary(&mut self, one: &'ast syn::ExprBinary) {
        let range = one.span().byte_range();
        let other =
            neighbour(self.code(&one.op)).filter(|_| !has_let(&one.left) && !has_let(&one.right));
        if let Some((from, to)) = other {
            let operator = one.op.span().byte_range();
            let before = &self.text[range.start..operator.start];
            let behind = &self.text[operator.end..range.end];
            let mutated = [before, to, behind].concat();
            self.add(range, Change::Becomes(from, to), mutated);
        }
        visit::visit_expr_binary(self, one);
    }

    fn visit_expr_lit(&mut self, one: &'ast syn::ExprLit) {
        let Lit::Int(number) = &one.lit else { return };
        let Ok(value @ 0..=NUMBER_MAX) = number.base10_parse::<u64>() else { return };
        let names = ["0", "1", "2", "3", "4"];
        let (from, to) = (names[value as usize], names[value as usize + 1]);
        let mutated = format!("{to}{}", number.suffix());
        self.add(one.span().byte_range(), Change::Becomes(from, to), mutated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::site::Switched;

    /// The mutants of a text: what changes, and what stands there then.
    fn mutants(text: &str) -> Vec<String> {
        let found = find("a.rs", text).expect("it is Rust");
        let shown = |site: &Site| format!("{}: {}", site.change, site.mutated);
        found.sites.iter().map(shown).collect()
    }

    /// The text with switches `m0`, `m1` and so on.
    fn switched(text: &str) -> String {
        let sites = find("a.rs", text).expect("it is Rust").sites;
        let sites: Vec<_> = sites.iter().enumerate().collect();
        let switched = Switched::new(text, &sites, &|index| format!("m{index}"));
        // Every text with switches is Rust, and nothing is lost of the old.
        syn::parse_file(&switched.text).expect("it stays Rust");
        switched.text
    }

    #[test]
    fn operators_and_numbers_become_their_neighbours() {
        let text = "fn f(a: u8, b: u8) -> bool { a + 1 < b || a == b - 7 }";
        let found = mutants(text);
        let expected = [
            "`||` becomes `&&`: a + 1 < b && a == b - 7",
            "`<` becomes `<=`: a + 1 <= b",
            "`+` becomes `-`: a - 1",
            "`1` becomes `2`: 2",
            "`==` becomes `!=`: a != b - 7",
            "`-` becomes `+`: b + 7",
        ];
        assert_eq!(found, expected);
        let text = "fn f(a: u8) -> bool { a <= 2u8 }";
        assert_eq!(
            switched(text),
            "fn f(a: u8) -> bool { (if m0 { (a < 2u8) } else { (a <= (if m1 { (3u8) } else { (2u8) \
             })) }) }"
        );
    }

    #[test]
    fn conditions_are_negated_each_part_of_a_chain_by_itself() {
        assert_eq!(
            switched("fn f() { if a && let Some(b) = c && d {} while e {} }"),
            "fn f() { if m0 != (a) && let Some(b) = c && m1 != (d) {} while m2 != (e) {} }"
        );
        assert_eq!(mutants("fn f() { if !a {} }"), ["condition negated: !(!a)"]);
        assert_eq!(mutants("fn f() { if a == b {} }"), ["`==` becomes `!=`: a != b"]);
    }

    #[test]
    fn guards_hold_always_or_never() {
        assert_eq!(
            switched("fn f() -> u8 { match a { b if b.c() => d, _ => e } }"),
            "fn f() -> u8 { match a { b if m0 || (!m1 && (b.c())) => d, _ => e } }"
        );
    }

    #[test]
    fn what_has_no_value_is_dropped() {
        let text = "fn f() { a.b(); c = d; return; e += f; g()?; h!(); i }";
        assert_eq!(
            switched(text),
            "fn f() { if !m0 { a.b(); } if !m1 { c = d; } if !m2 { return; } if !m3 { (if m4 { (e \
             -= f) } else { (e += f) }); } if !m5 { g()?; } h!(); i }"
        );
        // The last expression is dropped only if it is known to have no value.
        let text = "fn f() { match a { b => c(), d => { e() } } }";
        assert_eq!(
            switched(text),
            "fn f() { match a { b => if !m0 { c() }, d => { if !m1 { e() } } } }"
        );
        assert!(mutants("fn f() -> u8 { match a { b => c(), d => { e() } } }").is_empty());
    }

    #[test]
    fn what_is_not_run_or_only_shown_is_left_out() {
        let left_out = [
            "const A: u8 = 1 + 1; static B: u8 = 1; const fn f() -> u8 { 1 }",
            "#[cfg(test)] mod tests { fn f() { a(); } }  #[test] fn g() { a(); }",
            "impl fmt::Debug for A { fn f() { a(); } }",
            "fn f() -> [u8; 1] { let [a, 1] = b else { unsafe { c(); } }; [a; 2] }",
            "unsafe fn f() { a(); }  macro_rules! g { () => { a(); } }",
            "fn f() { drop(a); }",
            "#[cfg(unix)] fn f() { a(); }  fn g() -> [u8; 1 + 1] { tracing::info!(\"{}\", 1 + 1) }",
        ];
        left_out.iter().for_each(|text| assert_eq!(mutants(text), [""; 0], "{text}"));
    }

    #[test]
    fn modules_in_other_files_are_followed_but_not_those_of_tests() {
        let found = find("a.rs", "mod b; pub mod c; #[cfg(test)] mod tests; mod d {}");
        assert_eq!(found.expect("it is Rust").modules, ["b", "c"]);
        assert!(find("a.rs", "fn").is_err());
    }
}
