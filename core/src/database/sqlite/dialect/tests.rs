//! Holds the two statements of each policy that need no server against each other: its SQL in a SQLite database, and its
//! decision on row images. (PostgreSQL's own policies are held by the integration tests.)

use rusqlite::{Connection, params, types::ValueRef};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::SqliteDialect;
use crate::{
    database::statement::Dialect as _,
    policy::{Action, Image, Spell, Surroundings, Table, quoted, rule},
};

const USERS: usize = 4;

/// A small random database.
struct World {
    connection: Connection,
    state: u64,
}

impl World {
    fn of(seed: u64) -> World {
        let connection = Connection::open_in_memory().expect("a database");
        for sql in [
            include_str!("../../../../migrations/sqlite/0002_tables.sql"),
            include_str!("../../../../migrations/sqlite/0003_auth.sql"),
        ] {
            connection.execute_batch(sql).expect("the tables");
        }
        let mut world = World { connection, state: seed };
        world.fill();
        world
    }

    /// SplitMix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// True, false or NULL.
    fn truth(&mut self) -> Option<bool> {
        [Some(true), Some(false), None][self.below(3) as usize]
    }

    /// A list of keys, some of which nobody holds; or none, or no list.
    fn keys(&mut self) -> Option<String> {
        let many = self.below(4);
        let keys = (0..many).map(|_| match self.below(6) {
            0 => Json::Null,
            key => json!(format!("key-{key}")),
        });
        let keys: Vec<_> = keys.collect();
        if self.below(4) == 0 { None } else { Some(json!(keys).to_string()) }
    }

    fn fill(&mut self) {
        for user in 0..USERS {
            let sql = "INSERT INTO users (id, email) VALUES (?1, ?1)";
            self.connection.execute(sql, [id(user)]).expect("a user");
        }
        for key in 1..4 {
            let holder = id(self.below(USERS as u64) as usize);
            let sql = "INSERT INTO townsquare_identities (public_key, user_id, linked_at) VALUES (?1, ?2, '')";
            self.connection.execute(sql, params![format!("key-{key}"), holder]).expect("a link");
        }
        let spaces = 10..10 + self.below(8) as usize;
        for space in spaces.clone() {
            let owner = self.below(USERS as u64 + 1) as usize;
            let owner = (owner < USERS).then(|| id(owner));
            let sql = "INSERT INTO spaces (id, name, owner_id, is_public) VALUES (?1, 'x', ?2, ?3)";
            let is_public = self.truth();
            self.connection.execute(sql, params![id(space), owner, is_public]).expect("a space");
        }
        for fidget in 30..30 + self.below(10) as usize {
            let space = spaces.start + self.below(spaces.len() as u64 + 1) as usize;
            let space = spaces.contains(&space).then(|| id(space));
            let sql = "INSERT INTO fidgets (id, space_id, type) VALUES (?1, ?2, 'x')";
            self.connection.execute(sql, params![id(fidget), space]).expect("a fidget");
        }
        // Registrations outlive their spaces: some are of none.
        for space in (10..20).filter(|space| space % 2 == 0) {
            let sql =
                r#"INSERT INTO "spaceRegistrations" ("spaceId", "spaceName", "spaceType") VALUES (?1, 'x', 'token')"#;
            self.connection.execute(sql, [id(space)]).expect("a registration");
        }
        for community in 50..50 + self.below(6) as usize {
            let sql = "INSERT INTO community_configs (id, community_id, brand_config, assets_config, community_config,
                fidgets_config, admin_identity_public_keys, is_published) VALUES (?1, ?1, '1', '1', '1', '1', ?2, ?3)";
            let (keys, is_published) = (self.keys(), self.truth());
            self.connection.execute(sql, params![id(community), keys, is_published]).expect("a community");
            let sql =
                "INSERT INTO community_domains (id, community_id, domain, domain_type) VALUES (?1, ?1, ?1, 'custom')";
            self.connection.execute(sql, [id(community)]).expect("a domain");
        }
    }

    /// The rows that a condition on `?1` lets through, as a change of theirs would carry them.
    fn rows(&self, table: Table, condition: &str, value: Option<&str>) -> Vec<Image> {
        let name = quoted(table.name());
        let sql = format!("SELECT * FROM {name} WHERE ?1 IS ?1 AND {condition} ORDER BY 1");
        let mut statement = self.connection.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let columns: Vec<String> = statement.column_names().iter().map(ToString::to_string).collect();
        let rows = statement.query_map([value], |row| {
            let image = columns.iter().enumerate().map(|(place, column)| {
                let is_truth = column.starts_with("is_") || column == "custom_domain_authorized";
                let value = match row.get_ref(place)? {
                    ValueRef::Null => Json::Null,
                    ValueRef::Integer(number) if is_truth => (number != 0).into(),
                    ValueRef::Integer(number) => number.into(),
                    ValueRef::Text(text) => {
                        let text = String::from_utf8_lossy(text);
                        if column == "admin_identity_public_keys" {
                            serde_json::from_str(&text).expect("JSON")
                        } else {
                            text.into()
                        }
                    }
                    other => panic!("{column}: {other:?}"),
                };
                Ok((column.clone(), value))
            });
            image.collect()
        });
        rows.and_then(Iterator::collect).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

impl Surroundings for World {
    fn related(&self, table: Table, column: &str, value: &str) -> Vec<Image> {
        self.rows(table, &format!("{} = ?1", quoted(column)), Some(value))
    }

    fn holds_key(&self, user: Uuid, key: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM townsquare_identities WHERE user_id = ?1 AND public_key = ?2)";
        self.connection.query_row(sql, [&user.to_string(), key], |row| row.get(0)).expect("an answer")
    }
}

fn id(number: usize) -> String {
    Uuid::from_u128(number as u128 + 1).to_string()
}

#[test]
fn a_policy_says_the_same_as_sql_and_as_a_decision() {
    let spell = Spell { caller: "?1", holds_key: SqliteDialect::holds_key };
    // The last is signed in and owns nothing; nobody is NULL.
    let callers = (0..=USERS).map(|user| Some(id(user))).chain([None]);
    let callers: Vec<_> = callers.collect();
    let (mut admitted, mut refused) = (0, 0);
    for seed in 0..150 {
        let world = World::of(seed);
        for table in Table::ALL {
            let all = world.rows(table, "TRUE", None);
            for action in Action::ALL {
                let rule = rule(table, action);
                for caller in &callers {
                    let user = caller.as_deref().map(|id| Uuid::try_parse(id).expect("an id"));
                    let by_sql = world.rows(table, &rule.sql(table, spell), caller.as_deref());
                    let decided = all.iter().filter(|row| rule.admits(row, user, &world)).cloned();
                    let decided: Vec<_> = decided.collect();
                    assert_eq!(decided, by_sql, "seed {seed}: {action} on {} by {user:?}", table.name());
                    admitted += by_sql.len();
                    refused += all.len() - by_sql.len();
                }
            }
        }
    }
    assert!(admitted > 5_000 && refused > 5_000, "{admitted} admitted, {refused} refused");
}
