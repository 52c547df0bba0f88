//! `handle_file` (DESIGN 7): methods, conditions, ranges, headers, bearers and statuses.

use std::sync::Barrier;

use parking_lot::Mutex;
use townsquare::{Error, ErrorKind, blocking::Client, storage::RequestBody};
use townsquare_tests::{
    on_both_engines,
    test_database::{TestDatabase, assert_fails},
    wait::wait_until,
};

use super::requests::{Answer, Sender, send, store};

const CAT: &str = "/assets/icons/cat.png";

fn get(db: &TestDatabase, target: &str, headers: &[(&str, &str)]) -> Answer {
    send(&db.client, "GET", target, headers, b"")
}

fn status(answer: &Answer) -> (u16, String) {
    (answer.status, answer.error())
}

on_both_engines! {
    fn get_and_head_answer_with_the_file_and_its_headers(db: &TestDatabase) {
        let etag = store(db, "assets", "icons/cat.png", b"0123456789");
        let answer = get(db, CAT, &[]);
        assert_eq!((answer.status, &answer.body[..]), (200, &b"0123456789"[..]));
        for (name, value) in [
            ("content-type", "image/png"),
            ("content-length", "10"),
            ("etag", &format!("\"{etag}\"")),
            ("cache-control", "public, max-age=3600"),
            ("accept-ranges", "bytes"),
            ("content-disposition", "inline; filename=\"cat.png\""),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        assert!(answer.header("last-modified").is_some_and(|date| date.ends_with(" GMT")));
        assert!(answer.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
        let head = send(&db.client, "HEAD", CAT, &[("Range", "bytes=0-1")], b"");
        assert_eq!((head.status, &head.headers, head.body.len()), (200, &answer.headers, 0));
    }

    fn types_that_a_browser_would_run_are_attachments(db: &TestDatabase) {
        for name in ["page.html", "image.svg", "feed.xml", "code.js", "paper.pdf", "page.xhtml"] {
            store(db, "assets", name, b"<script>");
            let answer = get(db, &format!("/assets/{name}"), &[]);
            let expected = format!("attachment; filename=\"{name}\"");
            assert_eq!(answer.header("content-disposition"), Some(expected.as_str()));
        }
    }

    fn ranges_are_answered_with_206_and_416(db: &TestDatabase) {
        let etag = store(db, "assets", "icons/cat.png", b"0123456789");
        for (range, content_range, body) in [
            ("bytes=0-3", "bytes 0-3/10", "0123"),
            ("bytes=7-", "bytes 7-9/10", "789"),
            ("bytes=-2", "bytes 8-9/10", "89"),
            ("bytes=5-99", "bytes 5-9/10", "56789"),
        ] {
            let answer = get(db, CAT, &[("Range", range), ("If-Range", &format!("\"{etag}\""))]);
            assert_eq!((answer.status, answer.header("content-range")), (206, Some(content_range)));
            assert_eq!(String::from_utf8_lossy(&answer.body), body);
            let length = body.len().to_string();
            assert_eq!(answer.header("content-length"), Some(length.as_str()));
        }
        let beyond = get(db, CAT, &[("Range", "bytes=10-")]);
        assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */10")));
        for headers in [
            vec![("Range", "bytes=0-1,3-4")],
            vec![("Range", "lines=0-1")],
            vec![("Range", "bytes=0-1"), ("If-Range", "\"old\"")],
        ] {
            let whole = get(db, CAT, &headers);
            assert_eq!((whole.status, whole.body.len(), whole.header("content-range")), (200, 10, None));
        }
    }

    fn a_current_copy_is_not_sent_again(db: &TestDatabase) {
        let etag = format!("\"{}\"", store(db, "assets", "icons/cat.png", b"0123456789"));
        for none_match in [etag.clone(), format!("\"x\", W/{etag}"), "*".to_owned()] {
            let answer = get(db, CAT, &[("If-None-Match", &none_match)]);
            assert_eq!((answer.status, answer.body.len()), (304, 0));
            assert_eq!(answer.header("etag"), Some(etag.as_str()));
            assert_eq!(answer.header("content-length"), None);
        }
        let date = get(db, CAT, &[]).header("last-modified").expect("a date").to_owned();
        assert_eq!(get(db, CAT, &[("If-Modified-Since", &date)]).status, 304);
        assert_eq!(get(db, CAT, &[("If-None-Match", "\"x\""), ("If-Modified-Since", &date)]).status, 200);
        let changed = get(db, CAT, &[("If-Match", "\"x\"")]);
        assert_eq!(changed.status, 412);
        store(db, "assets", "icons/cat.png", b"0123456789");
        assert_eq!(get(db, CAT, &[("If-None-Match", &etag)]).status, 200, "the same bytes are a new version");
    }

    fn put_stores_and_replaces(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let put = |body: &[u8]| send(&db.client, "PUT", CAT, &[ann.bearer(), ("Content-Type", "image/webp")], body);
        let new = put(b"one");
        assert_eq!((new.status, new.body.len()), (201, 0));
        let info = db.client.storage().stat("assets", "icons/cat.png").expect("stored");
        assert_eq!((info.owner_id, info.size, info.content_type.as_str()), (Some(ann.id), 3, "image/webp"));
        let etag = format!("\"{}\"", info.etag);
        assert_eq!(new.header("etag"), Some(etag.as_str()));
        let replaced = put(b"two");
        assert_eq!((replaced.status, replaced.body.len()), (204, 0));
        assert_ne!(replaced.header("etag"), Some(etag.as_str()));
        assert_eq!(get(db, CAT, &[]).body, b"two");
    }

    fn a_put_of_another_length_than_it_says_is_refused(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let headers = |length: &str| {
            let (name, value) = ann.bearer();
            vec![(name.to_owned(), value.to_owned()), ("content-length".to_owned(), length.to_owned())]
        };
        for length in ["3", "5", "0", "x", "+4", "-1", "4, 4", "99999999999999999999"] {
            let whole = RequestBody::from("four");
            let streamed = RequestBody::from_reader(&b"four"[..]);
            for body in [whole, streamed] {
                let answer = db.client.storage().handle_file("PUT", "/assets/x", &headers(length), body);
                assert_eq!(answer.expect("an answer").status, 400, "{length}");
            }
        }
        assert_eq!(get(db, "/assets/x", &[]).status, 404, "a refused PUT changes nothing");
        let answer = db.client.storage().handle_file("PUT", "/assets/x", &headers("4"), "four");
        assert_eq!(answer.expect("an answer").status, 201);
        let streamed = RequestBody::from_reader(&b"four"[..]);
        let answer = db.client.storage().handle_file("PUT", "/assets/x", &headers("4"), streamed);
        assert_eq!(answer.expect("an answer").status, 204);
    }

    fn put_honours_its_conditions(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let put = |name, value: &str, body: &[u8]| send(&db.client, "PUT", CAT, &[ann.bearer(), (name, value)], body);
        assert_eq!(put("If-Match", "*", b"x").status, 412, "there is no file");
        assert_eq!(put("If-Match", "\"x\"", b"x").status, 412);
        let first = put("If-None-Match", "*", b"one");
        assert_eq!(first.status, 201);
        let etag = first.header("etag").expect("an etag").to_owned();
        let refused = put("If-None-Match", "*", b"x");
        assert_eq!(refused.status, 412);
        assert_eq!(put("If-Match", "\"x\"", b"x").status, 412);
        assert_eq!(put("If-Match", "unquoted", b"x").status, 400);
        assert_eq!(get(db, CAT, &[]).body, b"one", "a refused PUT changes nothing");
        assert_eq!(put("If-Match", &format!("\"x\", {etag}"), b"two").status, 204);
        assert_eq!(put("If-Match", &etag, b"x").status, 412, "the old version");
        assert_eq!(put("If-Match", "*", b"three").status, 204);
        assert_eq!(get(db, CAT, &[]).body, b"three");
    }

    fn of_two_writers_of_one_version_one_wins(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        for round in 0..10 {
            let etag = format!("\"{}\"", store(db, "assets", "icons/cat.png", b"start"));
            db.service.storage().delete("assets", "icons/cat.png").expect("deleted");
            let mine = send(&db.client, "PUT", CAT, &[ann.bearer()], b"start");
            let mine = mine.header("etag").expect("an etag").to_owned();
            assert_ne!(mine, etag);
            let barrier = Barrier::new(2);
            let write = |body: &'static [u8]| {
                barrier.wait();
                (send(&db.client, "PUT", CAT, &[ann.bearer(), ("If-Match", &mine)], body).status, body)
            };
            let results = std::thread::scope(|scope| {
                let threads = [&b"one"[..], &b"two"[..]].map(|body| scope.spawn(move || write(body)));
                threads.map(|thread| thread.join().expect("no panic"))
            });
            let won: Vec<_> = results.iter().filter(|(status, _)| *status == 204).collect();
            assert_eq!(won.len(), 1, "round {round}: {results:?}");
            assert!(results.iter().any(|(status, _)| *status == 412), "{results:?}");
            assert_eq!(get(db, CAT, &[]).body, won[0].1);
        }
    }

    fn delete_removes_and_honours_its_conditions(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let etag = send(&db.client, "PUT", CAT, &[ann.bearer()], b"one").header("etag").expect("an etag").to_owned();
        let delete = |headers: &[(&str, &str)]| send(&db.client, "DELETE", CAT, headers, b"").status;
        assert_eq!(delete(&[ann.bearer(), ("If-Match", "\"x\"")]), 412);
        assert_eq!(delete(&[]), 401);
        assert_eq!(delete(&[Sender::new(db, "bob").bearer()]), 403);
        assert_eq!(get(db, CAT, &[]).body, b"one");
        assert_eq!(delete(&[ann.bearer(), ("If-Match", &etag)]), 204);
        assert_eq!(delete(&[ann.bearer()]), 404);
        assert_eq!(get(db, CAT, &[]).status, 404);
    }

    fn a_conditional_delete_deletes_no_file_that_comes_meanwhile(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(send(&ann.client, "PUT", CAT, &[ann.bearer()], b"one").status, 201);
                    assert_eq!(send(&ann.client, "DELETE", CAT, &[ann.bearer()], b"").status, 204, "it is gone already");
                }
            });
            while !writer.is_finished() {
                // The condition allows a delete only where there is no file.
                let answer = send(&db.client, "DELETE", CAT, &[ann.bearer(), ("If-None-Match", "*")], b"");
                assert!([404, 412].contains(&answer.status), "{}", answer.status);
            }
        });
        assert_eq!(send(&db.client, "DELETE", CAT, &[ann.bearer(), ("If-Match", "*")], b"").status, 412, "no file");
    }

    fn a_request_acts_for_its_bearer_and_for_nobody_else(db: &TestDatabase) {
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        let path = format!("/private/{}/homebase", ann.id);
        // Anonymous, on every handle, whoever its caller is.
        for client in [&db.client, &db.service, &ann.client] {
            assert_eq!(send(client, "GET", &path, &[], b"").status, 404);
            let refused = send(client, "PUT", &path, &[], b"{}");
            assert_eq!(status(&refused), (401, "Unauthorized file access".to_owned()));
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
            assert_eq!(send(client, "PUT", &path, &[bob.bearer()], b"{}").status, 403);
        }
        assert_eq!(send(&db.client, "PUT", &path, &[ann.bearer()], b"{}").status, 201);
        for client in [&db.client, &db.service, &bob.client] {
            let own = send(client, "GET", &path, &[ann.bearer()], b"");
            assert_eq!((own.status, &own.body[..]), (200, &b"{}"[..]));
            assert_eq!(own.header("cache-control"), Some("private, max-age=3600"));
            assert_eq!(own.header("vary"), Some("authorization"));
            assert_eq!(own.header("content-type"), Some("application/json"));
            assert_eq!(send(client, "GET", &path, &[bob.bearer()], b"").status, 404);
            assert_eq!(send(client, "GET", &path, &[], b"").status, 404);
        }
    }

    fn a_bad_or_ended_token_is_refused_also_where_anonymous_may_read(db: &TestDatabase) {
        store(db, "assets", "icons/cat.png", b"cat");
        let ann = Sender::new(db, "ann");
        assert_eq!(get(db, CAT, &[ann.bearer()]).status, 200);
        ann.client.auth().sign_out().expect("signed out");
        for authorization in [ann.bearer().1, "Bearer", "Bearer ", "Bearer tsa_x", "Basic YTpi", "nonsense", ""] {
            let refused = get(db, CAT, &[("authorization", authorization)]);
            assert_eq!(status(&refused), (401, "Unauthorized file access".to_owned()), "{authorization:?}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        }
        let two = get(db, CAT, &[("authorization", "Bearer a"), ("Authorization", "Bearer b")]);
        assert_eq!(two.status, 400);
    }

    fn statuses_have_the_messages_of_spec_7(db: &TestDatabase) {
        store(db, "assets", "icons/cat.png", b"cat");
        let (ann, bob) = (Sender::new(db, "ann"), Sender::new(db, "bob"));
        assert_eq!(send(&db.client, "PUT", "/assets/ann", &[ann.bearer()], b"x").status, 201);
        for target in ["/assets/%2e%2e/x", "/assets/a//b", "/assets/", "/assets/a%2fb", "/assets/a%00", "/assets/%ff", "x"] {
            assert_eq!(status(&get(db, target, &[])), (400, "Invalid file or request".to_owned()), "{target}");
        }
        assert_eq!(status(&get(db, "/assets/none", &[])), (404, "File not found".to_owned()));
        assert_eq!(status(&get(db, "/nowhere/x", &[])), (404, "File not found".to_owned()));
        let put = |target: &str, headers: &[(&str, &str)], body: &[u8]| send(&db.client, "PUT", target, headers, body);
        assert_eq!(status(&put("/assets/x", &[], b"x")), (401, "Unauthorized file access".to_owned()));
        assert_eq!(status(&put("/assets/ann", &[bob.bearer()], b"x")), (403, "Forbidden file access".to_owned()));
        assert_eq!(put("/assets/ann/x", &[ann.bearer()], b"x").status, 409, "a file is in the folder's place");
        assert_eq!(put("/assets/x", &[ann.bearer(), ("Content-Range", "bytes 0-0/2")], b"x").status, 400);
        assert_eq!(put("/assets/x", &[ann.bearer(), ("Content-Encoding", "gzip")], b"x").status, 415);
        for method in ["POST", "PATCH", "OPTIONS", "TRACE", "get", ""] {
            let answer = send(&db.client, method, CAT, &[], b"");
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, PUT, DELETE")), "{method}");
        }
        let head = send(&db.client, "HEAD", "/assets/none", &[], b"");
        assert_eq!((head.status, head.body.len()), (404, 0));
    }

    fn a_body_over_the_limit_is_refused_and_leaves_nothing(db: &TestDatabase) {
        let small = Client::open(db.config().max_file_size(10)).expect("opens");
        let ann = Sender::new(db, "ann");
        let put = |body: &[u8]| send(&small, "PUT", "/assets/x", &[ann.bearer()], body);
        assert_eq!(status(&put(&[0; 11])), (413, "File too large".to_owned()));
        assert_eq!(get(db, "/assets/x", &[]).status, 404);
        assert_eq!(put(&[0; 10]).status, 201);
        small.close();
    }

    fn a_closed_handle_fails(db: &TestDatabase) {
        let handle = db.client.as_service();
        handle.close();
        let closed: Result<(), Error> = handle.storage().handle_file("GET", CAT, &[], "").map(drop);
        assert_fails(closed, ErrorKind::Closed, None, "Handle file failed: The handle is closed");
    }

    fn one_client_has_a_limited_number_of_uploads(db: &TestDatabase) {
        let ann = Sender::new(db, "ann");
        let (one, other) = (db.client.with_client_key("192.0.2.1"), db.client.with_client_key("192.0.2.2"));
        let put = |client: &Client| send(client, "PUT", "/assets/b.bin", &[ann.bearer()], b"x");
        // A body ends when its sender is dropped.
        let senders = Mutex::new(Vec::new());
        let upload = |number: usize| {
            let (target, headers) = (format!("/assets/{number}.bin"), [("Authorization".to_owned(), ann.bearer().1.to_owned())]);
            loop {
                let (sender, body) = tokio::io::duplex(1);
                senders.lock().push(sender);
                let answer = one.storage().handle_file("PUT", &target, &headers, RequestBody::from_reader(body));
                match answer.expect("answered").status {
                    // The request below that looks for a free slot had this one.
                    429 => {}
                    status => return assert_eq!(status, 201),
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..16 {
                scope.spawn({
                    let upload = &upload;
                    move || upload(number)
                });
            }
            wait_until("all uploads have begun", || put(&one).status == 429);
            let refused = put(&one);
            assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
            assert_eq!(refused.error(), "Too many uploads of one client; try again in 1 s");
            assert_eq!(send(&one, "GET", "/assets/none", &[], b"").status, 404, "reads are no uploads");
            for client in [&other, &db.client] {
                assert!(put(client).status < 300);
            }
            senders.lock().clear();
        });
        assert!(put(&one).status < 300);
    }
}
