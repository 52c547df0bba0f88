//! An upload or a move that fails with another code than 08007 did not happen, and does not happen later. After 08007, the first look
//! of the client tells how it ended.

use townsquare::{
    ErrorKind,
    check::{CheckDepth, FindingCode},
    storage::{ListFiles, Overwrite, UploadOptions},
};
use townsquare_tests::{fixture::assert_kind, test_database::Engine};

use super::{
    content::content,
    fixture::{Fixture, Store, put},
};

/// The server stops while an upload with installed bytes writes its row. The next reader of the file finishes the upload.
#[test]
fn an_upload_whose_row_could_not_be_written_is_in_doubt() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::Folder(0)) else { return };
    let old = fixture.put("assets", "a", content(1, 600));
    fixture.db.raw.run(
        "CREATE FUNCTION cut() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS
             'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END';
         CREATE TRIGGER cut BEFORE UPDATE ON townsquare.files FOR EACH ROW EXECUTE FUNCTION cut()",
    );
    let error = put(&fixture.db.service, "assets", "a", content(2, 600)).expect_err("the connection is cut");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("08007")), "{error:?}");
    fixture.db.raw.run("DROP TRIGGER cut ON townsquare.files; DROP FUNCTION cut");
    assert_eq!(fixture.get("assets", "a"), content(2, 600));
    let info = fixture.db.service.storage().stat("assets", "a").expect("found");
    assert_ne!(info.etag, old.etag);
}

/// The connection ends once, while the move writes its row. The library looks how the move ended, and finishes it.
#[test]
fn a_move_whose_connection_is_lost_once_is_finished() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::Folder(0)) else { return };
    fixture.put("assets", "draft", content(1, 600));
    fixture.db.raw.run(
        "CREATE SEQUENCE cuts;
         CREATE FUNCTION cut() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS
             'BEGIN IF nextval(''public.cuts'') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END';
         CREATE TRIGGER cut BEFORE INSERT ON townsquare.files FOR EACH ROW EXECUTE FUNCTION cut()",
    );
    let moved = fixture.db.service.storage().move_file("assets", "draft", "page", Overwrite::Refuse).expect("moved");
    assert_eq!(fixture.db.service.storage().stat("assets", "page").expect("found"), moved);
    assert_eq!(fixture.get("assets", "page"), content(1, 600));
    assert!(!fixture.db.service.storage().exists("assets", "draft").expect("asked"));
}

/// Whether a move seems to have happened.
type Look<'a> = &'a dyn Fn(&Fixture) -> bool;

/// The database refuses the row of a move, and later accepts it. A program that looks before it writes loses no bytes.
#[test]
fn what_a_look_after_a_move_in_doubt_tells_stays_true() {
    for (engine, refuse, accept) in [
        (
            Engine::Sqlite,
            "CREATE TRIGGER refuse BEFORE INSERT ON townsquare_files BEGIN SELECT RAISE(ABORT, 'no'); END",
            "DROP TRIGGER refuse",
        ),
        (
            Engine::Postgres,
            "CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
             CREATE TRIGGER refuse BEFORE INSERT ON townsquare.files FOR EACH ROW EXECUTE FUNCTION refuse()",
            "DROP TRIGGER refuse ON townsquare.files; DROP FUNCTION refuse",
        ),
    ] {
        let looks: [(&str, Look<'_>); 4] = [
            ("exists", &|fixture| fixture.db.service.storage().exists("assets", "page").expect("asked")),
            ("stat", &|fixture| fixture.db.service.storage().stat("assets", "page").is_ok()),
            ("the source", &|fixture| !fixture.db.service.storage().exists("assets", "draft").expect("asked")),
            ("list", &|fixture| {
                let files = fixture.db.service.storage().list("assets", ListFiles::new()).expect("listed");
                files.iter().any(|file| file.path == "page")
            }),
        ];
        for (name, has_moved) in looks {
            let Some(fixture) = Fixture::on(engine, Store::Folder(0)) else { return };
            fixture.put("assets", "draft", content(1, 600));
            fixture.db.raw.run(refuse);
            let storage = fixture.db.service.storage();
            let error = storage.move_file("assets", "draft", "page", Overwrite::Refuse).expect_err("refused");
            assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("08007")), "{error:?}");
            fixture.db.raw.run(accept);
            assert!(has_moved(&fixture), "{engine:?}, {name}: the bytes are at the target");
            assert!(!storage.exists("assets", "draft").expect("asked"), "{engine:?}, {name}");
            let new = UploadOptions::new().upsert(false);
            assert_kind(ErrorKind::AlreadyExists, storage.upload("assets", "page", content(2, 600), new));
            assert_eq!(fixture.get("assets", "page"), content(1, 600), "{engine:?}, {name}");
            let mut findings = fixture.db.service.check(CheckDepth::Full).expect("checked");
            // The clock of the test.
            findings.retain(|finding| finding.code != FindingCode::ClockDiffers);
            assert!(findings.is_empty(), "{engine:?}, {name}: {findings:?}");
        }
    }
}
