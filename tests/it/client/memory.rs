//! A client with nothing on the disk (`data_dir=":memory:"`), and a database in memory (`sqlite::memory:`).

use std::{fs, path::Path, sync::Arc, thread, time::Duration};

use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::NewSpace,
    storage::{ListFiles, UploadOptions},
};
use townsquare_tests::{
    fixture::assert_kind,
    subprocess::{child, in_subprocess, join_child, name_of, role},
    temp_dir,
};

fn in_memory() -> Config {
    Config::new().data_dir(":memory:").catalog_api_key("")
}

/// Signs Ann up and in.
fn signed_in(client: &Client) {
    client.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
    client.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
}

fn put(client: &Client, path: &str, size: usize) {
    client.storage().upload("assets", path, vec![7; size], UploadOptions::new()).expect("uploaded");
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Uses every area of a client.
fn use_all(client: &Client) {
    signed_in(client);
    let mut changes = client.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
    let space = client.spaces().create_space(NewSpace::named("Harbor").public()).expect("a space");
    let change = changes.next_within(Duration::from_secs(20)).expect("a change").expect("readable");
    assert_eq!(change.new.as_ref().expect("the row")["name"], "Harbor");
    changes.close();
    for size in [10, 100_000] {
        put(client, &size.to_string(), size);
        assert_eq!(client.storage().download("assets", &size.to_string()).expect("downloaded").len(), size);
    }
    assert_eq!(client.spaces().get_public_spaces(20, 0).expect("a page")[0].space.id, space.id);
    let live = client.realtime().live(townsquare::realtime::LiveRequest::table("spaces")).expect("rows");
    assert_eq!(live.rows.len(), 1);
    client.as_service().storage().repair().expect("nothing to do");
    assert_eq!(client.storage().list("assets", ListFiles::new()).expect("a list").len(), 2);
}

#[test]
fn nothing_appears_on_the_disk() {
    in_subprocess(nothing_appears_on_the_disk, || {
        let folder = temp_dir();
        std::env::set_current_dir(folder.path()).expect("a folder");
        for config in [
            in_memory(),
            Config::new().database_url("sqlite::memory:").catalog_api_key(""),
            Config::from_url("townsquare::memory:").expect("a URL").catalog_api_key(""),
        ] {
            let client = Client::open(config).expect("opens");
            use_all(&client);
            assert_eq!(entries(folder.path()), Vec::<String>::new());
            client.close();
        }
        assert_eq!(entries(folder.path()), Vec::<String>::new());
    });
}

#[test]
fn the_variable_of_the_folder_makes_a_client_in_memory_too() {
    let test = name_of(&the_variable_of_the_folder_makes_a_client_in_memory_too);
    if role().is_some() {
        let client = Client::open(Config::new().catalog_api_key("")).expect("opens");
        signed_in(&client);
        client.close();
        assert!(!Path::new(":memory:").exists() && !Path::new("townsquare-data").exists());
        return;
    }
    let folder = temp_dir();
    let mut child = child(test, "alone", &[("TOWNSQUARE_DATA_DIR", ":memory:")]);
    join_child(child.current_dir(folder.path()).spawn().expect("starts"));
}

#[test]
fn files_are_not_in_memory_beside_a_database_that_lasts() {
    let folder = temp_dir();
    let config = || in_memory().database_url(format!("sqlite:{}", folder.path().join("town.db").display()));
    let refused = Client::open(config()).expect_err("the files would be lost");
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused:?}");
    assert!(refused.to_string().contains("Set storage_url as well"), "{refused}");
    assert_eq!(entries(folder.path()), Vec::<String>::new(), "nothing is created");
    Client::open(config().storage_url("memory:")).expect("opens").close();
}

#[test]
fn two_clients_are_separate_and_a_closed_one_is_gone() {
    let [first, second] = [(); 2].map(|()| Client::open(in_memory()).expect("opens"));
    signed_in(&first);
    put(&first, "a", 100_000);
    first.spaces().create_space(NewSpace::named("Harbor").public()).expect("a space");
    assert!(second.spaces().get_public_spaces(20, 0).expect("a page").is_empty());
    assert!(!second.storage().exists("assets", "a").expect("an answer"));
    signed_in(&second);
    first.close();
    assert_kind(ErrorKind::Closed, first.spaces().get_public_spaces(20, 0));
    let third = Client::open(in_memory()).expect("opens");
    assert!(third.spaces().get_public_spaces(20, 0).expect("a page").is_empty());
    second.close();
    third.close();
}

#[test]
#[cfg(target_os = "linux")]
fn close_frees_the_memory() {
    /// The resident memory of this process in bytes.
    fn resident() -> u64 {
        let text = fs::read_to_string("/proc/self/statm").expect("Linux");
        text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4_096
    }
    let name = name_of(&close_frees_the_memory);
    if role().is_none() {
        // With more arenas glibc keeps freed memory for each thread, and which threads work depends on the load.
        join_child(child(name, "alone", &[("MALLOC_ARENA_MAX", "1")]).spawn().expect("starts"));
        return;
    }
    let fill = || {
        let client = Client::open(in_memory().inline_file_limit(50_000_000)).expect("opens");
        signed_in(&client);
        (0..6).for_each(|number| put(&client, &number.to_string(), 30_000_000));
        let filled = resident();
        client.close();
        filled
    };
    let filled = fill();
    for _ in 0..3 {
        fill();
    }
    assert!(resident() < filled, "{} of {filled} bytes are left after four clients", resident());
    assert!(filled > 180_000_000, "the files were in memory: {filled}");
}

#[test]
fn readers_and_writers_on_many_threads_take_turns() {
    let client = Client::open(in_memory()).expect("opens");
    signed_in(&client);
    let client = Arc::new(client);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let client = Arc::clone(&client);
            thread::spawn(move || {
                for number in 0..40 {
                    let name = format!("{thread} {number}");
                    let id = client.spaces().create_space(NewSpace::named(name.as_str()).public()).expect("a space").id;
                    assert_eq!(client.spaces().get_space(id).expect("its own write").name, name);
                    client.spaces().get_public_spaces(100, 0).expect("a page");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(client.spaces().iter_public_spaces(100).count(), 320);
    client.close();
}

#[test]
fn a_backup_has_all_files_and_is_restored_into_a_folder() {
    let folder = temp_dir();
    let [backup, restored] = ["backup.db", "restored"].map(|name| folder.path().join(name));
    let client = Client::open(in_memory()).expect("opens");
    use_all(&client);
    client.backup(&backup).expect("a backup");
    // The database is free again at once.
    put(&client, "later", 10);
    client.close();
    assert_kind(ErrorKind::Config, Client::restore(&backup, ":memory:"));
    Client::restore(&backup, &restored).expect("restored");
    let client = Client::open(Config::new().data_dir(&restored).catalog_api_key("")).expect("opens");
    for size in [10, 100_000] {
        assert_eq!(client.storage().download("assets", &size.to_string()).expect("downloaded"), vec![7; size]);
    }
    assert!(!client.storage().exists("assets", "later").expect("an answer"));
    client.close();
}

#[test]
fn an_export_leaves_writers_alone() {
    let folder = temp_dir();
    let client = Client::open(in_memory()).expect("opens");
    signed_in(&client);
    for size in [10, 100_000] {
        put(&client, &size.to_string(), size);
    }
    let writes = |_, _| {
        put(&client, "during", 10);
        std::ops::ControlFlow::Continue(())
    };
    let target = folder.path().join("exported");
    assert_eq!(client.as_service().storage().export_files(&target, writes).expect("exported"), 2);
    assert_eq!(fs::read(target.join("assets/100000")).expect("a file"), vec![7; 100_000]);
    client.close();
}

#[test]
fn what_needs_a_file_is_refused_by_name() {
    let refused = |config: Config| assert_kind(ErrorKind::Config, Client::open(config)).to_string();
    let message = refused(in_memory().persist_session(true));
    assert!(message.contains("persist_session") && message.contains("in memory"), "{message}");
    let message = refused(in_memory().migrate(false));
    assert!(message.contains("migrate") && message.contains("in memory"), "{message}");
    let message = refused(Config::new().database_url("sqlite::other:"));
    assert!(message.contains("database_url") && message.contains(":memory:"), "{message}");
}
