//! `check`, `repair`, `backup`, `restore` and `seed`.

use std::fs;

use crate::town::Town;

#[test]
fn a_sound_database_has_no_findings() {
    let town = Town::seeded();
    assert_eq!(town.run(&["check", "--full", "--json"]).json(), serde_json::json!({ "findings": [] }));
    assert_eq!(town.run(&["check"]).succeeded().out, "");
}

#[test]
fn check_finds_a_stray_object_and_repair_removes_it() {
    let town = Town::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    let stray = town.path("town/files/assets/stray");
    fs::write(&stray, "x").expect("a file");
    let ran = town.run(&["check", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let orphan = &found["findings"][0];
    assert_eq!((&orphan["code"], &orphan["severity"]), (&"orphan_object".into(), &"warning".into()), "{found}");
    assert!(orphan["message"].as_str().is_some_and(|message| message.contains("stray")), "{found}");

    town.run(&["repair"]).failed(2, "Nobody can be asked");
    assert!(stray.exists());
    assert_eq!(town.run(&["repair", "--yes", "--json"]).json()["orphans_removed"], 1);
    assert!(!stray.exists());
    town.run(&["check"]).succeeded();

    fs::write(&stray, "x").expect("a file");
    let unasked = town.run(&["check", "--fix"]);
    assert!(unasked.code == 2 && unasked.out.contains("orphan_object") && stray.exists(), "{unasked:?}");
    assert_eq!(town.run(&["check", "--fix", "--yes", "--json"]).json(), serde_json::json!({ "findings": [] }));
    assert!(!stray.exists());
}

#[test]
fn check_needs_a_database() {
    let town = Town::new();
    town.run(&["check"]).failed(4, "There is no database");
    assert!(!town.path("town").exists());
}

#[test]
fn check_of_a_damaged_file_is_no_success() {
    let town = Town::new();
    fs::create_dir(town.path("town")).expect("a folder");
    fs::write(town.path("town/townsquare.db"), "no database".repeat(1_000)).expect("a file");
    let ran = town.run(&["check"]);
    assert!(ran.code != 0 && ran.err.contains("townsquare: ") && ran.err.contains("\ntry: "), "{ran:?}");
}

#[test]
fn a_backup_is_restored_with_its_files() {
    let town = Town::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    town.run(&["backup", "copy.db"]).succeeded();
    town.run(&["backup", "copy.db"]).failed(2, "exists");
    town.run(&["restore", "copy.db"]).failed(2, "Restore failed");
    town.run(&["restore", "missing.db", "elsewhere"]).failed(4, "missing.db");
    town.run(&["restore", "copy.db", "elsewhere"]).succeeded();
    let users = |folder: &str| town.run(&["users", "list", "--json", "--data-dir", folder]).json();
    assert_eq!(users("elsewhere"), users("town"));
    assert_eq!(town.run(&["files", "get", "assets/large", "--data-dir", "elsewhere"]).succeeded().out.len(), 100_000);
    town.run(&["check", "--full", "--data-dir", "elsewhere"]).succeeded();
}

#[test]
fn seed_adds_the_numbers_that_it_says() {
    let town = Town::new();
    let added = town.run(&["seed", "--users", "2", "--spaces", "5", "--fidgets", "1", "--json"]).json();
    assert_eq!(added, serde_json::json!({ "users": 2, "spaces": 5, "fidgets": 5 }));
    // A second run adds as many.
    town.run(&["seed", "--users", "1", "--spaces", "0"]).succeeded();
    let users = town.run(&["users", "list", "--json"]).json();
    let users = users["users"].as_array().expect("users");
    assert_eq!(users.len(), 3);
    let spaces = |user: &serde_json::Value| {
        let lines = town.run(&["users", "export", user["id"].as_str().expect("an id")]).json_lines();
        lines.iter().filter(|line| line["table"] == "spaces").count()
    };
    assert_eq!(users.iter().map(spaces).sum::<usize>(), 5);
    assert_eq!(town.run(&["seed", "--fidgets", "1001"]).code, 2);
}
