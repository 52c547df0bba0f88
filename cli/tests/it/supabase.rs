//! The tests of `move --supabase`.

use std::fs;

use serde_json::json;
use townsquare_tests::{
    s3_server::{S3Server, SECRET_KEY},
    supabase::{PASSWORD, SupabaseProject},
    test_database::{EmptyDatabase, Engine},
};

use crate::fixture::{CommandOutput, Fixture, run};

/// A folder with the files of a project in `storage`.
struct Town {
    fixture: Fixture,
    project: SupabaseProject,
}

impl Town {
    fn new() -> Option<Town> {
        let project = SupabaseProject::new()?;
        let fixture = Fixture::new();
        project.write_files(&fixture.path("storage"));
        Some(Town { fixture, project })
    }

    /// Runs `move --supabase` from the project.
    fn moved(&self, arguments: &[&str]) -> CommandOutput {
        self.moved_with(&[], arguments)
    }

    fn moved_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
        let mut command = self.fixture.bare();
        command.env("PROJECT_URL", self.project.url()).envs(variables.iter().copied());
        command.args(["move", "--supabase", "env:PROJECT_URL"]).args(arguments);
        run(command, "")
    }
}

const TARGET: &str = "townsquare:target?buckets=avatars=public";

#[test]
fn a_project_is_moved_to_a_folder() {
    let Some(town) = Town::new() else { return };
    let before = town.project.state();
    let checked = town.moved(&[TARGET, "--files", "storage", "--dry-run", "--json"]).json();
    assert_eq!(
        (&checked["source_faults"], &checked["target"], &checked["reason"]),
        (&json!([]), &json!("new"), &json!(null))
    );
    assert_eq!((&checked["rows"]["users"], &checked["files"]), (&json!(8), &json!(4)));
    assert!(!town.fixture.path("target").exists(), "a dry run creates nothing");
    let checked = town.moved(&[TARGET, "--files", "storage", "--dry-run"]).succeeded();
    for line in
        ["source: 0 faults", "users: 8", "files: 4", "users who are banned: 1.", "the buckets assets.", "target: new"]
    {
        assert!(checked.out.contains(line), "{line}: {checked:?}");
    }

    let report = town.moved(&[TARGET, "--files", "storage", "--json"]).json();
    assert_eq!(report["target"], json!({ "rows": "target", "files": "target/files" }));
    assert_eq!(
        (&report["rows"]["users"], &report["rows"]["credentials"], &report["files"]),
        (&json!(8), &json!(3), &json!(4))
    );
    assert_eq!((&report["skipped"]["banned_users"], &report["published_buckets"]), (&json!(1), &json!(["assets"])));
    assert!(before == town.project.state(), "the project is unchanged");

    let users = town.fixture.run(&["users", "list", "--json", "--data-dir", "target"]).json();
    let users = users["users"].as_array().expect("users");
    assert!(users.iter().any(|user| user["email"] == "Ann@Town.Example"), "{users:?}");
    let logo = town.fixture.run(&["files", "get", "assets/images/logo.svg", "--data-dir", "target"]).succeeded();
    assert_eq!(logo.out.len(), 70_000);
    town.fixture.run(&["check", "--full", "--data-dir", "target"]).succeeded();

    // The target has rows now.
    town.moved(&[TARGET, "--files", "storage"]).failed(2, "empty database");
    let checked = town.moved(&[TARGET, "--files", "storage", "--dry-run"]);
    assert!(checked.code == 3 && checked.out.contains("target: refused: "), "{checked:?}");
}

#[test]
fn a_project_is_moved_to_postgres_by_the_s3_protocol() {
    let (Some(town), Some(target)) = (Town::new(), EmptyDatabase::on(Engine::Postgres)) else { return };
    let server = S3Server::start();
    town.project.write_files(server.buckets());
    let url =
        format!("{}?storage_url=file:{}&buckets=avatars=public", target.url(), town.fixture.path("files").display());
    let mut variables = S3Server::variables().to_vec();
    variables.push(("TARGET", &url));
    let ran = town.moved_with(&variables, &["env:TARGET", "--files", &server.url_without_bucket()]).succeeded();
    assert!(ran.err.contains("The project is unchanged.") && ran.err.contains("Without a password"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(SECRET_KEY), "{ran:?}");
    assert_eq!(target.raw().count("public.users"), 8);
    assert_eq!(target.raw().count("townsquare.files"), 4);
}

#[test]
fn faults_of_a_project_are_listed_and_nothing_is_written() {
    let Some(town) = Town::new() else { return };
    town.project.add_object("avatars", "../x", Some(1));
    fs::remove_file(town.fixture.path("storage/assets/images/logo.svg")).expect("a file");
    // No option declares the bucket `avatars`.
    let checked = town.moved(&["target", "--files", "storage", "--dry-run", "--json"]);
    assert_eq!(checked.code, 3, "{checked:?}");
    let checked: serde_json::Value = serde_json::from_str(&checked.out).expect("JSON");
    let faults = checked["source_faults"].to_string();
    assert!(faults.contains("avatars=private") && faults.contains("assets/images/logo.svg are missing"), "{faults}");
    for target in ["target", TARGET] {
        town.moved(&[target, "--files", "storage"]).failed(2, "The project cannot be moved as it is");
        assert!(!town.fixture.path("target").exists());
    }
    town.moved(&[TARGET]).failed(2, "no place of the files is named");
    let checked = town.moved(&[TARGET, "--files", "storage", "--dry-run"]);
    assert!(checked.code == 3 && checked.out.contains("no file can be \"avatars/../x\""), "{checked:?}");
}

#[test]
fn no_password_is_an_argument_or_in_the_output() {
    let town = Fixture::new();
    let ran = |source: &str, arguments: &[&str]| {
        let mut command = town.bare();
        command.env("PROJECT_URL", source).args(["move", "--supabase", "env:PROJECT_URL", "target"]).args(arguments);
        let ran = run(command, "");
        assert!(!ran.err.contains("planted") && !ran.out.contains("planted"), "{ran:?}");
        ran
    };
    for arguments in [&[][..], &["--dry-run"]] {
        ran("postgres//u:planted@127.0.0.1:1/d", arguments).failed(2, "postgres://");
        ran("postgres://u:planted@127.0.0.1:1/d", arguments).failed(75, "127.0.0.1:1");
        let files = [arguments, &["--files", "s3://?secret_access_key=planted"]].concat();
        ran("postgres://u@127.0.0.1:1/d", &files).failed(2, "secret");
    }
    let mut command = town.bare();
    command.args(["move", "--supabase", "postgres://u:planted@127.0.0.1:1/d", "target"]);
    let refused = run(command, "");
    assert!(!refused.err.contains("planted"), "{refused:?}");
    refused.failed(2, "secret");
    for arguments in [&["move", "a", "b", "--files", "x"][..], &["move", "--supabase", "a", "b", "--without-sessions"]]
    {
        let mut command = town.bare();
        command.args(arguments);
        assert_eq!(run(command, "").code, 2);
    }
    assert_ne!(PASSWORD, "planted");
}

#[test]
fn a_move_of_a_project_that_is_interrupted_begins_anew() {
    use nix::sys::signal::Signal;

    use crate::fixture::interrupted;

    let Some(town) = Town::new() else { return };
    town.project.raw.run(&format!(
        "INSERT INTO public.fidgets (space_id, type) SELECT '{}', 'text' FROM generate_series(1, 20000)",
        town.project.space
    ));
    let start = || {
        let mut command = town.fixture.bare();
        command.env("PROJECT_URL", town.project.url());
        command.args(["move", "--supabase", "env:PROJECT_URL", TARGET, "--files", "storage"]);
        command.spawn().expect("it starts")
    };
    let has_begun = || fs::metadata(town.fixture.path("target/townsquare.db")).is_ok_and(|file| file.len() > 0);
    let remove = || fs::remove_dir_all(town.fixture.path("target")).expect("a folder");
    let output = interrupted(Signal::SIGINT, start, has_begun, remove);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.starts_with("townsquare: Interrupted\ntry: Run the same command again: it begins"), "{error}");

    let checked = town.moved(&[TARGET, "--files", "storage", "--dry-run", "--json"]).json();
    assert_eq!(checked["target"], "unfinished");
    town.fixture.run(&["users", "list", "--data-dir", "target"]).failed(2, "`townsquare move --supabase`");
    let report = town.moved(&[TARGET, "--files", "storage", "--json"]).json();
    assert_eq!(report["rows"]["fidgets"], 20_200);
}
