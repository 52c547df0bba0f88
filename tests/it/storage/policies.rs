//! Who may do what with files (DESIGN 4), each right with its negative twins: a stranger, nobody, another owner, an ended
//! session.

use townsquare::{
    Client, ErrorKind,
    blocking::wait,
    spaces::NewSpace,
    storage::{ListFiles, Overwrite},
};

use super::town::{Citizen, Town, assert_refused, bytes, on_every_store, paths, put};

fn may_not_write(town: &Town, client: &Client, bucket: &str, path: &str, status: u16) {
    let kind = if status == 401 { ErrorKind::Unauthorized } else { ErrorKind::Forbidden };
    let words = if status == 401 { "Unauthorized file access" } else { "Forbidden file access" };
    for size in [10, 100_000] {
        let refused = put(client, bucket, path, bytes(size, 1));
        assert_refused(refused, kind, status, &format!("Upload failed: {words}"));
    }
    let options = townsquare::storage::UploadOptions::new();
    let refused = wait(client.storage().writer(bucket, path, options)).map(drop);
    // A public bucket tells at the end whose the file is.
    if let Err(error) = refused {
        assert_eq!((error.kind(), error.status()), (kind, Some(status)));
    }
    if wait(town.db.service.storage().stat(bucket, path)).is_ok() {
        let deleted = wait(client.storage().delete(bucket, path)).expect_err("refused");
        if deleted.kind() == ErrorKind::NotFound {
            assert!(wait(client.storage().stat(bucket, path)).is_err(), "only a hidden file is missing");
        } else {
            assert_eq!((deleted.kind(), deleted.status()), (kind, Some(status)));
        }
    }
}

fn may_not_see(client: &Client, bucket: &str, path: &str) {
    let storage = client.storage();
    let kind = ErrorKind::NotFound;
    assert_refused(wait(storage.download(bucket, path)), kind, 404, "Download failed: File not found");
    assert_refused(wait(storage.stat(bucket, path)), kind, 404, "Get file failed: File not found");
    assert_refused(wait(storage.delete(bucket, path)), kind, 404, "Delete failed: File not found");
    assert!(!paths(client, bucket).contains(&path.to_owned()));
    let copied = wait(storage.copy(bucket, path, "elsewhere", Overwrite::Replace));
    assert_refused(copied, kind, 404, "Copy failed: File not found");
    let moved = wait(storage.move_file(bucket, path, "elsewhere", Overwrite::Replace));
    assert_refused(moved, kind, 404, "Move failed: File not found");
}

on_every_store! {
    fn the_owner_of_a_space_writes_its_files_and_everyone_reads_them(town: &Town) {
        let (ann, bob) = (town.citizen("ann"), town.citizen("bob"));
        // The files of a space are public, also of a space that is not.
        let space = wait(ann.client.spaces().create_space(NewSpace::named("Plaza"))).expect("a space");
        let path = format!("{}/tabs/Home", space.id);
        for size in [10, 100_000] {
            let info = put(&ann.client, "spaces", &path, bytes(size, 1)).expect("the owner");
            assert_eq!(info.owner_id, Some(ann.id));
            for client in [&ann.client, &bob.client, &town.db.client, &town.db.service] {
                assert!(wait(client.storage().download("spaces", &path)).expect("everyone") == bytes(size, 1));
                assert_eq!(paths(client, "spaces"), [path.clone()]);
            }
        }
        for (client, status) in [(&bob.client, 403), (&town.db.client, 401)] {
            may_not_write(town, client, "spaces", &path, status);
            may_not_write(town, client, "spaces", &format!("{}/tabs/Other", space.id), status);
        }
        may_not_write(town, &ann.client, "spaces", "no-space/tabs/Home", 403);
        let upper = format!("{}/tabs/Home", space.id.to_string().to_uppercase());
        may_not_write(town, &ann.client, "spaces", &upper, 403);
        put(&town.db.service, "spaces", "no-space/tabs/Home", "x").expect("the service writes anywhere");
        put(&town.db.service, "spaces", &path, "x").expect("the service");
        put(&ann.client, "spaces", &path, "y").expect("the owner of the space, also over the service's file");
        wait(ann.client.storage().delete("spaces", &path)).expect("the owner");
    }

    fn private_files_are_for_the_user_of_the_first_segment(town: &Town) {
        let (ann, bob) = (town.citizen("ann"), town.citizen("bob"));
        let path = format!("{}/homebase", ann.id);
        for size in [10, 100_000] {
            put(&ann.client, "private", &path, bytes(size, 1)).expect("her own");
            assert!(wait(ann.client.storage().download("private", &path)).expect("her own") == bytes(size, 1));
            for client in [&bob.client, &town.db.client] {
                may_not_see(client, "private", &path);
            }
        }
        may_not_write(town, &bob.client, "private", &path, 403);
        may_not_write(town, &town.db.client, "private", &path, 401);
        may_not_write(town, &ann.client, "private", "somebody/homebase", 403);
        let longer = format!("{}x/homebase", ann.id);
        may_not_write(town, &ann.client, "private", &longer, 403);
        assert!(town.get("private", &path) == bytes(100_000, 1), "the service reads all");
        let other = format!("{}/homebase", bob.id);
        let moved = wait(ann.client.storage().move_file("private", &path, &other, Overwrite::Replace));
        assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
        let copied = wait(ann.client.storage().copy("private", &path, &other, Overwrite::Replace));
        assert_refused(copied, ErrorKind::Forbidden, 403, "Copy failed: Forbidden file access");
        assert_eq!(paths(&town.db.service, "private"), [path]);
    }

    fn a_linked_key_names_private_files_until_it_is_unlinked(town: &Town) {
        const SEED: &str = "0101010101010101010101010101010101010101010101010101010101010101";
        let (ann, bob) = (town.citizen("ann"), town.citizen("bob"));
        let audience = wait(ann.client.auth().identity_audience()).expect("the audience");
        let now = townsquare_tests::fixture::start_time();
        let claim = townsquare::auth::identity_claim(ann.id, SEED, &audience, now).expect("a claim");
        let key = claim["publicKey"].as_str().expect("a key").to_owned();
        let path = format!("{key}/homebase");
        may_not_write(town, &ann.client, "private", &path, 403);
        wait(ann.client.auth().link_identity(&claim)).expect("linked");
        for size in [10, 100_000] {
            put(&ann.client, "private", &path, bytes(size, 1)).expect("her key");
            assert!(wait(ann.client.storage().download("private", &path)).expect("her key") == bytes(size, 1));
            may_not_see(&bob.client, "private", &path);
        }
        may_not_write(town, &bob.client, "private", &path, 403);
        wait(ann.client.auth().unlink_identity(&key)).expect("unlinked");
        may_not_see(&ann.client, "private", &path);
        may_not_write(town, &ann.client, "private", &path, 403);
    }

    fn any_user_adds_an_asset_and_its_owner_changes_it(town: &Town) {
        let (ann, bob) = (town.citizen("ann"), town.citizen("bob"));
        for size in [10, 100_000] {
            let path = format!("images/{size}.png");
            put(&ann.client, "assets", &path, bytes(size, 1)).expect("any user");
            for client in [&bob.client, &town.db.client] {
                assert!(wait(client.storage().download("assets", &path)).expect("everyone") == bytes(size, 1));
            }
            may_not_write(town, &bob.client, "assets", &path, 403);
            may_not_write(town, &town.db.client, "assets", &path, 401);
            may_not_write(town, &town.db.client, "assets", "images/new.png", 401);
            let moved = wait(bob.client.storage().move_file("assets", &path, "images/mine.png", Overwrite::Replace));
            assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
            put(&bob.client, "assets", "images/of bob.png", "x").expect("any user");
            let over = wait(bob.client.storage().copy("assets", "images/of bob.png", &path, Overwrite::Replace));
            assert_refused(over, ErrorKind::Forbidden, 403, "Copy failed: Forbidden file access");
            let over = wait(bob.client.storage().move_file("assets", "images/of bob.png", &path, Overwrite::Replace));
            assert_refused(over, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
            assert!(town.get("assets", &path) == bytes(size, 1), "nothing changed it");
            put(&ann.client, "assets", &path, "new").expect("the owner");
            wait(ann.client.storage().delete("assets", &path)).expect("the owner");
            town.put("assets", &path, "the service's");
            may_not_write(town, &ann.client, "assets", &path, 403);
            wait(town.db.service.storage().delete("assets", &path)).expect("the service");
        }
    }

    fn an_ended_session_reads_and_writes_nothing(town: &Town) {
        let Citizen { client, id } = town.citizen("ann");
        let path = format!("{id}/homebase");
        put(&client, "private", &path, "x").expect("signed in");
        put(&client, "private", &format!("{id}/large"), bytes(100_000, 1)).expect("signed in");
        wait(town.db.service.auth().set_password(id, "another passphrase")).expect("ends the sessions");
        let storage = client.storage();
        let options = townsquare::storage::UploadOptions::new;
        for error in [
            wait(storage.download("private", &path)).map(drop),
            wait(storage.download("private", &format!("{id}/large"))).map(drop),
            wait(storage.download("assets", "a")).map(drop),
            wait(storage.upload("private", &path, "y", options())).map(drop),
            wait(storage.upload("private", &path, bytes(100_000, 2), options())).map(drop),
            wait(storage.upload("assets", "a", "y", options())).map(drop),
            wait(storage.delete("private", &path)),
            wait(storage.list("private", ListFiles::new())).map(drop),
            wait(storage.copy("private", &path, &format!("{id}/b"), Overwrite::Refuse)).map(drop),
            wait(storage.move_file("private", &path, &format!("{id}/b"), Overwrite::Refuse)).map(drop),
        ] {
            let error = error.expect_err("the session has ended");
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error:?}");
        }
        assert_eq!(town.get("private", &path), "x");
        assert_eq!(paths(&town.db.service, "private").len(), 2);
    }

    fn export_and_repair_are_for_the_service(town: &Town) {
        let ann = town.citizen("ann");
        let target = town.folder.path().join("exported");
        for (client, kind, status) in
            [(&ann.client, ErrorKind::Forbidden, 403), (&town.db.client, ErrorKind::Unauthorized, 401)]
        {
            let words = if status == 403 { "Forbidden" } else { "Unauthorized" };
            let refused = wait(client.storage().repair());
            assert_refused(refused, kind, status, &format!("Repair failed: {words} file access"));
            let refused = wait(client.storage().export_files(&target, |_, _| {}));
            assert_refused(refused, kind, status, &format!("Export files failed: {words} file access"));
        }
        assert!(!target.exists());
    }
}
