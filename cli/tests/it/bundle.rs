//! `check --bundle`: an archive without secrets, addresses and names.

use std::{collections::BTreeMap, fs, io::Read as _, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::Value;

use crate::fixture::{Fixture, run};

/// What is planted, and found nowhere in a bundle.
const PLANTED: [&str; 11] = [
    "planted",
    "ann@mail.example",
    "mail.example",
    "ann%40",
    "correct horse",
    "10.11.12.13",
    "2001:db8::1",
    "db.example",
    "eyJhbGciOi",
    "sk_live_",
    "town/",
];

/// The files of an archive by name.
fn files(path: &Path) -> BTreeMap<String, String> {
    let archive = fs::File::open(path).expect("the bundle");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entries = archive.entries().expect("an archive");
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.expect("an entry");
        assert_eq!((entry.header().uid().ok(), entry.header().gid().ok()), (Some(0), Some(0)));
        let name = entry.path().expect("a name").to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        (name.strip_prefix("townsquare-bundle/").expect("in one folder").to_owned(), text)
    };
    entries.map(read).collect()
}

#[track_caller]
fn assert_clean(files: &BTreeMap<String, String>) {
    for (name, text) in files {
        let lower = text.to_lowercase();
        for planted in PLANTED {
            assert!(!lower.contains(&planted.to_lowercase()), "{name} has {planted}: {text}");
        }
    }
}

fn json(files: &BTreeMap<String, String>, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_bundle_has_what_support_needs_and_no_secret_address_or_name() {
    let town = Fixture::new();
    let mut add = town.command(&["users", "add", "planted.ann@mail.example"]);
    add.env("TOWNSQUARE_PASSWORD", "correct horse planted");
    run(add, "correct horse planted\n").succeeded();
    let small = town.file("small", "planted sk_live_1234 correct horse");
    let large = town.file("large", &"planted".repeat(20_000));
    let token = "eyJhbGciOiJIUzI1NiJ9.planted.planted";
    for name in ["ann@mail.example", "10.11.12.13", token, "sk_live_planted", "correct horse"] {
        town.run(&["files", "put", &small, &format!("assets/{name}")]).succeeded();
        town.run(&["files", "put", &large, &format!("assets/large-{name}")]).succeeded();
    }
    // Findings with these names in their messages: strange objects, and objects that are gone.
    let objects = town.path("town/files/assets");
    fs::write(objects.join("stray-ann@mail.example-sk_live_planted"), "x").expect("a file");
    fs::remove_file(objects.join("large-ann@mail.example")).expect("the object");
    fs::write(
        town.path("town/townsquare.toml"),
        "buckets = \"planted=public\"\nidentity_audience = \"planted.mail.example\"\nendpoint_origins = \"https://db.example\"\n",
    )
    .expect("a file");

    let mut check = town.command(&["check", "--full", "--bundle", "bundle.tar.gz", "--set", "max_name_size=77"]);
    check
        .env("TOWNSQUARE_CATALOG_API_KEY", "planted-key")
        .env("TOWNSQUARE_URL_SIGNING_KEY", "planted".repeat(8))
        .env("TOWNSQUARE_CATALOG_URL", "https://planted:planted@db.example/")
        .env("TOWNSQUARE_CATALOG_KEY_HEADER", "x-planted");
    let ran = run(check, "");
    assert!(ran.code == 3 && ran.out.contains("stray-ann@mail.example"), "the findings have the names: {ran:?}");

    let path = town.path("bundle.tar.gz");
    assert_eq!(fs::metadata(&path).expect("the bundle").permissions().mode() & 0o777, 0o600);
    let files = files(&path);
    assert_clean(&files);
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    let expected = [
        "README.txt",
        "config.json",
        "findings.json",
        "log.json",
        "metrics.json",
        "migrations.json",
        "platform.json",
        "stats.json",
        "versions.json",
    ];
    assert_eq!(names, expected);
    let findings = json(&files, "findings.json");
    let codes: Vec<_> =
        findings.as_array().expect("a list").iter().map(|found| found["code"].as_str().expect("a code")).collect();
    assert!(codes.contains(&"orphan_object") && codes.contains(&"file_missing"), "{findings}");
    let config = json(&files, "config.json");
    assert_eq!(config["max_name_size"]["value"], "77");
    for (name, value) in [
        ("catalog_api_key", "<set>"),
        ("url_signing_key", "<set>"),
        ("catalog_url", "https:<set>"),
        ("data_dir", "<set>"),
        ("buckets", "<set>"),
        ("identity_audience", "<set>"),
    ] {
        assert_eq!(config[name]["value"], value, "{config}");
    }
    let migrations = json(&files, "migrations.json");
    assert_eq!((&migrations["is_current"], &migrations["is_new"]), (&true.into(), &false.into()));
    assert!(json(&files, "metrics.json").as_object().is_some_and(|metrics| metrics.len() > 5));
    assert_eq!(json(&files, "versions.json")["database"], "sqlite");
    assert_eq!(json(&files, "platform.json")["os"], std::env::consts::OS);
}

#[test]
fn a_bundle_replaces_no_file_and_a_failed_one_is_removed() {
    let town = Fixture::seeded();
    let path = town.file("bundle.tar.gz", "mine");
    town.run(&["check", "--bundle", &path]).failed(2, "replaces no file");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "mine");
    std::os::unix::fs::symlink(town.path("nowhere"), town.path("link")).expect("a link");
    town.run(&["check", "--bundle", "link"]).failed(2, "replaces no file");
    assert!(!town.path("nowhere").exists());
    town.run(&["check", "--bundle", "missing/bundle"]).failed(4, "missing/bundle");
    let done = town.run(&["check", "--bundle", "new.tar.gz", "--json"]).json();
    assert_eq!((&done["bundle"], &done["findings"]), (&"new.tar.gz".into(), &serde_json::json!([])));
    let mut names = town.names("");
    names.sort_unstable();
    assert_eq!(names, ["bundle.tar.gz", "link", "new.tar.gz", "town"], "no temporary file is left");
}

#[test]
fn a_database_that_does_not_open_has_a_bundle() {
    let town = Fixture::new();
    let mut check = town.command(&["check", "--bundle", "bundle.tar.gz"]);
    check
        .env("TOWNSQUARE_DATABASE_URL", "postgres://planted:planted@127.0.0.1:1/planted?application_name=planted")
        .env("TOWNSQUARE_STORAGE_URL", "s3://planted?region=eu&secret_access_key=planted&access_key_id=planted")
        .env("TOWNSQUARE_OPERATION_TIMEOUT", "2");
    let ran = run(check, "");
    assert!(ran.code == 75 && ran.err.contains("The bundle bundle.tar.gz has what is known"), "{ran:?}");
    let files = files(&town.path("bundle.tar.gz"));
    assert_clean(&files);
    assert_eq!(json(&files, "error.json")["exit_code"], 75);
    assert_eq!(json(&files, "migrations.json")["error"]["kind"], "unavailable");
    let config = json(&files, "config.json");
    assert_eq!(
        (&config["database_url"]["value"], &config["storage_url"]["value"]),
        (&"postgres:<set>".into(), &"s3:<set>".into())
    );
    assert_eq!(json(&files, "versions.json")["database"], "postgres");
    assert!(!files.contains_key("findings.json"));
}
