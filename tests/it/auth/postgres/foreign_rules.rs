//! Policies, grants and functions of other programs: neutralised, repaired or refused by name (DESIGN 3a).

use townsquare::{ErrorKind, blocking::Client, communities::CommunityPatch, spaces::Change};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    postgres::{OWNER_ROLE, callers_role, insert_session, server},
    raw_sql::RawConnection,
    subprocess::in_subprocess,
    test_database::{TestDatabase, required},
};

use crate::log::Log;

use super::{
    assert_changes, assert_refused, connect_as,
    roles::{OwnedDatabase, assert_policies_apply, config, user_with_space},
    two_users,
};

fn refusal(db: &TestDatabase) -> String {
    assert_kind(ErrorKind::Config, Client::open(db.config())).to_string()
}

on_engine! { Postgres in postgres;
    fn permissive_policies_of_others_widen_nothing(db: &TestDatabase) {
        let (server, database) = db.database();
        let administrator = server.administrator(database);
        let guest = format!("guest_of_{database}");
        for table in ["users", "spaces", "fidgets", "community_configs"] {
            db.raw.run(&format!("CREATE POLICY everything ON {table} USING (true) WITH CHECK (true)"));
        }
        administrator.run(&format!("CREATE ROLE {guest} LOGIN; GRANT USAGE ON SCHEMA public TO {guest};
            GRANT SELECT ON users, spaces TO {guest}"));
        let client = db.another();
        let (of_ann, of_bob) = assert_policies_apply(&client);
        let raw = connect_as(db, &of_ann.owner_id.expect("owned").to_string());
        assert_eq!(raw.rows("SELECT id FROM spaces"), [[Some(of_ann.id.to_string())]]);
        assert_eq!(raw.count("users"), 1);
        assert_changes(&raw, &format!("UPDATE spaces SET name = 'x' WHERE id = '{}'", of_bob.id), 0);
        assert_refused(&raw, &format!("UPDATE spaces SET owner_id = '{}'", of_bob.owner_id.expect("owned")), "row-level security");
        let other = RawConnection::postgres(&server.url(&guest, database)).expect("it connects");
        assert_eq!(other.count("spaces"), 2, "other roles keep what their policies give them");
        // Without the policies, their restrictive companions are removed as well.
        for table in ["users", "spaces", "fidgets", "community_configs"] {
            db.raw.run(&format!("DROP POLICY everything ON {table}"));
        }
        db.another().close();
        assert_eq!(db.raw.count("pg_policy WHERE NOT polpermissive"), 0);
        client.close();
        administrator.run(&format!("DROP OWNED BY {guest}; DROP ROLE {guest}"));
    }

    fn a_restrictive_policy_that_hides_rows_is_refused_by_name(db: &TestDatabase) {
        db.raw.run("CREATE POLICY curfew ON spaces AS RESTRICTIVE USING (false)");
        let error = refusal(db);
        assert!(error.contains("\"curfew\"") && error.contains("public.spaces"), "{error}");
        db.raw.run("DROP POLICY curfew ON spaces");
        db.another().close();
    }

    fn a_policy_for_other_roles_is_left_alone(db: &TestDatabase) {
        db.raw.run("CREATE POLICY monitor ON spaces AS RESTRICTIVE TO pg_monitor USING (false)");
        db.another().close();
        assert_eq!(db.raw.count("pg_policy WHERE polname = 'monitor'"), 1);
    }

    fn rights_of_public_are_refused_by_name(db: &TestDatabase) {
        for grant in ["UPDATE ON community_configs", "TRUNCATE ON spaces", "SELECT (email) ON users"] {
            db.raw.run(&format!("GRANT {grant} TO PUBLIC"));
            let (table, error) = (grant.rsplit(' ').next().expect("a table"), refusal(db));
            assert!(error.contains(&format!("REVOKE ALL ON public.{table} FROM PUBLIC")), "{error}");
            db.raw.run(&format!("REVOKE ALL ON {table} FROM PUBLIC"));
            db.another().close();
        }
    }

    fn rights_in_the_schema_of_the_library_are_repaired(db: &TestDatabase) {
        let callers = callers_role(&db.raw);
        for (grant, wrong) in [
            ("GRANT USAGE ON SCHEMA townsquare TO PUBLIC".to_owned(), "has_schema_privilege('pg_monitor', 'townsquare', 'USAGE')".to_owned()),
            ("GRANT SELECT ON townsquare.sessions TO PUBLIC".to_owned(), "has_table_privilege('pg_monitor', 'townsquare.sessions', 'SELECT')".to_owned()),
            (format!("GRANT SELECT ON townsquare.credentials TO {callers}"), format!("has_table_privilege('{callers}', 'townsquare.credentials', 'SELECT')")),
            (format!("GRANT INSERT ON users TO {callers}"), format!("has_table_privilege('{callers}', 'users', 'INSERT')")),
        ] {
            db.raw.run(&grant);
            assert_eq!(db.raw.value(&format!("SELECT {wrong}")), "t", "{grant}");
            db.another().close();
            assert_eq!(db.raw.value(&format!("SELECT {wrong}")), "f", "{grant}");
        }
        assert_policies_apply(&db.client);
    }

    fn replaced_functions_of_the_policies_are_repaired(db: &TestDatabase) {
        let (_, of_ann) = user_with_space(&db.client, "ann");
        let stranger = connect_as(db, "anonymous");
        let owner = of_ann.owner_id.expect("owned");
        for replacement in [
            format!("caller_id() RETURNS UUID LANGUAGE sql STABLE AS $$ SELECT '{owner}'::uuid $$"),
            "holds_key(p_user_id UUID, p_keys TEXT[]) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT true'".to_owned(),
            "protect_columns() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'".to_owned(),
        ] {
            let source = "SELECT md5(string_agg(prosrc, '' ORDER BY oid::regprocedure::text)) FROM pg_proc WHERE pronamespace = 'townsquare'::regnamespace";
            let before = db.raw.value(source);
            db.raw.run(&format!("CREATE OR REPLACE FUNCTION townsquare.{replacement}"));
            assert_ne!(db.raw.value(source), before);
            db.another().close();
            assert_eq!(db.raw.value(source), before, "{replacement}");
        }
        assert_eq!(stranger.rows("SELECT 1 FROM spaces").len(), 0);
    }

    fn a_replaced_function_of_a_migration_is_refused(db: &TestDatabase) {
        db.raw.run("CREATE OR REPLACE FUNCTION townsquare.file_left_store() RETURNS TRIGGER LANGUAGE plpgsql
            AS 'BEGIN RETURN NULL; END'");
        let error = refusal(db);
        assert!(error.contains("a function of the schema townsquare was changed"), "{error}");
    }

    fn a_role_of_the_callers_with_rights_of_its_own_is_refused(db: &TestDatabase) {
        let (server, database) = db.database();
        let callers = callers_role(&db.raw);
        server.administrator(database).run(&format!("GRANT pg_read_all_data TO {callers}"));
        let error = refusal(db);
        assert!(error.contains(&format!("REVOKE pg_read_all_data FROM {callers}")), "{error}");
        server.administrator(database).run(&format!("REVOKE pg_read_all_data FROM {callers}"));
        db.another().close();
    }

    /// A table of another program in the schema `public`, which the library neither checks nor locks.
    fn tables_of_others_are_left_alone(db: &TestDatabase) {
        db.raw.run("CREATE TABLE notes (id INTEGER); GRANT SELECT ON notes TO PUBLIC");
        let reader = RawConnection::postgres(&db.url()).expect("the server runs");
        reader.run("BEGIN; LOCK TABLE spaces, users, fidgets, notes IN ACCESS SHARE MODE");
        db.another().close();
        reader.run("ROLLBACK");
        assert_eq!(db.raw.value("SELECT relrowsecurity FROM pg_class WHERE relname = 'notes'"), "f");
    }

    fn only_the_changed_table_is_locked(db: &TestDatabase) {
        let reader = RawConnection::postgres(&db.url()).expect("the server runs");
        reader.run("BEGIN; LOCK TABLE spaces, users, community_configs, community_domains IN ACCESS SHARE MODE");
        db.raw.run("DROP POLICY townsquare_select ON fidgets");
        db.another().close();
        reader.run("ROLLBACK");
        assert_eq!(db.raw.count("pg_policy WHERE polrelid = 'fidgets'::regclass AND polname = 'townsquare_select'"), 1);
    }

    fn users_keep_their_files_and_rows_after_all_this(db: &TestDatabase) {
        let two = two_users(db);
        let raw = connect_as(db, &two.ann.to_string());
        assert_changes(&raw, "DELETE FROM spaces", 1);
        assert_eq!(db.raw.count("spaces"), 1);
    }
}

#[test]
fn an_open_that_creates_rules_again_says_so_in_the_log() {
    in_subprocess(an_open_that_creates_rules_again_says_so_in_the_log, || {
        let Some(server) = server() else { return };
        let owned = OwnedDatabase::owned_by(server, OWNER_ROLE);
        let log = Log::capture();
        let open = || Client::open(config(&owned.url())).expect("opens").close();
        let warning = "another program has changed access rules";
        open();
        open();
        assert!(!log.take().contains(warning), "nobody has changed them");
        let raw = RawConnection::postgres(&owned.url()).expect("the server runs");
        raw.run("ALTER TABLE spaces DISABLE ROW LEVEL SECURITY; DROP POLICY townsquare_select ON spaces");
        open();
        let text = log.take();
        assert!(text.contains(warning) && text.contains("public.spaces"), "{text}");
    });
}

/// In one-role mode no grant limits the columns; a trigger does.
#[test]
fn admins_update_only_the_navigation_in_one_role_mode() {
    let Some(server) = server() else { return };
    let owned = OwnedDatabase::owned_by(server, OWNER_ROLE);
    let client = Client::open(config(&owned.url())).expect("opens");
    let (ann, space) = user_with_space(&client, "ann");
    let mut patch: CommunityPatch = required();
    patch.admin_identity_public_keys = Change::Set(vec!["key".to_owned()]);
    client.as_service().communities().save_community_config("town", patch).expect("saved");
    let (raw, user) = (owned.raw(), space.owner_id.expect("owned"));
    raw.run(&format!("INSERT INTO townsquare.identities VALUES ('key', '{user}', now())"));
    let session = insert_session(&raw, user);
    raw.run(&format!(
        "SELECT set_config('townsquare.caller', 'user', false), set_config('townsquare.session', '{session}', false)"
    ));
    assert_changes(&raw, "UPDATE community_configs SET navigation_config = '1', updated_at = now()", 1);
    for column in ["admin_email = 'x'", "is_published = false", "community_id = 'x'", "brand_config = '2'"] {
        assert_refused(
            &raw,
            &format!("UPDATE community_configs SET {column}"),
            "permission denied for table community_configs",
        );
    }
    raw.run("RESET townsquare.caller");
    assert_changes(&raw, "UPDATE community_configs SET admin_email = 'x'", 1);
    drop(ann);
    client.close();
}
