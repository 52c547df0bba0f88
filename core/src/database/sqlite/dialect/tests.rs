//! Compares the two forms of each policy that need no server, on random rows: its SQL in SQLite, and its evaluation on
//! rows in memory. (Integration tests cover PostgreSQL's row-level security policies.)

use std::borrow::Cow;

use rusqlite::{Connection, params, types::ValueRef};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::SqliteDialect;
use crate::{
    clock::Clock,
    database::{sqlite::migrate, statement::Dialect as _},
    policy::{Action, Caller, Predicate, RelatedRows, RowImage, SqlContext, Table, listed, may_see, quoted, rule},
};

const USERS: usize = 4;

const CONTEXT: SqlContext<'static> = SqlContext {
    caller: "?1",
    holds_key: SqliteDialect::holds_key,
    linked: SqliteDialect::linked,
    claimable: SqliteDialect::claimable,
};

/// A database with random rows.
struct RandomDatabase {
    connection: Connection,
    state: u64,
}

impl RandomDatabase {
    fn new(seed: u64) -> RandomDatabase {
        let mut connection = Connection::open_in_memory().expect("a database");
        migrate::run(&mut connection, 0, &Clock::default()).expect("the tables");
        let mut database = RandomDatabase { connection, state: seed };
        database.fill();
        database.fill_files();
        database
    }

    /// A random number below `bound` (SplitMix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// True, false or NULL.
    fn boolean(&mut self) -> Option<bool> {
        [Some(true), Some(false), None][self.below(3) as usize]
    }

    /// A JSON list of up to three keys, linked or not, or NULL.
    fn keys(&mut self) -> Option<String> {
        let count = self.below(4);
        let keys = (0..count).map(|_| match self.below(6) {
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
            let is_public = self.boolean();
            self.connection.execute(sql, params![id(space), owner, is_public]).expect("a space");
        }
        for fidget in 30..30 + self.below(10) as usize {
            let space = spaces.start + self.below(spaces.len() as u64 + 1) as usize;
            let space = spaces.contains(&space).then(|| id(space));
            let sql = "INSERT INTO fidgets (id, space_id, type) VALUES (?1, ?2, 'x')";
            self.connection.execute(sql, params![id(fidget), space]).expect("a fidget");
        }
        // A registration outlives its space, so some of these spaces do not exist.
        for space in (10..20).filter(|space| space % 2 == 0) {
            let sql =
                r#"INSERT INTO "spaceRegistrations" ("spaceId", "spaceName", "spaceType") VALUES (?1, 'x', 'token')"#;
            self.connection.execute(sql, [id(space)]).expect("a registration");
        }
        for community in 50..50 + self.below(6) as usize {
            let sql = "INSERT INTO community_configs (id, community_id, brand_config, assets_config, community_config,
                fidgets_config, admin_identity_public_keys, is_published) VALUES (?1, ?1, '1', '1', '1', '1', ?2, ?3)";
            let (keys, is_published) = (self.keys(), self.boolean());
            self.connection.execute(sql, params![id(community), keys, is_published]).expect("a community");
            let sql =
                "INSERT INTO community_domains (id, community_id, domain, domain_type) VALUES (?1, ?1, ?1, 'custom')";
            self.connection.execute(sql, [id(community)]).expect("a domain");
        }
    }

    fn fill_files(&mut self) {
        for file in 0..10 + self.below(20) as usize {
            let (bucket, access) = [("spaces", "spaces"), ("private", "private"), ("assets", "public")][file % 3];
            let segment = match self.below(4) {
                3 => ["images", "Videos"][self.below(2) as usize].to_owned(),
                0 => format!("key-{}", self.below(6)),
                1 => id(10 + self.below(8) as usize),
                _ => id(self.below(USERS as u64) as usize),
            };
            let space = (access == "spaces" && Uuid::try_parse(&segment).is_ok()).then(|| segment.clone());
            let owner = self.below(USERS as u64 + 1) as usize;
            let owner = (owner < USERS).then(|| id(owner));
            let sql = "INSERT INTO townsquare_files (bucket, path, access, space_id, first_segment, owner_id, size,
                content_type, cache_control, etag, is_inline, updated_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, '', 0, '', 1, '')";
            let path = format!("{segment}/{file}");
            self.connection.execute(sql, params![bucket, path, access, space, segment, owner]).expect("a file");
        }
    }

    /// The rows that meet a condition on `?1`, in the form of a change event.
    fn rows(&self, table: Table, condition: &str, value: Option<&str>) -> Vec<RowImage> {
        let name = match table {
            Table::Files => "townsquare_files AS files".to_owned(),
            _ => quoted(table.name()),
        };
        let sql = format!("SELECT * FROM {name} WHERE ?1 IS ?1 AND {condition} ORDER BY 1, 2");
        let mut statement = self.connection.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let columns: Vec<String> = statement.column_names().iter().map(ToString::to_string).collect();
        let rows = statement.query_map([value], |row| {
            let image = columns.iter().enumerate().map(|(index, column)| {
                let is_boolean = column.starts_with("is_") || column == "custom_domain_authorized";
                let value = match row.get_ref(index)? {
                    ValueRef::Null => Json::Null,
                    ValueRef::Integer(number) if is_boolean => (number != 0).into(),
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

impl RelatedRows for RandomDatabase {
    fn related(&self, table: Table, column: &str, value: &str) -> Vec<Cow<'_, RowImage>> {
        let rows = self.rows(table, &format!("{} = ?1", quoted(column)), Some(value));
        rows.into_iter().map(Cow::Owned).collect()
    }

    fn holds_key(&self, user: Uuid, key: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM townsquare_identities WHERE user_id = ?1 AND public_key = ?2)";
        self.connection.query_row(sql, [&user.to_string(), key], |row| row.get(0)).expect("an answer")
    }

    fn is_claimable(&self, id: &str) -> bool {
        let has = |table: Table, condition: &str| !self.rows(table, condition, Some(id)).is_empty();
        let former = "SELECT EXISTS (SELECT 1 FROM townsquare_former_spaces WHERE id = ?1)";
        let is_former = || self.connection.query_row(former, [id], |row| row.get::<_, bool>(0)).expect("an answer");
        has(Table::Spaces, "id = ?1")
            || !has(Table::SpaceRegistrations, "\"spaceId\" = ?1")
                && !has(Table::Files, "bucket = 'spaces' AND first_segment = ?1")
                && !is_former()
    }
}

fn id(number: usize) -> String {
    Uuid::from_u128(number as u128 + 1).to_string()
}

#[test]
fn a_policy_allows_the_same_rows_as_sql_and_in_memory() {
    // The last user owns nothing; the anonymous caller is NULL.
    let callers = (0..=USERS).map(|user| Some(id(user))).chain([None]);
    let callers: Vec<_> = callers.collect();
    let (mut allowed, mut refused) = (0, 0);
    for seed in 0..150 {
        let database = RandomDatabase::new(seed);
        for table in Table::ALL {
            let all = database.rows(table, "TRUE", None);
            for action in Action::ALL {
                let rule = rule(table, action);
                for caller in &callers {
                    let user = caller.as_deref().map(|id| Uuid::try_parse(id).expect("an id"));
                    let by_sql = database.rows(table, &rule.sql(table, CONTEXT), caller.as_deref());
                    let in_memory = all.iter().filter(|row| rule.allows(row, user, &database)).cloned();
                    let in_memory: Vec<_> = in_memory.collect();
                    assert_eq!(in_memory, by_sql, "seed {seed}: {action} on {} by {user:?}", table.name());
                    allowed += by_sql.len();
                    refused += all.len() - by_sql.len();
                }
            }
        }
    }
    assert!(allowed > 5_000 && refused > 5_000, "{allowed} allowed, {refused} refused");
}

/// What the feed stores beside a row, so that the policy can judge it.
fn context_of(database: &RandomDatabase, table: Table, row: &RowImage) -> Option<RowImage> {
    let text = |column: &str| row.get(column).and_then(Json::as_str);
    match table {
        Table::Fidgets => database.rows(Table::Spaces, "id = ?1", Some(text("space_id")?)).pop(),
        Table::Files => {
            let users = (0..USERS).map(|user| Uuid::try_parse(&id(user)).expect("an id"));
            let holder =
                users.into_iter().find(|user| database.holds_key(*user, text("first_segment").unwrap_or_default()));
            let own = ["access", "first_segment", "space_id"].map(|column| (column, row[column].clone()));
            let holder = ("holder", holder.map_or(Json::Null, |user| user.to_string().into()));
            let space = database.rows(Table::Spaces, "id = ?1", text("space_id")).pop().unwrap_or_default();
            let of_space =
                ["owner_id", "is_public"].map(|column| (column, space.get(column).cloned().unwrap_or_default()));
            let context = own.into_iter().chain([holder]).chain(of_space);
            Some(context.map(|(name, value)| (name.to_owned(), value)).collect())
        }
        _ => None,
    }
}

#[test]
fn the_feed_shows_the_rows_that_lists_show_and_users_to_themselves() {
    let callers: Vec<_> = (0..=USERS).map(|user| Some(id(user))).chain([None]).collect();
    let (mut shown, mut hidden) = (0, 0);
    for seed in 0..100 {
        let database = RandomDatabase::new(seed);
        for table in Table::ALL {
            let rule = if table == Table::Users { &Predicate::CallerIs("id") } else { listed(table) };
            let all = database.rows(table, "TRUE", None);
            for caller in &callers {
                let by_sql = database.rows(table, &rule.sql(table, CONTEXT), caller.as_deref());
                let user = caller.as_deref().map(|id| Uuid::try_parse(id).expect("an id"));
                let caller = user.map_or(Caller::Anonymous, Caller::User);
                let shows = |row: &&RowImage| may_see(table, caller, row, context_of(&database, table, row).as_ref());
                let in_feed: Vec<_> = all.iter().filter(shows).cloned().collect();
                assert_eq!(in_feed, by_sql, "seed {seed}: {} for {user:?}", table.name());
                shown += by_sql.len();
                hidden += all.len() - by_sql.len();
            }
        }
    }
    assert!(shown > 1_000 && hidden > 1_000, "{shown} shown, {hidden} hidden");
}
