//! Words that may not stand in code, and where each of them may (DESIGN 2, STYLE "Habits").

use super::{
    assert_tidy,
    source::{blanked, code, files, lines_with},
};

/// Words, the folders they are searched in, and the files that may say them.
struct Ban {
    rule: &'static str,
    words: &'static [&'static str],
    folders: &'static [&'static str],
    except: &'static [&'static str],
}

const SOURCES: &[&str] = &["core/src", "ffi/src", "python/src"];

const BANS: &[Ban] = &[
    Ban {
        rule: "only config reads the environment (DESIGN 2)",
        words: &["env::var", "env::vars", "env::set_var", "env::remove_var", "std::env", "option_env!"],
        folders: SOURCES,
        except: &["core/src/config.rs", "core/src/config/"],
    },
    Ban {
        rule: "only clock reads the time (DESIGN 2)",
        words: &["SystemTime", "Instant::now", "Timestamp::now", "Zoned::now", "OffsetDateTime::now", "Utc::now"],
        folders: SOURCES,
        except: &["core/src/clock.rs"],
    },
    Ban {
        rule: "no unwrap outside tests; expect says the invariant (STYLE)",
        words: &[".unwrap()", ".unwrap_err()", ".expect(\"\")", "unwrap_unchecked"],
        folders: &["core/src", "ffi/src", "python/src", "benches/src"],
        except: &[],
    },
    Ban {
        rule: "a library does not write to the terminal or end its host",
        words: &[
            "println!",
            "eprintln!",
            "print!(",
            "eprint!(",
            "dbg!",
            "process::exit",
            "process::abort",
            "todo!",
            "unimplemented!",
        ],
        folders: SOURCES,
        except: &[],
    },
    Ban {
        rule: "no anyhow, and no foreign error without its operation (STYLE)",
        words: &["anyhow", "eyre", "#[from]", "Box<dyn std::error::Error>", "Box<dyn Error"],
        folders: SOURCES,
        except: &[],
    },
    Ban {
        rule: "unsafe is ffi's alone (DESIGN 2)",
        words: &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "#[unsafe", "allow(unsafe_code)"],
        folders: &["core/src", "tests/src", "tests/it", "benches"],
        // They call the C functions as a C program would, to measure them.
        except: &["benches/benches/discovery_reads/", "benches/benches/spaces/"],
    },
];

fn complaints(ban: &Ban, path: &str, text: &str) -> Vec<String> {
    if ban.except.iter().any(|allowed| path.starts_with(allowed)) {
        return Vec::new();
    }
    lines_with(path, &code(text), ban.words)
}

#[test]
fn words_stand_only_where_they_belong() {
    for ban in BANS {
        for word in ban.words {
            // A text of nothing is blanked like any other text; the rest of that word is what is looked for.
            if !word.contains('"') {
                let text = format!("fn f() {{ x{word}; }}");
                assert!(!complaints(ban, "core/src/sample.rs", &text).is_empty(), "{word} is found");
                assert!(
                    complaints(ban, "core/src/sample.rs", &format!("// {word}\nconst A: &str = \"x\";")).is_empty()
                );
            }
        }
        let files = files(ban.folders, &[".rs"]);
        let found: Vec<_> = files.iter().flat_map(|file| complaints(ban, &file.path, &file.text)).collect();
        assert_tidy(ban.rule, &found);
    }
}

#[test]
fn every_crate_but_ffi_forbids_unsafe_at_its_root() {
    let forbids = |text: &str| blanked(text).contains("#![forbid(unsafe_code)]");
    assert!(forbids("//! x\n#![forbid(unsafe_code)]\n") && !forbids("// #![forbid(unsafe_code)]\n"));
    let roots = ["core/src/lib.rs", "tests/src/lib.rs"];
    let files = files(&roots, &[".rs"]);
    assert_eq!(files.len(), roots.len());
    let missing: Vec<_> = files.iter().filter(|file| !forbids(&file.text)).map(|file| &file.path).collect();
    assert_tidy("#![forbid(unsafe_code)] (DESIGN 2)", &missing);
}

#[test]
fn tests_do_not_sleep() {
    let ban = |path: &str, text: &str| lines_with(path, &blanked(text), &["thread::sleep", "time::sleep"]);
    assert!(!ban("x.rs", "std::thread::sleep(x);").is_empty());
    let files = files(&["tests/it", "core/src", "ffi/src"], &[".rs"]);
    let tests = files.iter().filter(|file| file.path.starts_with("tests/") || file.text.contains("#[cfg(test)]"));
    let found: Vec<_> = tests
        .flat_map(|file| {
            // A unit test stands behind `#[cfg(test)]`; what a file does before it is no test's sleep.
            let start = if file.path.starts_with("tests/") { 0 } else { file.text.find("#[cfg(test)]").unwrap_or(0) };
            ban(&file.path, &file.text[start..])
        })
        .collect();
    assert_tidy("no sleeps but wait_until (STYLE)", &found);
}
