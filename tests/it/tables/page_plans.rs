//! How PostgreSQL reads pages of public spaces (SPEC 4.5), and which connection a caller gets (DESIGN 3).

use townsquare::{
    Uuid,
    blocking::Client,
    spaces::{NewSpace, PublicSpace},
};
use townsquare_tests::{on_engine, postgres::callers_role, raw_sql::RawConnection, test_database::TestDatabase};

const PASSWORD: &str = "correct horse battery";

/// The number of rows before the deep pages.
const DEPTH: u64 = 5_000;

/// Lets the connection of the administrator write many rows fast. They have no foreign rows, and no change is logged.
const WITHOUT_TRIGGERS: &str = "SET session_replication_role = replica";

/// Opens a client that is connected to the server itself: behind a pooler in transaction mode no statement is kept.
fn open(db: &TestDatabase) -> Client {
    Client::open(db.config().database_url(db.url())).expect("opens")
}

fn administrator(db: &TestDatabase) -> RawConnection {
    let (server, database) = db.database();
    server.administrator(database)
}

/// Signs a new user in; returns a handle and the user's id.
fn user(client: &Client, name: &str) -> (Client, Uuid) {
    let address = format!("{name}@town.example");
    let id = client.auth().sign_up(&address, PASSWORD).expect("an account").id;
    let session = client.auth().sign_in(&address, PASSWORD).expect("a session");
    (client.as_user(&session.access_token).expect("a handle"), id)
}

/// Fills the database with public spaces of so many owners, and returns a space after [`DEPTH`] others.
fn fill(db: &TestDatabase, owners: usize) -> PublicSpace {
    administrator(db).run(&format!(
        "{WITHOUT_TRIGGERS};
         INSERT INTO users (id, email)
            SELECT md5(n::text)::uuid, n || '@owners.example' FROM generate_series(1, {owners}) AS n;
         INSERT INTO spaces (name, owner_id, is_public, created_at)
            SELECT n, md5((n % {owners} + 1)::text)::uuid, true, timestamptz '2024-01-01' + n / 3 * interval '1 second'
            FROM generate_series(1, 20000) AS n;
         ANALYZE"
    ));
    db.client.spaces().get_public_spaces(1, DEPTH).expect("a page").remove(0)
}

/// Makes each insert of a space write the prepared statements of its connection to the table `prepared`.
fn record_prepared_statements(db: &TestDatabase) {
    administrator(db).run(
        "CREATE TABLE public.prepared (statement TEXT, generic_plans BIGINT, custom_plans BIGINT);
         CREATE FUNCTION public.record_prepared() RETURNS TRIGGER
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
         BEGIN
            INSERT INTO public.prepared SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements;
            RETURN NULL;
         END $$;
         CREATE TRIGGER record_prepared AFTER INSERT ON public.spaces
            FOR EACH STATEMENT EXECUTE FUNCTION public.record_prepared()",
    );
}

/// The statements of pages that the connection of a user has prepared, and how often the server used a plan for all calls
/// and a plan for one.
fn page_statements(db: &TestDatabase, user: &Client, id: Uuid) -> Vec<[String; 3]> {
    let administrator = administrator(db);
    administrator.run("TRUNCATE public.prepared");
    user.spaces().create_space(NewSpace::named("x").owned_by(id)).expect("created");
    let rows = administrator.rows(
        "SELECT statement, generic_plans, custom_plans FROM public.prepared
         WHERE statement LIKE '%users.email, spaces.created_at IS NULL%' AND generic_plans + custom_plans > 1",
    );
    rows.into_iter().map(|row| [0, 1, 2].map(|column| row[column].clone().expect("no NULL"))).collect()
}

/// Whether the statement reads the page after a space.
fn is_after(sql: &str) -> bool {
    sql.contains("AS place")
}

/// Checks the number of spaces that a page read, in the order of an index. SPEC's own index has no ids: the rows that were
/// created at the same time are sorted, at most three in these tests.
#[track_caller]
fn assert_rows_read(expected: u64, plan: &str) {
    let is_ordered = |line: &&str| {
        ["townsquare_public_spaces_order", "spaces_is_public_created_at_idx"]
            .iter()
            .any(|index| line.contains(&format!("Index Scan using {index} on spaces ")))
    };
    let list = plan.lines().find(is_ordered);
    let read: u64 = list
        .and_then(|line| line.split_once("rows=")?.1.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("not in the order of an index: {plan}"));
    assert!((expected..=expected + 2).contains(&read), "{plan}");
}

/// A connection that plans the statements of one caller, as the library's connections do for all of the caller's calls.
struct Planner {
    raw: RawConnection,
    /// The last value of each statement: the caller's id; empty for the service.
    caller: String,
}

impl Planner {
    fn of_user(db: &TestDatabase, id: Uuid) -> Planner {
        let session = db.raw.value(&format!("SELECT access_hash FROM townsquare.sessions WHERE user_id = '{id}'"));
        Planner::of_caller(db, "user", &session, &format!("'{id}'"))
    }

    fn of_anonymous(db: &TestDatabase) -> Planner {
        Planner::of_caller(db, "anonymous", "", "NULL")
    }

    fn of_caller(db: &TestDatabase, caller: &str, session: &str, id: &str) -> Planner {
        let planner = Planner { caller: id.to_owned(), ..Planner::of_service(db) };
        planner.raw.run(&format!(
            "SET ROLE {}; SELECT set_config('townsquare.session', '{session}', false),
                set_config('townsquare.caller', '{caller}', false)",
            callers_role(&db.raw)
        ));
        planner
    }

    fn of_service(db: &TestDatabase) -> Planner {
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        raw.run("SET search_path = pg_catalog, public; SET plan_cache_mode = force_generic_plan");
        Planner { raw, caller: String::new() }
    }

    /// The plan of a page of 20 rows: of the page after `after`, or of the page at an offset.
    fn plan(&self, sql: &str, after: &PublicSpace, offset: u64) -> String {
        let (mut types, mut values) = if is_after(sql) {
            ("timestamptz, uuid, bigint".to_owned(), format!("now(), '{}', 20", after.id))
        } else {
            ("bigint, bigint".to_owned(), format!("20, {offset}"))
        };
        if !self.caller.is_empty() {
            types.push_str(", uuid");
            values.extend([", ", self.caller.as_str()]);
        }
        self.raw.run(&format!("PREPARE page ({types}) AS {sql}"));
        let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)";
        let plan = self.raw.rows(&format!("{explain} EXECUTE page ({values})"));
        self.raw.run("DEALLOCATE page");
        let lines: Vec<String> = plan.into_iter().map(|row| row[0].clone().expect("a line")).collect();
        lines.join("\n")
    }
}

on_engine! { Postgres in postgres;
    fn a_page_is_planned_once(db: &TestDatabase) {
        let after = fill(db, 5_000);
        let client = open(db);
        record_prepared_statements(db);
        let (ann, id) = user(&client, "ann");
        // A connection of the service could be in use by a task of the client, and a call then gets another one.
        for _ in 0..20 {
            for (limit, offset) in [(20, 0), (1, 40), (1_000, DEPTH)] {
                ann.spaces().get_public_spaces(limit, offset).expect("a page");
            }
            ann.spaces().get_public_spaces_after(20, &after).expect("a page");
        }
        let statements = page_statements(db, &ann, id);
        assert_eq!(statements.len(), 2, "{statements:#?}");
        for [sql, generic, custom] in statements {
            // The server plans the first five calls of each statement anew.
            assert!(custom == "5" && generic.parse::<u32>().expect("a number") >= 15, "{generic} {custom} {sql}");
        }
        client.close();
    }

    /// The policy of users runs for the rows of the page, and the place is found in the index.
    fn a_deep_page_reads_the_owners_of_its_own_rows_only(db: &TestDatabase) {
        let after = fill(db, 5_000);
        let client = open(db);
        record_prepared_statements(db);
        let (ann, id) = user(&client, "ann");
        for _ in 0..2 {
            ann.spaces().get_public_spaces(20, DEPTH).expect("a page");
            ann.spaces().get_public_spaces_after(20, &after).expect("a page");
        }
        let planner = Planner::of_user(db, id);
        let statements = page_statements(db, &ann, id);
        assert_eq!(statements.len(), 2, "{statements:#?}");
        for [sql, ..] in statements {
            let depths: &[_] = if is_after(&sql) { &[0] } else { &[0, DEPTH, DEPTH * 3] };
            for skipped in depths {
                let plan = planner.plan(&sql, &after, *skipped);
                let owners = plan.lines().find(|line| line.contains(" on users")).expect("a join");
                assert!(owners.contains("Index Scan using users_pkey") && owners.ends_with("loops=20)"), "{plan}");
                assert_rows_read(skipped + 20, &plan);
            }
        }
        client.close();
    }

    /// The share of public rows is in the page's condition and in the policy. Without it the list looks short, and a sort of all
    /// of it cheap.
    fn no_caller_sorts_all_public_spaces(db: &TestDatabase) {
        let client = open(db);
        record_prepared_statements(db);
        let (ann, id) = user(&client, "ann");
        let service = client.as_service();
        for (public, times) in [(2_000, "n"), (10_000, "n"), (10_000, "random() * 80000")] {
            administrator(db).run(&format!(
                "{WITHOUT_TRIGGERS};
                 DELETE FROM spaces;
                 INSERT INTO spaces (name, is_public, created_at)
                    SELECT n, n <= {public}, timestamptz '2024-01-01' + {times} * interval '1 second'
                    FROM (SELECT n FROM generate_series(1, 80000) AS n ORDER BY md5(n::text)) AS n;
                 ANALYZE spaces"
            ));
            let after = client.spaces().get_public_spaces(1, public / 2).expect("a page").remove(0);
            for _ in 0..2 {
                for caller in [&ann, &service] {
                    caller.spaces().get_public_spaces(20, 0).expect("a page");
                    caller.spaces().get_public_spaces_after(20, &after).expect("a page");
                }
            }
            let planners = [
                (Planner::of_user(db, id), &ann),
                // An anonymous caller has the same statements as a user.
                (Planner::of_anonymous(db), &ann),
                (Planner::of_service(db), &service),
            ];
            for (planner, prepared_by) in planners {
                let statements = page_statements(db, prepared_by, id);
                assert_eq!(statements.len(), 2, "{statements:#?}");
                for [sql, ..] in statements {
                    let plan = planner.plan(&sql, &after, 0);
                    assert_rows_read(20, &plan);
                }
            }
        }
        client.close();
    }

    /// With few owners the server expects to meet a public space of the owner soon, wherever it starts. Those of a new owner
    /// come last.
    fn the_policy_of_users_looks_owners_up_in_the_index(db: &TestDatabase) {
        fill(db, 50);
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        raw.run(&format!("SET ROLE {}", callers_role(&db.raw)));
        let plan = raw.rows("EXPLAIN SELECT users.email FROM users WHERE users.id = gen_random_uuid()");
        let plan = plan.into_iter().map(|row| row[0].clone().expect("a line")).collect::<Vec<_>>().join("\n");
        assert!(plan.contains("townsquare_public_spaces_owner") && !plan.contains("Scan on spaces"), "{plan}");
    }

    fn callers_that_take_turns_use_a_connection_each(db: &TestDatabase) {
        let client = open(db);
        let space = db.public_space(db.user(), "Plaza").id;
        let users: Vec<_> = ["ann", "bob", "cid", "dan", "eve"].map(|name| user(&client, name).0).into();
        let read = |user: &Client| drop(user.spaces().get_space(space).expect("public"));
        // More principals than connections: each connection was set to several.
        for _ in 0..2 {
            users.iter().for_each(read);
        }
        for _ in 0..2 {
            users[..3].iter().for_each(read);
        }
        let administrator = administrator(db);
        let connections = || {
            administrator.rows(
                "SELECT pid, query_start FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND query LIKE '%FROM public.spaces WHERE spaces.id%' ORDER BY 1",
            )
        };
        let before = connections();
        users[..3].iter().for_each(read);
        let after = connections();
        let used = after.iter().filter(|connection| !before.contains(connection)).count();
        assert_eq!(used, 3, "{before:?} {after:?}");
        client.close();
    }
}
