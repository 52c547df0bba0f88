//! The tests of `users`.

use townsquare::{Config, blocking::Client};

use crate::fixture::{Fixture, run};

const PASSWORD: &str = "correct horse battery";

#[test]
fn a_user_is_added_listed_exported_and_deleted() {
    let town = Fixture::new();
    let ann = town.run_with_input(&["users", "add", "Ann@Town.example", "--json"], PASSWORD).json();
    assert_eq!(ann["email"], "ann@town.example");
    let id = ann["id"].as_str().expect("an id");
    let users = town.run(&["users", "list", "--json"]).json();
    assert_eq!(users["users"][0]["id"], ann["id"]);
    let table = town.run(&["users", "list"]).succeeded().out;
    assert!(table.contains(id) && table.contains("ann@town.example"), "{table}");

    let exported = town.run(&["users", "export", "ann@town.example"]).json_lines();
    assert_eq!((exported.len(), &exported[0]["row"]["id"]), (1, &ann["id"]));
    assert_eq!(town.run(&["users", "export", id]).json_lines(), exported);

    town.run(&["users", "delete", id]).failed(2, "There is no terminal to confirm this on");
    town.run(&["users", "delete", id, "--yes"]).succeeded();
    town.run(&["users", "delete", id, "--yes"]).failed(4, id);
    assert_eq!(town.run(&["users", "list", "--json"]).json()["users"], serde_json::json!([]));
}

#[test]
fn a_password_comes_from_the_environment_or_the_input_and_never_from_an_argument() {
    let town = Fixture::new();
    let mut command = town.command(&["users", "add", "ann@town.example"]);
    command.env("TOWNSQUARE_PASSWORD", PASSWORD);
    run(command, "").succeeded();
    // The line of the standard input goes first.
    let mut command = town.command(&["users", "password", "ann@town.example"]);
    command.env("TOWNSQUARE_PASSWORD", PASSWORD);
    run(command, "\u{feff}short\n").failed(2, "8 to 1024 bytes");
    town.run_with_input(&["users", "password", "ann@town.example"], "another horse\nignored\n").succeeded();
    town.run_with_input(&["users", "password", "ann@town.example"], "").failed(2, "no line");
    town.run_with_input(&["users", "password", "ann@town.example"], "short\n").failed(2, "8 to 1024 bytes");
    assert_eq!(town.run(&["users", "add", "bob@town.example", "--password", PASSWORD]).code, 2);
    assert_eq!(town.run(&["users", "add", "bob@town.example", PASSWORD]).code, 2);
}

#[test]
fn sessions_are_listed_and_ended() {
    let town = Fixture::new();
    town.run_with_input(&["users", "add", "ann@town.example"], PASSWORD).succeeded();
    let sessions = |arguments: &[&str]| town.run(&[&["users", "sessions", "ann@town.example"], arguments].concat());
    assert_eq!(sessions(&["--json"]).json(), serde_json::json!({ "sessions": [] }));
    assert_eq!(sessions(&[]).succeeded().out.trim_end(), "ID  CREATED  REFRESHED  EXPIRES");
    let client = Client::open(Config::new().data_dir(town.path("town")).catalog_url("sample:")).expect("open");
    let tokens: Vec<_> = (0..3)
        .map(|_| client.auth().create_session("ann@town.example", PASSWORD).expect("a session"))
        .map(|session| [session.access_token, session.refresh_token])
        .collect();
    client.close();
    let listed = sessions(&["--json"]).succeeded();
    let table = sessions(&[]).succeeded().out;
    for token in tokens.iter().flatten() {
        assert!(!listed.out.contains(token.as_str()) && !table.contains(token.as_str()));
    }
    let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
    let keys: Vec<_> = listed["sessions"][0].as_object().expect("an object").keys().cloned().collect();
    assert_eq!(keys, ["created_at", "expires_at", "id", "refreshed_at"]);
    let id = listed["sessions"][0]["id"].as_str().expect("an id");
    assert!(table.contains(id), "{table}");
    assert_eq!(sessions(&["--end", id, "--json"]).json()["ended"], 1);
    sessions(&["--end", id]).failed(4, id);
    assert_eq!(sessions(&["--end", "x"]).code, 2);
    assert_eq!(sessions(&["--end", id, "--end-all"]).code, 2);
    assert_eq!(sessions(&["--json"]).json()["sessions"].as_array().map(Vec::len), Some(2));
    assert_eq!(sessions(&["--end-all", "--json"]).json()["ended"], 2);
    assert_eq!(sessions(&["--json"]).json(), serde_json::json!({ "sessions": [] }));
    town.run(&["users", "sessions", "bob@town.example"]).failed(4, "bob@town.example");
}

#[test]
fn bad_users_are_refused() {
    let town = Fixture::new();
    town.run_with_input(&["users", "add", "no address"], PASSWORD).failed(2, "Sign up failed");
    town.run_with_input(&["users", "add", "ann@town.example"], PASSWORD).succeeded();
    town.run_with_input(&["users", "add", "ann@town.example"], PASSWORD).failed(1, "Sign up failed");
    town.run_with_input(&["users", "password", "bob@town.example"], PASSWORD).failed(4, "bob@town.example");
    town.run(&["users", "export", "00000000-0000-0000-0000-000000000000"]).failed(4, "There is no user");
}

#[test]
fn an_export_has_files_without_an_owner_in_the_folders_of_the_user() {
    let town = Fixture::seeded();
    let id = town.run(&["users", "list", "--json"]).json()["users"][0]["id"].as_str().expect("an id").to_owned();
    let space = town.run(&["users", "export", &id]).json_lines();
    let space = space.iter().find(|line| line["table"] == "spaces").expect("a space")["row"]["id"].clone();
    let source = town.file("a", "a");
    let private = format!("private/{id}/letter");
    let of_space = format!("spaces/{}/image", space.as_str().expect("an id"));
    for path in [&*private, &of_space, "assets/shared", "own/x"] {
        let bucket = ["--set", "buckets=own=private"];
        town.run(&[&["files", "put", &source, path], &bucket[..]].concat()).succeeded();
    }
    let lines = town.run(&["users", "export", &id]).json_lines();
    let files = lines.iter().filter(|line| line["table"] == "files");
    let mut paths: Vec<_> = files.map(|line| format!("{}/{}", line["row"]["bucket"], line["row"]["path"])).collect();
    paths.sort_unstable();
    assert_eq!(paths.join(" ").replace('"', ""), format!("{private} {of_space}"));
}
