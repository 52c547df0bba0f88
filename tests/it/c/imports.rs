//! The modules of ffi import only modules above them in `lib.rs`, so no two files import each other.

use std::fs;

use townsquare_tests::paths::workspace;

/// Names of `modules` that the code before the tests imports from the crate.
fn imports<'a>(text: &str, modules: &[&'a str]) -> Vec<&'a str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let (mut inside, mut found) = (false, Vec::new());
    for line in lines {
        let names = line.strip_prefix("use crate::").unwrap_or(if inside { line } else { "" });
        inside = (inside || line == "use crate::{") && line != "};";
        let words = |text: &str| text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect();
        let words: Vec<String> =
            if names.starts_with('{') { words(names) } else { words(names).into_iter().take(1).collect() };
        found.extend(modules.iter().filter(|module| words.iter().any(|word| word == *module)));
        found.extend(modules.iter().filter(|module| line.contains(&format!("crate::{module}::")) && names.is_empty()));
    }
    found
}

/// The modules that a file declares, in order.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let modules = text.lines().filter_map(|line| line.strip_prefix("mod ").or(line.strip_prefix("pub(crate) mod ")));
    modules.filter_map(|line| line.strip_suffix(';'))
}

#[test]
fn a_module_of_ffi_imports_only_modules_above_it() {
    let source = workspace().join("ffi/src");
    let read = |name: &str| fs::read_to_string(source.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = read("lib.rs");
    // The name and the path of each module. The modules of a folder come before the file of the folder's name.
    let mut modules = Vec::new();
    for module in declared(&root) {
        let text = read(&format!("{module}.rs"));
        modules.extend(declared(&text).map(|child| (child.to_owned(), format!("{module}/{child}.rs"))));
        modules.push((module.to_owned(), format!("{module}.rs")));
    }
    let names: Vec<_> = modules.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 30, "lib.rs and the files of the folders declare the modules");
    for (place, (module, path)) in modules.iter().enumerate() {
        for import in imports(&read(path), &names) {
            let is_above = names.iter().position(|known| *known == import).is_some_and(|other| other < place);
            let is_own = import == module || path.starts_with(&format!("{import}/"));
            assert!(is_above || is_own, "ffi/src/{path} imports {import}, which is not above it");
        }
    }
}

#[test]
fn imports_of_both_forms_are_seen() {
    let text = "use crate::{\n    text::{self, tsq_str},\n    handle,\n};\nuse crate::guard;\n\
                /// [`crate::call::x`]\nfn f() { crate::status::g() }";
    let found = imports(text, &["text", "handle", "guard", "call", "status", "record"]);
    assert_eq!(found, ["text", "handle", "guard", "status"]);
}
