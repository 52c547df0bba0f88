//! Recovery of accounts and verification of addresses by tokens that the host mails (DESIGN 8).

use std::{thread, time::Duration};

use townsquare::{
    ErrorKind, Uuid,
    auth::{Session, UserPatch},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase, assert_fails},
};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";
const NEW_PASSWORD: &str = "battery staple";
const NO_RECOVERY: &str = "Recover failed: The recovery token is not valid";
const NO_VERIFICATION: &str = "Verify email failed: The verification token is not valid";

fn recovery_token(db: &TestDatabase, email: &str) -> String {
    db.service.auth().create_recovery_token(email).expect("asked").expect("a known address")
}

fn verification_token(db: &TestDatabase, user: Uuid) -> String {
    db.service.auth().create_verification_token(user).expect("a token")
}

fn assert_no_recovery(db: &TestDatabase, token: &str) {
    assert_fails(db.client.auth().recover(token, NEW_PASSWORD), ErrorKind::Unauthorized, None, NO_RECOVERY);
}

fn assert_no_verification(db: &TestDatabase, token: &str) {
    assert_fails(db.client.auth().verify_email(token), ErrorKind::Unauthorized, None, NO_VERIFICATION);
}

/// The SQL name of a table that belongs to the library alone.
pub(super) fn own_table(db: &TestDatabase, name: &str) -> String {
    match db.engine {
        Engine::Sqlite => format!("townsquare_{name}"),
        Engine::Postgres => format!("townsquare.{name}"),
    }
}

on_both_engines! {
    fn recover_sets_the_password_ends_every_session_and_signs_in(db: &TestDatabase) {
        let (ann, elsewhere) = sign_up(db, ANN);
        let token = recovery_token(db, " ANN@town.example ");
        let session: Session = db.client.auth().recover(&token, NEW_PASSWORD).expect("recovered");
        assert_eq!(session.user, ann.user);
        let ended = elsewhere.spaces().get_public_spaces(1, 0);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
        let space = db.client.spaces().create_space(NewSpace::named("mine")).expect("signed in");
        assert_eq!(space.owner_id, Some(ann.user.id));
        assert_eq!(db.client.auth().get_session().expect("asked"), Some(session));
        assert!(db.service.auth().sign_in(ANN, PASSWORD).is_err());
        assert!(db.service.auth().sign_in(ANN, NEW_PASSWORD).is_ok());
    }

    fn a_recovery_token_works_once_within_an_hour(db: &TestDatabase) {
        sign_up(db, ANN);
        let (first, second) = (recovery_token(db, ANN), recovery_token(db, ANN));
        assert_ne!(first, second);
        db.clock.advance(Duration::from_secs(3_599));
        assert!(db.client.auth().recover(&first, NEW_PASSWORD).is_ok());
        assert_no_recovery(db, &first);
        assert_no_recovery(db, &second);
        let late = recovery_token(db, ANN);
        db.clock.advance(Duration::from_secs(3_600));
        assert_no_recovery(db, &late);
        assert!(db.service.auth().sign_in(ANN, NEW_PASSWORD).is_ok(), "the first password of the two");
        recovery_token(db, ANN);
        assert_eq!(db.raw.count(&own_table(db, "mailed_tokens")), 1, "expired tokens are deleted");
    }

    fn of_two_concurrent_uses_of_a_recovery_token_one_succeeds(db: &TestDatabase) {
        sign_up(db, ANN);
        let token = recovery_token(db, ANN);
        let recovered: usize = thread::scope(|scope| {
            let tries: Vec<_> = (0..4)
                .map(|number| {
                    let (auth, token) = (db.service.auth(), &token);
                    scope.spawn(move || auth.recover(token, &format!("new password {number}")).is_ok())
                })
                .collect();
            tries.into_iter().map(|each| usize::from(each.join().expect("no panic"))).sum()
        });
        assert_eq!(recovered, 1);
    }

    fn a_password_of_a_wrong_length_does_not_use_the_recovery_token(db: &TestDatabase) {
        sign_up(db, ANN);
        let token = recovery_token(db, ANN);
        for password in ["1234567", &"x".repeat(1_025)] {
            let refused = db.client.auth().recover(&token, password);
            let sentence = "Recover failed: password is 8 to 1024 bytes long";
            assert_fails(refused, ErrorKind::InvalidInput, None, sentence);
        }
        assert!(db.client.auth().recover(&token, NEW_PASSWORD).is_ok());
    }

    fn a_changed_address_voids_mailed_tokens(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let (recovery, verification) = (recovery_token(db, ANN), verification_token(db, ann.user.id));
        of_ann.auth().update_user(PASSWORD, UserPatch::new().email("ann@new.example")).expect("changed");
        assert_no_recovery(db, &recovery);
        assert_no_verification(db, &verification);
        // Also after the address is what it was.
        of_ann.auth().update_user(PASSWORD, UserPatch::new().email(ANN)).expect("changed back");
        assert_no_recovery(db, &recovery);
        assert_no_verification(db, &verification);
    }

    fn an_address_that_another_program_changed_voids_mailed_tokens(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let (recovery, verification) = (recovery_token(db, ANN), verification_token(db, ann.user.id));
        db.client.auth().verify_email(&verification_token(db, ann.user.id)).expect("verified");
        db.raw.run("UPDATE users SET email = 'ann@new.example'");
        assert_no_recovery(db, &recovery);
        assert_no_verification(db, &verification);
        let found = db.service.auth().find_user("ann@new.example").expect("asked").expect("there");
        assert_eq!(found.email_verified_at, None);
    }

    fn a_changed_password_voids_recovery_tokens(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let (recovery, verification) = (recovery_token(db, ANN), verification_token(db, ann.user.id));
        of_ann.auth().update_user(PASSWORD, UserPatch::new().password(NEW_PASSWORD)).expect("changed");
        assert_no_recovery(db, &recovery);
        assert!(db.client.auth().verify_email(&verification).is_ok(), "the address is the same");
        let recovery = recovery_token(db, ANN);
        db.service.auth().set_password(ann.user.id, PASSWORD).expect("set");
        assert_no_recovery(db, &recovery);
    }

    fn a_deleted_user_has_no_tokens(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let (recovery, verification) = (recovery_token(db, ANN), verification_token(db, ann.user.id));
        db.service.auth().delete_user(ann.user.id).expect("deleted");
        sign_up(db, ANN);
        assert_no_recovery(db, &recovery);
        assert_no_verification(db, &verification);
    }

    fn tokens_work_for_their_purpose_only(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let (recovery, verification) = (recovery_token(db, ANN), verification_token(db, ann.user.id));
        assert_no_verification(db, &recovery);
        assert_no_recovery(db, &verification);
        for token in [&recovery, &verification] {
            assert!(db.client.as_user(token).is_err());
            assert!(db.service.auth().refresh_session_of(token).is_err());
        }
        for token in [&ann.access_token, &ann.refresh_token] {
            assert_no_recovery(db, token);
            assert_no_verification(db, token);
        }
        assert!(db.client.auth().verify_email(&verification).is_ok());
        assert!(db.client.auth().recover(&recovery, NEW_PASSWORD).is_ok());
    }

    fn malformed_tokens_and_addresses_are_plain_text(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let good = recovery_token(db, ANN);
        let long = "x".repeat(1 << 20);
        let near = [format!("{good}0"), good.to_uppercase(), format!(" {good}"), good[..70].to_owned()];
        let hostile = ["", "\0", "a\0b", "' OR '1'='1", "'; DROP TABLE users; --", "$1", "%", long.as_str()];
        for text in near.iter().map(String::as_str).chain(hostile) {
            assert_no_recovery(db, text);
            assert_no_verification(db, text);
            assert_eq!(db.service.auth().create_recovery_token(text).expect("an answer"), None);
            assert_eq!(db.service.auth().find_user(text).expect("an answer"), None);
        }
        assert_eq!(db.service.auth().create_recovery_token("bob@town.example").expect("an answer"), None);
        let missing = db.service.auth().create_verification_token(Uuid::nil());
        assert_fails(missing, ErrorKind::NotFound, None, "Create verification token failed: Record not found");
        assert_eq!(db.client.auth().recover(&good, NEW_PASSWORD).expect("it works").user, ann.user);
    }

    fn verify_email_records_when_the_address_was_verified(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        assert_eq!(ann.user.email_verified_at, None);
        let (late, token) = (verification_token(db, ann.user.id), verification_token(db, ann.user.id));
        db.clock.advance(Duration::from_secs(60));
        let now = db.now();
        let verified = db.client.auth().verify_email(&token).expect("verified");
        assert_eq!((verified.id, verified.email_verified_at), (ann.user.id, Some(now)));
        assert_eq!(db.client.auth().get_session().expect("asked"), None, "nobody is signed in by it");
        assert_no_verification(db, &token);
        let session = of_ann.auth().get_session().expect("asked").expect("there is one");
        assert_eq!(session.user, verified);
        assert_eq!(db.service.auth().sign_in(ANN, PASSWORD).expect("right").user, verified);
        db.clock.advance(Duration::from_secs(86_400));
        assert_no_verification(db, &late);
    }

    fn a_changed_address_is_not_verified(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        db.client.auth().verify_email(&verification_token(db, ann.user.id)).expect("verified");
        let same = of_ann.auth().update_user(PASSWORD, UserPatch::new().email(ANN)).expect("no change");
        assert!(same.email_verified_at.is_some());
        for email in ["ann@new.example", ANN] {
            let user = of_ann.auth().update_user(PASSWORD, UserPatch::new().email(email)).expect("changed");
            assert_eq!(user.email_verified_at, None, "{email}");
        }
    }

    fn a_user_without_a_password_gets_one_by_recovery(db: &TestDatabase) {
        let id = Uuid::new_v4();
        db.user_of(id, ANN);
        let verified = db.client.auth().verify_email(&verification_token(db, id)).expect("verified");
        assert!(verified.email_verified_at.is_some());
        let session = db.client.auth().recover(&recovery_token(db, ANN), PASSWORD).expect("recovered");
        assert_eq!(session.user.id, id);
        assert!(db.service.auth().sign_in(ANN, PASSWORD).is_ok());
    }

    fn recover_lets_a_user_in_whom_failed_sign_ins_lock_out(db: &TestDatabase) {
        sign_up(db, ANN);
        for _ in 0..11 {
            assert!(db.service.auth().sign_in(ANN, "wrong password").is_err());
        }
        assert!(db.client.auth().recover(&recovery_token(db, ANN), NEW_PASSWORD).is_ok());
        assert!(db.service.auth().sign_in(ANN, NEW_PASSWORD).is_ok());
    }
}
