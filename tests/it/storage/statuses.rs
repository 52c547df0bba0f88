//! SPEC 7's table of statuses, word for word, with the prefixes.

use std::io::Write as _;

use townsquare::{
    Error, ErrorKind, Uuid,
    blocking::wait,
    error::FILE_ERRORS,
    storage::{ListFiles, Overwrite, UploadOptions},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{assert_refused, put};

on_both_engines! {
    fn each_status_has_the_message_of_spec_7(db: &TestDatabase) {
        let table = FILE_ERRORS.map(|(status, _, message)| (status, message));
        assert_eq!(table, [
            (400, "Invalid file or request"),
            (401, "Unauthorized file access"),
            (403, "Forbidden file access"),
            (404, "File not found"),
            (413, "File too large"),
        ]);
        let refused = put(&db.service, "assets", "../a", "x");
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
        let refused = put(&db.client, "assets", "a", "x");
        assert_refused(refused, ErrorKind::Unauthorized, 401, "Upload failed: Unauthorized file access");
        db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = db.service.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
        let ann = db.client.as_user(&session.access_token).expect("a handle");
        let refused = put(&ann, "spaces", &format!("{}/tabOrder", Uuid::new_v4()), "x");
        assert_refused(refused, ErrorKind::Forbidden, 403, "Upload failed: Forbidden file access");
        let refused = ann.storage().download("assets", "a");
        assert_refused(refused, ErrorKind::NotFound, 404, "Download failed: File not found");
        put(&ann, "assets", "a", "x").expect("uploaded");
        let options = UploadOptions::new().upsert(false);
        let refused = ann.storage().upload("assets", "a", "y", options);
        let message = "Upload failed: Storage error: The file already exists";
        let cause = reason_of(&refused);
        assert_refused(refused, ErrorKind::AlreadyExists, 409, message);
        assert_eq!(cause, "assets/a");
        let current = ann.storage().stat("assets", "a").expect("found").etag;
        let refused = ann.storage().upload("assets", "a", "y", UploadOptions::new().if_match("other"));
        let why = reason_of(&refused);
        let message = "Upload failed: Storage error: The file has another version than if_match";
        assert_refused(refused, ErrorKind::Conflict, 412, message);
        assert_eq!(why, format!("assets/a has the etag {current}"));
        let refused = ann.storage().upload("assets", "none", "y", UploadOptions::new().if_match("other"));
        assert_eq!(reason_of(&refused), "assets/none does not exist");
        let refused = put(&ann, "assets", "a/b", "x");
        assert_eq!(reason_of(&refused), "assets/a/b is the name of a folder, or a folder in it is the name of a file");
    }

    fn an_ended_session_is_status_401(db: &TestDatabase) {
        db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = db.service.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
        let ann = db.client.as_user(&session.access_token).expect("a handle");
        put(&ann, "assets", "a", "x").expect("signed in");
        let mut writer = ann.storage().writer("assets", "b", UploadOptions::new()).expect("a writer");
        writer.write_all(b"x").expect("written");
        db.service.auth().set_password(session.user.id, "another passphrase").expect("ends the sessions");
        let message = |prefix: &str| format!("{prefix} failed: Unauthorized file access");
        let kind = ErrorKind::Unauthorized;
        assert_refused(put(&ann, "assets", "b", "x"), kind, 401, &message("Upload"));
        assert_refused(writer.finish(), kind, 401, &message("Upload"));
        let path = format!("{}/homebase", session.user.id);
        let upload = ann.storage().secure_upload("private", &path, "x", session.user.id, UploadOptions::new());
        assert_refused(upload, kind, 401, &message("Upload"));
        assert_refused(ann.storage().download("assets", "a"), kind, 401, &message("Download"));
        assert_refused(ann.storage().reader("assets", "a"), kind, 401, &message("Download"));
        assert_refused(ann.storage().stat("assets", "a"), kind, 401, &message("Get file"));
        assert_refused(ann.storage().list("assets", ListFiles::new()), kind, 401, &message("List files"));
        let copied = ann.storage().copy("assets", "a", "c", Overwrite::Refuse);
        assert_refused(copied, kind, 401, &message("Copy"));
        let moved = ann.storage().move_file("assets", "a", "c", Overwrite::Refuse);
        assert_refused(moved, kind, 401, &message("Move"));
        let refused = ann.storage().delete("assets", "a");
        assert_ne!(reason_of(&refused), "", "the session ended");
        assert_refused(refused, kind, 401, &message("Delete"));
        db.client.storage().download("assets", "a").expect("anonymous still may");
    }

    fn secure_upload_is_for_the_caller_alone(db: &TestDatabase) {
        db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = db.service.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
        let (ann, id) = (db.client.as_user(&session.access_token).expect("a handle"), session.user.id);
        let path = format!("{id}/homebase");
        let upload = |client: &townsquare::blocking::Client, user| {
            client.storage().secure_upload("private", &path, "{}", user, UploadOptions::new())
        };
        let message = "Unauthorized file upload";
        assert_refused(upload(&ann, Uuid::new_v4()), ErrorKind::Forbidden, 403, message);
        assert_refused(upload(&db.client, id), ErrorKind::Unauthorized, 401, message);
        assert!(db.service.storage().stat("private", &path).is_err());
        assert_eq!(upload(&ann, id).expect("one's own").owner_id, Some(id));
        upload(&db.service, id).expect("the service");
    }
}

/// The cause of a failure.
fn reason_of<T>(result: &Result<T, Error>) -> String {
    let error = result.as_ref().err().expect("a failure");
    error.reason().expect("a reason").to_owned()
}

#[test]
fn a_file_over_max_file_size_is_too_large_also_when_it_is_streamed() {
    let options =
        |config: townsquare::Config| config.max_file_size(100_000).storage_url("memory:").inline_file_limit(1_000);
    let Some(db) = TestDatabase::with(Engine::Sqlite, options) else { return };
    let message = "Upload failed: File too large";
    put(&db.service, "assets", "a", vec![0; 100_000]).expect("the limit");
    let refused = put(&db.service, "assets", "a", vec![0; 100_001]);
    assert_refused(refused, ErrorKind::TooLarge, 413, message);
    let writer = db.async_service().storage().writer("assets", "b", UploadOptions::new());
    let mut writer = wait(writer).expect("a writer");
    wait(writer.write(vec![0; 60_000])).expect("written");
    assert_refused(wait(writer.write(vec![0; 60_000])), ErrorKind::TooLarge, 413, message);
    assert_refused(wait(writer.finish()), ErrorKind::TooLarge, 413, message);
    assert!(db.service.storage().stat("assets", "b").is_err());
}
