//! Users are found by their addresses in an index (DESIGN 4), although row-level security binds the service, and only by the address
//! in lower case.

use townsquare::{Uuid, blocking::Client};
use townsquare_tests::{
    on_engine,
    postgres::{APP_ROLE, server},
    raw_sql::RawConnection,
    test_database::TestDatabase,
};

use super::roles::config;
use crate::auth::users::PASSWORD;

/// The plan of a lookup by address, of the service.
fn plan(db: &TestDatabase) -> String {
    let raw = RawConnection::postgres(&db.url()).expect("the server runs");
    raw.run("SET plan_cache_mode = force_generic_plan");
    raw.run("PREPARE find (text) AS SELECT id FROM public.users WHERE townsquare.has_address(users.email, $1)");
    let lines = raw.rows("EXPLAIN EXECUTE find ('ann@town.example')");
    lines.into_iter().map(|row| row[0].clone().expect("a line")).collect::<Vec<_>>().join("\n")
}

fn found(client: &Client, email: &str) -> Option<Uuid> {
    client.as_service().auth().find_user(email).expect("asked").map(|user| user.id)
}

on_engine! { Postgres in postgres;
    fn the_service_finds_an_address_in_an_index(db: &TestDatabase) {
        db.raw.run("INSERT INTO users (email) SELECT n || '@rows.example' FROM generate_series(1, 5000) AS n; ANALYZE users");
        let plan = plan(db);
        assert!(plan.contains("townsquare_users_address") && !plan.contains("Seq Scan"), "{plan}");
    }

    /// Other programs write rows also where no trigger runs.
    fn an_address_is_found_wherever_it_comes_from(db: &TestDatabase) {
        let (server, database) = db.database();
        let administrator = server.administrator(database);
        let id = Uuid::new_v4();
        administrator.run(&format!(
            "SET session_replication_role = replica; INSERT INTO users (id, email) VALUES ('{id}', 'Ann@Town.example')"
        ));
        assert_eq!(found(&db.client, "ann@town.example"), Some(id));
        administrator.run("UPDATE users SET email = 'Bob@Town.example'");
        assert_eq!((found(&db.client, "ann@town.example"), found(&db.client, "bob@town.example")), (None, Some(id)));
        administrator.run("DELETE FROM users");
        assert_eq!(found(&db.client, "bob@town.example"), None);
        db.client.auth().sign_up("bob@town.example", PASSWORD).expect("the address is free");
    }

    fn a_user_without_an_address_is_nobody(db: &TestDatabase) {
        db.raw.run("ALTER TABLE users ALTER COLUMN email DROP NOT NULL; INSERT INTO users (email) VALUES (NULL)");
        db.client.auth().sign_up("ann@town.example", PASSWORD).expect("an account");
        assert!(found(&db.client, "ann@town.example").is_some());
    }

    /// The collation of the index takes these for equal.
    fn an_address_that_only_looks_alike_is_another_one(db: &TestDatabase) {
        for stored in ["\u{ff41}nn@town.example", "a\u{200b}nn@town.example", "\u{1d41a}nn@town.example"] {
            db.user_of(Uuid::new_v4(), stored);
            let is_equal = db.raw.value(&format!("SELECT 'ann@town.example' = '{stored}' COLLATE townsquare.address"));
            assert_eq!((is_equal.as_str(), found(&db.client, "ann@town.example")), ("t", None), "{stored}");
        }
        for stored in ["\u{e1}nn@town.example", "ann@town-example", "ann@townexample"] {
            db.user_of(Uuid::new_v4(), stored);
            assert_eq!(found(&db.client, "ann@town.example"), None, "{stored}");
        }
        db.client.auth().sign_up("ann@town.example", PASSWORD).expect("the address is free");
    }

    /// The database has the locale C, in which lower() knows the letters of ASCII only.
    fn an_address_of_another_alphabet_is_found_in_any_spelling(db: &TestDatabase) {
        for stored in ["ÉVA@Town.example", "ΟΔΥΣΣΕΥΣ@Town.example", "İREM@Town.example", "Жанна@Город.example"] {
            let id = Uuid::new_v4();
            db.user_of(id, stored);
            for spelling in [stored.to_owned(), stored.to_lowercase()] {
                assert_eq!(found(&db.client, &spelling), Some(id), "{spelling}");
            }
            assert!(db.client.auth().sign_up(&stored.to_lowercase(), PASSWORD).is_err(), "{stored}");
        }
    }

    /// Each letter, as the server and as the library change it. The index finds a row only if the two are equal in its collation.
    fn every_letter_is_found_by_its_lower_case(db: &TestDatabase) {
        let letters = db.raw.rows(
            r#"SELECT letter, lower(letter COLLATE townsquare.address),
                letter = lower(letter COLLATE townsquare.address) COLLATE townsquare.address
             FROM (SELECT chr(code) AS letter FROM generate_series(1, 1114111) AS code WHERE code NOT BETWEEN 55296 AND 57343) AS all_
             WHERE lower(letter COLLATE townsquare.address) COLLATE "C" <> letter COLLATE "C""#,
        );
        assert!(letters.len() > 1_300, "{}", letters.len());
        for row in letters {
            let [letter, lower, is_equal] = &row[..] else { panic!("{row:?}") };
            let (letter, lower) = (letter.as_deref().expect("a letter"), lower.as_deref().expect("a letter"));
            assert_eq!(is_equal.as_deref(), Some("t"), "{letter}");
            // ICU may know letters of a later Unicode than Rust does.
            let lower_here = letter.to_lowercase();
            assert!(lower == lower_here || letter == lower_here, "{letter}");
        }
    }
}

/// ICU does not know the encoding of the database, as on a server without ICU.
#[test]
fn without_icu_every_spelling_is_found_by_reading_all_users() {
    let Some(server) = server() else { return };
    let database = format!("test_{}_ascii", std::process::id());
    let administrator = server.administrator("postgres");
    administrator.run(&format!("CREATE DATABASE {database} OWNER {APP_ROLE} ENCODING 'SQL_ASCII' TEMPLATE template0"));
    let url = server.url(APP_ROLE, &database);
    let client = Client::open(config(&url)).expect("it opens");
    let raw = RawConnection::postgres(&url).expect("the server runs");
    raw.run("INSERT INTO users (email) VALUES ('Mixed@Town.example')");
    assert!(found(&client, "mixed@town.example").is_some());
    assert!(client.auth().sign_up("mixed@town.example", PASSWORD).is_err());
    client.auth().sign_up("ann@town.example", PASSWORD).expect("another address");
    client.auth().sign_in("ANN@town.example", PASSWORD).expect("signed in");
    client.close();
    Client::open(config(&url).migrate(false)).expect("nothing differs").close();
    server.drop_database(&database);
}
