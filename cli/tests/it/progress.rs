//! `--progress json`: lines on the standard error.

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture};

/// The lines of the standard error that are JSON objects.
fn lines(ran: &CommandOutput) -> Vec<Value> {
    ran.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_seed_tells_how_much_is_done() {
    let town = Fixture::new();
    let ran = town.run(&["seed", "--users", "1", "--spaces", "4", "--progress", "json", "--json"]).succeeded();
    let lines = lines(&ran);
    let (first, last) = (lines.first().expect("a line"), lines.last().expect("a line"));
    assert_eq!((&first["done"], &first["all"], &first["ended"]), (&0.into(), &Value::Null, &false.into()), "{ran:?}");
    assert_eq!((&last["done"], &last["all"], &last["unit"]), (&5.into(), &5.into(), &"items".into()), "{ran:?}");
    assert!(last["ended"] == true && last["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{ran:?}");
    assert_eq!(last["progress"], "seed");
    // The data is not mixed with it.
    assert_eq!(ran.json()["spaces"], 4);
}

#[test]
fn files_moves_backups_and_restores_have_lines() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(3_000_000));
    let ran = town.run(&["files", "put", &large, "assets/large", "--progress", "json"]).succeeded();
    let last = lines(&ran).pop().expect("a line");
    assert_eq!((&last["done"], &last["unit"]), (&3_000_000.into(), &"bytes".into()), "{ran:?}");
    for arguments in [&["backup", "copy.db"][..], &["restore", "copy.db", "elsewhere"], &["check"]] {
        let ran = town.run(&[arguments, &["--progress", "json"]].concat()).succeeded();
        let last = lines(&ran).pop().expect("a line");
        assert_eq!(
            (&last["done"], &last["all"], &last["ended"]),
            (&Value::Null, &Value::Null, &true.into()),
            "{ran:?}"
        );
    }
    let mut command = town.bare();
    command.args(["move", "town", "target", "--progress", "json"]);
    let ran = crate::fixture::run(command, "").succeeded();
    let last = lines(&ran).pop().expect("a line");
    assert!(last["done"] == last["all"] && last["done"].as_u64().is_some_and(|done| done > 4), "{ran:?}");
}

#[test]
fn without_a_terminal_nothing_is_shown_by_default() {
    let town = Fixture::new();
    let ran = town.run(&["seed", "--users", "0"]).succeeded();
    assert_eq!(ran.err, "");
    assert_eq!(town.run(&["seed", "--progress", "loud"]).code, 2);
}
