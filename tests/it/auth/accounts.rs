//! Accounts: signing up and in, changing and deleting them (SPEC 5.3, 7).

use argon2::{Argon2, Params, PasswordHasher as _};
use townsquare::{
    ErrorKind, Uuid,
    auth::UserPatch,
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, assert_fails},
};

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";

on_both_engines! {
    fn sign_up_creates_a_user_without_a_session(db: &TestDatabase) {
        let auth = db.client.auth();
        let user = auth.sign_up("  Ann@Town.Example ", PASSWORD).expect("signed up");
        assert_eq!(user.email, EMAIL);
        assert_eq!(auth.get_session().expect("asked"), None);
        assert_eq!(db.raw.value("SELECT email FROM users"), EMAIL);
    }

    fn an_address_has_one_account_whatever_its_case(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        let again = auth.sign_up("ANN@town.example", "another password");
        assert_fails(again, ErrorKind::AlreadyExists, Some("23505"), "Sign up failed: Record already exists");
    }

    fn sign_up_with_an_invalid_address_or_password_writes_nothing(db: &TestDatabase) {
        let auth = db.client.auth();
        for email in ["", "ann", "a b@town.example", "ann@", "an\0n@town.example"] {
            assert_eq!(
                auth.sign_up(email, PASSWORD).expect_err(email).kind(),
                ErrorKind::InvalidInput,
                "{email:?}"
            );
        }
        for password in ["1234567", &"x".repeat(1025)] {
            assert_fails(
                auth.sign_up(EMAIL, password),
                ErrorKind::InvalidInput,
                None,
                "Sign up failed: password is 8 to 1024 bytes long",
            );
        }
        assert_eq!(db.raw.value("SELECT count(*) FROM users"), "0");
    }

    fn an_unknown_address_and_a_wrong_password_fail_with_the_same_error(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        let sentence = "Sign in failed: Invalid login credentials";
        for (email, password) in
            [(EMAIL, "wrong password"), ("bob@town.example", PASSWORD), ("no\0body", PASSWORD), (EMAIL, "")]
        {
            assert_fails(auth.sign_in(email, password), ErrorKind::Unauthorized, None, sentence);
        }
        assert_eq!(auth.get_session().expect("asked"), None);
    }

    fn a_changed_password_ends_all_other_sessions(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        let elsewhere = db.another();
        elsewhere.auth().sign_in(EMAIL, PASSWORD).expect("signed in elsewhere");
        auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        auth.update_user(PASSWORD, UserPatch::new().password("another password")).expect("changed");
        assert!(auth.get_session().expect("asked").is_some(), "the session that changed it goes on");
        assert_fails(
            elsewhere.spaces().get_public_spaces(1, 0),
            ErrorKind::Unauthorized,
            None,
            "Get public spaces failed: Session has ended",
        );
        assert!(auth.sign_in(EMAIL, PASSWORD).is_err());
        assert!(auth.sign_in(EMAIL, "another password").is_ok());
    }

    fn sign_in_uses_the_changed_address(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        auth.sign_up("bob@town.example", PASSWORD).expect("signed up");
        auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        let taken = auth.update_user(PASSWORD, UserPatch::new().email("Bob@town.example"));
        assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Update user failed: Record already exists");
        let user = auth.update_user(PASSWORD, UserPatch::new().email("ann@new.example")).expect("changed");
        assert_eq!(user.email, "ann@new.example");
        assert_eq!(auth.get_session().expect("asked").map(|session| session.user), Some(user));
        assert!(auth.sign_in(EMAIL, PASSWORD).is_err());
        assert!(auth.sign_in("ann@new.example", PASSWORD).is_ok());
    }

    fn changing_an_account_requires_its_password(db: &TestDatabase) {
        let auth = db.client.auth();
        let patch = || UserPatch::new().password("another password");
        let sentence = "Update user failed: Nobody is signed in";
        assert_fails(auth.update_user(PASSWORD, patch()), ErrorKind::Unauthorized, None, sentence);
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        let sentence = "Update user failed: Invalid login credentials";
        assert_fails(auth.update_user("wrong password", patch()), ErrorKind::Unauthorized, None, sentence);
        assert!(auth.delete_own_user("wrong password").is_err());
        assert!(auth.sign_in(EMAIL, PASSWORD).is_ok(), "nothing has changed");
    }

    fn deleting_an_account_deletes_its_rows(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        let space = db.client.spaces().create_space(NewSpace::named("mine")).expect("a space");
        db.client.fidgets().create_fidget(space.id, NewFidget::of_type("tides")).expect("a fidget");
        auth.delete_own_user(PASSWORD).expect("deleted");
        assert_eq!(auth.get_session().expect("asked"), None);
        let left =
            "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM spaces) + (SELECT count(*) FROM fidgets)";
        assert_eq!(db.raw.value(left), "0");
        assert!(auth.sign_in(EMAIL, PASSWORD).is_err());
    }

    fn only_the_service_deletes_other_users(db: &TestDatabase) {
        let auth = db.client.auth();
        let ann = auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        let sentence = "Delete user failed: Database error: permission denied for table users";
        assert_fails(auth.delete_user(ann.id), ErrorKind::Unauthorized, Some("42501"), sentence);
        let session = auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        assert_fails(auth.delete_user(ann.id), ErrorKind::Forbidden, Some("42501"), sentence);
        let bob = db.client.as_user(&session.access_token).expect("a handle");
        db.service.auth().delete_user(ann.id).expect("deleted");
        assert_eq!(bob.spaces().get_space(Uuid::nil()).expect_err("ended").kind(), ErrorKind::Unauthorized);
        let missing = db.service.auth().delete_user(ann.id);
        assert_fails(missing, ErrorKind::NotFound, None, "Delete user failed: Record not found");
    }

    /// A hash with weaker Argon2id parameters, as an older version may have stored it.
    fn a_password_hash_with_weaker_parameters_is_renewed_at_sign_in(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        let table = match db.engine {
            Engine::Sqlite => "townsquare_credentials",
            Engine::Postgres => "townsquare.credentials",
        };
        let kept = || db.raw.value(&format!("SELECT password_hash FROM {table}"));
        let strong = kept();
        assert!(strong.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{strong}");
        let weak = Argon2::from(Params::new(64, 1, 1, None).expect("parameters"));
        let weak = weak.hash_password_with_salt(PASSWORD.as_bytes(), b"sixteen bytes of").expect("a hash").to_string();
        db.raw.run(&format!("UPDATE {table} SET password_hash = '{weak}'"));
        assert!(auth.sign_in(EMAIL, "wrong password").is_err());
        assert_eq!(kept(), weak, "a wrong password renews nothing");
        auth.sign_in(EMAIL, PASSWORD).expect("right");
        let renewed = kept();
        assert!(renewed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && renewed != strong, "{renewed}");
        auth.sign_in(EMAIL, PASSWORD).expect("right");
        assert_eq!(kept(), renewed, "strong enough");
    }
}
