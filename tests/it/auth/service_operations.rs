//! Operations on accounts that only the service may call: every other caller is refused, and nothing changes.

use std::ops::ControlFlow;

use townsquare::{
    Error, ErrorKind, Uuid,
    auth::NewCredential,
    blocking::Client,
    communities::{CommunityPatch, DomainType},
    rows::ImportOptions,
    spaces::NewSpace,
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";

/// Calls each operation of the service; returns its words and its outcome.
fn call_all(client: &Client, email: &str, user: Uuid) -> [(&'static str, Result<(), Error>); 6] {
    let auth = client.auth();
    [
        ("Find user", auth.find_user(email).map(drop)),
        ("Set password", auth.set_password(user, "another password").map(drop)),
        ("Create recovery token", auth.create_recovery_token(email).map(drop)),
        ("Create verification token", auth.create_verification_token(user).map(drop)),
        ("Delete user", auth.delete_user(user)),
        ("Import credentials", auth.import_credentials(vec![NewCredential::of_address(email, "x")]).map(drop)),
    ]
}

fn assert_all_refused(client: &Client, kind: ErrorKind, user: Uuid) {
    for email in [ANN, "nobody@town.example", "", "' OR '1'='1", "\0"] {
        for user in [user, Uuid::nil()] {
            for (words, result) in call_all(client, email, user) {
                let sentence = format!("{words} failed: Database error: permission denied for table users");
                assert_fails(result, kind, Some("42501"), &sentence);
            }
        }
    }
}

/// Calls each operation that refuses every caller but the service.
fn call_every_operation_of_the_service(client: &Client) -> [Result<(), Error>; 25] {
    let (communities, auth, storage) = (client.communities(), client.auth(), client.storage());
    let (user, email) = (Uuid::nil(), "nobody@town.example");
    let to_files = |_, _| ControlFlow::Continue(());
    [
        communities.save_community_config("town", CommunityPatch::new()).map(drop),
        communities.save_community_domain("town", "town.example", DomainType::Custom).map(drop),
        communities.delete_community_domain("town.example"),
        communities.list_community_configs(1, None).map(drop),
        communities.list_community_domains(1, None).map(drop),
        communities.list_space_registrations(1, None).map(drop),
        client.spaces().list_spaces(1, None).map(drop),
        client.spaces().set_owner(user, user).map(drop),
        auth.list_users(1, None).map(drop),
        auth.find_user(email).map(drop),
        auth.set_password(user, "another password").map(drop),
        auth.import_credentials(vec![NewCredential::of_address(email, "x")]).map(drop),
        auth.create_recovery_token(email).map(drop),
        auth.create_verification_token(user).map(drop),
        storage.rotate_url_key(),
        storage.export_files("export", to_files).map(drop),
        storage.repair().map(drop),
        client.realtime().stop(),
        auth.delete_user(user),
        auth.identities_of(user).map(drop),
        auth.sessions_of(user).map(drop),
        auth.end_session(user, user),
        auth.end_sessions(user).map(drop),
        client.export_rows(&[]).map(drop),
        client.import_rows("spaces", Vec::new(), ImportOptions::new()).map(drop),
    ]
}

on_both_engines! {
    fn the_advice_for_operations_of_the_service_is_to_be_the_service(db: &TestDatabase) {
        let (_, of_ann) = sign_up(db, ANN);
        for client in [&db.client, &of_ann] {
            for result in call_every_operation_of_the_service(client) {
                let error = result.expect_err("refused");
                assert!(matches!(error.status(), 401 | 403), "{error}");
                assert!(error.explanation().starts_with("Use as_service():"), "{error}: {}", error.explanation());
            }
        }
        let error = db.client.spaces().create_space(NewSpace::named("x")).expect_err("refused");
        assert!(error.explanation().starts_with("Sign in"), "{error}: {}", error.explanation());
    }

    fn operations_of_the_service_refuse_every_other_caller(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let (_, of_bob) = sign_up(db, "bob@town.example");
        assert_all_refused(&db.client, ErrorKind::Unauthorized, ann.user.id);
        assert_all_refused(&of_bob, ErrorKind::Forbidden, ann.user.id);
        assert_all_refused(&of_ann, ErrorKind::Forbidden, ann.user.id);
        of_ann.auth().sign_out().expect("signed out");
        assert_all_refused(&of_ann, ErrorKind::Forbidden, ann.user.id);
        db.client.auth().sign_in(ANN, PASSWORD).expect("the password is what it was");
        assert_all_refused(&db.client, ErrorKind::Forbidden, ann.user.id);
    }

    fn the_service_finds_users_and_sets_passwords(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let auth = db.service.auth();
        assert_eq!(auth.find_user("  ANN@Town.example").expect("asked"), Some(ann.user.clone()));
        assert_eq!(auth.find_user("bob@town.example").expect("asked"), None);
        for password in ["1234567", &"x".repeat(1_025)] {
            let refused = auth.set_password(ann.user.id, password);
            let sentence = "Set password failed: password is 8 to 1024 bytes long";
            assert_fails(refused, ErrorKind::InvalidInput, None, sentence);
        }
        auth.set_password(ann.user.id, "another password").expect("set");
        let ended = of_ann.spaces().get_public_spaces(1, 0);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
        assert!(auth.refresh_session_of(&ann.refresh_token).is_err());
        assert!(auth.sign_in(ANN, PASSWORD).is_err());
        assert!(auth.sign_in(ANN, "another password").is_ok());
        let missing = auth.set_password(Uuid::nil(), "another password");
        assert_fails(missing, ErrorKind::NotFound, None, "Set password failed: Record not found");
    }
}
