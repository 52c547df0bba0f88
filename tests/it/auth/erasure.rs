//! What belonged to a deleted user is gone from the files of a SQLite database and from later backups (`secure_delete`).

use std::{fs, path::Path};

use townsquare::{
    Config,
    auth::UserPatch,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
    storage::UploadOptions,
};
use townsquare_tests::{raw_sql::RawConnection, temp_dir};

const PASSWORD: &str = "correct horse";

/// The users who are deleted.
const DELETED: [&str; 2] = ["ann@town.example", "bob@town.example"];

fn open(data_dir: &Path) -> Client {
    Client::open(Config::new().data_dir(data_dir).catalog_api_key("")).expect("opened")
}

/// Every file below a folder, with its bytes.
fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).expect("read")));
        }
    }
    files
}

/// The marks that a folder contains, each with the file that it is in.
fn found(folder: &Path, marks: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, bytes) in files_below(folder) {
        for mark in marks {
            if bytes.windows(mark.len()).any(|window| window == mark.as_bytes()) {
                found.push(format!("{mark} in {file}"));
            }
        }
    }
    found
}

fn sha256(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fills the tables with a user's rows. Returns the marks by which these rows are found in a file.
fn fill(client: &Client, data_dir: &Path, address: &str) -> Vec<String> {
    let service = client.as_service();
    let name = address.split('@').next().expect("a name");
    let first = format!("first-{address}");
    let user = service.auth().sign_up(&first, PASSWORD).expect("signed up");
    for address in [&first, address] {
        // Counted by the hash of the address, whether or not it has an account.
        service.auth().sign_in(address, "a wrong password").expect_err("a wrong password");
    }
    let session = service.auth().sign_in(&first, PASSWORD).expect("signed in");
    let own = client.as_user(&session.access_token).expect("a handle");
    own.auth().update_user(PASSWORD, UserPatch::new().email(address)).expect("another address");
    service.auth().sign_in(address, "a wrong password").expect_err("a wrong password");
    let token = service.auth().create_verification_token(user.id).expect("a token");
    service.auth().verify_email(&token).expect("verified");
    service.auth().create_recovery_token(address).expect("asked").expect("a token");
    let space = own.spaces().create_space(NewSpace::named(format!("Space of {name}"))).expect("created");
    let fidget = NewFidget::of_type("text").config(serde_json::json!({ "text": format!("Text of {name}") }));
    own.fidgets().create_fidget(space.id, fidget).expect("created");
    let path = format!("{}/homebase", user.id);
    let content = format!("Homebase of {name}");
    own.storage().upload("private", &path, content.clone(), UploadOptions::new()).expect("stored");
    let raw = RawConnection::sqlite(&data_dir.join("townsquare.db"));
    let hash = raw.value(&format!("SELECT password_hash FROM townsquare_credentials WHERE user_id = '{}'", user.id));
    let texts = [format!("Space of {name}"), format!("Text of {name}"), content];
    let session = sha256(&session.access_token);
    [vec![address.to_owned(), hash, sha256(address), session], texts.to_vec()].concat()
}

/// Signs up users who are not deleted. Their rows lie before and after the rows of the deleted users.
fn sign_up_others(client: &Client, from: usize) {
    for number in from..from + 10 {
        let address = format!("other{number}@town.example");
        client.as_service().auth().sign_up(&address, PASSWORD).expect("signed up");
    }
}

#[test]
fn nothing_of_a_deleted_user_is_left_in_the_database_and_in_a_later_backup() {
    let folder = temp_dir();
    let (data_dir, backups) = (folder.path().join("data"), folder.path().join("backups"));
    fs::create_dir(&backups).expect("a folder");
    let client = open(&data_dir);
    // From here on the log of changes has their rows, too.
    client.as_service().realtime().cursor().expect("a cursor");
    sign_up_others(&client, 0);
    let marks = DELETED.map(|address| fill(&client, &data_dir, address)).concat();
    sign_up_others(&client, 10);
    client.close();
    let is_there = |mark: &String| !found(&data_dir, std::slice::from_ref(mark)).is_empty();
    let missing: Vec<_> = marks.iter().filter(|mark| !is_there(mark)).collect();
    assert!(missing.is_empty(), "the test looks for what was never there: {missing:?}");

    let client = open(&data_dir);
    let service = client.as_service();
    let ann = service.auth().find_user(DELETED[0]).expect("asked").expect("a user");
    service.auth().delete_user(ann.id).expect("deleted by the service");
    let session = service.auth().sign_in(DELETED[1], PASSWORD).expect("signed in");
    let bob = client.as_user(&session.access_token).expect("a handle");
    bob.auth().delete_own_user(PASSWORD).expect("deleted by the user");
    client.backup(backups.join("backup.db")).expect("a backup");
    client.close();
    assert_eq!(found(&data_dir, &marks), Vec::<String>::new());
    assert_eq!(found(&backups, &marks), Vec::<String>::new());

    // The rows of the other users stay.
    let client = open(&data_dir);
    client.as_service().auth().sign_in("other19@town.example", PASSWORD).expect("signed in");
    client.close();
}

#[test]
fn an_address_that_was_changed_is_gone() {
    let folder = temp_dir();
    let client = open(folder.path());
    let (old, new) = ("ann-before@town.example", "ann@town.example");
    let service = client.as_service();
    service.auth().sign_up(old, PASSWORD).expect("signed up");
    service.auth().sign_in(old, "a wrong password").expect_err("a wrong password");
    let session = service.auth().sign_in(old, PASSWORD).expect("signed in");
    let ann = client.as_user(&session.access_token).expect("a handle");
    service.auth().sign_in(old, "a wrong password").expect_err("a wrong password");
    ann.auth().update_user(PASSWORD, UserPatch::new().email(new)).expect("another address");
    client.close();
    assert_eq!(found(folder.path(), &[old.to_owned(), sha256(old)]), Vec::<String>::new());
    assert!(!found(folder.path(), &[new.to_owned()]).is_empty());
}

#[test]
fn a_file_that_was_deleted_or_replaced_is_gone() {
    let folder = temp_dir();
    let client = open(folder.path());
    let service = client.as_service();
    let storage = service.storage();
    let large = "An inline file that takes several pages. ".repeat(1_000);
    for (path, content) in [("deleted", large.as_str()), ("replaced", "A short file.")] {
        storage.upload("assets", path, content.to_owned(), UploadOptions::new()).expect("stored");
    }
    storage.delete("assets", "deleted").expect("deleted");
    storage.upload("assets", "replaced", "other", UploadOptions::new()).expect("replaced");
    client.close();
    let marks = ["An inline file".to_owned(), "A short file.".to_owned()];
    assert_eq!(found(folder.path(), &marks), Vec::<String>::new());
}
