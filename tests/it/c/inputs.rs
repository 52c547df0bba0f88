//! Inputs of C grow at their end: programs that are compiled with the header of a later version pass.

use std::{fmt::Write as _, fs};

use townsquare_tests::{paths::workspace, temp_dir};

use super::{
    programs::{Folder, succeeds},
    toolchain::{
        Language::{self, C11, Cpp17},
        Sanitizers::Off,
        link,
    },
};

/// The first member of every input.
const SIZE: &str = "    size_t size;\n";

/// The header of a later version: every input has got two members.
fn later_header() -> String {
    let header = fs::read_to_string(workspace().join("include/townsquare.h")).expect("the header exists");
    let mut later = String::new();
    for line in header.split_inclusive('\n') {
        let is_input = later.rsplit_once("typedef struct {").is_some_and(|(_, body)| body.contains(SIZE));
        if line.starts_with("} tsq_") && is_input {
            let _ = write!(later, "    uint64_t later_number;\n    tsq_str later_text;\n");
        }
        later.push_str(line);
    }
    later
}

fn passes(source: &str, language: Language, folder: Folder) {
    let temporary = temp_dir();
    let header = temporary.path().join("townsquare.h");
    fs::write(&header, later_header()).expect("a temporary folder can be written to");
    // The guard of the header keeps the committed one out. Initializers give no values to the later members, which are then 0.
    let flags = ["-include", header.to_str().expect("UTF-8"), "-Wno-missing-field-initializers"];
    let program = temporary.path().join("program");
    if link(&workspace().join("tests/c").join(source), language, &flags, &program).is_some() {
        succeeds(&program, source, temporary.path(), folder, Off);
    }
}

#[test]
fn the_later_header_has_longer_inputs_alone() {
    let header = later_header();
    let longer = header.matches("uint64_t later_number;").count();
    assert!(longer > 12 && longer == header.matches(SIZE).count(), "{longer} inputs");
    assert!(!header.contains("tsq_str later_text;\n} tsq_space;"), "a record is not an input");
}

macro_rules! later {
    ($($test:ident: $source:literal, $language:ident, $folder:ident;)*) => {$(
        #[test]
        fn $test() {
            passes($source, $language, Folder::$folder);
        }
    )*};
}

later! {
    tables_from_c_with_a_later_header: "tables.c", C11, Town;
    communities_from_c_with_a_later_header: "communities.c", C11, Town;
    sign_in_from_c_with_a_later_header: "auth.c", C11, Empty;
    discovery_from_c_with_a_later_header: "discovery.c", C11, Empty;
    files_from_c_with_a_later_header: "files.c", C11, Empty;
    changes_from_c_with_a_later_header: "realtime.c", C11, Empty;
    tables_from_cpp_with_a_later_header: "raii_tables.cpp", Cpp17, Town;
    sign_in_from_cpp_with_a_later_header: "raii_auth.cpp", Cpp17, Empty;
    files_from_cpp_with_a_later_header: "raii_files.cpp", Cpp17, Empty;
    sizes_of_inputs_from_cpp_with_a_later_header: "raii_inputs.cpp", Cpp17, Empty;
    changes_from_cpp_with_a_later_header: "raii_realtime.cpp", Cpp17, Empty;
}
