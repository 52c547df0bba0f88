//! A database on a full disk opens for reading, and its writers fail with a clear error.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use townsquare::{Config, ErrorKind, blocking::Client, spaces::NewSpace, storage::UploadOptions};
use townsquare_tests::{
    subprocess::{child, name_of, role, run_on_small_disk},
    temp_dir,
};

const FOLDER: &str = "TOWNSQUARE_TEST_DISK";
const LARGE: usize = 200_000;

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_on_a_small_disk() {
    if role().as_deref() == Some("open on a full disk") {
        let disk: PathBuf = std::env::var_os(FOLDER).expect("the parent process sets the variable").into();
        open_on_a_full_disk(&disk);
    }
}

#[test]
fn a_database_on_a_full_disk_opens_for_reading() {
    let disk = temp_dir();
    let name = name_of(&child_process_on_a_small_disk);
    let child = child(name, "open on a full disk", &[(FOLDER, disk.path().to_str().expect("UTF-8"))]);
    run_on_small_disk(disk.path(), 8, &child);
}

/// Fills the disk to the last byte.
fn fill(file: &Path) {
    let mut filler = fs::File::create(file).expect("a name needs no room");
    for size in [4_096, 1] {
        while filler.write(&vec![1; size]).is_ok_and(|written| written > 0) {}
    }
}

fn open_on_a_full_disk(disk: &Path) {
    let (data, filler) = (disk.join("data"), disk.join("filler"));
    let open = || Client::open(Config::new().data_dir(&data).catalog_api_key("")).expect("opens").as_service();
    let close = |client: &Client| client.close();
    let upload = |client: &Client, path: &str, size: usize| {
        client.storage().upload("assets", path, vec![7; size], UploadOptions::new())
    };
    let root = Client::open(Config::new().data_dir(&data).catalog_api_key("")).expect("opens");
    let service = root.as_service();
    let space = service.spaces().create_space(NewSpace::named("here")).expect("created");
    upload(&service, "small", 10).expect("uploaded");
    upload(&service, "large", LARGE).expect("uploaded");
    close(&root);
    fill(&filler);
    // The second time the disk was full when the client closed.
    for _ in 0..2 {
        let client = Client::open(Config::new().data_dir(&data).catalog_api_key("")).expect("opens");
        let (service, other) = (client.as_service(), open());
        for service in [&service, &other] {
            assert_eq!(service.spaces().get_space(space.id).expect("read"), space);
            assert_eq!(service.storage().download("assets", "small").expect("read").len(), 10);
            assert_eq!(service.storage().download("assets", "large").expect("read").len(), LARGE);
        }
        // A commit of one page may fit into the room that the log has.
        let error = (0..100)
            .find_map(|_| service.spaces().create_space(NewSpace::named("x").description("x".repeat(9_000))).err())
            .expect("there is no room");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("53100")), "{error}");
        let error = upload(&service, "new", LARGE).expect_err("there is no room");
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 507), "{error}");
        drop(other);
        close(&client);
    }
    let client = Client::open(Config::new().data_dir(&data).catalog_api_key("").buckets("more=public"));
    let client = client.expect("a bucket that cannot be declared keeps nobody from reading");
    assert_eq!(client.as_service().spaces().get_space(space.id).expect("read"), space);
    fs::remove_file(&filler).expect("removed");
    upload(&client.as_service(), "new", LARGE).expect("there is room");
    close(&client);
}
