//! Refreshes whose reply is lost (DESIGN 8): a repeat gives the same tokens, and only a copied token ends the session.

use std::time::Duration;

use townsquare::{
    Config, ErrorKind,
    auth::{Session, identity_claim},
    blocking::{Auth, Client},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines, on_engine,
    proxy::{Cut, Proxy},
    temp_dir,
    test_database::{Engine, TestDatabase, assert_fails},
};

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";
const ENDED: &str = "Refresh session failed: Session has ended";
const HOUR: Duration = Duration::from_secs(3_600);

fn sign_in(client: &Client) -> Session {
    client.auth().sign_up(EMAIL, PASSWORD).expect("signed up");
    client.auth().sign_in(EMAIL, PASSWORD).expect("signed in")
}

fn refresh(auth: &Auth<'_>, refresh_token: &str) -> townsquare::Result<Session> {
    auth.refresh_session_of(refresh_token)
}

on_both_engines! {
    fn a_session_keeps_a_thousand_spent_tokens(db: &TestDatabase) {
        let mut session = sign_in(&db.client);
        for _ in 0..1_010 {
            session = refresh(&db.client.auth(), &session.refresh_token).expect("refreshed");
        }
        let table = if db.engine == Engine::Sqlite { "townsquare_spent_tokens" } else { "townsquare.spent_tokens" };
        assert_eq!(db.raw.value(&format!("SELECT count(*) FROM {table}")), "1000");
    }

    fn a_refresh_repeated_within_ten_seconds_gives_the_same_tokens(db: &TestDatabase) {
        let old = sign_in(&db.client);
        let (service, app) = (db.service.auth(), db.another());
        let new = refresh(&service, &old.refresh_token).expect("refreshed");
        for seconds in [0, 4, 6] {
            db.clock.advance(Duration::from_secs(seconds));
            assert_eq!(refresh(&service, &old.refresh_token).expect("repeated"), new);
            assert_eq!(app.auth().set_session(&old.refresh_token).expect("repeated"), new);
        }
        assert_eq!(db.client.auth().refresh_session().expect("the handle has the old token"), new);
        assert!(db.client.as_user(&new.access_token).is_ok());
        assert_ne!(refresh(&service, &new.refresh_token).expect("the next"), new);
        app.close();
    }

    fn a_refresh_repeated_after_ten_seconds_ends_the_session(db: &TestDatabase) {
        let old = sign_in(&db.client);
        let service = db.service.auth();
        let new = refresh(&service, &old.refresh_token).expect("refreshed");
        db.clock.advance(Duration::from_secs(11));
        assert_fails(refresh(&service, &old.refresh_token), ErrorKind::Unauthorized, None, ENDED);
        assert!(db.client.as_user(&new.access_token).is_err());
    }

    fn a_refresh_repeated_after_its_tokens_were_used_ends_the_session(db: &TestDatabase) {
        let old = sign_in(&db.client);
        let service = db.service.auth();
        let second = refresh(&service, &old.refresh_token).expect("refreshed");
        let third = refresh(&service, &second.refresh_token).expect("refreshed");
        assert_fails(refresh(&service, &old.refresh_token), ErrorKind::Unauthorized, None, ENDED);
        assert!(db.client.as_user(&third.access_token).is_err());
    }
}

// On PostgreSQL the time is the server's.
on_engine! {
    Sqlite in clock;

    fn a_refresh_cannot_be_repeated_after_the_clock_was_set_back(db: &TestDatabase) {
        let old = sign_in(&db.client);
        let service = db.service.auth();
        refresh(&service, &old.refresh_token).expect("refreshed");
        db.clock.step(jiff::SignedDuration::from_secs(-11));
        assert_fails(refresh(&service, &old.refresh_token), ErrorKind::Unauthorized, None, ENDED);
    }
}

/// A client whose connections to PostgreSQL go through a proxy.
fn behind_proxy(db: &TestDatabase, options: impl FnOnce(Config) -> Config) -> (Proxy, Client) {
    let (server, _) = db.database();
    let proxy = Proxy::to(server.port());
    let url = db.url().replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    let client = Client::open(options(db.config().database_url(url))).expect("opens");
    (proxy, client)
}

/// Loses the reply to the next refresh, and to its automatic repeat.
fn lose_replies(proxy: &Proxy) {
    proxy.cut_each("COMMIT", Cut::AfterAnswer, 2);
}

on_engine! {
    Postgres in proxied;

    fn a_refresh_whose_reply_is_lost_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db, |config| config);
        let old = sign_in(&client);
        proxy.cut("COMMIT", Cut::AfterAnswer);
        let new = client.auth().refresh_session().expect("repeated");
        assert_ne!(new.access_token, old.access_token);
        assert_eq!(db.raw.count("townsquare.spent_tokens"), 1);
        client.close();
    }

    fn a_session_goes_on_after_a_refresh_whose_replies_are_lost(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db, |config| config);
        let auth = client.auth();
        let old = sign_in(&client);
        let calls: [(&str, &dyn Fn() -> bool); 3] = [
            ("refresh_session", &|| auth.refresh_session().is_ok()),
            ("get_session", &|| auth.get_session().is_ok_and(|session| session.is_some())),
            ("create_space", &|| client.spaces().create_space(NewSpace::named("mine")).is_ok()),
        ];
        // Ten seconds are for a program that has only the token; the handle remembers its refresh for longer.
        for later in [Duration::ZERO, HOUR / 4, 2 * HOUR] {
            for (name, call) in calls {
                lose_replies(&proxy);
                let lost = auth.refresh_session().expect_err("the reply is lost");
                assert_eq!((lost.kind(), lost.is_retryable()), (ErrorKind::Unavailable, true), "{lost:?}");
                db.clock.advance(later);
                assert!(call(), "{name} {later:?} later");
                let session = auth.get_session().expect("asked").expect("the session goes on");
                assert_eq!(session.user.id, old.user.id);
                assert!(client.spaces().get_user_spaces(old.user.id).is_ok());
            }
        }
        client.close();
    }

    fn an_implicit_refresh_whose_reply_is_lost_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db, |config| config);
        sign_in(&client);
        db.clock.advance(HOUR);
        lose_replies(&proxy);
        assert!(client.auth().get_session().is_err());
        db.clock.advance(Duration::from_secs(60));
        assert!(client.auth().get_session().expect("asked").is_some());
        client.close();
    }

    fn a_link_of_an_identity_whose_reply_is_lost_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db, |config| config);
        let (auth, user) = (client.auth(), sign_in(&client).user);
        let audience = auth.identity_audience().expect("an audience");
        let claim = identity_claim(user.id, &"ab".repeat(32), &audience, db.now()).expect("a claim");
        proxy.cut("COMMIT", Cut::AfterAnswer);
        auth.link_identity(&claim).expect("repeated");
        lose_replies(&proxy);
        let lost = auth.link_identity(&claim).expect_err("the reply is lost");
        assert!(lost.is_retryable(), "{lost:?}");
        auth.link_identity(&claim).expect("the same link once more");
        assert_eq!(auth.identities().expect("read").len(), 1);
        client.close();
    }

    fn a_reply_lost_by_one_client_of_a_session_file_ends_no_session(db: &TestDatabase) {
        let folder = temp_dir();
        let persist = |config: Config| config.data_dir(folder.path()).persist_session(true);
        let (proxy, first) = behind_proxy(db, persist);
        sign_in(&first);
        let second = Client::open(persist(db.config())).expect("opens");
        for later in [Duration::ZERO, HOUR / 4] {
            lose_replies(&proxy);
            assert!(first.auth().refresh_session().is_err());
            db.clock.advance(later);
            assert!(second.auth().get_session().expect("asked").is_some());
            second.auth().refresh_session().expect("refreshed");
            assert!(first.auth().get_session().expect("asked").is_some());
            first.auth().refresh_session().expect("refreshed");
        }
        first.close();
        second.close();
    }
}
