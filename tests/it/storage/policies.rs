//! Who may do what with files (DESIGN 4), each right with its negative twins: a stranger, an anonymous caller, another owner, an ended
//! session.

use std::{ops::ControlFlow, time::Duration};

use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    spaces::NewSpace,
    storage::{ListFiles, Overwrite, UrlMethod},
};

use super::{
    fixture::{Fixture, SignedInUser, assert_refused, bytes, on_every_store, paths, put},
    requests::{Sender, send},
};

fn may_not_write(fixture: &Fixture, client: &Client, bucket: &str, path: &str, status: u16) {
    let kind = if status == 401 { ErrorKind::Unauthorized } else { ErrorKind::Forbidden };
    let words = if status == 401 { "Unauthorized file access" } else { "Forbidden file access" };
    for size in [10, 100_000] {
        let refused = put(client, bucket, path, bytes(size, 1));
        assert_refused(refused, kind, status, &format!("Upload failed: {words}"));
    }
    let options = townsquare::storage::UploadOptions::new();
    let refused = client.storage().writer(bucket, path, options).map(drop);
    // A public bucket tells at the end whose the file is.
    if let Err(error) = refused {
        assert_eq!((error.kind(), error.status()), (kind, status));
    }
    if fixture.db.service.storage().stat(bucket, path).is_ok() {
        let deleted = client.storage().delete(bucket, path).expect_err("refused");
        if deleted.kind() == ErrorKind::NotFound {
            assert!(client.storage().stat(bucket, path).is_err(), "only a hidden file is missing");
        } else {
            assert_eq!((deleted.kind(), deleted.status()), (kind, status));
        }
    }
}

fn may_not_see(client: &Client, bucket: &str, path: &str) {
    let storage = client.storage();
    let kind = ErrorKind::NotFound;
    assert_refused(storage.download(bucket, path), kind, 404, "Download failed: File not found");
    assert_refused(storage.stat(bucket, path), kind, 404, "Get file failed: File not found");
    assert_refused(storage.delete(bucket, path), kind, 404, "Delete failed: File not found");
    assert!(!paths(client, bucket).contains(&path.to_owned()));
    let copied = storage.copy(bucket, path, "elsewhere", Overwrite::Replace);
    assert_refused(copied, kind, 404, "Copy failed: File not found");
    let moved = storage.move_file(bucket, path, "elsewhere", Overwrite::Replace);
    assert_refused(moved, kind, 404, "Move failed: File not found");
}

on_every_store! {
    fn the_owner_of_a_space_writes_its_files_and_everyone_reads_them(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        // The files of a space are public, also of a space that is not.
        let space = ann.client.spaces().create_space(NewSpace::named("Plaza")).expect("a space");
        let path = format!("{}/tabs/Home", space.id);
        for size in [10, 100_000] {
            let info = put(&ann.client, "spaces", &path, bytes(size, 1)).expect("the owner");
            assert_eq!(info.owner_id, Some(ann.id));
            for client in [&ann.client, &bob.client, &fixture.db.client, &fixture.db.service] {
                assert!(client.storage().download("spaces", &path).expect("everyone") == bytes(size, 1));
                assert_eq!(client.storage().stat("spaces", &path).expect("everyone").size, size as u64);
            }
        }
        for (client, status) in [(&bob.client, 403), (&fixture.db.client, 401)] {
            may_not_write(fixture, client, "spaces", &path, status);
            may_not_write(fixture, client, "spaces", &format!("{}/tabs/Other", space.id), status);
        }
        may_not_write(fixture, &ann.client, "spaces", "no-space/tabs/Home", 403);
        let upper = format!("{}/tabs/Home", space.id.to_string().to_uppercase());
        may_not_write(fixture, &ann.client, "spaces", &upper, 403);
        put(&fixture.db.service, "spaces", "no-space/tabs/Home", "x").expect("the service writes anywhere");
        put(&fixture.db.service, "spaces", &path, "x").expect("the service");
        put(&ann.client, "spaces", &path, "y").expect("the owner of the space, also over the service's file");
        ann.client.storage().delete("spaces", &path).expect("the owner");
    }

    fn lists_show_the_files_of_own_and_of_public_spaces(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let create = |user: &SignedInUser, space: NewSpace| user.client.spaces().create_space(space).expect("a space").id;
        let (private, public) = (create(&ann, NewSpace::named("x")), create(&ann, NewSpace::named("x").public()));
        let (of_bob, page) = (create(&bob, NewSpace::named("x")), Uuid::new_v4());
        let mut all: Vec<String> = Vec::new();
        for folder in [private, public, of_bob, page].map(|id| id.to_string()).into_iter().chain(["pages".to_owned()]) {
            for (name, size) in [("tabOrder", 10), ("tabs/Home", 100_000)] {
                all.push(format!("{folder}/{name}"));
                fixture.put("spaces", &format!("{folder}/{name}"), bytes(size, 1));
            }
        }
        all.sort_unstable();
        let of = |spaces: &[Uuid]| {
            let is_of = |path: &&String| spaces.iter().any(|id| path.starts_with(&id.to_string()));
            all.iter().filter(is_of).cloned().collect::<Vec<_>>()
        };
        for (client, seen) in [
            (&ann.client, vec![private, public]),
            (&bob.client, vec![public, of_bob]),
            (&fixture.db.client, vec![public]),
        ] {
            assert_eq!(paths(client, "spaces"), of(&seen));
            for id in [private, public, of_bob, page] {
                let due = if seen.contains(&id) { of(&[id]) } else { Vec::new() };
                for prefix in [format!("{id}/"), id.to_string(), id.to_string()[..30].to_owned()] {
                    let listed = client.storage().list("spaces", ListFiles::with_prefix(&prefix)).expect("listed");
                    assert_eq!(listed.into_iter().map(|file| file.path).collect::<Vec<_>>(), due, "{prefix}");
                }
            }
            assert!(client.storage().list("spaces", ListFiles::with_prefix("pages/")).expect("listed").is_empty());
            // Page by page, with every path as the place to go on from.
            for after in &all {
                let page = client.storage().list("spaces", ListFiles::new().after(after).limit(2)).expect("a page");
                let due: Vec<_> = of(&seen).into_iter().filter(|path| path > after).take(2).collect();
                assert_eq!(page.into_iter().map(|file| file.path).collect::<Vec<_>>(), due);
            }
        }
        assert_eq!(paths(&fixture.db.service, "spaces"), all);
    }

    fn private_files_are_for_the_user_of_the_first_segment(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let path = format!("{}/homebase", ann.id);
        for size in [10, 100_000] {
            put(&ann.client, "private", &path, bytes(size, 1)).expect("her own");
            assert!(ann.client.storage().download("private", &path).expect("her own") == bytes(size, 1));
            for client in [&bob.client, &fixture.db.client] {
                may_not_see(client, "private", &path);
            }
        }
        may_not_write(fixture, &bob.client, "private", &path, 403);
        may_not_write(fixture, &fixture.db.client, "private", &path, 401);
        may_not_write(fixture, &ann.client, "private", "somebody/homebase", 403);
        let longer = format!("{}x/homebase", ann.id);
        may_not_write(fixture, &ann.client, "private", &longer, 403);
        assert!(fixture.get("private", &path) == bytes(100_000, 1), "the service reads all");
        let other = format!("{}/homebase", bob.id);
        let moved = ann.client.storage().move_file("private", &path, &other, Overwrite::Replace);
        assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
        let copied = ann.client.storage().copy("private", &path, &other, Overwrite::Replace);
        assert_refused(copied, ErrorKind::Forbidden, 403, "Copy failed: Forbidden file access");
        assert_eq!(paths(&fixture.db.service, "private"), [path]);
    }

    fn a_linked_key_names_private_files_until_it_is_unlinked(fixture: &Fixture) {
        const SEED: &str = "0101010101010101010101010101010101010101010101010101010101010101";
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let audience = ann.client.auth().identity_audience().expect("the audience");
        let now = fixture.db.now();
        let claim = townsquare::auth::identity_claim(ann.id, SEED, &audience, now).expect("a claim");
        let key = claim["publicKey"].as_str().expect("a key").to_owned();
        let path = format!("{key}/homebase");
        may_not_write(fixture, &ann.client, "private", &path, 403);
        ann.client.auth().link_identity(&claim).expect("linked");
        for size in [10, 100_000] {
            put(&ann.client, "private", &path, bytes(size, 1)).expect("her key");
            assert!(ann.client.storage().download("private", &path).expect("her key") == bytes(size, 1));
            may_not_see(&bob.client, "private", &path);
        }
        may_not_write(fixture, &bob.client, "private", &path, 403);
        ann.client.auth().unlink_identity(&key).expect("unlinked");
        may_not_see(&ann.client, "private", &path);
        may_not_write(fixture, &ann.client, "private", &path, 403);
    }

    fn a_name_in_a_public_bucket_is_free_again_when_the_service_deletes_its_file(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        put(&ann.client, "assets", "icons", "x").expect("any user");
        for size in [10, 100_000] {
            for client in [&bob.client, &fixture.db.service] {
                let error = put(client, "assets", "icons/a", bytes(size, 1)).expect_err("a file has the name of the folder");
                assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error:?}");
            }
        }
        fixture.db.service.storage().delete("assets", "icons").expect("deleted");
        for size in [10, 100_000] {
            put(&bob.client, "assets", "icons/a", bytes(size, 1)).expect("free");
        }
    }

    fn any_user_adds_an_asset_and_its_owner_changes_it(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        for size in [10, 100_000] {
            let path = format!("icons/{size}.png");
            put(&ann.client, "assets", &path, bytes(size, 1)).expect("any user");
            for client in [&bob.client, &fixture.db.client] {
                assert!(client.storage().download("assets", &path).expect("everyone") == bytes(size, 1));
            }
            may_not_write(fixture, &bob.client, "assets", &path, 403);
            may_not_write(fixture, &fixture.db.client, "assets", &path, 401);
            may_not_write(fixture, &fixture.db.client, "assets", "icons/new.png", 401);
            let moved = bob.client.storage().move_file("assets", &path, "icons/mine.png", Overwrite::Replace);
            assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
            put(&bob.client, "assets", "icons/of bob.png", "x").expect("any user");
            let over = bob.client.storage().copy("assets", "icons/of bob.png", &path, Overwrite::Replace);
            assert_refused(over, ErrorKind::Forbidden, 403, "Copy failed: Forbidden file access");
            let over = bob.client.storage().move_file("assets", "icons/of bob.png", &path, Overwrite::Replace);
            assert_refused(over, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
            assert!(fixture.get("assets", &path) == bytes(size, 1), "nothing changed it");
            put(&ann.client, "assets", &path, "new").expect("the owner");
            ann.client.storage().delete("assets", &path).expect("the owner");
            fixture.put("assets", &path, "the service's");
            may_not_write(fixture, &ann.client, "assets", &path, 403);
            fixture.db.service.storage().delete("assets", &path).expect("the service");
        }
    }

    fn the_folders_of_shared_assets_are_the_services(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        put(&ann.client, "assets", "mine", "x").expect("any user");
        for folder in ["images", "videos"] {
            // A file with the name of the folder would keep everybody out of it.
            // So would one in another case, in a folder of a file system that does not tell them apart.
            let upper = folder.to_uppercase();
            for path in [folder.to_owned(), upper, format!("{folder}/a.png"), format!("{folder}/a/b.png")] {
                may_not_write(fixture, &ann.client, "assets", &path, 403);
                may_not_write(fixture, &fixture.db.client, "assets", &path, 401);
                let copied = ann.client.storage().copy("assets", "mine", &path, Overwrite::Replace);
                assert_refused(copied, ErrorKind::Forbidden, 403, "Copy failed: Forbidden file access");
                let moved = ann.client.storage().move_file("assets", "mine", &path, Overwrite::Replace);
                assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
                let signed = ann.client.storage().signed_url("assets", &path, UrlMethod::Put, Duration::from_secs(60));
                assert_eq!(signed.expect_err("refused").status(), 403);
            }
            for size in [10, 100_000] {
                let path = format!("{folder}/{size}.png");
                fixture.put("assets", &path, bytes(size, 1));
                assert!(ann.client.storage().download("assets", &path).expect("everyone") == bytes(size, 1));
                may_not_write(fixture, &ann.client, "assets", &path, 403);
            }
            // Over HTTP: users with their tokens, and anonymous callers.
            let sender = Sender::new(&fixture.db, &format!("bearer-{folder}"));
            for (path, exists) in [(format!("{folder}/10.png"), true), (format!("{folder}/new.png"), false)] {
                for target in [path.clone(), path.replace('i', "%69")] {
                    let target = format!("/assets/{target}");
                    for method in ["PUT", "DELETE"] {
                        let status = |headers: &[(&str, &str)]| send(&fixture.db.client, method, &target, headers, b"<svg>").status;
                        // To delete what is not there is refused as such.
                        let of = |status: u16| if method == "DELETE" && !exists { 404 } else { status };
                        assert_eq!((status(&[sender.bearer()]), status(&[])), (of(403), of(401)), "{method} {target}");
                    }
                }
                let found = fixture.db.service.storage().stat("assets", &path);
                assert_eq!(found.map(|info| info.size).ok(), exists.then_some(10), "{path}");
            }
            // Other names, and the same in other places.
            for path in [format!("{folder}2/a"), format!("my/{folder}/a")] {
                put(&ann.client, "assets", &path, "x").expect("any user");
            }
        }
        // A file of hers that the service moves there is hers to take away, and not to change.
        for size in [10, 100_000] {
            put(&ann.client, "assets", "mine", bytes(size, 1)).expect("any user");
            let storage = fixture.db.service.storage();
            storage.move_file("assets", "mine", "images/hers", Overwrite::Replace).expect("the service");
            assert_refused(
                put(&ann.client, "assets", "images/hers", "new"),
                ErrorKind::Forbidden,
                403,
                "Upload failed: Forbidden file access",
            );
            ann.client.storage().move_file("assets", "images/hers", "mine", Overwrite::Replace).expect("hers");
            storage.move_file("assets", "mine", "images/hers", Overwrite::Replace).expect("the service");
            ann.client.storage().delete("assets", "images/hers").expect("hers");
        }
    }

    fn an_ended_session_reads_and_writes_nothing(fixture: &Fixture) {
        let SignedInUser { client, id } = fixture.signed_in_user("ann");
        let path = format!("{id}/homebase");
        put(&client, "private", &path, "x").expect("signed in");
        put(&client, "private", &format!("{id}/large"), bytes(100_000, 1)).expect("signed in");
        fixture.db.service.auth().set_password(id, "another passphrase").expect("ends the sessions");
        let storage = client.storage();
        let options = townsquare::storage::UploadOptions::new;
        for error in [
            storage.download("private", &path).map(drop),
            storage.download("private", &format!("{id}/large")).map(drop),
            storage.download("assets", "a").map(drop),
            storage.upload("private", &path, "y", options()).map(drop),
            storage.upload("private", &path, bytes(100_000, 2), options()).map(drop),
            storage.upload("assets", "a", "y", options()).map(drop),
            storage.delete("private", &path),
            storage.list("private", ListFiles::new()).map(drop),
            storage.copy("private", &path, &format!("{id}/b"), Overwrite::Refuse).map(drop),
            storage.move_file("private", &path, &format!("{id}/b"), Overwrite::Refuse).map(drop),
        ] {
            let error = error.expect_err("the session has ended");
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error:?}");
        }
        assert_eq!(fixture.get("private", &path), "x");
        assert_eq!(paths(&fixture.db.service, "private").len(), 2);
    }

    fn export_and_repair_are_for_the_service(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        let target = fixture.folder.path().join("exported");
        for (client, kind, status) in
            [(&ann.client, ErrorKind::Forbidden, 403), (&fixture.db.client, ErrorKind::Unauthorized, 401)]
        {
            let words = if status == 403 { "Forbidden" } else { "Unauthorized" };
            let refused = client.storage().repair();
            assert_refused(refused, kind, status, &format!("Repair failed: {words} file access"));
            let refused = client.storage().export_files(&target, |_, _| ControlFlow::Continue(()));
            assert_refused(refused, kind, status, &format!("Export files failed: {words} file access"));
        }
        assert!(!target.exists());
    }
}
