//! Writes on PostgreSQL whose answer is lost (DESIGN 3): the error says so, and does not invite a second row.

use std::thread;

use townsquare::{
    Config, Error, ErrorKind, Uuid,
    auth::NewCredential,
    blocking::Client,
    config::DatabasePooler,
    spaces::{NewFidget, NewSpace, Space},
};
use townsquare_tests::{
    on_engine,
    proxy::{Cut, Proxy},
    raw_sql::RawConnection,
    test_database::{TestDatabase, assert_fails},
    wait::wait_until,
};

const SENTENCE: &str = "Database error: outcome unknown: the connection was lost before the server answered, so the write may have happened";

/// A client behind a proxy, with an idle connection and prepared statements.
fn behind_proxy(db: &TestDatabase) -> (Proxy, Client) {
    behind_proxy_with(db, |config| config)
}

fn behind_proxy_with(db: &TestDatabase, options: impl FnOnce(Config) -> Config) -> (Proxy, Client) {
    let (server, _) = db.database();
    let proxy = Proxy::to(server.port());
    let url = db.url().replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    let client = Client::open(options(db.config().database_url(url))).expect("opens");
    let service = client.as_service();
    service.spaces().create_space(NewSpace::named("first")).expect("a connection");
    (proxy, client)
}

fn count(db: &TestDatabase, name: &str) -> usize {
    db.raw.value(&format!("SELECT count(*) FROM spaces WHERE name = '{name}'")).parse().expect("a number")
}

#[track_caller]
fn assert_unknown<T>(result: Result<T, Error>, operation: &str) {
    let sentence = format!("{operation} failed: {SENTENCE}");
    let error = assert_fails(result, ErrorKind::Unavailable, Some("08007"), &sentence);
    assert!(!error.is_retryable(), "{error:?}");
}

#[track_caller]
fn assert_unknown_but_retryable<T>(result: Result<T, Error>) {
    let error = result.map(drop).expect_err("the connection was cut");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("08007")), "{error:?}");
    assert!(error.is_retryable(), "{error:?}");
}

#[track_caller]
fn assert_retryable<T>(result: Result<T, Error>) {
    let error = result.map(drop).expect_err("the connection was cut");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, None), "{error:?}");
    assert!(error.is_retryable());
}

on_engine! { Postgres in postgres;
    fn an_insert_whose_answer_is_lost_is_not_retryable(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        let service = client.as_service();
        for (name, cut) in
            [("answered", Cut::AfterAnswer), ("sent", Cut::AfterRequest), ("unsent", Cut::BeforeRequest)]
        {
            proxy.cut(name, cut);
            assert_unknown(service.spaces().create_space(NewSpace::named(name)), "Create space");
            service.spaces().create_space(NewSpace::named("next")).expect("the next write works");
        }
        assert_eq!((count(db, "answered"), count(db, "unsent")), (1, 0));
        wait_until("the server has inserted the row", || count(db, "sent") == 1);
        assert_eq!(count(db, "next"), 3);
        client.close();
    }

    fn an_update_and_a_delete_whose_answers_are_lost_are_not_retryable(db: &TestDatabase) {
        use townsquare::spaces::SpacePatch;
        let (proxy, client) = behind_proxy(db);
        let spaces = client.as_service();
        let spaces = spaces.spaces();
        let space: Space = spaces.create_space(NewSpace::named("x")).expect("created");
        proxy.cut("renamed", Cut::AfterAnswer);
        assert_unknown(spaces.update_space(space.id, SpacePatch::new().name("renamed")), "Update space");
        proxy.cut("DELETE FROM public.spaces", Cut::AfterAnswer);
        // The statement is prepared in a message of its own, which is the one that is lost here.
        assert_unknown(spaces.delete_space(space.id), "Delete space");
        assert_eq!(count(db, "renamed"), 1);
        client.close();
    }

    fn a_transaction_whose_commit_is_not_answered_is_not_retryable(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        let service = client.as_service();
        let two = |name: &str| vec![NewSpace::named(name), NewSpace::named(name)];
        for (name, cut, rows) in [("answered", Cut::AfterAnswer, 2), ("unsent", Cut::BeforeRequest, 0)] {
            proxy.cut("COMMIT", cut);
            assert_unknown(service.spaces().create_spaces(two(name)), "Create spaces");
            assert_eq!(count(db, name), rows, "{name}");
        }
        // Before the COMMIT, the loss of the connection rolls the transaction back.
        proxy.cut("early", Cut::AfterAnswer);
        assert_retryable(service.spaces().create_spaces(two("early")));
        assert_eq!(count(db, "early"), 0);
        client.close();
    }

    fn a_create_with_an_id_is_repeated_once_and_then_retryable(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        let service = client.as_service();
        let home: Space = service.spaces().create_space(NewSpace::named("home")).expect("created");
        for (name, cut, rows) in [("answered", Cut::AfterAnswer, 1), ("unsent", Cut::BeforeRequest, 0)] {
            let new = NewSpace::named(name).with_id(Uuid::new_v4());
            proxy.cut("COMMIT", cut);
            let once = NewSpace::named("once").with_id(Uuid::new_v4());
            service.spaces().create_space(once).expect("repeated by the library");
            proxy.cut_each("COMMIT", cut, 2);
            assert_unknown_but_retryable(service.spaces().create_space(new.clone()));
            assert_eq!(count(db, name), rows, "{name}");
            let space = service.spaces().create_space(new.clone()).expect("repeated");
            assert_eq!((Some(space.id), count(db, name)), (new.id, 1), "{name}");

            let new = NewFidget::of_type(name).with_id(Uuid::new_v4());
            proxy.cut_each("COMMIT", cut, 2);
            assert_unknown_but_retryable(service.fidgets().create_fidget(home.id, new.clone()));
            let fidget = service.fidgets().create_fidget(home.id, new.clone()).expect("repeated");
            assert_eq!(Some(fidget.id), new.id, "{name}");
        }
        assert_eq!((db.raw.count("fidgets"), count(db, "once")), (2, 2));
        client.close();
    }

    /// The server goes on with what it has.
    fn a_write_that_the_server_has_when_the_client_is_closed_is_in_doubt(db: &TestDatabase) {
        let client = Client::open(db.config().max_connections(1)).expect("opens");
        let service = client.as_service();
        let lock = RawConnection::postgres(&db.url()).expect("connects");
        // The only connection has prepared the statement from here on, so it waits for the lock when it runs.
        service.spaces().create_space(NewSpace::named("first")).expect("created");
        lock.run("BEGIN");
        lock.run("LOCK TABLE spaces IN EXCLUSIVE MODE");
        thread::scope(|scope| {
            let write = scope.spawn(|| service.spaces().create_space(NewSpace::named("waiting")));
            db.wait_for_a_waiting_connection();
            client.close();
            assert_unknown(write.join().expect("no panic"), "Create space");
        });
        lock.run("COMMIT");
        wait_until("the server has inserted the row", || count(db, "waiting") == 1);
        let error = service.spaces().create_space(NewSpace::named("later")).expect_err("closed");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Closed, None), "{error:?}");
    }

    /// As when the repeat meets a standby: it says that nothing was written, and the first attempt has written the row.
    fn a_repeat_that_fails_does_not_hide_that_the_first_attempt_may_have_happened(db: &TestDatabase) {
        db.raw.run(
            "CREATE FUNCTION public.refuse_repeats() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                IF EXISTS (SELECT 1 FROM spaces WHERE id = NEW.id) THEN
                    RAISE EXCEPTION 'cannot write' USING ERRCODE = '25006';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse_repeats BEFORE INSERT ON spaces FOR EACH ROW EXECUTE FUNCTION public.refuse_repeats()",
        );
        let (proxy, client) = behind_proxy(db);
        let service = client.as_service();
        let spaces = service.spaces();
        let new = NewSpace::named("kept").with_id(Uuid::new_v4());
        proxy.cut("COMMIT", Cut::AfterAnswer);
        assert_unknown_but_retryable(spaces.create_space(new.clone()));
        assert_eq!(count(db, "kept"), 1);
        // Where no attempt is in doubt, the answer stands.
        let error = spaces.create_space(new).expect_err("refused");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("25006")), "{error:?}");
        client.close();
    }

    /// The connection is lost in the middle of the transaction, which the server notices and rolls back.
    fn an_idempotent_write_is_repeated_after_a_loss_before_its_commit(db: &TestDatabase) {
        for pooler in [DatabasePooler::Session, DatabasePooler::Transaction] {
            let (proxy, client) = behind_proxy_with(db, |config| config.database_pooler(pooler));
            let name = format!("{pooler:?}");
            let service = client.as_service();
            for _ in 0..3 {
                proxy.cut(&name, Cut::BeforeRequest);
                let new = NewSpace::named(&name).with_id(Uuid::new_v4());
                service.spaces().create_spaces(vec![new]).expect("repeated");
            }
            assert_eq!(count(db, &name), 3);
            client.close();
        }
    }

    fn an_import_whose_commit_is_not_answered_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        let auth = client.as_service();
        let hash = bcrypt::hash_with_salt("pw", 4, [7; 16]).expect("a hash").to_string();
        for cut in [Cut::AfterAnswer, Cut::BeforeRequest] {
            let row = NewCredential::of_user(db.user(), &hash);
            proxy.cut("COMMIT", cut);
            let report = auth.auth().import_credentials(vec![row]).expect("repeated");
            assert_eq!(report.imported + report.unchanged, 1);
        }
        assert_eq!(db.raw.count("townsquare.credentials"), 2);
        client.close();
    }

    fn creates_whose_commit_is_not_answered_are_retryable_if_every_row_has_an_id(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        let service = client.as_service();
        let home: Space = service.spaces().create_space(NewSpace::named("home")).expect("created");
        let with_id = |name: &str| NewSpace::named(name).with_id(Uuid::new_v4());
        for (name, cut) in [("answered", Cut::AfterAnswer), ("unsent", Cut::BeforeRequest)] {
            let new = vec![with_id(name), with_id(name)];
            proxy.cut_each("COMMIT", cut, 2);
            assert_unknown_but_retryable(service.spaces().create_spaces(new.clone()));
            assert_eq!(service.spaces().create_spaces(new).expect("repeated").len(), 2);
            assert_eq!(count(db, name), 2, "{name}");

            let new = vec![NewFidget::of_type(name).with_id(Uuid::new_v4())];
            proxy.cut_each("COMMIT", cut, 2);
            assert_unknown_but_retryable(service.fidgets().create_fidgets(home.id, new.clone()));
            assert_eq!(service.fidgets().create_fidgets(home.id, new).expect("repeated").len(), 1);
        }
        assert_eq!(db.raw.count("fidgets"), 2);

        // One row without an id: repeating the call would insert that row twice.
        let some = vec![with_id("some"), NewSpace::named("some")];
        proxy.cut("COMMIT", Cut::AfterAnswer);
        assert_unknown(service.spaces().create_spaces(some), "Create spaces");
        let some = vec![NewFidget::of_type("x").with_id(Uuid::new_v4()), NewFidget::of_type("x")];
        proxy.cut("COMMIT", Cut::AfterAnswer);
        assert_unknown(service.fidgets().create_fidgets(home.id, some), "Create fidgets");
        client.close();
    }

    fn a_read_whose_answer_is_lost_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy(db);
        client.spaces().get_public_spaces(1, 0).expect("prepared");
        for cut in [Cut::AfterAnswer, Cut::AfterRequest, Cut::BeforeRequest] {
            // The first bytes of the text of the statement, or of its execution.
            proxy.cut("", cut);
            client.spaces().get_public_spaces(1, 0).expect("the read is repeated on a new connection");
        }
        client.close();
    }

    /// In transaction mode a read is three messages: BEGIN, the statement and COMMIT.
    fn a_read_in_transaction_mode_is_repeated(db: &TestDatabase) {
        let (proxy, client) = behind_proxy_with(db, |config| config.database_pooler(DatabasePooler::Transaction));
        for message in ["BEGIN", "FROM public.spaces", "COMMIT"] {
            for cut in [Cut::AfterAnswer, Cut::AfterRequest, Cut::BeforeRequest] {
                proxy.cut(message, cut);
                let read = client.spaces().get_public_spaces(1, 0);
                assert!(read.is_ok(), "{message} {cut:?}: {read:?}");
            }
        }
        client.close();
    }

    /// A second sign-out has the effect of the first.
    fn a_sign_out_whose_answer_is_lost_is_repeated_and_then_retryable(db: &TestDatabase) {
        db.client.auth().sign_up("ann@town.example", "correct horse").expect("an account");
        for times in [1, 2] {
            let (proxy, client) = behind_proxy(db);
            client.auth().sign_in("ann@town.example", "correct horse").expect("a session");
            // Each attempt prepares the statement on a connection that has not prepared it.
            proxy.cut_each("DELETE FROM townsquare.sessions WHERE access_hash", Cut::AfterAnswer, times);
            let signed_out = client.auth().sign_out();
            match times {
                1 => signed_out.expect("repeated by the library"),
                _ => {
                    assert_unknown_but_retryable(signed_out);
                    client.auth().sign_out().expect("repeated");
                }
            }
            assert_eq!(client.auth().get_session().expect("none"), None);
            client.close();
        }
        assert_eq!(db.raw.count("townsquare.sessions"), 0);
    }
}
