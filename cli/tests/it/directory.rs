//! `search`, `trending`, `apps show`, `refresh` and `stats`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
};

use serde_json::Value;

use crate::fixture::{Fixture, run};

#[test]
fn search_lists_apps_and_tolerates_a_typo() {
    let town = Fixture::new();
    let found = town.run(&["search", "harbour", "ches", "--json"]).json();
    let first = &found["apps"][0];
    assert!(first["name"].as_str().is_some_and(|name| name.contains("Harbor Chess")), "{found}");
    let id = first["id"].as_str().expect("an id");
    let shown = town.run(&["apps", "show", id, "--json"]).json();
    assert_eq!((&shown["id"], &shown["name"]), (&first["id"], &first["name"]));
    let table = town.run(&["search", "harbor", "chess"]).succeeded().out;
    assert!(table.starts_with("NAME") && table.contains("Harbor Chess") && !table.contains('\u{1b}'), "{table}");
}

#[test]
fn a_search_without_a_database_makes_no_folder() {
    let town = Fixture::new();
    let mut command = town.bare();
    command.env("TOWNSQUARE_CATALOG_URL", "sample:").args(["search", "chess", "--json"]);
    assert!(run(command, "").json()["total"].as_u64() > Some(0));
    town.run(&["search", "chess", "--data-dir", "typo"]).succeeded();
    town.run(&["trending", "--database-url", "sqlite:typo.db"]).succeeded();
    assert_eq!(fs::read_dir(town.path("")).expect("the folder").count(), 0);
}

#[test]
fn trending_has_pages_and_filters() {
    let town = Fixture::new();
    let all = town.run(&["trending", "--json", "--limit", "100"]).json();
    let apps = all["apps"].as_array().expect("apps");
    assert_eq!((all["total"].as_u64(), apps.len()), (Some(40), 40));
    let page = town.run(&["trending", "--json", "-n", "2", "--offset", "1"]).json();
    let ids = |apps: &[Value]| apps.iter().map(|app| app["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(page["apps"].as_array().expect("apps")), ids(&apps[1..3]));
    let games = town.run(&["trending", "--json", "--category", "games"]).json();
    let games = games["apps"].as_array().expect("apps");
    assert!(!games.is_empty() && games.len() < 40, "{games:?}");
    town.run(&["trending", "--limit", "100000"]).failed(2, "limit");
    assert_eq!(town.run(&["trending", "--timeframe", "3h"]).code, 2);
}

#[test]
fn an_unknown_app_is_not_found() {
    Fixture::new().run(&["apps", "show", "nothing"]).failed(4, "nothing");
}

#[test]
fn refresh_stores_the_catalog_and_stats_show_it() {
    Fixture::new().run(&["stats"]).failed(4, "There is no database");
    Fixture::new().run(&["refresh"]).failed(4, "There is no database");
    let town = Fixture::seeded();
    assert_eq!(town.run(&["refresh", "--json"]).json()["catalog"]["total"], 40);
    let stats = town.run(&["stats", "--json"]).json();
    assert_eq!((&stats["catalog"]["total"], &stats["feed"]["retained"]), (&40.into(), &0.into()), "{stats}");
}

#[test]
fn a_catalog_that_is_missing_is_a_failure_of_refresh() {
    let town = Fixture::seeded();
    let mut command = town.command(&["refresh"]);
    command.env("TOWNSQUARE_CATALOG_URL", "no-such-file.json");
    // The library logs a warning.
    let ran = run(command, "");
    assert!(ran.code == 4 && ran.err.contains("no-such-file.json") && ran.err.contains("\ntry: "), "{ran:?}");
    let mut command = town.command(&["refresh"]);
    command.env("TOWNSQUARE_CATALOG_URL", "https://api.neynar.com");
    let ran = run(command, "");
    assert!(ran.code == 2 && ran.err.contains("\ntownsquare: There is no catalog"), "{ran:?}");
}

#[test]
fn a_catalog_that_lost_its_apps_is_refused_without_force() {
    let town = Fixture::seeded();
    let write = |apps: usize| {
        let frames: Vec<_> =
            (0..apps).map(|number| serde_json::json!({"frames_url": format!("https://{number}.example")})).collect();
        fs::write(town.path("catalog.json"), serde_json::json!({ "frames": frames }).to_string()).expect("a file");
    };
    let refresh = |arguments: &[&str]| {
        let mut command = town.command(arguments);
        command.env("TOWNSQUARE_CATALOG_URL", "catalog.json");
        run(command, "")
    };
    write(60);
    assert_eq!(refresh(&["refresh", "--json"]).json()["catalog"]["total"], 60);
    write(1);
    let refused = refresh(&["refresh"]);
    assert!(refused.code != 0 && refused.out.is_empty(), "{refused:?}");
    assert_eq!(refresh(&["refresh", "--force", "--json"]).json()["catalog"]["total"], 1);
}

#[test]
fn watched_stats_are_lines_and_a_closed_pipe_ends_them_without_an_error() {
    let town = Fixture::seeded();
    let mut command = town.command(&["stats", "--watch", "--every", "1", "--json"]);
    let mut process = command.spawn().expect("the command starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    for _ in 0..2 {
        let line = lines.next().expect("a line").expect("text");
        assert!(serde_json::from_str::<Value>(&line).is_ok_and(|stats| stats["feed"].is_object()), "{line}");
    }
    drop(lines);
    let output = process.wait_with_output().expect("the command ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
