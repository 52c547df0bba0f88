//! Accounts: signing up and in, changing and deleting them (SPEC 5.3, 7).

use argon2::{Argon2, Params, PasswordHasher as _};
use townsquare::{ErrorKind, NewFidget, NewSpace, UserPatch, Uuid, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Engine, Store, assert_fails},
};

on_both_engines!(
    signing_up_makes_a_user_and_signs_nobody_in,
    an_address_has_one_account_whatever_its_case,
    a_bad_address_or_password_is_refused_before_anything_is_written,
    an_unknown_address_and_a_wrong_password_hear_the_same,
    a_changed_password_ends_all_other_sessions,
    a_changed_address_is_the_one_to_sign_in_with,
    an_account_changes_only_for_who_knows_its_password,
    a_deleted_account_takes_everything_along,
    the_service_deletes_anybody_and_nobody_else_does,
    a_hash_of_weaker_parameters_is_renewed_at_the_next_sign_in,
);

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";

fn signing_up_makes_a_user_and_signs_nobody_in(store: &Store) {
    let auth = store.client.auth();
    let user = wait(auth.sign_up("  Ann@Town.Example ", PASSWORD)).expect("signed up");
    assert_eq!(user.email, EMAIL);
    assert_eq!(wait(auth.get_session()).expect("asked"), None);
    assert_eq!(store.outside.value("SELECT email FROM users"), EMAIL);
}

fn an_address_has_one_account_whatever_its_case(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    let again = wait(auth.sign_up("ANN@town.example", "another password"));
    assert_fails(again, ErrorKind::AlreadyExists, Some("23505"), "Sign up failed: Record already exists");
}

fn a_bad_address_or_password_is_refused_before_anything_is_written(store: &Store) {
    let auth = store.client.auth();
    for email in ["", "ann", "a b@town.example", "ann@", "an\0n@town.example"] {
        assert_eq!(wait(auth.sign_up(email, PASSWORD)).expect_err(email).kind(), ErrorKind::InvalidInput, "{email:?}");
    }
    for password in ["1234567", &"x".repeat(1025)] {
        assert_fails(
            wait(auth.sign_up(EMAIL, password)),
            ErrorKind::InvalidInput,
            None,
            "Sign up failed: password is 8 to 1024 bytes long",
        );
    }
    assert_eq!(store.outside.value("SELECT count(*) FROM users"), "0");
}

fn an_unknown_address_and_a_wrong_password_hear_the_same(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    let sentence = "Sign in failed: Invalid login credentials";
    for (email, password) in
        [(EMAIL, "wrong password"), ("bob@town.example", PASSWORD), ("no\0body", PASSWORD), (EMAIL, "")]
    {
        assert_fails(wait(auth.sign_in(email, password)), ErrorKind::Unauthorized, None, sentence);
    }
    assert_eq!(wait(auth.get_session()).expect("asked"), None);
}

fn a_changed_password_ends_all_other_sessions(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    let elsewhere = store.another();
    wait(elsewhere.auth().sign_in(EMAIL, PASSWORD)).expect("signed in elsewhere");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    wait(auth.update_user(PASSWORD, UserPatch::new().password("another password"))).expect("changed");
    assert!(wait(auth.get_session()).expect("asked").is_some(), "the session that changed it goes on");
    assert_fails(
        wait(elsewhere.spaces().get_public_spaces(1, 0)),
        ErrorKind::Unauthorized,
        None,
        "Get public spaces failed: Session has ended",
    );
    assert!(wait(auth.sign_in(EMAIL, PASSWORD)).is_err());
    assert!(wait(auth.sign_in(EMAIL, "another password")).is_ok());
}

fn a_changed_address_is_the_one_to_sign_in_with(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    wait(auth.sign_up("bob@town.example", PASSWORD)).expect("signed up");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    let taken = wait(auth.update_user(PASSWORD, UserPatch::new().email("Bob@town.example")));
    assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Update user failed: Record already exists");
    let user = wait(auth.update_user(PASSWORD, UserPatch::new().email("ann@new.example"))).expect("changed");
    assert_eq!(user.email, "ann@new.example");
    assert_eq!(wait(auth.get_session()).expect("asked").map(|session| session.user), Some(user));
    assert!(wait(auth.sign_in(EMAIL, PASSWORD)).is_err());
    assert!(wait(auth.sign_in("ann@new.example", PASSWORD)).is_ok());
}

fn an_account_changes_only_for_who_knows_its_password(store: &Store) {
    let auth = store.client.auth();
    let patch = || UserPatch::new().password("another password");
    let sentence = "Update user failed: Nobody is signed in";
    assert_fails(wait(auth.update_user(PASSWORD, patch())), ErrorKind::Unauthorized, None, sentence);
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    let sentence = "Update user failed: Invalid login credentials";
    assert_fails(wait(auth.update_user("wrong password", patch())), ErrorKind::Unauthorized, None, sentence);
    assert!(wait(auth.delete_own_user("wrong password")).is_err());
    assert!(wait(auth.sign_in(EMAIL, PASSWORD)).is_ok(), "nothing has changed");
}

fn a_deleted_account_takes_everything_along(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    let space = wait(store.client.spaces().create_space(NewSpace::named("mine"))).expect("a space");
    wait(store.client.fidgets().create_fidget(space.id, NewFidget::of_type("tides"))).expect("a fidget");
    wait(auth.delete_own_user(PASSWORD)).expect("deleted");
    assert_eq!(wait(auth.get_session()).expect("asked"), None);
    let left = "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM spaces) + (SELECT count(*) FROM fidgets)";
    assert_eq!(store.outside.value(left), "0");
    assert!(wait(auth.sign_in(EMAIL, PASSWORD)).is_err());
}

fn the_service_deletes_anybody_and_nobody_else_does(store: &Store) {
    let auth = store.client.auth();
    let ann = wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    let sentence = "Delete user failed: Database error: permission denied for table users";
    assert_fails(wait(auth.delete_user(ann.id)), ErrorKind::Unauthorized, Some("42501"), sentence);
    let session = wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    assert_fails(wait(auth.delete_user(ann.id)), ErrorKind::Forbidden, Some("42501"), sentence);
    let bob = wait(store.client.as_user(&session.access_token)).expect("a handle");
    wait(store.service.auth().delete_user(ann.id)).expect("deleted");
    assert_eq!(wait(bob.spaces().get_space(Uuid::nil())).expect_err("ended").kind(), ErrorKind::Unauthorized);
    let missing = wait(store.service.auth().delete_user(ann.id));
    assert_fails(missing, ErrorKind::NotFound, None, "Delete user failed: Record not found");
}

/// Argon2id with less memory and fewer passes than today's, as an older version may have kept it.
fn a_hash_of_weaker_parameters_is_renewed_at_the_next_sign_in(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    let table = match store.engine {
        Engine::Sqlite => "townsquare_credentials",
        Engine::Postgres => "townsquare.credentials",
    };
    let kept = || store.outside.value(&format!("SELECT password_hash FROM {table}"));
    let strong = kept();
    assert!(strong.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{strong}");
    let weak = Argon2::from(Params::new(64, 1, 1, None).expect("parameters"));
    let weak = weak.hash_password_with_salt(PASSWORD.as_bytes(), b"sixteen bytes of").expect("a hash").to_string();
    store.outside.run(&format!("UPDATE {table} SET password_hash = '{weak}'"));
    assert!(wait(auth.sign_in(EMAIL, "wrong password")).is_err());
    assert_eq!(kept(), weak, "a wrong password renews nothing");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("right");
    let renewed = kept();
    assert!(renewed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && renewed != strong, "{renewed}");
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("right");
    assert_eq!(kept(), renewed, "strong enough");
}
