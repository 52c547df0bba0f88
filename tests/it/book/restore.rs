//! The commands for PostgreSQL in the guide and in the chapter about restore, as an operator types them.

use std::{fs, path::Path, process::Command};

use townsquare::{Config, blocking::Client, storage::UploadOptions};
use townsquare_tests::{
    fixture::assert_kind,
    paths::workspace,
    postgres::{APP_ROLE, Server, program, server},
    temp_dir,
};

use super::pages::blocks;

/// Finds the line of a block that begins with `start`, and makes a command of it with other words in place of the examples.
fn command(file: &str, start: &str, words: &[(&str, &str)]) -> Command {
    let text = fs::read_to_string(workspace().join(file)).expect("the file is there");
    let lines = blocks(&text).0.into_iter().flat_map(|block| block.lines);
    let line = lines.map(|line| line.trim().to_owned()).find(|line| line.starts_with(start));
    let mut line = line.unwrap_or_else(|| panic!("{file} has a command {start}"));
    for (example, word) in words {
        assert!(line.contains(example), "`{line}` in {file} has {example}");
        line = line.replace(example, word);
    }
    let mut parts = line.split_whitespace();
    let mut command = program(parts.next().expect("a line of words"));
    command.args(parts);
    command
}

fn open(url: &str, folder: &Path, claim_store: bool) -> Client {
    let config = Config::new().data_dir(folder).database_url(url).claim_store(claim_store);
    Client::open(config).expect("it opens")
}

#[test]
fn a_dump_is_restored_on_another_server_by_the_commands_of_the_book() {
    let Some(first) = server() else { return };
    let Some(second) = Server::with_settings(&["fsync=off"]) else { return };
    let folder = temp_dir();
    let (dump, files) = (folder.path().join("town.dump"), folder.path().join("town"));
    let dump = dump.to_str().expect("text");
    let large = vec![b'x'; 100_000];
    let (first_name, second_name) = (first.new_database(), second.new_database());
    let (source, target) = (first.url(APP_ROLE, &first_name), second.url(APP_ROLE, &second_name));

    let client = open(&source, &files, false);
    client.auth().sign_up("ann@town.example", "correct horse").expect("an account");
    client.as_service().storage().upload("assets", "large", large.clone(), UploadOptions::new()).expect("stored");
    client.close();

    let words = [("OWNER", APP_ROLE), ("town.dump", dump), ("DATABASE", &source)];
    let output = command("core/src/postgres_guide.md", "pg_dump", &words).output().expect("pg_dump starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The roles of the old server are not there: pg_restore reports errors, which do no harm.
    let (role, database) = (format!("--role={APP_ROLE}"), format!("--dbname={target}"));
    let words = [("--role=town", &*role), ("--dbname=town", &database), ("town.dump", dump)];
    command("docs/src/restore.md", "pg_restore", &words).output().expect("pg_restore starts");

    let client = open(&target, &files, false);
    client.auth().sign_in("ann@town.example", "correct horse").expect("the account is there");
    assert_eq!(client.storage().download("assets", "large").expect("read").len(), large.len());
    let service = client.as_service();
    let refused = service.storage().upload("assets", "large", large.clone(), UploadOptions::new());
    assert_kind(townsquare::ErrorKind::Config, refused);
    client.close();
    let client = open(&target, &files, true);
    client.as_service().storage().upload("assets", "large", large, UploadOptions::new()).expect("the store is claimed");
    client.close();
    first.drop_database(&first_name);
}
