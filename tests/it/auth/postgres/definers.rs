//! Functions that run with the rights of the service run no code of a caller (DESIGN 3): plain SQL with the role of the
//! callers, which makes temporary tables, types and casts of its own.

use townsquare::{
    Uuid,
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{on_engine, postgres::callers_role, raw_sql::RawConnection};

use super::{assert_refused, connect_as};

/// The trigger functions that run with the rights of their owner.
const DEFINER_TRIGGERS: &str = "SELECT proname FROM pg_proc WHERE pronamespace = 'townsquare'::regnamespace
    AND prosecdef AND prorettype = 'trigger'::regtype ORDER BY 1";

/// Makes a type whose casts run the caller's code, a temporary table with the names of SPEC 2's columns in that type, and a
/// row in it. The code fails with the words `as` and the name of the role that it runs as.
const HOSTILE_TABLE: &str = "
    CREATE TYPE pg_temp.evil AS ENUM ('x', 'private', 'y');
    CREATE FUNCTION pg_temp.run(pg_temp.evil) RETURNS TEXT LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
    CREATE FUNCTION pg_temp.run_json(pg_temp.evil) RETURNS JSON LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
    CREATE FUNCTION pg_temp.run_uuid(pg_temp.evil) RETURNS UUID LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
    CREATE FUNCTION pg_temp.run_bool(pg_temp.evil) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
    CREATE CAST (pg_temp.evil AS TEXT) WITH FUNCTION pg_temp.run(pg_temp.evil) AS IMPLICIT;
    CREATE CAST (pg_temp.evil AS JSON) WITH FUNCTION pg_temp.run_json(pg_temp.evil) AS IMPLICIT;
    CREATE CAST (pg_temp.evil AS UUID) WITH FUNCTION pg_temp.run_uuid(pg_temp.evil) AS IMPLICIT;
    CREATE CAST (pg_temp.evil AS BOOLEAN) WITH FUNCTION pg_temp.run_bool(pg_temp.evil) AS IMPLICIT;
    CREATE TEMPORARY TABLE spaces (id pg_temp.evil, owner_id pg_temp.evil, is_public pg_temp.evil,
        space_id pg_temp.evil, user_id pg_temp.evil, bucket pg_temp.evil, path pg_temp.evil, access pg_temp.evil,
        first_segment pg_temp.evil, public_key pg_temp.evil);
    INSERT INTO spaces VALUES ('x', 'x', 'x', 'x', 'x', 'x', 'x', 'private', 'x', 'x');";

/// The triggers to try a function with, and the statements that fire them.
const EVENTS: [(&str, &str); 5] = [
    ("BEFORE DELETE ON spaces FOR EACH ROW", "DELETE FROM spaces"),
    ("AFTER INSERT ON spaces FOR EACH ROW", "INSERT INTO spaces SELECT * FROM spaces"),
    ("AFTER UPDATE ON spaces FOR EACH ROW", "UPDATE spaces SET id = 'y'"),
    ("AFTER DELETE ON spaces REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT", "DELETE FROM spaces"),
    ("BEFORE TRUNCATE ON spaces FOR EACH STATEMENT", "TRUNCATE spaces"),
];

fn texts(raw: &RawConnection, sql: &str) -> Vec<String> {
    raw.rows(sql).into_iter().flatten().flatten().collect()
}

on_engine! { Postgres in postgres;
    fn no_function_of_the_schema_is_executable_by_public(db: &TestDatabase) {
        let callers = callers_role(&db.raw);
        let of_role = |role: &str| {
            texts(&db.raw, &format!(
                "SELECT DISTINCT proname FROM pg_proc, aclexplode(COALESCE(proacl, acldefault('f', proowner)))
                 WHERE pronamespace = 'townsquare'::regnamespace AND grantee = {role} ORDER BY 1"
            ))
        };
        assert!(db.raw.count("pg_proc WHERE pronamespace = 'townsquare'::regnamespace") > 30);
        assert_eq!(of_role("0"), Vec::<String>::new());
        // What policies and the statements of callers call.
        let needed = ["admitted", "caller_id", "holds_key", "is_claimable", "is_service", "owner_usage", "path_lock", "space_fidgets", "space_lock"];
        assert_eq!(of_role(&format!("'{callers}'::regrole")), needed);
        // SPEC 4.3's function is everybody's; no other function of this library is outside of its schema.
        let outside = texts(&db.raw, "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace");
        assert_eq!(outside, ["get_active_community_config"]);
    }

    fn functions_of_callers_count_only_the_rows_of_the_caller(db: &TestDatabase) {
        let (ann, bob) = (db.user(), db.user());
        let diary = |owner| db.service.spaces().create_space(NewSpace::named("Diary").owned_by(owner)).expect("created");
        let (of_ann, of_bob) = (diary(ann), diary(bob));
        for space in [of_ann.id, of_bob.id] {
            db.service.fidgets().create_fidget(space, NewFidget::of_type("clock")).expect("created");
        }
        let (unknown, as_ann) = (Uuid::new_v4(), connect_as(db, &ann.to_string()));
        for (who, raw) in [("Ann", &as_ann), ("anonymous", &connect_as(db, "anonymous"))] {
            // An unknown id is refused like one of somebody else.
            for user in [bob, unknown] {
                let usage = format!("SELECT * FROM townsquare.owner_usage('{user}')");
                assert_refused(raw, &usage, "permission denied for function owner_usage");
            }
            for space in [of_bob.id, unknown] {
                let fidgets = format!("SELECT townsquare.space_fidgets('{space}', 10)");
                assert_refused(raw, &fidgets, "permission denied for function space_fidgets");
                assert_eq!(raw.value(&format!("SELECT townsquare.is_claimable('{space}')")), "t", "{who}");
                let holds = format!("SELECT townsquare.holds_key('{bob}', ARRAY['x'])");
                assert_eq!(raw.value(&holds), "f", "{who}");
            }
        }
        let own = as_ann.rows(&format!("SELECT * FROM townsquare.owner_usage('{ann}')"));
        assert_eq!(own, [["1", "0", "0"].map(|count| Some(count.to_owned()))]);
        assert_eq!(as_ann.value(&format!("SELECT townsquare.space_fidgets('{}', 10)", of_ann.id)), "1");
    }

    fn open_revokes_what_was_granted(db: &TestDatabase) {
        let grants = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'townsquare'::regnamespace
            AND has_function_privilege('public', oid, 'EXECUTE')";
        for sql in [
            "GRANT EXECUTE ON FUNCTION townsquare.capture_row() TO PUBLIC".to_owned(),
            "GRANT EXECUTE ON ALL ROUTINES IN SCHEMA townsquare TO PUBLIC".to_owned(),
            format!("GRANT EXECUTE ON FUNCTION townsquare.set_capture(BOOLEAN) TO {}", callers_role(&db.raw)),
        ] {
            db.raw.run(&sql);
            db.another().close();
            assert_eq!(db.raw.value(grants), "0", "{sql}");
            assert_refused(&connect_as(db, "anonymous"), "SELECT townsquare.set_capture(true)", "permission denied");
        }
    }

    fn a_definer_function_pins_its_search_path(db: &TestDatabase) {
        let unpinned = texts(&db.raw, "SELECT proname FROM pg_proc
            WHERE pronamespace IN ('townsquare'::regnamespace, 'public'::regnamespace) AND prosecdef
            AND NOT COALESCE('search_path=pg_catalog, pg_temp' = ANY (proconfig), false) ORDER BY 1");
        assert_eq!(unpinned, Vec::<String>::new());
        // An operator, a function and a type of the caller's search path stand in for none that the functions name.
        let (server, database) = db.database();
        let administrator = server.administrator(database);
        let run = "RETURNS BOOLEAN LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$";
        administrator.run(&format!(
            "CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO PUBLIC;
             CREATE FUNCTION evil.run(oid, regclass) {run}; CREATE FUNCTION evil.run(oid, oid) {run};
             CREATE FUNCTION evil.run(boolean, boolean) {run}; CREATE FUNCTION evil.run(uuid, uuid) {run};
             CREATE OPERATOR evil.<> (FUNCTION = evil.run, LEFTARG = oid, RIGHTARG = regclass);
             CREATE OPERATOR evil.<> (FUNCTION = evil.run, LEFTARG = oid, RIGHTARG = oid);
             CREATE OPERATOR evil.<> (FUNCTION = evil.run, LEFTARG = boolean, RIGHTARG = boolean);
             CREATE OPERATOR evil.<> (FUNCTION = evil.run, LEFTARG = uuid, RIGHTARG = uuid);
             CREATE FUNCTION evil.lower(text) {run};
             CREATE DOMAIN evil.regclass AS TEXT CHECK (false); CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false)"
        ));
        let ann = db.user();
        db.raw.run(&format!("SELECT townsquare.set_capture(true); INSERT INTO spaces (name, owner_id) VALUES ('x', '{ann}')"));
        let raw = connect_as(db, &ann.to_string());
        raw.run("SET search_path = evil, pg_catalog, public");
        let changed = raw.rows("UPDATE public.spaces SET is_public = true RETURNING 1");
        assert_eq!(changed.len(), 1);
        assert_eq!(raw.rows("DELETE FROM public.spaces RETURNING 1").len(), 1);
    }

    fn a_caller_makes_no_trigger_with_a_function_of_the_service(db: &TestDatabase) {
        let functions = texts(&db.raw, DEFINER_TRIGGERS);
        assert!(functions.len() >= 13, "{functions:?}");
        let user = db.user().to_string();
        for who in [user.as_str(), "anonymous"] {
            let raw = connect_as(db, who);
            raw.run(HOSTILE_TABLE);
            for function in &functions {
                for (event, _) in EVENTS {
                    let trigger = format!("CREATE TRIGGER t {event} EXECUTE FUNCTION townsquare.{function}()");
                    assert_refused(&raw, &trigger, "permission denied for function");
                }
            }
        }
    }

    /// Every trigger function refuses another table before it reads the row, also if a caller may execute it.
    fn a_trigger_function_refuses_every_table_but_its_own(db: &TestDatabase) {
        let functions = texts(&db.raw, DEFINER_TRIGGERS);
        let callers = callers_role(&db.raw);
        db.raw.run(&format!("GRANT EXECUTE ON ALL ROUTINES IN SCHEMA townsquare TO {callers}"));
        let raw = connect_as(db, &db.user().to_string());
        raw.run(HOSTILE_TABLE);
        // The attack works with a function that has no check.
        raw.run("CREATE FUNCTION pg_temp.careless() RETURNS TRIGGER LANGUAGE plpgsql AS
            $$ DECLARE id TEXT := OLD.id::text; BEGIN RETURN OLD; END $$;
            CREATE TRIGGER t BEFORE DELETE ON spaces FOR EACH ROW EXECUTE FUNCTION pg_temp.careless()");
        assert_refused(&raw, "DELETE FROM spaces", &format!("ran as {callers}"));
        raw.run("DROP TRIGGER t ON spaces");
        for function in &functions {
            for (event, statement) in EVENTS {
                raw.run(&format!("CREATE TRIGGER t {event} EXECUTE FUNCTION townsquare.{function}()"));
                assert_refused(&raw, statement, "The trigger function is not for this table");
                raw.run("DROP TRIGGER t ON spaces");
            }
        }
    }

    /// The functions that a caller may execute resolve no name in the caller's temporary schema.
    fn temporary_objects_change_no_function_that_a_caller_may_execute(db: &TestDatabase) {
        let (ann, bob) = (db.user(), db.user());
        db.raw.run(&format!("INSERT INTO spaces (name, owner_id) VALUES ('x', '{bob}');
            INSERT INTO townsquare.identities VALUES ('key', '{bob}', now())"));
        let raw = connect_as(db, &ann.to_string());
        raw.run(&format!(
            "CREATE TEMPORARY TABLE sessions (access_hash TEXT, user_id UUID); CREATE TEMPORARY TABLE identities (public_key TEXT, user_id UUID);
             CREATE TEMPORARY TABLE community_configs (community_id TEXT, is_published BOOLEAN);
             INSERT INTO pg_temp.sessions VALUES (current_setting('townsquare.session'), '{bob}');
             INSERT INTO pg_temp.identities VALUES ('key', '{ann}');
             CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'x'::text $$;
             CREATE TYPE pg_temp.uuid AS ENUM ('x'); CREATE TYPE pg_temp.text AS ENUM ('x');
             SET search_path = pg_temp, pg_catalog, public"
        ));
        assert_eq!(raw.value("SELECT townsquare.caller_id()"), ann.to_string());
        assert_refused(&raw, &format!("SELECT townsquare.admitted('{bob}')"), "Session has ended");
        assert_eq!(raw.value(&format!("SELECT townsquare.holds_key('{ann}', '{{key}}')")), "f");
        assert_eq!(raw.count("public.spaces"), 0);
        assert_eq!(raw.value("SELECT public.get_active_community_config('x')"), "NULL");
    }

    /// A trigger of that name on a table of a caller is not the library's.
    fn a_temporary_table_does_not_stop_the_change_log(db: &TestDatabase) {
        let raw = connect_as(db, &db.user().to_string());
        raw.run("CREATE TEMPORARY TABLE mine (x INT);
            CREATE FUNCTION pg_temp.nothing() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
            CREATE TRIGGER townsquare_capture AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION pg_temp.nothing()");
        let states = |relation: &str| {
            texts(&db.raw, &format!("SELECT DISTINCT tgenabled::text FROM pg_trigger
                WHERE tgname LIKE 'townsquare\\_capture%' AND {relation} ORDER BY 1"))
        };
        let (own, other) = ("tgrelid::regclass::text !~ 'mine'", "tgrelid::regclass::text ~ 'mine'");
        db.raw.run("SELECT townsquare.set_capture(true)");
        assert_eq!((states(own), states(other)), (vec!["O".to_owned()], vec!["O".to_owned()]));
        db.raw.run("SELECT townsquare.set_capture(false)");
        assert_eq!((states(own), states(other)), (vec!["D".to_owned()], vec!["O".to_owned()]));
    }
}
