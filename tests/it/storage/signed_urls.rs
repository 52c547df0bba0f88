//! Signed URLs (DESIGN 7): they act for their signer until they end, and die with the signer's right.

use std::{io, iter, sync::mpsc, thread, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use townsquare::{
    Config, ErrorKind, Uuid,
    auth::{SignOutScope, UserPatch},
    blocking::Client,
    config::{DatabasePooler, ManualClock},
    spaces::NewSpace,
    storage::{ListFiles, RequestBody, UrlMethod, UrlOptions},
};
use townsquare_tests::{on_both_engines, test_database::TestDatabase};

use super::requests::{Answer, Sender, send, store};

const HOUR: Duration = Duration::from_secs(3_600);

fn sign(client: &Client, bucket: &str, path: &str, method: UrlMethod) -> String {
    client.storage().signed_url(bucket, path, method, HOUR).expect("signed")
}

fn get(db: &TestDatabase, url: &str) -> u16 {
    send(&db.client, "GET", url, &[], b"").status
}

fn put(db: &TestDatabase, url: &str, body: &[u8]) -> u16 {
    send(&db.client, "PUT", url, &[], body).status
}

/// The password of a [`Sender`].
const PASSWORD: &str = "correct horse";

const NEW_PASSWORD: &str = "battery staple";

const KEY: &str = "a key that is as long as it has to be";

/// A body whose length is not known before it is read.
fn streamed(length: usize) -> RequestBody {
    RequestBody::from_reader(io::Cursor::new(vec![0; length]))
}

/// Sends a PUT, and has `event` happen after half of the body. Returns the status.
fn put_around(client: &Client, url: &str, half: usize, event: impl FnOnce()) -> u16 {
    let (started, has_started) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let mut number = 0;
    let chunks = iter::from_fn(move || {
        number += 1;
        match number {
            1 => started.send(()).expect("the test waits"),
            2 => may_go_on.recv().expect("the test sends"),
            _ => return None,
        }
        Some(Ok(Bytes::from(vec![number; half])))
    });
    let body = RequestBody::from_chunks(stream::iter(chunks));
    thread::scope(|scope| {
        let put = scope.spawn(move || client.storage().handle_file("PUT", url, &[], body).expect("answered").status);
        has_started.recv().expect("the body is read");
        event();
        go_on.send(()).expect("the body is read");
        put.join().expect("no panic")
    })
}

/// What a user does, and whether it ends the signed URLs of the user.
#[derive(Debug, Clone, Copy)]
enum Event {
    NewPassword,
    PasswordOfTheService,
    Recovery,
    GlobalSignOut,
    SignOutOfOthers,
    SignOut,
    NewAddress,
    NewTokens,
}

impl Event {
    const ALL: [Event; 8] = [
        Event::NewPassword,
        Event::PasswordOfTheService,
        Event::Recovery,
        Event::GlobalSignOut,
        Event::SignOutOfOthers,
        Event::SignOut,
        Event::NewAddress,
        Event::NewTokens,
    ];

    fn ends_urls(self) -> bool {
        matches!(self, Event::NewPassword | Event::PasswordOfTheService | Event::Recovery | Event::GlobalSignOut)
    }

    fn happen(self, db: &TestDatabase, name: &str, user: &Sender) {
        let (auth, service) = (user.client.auth(), db.service.auth());
        let address = format!("{name}@town.example");
        match self {
            Event::NewPassword => {
                auth.update_user(PASSWORD, UserPatch::new().password(NEW_PASSWORD)).expect("a new password");
            }
            Event::PasswordOfTheService => service.set_password(user.id, NEW_PASSWORD).expect("a new password"),
            Event::Recovery => {
                let token = service.create_recovery_token(&address).expect("asked").expect("a token");
                service.recover(&token, NEW_PASSWORD).expect("recovered");
            }
            Event::GlobalSignOut => auth.sign_out_scope(SignOutScope::Global).expect("signed out"),
            Event::SignOutOfOthers => auth.sign_out_scope(SignOutScope::Others).expect("signed out"),
            Event::SignOut => auth.sign_out().expect("signed out"),
            Event::NewAddress => {
                let patch = UserPatch::new().email(format!("new-{address}"));
                auth.update_user(PASSWORD, patch).expect("a new address");
            }
            Event::NewTokens => {
                let session = service.sign_in(&address, PASSWORD).expect("signed in");
                service.refresh_session_of(&session.refresh_token).expect("new tokens");
            }
        }
    }
}

fn put_as(db: &TestDatabase, url: &str, content_type: Option<&str>, body: &[u8]) -> Answer {
    let headers: Vec<_> = content_type.map(|value| ("Content-Type", value)).into_iter().collect();
    send(&db.client, "PUT", url, &headers, body)
}

fn sign_put(client: &Client, path: &str, options: UrlOptions) -> String {
    client.storage().signed_url("assets", path, UrlMethod::Put, options).expect("signed")
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

    fn a_signature_overrides_the_bearer(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        store(db, "private", &homebase(ann.id), b"{}");
        let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        for bearer in [("Authorization", "Bearer bogus"), ("Authorization", "Basic eA=="), bob.bearer()] {
            let answer = send(&db.client, "GET", &url, &[bearer], b"");
            assert_eq!((answer.status, &answer.body[..]), (200, &b"{}"[..]), "{bearer:?}");
        }
        let (path, _) = url.split_once('?').expect("a query");
        assert_eq!(send(&db.client, "GET", path, &[("Authorization", "Bearer bogus")], b"").status, 401);
    }

    fn a_signed_url_for_put_stores_a_file_of_the_signer(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let url = sign(&ann.client, "assets", "icons/cat.png", UrlMethod::Put);
        assert_eq!(get(db, &url), 401, "only PUT");
        assert_eq!(put(db, &url, b"cat"), 201);
        let info = db.client.storage().stat("assets", "icons/cat.png").expect("stored");
        assert_eq!((info.owner_id, info.size), (Some(ann.id), 3));
        assert_eq!(put(db, &url, b"cats"), 204, "until it ends");
    }

    fn a_signed_url_outlives_the_session_but_not_the_user(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        store(db, "private", &homebase(ann.id), b"{}");
        let read = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        let write = sign(&ann.client, "assets", "x", UrlMethod::Put);
        ann.client.auth().sign_out().expect("signed out");
        assert_eq!(get(db, &read), 200);
        assert_eq!(put(db, &write, b"x"), 201);
        db.service.auth().delete_user(ann.id).expect("deleted");
        assert_eq!(get(db, &read), 401);
        assert_eq!(put(db, &write, b"y"), 401);
    }

    fn a_signed_url_dies_with_the_right_of_its_signer(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        let space = ann.client.spaces().create_space(NewSpace::named("Harbor")).expect("created");
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
            let error = client.storage().rotate_url_key().expect_err("the service only");
            assert_eq!((error.kind(), error.status()), (kind, status));
        }
        assert_eq!(get(db, &old), 200);
        let another = db.another();
        db.service.storage().rotate_url_key().expect("rotated");
        assert_eq!(get(db, &old), 401);
        assert_eq!(send(&another, "GET", &old, &[], b"").status, 401, "for every client of the database");
        another.close();
        assert_eq!(get(db, &sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get)), 200);
    }

    fn a_url_is_signed_only_for_what_the_caller_may_do(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        store(db, "private", &homebase(ann.id), b"{}");
        assert_eq!(send(&db.client, "PUT", "/assets/ann", &[ann.bearer()], b"x").status, 201);
        let space = ann.client.spaces().create_space(NewSpace::named("Harbor").public()).expect("created");
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
            let error = client.storage().signed_url(bucket, path, method, HOUR).expect_err(path);
            assert_eq!(error.status(), status, "{method:?} {bucket}/{path}: {error}");
            assert!(error.to_string().starts_with("Sign URL failed: "), "{error}");
        }
        for time in [Duration::ZERO, Duration::from_secs(7 * 24 * 3_600 + 1), Duration::MAX] {
            let error = ann.client.storage().signed_url("assets", "ann", UrlMethod::Get, time).expect_err("time");
            assert_eq!(error.status(), 400, "{time:?}");
        }
        assert_eq!(get(db, &sign(&db.client, "assets", "ann", UrlMethod::Get)), 200, "anonymous may read it");
        assert_eq!(get(db, &sign(&db.service, "private", &own, UrlMethod::Get)), 200, "the service may read it");
    }

    fn the_urls_of_a_user_end_with_a_new_password_a_recovery_and_a_global_sign_out(db: &TestDatabase) {
        let bob = Sender::new(db, "bob");
        store(db, "private", &homebase(bob.id), b"{}");
        let other = sign(&bob.client, "private", &homebase(bob.id), UrlMethod::Get);
        for event in Event::ALL {
            let name = format!("ann-{event:?}").to_lowercase();
            let ann = Sender::new(db, &name);
            store(db, "private", &homebase(ann.id), b"{}");
            let read = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
            let write = sign(&ann.client, "assets", &name, UrlMethod::Put);
            let of_service = sign(&db.service, "private", &homebase(ann.id), UrlMethod::Get);
            assert_eq!((get(db, &read), put(db, &write, b"x")), (200, 201), "{event:?}");
            event.happen(db, &name, &ann);
            let expected = if event.ends_urls() { (401, 401) } else { (200, 204) };
            assert_eq!((get(db, &read), put(db, &write, b"stolen")), expected, "{event:?}");
            assert_eq!((get(db, &of_service), get(db, &other)), (200, 200), "{event:?}: URLs of others go on");
            let password = if event.ends_urls() && !matches!(event, Event::GlobalSignOut) { NEW_PASSWORD } else { PASSWORD };
            let address = if matches!(event, Event::NewAddress) { format!("new-{name}") } else { name.clone() };
            let session = db.service.auth().sign_in(&format!("{address}@town.example"), password).expect("signed in");
            let again = db.client.as_user(&session.access_token).expect("a handle");
            assert_eq!(get(db, &sign(&again, "private", &homebase(ann.id), UrlMethod::Get)), 200, "{event:?}: a new URL");
            assert_eq!(get(db, &read), expected.0, "{event:?}: an old URL does not come back");
        }
    }

    fn an_upload_that_is_under_way_ends_with_the_urls_of_its_signer(db: &TestDatabase) {
        for (event, half) in Event::ALL.into_iter().flat_map(|event| [(event, 5), (event, 200_000)]) {
            let name = format!("ann-{event:?}-{half}").to_lowercase();
            let ann = Sender::new(db, &name);
            store(db, "private", &homebase(ann.id), b"{}");
            let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Put);
            let status = put_around(&db.client, &url, half, || event.happen(db, &name, &ann));
            let size = db.service.storage().stat("private", &homebase(ann.id)).expect("there").size;
            let expected = if event.ends_urls() { (401, 2) } else { (204, 2 * half as u64) };
            assert_eq!((status, size), expected, "{event:?}, {half} bytes");
        }
    }

    fn an_upload_that_is_under_way_stores_nothing_of_a_deleted_user(db: &TestDatabase) {
        let by_transaction = Client::open(db.config().database_pooler(DatabasePooler::Transaction)).expect("opens");
        for (number, client) in [&db.client, &by_transaction].into_iter().enumerate() {
            for half in [5, 200_000] {
                let ann = Sender::new(db, &format!("ann-{number}-{half}"));
                let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Put);
                assert_eq!(put_around(client, &url, half, || {}), 201, "{half} bytes");
                let delete = || db.service.auth().delete_user(ann.id).expect("deleted");
                assert_eq!(put_around(client, &url, half, delete), 401, "{half} bytes");
                assert_eq!(db.service.storage().list("private", ListFiles::new()).expect("listed"), []);
            }
        }
        by_transaction.close();
    }

    fn an_upload_that_began_before_the_end_of_its_url_or_a_new_key_completes(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let url = || sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Put);
        let rotate = || db.service.storage().rotate_url_key().expect("rotated");
        assert_eq!(put_around(&db.client, &url(), 200_000, rotate), 201);
        assert_eq!(put_around(&db.client, &url(), 200_000, || db.elapse(HOUR + Duration::from_secs(1))), 204);
    }

    fn a_global_sign_out_of_an_ended_session_ends_no_url(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        store(db, "private", &homebase(ann.id), b"{}");
        let url = sign(&ann.client, "private", &homebase(ann.id), UrlMethod::Get);
        let stolen = ann.client.clone();
        ann.client.auth().sign_out().expect("signed out");
        drop(stolen.auth().sign_out_scope(SignOutScope::Global));
        assert_eq!(get(db, &url), 200);
    }

    fn a_url_for_put_binds_the_size(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let url = sign_put(&ann.client, "small", UrlOptions::new(HOUR).max_size(10));
        let too_large = put_as(db, &url, None, &[0; 11]);
        assert_eq!((too_large.status, too_large.error().as_str()), (413, "File too large"));
        for length in [11, 200_000] {
            // Without a length that is known at the start, and with a wrong one.
            for headers in [vec![], vec![("content-length".to_owned(), "10".to_owned())]] {
                let answer = db.client.storage().handle_file("PUT", &url, &headers, streamed(length)).expect("an answer");
                assert_eq!(answer.status, 413, "{length}");
            }
        }
        assert_eq!(send(&db.client, "GET", "/assets/small", &[], b"").status, 404, "nothing was stored");
        assert_eq!(db.client.storage().handle_file("PUT", &url, &[], streamed(10)).expect("an answer").status, 201);
        assert_eq!(put(db, &url, b""), 204);
        for (from, to) in [("max_size=10", "max_size=1000"), ("&max_size=10", "")] {
            let changed = url.replacen(from, to, 1);
            assert_eq!((put(db, &changed, &[0; 11]), changed == url), (401, false), "{changed}");
        }
        let large = sign_put(&ann.client, "large", UrlOptions::new(HOUR).max_size(u64::MAX));
        let small = Client::open(db.config().max_file_size(20)).expect("opens");
        assert_eq!(send(&small, "PUT", &large, &[], &[0; 21]).status, 413, "max_file_size is a limit too");
        small.close();
    }

    fn a_url_for_put_binds_the_content_type(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let url = sign_put(&ann.client, "avatar", UrlOptions::new(HOUR).content_type("image/png"));
        for other in ["text/html", "image/png; charset=x", "image/svg+xml", "x"] {
            let refused = put_as(db, &url, Some(other), b"<script>");
            assert_eq!(refused.status, 415, "{other}");
        }
        assert_eq!(send(&db.client, "GET", "/assets/avatar", &[], b"").status, 404, "nothing was stored");
        for (sent, status) in [(None, 201), (Some("image/png"), 204), (Some("IMAGE/PNG"), 204), (Some(""), 204)] {
            assert_eq!(put_as(db, &url, sent, b"<script>").status, status, "{sent:?}");
            let stored = send(&db.client, "GET", "/assets/avatar", &[], b"");
            assert_eq!(stored.header("content-type"), Some("image/png"), "{sent:?}");
        }
        for (from, to) in [("image%2Fpng", "text%2Fhtml"), ("&content_type=image%2Fpng", "")] {
            let changed = url.replacen(from, to, 1);
            assert_ne!(changed, url);
            assert_eq!(put_as(db, &changed, Some("text/html"), b"<script>").status, 401, "{changed}");
        }
        let both = UrlOptions::new(HOUR).content_type("text/plain; charset=utf-8").max_size(3);
        let both = sign_put(&ann.client, "note", both);
        assert_eq!(put_as(db, &both, None, b"four").status, 413);
        assert_eq!(put_as(db, &both, Some("text/plain; charset=utf-8"), b"one").status, 201);
    }

    fn limits_are_valid_and_for_put(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        assert_eq!(send(&db.client, "PUT", "/assets/x", &[ann.bearer()], b"x").status, 201);
        for (method, options) in [
            (UrlMethod::Get, UrlOptions::new(HOUR).max_size(1)),
            (UrlMethod::Get, UrlOptions::new(HOUR).content_type("image/png")),
            (UrlMethod::Put, UrlOptions::new(HOUR).content_type("image")),
            (UrlMethod::Put, UrlOptions::new(HOUR).content_type("")),
            (UrlMethod::Put, UrlOptions::new(HOUR).content_type("image/png\nx: y")),
        ] {
            let shown = format!("{method:?} {options:?}");
            let error = ann.client.storage().signed_url("assets", "x", method, options).expect_err(&shown);
            assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{shown}");
        }
    }

    fn a_url_with_an_end_that_is_too_far_away_is_refused(db: &TestDatabase) {
        let week = Duration::from_secs(7 * 24 * 3_600);
        store(db, "private", "x/homebase", b"{}");
        let longest = db.service.storage().signed_url("private", "x/homebase", UrlMethod::Get, week).expect("signed");
        assert_eq!(get(db, &longest), 200);
        // URLs that were signed with the key for a longer life, as by a thief of the key or by a host whose clock is ahead.
        let clock = ManualClock::at(db.now());
        let ahead = Client::open(db.config().clock(clock.clock())).expect("opens");
        for (passed, status) in [(0, 200), (30, 200), (30 * 60, 401), (7 * 24 * 3_600, 401), (365 * 24 * 3_600, 401)] {
            clock.advance(Duration::from_secs(passed));
            let storage = ahead.as_service();
            let url = storage.storage().signed_url("private", "x/homebase", UrlMethod::Get, week).expect("signed");
            assert_eq!(send(&ahead, "GET", &url, &[], b"").status, 200, "for the host itself");
            assert_eq!(get(db, &url), status, "{passed} s later");
        }
        ahead.close();
    }

    fn the_key_may_come_from_an_option(db: &TestDatabase) {
        let open = |key: &str| Client::open(db.config().url_signing_key(key)).expect("opens");
        let (with_key, same_key, other_key) = (open(KEY), open(KEY), open(&KEY.to_uppercase()));
        store(db, "private", "x/homebase", b"{}");
        let read = |client: &Client, url: &str| send(client, "GET", url, &[], b"").status;
        let url = sign(&with_key.as_service(), "private", "x/homebase", UrlMethod::Get);
        assert_eq!((read(&with_key, &url), read(&same_key, &url)), (200, 200));
        assert_eq!((read(&other_key, &url), get(db, &url)), (401, 401));
        // Whoever has the key of the database, for instance from a dump, signs nothing that such a client accepts.
        let of_database = sign(&db.service, "private", "x/homebase", UrlMethod::Get);
        assert_eq!((get(db, &of_database), read(&with_key, &of_database)), (200, 401));
        let error = with_key.as_service().storage().rotate_url_key().expect_err("the option is the key");
        assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400));
        for short in ["", "x", &KEY[..31]] {
            let error = Client::open(db.config().url_signing_key(short)).expect_err("too short");
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.message().contains("url_signing_key"), "{error}");
        }
        for client in [with_key, same_key, other_key] {
            client.close();
        }
    }
}

#[test]
fn the_key_is_not_shown() {
    assert!(!format!("{:?}", Config::new().url_signing_key(KEY)).contains(KEY));
}
