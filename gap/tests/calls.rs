//! Calls that end with a result, or with an error that GAP outlives.

use std::sync::LazyLock;
use std::thread;
use ultramarine_gap::{Function, GapError, Needs, Pool, Settings, Value};

static GAP: LazyLock<Pool> = LazyLock::new(|| Pool::new(Settings::default()));

#[track_caller]
fn says(result: &Result<Value, GapError>, expected: &str) {
    assert_eq!(result, &Err(GapError::Said { message: expected.to_owned() }));
    assert_eq!(GAP.call("Phi", &[12.into()]), Ok(Value::from(4)));
}

#[test]
fn functions_are_called_by_name_and_by_source() {
    assert_eq!(GAP.call("Phi", &[36.into()]), Ok(Value::from(12)));
    for n in 0..3 {
        assert_eq!(GAP.call_source("x -> x^2", &[n.into()]), Ok(Value::from(n * n)));
    }
    let several_lines = "function(x, y)\n  # The larger.\n  return Maximum(x, y);\nend # of it";
    assert_eq!(GAP.call_source(several_lines, &[3.into(), 4.into()]), Ok(Value::from(4)));
    assert_eq!(GAP.call_source("function() end", &[]), Ok(Value::Nothing));
}

#[test]
fn what_is_printed_does_not_harm_the_result() {
    let prints = "function(x) Print(\"1 3 0\\n+ 7\\n\"); PrintTo(\"*errout*\", x); return x; end";
    assert_eq!(GAP.call_source(prints, &["so\n".into()]), Ok(Value::from("so\n")));
    assert_eq!(GAP.call("Print", &["hello".into()]), Ok(Value::Nothing));
}

#[test]
fn errors_are_in_the_words_of_gap() {
    let division = "Error, Rational operations: <divisor> must not be zero";
    says(&GAP.call_source("x -> 1/x", &[0.into()]), division);
    says(&GAP.call_source("{} -> Error(\"two\\nlines \", [ 1 ])", &[]), "Error, two\nlines [ 1 ]");
    says(&GAP.call("NoSuchFunction", &[]), "Error, VAL_GVAR: No value bound to NoSuchFunction");
    let unbound = GAP.call_source("x -> NoSuchGlobal + x", &[1.into()]).unwrap_err().to_string();
    let expected = "Error, Variable: 'NoSuchGlobal' must have an assigned value";
    assert!(unbound.ends_with(expected), "{unbound}");
    let syntax = GAP.call_source("function(x)\n  return x +;\nend", &[1.into()]);
    let message = "Syntax error: expression expected in stream:2\n  return x +;\n            ^";
    says(&syntax, message);
    says(&GAP.call_source("3", &[]), "Error, this is no function: 3");
    says(&GAP.call("Phi", &[Value::Nothing]), "Error, nothing cannot be an argument");
    let deep = "function(n) local f; f := n -> 1 + f(n + 1); return f(n); end";
    says(&GAP.call_source(deep, &[0.into()]), "Error, recursion depth trap (5000)");
}

#[test]
fn options_end_with_the_call_that_set_them() {
    let fails = "{} -> CallFuncList(Error, [\"so\"] : depth := 3)";
    assert!(GAP.call_source(fails, &[]).is_err());
    assert_eq!(GAP.call("ValueOption", &["depth".into()]), Ok(Value::Fail));
}

#[test]
fn a_result_that_does_not_travel_is_named() {
    let not_sendable = |result: Result<Value, GapError>, expected: &str| match result {
        Err(GapError::NotSendable { what }) => assert_eq!(what, expected),
        other => panic!("{other:?}"),
    };
    let group = GAP.call("SymmetricGroup", &[5.into()]);
    not_sendable(group, "component object SymmetricGroup( [ 1 .. 5 ] )");
    let hole = GAP.call_source("{} -> [ 1, [ 1,, 3 ] ]", &[]);
    not_sendable(hole, "non-dense plain list [ 1,, 3 ]");
    let nested = GAP.call_source("n -> Iterated([ 1 .. n ], { x, y } -> [ x ])", &[1100.into()]);
    not_sendable(nested, "a value in more than 1000 lists");
    // Printed in full it would be longer than any memory.
    let doubled = "function() local l, i; l := [ 1 ]; for i in [ 1 .. 60 ] do l := [ l, l ]; od; \
                return [ l,, l ]; end";
    let many = "{} -> GroupByGenerators(List([ 2 .. 1000 ], i -> (1, i)))";
    for long in [doubled, many] {
        let Err(GapError::NotSendable { what }) = GAP.call_source(long, &[]) else {
            panic!("it cannot be sent: {long}")
        };
        assert!(what.len() == 203 && what.ends_with("..."), "{what}");
    }
}

#[test]
fn threads_call_at_once() {
    let pool = Pool::new(Settings::default().processes(2));
    let order = "n -> [ n, GAPInfo.KernelInfo.KERNEL_VERSION ]";
    thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for n in 0..50 {
                    let n = 100 * thread + n;
                    let result: Vec<Value> =
                        pool.call_source(order, &[n.into()]).unwrap().try_into().unwrap();
                    assert_eq!(result[0], Value::from(n));
                }
            });
        }
    });
    assert!(format!("{pool:?}").contains("2 processes, 2 of them idle"), "{pool:?}");
}

#[test]
fn what_calls_need_is_sent_once() {
    let pool = Pool::new(Settings::default());
    let texts = ["Add(ULTRAMARINE_COMPILED, 1);", "UltramarineNeeded := 7;"].map(str::to_owned);
    let needed = "{} -> [ Number(ULTRAMARINE_COMPILED, IsInt), UltramarineGiven ]";
    let call = |texts, number, given: i32| {
        let given = given.into();
        let needs = Needs { texts, given: Some((number, &given)) };
        pool.call_with_needs(|| false, needs, Function::Source(needed), &[])
    };
    assert_eq!(call(&texts[..1], 1, 5), Ok(vec![1, 5].into()));
    // By its number it is the same value, and what was read is not read again.
    assert_eq!(call(&texts[..], 1, 6), Ok(vec![1, 5].into()));
    assert_eq!(call(&texts[..], 2, 6), Ok(vec![1, 6].into()));
    assert_eq!(pool.call_source("{} -> UltramarineNeeded", &[]), Ok(7.into()));
}

#[test]
fn libraries_are_read_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.g");
    std::fs::write(&file, "Twice := x -> 2 * x;\nAlso := NoSuchFunctionYet -> Twice;\n").unwrap();
    let settings = Settings::default().library_file(&file).library("Four := x -> Twice(Twice(x));");
    assert_eq!(Pool::new(settings).call("Four", &[1.into()]), Ok(Value::from(4)));
}

#[test]
fn an_error_in_a_library_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.g");
    std::fs::write(&file, "f := function(x)\n  return x +;\nend;\n").unwrap();
    let bad = Pool::new(Settings::default().library_file(&file)).available().unwrap_err();
    let path = file.display();
    let expected = format!(
        "GAP cannot read {path}: Syntax error: expression expected in {path}:2\n  return x +;\n\
         \x20           ^"
    );
    assert!(bad.to_string().starts_with(&expected), "{bad}");

    let text = Settings::default().library("x := 1;\ny := x / 0;\nz := 2;");
    let bad = Pool::new(text).available().unwrap_err().to_string();
    let expected = "GAP cannot read a library's text: Error, Rational operations: <divisor> must";
    assert!(bad.starts_with(expected), "{bad}");

    let missing = Settings::default().library_file("/no/such/file.g");
    let bad = Pool::new(missing).available().unwrap_err().to_string();
    assert!(bad.contains("file \"/no/such/file.g\" must exist and be readable"), "{bad}");
}
