//! Addresses that another program stored (DESIGN 3a, 8), in mixed case or as no new account may have: their users sign in in any
//! spelling, and nobody else takes the address.

use townsquare::{
    ErrorKind, Uuid,
    auth::{NewCredential, UserPatch},
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

use super::users::{PASSWORD, sign_up};

const STORED: &str = "Mixed@Town.example";
const SPELLINGS: [&str; 3] = ["mixed@town.example", "MIXED@TOWN.EXAMPLE", " Mixed@Town.example "];

on_both_engines! {
    fn a_stored_spelling_signs_in_in_any_spelling(db: &TestDatabase) {
        let mixed = Uuid::new_v4();
        db.user_of(mixed, STORED);
        let auth = db.service.auth();
        auth.set_password(mixed, PASSWORD).expect("set");
        for spelling in SPELLINGS {
            let user = auth.sign_in(spelling, PASSWORD).expect("signed in").user;
            assert_eq!((user.id, user.email.as_str()), (mixed, STORED), "{spelling}");
            assert_eq!(auth.find_user(spelling).expect("asked").map(|user| user.id), Some(mixed));
            assert!(auth.create_recovery_token(spelling).expect("asked").is_some(), "{spelling}");
            let hash = bcrypt::hash_with_salt("pw", 4, [7; 16]).expect("a hash").to_string();
            let row = NewCredential::of_address(spelling, hash);
            assert_eq!(auth.import_credentials(vec![row]).expect("imported").unchanged, 1, "{spelling}");
        }
    }

    fn a_stored_address_that_no_new_account_may_have_signs_in(db: &TestDatabase) {
        for stored in ["\"ann\"@town.example", "you@b.example<me@a.example>", "a,b@town.example", "a@b@c", "a\u{200b}@town.example"] {
            let refused = db.client.auth().sign_up(stored, PASSWORD);
            assert_fails(refused, ErrorKind::InvalidInput, None, "Sign up failed: email is not an e-mail address");
            let id = Uuid::new_v4();
            db.user_of(id, stored);
            let auth = db.service.auth();
            let row = NewCredential::of_address(stored, bcrypt::hash_with_salt("pw", 4, [7; 16]).expect("a hash").to_string());
            assert_eq!(auth.import_credentials(vec![row]).expect("imported").imported, 1, "{stored}");
            auth.set_password(id, PASSWORD).expect("set");
            assert_eq!(auth.sign_in(stored, PASSWORD).expect("signed in").user.id, id, "{stored}");
            assert_eq!(auth.find_user(stored).expect("asked").map(|user| user.id), Some(id), "{stored}");
        }
    }

    /// The Kelvin sign is a `k` in lower case: a mail goes to the stored address, never to the asked one.
    fn a_letter_of_another_mailbox_finds_the_stored_address(db: &TestDatabase) {
        let (kim, _) = sign_up(db, "kim@town.example");
        let auth = db.service.auth();
        let asked = "\u{212a}im@town.example";
        let found = auth.find_user(asked).expect("asked").expect("the address in lower case");
        assert_eq!((found.id, found.email.as_str()), (kim.user.id, "kim@town.example"));
        assert!(auth.create_recovery_token(asked).expect("asked").is_some());
        let taken = db.client.auth().sign_up(asked, PASSWORD);
        assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Sign up failed: Record already exists");
    }

    fn no_sign_up_and_no_change_takes_a_stored_address(db: &TestDatabase) {
        db.user_of(Uuid::new_v4(), STORED);
        let (_, ann) = sign_up(db, "ann@town.example");
        for spelling in SPELLINGS {
            let taken = db.client.auth().sign_up(spelling, PASSWORD);
            assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Sign up failed: Record already exists");
            let taken = ann.auth().update_user(PASSWORD, UserPatch::new().email(spelling));
            assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Update user failed: Record already exists");
        }
        assert_eq!(db.raw.count("users"), 2);
        assert_eq!(db.raw.count("users WHERE email = 'ann@town.example'"), 1);
    }

    fn a_user_changes_the_spelling_of_the_own_address(db: &TestDatabase) {
        let mixed = Uuid::new_v4();
        db.user_of(mixed, STORED);
        db.service.auth().set_password(mixed, PASSWORD).expect("set");
        let session = db.service.auth().sign_in(STORED, PASSWORD).expect("signed in");
        let handle = db.client.as_user(&session.access_token).expect("a handle");
        let user = handle.auth().update_user(PASSWORD, UserPatch::new().email(STORED)).expect("changed");
        assert_eq!((user.id, user.email.as_str()), (mixed, "mixed@town.example"));
        assert!(db.service.auth().sign_in(STORED, PASSWORD).is_ok());
    }

    fn a_new_password_forgets_the_failures_of_the_address(db: &TestDatabase) {
        let mixed = Uuid::new_v4();
        db.user_of(mixed, STORED);
        let auth = db.service.auth();
        auth.set_password(mixed, PASSWORD).expect("set");
        for _ in 0..10 {
            assert!(auth.sign_in("MIXED@town.example", "wrong horse").is_err());
        }
        assert_eq!(auth.sign_in(STORED, PASSWORD).expect_err("wait").kind(), ErrorKind::RateLimited);
        auth.set_password(mixed, PASSWORD).expect("set");
        assert!(auth.sign_in(STORED, PASSWORD).is_ok());
    }

    /// Two rows that differ in case only: the one in the normal form has the address.
    fn the_normal_spelling_comes_first(db: &TestDatabase) {
        let (mixed, normal) = (Uuid::new_v4(), Uuid::new_v4());
        for (id, email) in [(mixed, STORED), (normal, "mixed@town.example"), (Uuid::new_v4(), "MIXED@town.example")] {
            db.user_of(id, email);
        }
        db.service.auth().set_password(mixed, "another horse").expect("set");
        db.service.auth().set_password(normal, PASSWORD).expect("set");
        for spelling in SPELLINGS {
            assert_eq!(db.service.auth().sign_in(spelling, PASSWORD).expect("signed in").user.id, normal);
            assert!(db.service.auth().sign_in(spelling, "another horse").is_err());
        }
    }
}
