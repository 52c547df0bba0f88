//! Login roles: the policies apply to every role, or `open` fails (DESIGN 4).

use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::Client,
    spaces::{NewSpace, Space},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    postgres::{OWNER_ROLE, Server, callers_role, insert_session, server},
    raw_sql::RawConnection,
    test_database::TestDatabase,
};

use crate::auth::users::PASSWORD;

pub(super) fn config(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// A temporary database that a role owns.
pub(super) struct OwnedDatabase {
    server: &'static Server,
    role: String,
    database: String,
}

impl OwnedDatabase {
    pub(super) fn owned_by(server: &'static Server, role: &str) -> OwnedDatabase {
        let database = server.new_database();
        server.administrator("postgres").run(&format!("ALTER DATABASE {database} OWNER TO {role}"));
        OwnedDatabase { server, role: role.to_owned(), database }
    }

    pub(super) fn url(&self) -> String {
        self.server.url(&self.role, &self.database)
    }

    pub(super) fn raw(&self) -> RawConnection {
        RawConnection::postgres(&self.url()).expect("the server runs")
    }
}

impl Drop for OwnedDatabase {
    fn drop(&mut self) {
        self.server.drop_database(&self.database);
    }
}

/// Signs up a user and creates a private space.
pub(super) fn user_with_space(client: &Client, name: &str) -> (Client, Space) {
    let (address, service) = (format!("{name}@town.example"), client.as_service());
    service.auth().sign_up(&address, PASSWORD).expect("signed up");
    let session = service.auth().sign_in(&address, PASSWORD).expect("a session to hand out");
    let handle = client.as_user(&session.access_token).expect("a handle");
    let space = handle.spaces().create_space(NewSpace::named(name)).expect("a space");
    (handle, space)
}

/// Checks that two users and an anonymous caller see and change only their own rows.
pub(super) fn assert_policies_apply(client: &Client) -> (Space, Space) {
    let ((ann, of_ann), (bob, of_bob)) = (user_with_space(client, "ann"), user_with_space(client, "bob"));
    for (who, own, other) in [(&ann, &of_ann, &of_bob), (&bob, &of_bob, &of_ann)] {
        assert_eq!(who.spaces().get_space(own.id).expect("one's own"), *own);
        assert_kind(ErrorKind::NotFound, who.spaces().get_space(other.id));
        assert_kind(ErrorKind::NotFound, who.spaces().delete_space(other.id));
        let gift = NewSpace::named("gift").owned_by(other.owner_id.expect("owned"));
        assert_kind(ErrorKind::Forbidden, who.spaces().create_space(gift));
    }
    assert_kind(ErrorKind::NotFound, client.spaces().get_space(of_ann.id));
    assert_eq!(client.spaces().get_public_spaces(100, 0).expect("a list"), []);
    assert_eq!(client.as_service().spaces().get_space(of_ann.id).expect("the service sees it"), of_ann);
    (of_ann, of_bob)
}

#[test]
fn policies_bind_a_role_that_only_owns_its_database() {
    let Some(server) = server() else { return };
    let owned = OwnedDatabase::owned_by(server, OWNER_ROLE);
    let client = Client::open(config(&owned.url())).expect("opens");
    let (of_ann, _) = assert_policies_apply(&client);
    let raw = owned.raw();
    assert_eq!(raw.count(&format!("pg_roles WHERE rolname = '{}'", callers_role(&raw))), 0, "one role for all");
    let session = insert_session(&raw, of_ann.owner_id.expect("owned"));
    raw.run(&format!(
        "SELECT set_config('townsquare.caller', 'user', false), set_config('townsquare.session', '{session}', false)"
    ));
    assert_eq!(raw.rows("SELECT id FROM spaces"), [[Some(of_ann.id.to_string())]]);
    let gift = raw.try_rows(&format!("UPDATE spaces SET owner_id = '{}'", Uuid::nil()));
    assert!(gift.expect_err("a gift").contains("violates row-level security policy"));
    raw.run("SELECT set_config('townsquare.session', '', false)");
    assert_eq!(raw.rows("SELECT id FROM spaces").len(), 0);
    assert!(raw.try_rows("INSERT INTO users (email) VALUES ('x')").is_err());
    client.close();
}

#[test]
fn policies_bind_every_caller_but_the_service_under_a_superuser() {
    let Some(server) = server() else { return };
    let owned = OwnedDatabase::owned_by(server, "postgres");
    let client = Client::open(config(&owned.url())).expect("opens");
    assert_policies_apply(&client);
    client.close();
}

#[test]
fn a_role_that_bypasses_row_security_and_cannot_set_role_is_refused() {
    let Some(server) = server() else { return };
    let role = format!("nosy_{}", Uuid::new_v4().simple());
    let administrator = server.administrator("postgres");
    administrator.run(&format!("CREATE ROLE {role} LOGIN BYPASSRLS"));
    let owned = OwnedDatabase::owned_by(server, &role);
    let error = assert_kind(ErrorKind::Config, Client::open(config(&owned.url())));
    let sentence = "Open failed: Option database_url: row-level security would not hold: the login role bypasses it";
    assert!(error.to_string().starts_with(sentence), "{error}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname IN ('public', 'townsquare')";
    assert_eq!(owned.raw().value(tables), "0", "and nothing was made");
    let callers = callers_role(&owned.raw());
    assert!(error.message().contains(&format!("CREATE ROLE {callers} NOLOGIN; GRANT {callers} TO")), "{error}");
    administrator.run(&format!("CREATE ROLE {callers} NOLOGIN; GRANT {callers} TO {role}"));
    let client = Client::open(config(&owned.url())).expect("now it can");
    assert_policies_apply(&client);
    client.close();
    drop(owned);
    administrator.run(&format!("DROP ROLE {role}"));
}

/// Changes to the policies by plain SQL.
const BY_HAND: [&str; 7] = [
    "DROP POLICY townsquare_select ON spaces",
    "ALTER POLICY townsquare_select ON spaces USING (true)",
    "ALTER POLICY townsquare_insert ON spaces WITH CHECK (true)",
    "ALTER TABLE spaces DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE spaces NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY townsquare_service ON fidgets",
    "ALTER POLICY townsquare_select ON spaces TO PUBLIC",
];

fn policies(db: &TestDatabase) -> Vec<Vec<Option<String>>> {
    db.raw.rows(
        "SELECT relname::text, relrowsecurity::text, relforcerowsecurity::text, polname::text, polcmd::text, polroles::text,
             pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)
         FROM pg_class JOIN pg_policy ON polrelid = pg_class.oid ORDER BY relname, polname",
    )
}

on_engine! { Postgres in postgres;
    fn open_restores_changed_policies(db: &TestDatabase) {
        let before = policies(db);
        assert!(before.len() > 15);
        for sql in BY_HAND {
            db.raw.run(sql);
            assert_ne!(policies(db), before, "{sql}");
            db.another().close();
            assert_eq!(policies(db), before, "{sql}");
        }
    }

    fn dropped_policies_show_no_more_rows(db: &TestDatabase) {
        let (ann, of_ann) = user_with_space(&db.client, "ann");
        let (bob, _) = user_with_space(&db.client, "bob");
        for sql in BY_HAND {
            db.raw.run(sql);
            for stranger in [&bob, &db.client] {
                assert_kind(ErrorKind::NotFound, stranger.spaces().get_space(of_ann.id));
                assert_kind(ErrorKind::NotFound, stranger.spaces().delete_space(of_ann.id));
                let gift = NewSpace::named("gift").owned_by(of_ann.owner_id.expect("owned"));
                assert_kind(ErrorKind::Forbidden, stranger.spaces().create_space(gift));
            }
            db.another().close();
            assert_eq!(ann.spaces().get_space(of_ann.id).expect("hers again"), of_ann);
        }
    }
}
