//! Adoption of a database that another program made (DESIGN 3a), here one like a Supabase project.

use townsquare::{
    Config, ErrorKind, Uuid, auth::NewCredential, blocking::Client, communities::SpaceType, spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind,
    postgres::{APP_ROLE, Server, callers_role, server},
    raw_sql::RawConnection,
    subprocess::in_subprocess,
    test_database::{EmptyDatabase, Engine},
};

use super::roles::{assert_policies_apply, config};
use crate::log::Log;

/// The roles of a Supabase project, with this suffix.
struct Project {
    server: &'static Server,
    database: String,
    suffix: String,
    ann: Uuid,
}

impl Project {
    /// Creates a database with the tables, rows, grants and policies of a project. Its owner is no superuser and bypasses
    /// row-level security.
    fn new() -> Option<Project> {
        let server = server()?;
        let database = server.new_database();
        let suffix = database.replace("test_", "p");
        let project = Project { server, database, ann: Uuid::new_v4(), suffix };
        let administrator = server.administrator(&project.database);
        administrator.run(&project.with_roles(
            "CREATE ROLE postgres_S LOGIN CREATEROLE BYPASSRLS; CREATE ROLE anon_S NOLOGIN; CREATE ROLE authenticated_S NOLOGIN;
             CREATE ROLE service_role_S NOLOGIN BYPASSRLS; GRANT anon_S, authenticated_S, service_role_S TO postgres_S",
        ));
        let owner = project.with_roles(&format!("ALTER DATABASE {} OWNER TO postgres_S", project.database));
        administrator.run(&owner);
        let tables = project.with_roles(
            "CREATE SCHEMA auth; CREATE TABLE auth.users (id UUID PRIMARY KEY, email VARCHAR(255), encrypted_password VARCHAR(255),
                 email_confirmed_at TIMESTAMPTZ DEFAULT now(), deleted_at TIMESTAMPTZ, banned_until TIMESTAMPTZ);
             GRANT USAGE ON SCHEMA auth TO anon_S, authenticated_S;
             CREATE FUNCTION auth.uid() RETURNS UUID LANGUAGE sql STABLE AS $$
                 SELECT NULLIF(current_setting('request.jwt.claim.sub', true), '')::uuid $$;
             GRANT USAGE ON SCHEMA public TO anon_S, authenticated_S, service_role_S;
             ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon_S, authenticated_S, service_role_S;
             CREATE TABLE public.users (id UUID PRIMARY KEY REFERENCES auth.users (id) ON DELETE CASCADE,
                 email TEXT UNIQUE NOT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now(),
                 nickname TEXT);
             CREATE TABLE public.spaces (id UUID PRIMARY KEY DEFAULT gen_random_uuid(), name TEXT NOT NULL, description TEXT,
                 owner_id UUID REFERENCES public.users (id), is_public BOOLEAN NOT NULL DEFAULT false,
                 created_at TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now());
             CREATE TABLE public.\"spaceRegistrations\" (\"spaceId\" UUID PRIMARY KEY, fid BIGINT, \"spaceName\" TEXT NOT NULL,
                 \"spaceType\" TEXT NOT NULL, \"identityPublicKey\" TEXT, signature TEXT, \"timestamp\" TIMESTAMPTZ DEFAULT now());
             ALTER TABLE public.spaces ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON public.spaces USING (auth.uid() = owner_id);
             CREATE POLICY shown ON public.spaces FOR SELECT USING (is_public)",
        );
        project.raw("postgres").run(&tables);
        let ann = project.ann;
        project.raw("postgres").run(&format!(
            "INSERT INTO auth.users VALUES ('{ann}'); INSERT INTO users (id, email) VALUES ('{ann}', 'Mixed@Town.example');
             INSERT INTO spaces (name, owner_id) SELECT 'old', '{ann}' FROM generate_series(1, 100);
             INSERT INTO \"spaceRegistrations\" VALUES (gen_random_uuid(), 7, 'odd', 'unknown type')"
        ));
        Some(project)
    }

    fn with_roles(&self, sql: &str) -> String {
        sql.replace("_S", &format!("_{}", self.suffix))
    }

    fn url(&self, role: &str) -> String {
        self.server.url(&format!("{role}_{}", self.suffix), &self.database)
    }

    fn raw(&self, role: &str) -> RawConnection {
        RawConnection::postgres(&self.url(role)).expect("it connects")
    }

    fn config(&self) -> Config {
        config(&self.url("postgres"))
    }

    /// What the database consists of.
    fn catalog(&self) -> Vec<Vec<Option<String>>> {
        self.server.administrator(&self.database).rows(
            &format!("SELECT 'role', rolname::text FROM pg_roles WHERE rolname LIKE '%{}' OR rolname = (SELECT
                 'townsquare_caller_' || oid FROM pg_database WHERE datname = current_database()) UNION ALL SELECT 'schema', nspname::text FROM pg_namespace
             WHERE nspname !~ '^pg_' UNION ALL SELECT 'table', relname || relrowsecurity::text FROM pg_class
             WHERE relnamespace = 'public'::regnamespace UNION ALL SELECT 'policy', polname::text FROM pg_policy ORDER BY 1, 2", self.suffix),
        )
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.server.drop_database(&self.database);
        let roles = "DROP ROLE postgres_S, anon_S, authenticated_S, service_role_S";
        self.server.administrator("postgres").run(&self.with_roles(roles));
    }
}

#[test]
fn a_database_of_another_program_is_adopted_with_its_rows() {
    let Some(project) = Project::new() else { return };
    let before = project.catalog();
    let error = assert_kind(ErrorKind::Config, Client::open(project.config()));
    for words in ["the option adopt would take them", "users.nickname", "auth.users", "may read users.email"] {
        assert!(error.message().contains(words), "{words}: {error}");
    }
    assert_eq!(project.catalog(), before, "nothing remains of a refused attempt");

    let client = Client::open(project.config().adopt(true)).expect("adopted");
    let service = client.as_service();
    assert_eq!(service.spaces().get_user_spaces(project.ann).expect("a list").len(), 100);
    assert_eq!(client.spaces().get_public_spaces(10, 0).expect("a list"), []);
    let callers = callers_role(&project.raw("postgres"));
    let raw = project.raw("postgres");
    raw.run(&format!("SET ROLE {callers}; SELECT set_config('request.jwt.claim.sub', '{}', false)", project.ann));
    assert_eq!(raw.count("spaces"), 0, "their policies show our callers nothing");

    // Their clients keep what they had.
    let raw = project.raw("postgres");
    raw.run(&project.with_roles("SET ROLE authenticated_S"));
    assert_eq!((raw.count("spaces"), raw.count("users")), (0, 1));
    raw.run(&format!("SELECT set_config('request.jwt.claim.sub', '{}', false)", project.ann));
    assert_eq!(raw.count("spaces"), 100);
    client.close();
    // The second open needs no option.
    Client::open(project.config()).expect("opens").close();
}

#[test]
fn an_existing_address_in_mixed_case_keeps_its_account() {
    let Some(project) = Project::new() else { return };
    let client = Client::open(project.config().adopt(true)).expect("adopted");
    let service = client.as_service();
    let auth = service.auth();
    for address in ["mixed@town.example", "Mixed@Town.example"] {
        assert_kind(ErrorKind::AlreadyExists, auth.sign_up(address, "correct horse"));
        let found = auth.find_user(address).expect("found").expect("a user");
        assert_eq!((found.id, found.email.as_str()), (project.ann, "Mixed@Town.example"));
    }
    auth.set_password(project.ann, "correct horse").expect("set");
    for address in ["mixed@town.example", "MIXED@TOWN.EXAMPLE"] {
        assert_eq!(auth.sign_in(address, "correct horse").expect("signed in").user.id, project.ann);
    }
    // Their table of users decides who may exist.
    assert_kind(ErrorKind::ReferenceMissing, auth.sign_up("new@town.example", "correct horse"));
    client.close();
}

/// The query that the operators' guide documents.
fn documented_query() -> &'static str {
    let guide = include_str!("../../../../core/src/postgres_guide.md");
    let queries: Vec<&str> =
        guide.split("```sql\n").filter_map(|part| part.split_once("```")).map(|(sql, _)| sql).collect();
    queries.into_iter().find(|sql| sql.contains("auth.users")).expect("the guide has the query")
}

#[test]
fn passwords_of_the_other_program_are_imported_by_the_documented_query() {
    let Some(project) = Project::new() else { return };
    let raw = project.raw("postgres");
    // Made by another implementation of bcrypt, for the password `a`.
    let hash = "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe";
    raw.run(&format!("UPDATE auth.users SET email = 'mixed@town.example', encrypted_password = '{hash}'"));
    // Nobody else may sign in: no password, no password of this system, a deleted user, an unconfirmed address, a banned user.
    for (number, password, deleted, confirmed, banned) in [
        (1, "''", "NULL", "now()", "NULL"),
        (2, "NULL", "NULL", "now()", "NULL"),
        (3, "'hash'", "now()", "now()", "NULL"),
        (4, "'hash'", "NULL", "NULL", "NULL"),
        (5, "'hash'", "NULL", "now()", "now() + interval '1 hour'"),
    ] {
        let id = Uuid::new_v4();
        raw.run(&format!(
            "INSERT INTO auth.users VALUES ('{id}', '{number}@town.example', {password}, {confirmed}, {deleted}, {banned});
             INSERT INTO users (id, email) VALUES ('{id}', '{number}@town.example')"
        ));
    }
    raw.run("INSERT INTO auth.users VALUES (gen_random_uuid(), 'no-row@town.example', 'hash')");
    let client = Client::open(project.config().adopt(true)).expect("adopted");
    let row = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
        Ok([Some(id), Some(hash)]) => NewCredential::of_user(id.parse().expect("an id"), hash),
        other => panic!("a row of the query: {other:?}"),
    };
    let rows = || raw.rows(documented_query()).into_iter().map(row).collect::<Vec<_>>();
    let service = client.as_service();
    for expected in [(1, 0), (0, 1)] {
        let report = service.auth().import_credentials(rows()).expect("imported");
        assert_eq!((report.imported, report.unchanged), expected);
    }
    for address in ["Mixed@Town.example", "mixed@town.example", "MIXED@TOWN.EXAMPLE"] {
        assert!(service.auth().sign_in(address, "b").is_err());
        assert_eq!(service.auth().sign_in(address, "a").expect("signed in").user.id, project.ann);
    }
    assert_eq!(raw.count("townsquare.credentials WHERE password_hash LIKE '$argon2id$%'"), 1);
    assert_eq!(raw.value(&format!("SELECT encrypted_password FROM auth.users WHERE id = '{}'", project.ann)), hash);
    client.close();
}

/// The reports of a project without one of the roles of this project's suffix: rows that break a rule, and row-level security.
const REPORTS: [&str; 6] = [
    "rows of \"spaceRegistrations\" that break the rule \"spaceType\" IN ('profile', 'token', 'proposal', 'channel', \
     'navPage') stay as they are: 1, such as 00000000-0000-4000-8000-000000000001",
    "rows of \"spaceRegistrations\" that break the rule fid INTEGER stay as they are: 1, such as \
     00000000-0000-4000-8000-000000000002",
    "row-level security is switched on for users; the policy kept_by_adoption keeps what anon_S, authenticated_S, \
     service_role_S could see and change",
    "these tables are missing and are created: community_configs, community_domains, fidgets",
    "these roles may read users.email, as far as policies let them: anon_S, authenticated_S, service_role_S",
    "users references auth.users: sign-up fails for users that auth.users does not have",
];

/// A refused attempt lists what an adoption then logs.
#[test]
fn an_adoption_reports_what_stays_different_and_whose_rights_it_keeps() {
    in_subprocess(an_adoption_reports_what_stays_different_and_whose_rights_it_keeps, || {
        let log = Log::capture();
        let Some(project) = Project::new() else { return };
        let raw = project.raw("postgres");
        raw.run(
            "UPDATE \"spaceRegistrations\" SET \"spaceId\" = '00000000-0000-4000-8000-000000000001';
             INSERT INTO \"spaceRegistrations\" VALUES
                 ('00000000-0000-4000-8000-000000000002', 5000000000, 'far', 'token'),
                 ('00000000-0000-4000-8000-000000000003', 7, 'good', 'token')",
        );
        let error = assert_kind(ErrorKind::Config, Client::open(project.config()));
        let client = Client::open(project.config().adopt(true)).expect("adopted");
        let log = log.take();
        for report in REPORTS.map(|report| project.with_roles(report)) {
            assert!(error.message().contains(&report), "{report}: {error}");
            assert!(log.contains(&format!("adopting the database: {report}")), "{report}: {log}");
        }
        assert!(!error.message().contains("switched on for spaces"), "it was on: {error}");
        assert!(!error.message().contains("town.example") && !log.contains("town.example"), "no address");
        assert_eq!(raw.count("\"spaceRegistrations\""), 3, "rows stay");
        let good = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0003);
        let found = client.communities().get_space_registration(good).expect("read").expect("a row");
        assert_eq!((found.fid, found.space_name.as_str()), (Some(7), "good"));
        // Rows that break a rule are read, too.
        for (id, fid, space_type) in [(1, Some(7), SpaceType::Other), (2, Some(5_000_000_000), SpaceType::Token)] {
            let id = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000 + id);
            let found = client.communities().get_space_registration(id).expect("read").expect("a row");
            assert_eq!((found.fid, found.space_type), (fid, space_type));
        }
        client.close();
    });
}

#[test]
fn an_adoption_keeps_rights_on_single_columns_and_rights_of_another_owner() {
    let Some(project) = Project::new() else { return };
    let administrator = project.server.administrator(&project.database);
    administrator.run(&project.with_roles(
        "CREATE ROLE keeper_S LOGIN; GRANT keeper_S TO postgres_S; GRANT CREATE ON SCHEMA public TO keeper_S;
         CREATE TABLE public.fidgets (id UUID PRIMARY KEY DEFAULT gen_random_uuid(), space_id UUID, type TEXT NOT NULL,
             config JSONB, position JSONB, created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ);
         ALTER TABLE public.fidgets OWNER TO keeper_S; INSERT INTO fidgets (type) VALUES ('clock');
         ALTER TABLE public.spaces OWNER TO keeper_S; GRANT ALL ON public.spaces TO postgres_S;
         REVOKE ALL ON public.users FROM anon_S; GRANT SELECT (id, created_at) ON public.users TO anon_S",
    ));
    let client = Client::open(project.config().adopt(true)).expect("adopted");
    let seen = |role: &str, query: &str| {
        let raw = project.server.administrator(&project.database);
        raw.run(&project.with_roles(&format!("SET ROLE {role}")));
        raw.value(query)
    };
    assert_eq!(seen("anon_S", "SELECT count(id) FROM users"), "1", "by a right on columns");
    assert_eq!(seen("keeper_S", "SELECT count(*) FROM fidgets"), "1", "the owner of a table");
    assert_eq!(seen("keeper_S", "SELECT count(*) FROM spaces"), "100", "the owner of a table with policies");
    assert_eq!(client.spaces().get_public_spaces(10, 0).expect("a list"), []);
    client.close();
    drop(client);
    administrator.run(
        &project.with_roles("REASSIGN OWNED BY keeper_S TO postgres_S; DROP OWNED BY keeper_S; DROP ROLE keeper_S"),
    );
}

#[test]
fn obstacles_are_named_before_the_option_is_given() {
    for (change, words) in UNFIT {
        let Some(project) = Project::new() else { return };
        project
            .raw("postgres")
            .run(&format!("DELETE FROM spaces; INSERT INTO auth.users VALUES (gen_random_uuid()); {change}"));
        let error = assert_kind(ErrorKind::Config, Client::open(project.config()));
        assert!(error.message().contains(words) && !error.message().contains("would take them"), "{change}: {error}");
    }
}

/// Changes that make a database unfit, and a word of the refusal.
const UNFIT: [(&str, &str); 9] = [
    (
        "ALTER TABLE spaces DROP CONSTRAINT spaces_pkey; INSERT INTO spaces (id, name) VALUES
            ('00000000-0000-4000-8000-000000000007', 'one'), ('00000000-0000-4000-8000-000000000007', 'two')",
        "several rows of spaces have the same id: 00000000-0000-4000-8000-000000000007",
    ),
    ("ALTER TABLE spaces DROP COLUMN description", "spaces.description is missing"),
    ("ALTER TABLE \"spaceRegistrations\" ALTER COLUMN fid TYPE text", "spaceRegistrations.fid is text, not integer"),
    (
        "ALTER TABLE spaces ADD COLUMN tenant INTEGER; ALTER TABLE spaces ALTER COLUMN tenant SET NOT NULL",
        "spaces.tenant",
    ),
    ("ALTER TABLE spaces ALTER COLUMN description SET NOT NULL", "spaces.description does not allow NULL"),
    ("CREATE VIEW fidgets AS SELECT 1 AS id", "fidgets is no table"),
    ("CREATE POLICY curfew ON spaces AS RESTRICTIVE USING (false)", "\"curfew\""),
    ("GRANT SELECT ON users TO PUBLIC", "REVOKE ALL ON public.users FROM PUBLIC"),
    (
        "INSERT INTO users (id, email) SELECT id, 'mixed@TOWN.example' FROM auth.users WHERE id NOT IN (SELECT id FROM users)",
        "differ only in case",
    ),
];

#[test]
fn an_unfit_database_is_refused_unchanged_by_name() {
    for (change, words) in UNFIT {
        let Some(project) = Project::new() else { return };
        project
            .raw("postgres")
            .run(&format!("DELETE FROM spaces; INSERT INTO auth.users VALUES (gen_random_uuid()); {change}"));
        let before = project.catalog();
        let error = assert_kind(ErrorKind::Config, Client::open(project.config().adopt(true)));
        assert!(error.message().contains(words), "{change}: {error}");
        assert_eq!(project.catalog(), before, "{change}");
    }
}

#[test]
fn tables_without_keys_and_policies_get_them() {
    let Some(empty) = EmptyDatabase::on(Engine::Postgres) else { return };
    let raw = empty.raw();
    raw.run(
        "CREATE TABLE users (id UUID NOT NULL, email TEXT NOT NULL, created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ);
         CREATE TABLE spaces (id UUID, name TEXT, description TEXT, owner_id UUID, is_public BOOLEAN, created_at TIMESTAMPTZ,
             updated_at TIMESTAMPTZ);
         INSERT INTO spaces (id, name) VALUES (gen_random_uuid(), 'kept'), (gen_random_uuid(), NULL)",
    );
    let client = Client::open(config(&empty.url()).adopt(true)).expect("adopted");
    assert_policies_apply(&client);
    assert_eq!(raw.count("spaces WHERE owner_id IS NULL"), 2, "rows stay as they are");
    let orphan = NewSpace::named("x").owned_by(Uuid::new_v4());
    assert_kind(ErrorKind::ReferenceMissing, client.as_service().spaces().create_space(orphan));
    assert_eq!(raw.value(&format!("SELECT count(*) FROM pg_class WHERE relowner <> '{APP_ROLE}'::regrole AND relnamespace = 'public'::regnamespace")), "0");
    client.close();
    // The tables stay when the library's own schema is dropped.
    raw.run("DROP SCHEMA townsquare CASCADE");
    let client = Client::open(config(&empty.url()).adopt(true)).expect("adopted again");
    assert_eq!(raw.count("spaces WHERE owner_id IS NULL"), 2, "rows stay as they are");
    client.close();
}
