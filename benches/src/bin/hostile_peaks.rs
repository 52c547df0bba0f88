//! The peak of memory while strangers try to fill it: streams that nobody reads, replays of a long log, a space with hundreds of
//! MiB of fidgets, and an upload that is to be verified.
//!
//! Each figure is the peak of a process of its own over the same client before the attack (Linux), on SQLite and PostgreSQL.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{env, process::Command};

use townsquare::{
    Config, ErrorKind, Json, Uuid,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{FidgetPatch, NewFidget, NewSpace},
    storage::UploadOptions,
};
use townsquare_benches::{process_memory, spaces::sqlite_url};
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    temp_dir,
};

/// Streams of each attack.
const STREAMS: usize = 64;

/// Changes of a row while nobody reads, and later replays.
const CHANGES: usize = 200;

/// Fidgets of the large space.
const FIDGETS: usize = 2_000;

const ATTACKS: [&str; 4] = ["unread", "replays", "space", "verify"];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [child, attack, url, folder] if child == "--child" => attack_of(attack, url, folder),
        _ => {
            let folder = temp_dir();
            run("SQLite", &|name| sqlite_url(&folder.path().join(format!("{name}.db"))));
            let server = Server::durable();
            let Some(server) = server.as_ref() else { return };
            run("PostgreSQL", &|_| server.socket_url(APP_ROLE, &server.new_database()));
        }
    }
}

fn run(engine: &str, url_of: &dyn Fn(&str) -> String) {
    println!("{engine}");
    for attack in ATTACKS {
        let (url, folder) = (url_of(attack), temp_dir());
        let program = env::current_exe().expect("a path of its own");
        let folder = folder.path().to_str().expect("UTF-8");
        let status = Command::new(program).args(["--child", attack, &url, folder]).status().expect("the child starts");
        assert!(status.success(), "{attack}: {status}");
    }
}

/// A value of 200 KiB, near the limit of a JSON value.
fn large(number: usize) -> Json {
    serde_json::json!({ "number": number, "text": "a".repeat(200 << 10) })
}

fn attack_of(attack: &str, url: &str, folder: &str) {
    let config = Config::new().database_url(url).data_dir(folder).catalog_api_key("");
    let client = Client::open(config).expect("the client opens");
    let service = client.as_service();
    let space = service.spaces().create_space(NewSpace::named("Target").public()).expect("a space").id;
    let before = match attack {
        "unread" => unread(&client, space),
        "replays" => replays(&client, space),
        "space" => large_space(&client, space),
        _ => verify(&service),
    };
    println!("  {attack}: {} MB over idle", (process_memory::peak() - before) / 1_000_000);
    client.close();
}

/// Changes a fidget [`CHANGES`] times.
fn change(client: &Client, space: Uuid) {
    let service = client.as_service();
    let fidget = service.fidgets().create_fidget(space, NewFidget::of_type("clock")).expect("a fidget").id;
    for number in 0..CHANGES {
        service.fidgets().update_fidget(fidget, FidgetPatch::new().config(Some(large(number)))).expect("changed");
    }
}

fn unread(client: &Client, space: Uuid) -> u64 {
    let open = |_| client.realtime().changes(ChangeRequest::table("fidgets")).expect("a stream");
    let streams: Vec<_> = (0..STREAMS).map(open).collect();
    let before = process_memory::peak();
    change(client, space);
    drop(streams);
    before
}

fn replays(client: &Client, space: Uuid) -> u64 {
    let cursor = client.as_service().realtime().cursor().expect("a cursor");
    change(client, space);
    let before = process_memory::peak();
    let open = |_| client.realtime().changes(ChangeRequest::table("fidgets").since(&cursor)).expect("a stream");
    let mut streams: Vec<_> = (0..STREAMS).map(open).collect();
    for stream in &mut streams {
        stream.next().expect("a change").expect("no error");
    }
    before
}

fn large_space(client: &Client, space: Uuid) -> u64 {
    let service = client.as_service();
    for number in 0..FIDGETS {
        let fidget = NewFidget::of_type("clock").config(large(number));
        service.fidgets().create_fidget(space, fidget).expect("a fidget");
    }
    let before = process_memory::peak();
    let error = client.spaces().get_space_with_fidgets(space).expect_err("hundreds of MiB");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    before
}

fn verify(service: &Client) -> u64 {
    // Empty lists take many times their text in memory.
    let source = format!("[{}0]", "[],".repeat((49 << 20) / 3));
    let before = process_memory::peak();
    let error = service.storage().upload("assets", "large", source, UploadOptions::new().verify(true));
    assert_eq!(error.expect_err("too large to verify").kind(), ErrorKind::TooLarge);
    before
}
