//! Registrations of spaces (SPEC 2.4).

use townsquare::{
    ErrorKind, Uuid,
    auth::identity_claim,
    communities::{NewRegistration, SpaceType},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{TestDatabase, assert_fails},
};

fn register(
    db: &TestDatabase,
    registration: NewRegistration,
) -> townsquare::Result<townsquare::communities::SpaceRegistration> {
    db.service.communities().register_space(registration)
}

on_both_engines! {
    fn a_registration_is_returned_and_can_be_read(db: &TestDatabase) {
        let id = Uuid::new_v4();
        assert_eq!(db.client.communities().get_space_registration(id).expect("none"), None);
        let mut new = NewRegistration::new(id, "Plaza", SpaceType::NavPage);
        new.fid = Some(7);
        new.identity_public_key = Some("key".to_owned());
        new.signature = Some("signature".to_owned());
        let made = register(db, new).expect("registered");
        assert_eq!((made.space_id, made.space_name.as_str(), made.space_type), (id, "Plaza", SpaceType::NavPage));
        assert_eq!((made.fid, made.timestamp), (Some(7), db.now()));
        assert_eq!((made.identity_public_key.as_deref(), made.signature.as_deref()), (Some("key"), Some("signature")));
        let read = db.client.communities().get_space_registration(id).expect("read by nobody");
        assert_eq!(read, Some(made));
        let row = "SELECT \"spaceId\", \"spaceName\", \"spaceType\" FROM \"spaceRegistrations\"";
        let expected = [id.to_string(), "Plaza".to_owned(), "navPage".to_owned()].map(Some);
        assert_eq!(db.raw.rows(row), [expected.to_vec()]);
    }

    fn every_type_of_space_can_be_registered_and_no_other(db: &TestDatabase) {
        let words: Vec<_> = SpaceType::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words, ["profile", "token", "proposal", "channel", "navPage"]);
        for kind in SpaceType::ALL {
            let made = register(db, NewRegistration::new(Uuid::new_v4(), "x", *kind)).expect("registered");
            assert_eq!((made.space_type, made.fid, made.signature), (*kind, None, None));
            assert_eq!(kind.as_str().parse::<SpaceType>().expect("a word"), *kind);
        }
        for bad in ["sheep", "navpage", ""] {
            let error = bad.parse::<SpaceType>().expect_err("no type");
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Some("23514")));
            let insert = "INSERT INTO \"spaceRegistrations\" (\"spaceId\", \"spaceName\", \"spaceType\")";
            let row = format!("{insert} VALUES ('{}', 'x', '{bad}')", Uuid::new_v4());
            db.raw.try_rows(&row).expect_err(bad);
        }
    }

    fn a_space_is_registered_once(db: &TestDatabase) {
        let id = Uuid::new_v4();
        let first = register(db, NewRegistration::new(id, "first", SpaceType::Token)).expect("registered");
        let second = register(db, NewRegistration::new(id, "second", SpaceType::Token));
        let sentence = "Register space failed: Record already exists";
        assert_fails(second, ErrorKind::AlreadyExists, Some("23505"), sentence);
        let read = db.client.communities().get_space_registration(id).expect("read");
        assert_eq!(read, Some(first));
    }

    fn a_registration_needs_a_name(db: &TestDatabase) {
        let mut bare = NewRegistration::new(Uuid::new_v4(), "", SpaceType::Token);
        bare.space_name = None;
        let sentence = "Register space failed: Required field is missing";
        assert_fails(register(db, bare), ErrorKind::FieldMissing, Some("23502"), sentence);
    }

    fn a_registration_outlives_its_space(db: &TestDatabase) {
        let space = db.space();
        register(db, NewRegistration::new(space.id, "x", SpaceType::Profile)).expect("registered");
        db.service.spaces().delete_space(space.id).expect("deleted");
        assert!(db.client.communities().get_space_registration(space.id).expect("read").is_some());
    }

    fn a_fid_is_any_integer_of_32_bits(db: &TestDatabase) {
        for fid in [i32::MIN, -1, 0, i32::MAX] {
            let mut new = NewRegistration::new(Uuid::new_v4(), "x", SpaceType::Channel);
            new.fid = Some(fid);
            assert_eq!(register(db, new).expect("registered").fid, Some(i64::from(fid)));
        }
        db.raw.try_rows("UPDATE \"spaceRegistrations\" SET fid = 2147483648").expect_err("too large for INTEGER");
    }

    /// Readers take fid, key and signature for proven (SPEC 2.4): a user's own statements are none.
    fn a_user_registers_no_fid_no_signature_and_only_a_linked_key(db: &TestDatabase) {
        let email = "ann@town.example";
        let ann = db.service.auth().sign_up(email, "correct horse").expect("signed up").id;
        let session = db.service.auth().create_session(email, "correct horse").expect("a session");
        let client = db.client.as_user(&session.access_token).expect("a handle");
        let new_space = || client.spaces().create_space(NewSpace::named("hers")).expect("a space").id;
        let audience = client.auth().identity_audience().expect("an audience");
        let claim = |key: &str| identity_claim(ann, &key.repeat(32), &audience, db.now()).expect("a key");
        let (linked, foreign) = (claim("01"), claim("02"));
        client.auth().link_identity(&linked).expect("linked");
        let key = |claim: &townsquare::Json| claim["publicKey"].as_str().map(str::to_owned);
        let register = |change: &dyn Fn(&mut NewRegistration)| {
            let mut new = NewRegistration::new(new_space(), "hers", SpaceType::Profile);
            change(&mut new);
            client.communities().register_space(new)
        };
        for refused in [
            register(&|new| new.fid = Some(3)),
            register(&|new| new.signature = Some("00".repeat(64))),
            register(&|new| new.identity_public_key = key(&foreign)),
            register(&|new| {
                (new.identity_public_key, new.signature) = (key(&foreign), Some("00".repeat(64)));
            }),
            register(&|new| (new.identity_public_key, new.fid) = (key(&linked), Some(3))),
        ] {
            let sentence = "Register space failed: Database error: new row violates row-level security policy for table \
                \"spaceRegistrations\"";
            assert_fails(refused, ErrorKind::Forbidden, Some("42501"), sentence);
        }
        assert_eq!(db.raw.count("\"spaceRegistrations\""), 0);
        let made = register(&|new| new.identity_public_key = key(&linked)).expect("her own key");
        assert_eq!((made.identity_public_key, made.fid, made.signature), (key(&linked), None, None));
        register(&|_| {}).expect("no statement at all");
        // The key was hers when she registered.
        client.auth().unlink_identity(&key(&linked).expect("a text")).expect("unlinked");
        register(&|new| new.identity_public_key = key(&linked)).expect_err("no longer");
    }
}
