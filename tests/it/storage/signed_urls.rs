//! Signed URLs (DESIGN 7): they act for their signer until they end, and die with the signer's right.

use std::time::Duration;

use townsquare::{ErrorKind, Uuid, blocking::wait, spaces::NewSpace, storage::UrlMethod};
use townsquare_tests::{on_both_engines, test_database::TestDatabase};

use super::requests::{Sender, send, store};

const HOUR: Duration = Duration::from_secs(3_600);

fn sign(client: &townsquare::Client, bucket: &str, path: &str, method: UrlMethod) -> String {
    wait(client.storage().signed_url(bucket, path, method, HOUR)).expect("signed")
}

fn get(db: &TestDatabase, url: &str) -> u16 {
    send(&db.client, "GET", url, &[], b"").status
}

fn put(db: &TestDatabase, url: &str, body: &[u8]) -> u16 {
    send(&db.client, "PUT", url, &[], body).status
}

fn homebase(owner: Uuid) -> String {
    format!("{owner}/homebase")
}

on_both_engines! {
    fn a_signed_url_reads_a_private_file_until_it_ends(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        store(db, "private", &homebase(ann.id), b"{}");
        let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        assert!(url.starts_with(&format!("/private/{}/homebase?", ann.id)), "{url}");
        let answer = send(&db.client, "GET", &url, &[], b"");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"{}"[..]));
        assert_eq!(answer.header("cache-control"), Some("private, max-age=3600"));
        assert_eq!(send(&db.client, "HEAD", &url, &[], b"").status, 200);
        assert_eq!(get(db, &format!("/private/{}", homebase(ann.id))), 404, "without the signature");
        for method in ["PUT", "DELETE"] {
            assert_eq!(send(&db.client, method, &url, &[], b"x").status, 401, "{method}");
        }
        db.clock.advance(HOUR - Duration::from_secs(1));
        assert_eq!(get(db, &url), 200);
        // The end is rounded up to a second.
        db.clock.advance(Duration::from_secs(2));
        assert_eq!(get(db, &url), 401);
    }

    fn a_changed_signed_url_is_refused(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        store(db, "private", &homebase(ann.id), b"{}");
        store(db, "private", &homebase(bob.id), b"{}");
        let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        let (ann_id, bob_id) = (ann.id.to_string(), bob.id.to_string());
        for (from, to) in [
            (format!("/private/{ann_id}"), format!("/private/{bob_id}")),
            (format!("signer={ann_id}"), format!("signer={bob_id}")),
            (format!("signer={ann_id}"), "signer=service".to_owned()),
            ("method=GET".to_owned(), "method=PUT".to_owned()),
            ("expires=".to_owned(), "expires=1".to_owned()),
            ("signature=".to_owned(), "signature=00".to_owned()),
        ] {
            let changed = url.replacen(&from, &to, 1);
            assert_ne!(changed, url, "{from}");
            assert_eq!(get(db, &changed), 401, "{changed}");
            let as_bearer = send(&db.client, "GET", &changed, &[ann.bearer()], b"");
            assert_eq!(as_bearer.status, 401, "a bearer does not mend a signature");
        }
    }

    fn a_signed_url_for_put_stores_a_file_of_the_signer(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let url = sign(&ann.client, "assets", "images/cat.png", UrlMethod::Put);
        assert_eq!(get(db, &url), 401, "only PUT");
        assert_eq!(put(db, &url, b"cat"), 201);
        let info = wait(db.client.storage().stat("assets", "images/cat.png")).expect("stored");
        assert_eq!((info.owner_id, info.size), (Some(ann.id), 3));
        assert_eq!(put(db, &url, b"cats"), 204, "until it ends");
    }

    fn a_signed_url_outlives_the_session_but_not_the_user(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        store(db, "private", &homebase(ann.id), b"{}");
        let read = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        let write = sign(&ann.client, "assets", "x", UrlMethod::Put);
        wait(ann.client.auth().sign_out()).expect("signed out");
        assert_eq!(get(db, &read), 200);
        assert_eq!(put(db, &write, b"x"), 201);
        wait(db.service.auth().delete_user(ann.id)).expect("deleted");
        assert_eq!(get(db, &read), 401);
        assert_eq!(put(db, &write, b"y"), 401);
    }

    fn a_signed_url_dies_with_the_right_of_its_signer(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        let space = wait(ann.client.spaces().create_space(NewSpace::named("Harbor"))).expect("created");
        let path = format!("{}/tabOrder", space.id);
        let url = sign(&ann.client, "spaces", &path, UrlMethod::Put);
        assert_eq!(put(db, &url, b"[]"), 201);
        db.raw.run(&format!("UPDATE spaces SET owner_id = '{}' WHERE id = '{}'", bob.id, space.id));
        assert_eq!(put(db, &url, b"[1]"), 403);
        assert_eq!(send(&db.client, "GET", &format!("/spaces/{path}"), &[], b"").body, b"[]");
    }

    fn rotating_the_key_ends_every_signed_url(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        store(db, "private", &homebase(ann.id), b"{}");
        let old = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        for (client, kind, status) in
            [(&db.client, ErrorKind::Unauthorized, 401), (&ann.client, ErrorKind::Forbidden, 403)]
        {
            let error = wait(client.storage().rotate_url_key()).expect_err("the service only");
            assert_eq!((error.kind(), error.status()), (kind, Some(status)));
        }
        assert_eq!(get(db, &old), 200);
        let another = db.another();
        wait(db.service.storage().rotate_url_key()).expect("rotated");
        assert_eq!(get(db, &old), 401);
        assert_eq!(send(&another, "GET", &old, &[], b"").status, 401, "for every client of the database");
        wait(another.close());
        assert_eq!(get(db, &sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get)), 200);
    }

    fn a_url_is_signed_only_for_what_the_caller_may_do(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        store(db, "private", &homebase(ann.id), b"{}");
        assert_eq!(send(&db.client, "PUT", "/assets/ann", &[ann.bearer()], b"x").status, 201);
        let space = wait(ann.client.spaces().create_space(NewSpace::named("Harbor").public())).expect("created");
        let tab_order = format!("{}/tabOrder", space.id);
        let own = homebase(ann.id);
        for (client, bucket, path, method, status) in [
            (&bob.client, "private", own.as_str(), UrlMethod::Get, 404),
            (&db.client, "private", &own, UrlMethod::Get, 404),
            (&bob.client, "private", &own, UrlMethod::Put, 403),
            (&db.client, "private", &own, UrlMethod::Put, 401),
            (&bob.client, "spaces", &tab_order, UrlMethod::Put, 403),
            (&db.client, "spaces", &tab_order, UrlMethod::Put, 401),
            (&bob.client, "assets", "ann", UrlMethod::Put, 403),
            (&db.client, "assets", "new", UrlMethod::Put, 401),
            (&ann.client, "assets", "none", UrlMethod::Get, 404),
            (&ann.client, "nowhere", "x", UrlMethod::Put, 404),
            (&ann.client, "assets", "../x", UrlMethod::Get, 400),
            (&ann.client, "assets", "a//b", UrlMethod::Put, 400),
        ] {
            let error = wait(client.storage().signed_url(bucket, path, method, HOUR)).expect_err(path);
            assert_eq!(error.status(), Some(status), "{method:?} {bucket}/{path}: {error}");
            assert!(error.to_string().starts_with("Sign URL failed: "), "{error}");
        }
        for time in [Duration::ZERO, Duration::from_secs(7 * 24 * 3_600 + 1), Duration::MAX] {
            let error = wait(ann.client.storage().signed_url("assets", "ann", UrlMethod::Get, time)).expect_err("time");
            assert_eq!(error.status(), Some(400), "{time:?}");
        }
        assert_eq!(get(db, &sign(&db.client, "assets", "ann", UrlMethod::Get)), 200, "anonymous may read it");
        assert_eq!(get(db, &sign(&db.service, "private", &own, UrlMethod::Get)), 200, "the service may read it");
    }
}
