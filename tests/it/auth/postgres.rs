//! PostgreSQL enforces the policies itself (DESIGN 4): plain SQL on a connection with the restricted role of the
//! library's callers.

mod addresses;
mod adoption;
mod definers;
mod foreign_rules;
mod random_rows;
mod roles;
mod service;

use townsquare::{
    Uuid,
    auth::identity_claim,
    communities::CommunityPatch,
    spaces::{Change, NewSpace},
    storage::UploadOptions,
};
use townsquare_tests::{
    on_engine,
    postgres::{callers_role, insert_session},
    raw_sql::RawConnection,
    test_database::{TestDatabase, required},
};

use super::users::sign_up;

/// The tables of SPEC 2, quoted for SQL.
const TABLES: [&str; 6] =
    ["community_configs", "community_domains", "\"spaceRegistrations\"", "users", "spaces", "fidgets"];

/// Connects with the role of the callers and a session of this user, or `anonymous`.
fn connect_as(db: &TestDatabase, who: &str) -> RawConnection {
    let raw = RawConnection::postgres(&db.url()).expect("the server runs");
    let session = who.parse().map(|user| insert_session(&db.raw, user)).unwrap_or_default();
    let callers = callers_role(&raw);
    raw.run(&format!("SET ROLE {callers}; SELECT set_config('townsquare.session', '{session}', false)"));
    raw
}

#[track_caller]
fn assert_refused(raw: &RawConnection, sql: &str, words: &str) {
    match raw.try_rows(sql) {
        Ok(rows) => panic!("{sql} worked: {rows:?}"),
        Err(error) => assert!(error.contains(words), "{sql}: {error}"),
    }
}

#[track_caller]
fn assert_changes(raw: &RawConnection, sql: &str, rows: usize) {
    assert_eq!(raw.rows(&format!("{sql} RETURNING 1")).len(), rows, "{sql}");
}

/// Ann and Bob, each with a private space and a fidget in it.
struct TwoUsers {
    ann: Uuid,
    bob: Uuid,
    of_ann: (Uuid, Uuid),
    of_bob: (Uuid, Uuid),
}

fn two_users(db: &TestDatabase) -> TwoUsers {
    let make = |name: &str| {
        let (session, client) = sign_up(db, &format!("{name}@town.example"));
        let space = client.spaces().create_space(NewSpace::named(name)).expect("a space").id;
        (session.user.id, (space, db.fidget(space, "x").id))
    };
    let ((ann, of_ann), (bob, of_bob)) = (make("ann"), make("bob"));
    TwoUsers { ann, bob, of_ann, of_bob }
}

on_engine! { Postgres in postgres;
    fn row_security_is_enabled_and_forced_on_every_public_table(db: &TestDatabase) {
        let tables =
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')";
        assert_eq!(db.raw.value(tables), TABLES.len().to_string());
        assert_eq!(
            db.raw.value(&format!("{tables} AND relrowsecurity AND relforcerowsecurity")),
            TABLES.len().to_string()
        );
    }

    fn callers_cannot_read_internal_tables(db: &TestDatabase) {
        let two_users = two_users(db);
        // The tables of files have policies of their own: see `files_of_others_are_hidden_from_plain_sql`.
        let tables = db.raw.rows(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'townsquare'
             AND tablename NOT IN ('files', 'file_contents', 'file_intents')",
        );
        assert!(tables.len() >= 7, "{tables:?}");
        for who in [two_users.ann.to_string(), "anonymous".to_owned()] {
            let raw = connect_as(db, &who);
            for table in tables.iter().flatten().flatten() {
                for sql in ["SELECT count(*) FROM", "DELETE FROM", "TRUNCATE"] {
                    assert_refused(&raw, &format!("{sql} townsquare.{table}"), "permission denied");
                }
            }
            for table in TABLES {
                assert_refused(&raw, &format!("TRUNCATE {table}"), "permission denied");
                assert_refused(&raw, &format!("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"), "must be owner");
                assert_refused(&raw, &format!("DROP POLICY townsquare_select ON {table}"), "must be owner");
            }
        }
    }

    fn files_of_others_are_hidden_from_plain_sql(db: &TestDatabase) {
        let two_users = two_users(db);
        let path = format!("{}/homebase", two_users.ann);
        db.service.storage().upload("private", &path, "secret", UploadOptions::new()).expect("uploaded");
        for (who, visible) in [(two_users.ann.to_string(), 1), (two_users.bob.to_string(), 0), ("anonymous".into(), 0)] {
            let raw = connect_as(db, &who);
            for table in ["files", "file_contents"] {
                assert_eq!(raw.count(&format!("townsquare.{table}")), visible, "{who} {table}");
                assert_refused(&raw, &format!("TRUNCATE townsquare.{table}"), "permission denied");
            }
            assert_changes(&raw, "UPDATE townsquare.file_contents SET content = ''", visible);
            assert_changes(&raw, "DELETE FROM townsquare.file_contents", visible);
        }
    }

    fn a_row_cannot_be_inserted_for_another_owner(db: &TestDatabase) {
        let TwoUsers { ann, bob, of_ann, of_bob } = two_users(db);
        let raw = connect_as(db, &ann.to_string());
        let violates = "violates row-level security policy";
        assert_changes(&raw, &format!("INSERT INTO spaces (name, owner_id) VALUES ('mine', '{ann}')"), 1);
        for owner in [format!("'{bob}'"), "NULL".into(), "gen_random_uuid()".into()] {
            assert_refused(
                &raw,
                &format!("INSERT INTO spaces (name, owner_id, is_public) VALUES ('x', {owner}, true)"),
                violates,
            );
        }
        assert_changes(&raw, &format!("INSERT INTO fidgets (space_id, type) VALUES ('{}', 'x')", of_ann.0), 1);
        for space in [format!("'{}'", of_bob.0), "NULL".into(), "gen_random_uuid()".into()] {
            assert_refused(&raw, &format!("INSERT INTO fidgets (space_id, type) VALUES ({space}, 'x')"), violates);
        }
        let register = |space| {
            format!(
                r#"INSERT INTO "spaceRegistrations" ("spaceId", "spaceName", "spaceType") VALUES ('{space}', 'x', 'token')"#
            )
        };
        for column in ["fid", "signature", "\"identityPublicKey\""] {
            let register = register(of_ann.0).replace("(\"spaceId\"", &format!("({column}, \"spaceId\""));
            assert_refused(&raw, &register.replace("VALUES (", "VALUES ('7', "), violates);
        }
        assert_changes(&raw, &register(of_ann.0), 1);
        assert_refused(&raw, &register(of_bob.0), violates);
        assert_refused(
            &raw,
            &format!("INSERT INTO users (id, email) VALUES ('{ann}', 'x')"),
            "permission denied for table users",
        );
        assert_refused(
            &raw,
            "INSERT INTO community_domains (community_id, domain, domain_type) VALUES ('a', 'a', 'custom')",
            "permission denied",
        );
        let anonymous = connect_as(db, "anonymous");
        assert_refused(&anonymous, "INSERT INTO spaces (name) VALUES ('x')", violates);
        assert_refused(&anonymous, &format!("INSERT INTO spaces (name, owner_id) VALUES ('x', '{ann}')"), violates);
    }

    fn a_row_cannot_be_given_to_another_owner(db: &TestDatabase) {
        let TwoUsers { ann, bob, of_ann, of_bob } = two_users(db);
        let raw = connect_as(db, &ann.to_string());
        let violates = "violates row-level security policy";
        for owner in [format!("'{bob}'"), "NULL".into()] {
            assert_refused(&raw, &format!("UPDATE spaces SET owner_id = {owner} WHERE id = '{}'", of_ann.0), violates);
            assert_refused(&raw, &format!("UPDATE spaces SET owner_id = {owner}"), violates);
        }
        for space in [format!("'{}'", of_bob.0), "NULL".into()] {
            assert_refused(&raw, &format!("UPDATE fidgets SET space_id = {space} WHERE id = '{}'", of_ann.1), violates);
        }
        assert_refused(&raw, &format!("UPDATE users SET id = '{}'", Uuid::new_v4()), "permission denied");
        assert_changes(&raw, "UPDATE spaces SET name = 'still mine'", 1);
    }

    /// Only the library asks for the password.
    fn a_user_is_not_changed_without_the_password(db: &TestDatabase) {
        let TwoUsers { ann, .. } = two_users(db);
        for who in [ann.to_string(), "anonymous".to_owned()] {
            let raw = connect_as(db, &who);
            for sql in ["UPDATE users SET email = 'mallory@town.example'", "UPDATE users SET updated_at = now()", "DELETE FROM users"] {
                assert_refused(&raw, sql, "permission denied for table users");
            }
        }
        // Nor where no grant is in the way: on the library's login role.
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        let session = insert_session(&db.raw, ann);
        raw.run(&format!("SELECT set_config('townsquare.caller', 'user', false), set_config('townsquare.session', '{session}', false)"));
        assert_changes(&raw, "UPDATE users SET email = 'mallory@town.example'", 0);
        assert_changes(&raw, "DELETE FROM users", 0);
        assert_eq!(db.raw.value(&format!("SELECT email FROM users WHERE id = '{ann}'")), "ann@town.example");
    }

    fn rows_of_other_owners_cannot_be_changed(db: &TestDatabase) {
        let TwoUsers { ann, of_bob, .. } = two_users(db);
        let shown = db.public_space(db.user(), "shown");
        let fidget = db.fidget(shown.id, "x").id;
        for who in [ann.to_string(), "anonymous".to_owned()] {
            let raw = connect_as(db, &who);
            for (space, fidget) in [of_bob, (shown.id, fidget)] {
                assert_changes(&raw, &format!("UPDATE spaces SET name = 'mine' WHERE id = '{space}'"), 0);
                assert_changes(&raw, &format!("UPDATE fidgets SET type = 'mine' WHERE id = '{fidget}'"), 0);
                assert_changes(&raw, &format!("DELETE FROM fidgets WHERE id = '{fidget}'"), 0);
                assert_changes(&raw, &format!("DELETE FROM spaces WHERE id = '{space}'"), 0);
                assert_refused(
                    &raw,
                    &format!("DELETE FROM \"spaceRegistrations\" WHERE \"spaceId\" = '{space}'"),
                    "permission denied",
                );
            }
            // Neither a row lock nor a query plan reveals a hidden row.
            assert_refused(&raw, &format!("DELETE FROM users WHERE id <> '{ann}'"), "permission denied");
            assert_eq!(raw.rows(&format!("SELECT 1 FROM spaces WHERE id = '{}' FOR UPDATE", of_bob.0)).len(), 0);
            let leak = format!("SELECT 1 FROM spaces WHERE id = '{}' AND 1 / (length(name) - 3) = 1", of_bob.0);
            assert_eq!(raw.rows(&leak).len(), 0, "a condition of the caller's is asked of visible rows alone");
        }
    }

    fn an_admin_updates_only_the_navigation_column(db: &TestDatabase) {
        let TwoUsers { ann, bob, .. } = two_users(db);
        let claim = identity_claim(ann, &"01".repeat(32), "town", db.now()).expect("a key");
        let mut patch: CommunityPatch = required();
        let key = claim["publicKey"].as_str().expect("a text").to_owned();
        patch.admin_identity_public_keys = Change::Set(vec![key.clone()]);
        db.service.communities().save_community_config("town", patch).expect("saved");
        db.raw.run(&format!("INSERT INTO townsquare.identities VALUES ('{key}', '{ann}', now())"));
        let raw = connect_as(db, &ann.to_string());
        assert_changes(&raw, "UPDATE community_configs SET navigation_config = '1', updated_at = now()", 1);
        let columns = db.raw.rows(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'
         AND table_name = 'community_configs' AND column_name NOT IN ('navigation_config', 'updated_at')",
        );
        assert_eq!(columns.len(), 11);
        for column in columns.iter().flatten().flatten() {
            assert_refused(&raw, &format!("UPDATE community_configs SET {column} = {column}"), "permission denied");
            let both = format!("UPDATE community_configs SET navigation_config = '2', {column} = DEFAULT");
            assert_refused(&raw, &both, "permission denied");
        }
        assert_refused(&raw, "DELETE FROM community_configs", "permission denied");
        for who in [bob.to_string(), "anonymous".to_owned()] {
            assert_changes(&connect_as(db, &who), "UPDATE community_configs SET navigation_config = '3'", 0);
        }
        assert_eq!(db.raw.value("SELECT navigation_config FROM community_configs"), "1");
        // Nobody changes what is not published, even without reading it.
        db.raw.run("UPDATE community_configs SET is_published = false");
        assert_changes(&raw, "UPDATE community_configs SET navigation_config = '4'", 0);
        raw.run("UPDATE community_configs SET navigation_config = '5'");
        assert_eq!(db.raw.value("SELECT navigation_config FROM community_configs"), "1");
    }

    fn a_transaction_with_an_old_snapshot_has_no_user(db: &TestDatabase) {
        let TwoUsers { ann, of_ann: (space, _), .. } = two_users(db);
        let raw = connect_as(db, &ann.to_string());
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            let rows = usize::from(level == "READ COMMITTED");
            raw.run(&format!("BEGIN ISOLATION LEVEL {level}"));
            assert_eq!(raw.count(&format!("spaces WHERE id = '{space}'")), rows, "{level}");
            assert_changes(&raw, &format!("UPDATE spaces SET name = 'x' WHERE id = '{space}'"), rows);
            raw.run("ROLLBACK");
        }
        // At the only level with a user, the end of the session is seen at once.
        raw.run("BEGIN; SELECT 1 FROM spaces");
        db.raw.run(&format!("DELETE FROM townsquare.sessions WHERE user_id = '{ann}'"));
        assert_changes(&raw, &format!("UPDATE spaces SET name = 'x' WHERE id = '{space}'"), 0);
        raw.run("ROLLBACK");
    }

    fn callers_may_select_only_the_readable_columns(db: &TestDatabase) {
        let TwoUsers { ann, .. } = two_users(db);
        let claim = identity_claim(ann, &"01".repeat(32), "town", db.now()).expect("a key");
        let mut patch: CommunityPatch = required();
        patch.admin_email = Change::Set("mayor@town.example".to_owned());
        patch.admin_identity_public_keys = Change::Set(vec![claim["publicKey"].as_str().expect("a text").to_owned()]);
        db.service.communities().save_community_config("town", patch).expect("saved");
        // A column of another program.
        db.raw.run("ALTER TABLE community_configs ADD COLUMN notes TEXT; ALTER TABLE spaces ADD COLUMN notes TEXT");
        let reopened = townsquare::blocking::Client::open(db.config()).expect("opens");
        reopened.close();
        for who in [ann.to_string(), "anonymous".to_owned()] {
            let raw = connect_as(db, &who);
            for (table, columns) in [
                ("community_configs", ["admin_email", "admin_identity_public_keys", "custom_domain_authorized", "notes"]),
                ("users", ["created_at", "updated_at", "created_at", "*"]),
                ("spaces", ["notes", "*", "notes", "*"]),
                ("townsquare.database", ["cursor_key", "url_key", "incarnation", "*"]),
                ("townsquare.changes", ["old_row", "new_row", "id", "*"]),
            ] {
                for column in columns {
                    assert_refused(&raw, &format!("SELECT {column} FROM {table}"), "permission denied");
                    let condition = format!("SELECT count(*) FROM {table} WHERE ({table}.{column})::text LIKE 'm%'");
                    assert_refused(&raw, &condition, if column == "*" { "" } else { "permission denied" });
                }
            }
            let shown = "id, community_id, updated_at, brand_config, assets_config, community_config, fidgets_config,
                navigation_config, ui_config, is_published";
            assert_eq!(raw.rows(&format!("SELECT {shown} FROM community_configs")).len(), 1);
        }
    }

    fn no_setting_of_a_member_of_the_role_names_a_caller(db: &TestDatabase) {
        let TwoUsers { ann, of_ann, .. } = two_users(db);
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        raw.run(&format!("SET ROLE {}", callers_role(&raw)));
        for who in [&ann.to_string(), "", "user", "service", "anonymous", "postgres", "vouched"] {
            for setting in ["caller", "session", "caller_id", "user_id"] {
                raw.run(&format!("SELECT set_config('townsquare.{setting}', '{who}', false)"));
                assert_eq!(raw.rows("SELECT 1 FROM spaces").len(), 0, "townsquare.{setting} = {who:?}");
                assert_changes(&raw, "DELETE FROM spaces", 0);
            }
            raw.run("RESET townsquare.caller; RESET townsquare.session");
            assert_eq!(raw.rows("SELECT 1 FROM spaces").len(), 0);
        }
        raw.run(&format!("SELECT set_config('townsquare.session', '{}', false)", insert_session(&db.raw, ann)));
        assert_eq!(raw.rows("SELECT id FROM spaces"), [[Some(of_ann.0.to_string())]], "the session does");
    }

    /// An owner with very many private spaces would slow down every page with that owner's public ones.
    fn the_policy_of_users_reads_no_private_spaces(db: &TestDatabase) {
        let whale = db.user();
        db.raw.run(&format!("INSERT INTO spaces (name, owner_id, is_public)
            SELECT 'x', '{whale}', n > 3000 FROM generate_series(1, 3010) AS n; ANALYZE"));
        let raw = connect_as(db, "anonymous");
        raw.run("SET enable_seqscan = off");
        let plan = raw.rows("EXPLAIN (COSTS off) SELECT email FROM users").into_iter().flatten().flatten().collect::<String>();
        assert!(plan.contains("townsquare_public_spaces_owner"), "{plan}");
        assert_eq!(raw.count("users"), 1);
    }

    fn an_ended_session_names_no_caller(db: &TestDatabase) {
        let TwoUsers { ann, .. } = two_users(db);
        let raw = connect_as(db, &ann.to_string());
        assert_eq!(raw.rows("SELECT 1 FROM spaces").len(), 1);
        db.raw.run("DELETE FROM townsquare.sessions");
        assert_eq!(raw.rows("SELECT 1 FROM spaces").len(), 0);
    }

    fn policies_bind_the_owner_of_the_tables(db: &TestDatabase) {
        let TwoUsers { ann, of_ann, .. } = two_users(db);
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        let session = insert_session(&db.raw, ann);
        raw.run(&format!("SELECT set_config('townsquare.caller', 'user', false), set_config('townsquare.session', '{session}', false)"));
        assert_eq!(raw.rows("SELECT id FROM spaces"), [[Some(of_ann.0.to_string())]]);
        raw.run("SELECT set_config('townsquare.session', '', false)");
        for table in ["spaces", "fidgets", "users"] {
            assert_eq!(raw.rows(&format!("SELECT 1 FROM {table}")).len(), 0, "{table}");
            assert_changes(&raw, &format!("DELETE FROM {table}"), 0);
        }
    }
}
