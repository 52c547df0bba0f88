//! The cargo features of the crate townsquare: a program takes only what it needs, and one database at least.

use std::{collections::BTreeSet, process::Output};

use townsquare_tests::cargo;

/// Runs cargo on the crate townsquare with these features alone.
fn cargo(command: &[&str], features: &str) -> Output {
    cargo_for(command, &["-p", "townsquare", "--no-default-features", "--features", features])
}

/// Runs cargo on these packages of the workspace.
fn cargo_for(command: &[&str], packages: &[&str]) -> Output {
    let mut cargo = cargo::cargo();
    cargo.args(command).args(packages).args(["--locked", "--offline", "--color", "never"]);
    cargo.output().expect("cargo starts")
}

#[test]
fn without_a_database_the_only_error_names_the_features() {
    let output = cargo(&["check"], "");
    assert!(!output.status.success());
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<_> =
        messages.lines().filter(|line| line.starts_with("error") || line.starts_with("warning")).collect();
    let expected = [
        "error: townsquare needs a database: enable the feature `sqlite` (the default) or `postgres`, or both, in Cargo.toml",
        "error: could not compile `townsquare` (lib) due to 1 previous error",
    ];
    assert_eq!(errors, expected, "{messages}");
}

/// The crates that a program with these features builds on this platform: `NAME FEATURE,FEATURE`.
fn crates(features: &str) -> BTreeSet<String> {
    listed(&cargo(&TREE, features))
}

/// The crates that these packages of the workspace build with their default features.
fn crates_of(packages: &[&str]) -> BTreeSet<String> {
    listed(&cargo_for(&TREE, packages))
}

const TREE: [&str; 7] = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{lib} {f}"];

fn listed(output: &Output) -> BTreeSet<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Crates among `crates` with a name that begins with one of `names`.
fn named<'a>(crates: &'a BTreeSet<String>, names: &[&str]) -> Vec<&'a str> {
    crates.iter().map(String::as_str).filter(|krate| names.iter().any(|name| krate.starts_with(name))).collect()
}

const POSTGRES: [&str; 1] = ["sqlx"];
/// The crates of the clouds of object_store.
const CLOUDS: [&str; 2] = ["quick_xml", "crc_fast"];
/// TLS and cryptography other than rustls on ring.
const OTHER_TLS: [&str; 6] = ["openssl ", "openssl_sys", "native_tls", "aws_lc", "boring", "schannel"];

#[test]
fn a_program_without_postgres_and_s3_builds_neither() {
    let small = crates("sqlite,http");
    assert!(!named(&small, &["rusqlite"]).is_empty() && !named(&small, &["axum"]).is_empty());
    assert_eq!(named(&small, &POSTGRES), [""; 0]);
    assert_eq!(named(&small, &CLOUDS), [""; 0]);
    let store = named(&small, &["object_store"]);
    assert!(
        store.len() == 1 && !["aws", "azure", "gcp", "cloud"].iter().any(|cloud| store[0].contains(cloud)),
        "{store:?}"
    );
    let postgres = crates("postgres");
    assert!(named(&postgres, &["rusqlite", "libsqlite3"]).is_empty() && !named(&postgres, &POSTGRES).is_empty());
    let clouds = crates("sqlite,s3");
    assert!(named(&clouds, &["object_store"])[0].contains("aws"), "the check sees the clouds where they are");
    assert!(!named(&clouds, &CLOUDS).is_empty(), "the check sees the crates of the clouds where they are");
}

#[test]
fn the_default_is_sqlite_with_the_sample_and_the_other_languages_have_everything() {
    let others = |crates: BTreeSet<String>| -> BTreeSet<String> {
        crates.into_iter().filter(|krate| !krate.starts_with("townsquare ")).collect()
    };
    let default = crates_of(&["-p", "townsquare"]);
    assert_eq!(named(&default, &["townsquare "]), ["townsquare default,sample,sqlite"]);
    assert_eq!(others(default), others(crates("sqlite")));
    let of_c = crates_of(&["-p", "townsquare-ffi"]);
    assert_eq!(named(&of_c, &["townsquare "]), ["townsquare default,postgres,s3,sample,sqlite"]);
    // The Python package has the command, which serves HTTP. So `cargo test` also runs the unit tests and the examples of PostgreSQL, of
    // S3 and of HTTP.
    let everything = "townsquare default,http,postgres,s3,sample,sqlite";
    assert_eq!(named(&crates_of(&["-p", "townsquare-python"]), &["townsquare "]), [everything]);
    assert_eq!(named(&crates_of(&["--workspace"]), &["townsquare "]), [everything]);
}

#[test]
fn every_selection_has_one_tls_stack() {
    for features in ["sqlite", "postgres", "sqlite,s3", "sqlite,postgres,s3,http"] {
        let crates = crates(features);
        assert_eq!(named(&crates, &OTHER_TLS), [""; 0], "{features}");
        assert_eq!(named(&crates, &["rustls "]).len(), 1, "{features}");
    }
}
