//! The options: the command line, the environment, `townsquare.toml`, and `config`.

use std::fs;

use crate::fixture::{Fixture, run};

#[test]
fn config_shows_where_each_value_comes_from() {
    let town = Fixture::seeded();
    fs::write(town.path("town/townsquare.toml"), "catalog_tries = 5\ncatalog_url = \"file.json\"\nmax_name_size = 9\n")
        .expect("a file");
    let shown = town.run(&["config", "--json", "--set", "max_name_size=7"]).json();
    for (name, value, source) in [
        ("max_name_size", "7", "command line"),
        ("catalog_url", "sample:", "environment variable TOWNSQUARE_CATALOG_URL"),
        ("catalog_tries", "5", "file town/townsquare.toml"),
    ] {
        assert_eq!((&shown[name]["value"], &shown[name]["source"]), (&value.into(), &source.into()), "{shown}");
    }
    assert_eq!((&shown["adopt"]["value"], &shown["adopt"]["source"]), (&serde_json::Value::Null, &"default".into()));
    let table = town.run(&["config", "--given"]).succeeded().out;
    assert!(table.contains("catalog_tries") && !table.contains("adopt"), "{table}");
    // The file has effect.
    town.run(&["users", "list"]).succeeded();
    fs::write(town.path("town/townsquare.toml"), "catalog_tries = 50\n").expect("a file");
    town.run(&["users", "list"]).failed(2, "catalog_tries is 1 to 10");
}

#[test]
fn a_bad_file_is_refused_and_its_secrets_are_not_shown() {
    let town = Fixture::seeded();
    for (text, part) in [
        ("colour = 1\n", "colour"),
        ("catalog_tries = \"many\"\n", "catalog_tries"),
        ("buckets = [\"a\"]\n", "buckets"),
        ("data_dir = \"x\"\n", "data_dir"),
        ("adopt = false\ncatalog_api_key = \"planted\" x\n", "townsquare.toml:2"),
    ] {
        fs::write(town.path("town/townsquare.toml"), text).expect("a file");
        let ran = town.run(&["config"]);
        assert!(!ran.err.contains("planted"), "{ran:?}");
        ran.failed(2, part);
    }
}

#[test]
fn secrets_are_not_shown_and_are_refused_on_the_command_line() {
    let town = Fixture::new();
    let mut command = town.command(&["config"]);
    command
        .env("TOWNSQUARE_DATABASE_URL", "postgres://ann:planted@db.example/town?password=planted")
        .env("TOWNSQUARE_URL_SIGNING_KEY", "planted".repeat(8))
        .env("CATALOG_API_KEY", "planted");
    let ran = run(command, "").succeeded();
    assert!(!ran.out.contains("planted") && ran.out.contains("postgres://ann:***@db.example/town"), "{ran:?}");
    assert!(ran.out.contains("CATALOG_API_KEY"), "{ran:?}");

    town.run(&["config", "--database-url", "postgres://ann:planted@db.example/town"]).failed(2, "database_url");
    town.run(&["config", "--set", "catalog_api_key=planted"]).failed(2, "catalog_api_key");
    town.run(&["config", "--set", "storage_url=s3://b?secret_access_key=planted"]).failed(2, "storage_url");
}

#[test]
fn a_bad_value_names_its_source() {
    let town = Fixture::new();
    town.run(&["config", "--set", "catalog_tries=many"]).failed(2, "command line: Option catalog_tries");
    town.run(&["config", "--set", "colour=red"]).failed(2, "colour");
    town.run(&["config", "--set", "catalog_trys=3"]).failed(2, "Did you mean catalog_tries?");
    assert_eq!(town.run(&["config", "--set", "colour"]).code, 2);
    town.run(&["config", "--set", "data_dir=a", "--data-dir", "b"]).failed(2, "data_dir is given twice");
    let mut command = town.command(&["config"]);
    command.env("TOWNSQUARE_ADOPT", "maybe");
    run(command, "").failed(2, "environment variable TOWNSQUARE_ADOPT");
}

#[test]
fn a_text_that_is_no_url_is_not_shown() {
    let town = Fixture::new();
    for variable in ["TOWNSQUARE_DATABASE_URL", "TOWNSQUARE_STORAGE_URL", "TOWNSQUARE_CATALOG_URL"] {
        let mut command = town.command(&["config", "--given"]);
        command.env(variable, "postgres//ann:planted@db.example/town");
        let ran = run(command, "").succeeded();
        assert!(!ran.out.contains("planted") && ran.out.contains("<not a URL>"), "{ran:?}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused_and_commands_without_options_do_not_read_it() {
    let town = Fixture::seeded();
    fs::write(town.path("town/townsquare.toml"), b"adopt = \xff").expect("a file");
    town.run(&["config"]).failed(2, "is not UTF-8");
    town.run(&["completions", "bash"]).succeeded();
    town.run(&["man"]).succeeded();
    fs::remove_file(town.path("town/townsquare.toml")).expect("the file");
    #[cfg(unix)]
    {
        let pipe = town.path("town/townsquare.toml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        town.run(&["config"]).failed(2, "is no regular file");
        let place = pipe.to_str().expect("UTF-8");
        town.run(&["files", "put", place, "assets/a", "--data-dir", "nowhere"]).failed(4, "There is no database");
    }
}
