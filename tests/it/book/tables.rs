//! The tables of the book that come from the code. `TOWNSQUARE_BLESS=1 cargo test` writes them anew.

use std::{collections::BTreeSet, env, fmt::Write as _, fs};

use syn::{Arm, Expr, ImplItem, Item, Lit, Pat, Stmt};
use townsquare::{ErrorKind, Operation, check::FindingCode, config::OPTIONS, metrics::DESCRIPTIONS};
use townsquare_tests::paths::workspace;

use super::pages::folder;

fn source(path: &str) -> String {
    let text = fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.replace("\r\n", "\n")
}

/// Compares a table with `docs/src/generated`, or writes it there.
fn compare(name: &str, table: &str) {
    let file = folder().join("generated").join(name);
    if env::var("TOWNSQUARE_BLESS").as_deref() == Ok("1") {
        return fs::write(&file, table).expect("docs/src/generated can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert!(kept == table, "docs/src/generated/{name} is out of date; TOWNSQUARE_BLESS=1 cargo test writes it anew");
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_table_of_options() {
    let mut table = "| option | meaning | default |\n|---|---|---|\n".to_owned();
    for (name, description) in OPTIONS {
        let (meaning, default) = description.split_once(" Default: ").expect("a description names the default");
        let default = default.trim_end_matches('.');
        let _ = writeln!(table, "| `{name}` | {} | {} |", cell(meaning), cell(default));
    }
    compare("options.md", &table);
}

#[test]
fn the_table_of_metrics() {
    let mut table = "| metric | kind | unit | labels | meaning |\n|---|---|---|---|---|\n".to_owned();
    for metric in DESCRIPTIONS {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, unit) = (metric.name, metric.kind.as_str(), metric.unit);
        let _ = writeln!(table, "| `{name}` | {kind} | {unit} | {} | {} |", labels.join(", "), cell(metric.about));
    }
    compare("metrics.md", &table);
}

/// The documentation of a kind, from `error_kinds!` in core/src/error.rs.
fn meaning(kind: ErrorKind, source: &str) -> String {
    let kinds = source.split("\nerror_kinds! {\n").nth(1).and_then(|rest| rest.split("\n}\n").next());
    let mut text = String::new();
    for line in kinds.expect("core/src/error.rs declares the kinds").lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(more) => text.push_str(more),
            None if line.contains(&format!("\"{}\"", kind.as_str())) => break,
            None => text.clear(),
        }
    }
    assert!(!text.is_empty(), "{} has a documentation", kind.as_str());
    text.trim().replace("[`", "`").replace("`]", "`")
}

/// The exception of a kind, from `BY_KIND` in python/townsquare/exceptions.py.
fn exception(kind: ErrorKind, source: &str) -> String {
    let start = format!("    \"{}\": ", kind.as_str());
    let line = source.lines().find_map(|line| line.strip_prefix(&start));
    line.expect("BY_KIND has every kind").trim_end_matches(',').to_owned()
}

#[test]
fn the_table_of_error_kinds() {
    let (core, python, c) =
        (source("core/src/error.rs"), source("python/townsquare/exceptions.py"), source("include/townsquare.h"));
    let mut table = "| kind | Rust | Python | C | status | when |\n|---|---|---|---|---|---|\n".to_owned();
    for kind in ErrorKind::ALL {
        let (name, class) = (kind.as_str(), exception(kind, &python));
        let status = format!("TSQ_{}", name.to_uppercase());
        assert!(c.contains(&format!("    {status} = ")), "the header has {status}");
        let (http, when) = (kind.status(), cell(&meaning(kind, &core)));
        let _ = writeln!(table, "| `{name}` | `{kind:?}` | `{class}` | `{status}` | {http} | {when} |");
    }
    compare("kinds.md", &table);
}

/// The last names of the paths in a pattern: `SignUp` and `UpdateUser` of `Some(Of::SignUp | Of::UpdateUser)`.
fn names(pattern: &Pat) -> Vec<String> {
    match pattern {
        Pat::Path(path) => path.path.segments.last().map(|name| name.ident.to_string()).into_iter().collect(),
        Pat::Ident(name) => vec![name.ident.to_string()],
        Pat::Lit(literal) => match &literal.lit {
            Lit::Str(text) => vec![text.value()],
            _ => Vec::new(),
        },
        Pat::Or(or) => or.cases.iter().flat_map(names).collect(),
        Pat::Paren(inner) => names(&inner.pat),
        Pat::TupleStruct(some) => some.elems.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// When an explanation is given: operations, a code, and what the guard asks for.
fn condition(operation: &[String], code: &[String], guard: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let known = |name: &str| Operation::ALL.iter().find(|known| format!("{known:?}") == name).copied();
    let operations: Vec<_> =
        operation.iter().filter_map(|name| known(name)).map(|found| format!("`{}`", found.name())).collect();
    if !operations.is_empty() {
        parts.push(operations.join(", "));
    }
    match code.first().map(String::as_str) {
        // `None` is the pattern of an error without a code.
        Some("None") => parts.push("no code".to_owned()),
        Some("PERMISSION_DENIED") => parts.push("code `42501`".to_owned()),
        Some("OUTCOME_UNKNOWN") => parts.push("code `08007`".to_owned()),
        Some("DATA_CORRUPTED") => parts.push("code `XX001`".to_owned()),
        Some("READ_ONLY") => parts.push("code `25006`".to_owned()),
        Some("TOO_MANY_CONNECTIONS") => parts.push("code `53300`".to_owned()),
        Some("IO_ERROR") => parts.push("code `58030`".to_owned()),
        Some("NO_DATABASE") => parts.push("code `3D000`".to_owned()),
        Some("NOT_MIGRATED") => parts.push("code `55000`".to_owned()),
        Some(other) => panic!("tests/it/book/tables.rs has no words for the code {other}"),
        None => {}
    }
    match guard {
        Some("is_loss_of_bytes") => parts.push("the reason is that its bytes are gone".to_owned()),
        Some("is_folder_in_the_way") => parts.push("a folder has the name of a file".to_owned()),
        Some("is_handle_closed") => parts.push("a handle was closed".to_owned()),
        Some("is_of_files") => parts.push("an operation on files".to_owned()),
        Some("is_out_of_descriptors") => parts.push("the cause is that no more files can be opened".to_owned()),
        Some("has_moved") => parts.push("the database has moved to another place".to_owned()),
        Some("is_left_unmade") => parts.push("the option `migrate` is false".to_owned()),
        Some("names_option") => parts.push("the message begins with an option".to_owned()),
        Some("is_for_service") => parts.push("an operation for the service alone".to_owned()),
        Some(guard) if guard.contains("507") => parts.push("status 507, or code `53100`".to_owned()),
        Some(other) => panic!("tests/it/book/tables.rs has no words for the guard {other}"),
        None => {}
    }
    if parts.is_empty() { "else".to_owned() } else { parts.join("; ") }
}

/// The kinds of an arm, when it fits, and its text.
fn advice(arm: &Arm) -> (Vec<&'static str>, String, String) {
    let Pat::Tuple(tuple) = &arm.pat else { panic!("an arm matches kind, operation and code") };
    // `..` stands for the parts that do not count.
    let part = |index: usize| tuple.elems.get(index).map(names).unwrap_or_default();
    let guard = arm.guard.as_ref().map(|(_, guard)| match &**guard {
        Expr::Path(path) => path.path.segments[0].ident.to_string(),
        Expr::MethodCall(call) => call.method.to_string(),
        other => quote_numbers(other),
    });
    let text = match &*arm.body {
        Expr::Block(block) => match block.block.stmts.first() {
            Some(Stmt::Expr(Expr::Lit(literal), _)) => literal.lit.clone(),
            _ => panic!("an arm is one text"),
        },
        Expr::Lit(literal) => literal.lit.clone(),
        _ => panic!("an arm is one text"),
    };
    let Lit::Str(text) = text else { panic!("an arm is one text") };
    let kind_of = |name: &String| ErrorKind::ALL.into_iter().find(|kind| format!("{kind:?}") == *name);
    let kinds = part(0).iter().map(|name| kind_of(name).expect("a kind").as_str()).collect();
    (kinds, condition(&part(1), &part(2), guard.as_deref()), text.value())
}

/// The numbers in an expression such as `self.status() == 507 || …`.
fn quote_numbers(expression: &Expr) -> String {
    match expression {
        Expr::Binary(both) => format!("{} {}", quote_numbers(&both.left), quote_numbers(&both.right)),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// The arms of the `match` in `Error::explanation`.
fn explanation_arms() -> Vec<Arm> {
    let file = syn::parse_file(&source("core/src/error/explanation.rs")).expect("Rust");
    let functions =
        file.items.into_iter().filter_map(|item| if let Item::Impl(of) = item { Some(of.items) } else { None });
    let function = functions.flatten().find_map(|item| match item {
        ImplItem::Fn(function) if function.sig.ident == "explanation" => Some(function),
        _ => None,
    });
    let body = function.expect("Error::explanation").block.stmts;
    let found = body.into_iter().find_map(|statement| match statement {
        Stmt::Expr(Expr::Match(found), _) => Some(found.arms),
        _ => None,
    });
    found.expect("Error::explanation is a match")
}

#[test]
fn the_table_of_advice() {
    let mut table = "| kind | when | what to do |\n|---|---|---|\n".to_owned();
    let rows: Vec<_> = explanation_arms().iter().map(advice).collect();
    for (kinds, when, text) in &rows {
        // A kind with one explanation has it always.
        let is_only = rows.iter().filter(|(others, ..)| others.iter().any(|other| kinds.contains(other))).count() == 1;
        let when = if is_only { "always" } else { when };
        let names: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let names = if names.is_empty() { "any".to_owned() } else { names.join(", ") };
        let _ = writeln!(table, "| {names} | {when} | {} |", cell(text));
    }
    for kind in ErrorKind::ALL {
        assert!(table.contains(&format!("`{}`", kind.as_str())), "{kind:?}");
    }
    compare("advice.md", &table);
}

/// The SQLSTATEs in the sources of core, outside of tests: literals of five characters with a digit.
fn codes() -> BTreeSet<String> {
    let sources = crate::tidy::sources(&["core/src"], &[".rs"]).into_iter().filter(|(path, _)| !path.contains("tests"));
    let literals = sources.flat_map(|(_, text)| text.split('"').map(str::to_owned).collect::<Vec<_>>());
    let is_code = |text: &String| {
        let is_state = text.chars().all(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
        text.len() == 5 && is_state && text.chars().filter(char::is_ascii_digit).count() >= 2
    };
    literals.filter(is_code).collect()
}

/// Codes that the library turns into others before a program sees them.
const INTERNAL: [&str; 4] = ["TQ401", "TQ410", "TQ411", "P0001"];

#[test]
fn the_chapter_of_errors_names_every_code() {
    let codes = codes();
    assert!(codes.contains("23505") && codes.contains("08007") && codes.len() > 20, "{codes:?}");
    let chapter = source("docs/src/errors.md");
    let missing: Vec<_> = codes
        .iter()
        .filter(|code| !INTERNAL.contains(&code.as_str()) && !chapter.contains(&format!("`{code}`")))
        .collect();
    assert!(missing.is_empty(), "docs/src/errors.md lacks {missing:?}");
}

#[test]
fn the_chapter_of_restore_names_codes_and_options_that_exist() {
    let known: BTreeSet<&str> = FindingCode::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(OPTIONS.iter().map(|(name, _)| *name))
        .chain(ErrorKind::ALL.iter().map(|kind| kind.as_str()))
        .chain(Operation::ALL.iter().map(|operation| operation.name()))
        .collect();
    let header = source("include/townsquare.h");
    let is_known =
        |word: &str| known.contains(word) || word.starts_with("tsq_") && header.contains(&format!("{word}("));
    let chapter = source("docs/src/restore.md");
    let words: Vec<_> = chapter.split('`').skip(1).step_by(2).filter(|word| word.contains('_')).collect();
    let is_name = |word: &str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let unknown: Vec<_> = words.iter().filter(|word| is_name(word) && !is_known(word)).collect();
    assert!(words.len() > 20 && unknown.is_empty(), "docs/src/restore.md names {unknown:?}, which do not exist");
}
