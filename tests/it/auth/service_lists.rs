//! What only the service does with the rows of everybody: lists of whole tables and a new owner for a space; and the handle
//! that stays anonymous (DESIGN 4).

use std::time::Duration;

use townsquare::{
    Error, ErrorKind, Uuid,
    blocking::Client,
    communities::{Change, CommunityPatch, DomainType, NewRegistration, SpaceType},
    realtime::ChangeRequest,
    spaces::{NewFidget, NewSpace},
    storage::{UploadOptions, UrlMethod},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase, assert_fails},
    wait::wait_until,
};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";

/// Reads a list page by page, two rows at a time.
fn all_rows<T>(page: impl Fn(u32, Option<Uuid>) -> Result<Vec<T>, Error>, key: impl Fn(&T) -> Uuid) -> Vec<T> {
    let mut rows: Vec<T> = Vec::new();
    loop {
        let next = page(2, rows.last().map(&key)).expect("a page");
        if next.is_empty() {
            return rows;
        }
        rows.extend(next);
    }
}

/// Calls each operation; returns its words, its table and its outcome.
fn call_all(client: &Client, space: Uuid, user: Uuid) -> [(&'static str, &'static str, Result<(), Error>); 6] {
    let (spaces, communities, auth) = (client.spaces(), client.communities(), client.auth());
    [
        ("List spaces", "spaces", spaces.list_spaces(10, None).map(drop)),
        ("Set owner", "spaces", spaces.set_owner(space, user).map(drop)),
        ("List users", "users", auth.list_users(10, None).map(drop)),
        ("List community configs", "community_configs", communities.list_community_configs(10, None).map(drop)),
        ("List community domains", "community_domains", communities.list_community_domains(10, None).map(drop)),
        ("List space registrations", "spaceRegistrations", communities.list_space_registrations(10, None).map(drop)),
    ]
}

on_both_engines! {
    fn the_service_lists_every_row_once_in_the_order_of_keys(db: &TestDatabase) {
        let (service, owner) = (&db.service, db.user());
        let space = |number| NewSpace::named(format!("space {number}")).owned_by(owner);
        let mut created = service.spaces().create_spaces((0..5).map(space).collect()).expect("created");
        created.sort_by_key(|space| space.id);
        assert_eq!(all_rows(|limit, after| service.spaces().list_spaces(limit, after), |space| space.id), created);
        for space in &created {
            let registration = NewRegistration::new(space.id, "registered", SpaceType::Profile);
            service.communities().register_space(registration).expect("registered");
        }
        let registered = all_rows(
            |limit, after| service.communities().list_space_registrations(limit, after),
            |registration| registration.space_id,
        );
        let ids: Vec<_> = registered.iter().map(|registration| registration.space_id).collect();
        assert_eq!(ids, created.iter().map(|space| space.id).collect::<Vec<_>>());
        let users = all_rows(|limit, after| service.auth().list_users(limit, after), |user| user.id);
        assert_eq!(users.iter().map(|user| user.id).collect::<Vec<_>>(), [owner]);
    }

    fn the_lists_of_communities_have_unpublished_ones(db: &TestDatabase) {
        let communities = db.service.communities();
        for name in ["harbor", "market", "park"] {
            let json = || serde_json::json!({});
            let mut patch = CommunityPatch::with_required(json(), json(), json(), json());
            patch.is_published = Change::Set(name != "park");
            communities.save_community_config(name, patch).expect("saved");
            communities.save_community_domain(name, &format!("{name}.example"), DomainType::Custom).expect("saved");
        }
        let configs =
            all_rows(|limit, after| communities.list_community_configs(limit, after), |config| config.id);
        let mut names: Vec<_> = configs.iter().map(|config| config.community_id.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["harbor", "market", "park"]);
        assert!(configs.is_sorted_by_key(|config| config.id));
        let domains =
            all_rows(|limit, after| communities.list_community_domains(limit, after), |domain| domain.id);
        assert_eq!(domains.len(), 3);
        assert!(domains.is_sorted_by_key(|domain| domain.id));
    }

    fn lists_and_set_owner_require_the_service(db: &TestDatabase) {
        let (space, user) = (db.space(), db.user());
        let (_, as_ann) = sign_up(db, ANN);
        for (client, kind) in [
            (&db.client, ErrorKind::Unauthorized),
            (&db.client.as_anonymous(), ErrorKind::Unauthorized),
            (&as_ann, ErrorKind::Forbidden),
        ] {
            for (words, table, result) in call_all(client, space.id, user) {
                let sentence = format!("{words} failed: Database error: permission denied for table {table}");
                assert_fails(result, kind, Some("42501"), &sentence);
            }
        }
        assert_eq!(db.service.spaces().get_space(space.id).expect("read"), space);
    }

    fn a_limit_of_a_list_is_one_to_a_thousand(db: &TestDatabase) {
        for limit in [0, 1_001] {
            let refused = db.service.spaces().list_spaces(limit, None);
            let sentence = format!("List spaces failed: limit is 1 to 1000, not {limit}");
            assert_fails(refused, ErrorKind::InvalidInput, None, &sentence);
        }
    }

    fn the_files_of_a_space_and_their_quota_pass_to_the_new_owner(db: &TestDatabase) {
        let db = TestDatabase::with(db.engine, |config| config.max_owner_files(3).inline_file_limit(10));
        let db = &db.expect("the engine is there");
        let ((anns_session, ann), (bobs_session, bob)) = (sign_up(db, ANN), sign_up(db, "bob@town.example"));
        let (ann_id, bob_id) = (anns_session.user.id, bobs_session.user.id);
        let id = ann.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
        let put = |client: &Client, bucket: &str, path: &str, size| {
            client.storage().upload(bucket, path, vec![7; size], UploadOptions::new()).map(drop)
        };
        let (inline, object, of_service) = (format!("{id}/inline"), format!("{id}/object"), format!("{id}/banner"));
        put(&ann, "spaces", &inline, 5).expect("uploaded");
        put(&ann, "spaces", &object, 500).expect("uploaded");
        put(&ann, "assets", "of-ann", 5).expect("uploaded");
        put(&db.service, "spaces", &of_service, 5).expect("uploaded");
        let url = ann.storage().signed_url("spaces", &object, UrlMethod::Put, Duration::from_secs(3_600)).expect("a URL");
        db.service.realtime().start().expect("capture is on");
        let mut changes = db.service.realtime().changes(ChangeRequest::table("files")).expect("a stream");
        db.service.spaces().set_owner(id, bob_id).expect("handed over");
        let owner_of = |bucket: &str, path: &str| db.service.storage().stat(bucket, path).expect("there").owner_id;
        assert_eq!((owner_of("spaces", &inline), owner_of("spaces", &object)), (Some(bob_id), Some(bob_id)));
        assert_eq!((owner_of("spaces", &of_service), owner_of("assets", "of-ann")), (None, Some(ann_id)));
        for _ in 0..2 {
            let change = changes.next_within(Duration::from_secs(10)).expect("in time").expect("an event");
            assert_eq!(change.old.expect("an old image")["owner_id"], ann_id.to_string());
            assert_eq!(change.new.expect("a new image")["owner_id"], bob_id.to_string());
        }
        // Ann has one of three files left, Bob two of three.
        put(&ann, "assets", "second", 5).expect("the files of the space do not count for Ann");
        put(&bob, "assets", "third", 5).expect("uploaded");
        assert_kind(ErrorKind::QuotaExceeded, put(&bob, "assets", "fourth", 5));
        assert_kind(ErrorKind::Forbidden, put(&ann, "spaces", &object, 5));
        assert_kind(ErrorKind::Forbidden, ann.storage().delete("spaces", &inline));
        let answer = db.client.storage().handle_file("PUT", &url, &[], vec![8; 5]).expect("an answer");
        assert_eq!(answer.status, 403, "the URL of Ann writes no file of Bob");
        bob.storage().delete("spaces", &object).expect("Bob deletes his file");
        put(&bob, "assets", "fourth", 5).expect("which frees his quota");
    }

    fn an_upload_beside_set_owner_ends_with_the_new_owner_or_is_refused(db: &TestDatabase) {
        // The log takes locks too.
        db.service.realtime().start().expect("the log is on");
        for (round, inline_limit) in [0, 65_536, 0, 65_536].into_iter().enumerate() {
            let client = Client::open(db.config().inline_file_limit(inline_limit)).expect("opens");
            let service = client.as_service();
            let sign_up = |name: &str| {
                let address = format!("{name}-{round}@town.example");
                client.auth().sign_up(&address, PASSWORD).expect("signed up");
                let session = client.auth().create_session(&address, PASSWORD).expect("a session");
                (session.user.id, client.as_user(&session.access_token).expect("a handle"))
            };
            let ((_, ann), (bob_id, _)) = (sign_up("ann"), sign_up("bob"));
            let id = ann.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
            let uploaded = std::thread::scope(|scope| {
                let uploads = scope.spawn(|| {
                    (0..).find(|number| {
                        let path = format!("{id}/{number}");
                        let upload = ann.storage().upload("spaces", &path, vec![7; 100], UploadOptions::new());
                        upload.is_err_and(|error| {
                            assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
                            true
                        })
                    })
                });
                wait_until("the first files", || service.storage().exists("spaces", &format!("{id}/5")).expect("asked"));
                service.spaces().set_owner(id, bob_id).expect("handed over");
                uploads.join().expect("the uploads")
            });
            let files: Vec<_> =
                service.storage().iter("spaces", &format!("{id}/"), 100).map(|file| file.expect("a file")).collect();
            assert_eq!(files.len(), uploaded.expect("refused at last"), "an acknowledged upload is there");
            assert!(files.iter().all(|file| file.owner_id == Some(bob_id)), "no file is left with Ann");
            client.close();
        }
        if db.engine == Engine::Postgres {
            let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            assert_eq!(db.raw.value(deadlocks), "0");
        }
    }

    fn pages_of_fidgets_are_in_the_order_of_creation(db: &TestDatabase) {
        let space = db.service.spaces().create_space(NewSpace::named("bare").public()).expect("created").id;
        let (fidgets, anyone) = (db.service.fidgets(), db.client.fidgets());
        let create = |_| {
            db.clock.advance(Duration::from_secs(1));
            fidgets.create_fidget(space, NewFidget::of_type("tides")).expect("created").id
        };
        let created: Vec<Uuid> = (0..7).map(create).collect();
        // Another program may write NULL: such rows are last.
        db.raw.run(&format!("UPDATE fidgets SET created_at = NULL WHERE id IN ('{}', '{}')", created[0], created[3]));
        let mut nulls = [created[0], created[3]];
        nulls.sort_unstable();
        let expected: Vec<Uuid> = [1, 2, 4, 5, 6].map(|n: usize| created[n]).into_iter().chain(nulls).collect();
        let all: Vec<Uuid> =
            anyone.get_space_fidgets(space).expect("read").into_iter().map(|fidget| fidget.id).collect();
        assert_eq!(all, expected);
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = anyone.get_space_fidgets_after(space, 2, after).expect("a page");
            let Some(last) = page.last() else { break };
            after = Some(last.into());
            paged.extend(page.iter().map(|fidget| fidget.id));
        }
        assert_eq!(paged, expected);
    }

    fn a_space_is_handed_to_another_owner(db: &TestDatabase) {
        let ((_, ann), (bobs_session, bob)) = (sign_up(db, ANN), sign_up(db, "bob@town.example"));
        let bob_id = bobs_session.user.id;
        let space = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created");
        ann.fidgets().create_fidget(space.id, NewFidget::of_type("tides")).expect("created");
        let handed = db.service.spaces().set_owner(space.id, bob_id).expect("handed over");
        assert_eq!((handed.owner_id, handed.name.as_str()), (Some(bob_id), "Harbor"));
        assert!(ann.spaces().get_space(space.id).is_err(), "the space is private");
        assert_eq!(bob.spaces().get_space_with_fidgets(space.id).expect("read").fidgets.len(), 1);
        let missing = db.service.spaces().set_owner(Uuid::nil(), bob_id);
        assert_fails(missing, ErrorKind::NotFound, None, "Set owner failed: Record not found");
        let nobody = db.service.spaces().set_owner(space.id, Uuid::nil());
        let sentence = "Set owner failed: Referenced record not found";
        assert_fails(nobody, ErrorKind::ReferenceMissing, Some("23503"), sentence);
    }

    fn get_space_with_any_fidgets_returns_an_empty_space(db: &TestDatabase) {
        let space = db.service.spaces().create_space(NewSpace::named("bare").public()).expect("created");
        let sentence = "Get space with fidgets failed: Record not found";
        assert_fails(db.client.spaces().get_space_with_fidgets(space.id), ErrorKind::NotFound, None, sentence);
        let found = db.client.spaces().get_space_with_any_fidgets(space.id).expect("found");
        assert_eq!((found.space, found.fidgets.len()), (space.clone(), 0));
        let fidget = db.service.fidgets().create_fidget(space.id, NewFidget::of_type("tides")).expect("created");
        let found = db.client.spaces().get_space_with_any_fidgets(space.id).expect("found");
        assert_eq!(found.fidgets, [fidget]);
        let private = db.space();
        let hidden = db.client.spaces().get_space_with_any_fidgets(private.id);
        assert_fails(hidden, ErrorKind::NotFound, None, sentence);
    }

    fn an_anonymous_handle_stays_anonymous(db: &TestDatabase) {
        let (_, ann) = sign_up(db, ANN);
        let space = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created");
        let anonymous = db.client.as_anonymous();
        db.client.auth().sign_in(ANN, PASSWORD).expect("signed in");
        assert!(db.client.spaces().get_space(space.id).is_ok(), "the client acts as Ann");
        assert!(anonymous.spaces().get_space(space.id).is_err(), "the handle does not");
        assert!(ann.as_anonymous().spaces().get_space(space.id).is_err());
        anonymous.auth().sign_in(ANN, PASSWORD).expect("a session");
        assert!(anonymous.spaces().get_space(space.id).is_err(), "a sign-in does not change its caller");
        anonymous.close();
        assert_fails(anonymous.spaces().get_public_spaces(1, 0), ErrorKind::Closed, None,
            "Get public spaces failed: The handle is closed");
        assert!(db.client.spaces().get_space(space.id).is_ok(), "the client is open");
        assert!(anonymous.as_anonymous().spaces().get_public_spaces(1, 0).is_err(), "a handle of a closed one is closed");
    }
}
