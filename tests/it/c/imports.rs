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

#[test]
fn a_module_of_ffi_imports_only_modules_above_it() {
    let source = workspace().join("ffi/src");
    let read = |name: &str| fs::read_to_string(source.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = read("lib.rs");
    let modules: Vec<_> = root.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    assert!(modules.len() > 30, "lib.rs declares the modules");
    for (place, module) in modules.iter().enumerate() {
        for import in imports(&read(&format!("{module}.rs")), &modules) {
            let above = modules.iter().position(|known| *known == import).is_some_and(|other| other < place);
            assert!(
                above || import == *module,
                "ffi/src/{module}.rs imports {import}, which is not above it in lib.rs"
            );
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
