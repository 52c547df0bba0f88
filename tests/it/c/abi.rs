//! The binary interface of the C library is the committed one: ffi/abi.txt lists what a compiled program relies on.

use std::{collections::BTreeSet, fmt::Write as _, fs, process::Command};

use townsquare_tests::{paths::workspace, temp_dir};

use super::{
    header::bindings,
    toolchain::{Language::C11, link, run, text},
};

/// The first lines of the file.
const ABOUT: &str = "\
# What a compiled program relies on, on 64-bit Linux: sizes and offsets of structs, values of constants, prototypes.
# The test the_binary_interface_is_the_committed_one compares it. TOWNSQUARE_BLESS=1 cargo test writes it.
";

/// The declarations of the header, each on one line with single spaces.
struct Declarations {
    structs: Vec<Record>,
    /// Name and constants.
    enums: Vec<(String, Vec<String>)>,
    /// Function types, sorted.
    callbacks: Vec<String>,
    /// Prototypes, sorted.
    functions: Vec<String>,
}

struct Record {
    name: String,
    /// Types and names (`const char *ptr`).
    members: Vec<String>,
}

/// The header without its comments.
fn without_comments(header: &str) -> String {
    let mut code = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    code.push_str(rest);
    code
}

/// Splits at a separator, and writes each part with single spaces.
fn parts(code: &str, separator: char) -> Vec<String> {
    let parts = code.split(separator).map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.filter(|part| !part.is_empty()).collect()
}

impl Declarations {
    fn of(header: &str) -> Declarations {
        let code = without_comments(header);
        // The macros continue on no further line; most comments are lines.
        let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let lines = lines.filter(|line| !line.starts_with('#') && !line.starts_with("extern \"C\""));
        let mut rest: &str = &lines.collect::<Vec<_>>().join("\n");
        let mut found = Declarations { structs: vec![], enums: vec![], callbacks: vec![], functions: vec![] };
        while let Some(end) = rest.find([';', '{']) {
            let head = rest[..end].trim();
            if rest[end..].starts_with(';') {
                found.add(&parts(head, ';').concat());
                rest = &rest[end + 1..];
                continue;
            }
            let (body, after) = rest[end + 1..].split_once('}').expect("a body ends");
            let (name, after) = after.split_once(';').expect("a type has a name");
            match head {
                "typedef struct" => {
                    found.structs.push(Record { name: name.trim().to_owned(), members: parts(body, ';') });
                }
                "typedef enum" => found.enums.push((name.trim().to_owned(), parts(body, ','))),
                _ => panic!("neither a struct nor an enum: {head}"),
            }
            rest = after;
        }
        assert_eq!(rest.trim().trim_matches('}').trim(), "", "text after the last declaration");
        found.callbacks.sort();
        found.functions.sort_by_key(|prototype| function_name(prototype).to_owned());
        found
    }

    fn add(&mut self, declaration: &str) {
        if declaration.starts_with("typedef struct ") {
            // An opaque type: its name is in the prototypes.
        } else if let Some(callback) = declaration.strip_prefix("typedef ") {
            self.callbacks.push(callback.to_owned());
        } else {
            self.functions.push(declaration.to_owned());
        }
    }

    /// A C program that prints sizes, alignments and offsets as the compiler has them.
    fn program(&self) -> String {
        let mut body = String::new();
        for Record { name, members } in &self.structs {
            let _ = writeln!(
                body,
                "    printf(\"struct {name}: %zu bytes, aligned to %zu\\n\", sizeof({name}), _Alignof({name}));"
            );
            for member in members {
                let field = identifiers(member).next_back().expect("a member has a name");
                let _ = writeln!(
                    body,
                    "    printf(\"  %zu: {member}, %zu bytes\\n\", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));"
                );
            }
        }
        for (name, constants) in &self.enums {
            let _ = writeln!(body, "    printf(\"enum {name}: %zu bytes\\n\", sizeof({name}));");
            for constant in constants {
                let constant = constant.split(' ').next().expect("a constant has a name");
                let _ = writeln!(body, "    printf(\"  {constant} = %d\\n\", (int){constant});");
            }
        }
        for line in self.callbacks.iter().chain(&self.functions) {
            let _ = writeln!(body, "    puts(\"{line}\");");
        }
        format!("#include <stdio.h>\n#include <townsquare.h>\n\nint main(void) {{\n{body}    return 0;\n}}\n")
    }
}

fn identifiers(code: &str) -> impl DoubleEndedIterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// The name of the function of a prototype.
fn function_name(prototype: &str) -> &str {
    let (before, _) = prototype.split_once('(').expect("a prototype has arguments");
    identifiers(before).next_back().expect("a prototype has a name")
}

/// The comment of a struct in the header.
fn comment<'a>(header: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (before, _) = header.split_once(&format!("}} {name};")).expect("the header has the struct");
    let before = &before[..before.rfind("typedef struct").expect("a struct begins")];
    before.lines().rev().take_while(|line| line.starts_with("///"))
}

/// The interface as the compiler of this machine has it; `None` and a reported skip without one.
fn interface() -> Option<String> {
    let header = fs::read_to_string(workspace().join("include/townsquare.h")).expect("the header exists");
    let declarations = Declarations::of(&header);
    let mut declared: Vec<_> = bindings().dynamic_symbols_names().map(str::to_owned).collect();
    declared.sort();
    let found: Vec<_> = declarations.functions.iter().map(|prototype| function_name(prototype).to_owned()).collect();
    assert_eq!(found, declared, "the functions that the header declares");
    let folder = temp_dir();
    let (source, program) = (folder.path().join("interface.c"), folder.path().join("interface"));
    fs::write(&source, declarations.program()).expect("a temporary folder can be written to");
    link(&source, C11, &[], &program)?;
    let output = run(&mut Command::new(&program));
    assert!(output.status.success(), "{}", text(&output));
    Some(format!("{ABOUT}\n{}", String::from_utf8(output.stdout).expect("UTF-8")))
}

#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn the_binary_interface_is_the_committed_one() {
    let Some(made) = interface() else { return };
    let path = workspace().join("ffi/abi.txt");
    if std::env::var("TOWNSQUARE_BLESS").as_deref() == Ok("1") {
        fs::write(&path, &made).expect("ffi/ can be written to");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let gone: Vec<_> = kept.lines().filter(|line| !made.lines().any(|other| other == *line)).collect();
    let new: Vec<_> = made.lines().filter(|line| !kept.lines().any(|other| other == *line)).collect();
    assert!(
        made == kept,
        "The binary interface of the C library differs from ffi/abi.txt.\nin the file alone: {gone:#?}\nin the code alone: \
         {new:#?}\nA compiled program may break: a change needs a new minor version, or adds functions alone. \
         TOWNSQUARE_BLESS=1 cargo test writes the file anew."
    );
}

#[test]
fn structs_in_arrays_do_not_grow() {
    let header = fs::read_to_string(workspace().join("include/townsquare.h")).expect("the header exists");
    let declarations = Declarations::of(&header);
    let members = declarations.structs.iter().map(|record| record.members.clone());
    let arguments = declarations.functions.iter().map(|prototype| {
        let (_, arguments) = prototype.split_once('(').expect("a prototype has arguments");
        parts(arguments.trim_end_matches(')'), ',')
    });
    // `const tsq_range *matches` and `size_t matches_len`.
    let mut arrays = BTreeSet::new();
    for declared in members.chain(arguments) {
        for pair in declared.windows(2) {
            let Some((element, name)) = pair[0].strip_prefix("const ").and_then(|array| array.split_once(" *")) else {
                continue;
            };
            if element.starts_with("tsq_") && pair[1] == format!("size_t {name}_len") {
                arrays.insert(element.to_owned());
            }
        }
    }
    assert!(arrays.len() > 9 && arrays.contains("tsq_range") && arrays.contains("tsq_new_space"), "{arrays:?}");
    arrays.retain(|name| {
        !comment(&header, name)
            .any(|line| line.contains("This struct does not grow.") || line.contains("(manual, INPUTS)"))
    });
    assert!(arrays.is_empty(), "the comments of {arrays:?}, which are in arrays, do not say that they do not grow");
}
