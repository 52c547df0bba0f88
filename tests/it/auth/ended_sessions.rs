//! A session that ends elsewhere: listeners are told once, when the handle learns it (SPEC 5.3 and 6.4).

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use townsquare::{
    Error, ErrorKind, Subscription,
    auth::{AuthEvent, Session, SignOutScope},
    blocking::Client,
    realtime::{ChangeRequest, LiveRequest},
    spaces::NewSpace,
    storage::UploadOptions,
};
use townsquare_tests::{
    on_both_engines, temp_dir,
    test_database::{TestDatabase, assert_fails},
};

use super::users::PASSWORD;

const EMAIL: &str = "ann@town.example";

/// A call of a handle, without its result.
type Call<'a> = &'a dyn Fn() -> Result<(), Error>;

/// The events of a handle, without their sessions.
struct Heard {
    events: Receiver<(AuthEvent, bool)>,
    _subscription: Subscription,
}

impl Heard {
    fn of(handle: &Client) -> Heard {
        let (told, events) = mpsc::channel();
        let listener = move |event, session: Option<Session>| {
            let _ = told.send((event, session.is_some()));
        };
        Heard { events, _subscription: handle.auth().on_auth_state_change(listener) }
    }

    fn next(&self) -> (AuthEvent, bool) {
        self.events.recv_timeout(Duration::from_secs(20)).expect("an event")
    }

    /// The next event is `SIGNED_OUT`, and none follows.
    fn assert_ended(&self) {
        assert_eq!(self.next(), (AuthEvent::SignedOut, false));
        self.assert_silent();
    }

    fn assert_silent(&self) {
        let further = self.events.recv_timeout(Duration::from_millis(50));
        assert_eq!(further, Err(RecvTimeoutError::Timeout));
    }
}

fn signed_in(client: &Client) -> Session {
    client.auth().sign_up(EMAIL, PASSWORD).expect("signed up");
    client.auth().sign_in(EMAIL, PASSWORD).expect("signed in")
}

fn end_sessions(db: &TestDatabase, session: &Session) {
    db.service.auth().end_sessions(session.user.id).expect("ended");
}

on_both_engines! {
    fn a_refused_call_sends_signed_out_once(db: &TestDatabase) {
        let space = db.public_space(db.user(), "seen by all");
        let reads: fn(&Client) -> _ = |client| client.spaces().get_public_spaces(1, 0).map(drop);
        let writes: fn(&Client) -> _ = |client| client.spaces().create_space(NewSpace::named("late")).map(drop);
        let asks: fn(&Client) -> _ = |client| client.auth().identities().map(drop);
        let listens: fn(&Client) -> _ = |client| client.realtime().changes(ChangeRequest::table("spaces")).map(drop);
        let session = signed_in(&db.client);
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        end_sessions(db, &session);
        for call in [reads, writes, asks, listens] {
            for _ in 0..2 {
                assert_eq!(call(&db.client).expect_err("the session has ended").kind(), ErrorKind::Unauthorized);
            }
            heard.assert_ended();
            // The handle does not become anonymous by itself.
            assert_fails(db.client.spaces().get_space(space.id), ErrorKind::Unauthorized, None, "Get space failed: Session has ended");
            assert_eq!(Heard::of(&db.client).next(), (AuthEvent::InitialSession, false));
            assert_eq!(db.client.auth().get_session().expect("asked"), None);
            assert_eq!(db.client.spaces().get_space(space.id).expect("anonymous"), space);
            heard.assert_silent();
            let session = db.client.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
            assert_eq!(heard.next(), (AuthEvent::SignedIn, true));
            end_sessions(db, &session);
        }
    }

    fn a_refused_call_of_an_account_sends_signed_out_once(db: &TestDatabase) {
        let auth = db.client.auth();
        let calls: [&dyn Fn() -> townsquare::Result<()>; 5] = [
            &|| auth.refresh_session().map(drop),
            &|| auth.sign_out_scope(SignOutScope::Global),
            &|| auth.sign_out_scope(SignOutScope::Others),
            &|| auth.update_user(PASSWORD, Default::default()).map(drop),
            &|| auth.delete_own_user(PASSWORD),
        ];
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        for (index, call) in calls.iter().enumerate() {
            let session = auth.sign_in(EMAIL, PASSWORD).expect("signed in");
            let heard = Heard::of(&db.client);
            assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
            end_sessions(db, &session);
            for _ in 0..2 {
                let refused = call().expect_err("the session has ended");
                assert_eq!((refused.kind(), refused.message()), (ErrorKind::Unauthorized, "Session has ended"), "{index}");
            }
            heard.assert_ended();
            auth.sign_out().expect("signed out");
            heard.assert_silent();
            assert!(db.client.spaces().get_public_spaces(1, 0).is_ok(), "anonymous");
        }
    }

    fn sign_out_after_a_refused_call_ends_a_session_that_another_client_refreshed(db: &TestDatabase) {
        let session = signed_in(&db.client);
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        let newer = db.service.auth().refresh_session_of(&session.refresh_token).expect("refreshed elsewhere");
        assert!(db.client.spaces().get_public_spaces(1, 0).is_err());
        heard.assert_ended();
        assert!(db.client.as_user(&newer.access_token).is_ok(), "it goes on there");
        db.client.auth().sign_out().expect("signed out");
        assert!(db.client.as_user(&newer.access_token).is_err());
        heard.assert_silent();
    }

    fn get_session_sends_signed_out_once(db: &TestDatabase) {
        let session = signed_in(&db.client);
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        end_sessions(db, &session);
        for _ in 0..2 {
            assert_eq!(db.client.auth().get_session().expect("asked"), None);
        }
        heard.assert_ended();
    }

    fn an_as_user_handle_tells_its_listeners_and_keeps_its_caller(db: &TestDatabase) {
        let session = signed_in(&db.client);
        let [told, unheard] = [(); 2].map(|()| db.client.as_user(&session.access_token).expect("a handle"));
        let heard = Heard::of(&told);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        let second = Heard::of(&told);
        assert_eq!(second.next(), (AuthEvent::InitialSession, true));
        end_sessions(db, &session);
        for handle in [&told, &unheard, &told] {
            let refused = handle.spaces().get_public_spaces(1, 0);
            assert_fails(refused, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
            for scope in [SignOutScope::Others, SignOutScope::Global] {
                let refused = handle.auth().sign_out_scope(scope);
                assert_fails(refused, ErrorKind::Unauthorized, None, "Sign out failed: Session has ended");
            }
        }
        heard.assert_ended();
        second.assert_ended();
    }

    fn an_expired_access_token_is_no_end(db: &TestDatabase) {
        signed_in(&db.client);
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        db.clock.advance(Duration::from_secs(3_600));
        assert!(db.client.auth().get_session().expect("asked").is_some());
        assert_eq!(heard.next(), (AuthEvent::TokenRefreshed, true));
        db.clock.advance(Duration::from_secs(31 * 86_400));
        let expired = db.client.spaces().get_public_spaces(1, 0);
        assert_fails(expired, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has expired");
        heard.assert_ended();
        assert!(db.client.auth().refresh_session().is_err(), "a month later it is over");
    }

    /// A computer that slept for hours: its timers stood still, and its clock did not.
    fn every_call_refreshes_a_session_whose_access_token_has_expired(db: &TestDatabase) {
        let user = signed_in(&db.client).user;
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        let (client, path) = (&db.client, format!("{}/a.txt", user.id));
        let calls: [(&str, Call<'_>); 9] = [
            ("read", &|| client.spaces().get_public_spaces(1, 0).map(drop)),
            ("write", &|| client.spaces().create_space(NewSpace::named("mine")).map(drop)),
            ("upload", &|| client.storage().upload("private", &path, "x", UploadOptions::new()).map(drop)),
            ("download", &|| client.storage().download("private", &path).map(drop)),
            ("subscribe", &|| client.realtime().subscribe("mine", ChangeRequest::table("spaces"), |_| ()).map(drop)),
            ("live", &|| client.realtime().live(LiveRequest::table("spaces")).map(drop)),
            ("identities", &|| client.auth().identities().map(drop)),
            ("update_user", &|| client.auth().update_user(PASSWORD, Default::default()).map(drop)),
            ("delete_own_user", &|| client.auth().delete_own_user(PASSWORD)),
        ];
        for (name, call) in calls {
            db.clock.advance(Duration::from_secs(3 * 3_600));
            call().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(heard.next(), (AuthEvent::TokenRefreshed, true), "{name}");
        }
        heard.assert_ended();
        let server = db.client.as_anonymous();
        assert!(server.spaces().get_public_spaces(1, 0).is_ok());
    }

    fn a_refused_call_is_no_end_while_the_session_lives(db: &TestDatabase) {
        signed_in(&db.client);
        let heard = Heard::of(&db.client);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        let wrong = db.client.auth().update_user("a wrong password", Default::default());
        assert_eq!(wrong.expect_err("a wrong password").kind(), ErrorKind::Unauthorized);
        assert!(db.client.auth().list_users(1, None).is_err(), "for the service");
        heard.assert_silent();
        assert!(db.client.auth().get_session().expect("asked").is_some());
    }

    fn a_refused_call_removes_the_session_file(db: &TestDatabase) {
        let folder = temp_dir();
        let config = || db.config().data_dir(folder.path()).persist_session(true);
        let client = Client::open(config()).expect("opens");
        let session = signed_in(&client);
        let file = folder.path().join("session.json");
        assert!(file.exists());
        end_sessions(db, &session);
        assert!(client.spaces().get_public_spaces(1, 0).is_err());
        assert!(!file.exists());
        client.close();
    }

    fn another_client_with_the_session_file_is_told_by_its_own_call(db: &TestDatabase) {
        let folder = temp_dir();
        let open = || Client::open(db.config().data_dir(folder.path()).persist_session(true)).expect("opens");
        let first = open();
        signed_in(&first);
        let second = open();
        let heard = Heard::of(&second);
        assert_eq!(heard.next(), (AuthEvent::InitialSession, true));
        // New tokens of the other client are no end.
        first.auth().refresh_session().expect("refreshed");
        assert!(second.spaces().get_public_spaces(1, 0).is_ok());
        assert_eq!(heard.next(), (AuthEvent::TokenRefreshed, true));
        first.auth().sign_out().expect("signed out");
        heard.assert_silent();
        assert!(second.spaces().get_public_spaces(1, 0).is_err());
        heard.assert_ended();
        first.close();
        second.close();
    }
}
