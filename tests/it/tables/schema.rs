//! The schema of the database, compared with SPEC 2 and 4.3.

use std::{collections::BTreeSet, process::Stdio};

use townsquare_tests::{
    on_engine,
    paths::workspace,
    postgres::{APP_ROLE, program},
    test_database::TestDatabase,
};

/// The tables of SPEC 2.2 to 2.7, a column per line: name, type, `required` or `optional`, default.
const TABLES: &[(&str, &str)] = &[
    (
        "community_configs",
        "id uuid required gen_random_uuid()
         community_id varchar(50) required -
         updated_at timestamptz optional now()
         brand_config jsonb required -
         assets_config jsonb required -
         community_config jsonb required -
         fidgets_config jsonb required -
         navigation_config jsonb optional -
         ui_config jsonb optional -
         admin_identity_public_keys _text optional -
         is_published bool optional true
         custom_domain_authorized bool optional false
         admin_email text optional -",
    ),
    (
        "community_domains",
        "id uuid required gen_random_uuid()
         community_id varchar(50) required -
         domain text required -
         domain_type text required -
         created_at timestamptz optional now()
         updated_at timestamptz optional now()",
    ),
    (
        "spaceRegistrations",
        "spaceId uuid required -
         fid int4 optional -
         spaceName text required -
         spaceType text required -
         identityPublicKey text optional -
         signature text optional -
         timestamp timestamptz optional now()",
    ),
    (
        "users",
        "id uuid required gen_random_uuid()
         email text required -
         created_at timestamptz optional now()
         updated_at timestamptz optional now()",
    ),
    (
        "spaces",
        "id uuid required gen_random_uuid()
         name text required -
         description text optional -
         owner_id uuid optional -
         is_public bool optional false
         created_at timestamptz optional now()
         updated_at timestamptz optional now()",
    ),
    (
        "fidgets",
        "id uuid required gen_random_uuid()
         space_id uuid optional -
         type text required -
         config jsonb optional -
         position jsonb optional -
         created_at timestamptz optional now()
         updated_at timestamptz optional now()",
    ),
];

fn lines(db: &TestDatabase, sql: &str) -> Vec<String> {
    let rows = db.raw.rows(sql);
    rows.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" ")).collect()
}

fn assert_same(found: Vec<String>, expected: &[&str]) {
    let found: BTreeSet<_> = found.into_iter().collect();
    let expected: BTreeSet<_> = expected.iter().map(|line| (*line).to_owned()).collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "missing {missing:#?} in {found:#?}");
    let strange: Vec<_> = found.difference(&expected).collect();
    assert!(strange.is_empty(), "not in SPEC 2: {strange:#?}");
}

on_engine! { Postgres in postgres;
    fn columns_have_the_types_and_rules_of_spec_2(db: &TestDatabase) {
        for (table, columns) in TABLES {
            let found = lines(
                db,
                &format!(
                    "SELECT column_name, udt_name || coalesce('(' || character_maximum_length || ')', ''),
                     CASE is_nullable WHEN 'NO' THEN 'required' ELSE 'optional' END, coalesce(column_default, '-')
                 FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}'
                 ORDER BY ordinal_position"
                ),
            );
            let expected: Vec<_> = columns.lines().map(|line| line.trim().to_owned()).collect();
            assert_eq!(found, expected, "{table}");
        }
        let tables = lines(db, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'");
        let expected: BTreeSet<_> = TABLES.iter().map(|(table, _)| (*table).to_owned()).collect();
        assert_eq!(tables.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    fn keys_and_checks_are_those_of_spec_2(db: &TestDatabase) {
        let found = lines(
            db,
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
        );
        let expected = [
            "\"spaceRegistrations\" CHECK ((\"spaceType\" = ANY (ARRAY['profile'::text, 'token'::text, \
         'proposal'::text, 'channel'::text, 'navPage'::text])))",
            "\"spaceRegistrations\" PRIMARY KEY (\"spaceId\")",
            "community_configs PRIMARY KEY (id)",
            "community_configs UNIQUE (community_id)",
            "community_domains CHECK ((domain_type = ANY (ARRAY['blank_subdomain'::text, 'custom'::text])))",
            "community_domains FOREIGN KEY (community_id) REFERENCES community_configs(community_id) ON DELETE CASCADE",
            "community_domains PRIMARY KEY (id)",
            "community_domains UNIQUE (community_id, domain_type)",
            "community_domains UNIQUE (domain)",
            "fidgets FOREIGN KEY (space_id) REFERENCES spaces(id) ON DELETE CASCADE",
            "fidgets PRIMARY KEY (id)",
            "spaces FOREIGN KEY (owner_id) REFERENCES users(id) ON DELETE CASCADE",
            "spaces PRIMARY KEY (id)",
            "users PRIMARY KEY (id)",
            "users UNIQUE (email)",
        ];
        assert_same(found, &expected);
    }

    fn indexes_are_those_of_spec_2(db: &TestDatabase) {
        // Indexes of keys are covered by their constraints.
        let found = lines(
            db,
            "SELECT substring(indexdef FROM 'ON public\\.(.*)$') FROM pg_indexes WHERE schemaname = 'public'
         AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conname = indexname)",
        );
        let expected = [
            "community_configs USING btree (community_id)",
            "community_configs USING btree (is_published) WHERE (is_published = true)",
            "fidgets USING btree (space_id)",
            "fidgets USING btree (space_id, type)",
            "spaces USING btree (is_public) WHERE (is_public = true)",
            "spaces USING btree (is_public, created_at DESC) WHERE (is_public = true)",
            "spaces USING btree (owner_id)",
            "spaces USING btree (owner_id, created_at DESC)",
            // Not in SPEC 2: the first pages of public spaces, the policy of users, and addresses without case.
            "spaces USING btree (created_at DESC, id) WHERE is_public",
            "spaces USING btree (owner_id) WHERE (is_public IS TRUE)",
            "users USING btree (lower(email))",
            "users USING btree (email COLLATE townsquare.address)",
            // Not in SPEC 2: pages of fidgets.
            "fidgets USING btree (space_id, ((created_at IS NULL)), created_at, id)",
        ];
        assert_same(found, &expected);
    }

    fn the_function_is_security_definer_with_a_fixed_search_path(db: &TestDatabase) {
        let found = lines(
            db,
            "SELECT pg_get_function_identity_arguments(oid), pg_get_function_result(oid), prosecdef,
             array_to_string(proconfig, ';')
         FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname = 'get_active_community_config'",
        );
        let [line] = &found[..] else { panic!("one function: {found:?}") };
        let rest = line.strip_prefix("p_community_id character varying jsonb t search_path=").expect(line);
        assert!(!rest.contains("public") && !rest.contains("$user"), "nobody else's schema is searched: {rest}");
    }

    fn the_function_can_be_called_from_psql(db: &TestDatabase) {
        db.community("town.example");
        let (server, database) = db.database();
        // A role without rights on the table may call the function.
        let administrator = server.administrator(database);
        let stranger = format!("stranger_of_{database}");
        administrator.run(&format!("CREATE ROLE {stranger} LOGIN"));
        let denied = administrator.try_rows(&format!("SET ROLE {stranger}; SELECT * FROM community_configs"));
        assert!(denied.expect_err("no grant").contains("permission denied"));
        let run = program("psql")
            .args(["-X", "-A", "-t", "-c", "SELECT get_active_community_config('town.example')->'brand'"])
            .arg(server.url(&stranger, database))
            .stdin(Stdio::null())
            .output()
            .expect("psql starts");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), r#"{"brand": 1}"#);
        administrator.run(&format!("RESET ROLE; DROP ROLE {stranger}"));
    }

    fn internal_objects_are_in_the_townsquare_schema(db: &TestDatabase) {
        let schemas = lines(
            db,
            "SELECT DISTINCT table_schema FROM information_schema.tables
         WHERE table_schema NOT IN ('information_schema', 'pg_catalog')",
        );
        assert_eq!(schemas.into_iter().collect::<BTreeSet<_>>(), ["public", "townsquare"].map(str::to_owned).into());
        let owners =
            lines(db, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('public', 'townsquare')");
        assert_eq!(owners, [APP_ROLE]);
    }
}

on_engine! { Sqlite in sqlite;
    fn tables_have_the_columns_of_spec_2(db: &TestDatabase) {
        for (table, columns) in TABLES {
            let found = lines(
                db,
                &format!(
                    "SELECT name, CASE \"notnull\" WHEN 1 THEN 'required' ELSE 'optional' END, \
                 CASE WHEN dflt_value IS NULL THEN '-' ELSE 'default' END FROM pragma_table_info('{table}')"
                ),
            );
            let expected: Vec<_> = columns
                .lines()
                .map(|line| {
                    let words: Vec<_> = line.split_whitespace().collect();
                    format!("{} {} {}", words[0], words[2], if words[3] == "-" { "-" } else { "default" })
                })
                .collect();
            assert_eq!(found, expected, "{table}");
        }
    }

    fn references_and_indexes_are_those_of_spec_2(db: &TestDatabase) {
        let references = lines(
            db,
            "SELECT m.name, f.\"from\", f.\"table\", f.\"to\", f.on_delete
         FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
         WHERE m.type = 'table' AND m.name NOT LIKE 'townsquare%'",
        );
        assert_same(
            references,
            &[
                "community_domains community_id community_configs community_id CASCADE",
                "spaces owner_id users id CASCADE",
                "fidgets space_id spaces id CASCADE",
            ],
        );
        let indexes = lines(
            db,
            "SELECT tbl_name, replace(substr(sql, instr(sql, '(')), '= true', '= 1') FROM sqlite_schema
         WHERE type = 'index' AND sql IS NOT NULL AND tbl_name NOT LIKE 'townsquare%'",
        );
        assert_same(
            indexes,
            &[
                "community_configs (community_id)",
                "community_configs (is_published) WHERE is_published = 1",
                "fidgets (space_id)",
                "fidgets (space_id, type)",
                // Not in SPEC 2: pages of fidgets.
                "fidgets (space_id, (created_at IS NULL), created_at, id)",
                "spaces (is_public) WHERE is_public = 1",
                "spaces (is_public, created_at DESC) WHERE is_public = 1",
                "spaces (owner_id)",
                "spaces (owner_id, created_at DESC)",
                // Not in SPEC 2: addresses without case.
                "users (lower(email))",
            ],
        );
    }

    fn internal_objects_have_the_townsquare_prefix(db: &TestDatabase) {
        let tables = lines(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
        for table in tables {
            let public = TABLES.iter().any(|(public, _)| *public == table);
            assert!(public || table.starts_with("townsquare_"), "{table}");
        }
    }

    /// Pages are read from the index of SPEC 2.6 in its order, so their cost does not grow with the table.
    fn listing_public_spaces_uses_the_index(db: &TestDatabase) {
        // The condition of core/src/spaces/statements.rs.
        let source =
            std::fs::read_to_string(workspace().join("core/src/spaces/statements.rs")).expect("the statements");
        let text_after = |marker: &str| {
            let rest = source.split(marker).nth(1).unwrap_or_else(|| panic!("{marker} in the statements"));
            rest.split('"').next().expect("the end of a text").to_owned()
        };
        let condition =
            format!("{} ORDER BY {}", text_after("condition: concat!(\""), text_after("public_spaces!(\"\", order: \""));
        // The conditions of the service and of other callers.
        for policy in ["TRUE", "(spaces.owner_id = 'x' OR NULLIF(spaces.is_public, FALSE) IS NOT NULL)"] {
            let condition = condition.replace("{spaces.select}", policy);
            let plan =
                lines(db, &format!("EXPLAIN QUERY PLAN SELECT * FROM spaces WHERE {condition} LIMIT 20 OFFSET 0"));
            assert!(plan[0].contains("USING INDEX spaces_is_public_created_at_idx"), "{condition}: {plan:?}");
        }
    }
}
