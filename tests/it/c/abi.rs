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

/// The committed header, and its declarations.
fn committed() -> (String, Declarations) {
    let header = fs::read_to_string(workspace().join("include/townsquare.h")).expect("the header exists");
    let declarations = Declarations::of(&header);
    (header, declarations)
}

/// The arguments of a prototype.
fn arguments(prototype: &str) -> Vec<String> {
    let (_, arguments) = prototype.split_once('(').expect("a prototype has arguments");
    parts(arguments.trim_end_matches(')'), ',')
}

const IS_INPUT: &str = "(manual, INPUTS)";
const IS_FIXED: &str = "This struct does not grow.";

#[test]
fn structs_in_arrays_do_not_grow_or_have_the_size_of_an_item() {
    let (header, declarations) = committed();
    let members = declarations.structs.iter().map(|record| record.members.clone());
    // `const tsq_range *matches` and `size_t matches_len`.
    let mut arrays = BTreeSet::new();
    for declared in members.chain(declarations.functions.iter().map(|prototype| arguments(prototype))) {
        for (place, pair) in declared.windows(2).enumerate() {
            let Some((element, name)) = pair[0].strip_prefix("const ").and_then(|array| array.split_once(" *")) else {
                continue;
            };
            if element.starts_with("tsq_") && pair[1] == format!("size_t {name}_len") {
                let has_size = declared.get(place + 2).is_some_and(|next| next == "size_t item_size");
                let allowed = if has_size { IS_INPUT } else { IS_FIXED };
                let is_allowed = comment(&header, element).any(|line| line.contains(allowed));
                arrays.insert((element.to_owned(), is_allowed, allowed));
            }
        }
    }
    let contains = |name: &str, allowed| arrays.contains(&(name.to_owned(), true, allowed));
    assert!(arrays.len() > 9 && contains("tsq_range", IS_FIXED) && contains("tsq_new_space", IS_INPUT), "{arrays:?}");
    arrays.retain(|(_, is_allowed, _)| !is_allowed);
    assert!(arrays.is_empty(), "the comments of these structs in arrays do not say so: {arrays:?}");
}

#[test]
fn structs_that_the_caller_allocates_begin_with_their_size_or_do_not_grow() {
    let (header, declarations) = committed();
    let says = |name: &str, words: &str| comment(&header, name).any(|line| line.contains(words));
    let mut inputs = 0;
    for Record { name, members } in &declarations.structs {
        let has_size = members[0] == "size_t size";
        assert_eq!(has_size, says(name, IS_INPUT), "{name}: an input, and no other struct, begins with its size");
        let is_record = says(name, "A record (manual, RECORDS)");
        let kinds = [has_size, says(name, IS_FIXED), is_record].iter().filter(|is| **is).count();
        assert_eq!(kinds, 1, "{name}: a struct is an input, a record, or does not grow");
        inputs += usize::from(has_size);
    }
    assert!(inputs > 12, "{inputs} inputs");

    // The compiler of the program knows the size of a struct that is passed or returned by value, or is in another one.
    let by_value = declarations.functions.iter().chain(&declarations.callbacks).flat_map(|prototype| {
        let (result, _) = prototype.split_once('(').expect("a prototype has arguments");
        let mut types = arguments(prototype);
        types.push(result.to_owned());
        types
    });
    let by_value: BTreeSet<_> = by_value
        .chain(declarations.structs.iter().flat_map(|record| record.members.clone()))
        .filter(|declared| !declared.contains('*'))
        .filter_map(|declared| identifiers(&declared).next().map(str::to_owned))
        .filter(|kind| declarations.structs.iter().any(|record| record.name == *kind))
        .collect();
    assert!(by_value.contains("tsq_str") && by_value.contains("tsq_str_change"), "{by_value:?}");
    for name in &by_value {
        assert!(says(name, IS_FIXED), "{name} is used by value: it must not grow");
    }
}

/// A later member in the padding at the end would read what a program of an earlier version left there.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn inputs_end_with_their_last_member() {
    let interface = fs::read_to_string(workspace().join("ffi/abi.txt")).expect("ffi/abi.txt exists");
    let mut inputs = 0;
    for layout in interface.split("\nstruct ").skip(1) {
        let mut lines = layout.lines();
        let (name, size) = lines.next().and_then(|line| line.split_once(": ")).expect("a struct has a size");
        let members: Vec<_> = lines.take_while(|line| line.starts_with("  ")).collect();
        if members[0] != "  0: size_t size, 8 bytes" {
            continue;
        }
        inputs += 1;
        let number = |text: &str| text.trim().split([' ', ':']).next().and_then(|word| word.parse::<usize>().ok());
        let last = members.last().expect("a struct has members");
        let end = number(last).zip(last.rsplit(", ").next().and_then(number)).map(|(offset, length)| offset + length);
        assert_eq!(end, number(size), "{name}: the last member ends where the struct ends");
    }
    assert!(inputs > 12, "{inputs} inputs");
}
