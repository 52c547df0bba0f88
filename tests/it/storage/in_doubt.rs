//! An upload that fails with another code than 08007 did not happen, and does not happen later.

use townsquare::ErrorKind;
use townsquare_tests::test_database::Engine;

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
