//! The committed header is the one that cbindgen generates from ffi/src.

use std::fs;

use townsquare::{ErrorKind, config::OPTIONS, metrics::DESCRIPTIONS};
use townsquare_tests::paths::workspace;

/// The declarations that cbindgen reads in ffi/src.
pub(super) fn bindings() -> cbindgen::Bindings {
    let ffi = workspace().join("ffi");
    let mut config = cbindgen::Config::from_file(ffi.join("cbindgen.toml")).expect("ffi/cbindgen.toml is valid");
    config.header = Some(manual());
    config.after_includes = Some(macros());
    cbindgen::Builder::new().with_crate(&ffi).with_config(config).generate().expect("cbindgen reads ffi/src")
}

/// The header as cbindgen writes it.
fn generated() -> String {
    let mut header = Vec::new();
    bindings().write(&mut header);
    String::from_utf8(header).expect("cbindgen writes UTF-8")
}

/// The C manual, ffi/header.md, as the comment at the head of the header. It is also a chapter of the book: the marks of headings
/// and blocks are for the book alone, and its tables are lists here.
fn manual() -> String {
    let text = fs::read_to_string(workspace().join("ffi/header.md")).expect("ffi/header.md exists");
    let options: Vec<_> = OPTIONS.iter().map(|(name, meaning)| format!("  {name:<25}{meaning}")).collect();
    let text = text.replace("{{#include ../docs/src/generated/options.md}}", &options.join("\n"));
    let metrics = DESCRIPTIONS.iter().map(|metric| {
        let labels = if metric.labels.is_empty() { String::new() } else { format!(" by {}", metric.labels.join(", ")) };
        format!("  {}: {}{labels}, {}.\n      {}", metric.name, metric.kind.as_str(), metric.unit, metric.about)
    });
    let text = text.replace("{{#include ../docs/src/generated/metrics.md}}", &metrics.collect::<Vec<_>>().join("\n"));
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    let lines = lines.map(|line| line.strip_prefix("## ").unwrap_or(line));
    let lines: Vec<_> = lines.map(|line| format!(" * {line}").trim_end().to_owned()).collect();
    format!("/*\n{}\n */", lines.join("\n"))
}

/// Macros of the header, which cbindgen cannot write.
fn macros() -> String {
    format!(
        r#"
/** The version of this header; `tsq_version` is that of the library. */
#define TSQ_VERSION "{}"

/** A string literal as a `tsq_str`. */
#ifdef __cplusplus
#define TSQ_STR(literal) (tsq_str{{("" literal), sizeof("" literal) - 1}})
#else
#define TSQ_STR(literal) ((tsq_str){{("" literal), sizeof("" literal) - 1}})
#endif

/** The bytes of a string literal, without its NUL, as a `tsq_bytes`. */
#ifdef __cplusplus
#define TSQ_BYTES(literal) (tsq_bytes{{reinterpret_cast<const uint8_t *>("" literal), sizeof("" literal) - 1}})
#else
#define TSQ_BYTES(literal) ((tsq_bytes){{(const uint8_t *)("" literal), sizeof("" literal) - 1}})
#endif

/** The `tsq_selection` of the first `limit` apps, without filters. */
#ifdef __cplusplus
#define TSQ_SELECTION(limit) (tsq_selection{{sizeof(tsq_selection), static_cast<uint32_t>(limit), false, nullptr, 0, nullptr, 0, 0}})
#else
#define TSQ_SELECTION(limit) ((tsq_selection){{sizeof(tsq_selection), (limit), false, NULL, 0, NULL, 0, 0}})
#endif

/** A `tsq_str` for printf's "%.*s". Evaluates its argument twice: pass a variable, a member or a read of one field. */
#ifdef __cplusplus
#define TSQ_ARG(text) static_cast<int>((text).len), ((text).ptr ? (text).ptr : "")
#else
#define TSQ_ARG(text) (int)(text).len, ((text).ptr ? (text).ptr : "")
#endif"#,
        env!("CARGO_PKG_VERSION")
    )
}

#[test]
fn the_committed_header_is_generated_from_the_code() {
    let made = generated();
    let path = workspace().join("include/townsquare.h");
    if std::env::var("TOWNSQUARE_BLESS").as_deref() == Ok("1") {
        fs::write(&path, &made).expect("include/ can be written to");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if let Some((line, (made, kept))) =
        made.lines().zip(kept.lines()).enumerate().find(|(_, (made, kept))| made != kept)
    {
        panic!(
            "include/townsquare.h:{}: {kept:?} should be {made:?}; TOWNSQUARE_BLESS=1 cargo test writes it anew",
            line + 1
        );
    }
    assert!(
        made == kept,
        "include/townsquare.h ends too early or too late; TOWNSQUARE_BLESS=1 cargo test writes it anew"
    );
}

#[test]
fn status_numbers_follow_the_order_of_the_kinds() {
    let header = generated();
    assert!(header.contains("TSQ_OK = 0,"));
    for (place, kind) in ErrorKind::ALL.iter().enumerate() {
        let line = format!("TSQ_{} = {},", kind.as_str().to_uppercase(), place + 1);
        assert!(header.contains(&line), "{line}");
    }
}

#[test]
fn every_function_is_in_the_cpp_header() {
    let include = workspace().join("include");
    let parts = fs::read_dir(include.join("townsquare")).expect("the C++ header has parts");
    let parts = parts.map(|part| part.expect("a folder can be read").path());
    let cpp: String = parts
        .chain([include.join("townsquare.hpp")])
        .map(|path| fs::read_to_string(path).expect("a part of the C++ header can be read"))
        .collect();
    // The C++ header needs no wrapper for these: Error stores the status and std::string_view reads C strings.
    let missing: Vec<_> = bindings()
        .dynamic_symbols_names()
        .filter(|name| !cpp.contains(*name) && !["tsq_str_from", "tsq_version"].contains(name))
        .map(str::to_owned)
        .collect();
    assert!(missing.is_empty(), "townsquare.hpp and its parts do not use {missing:?}");
}
