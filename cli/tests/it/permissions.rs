//! Files and folders that the host denies: exit code 5, whatever the text of the error is.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use townsquare_tests::{postgres::is_root, skip::skip, subprocess::without_root};

use crate::fixture::{CommandOutput, Fixture, run};

fn set_mode(town: &Fixture, name: &str, mode: u32) {
    fs::set_permissions(town.path(name), fs::Permissions::from_mode(mode)).expect("the mode");
}

/// Runs a command as a user who is not root, in the folder of the fixture.
fn denied(town: &Fixture, arguments: &[&str]) -> CommandOutput {
    let own = town.command(arguments);
    let mut command: Command = without_root(town.command(arguments));
    command.stdin(Stdio::piped()).current_dir(own.get_current_dir().expect("a folder"));
    run(command, "")
}

#[test]
fn a_denied_file_has_exit_code_5() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    town.run(&["backup", "copy.db"]).succeeded();
    set_mode(&town, "", 0o755);

    // The file of the database, and then its folder.
    set_mode(&town, "town", 0o755);
    set_mode(&town, "town/townsquare.db", 0o000);
    denied(&town, &["users", "list"]).failed(5, "townsquare.db");
    set_mode(&town, "town", 0o000);
    denied(&town, &["users", "list"]).failed(5, "townsquare.toml: Permission denied");
    let elsewhere = ["users", "list", "--data-dir", "elsewhere", "--database-url", "sqlite:town/townsquare.db"];
    denied(&town, &elsewhere).failed(5, "townsquare.db as database: Permission denied");
    // A backup that cannot be read, and a place that cannot be written.
    set_mode(&town, "town", 0o755);
    set_mode(&town, "copy.db", 0o000);
    denied(&town, &["restore", "copy.db", "elsewhere"]).failed(5, "copy.db");

    let other = Fixture::seeded();
    other.run(&["files", "put", &large, "assets/large"]).succeeded();
    if is_root() {
        give(&other, "town", "nobody");
    }
    let secret = other.file("secret", "x");
    set_mode(&other, "secret", 0o000);
    set_mode(&other, "", 0o555);
    denied(&other, &["files", "put", &secret, "assets/secret"]).failed(5, "cannot be read");
    denied(&other, &["backup", "copy.db"]).failed(5, "Permission denied");
    // So that the fixture can be removed.
    set_mode(&other, "", 0o755);
    set_mode(&town, "town", 0o755);
}

/// Gives a file or a folder, with all in it, to a user.
fn give(town: &Fixture, name: &str, user: &str) {
    let given = Command::new("chown").args(["-R", user]).arg(town.path(name)).status().expect("chown runs");
    assert!(given.success());
}

/// A town of the user of [`denied`]. Reports a skip without root, who alone gives files away.
fn town_of_another_user() -> Option<Fixture> {
    if !is_root() {
        skip("a database of another user: this user is not root");
        return None;
    }
    let town = Fixture::seeded();
    give(&town, "town", "nobody");
    set_mode(&town, "", 0o755);
    Some(town)
}

#[test]
fn a_command_of_root_leaves_the_database_to_its_owner() {
    let Some(town) = town_of_another_user() else { return };
    town.run(&["check"]).succeeded();
    denied(&town, &["users", "list"]).succeeded();
}

#[test]
fn a_denied_file_beside_the_database_is_named() {
    let Some(town) = town_of_another_user() else { return };
    denied(&town, &["users", "list"]).succeeded();
    set_mode(&town, "town/townsquare.db-shm", 0o600);
    give(&town, "town/townsquare.db-shm", "root");
    denied(&town, &["users", "list"]).failed(5, "townsquare.db-shm: Permission denied");
}

#[test]
fn a_database_that_this_user_may_only_read_is_named() {
    let Some(town) = town_of_another_user() else { return };
    give(&town, "town", "root");
    set_mode(&town, "town/townsquare.db", 0o644);
    set_mode(&town, "town", 0o755);
    fs::remove_file(town.path("town/townsquare.db-shm")).expect("removed");
    let refused = denied(&town, &["users", "list"]);
    assert!(refused.code == 5 && refused.err.contains("townsquare.db as database: Permission denied"), "{refused:?}");
}
