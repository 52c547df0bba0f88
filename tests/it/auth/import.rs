//! Passwords that another system hashed (DESIGN 3a): who may import them, what is refused, and the first sign-in.

use std::thread;

use argon2::{Argon2, Params, PasswordHasher as _};
use townsquare::{
    Config, Error, ErrorKind, Uuid,
    auth::{ImportReport, NewCredential, UserPatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase, assert_fails},
};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";
const BOB: &str = "bob@town.example";

/// A bcrypt hash of little cost.
fn bcrypt_hash(password: &str) -> String {
    bcrypt::hash_with_salt(password, 4, [7; 16]).expect("a hash").format_for_version(bcrypt::Version::TwoA)
}

/// An Argon2id hash with these parameters.
fn argon2_hash(password: &str, memory: u32, passes: u32, lanes: u32) -> String {
    let argon2 = Argon2::from(Params::new(memory, passes, lanes, None).expect("parameters"));
    argon2.hash_password_with_salt(password.as_bytes(), b"sixteen bytes of").expect("a hash").to_string()
}

/// Inserts a user who has no password, as another program does.
fn user(db: &TestDatabase, email: &str) -> Uuid {
    let id = Uuid::new_v4();
    db.user_of(id, email);
    id
}

fn import(db: &TestDatabase, rows: Vec<NewCredential>) -> Result<(u64, u64), Error> {
    db.service.auth().import_credentials(rows).map(|ImportReport { imported, unchanged, .. }| (imported, unchanged))
}

fn table(db: &TestDatabase) -> &'static str {
    match db.engine {
        Engine::Sqlite => "townsquare_credentials",
        Engine::Postgres => "townsquare.credentials",
    }
}

fn stored_hash(db: &TestDatabase, id: Uuid) -> String {
    db.raw.value(&format!("SELECT password_hash FROM {} WHERE user_id = '{id}'", table(db)))
}

fn can_sign_in(db: &TestDatabase, email: &str, password: &str) -> bool {
    match db.service.auth().sign_in(email, password) {
        Ok(session) => session.user.email.eq_ignore_ascii_case(email),
        Err(error) => {
            assert_eq!(error.to_string(), "Sign in failed: Invalid login credentials");
            false
        }
    }
}

/// Gives a user an imported hash of this password.
fn set_imported_hash(db: &TestDatabase, id: Uuid, password: &str) {
    let (table, hash) = (table(db), bcrypt_hash(password));
    db.raw.run(&format!("UPDATE {table} SET password_hash = '{hash}' WHERE user_id = '{id}'"));
}

/// Replaces imported hashes by `hash` when a transaction confirms them, as another program does that commits just before.
fn replace_when_confirmed(db: &TestDatabase, hash: &str) {
    let table = table(db);
    let replace = format!("UPDATE {table} SET password_hash = '{hash}' WHERE user_id = OLD.user_id");
    db.raw.run(&match db.engine {
        Engine::Sqlite => format!(
            "CREATE TRIGGER replace_hash BEFORE UPDATE ON {table} WHEN OLD.password_hash LIKE '$2%'
             BEGIN {replace}; SELECT RAISE(IGNORE); END"
        ),
        Engine::Postgres => format!(
            "CREATE FUNCTION replace_hash() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                 IF pg_trigger_depth() > 1 THEN RETURN NEW; END IF;
                 {replace}; RETURN NULL; END $$;
             CREATE TRIGGER replace_hash BEFORE UPDATE ON {table} FOR EACH ROW
                 WHEN (OLD.password_hash LIKE '$2%') EXECUTE FUNCTION replace_hash()"
        ),
    });
}

on_both_engines! {
    fn an_imported_bcrypt_hash_becomes_argon2id_at_the_first_sign_in(db: &TestDatabase) {
        let (ann, bob) = (user(db, ANN), user(db, BOB));
        // Shorter than a new password may be.
        let rows = || vec![NewCredential::of_address(" ANN@Town.example", bcrypt_hash("pw")),
            NewCredential::of_user(bob, bcrypt_hash(PASSWORD))];
        assert_eq!(import(db, rows()).expect("imported"), (2, 0));
        assert_eq!(stored_hash(db, ann), bcrypt_hash("pw"));
        assert!(!can_sign_in(db, ANN, "PW") && !can_sign_in(db, ANN, "") && !can_sign_in(db, "carl@town.example", "pw"));
        assert_eq!(stored_hash(db, ann), bcrypt_hash("pw"), "a wrong password replaces nothing");
        assert!(can_sign_in(db, ANN, "pw"));
        let renewed = stored_hash(db, ann);
        assert!(renewed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{renewed}");
        assert!(can_sign_in(db, ANN, "pw") && !can_sign_in(db, ANN, "PW"));
        assert_eq!(stored_hash(db, ann), renewed);
        assert_eq!(stored_hash(db, bob), bcrypt_hash(PASSWORD), "nobody else's hash");

        assert_eq!(import(db, rows()).expect("imported"), (0, 2));
        assert_eq!((stored_hash(db, ann), stored_hash(db, bob)), (renewed, bcrypt_hash(PASSWORD)));
        assert!(can_sign_in(db, BOB, PASSWORD));
    }

    fn argon2_hashes_are_imported_and_weaker_ones_replaced(db: &TestDatabase) {
        let (weak, strong) = (argon2_hash("pw", 64, 1, 1), argon2_hash("pw", 24_576, 3, 2));
        let (ann, bob) = (user(db, ANN), user(db, BOB));
        let rows = vec![NewCredential::of_user(ann, &weak), NewCredential::of_user(bob, &strong)];
        assert_eq!(import(db, rows).expect("imported"), (2, 0));
        assert!(!can_sign_in(db, ANN, "PW") && can_sign_in(db, ANN, "pw"));
        assert!(!can_sign_in(db, BOB, "PW") && can_sign_in(db, BOB, "pw"));
        assert!(stored_hash(db, ann).starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_eq!(stored_hash(db, bob), strong);
    }

    /// bcrypt looks at 72 bytes. After the first sign-in the whole password counts.
    fn a_password_longer_than_a_new_one_signs_in(db: &TestDatabase) {
        let long = "correct horse battery ".repeat(100);
        let (ann, bob) = (user(db, ANN), user(db, BOB));
        let rows = vec![NewCredential::of_user(ann, bcrypt_hash(&long)),
            NewCredential::of_user(bob, argon2_hash(&long, 64, 1, 1))];
        assert_eq!(import(db, rows).expect("imported"), (2, 0));
        assert!(!can_sign_in(db, BOB, &long[..72]) && can_sign_in(db, BOB, &long));
        assert!(!can_sign_in(db, ANN, &long[..71]) && can_sign_in(db, ANN, &long));
        assert!(!can_sign_in(db, ANN, &long[..72]) && can_sign_in(db, ANN, &long));
        let huge = "x".repeat(70_000);
        assert!(!can_sign_in(db, ANN, &huge), "text beyond all passwords is refused");
    }

    fn a_password_that_is_there_is_kept(db: &TestDatabase) {
        let (ann, _) = sign_up(db, ANN);
        let before = stored_hash(db, ann.user.id);
        let bob = user(db, BOB);
        let rows = vec![NewCredential::of_address(ANN, bcrypt_hash("pw")), NewCredential::of_user(bob, bcrypt_hash("pw"))];
        assert_eq!(import(db, rows).expect("imported"), (1, 1));
        assert_eq!(stored_hash(db, ann.user.id), before);
        assert!(can_sign_in(db, ANN, PASSWORD) && !can_sign_in(db, ANN, "pw"));
        assert_eq!(import(db, Vec::new()).expect("nothing to do"), (0, 0));
    }

    fn an_import_is_all_or_none(db: &TestDatabase) {
        let ann = user(db, ANN);
        user(db, BOB);
        let (good, hash) = (|| NewCredential::of_user(ann, bcrypt_hash("pw")), bcrypt_hash("pw"));
        let neither = NewCredential::of_user(ann, "");
        let mut both = good();
        both.email = Some(ANN.to_owned());
        let mut nobody = good();
        nobody.user_id = None;
        let malformed = "password_hash is neither a bcrypt hash ($2a$, $2b$, $2y$) nor an Argon2 hash in PHC format";
        let costly = "password_hash is an Argon2 hash that costs too much: the limits are m=262144, m*t=1048576 and p=64";
        let hungry = argon2_hash("pw", 64, 1, 1).replace("m=64", "m=4194304");
        let refused = [
            (NewCredential::of_address(BOB, "pw"), malformed),
            (NewCredential::of_address(BOB, hash.replace("$04$", "$31$")),
                "password_hash is a bcrypt hash of a cost other than 4 to 14"),
            (NewCredential::of_address(BOB, hash.replace("$2a$", "$2x$")),
                "password_hash is a bcrypt hash of the faulty variant $2x$, which is not supported"),
            (NewCredential::of_address(BOB, hungry), costly),
            (NewCredential::of_address("bob", &hash), "email is not an e-mail address"),
            (neither, "password_hash is required"),
            (both, "user_id and email are given; one of them names the user"),
            (nobody, "user_id or email is required"),
        ];
        for (row, why) in refused {
            let error = assert_fails(import(db, vec![good(), row]), ErrorKind::InvalidInput, None,
                &format!("Import credentials failed: rows[1].{why}"));
            assert_eq!(error.row(), Some(1), "{why}");
        }
        for unknown in [NewCredential::of_user(Uuid::nil(), &hash), NewCredential::of_address("carl@town.example", &hash)] {
            let error = assert_fails(import(db, vec![good(), unknown]), ErrorKind::ReferenceMissing, Some("23503"),
                "Import credentials failed: Referenced record not found");
            assert_eq!(error.row(), Some(1));
        }
        let twice = vec![good(), NewCredential::of_address(BOB, &hash), NewCredential::of_address("Ann@town.example", &hash)];
        let error = assert_fails(import(db, twice), ErrorKind::InvalidInput, None,
            "Import credentials failed: rows[0] and rows[2] name the same user");
        assert_eq!(error.row(), Some(2));
        assert_eq!(db.raw.count(table(db)), 0, "none of the rows was imported");
        assert!(!can_sign_in(db, ANN, "pw"));
    }

    fn callers_other_than_the_service_import_nothing(db: &TestDatabase) {
        let (_, of_bob) = sign_up(db, BOB);
        let ann = user(db, ANN);
        let row = || vec![NewCredential::of_user(ann, bcrypt_hash("pw"))];
        let sentence = "Import credentials failed: Database error: permission denied for table users";
        assert_fails(db.client.auth().import_credentials(row()), ErrorKind::Unauthorized, Some("42501"), sentence);
        assert_fails(of_bob.auth().import_credentials(row()), ErrorKind::Forbidden, Some("42501"), sentence);
        of_bob.auth().sign_out().expect("signed out");
        assert_fails(of_bob.auth().import_credentials(row()), ErrorKind::Forbidden, Some("42501"), sentence);
        assert!(!can_sign_in(db, ANN, "pw"));
    }

    fn sign_ins_at_once_all_succeed(db: &TestDatabase) {
        for round in 0..3 {
            let email = format!("{round}@town.example");
            let id = user(db, &email);
            assert_eq!(import(db, vec![NewCredential::of_user(id, bcrypt_hash(PASSWORD))]).expect("imported"), (1, 0));
            thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| assert!(can_sign_in(db, &email, PASSWORD)));
                }
            });
            assert!(stored_hash(db, id).starts_with("$argon2id$"));
            assert!(can_sign_in(db, &email, PASSWORD));
        }
    }

    fn a_hash_that_a_sign_in_replaces_meanwhile_is_checked_again(db: &TestDatabase) {
        let (ann, client) = sign_up(db, ANN);
        let auth = client.auth();
        replace_when_confirmed(db, &argon2_hash(PASSWORD, 19_456, 2, 1));
        set_imported_hash(db, ann.user.id, PASSWORD);
        let changed = auth.update_user(PASSWORD, UserPatch::new().email(BOB)).expect("changed");
        assert_eq!(changed.email, BOB);
        assert!(stored_hash(db, ann.user.id).starts_with("$argon2id$"), "the trigger replaced it");
        set_imported_hash(db, ann.user.id, PASSWORD);
        auth.update_user(PASSWORD, UserPatch::new().password("another horse")).expect("changed");
        assert!(!can_sign_in(db, BOB, PASSWORD) && can_sign_in(db, BOB, "another horse"));
        assert!(auth.get_session().expect("asked").is_some(), "with the new tokens");
        set_imported_hash(db, ann.user.id, PASSWORD);
        auth.delete_own_user(PASSWORD).expect("deleted");
        assert_eq!(db.raw.count("users"), 0);
    }

    fn a_password_that_is_changed_meanwhile_fails_a_change_and_a_deletion(db: &TestDatabase) {
        let (ann, client) = sign_up(db, ANN);
        let auth = client.auth();
        let other = argon2_hash("another horse", 19_456, 2, 1);
        replace_when_confirmed(db, &other);
        for patch in [UserPatch::new().email(BOB), UserPatch::new().password("a third horse")] {
            set_imported_hash(db, ann.user.id, PASSWORD);
            assert_fails(auth.update_user(PASSWORD, patch), ErrorKind::Unauthorized, None,
                "Update user failed: Invalid login credentials");
            assert_eq!(stored_hash(db, ann.user.id), other);
        }
        set_imported_hash(db, ann.user.id, PASSWORD);
        assert_fails(auth.delete_own_user(PASSWORD), ErrorKind::Unauthorized, None,
            "Delete user failed: Invalid login credentials");
        assert!(!can_sign_in(db, ANN, PASSWORD) && can_sign_in(db, ANN, "another horse"), "nothing else has changed");
    }

    /// The callers of one handle wait for its session while they may hash, and none of them for another who waits.
    fn sign_ins_at_once_fail_no_change_and_no_deletion(db: &TestDatabase) {
        for round in 0..3 {
            let email = format!("{round}@town.example");
            let (session, client) = sign_up(db, &email);
            let id = session.user.id;
            for _ in 0..2 {
                set_imported_hash(db, id, PASSWORD);
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| assert!(can_sign_in(db, &email, PASSWORD)));
                        scope.spawn(|| {
                            client.auth().update_user(PASSWORD, UserPatch::new().email(&email)).expect("changed")
                        });
                    }
                });
            }
            set_imported_hash(db, id, PASSWORD);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| can_sign_in(db, &email, PASSWORD));
                }
                scope.spawn(|| client.auth().delete_own_user(PASSWORD).expect("deleted"));
            });
            assert_eq!(db.raw.count(&format!("users WHERE id = '{id}'")), 0);
        }
    }

    /// A sign-in that checked the old password before it was changed must not store a hash of it after the change.
    fn a_sign_in_does_not_restore_a_changed_password(db: &TestDatabase) {
        for round in 0..6 {
            let email = format!("{round}@town.example");
            let id = user(db, &email);
            import(db, vec![NewCredential::of_user(id, bcrypt_hash(PASSWORD))]).expect("imported");
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| can_sign_in(db, &email, PASSWORD));
                }
                scope.spawn(|| db.service.auth().set_password(id, "another horse").expect("set"));
            });
            assert!(!can_sign_in(db, &email, PASSWORD) && can_sign_in(db, &email, "another horse"), "{round}");
        }
    }

    fn imports_at_once_import_each_password_once(db: &TestDatabase) {
        let users: Vec<Uuid> = (0..20).map(|number| user(db, &format!("{number}@town.example"))).collect();
        let (forwards, backwards) = (users.clone(), users.iter().rev().copied().collect::<Vec<_>>());
        let imported: u64 = thread::scope(|scope| {
            let calls: Vec<_> = [forwards, backwards].into_iter().map(|users| scope.spawn(move || {
                let rows = users.into_iter().map(|id| NewCredential::of_user(id, bcrypt_hash("pw"))).collect();
                import(db, rows).expect("imported").0
            })).collect();
            calls.into_iter().map(|call| call.join().expect("no panic")).sum()
        });
        assert_eq!((imported, db.raw.count(table(db))), (20, 20));
    }
}

#[test]
fn an_import_of_too_many_rows_is_refused() {
    let db = TestDatabase::with(Engine::Sqlite, |config: Config| config.max_bulk_rows(2)).expect("built in");
    let rows = |count: u32| {
        let row =
            |number| NewCredential::of_user(user(&db, &format!("{count}.{number}@town.example")), bcrypt_hash("pw"));
        (0..count).map(row).collect::<Vec<_>>()
    };
    assert_eq!(import(&db, rows(2)).expect("imported"), (2, 0));
    assert_kind(ErrorKind::TooLarge, import(&db, rows(3)));
    assert_eq!(db.raw.count(table(&db)), 2);
}
