//! The sessions of a user as the service lists and ends them: `sessions_of`, `end_session`, `end_sessions`.

use std::time::Duration;

use townsquare::{ErrorKind, Uuid};
use townsquare_tests::{fixture::assert_kind, on_both_engines};

use super::{
    recovery::own_table,
    users::{PASSWORD, sign_up},
};

const ANN: &str = "ann@town.example";
const HOUR: Duration = Duration::from_secs(3_600);

on_both_engines! {
    fn the_service_lists_the_sessions_of_a_user(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        sign_up(db, "bob@town.example");
        let auth = db.service.auth();
        let first = auth.sessions_of(ann.user.id).expect("listed");
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].created_at, first[0].refreshed_at);
        db.clock.advance(HOUR / 2);
        let second = db.client.auth().create_session(ANN, PASSWORD).expect("a session");
        let refreshed = db.client.auth().refresh_session_of(&ann.refresh_token).expect("refreshed");
        let sessions = auth.sessions_of(ann.user.id).expect("listed");
        assert_eq!((sessions.len(), sessions[1].id, sessions[1].created_at), (2, first[0].id, first[0].created_at));
        assert!(sessions[1].refreshed_at > first[0].refreshed_at && sessions[1].expires_at > first[0].expires_at);
        assert_eq!(sessions[0].created_at, sessions[0].refreshed_at);
        let text = serde_json::to_string(&sessions).expect("JSON");
        for secret in [&second.access_token, &second.refresh_token, &refreshed.access_token, &refreshed.refresh_token] {
            assert!(!text.contains(&**secret) && !format!("{sessions:?}").contains(&**secret));
        }
        let hashes = db.raw.rows(&format!("SELECT access_hash, refresh_hash FROM {}", own_table(db, "sessions")));
        for hash in hashes.into_iter().flatten().flatten() {
            assert!(!text.contains(&hash), "{text}");
        }
        assert_eq!(auth.sessions_of(Uuid::new_v4()).expect("listed"), []);
    }

    fn the_service_ends_one_session_or_all(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let (bob, of_bob) = sign_up(db, "bob@town.example");
        let auth = db.service.auth();
        let own = auth.sessions_of(ann.user.id).expect("listed")[0].id;
        let other = db.client.auth().create_session(ANN, PASSWORD).expect("a session");
        // A session of another user, and one that is not there.
        assert_kind(ErrorKind::NotFound, auth.end_session(bob.user.id, own));
        assert_kind(ErrorKind::NotFound, auth.end_session(ann.user.id, Uuid::new_v4()));
        assert_eq!(auth.sessions_of(ann.user.id).expect("listed").len(), 2);

        of_ann.spaces().get_user_spaces(ann.user.id).expect("a valid session");
        auth.end_session(ann.user.id, own).expect("ended");
        assert_kind(ErrorKind::NotFound, auth.end_session(ann.user.id, own));
        assert_kind(ErrorKind::Unauthorized, of_ann.spaces().get_user_spaces(ann.user.id));
        assert_kind(ErrorKind::Unauthorized, db.client.auth().refresh_session_of(&ann.refresh_token));

        db.client.as_user(&other.access_token).expect("the other session is untouched");
        assert_eq!(auth.end_sessions(ann.user.id).expect("ended"), 1);
        assert_eq!(auth.end_sessions(ann.user.id).expect("ended"), 0);
        assert_kind(ErrorKind::Unauthorized, db.client.as_user(&other.access_token));
        of_bob.spaces().get_user_spaces(bob.user.id).expect("Bob's session is untouched");
        assert_eq!(auth.end_sessions(Uuid::new_v4()).expect("none"), 0);
    }

    fn an_expired_session_is_neither_listed_nor_ended(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let auth = db.service.auth();
        let old = auth.sessions_of(ann.user.id).expect("listed")[0].id;
        db.clock.advance(HOUR * 24 * 20);
        db.client.auth().create_session(ANN, PASSWORD).expect("a session");
        assert_eq!(auth.sessions_of(ann.user.id).expect("listed").len(), 2);
        // The first one expires after 30 days, and its row stays for a day more.
        db.clock.advance(HOUR * 24 * 10);
        assert_eq!(db.raw.count(&own_table(db, "sessions")), 2);
        let listed = auth.sessions_of(ann.user.id).expect("listed");
        assert!(listed.len() == 1 && listed[0].id != old, "{listed:?}");
        assert_kind(ErrorKind::NotFound, auth.end_session(ann.user.id, old));
        assert_eq!(auth.end_sessions(ann.user.id).expect("ended"), 1);
        assert_eq!(db.raw.count(&own_table(db, "sessions")), 0);
    }

    fn other_callers_neither_list_nor_end_sessions(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, ANN);
        let (_, of_bob) = sign_up(db, "bob@town.example");
        let session = db.service.auth().sessions_of(ann.user.id).expect("listed")[0].id;
        for (client, kind) in
            [(&db.client, ErrorKind::Unauthorized), (&of_ann, ErrorKind::Forbidden), (&of_bob, ErrorKind::Forbidden)]
        {
            let auth = client.auth();
            assert_kind(kind, auth.sessions_of(ann.user.id));
            assert_kind(kind, auth.end_session(ann.user.id, session));
            let error = assert_kind(kind, auth.end_sessions(ann.user.id));
            assert!(error.explanation().starts_with("Use as_service()"), "{error}");
        }
        of_ann.spaces().get_user_spaces(ann.user.id).expect("the session is valid");
    }
}
