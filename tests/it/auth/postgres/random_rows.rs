//! Random rows: what each caller sees and changes by plain SQL is compared with the rights of the reference model
//! (`model::rights`), for every table and action, NULLs included.

use std::collections::{BTreeMap, BTreeSet};

use townsquare::Uuid;
use townsquare_tests::{
    Rng, on_engine,
    postgres::{callers_role, insert_session},
    raw_sql::{RawConnection, quoted},
    setting::seed,
};

use crate::model::rights::Principal;

/// Owner and visibility of a space.
type Space = (Option<Uuid>, Option<bool>);

/// Rows by id, with the columns that the rights depend on.
#[derive(Default)]
struct World {
    users: Vec<Uuid>,
    spaces: BTreeMap<Uuid, Space>,
    /// The space of each fidget.
    fidgets: BTreeMap<Uuid, Option<Uuid>>,
    /// Visibility and admin keys.
    communities: BTreeMap<Uuid, (Option<bool>, Option<Vec<String>>)>,
    domains: BTreeSet<Uuid>,
    registrations: BTreeSet<Uuid>,
    holders: BTreeMap<String, Uuid>,
}

/// Ids as text.
type Ids = BTreeSet<String>;

fn random_flag(random: &mut Rng) -> Option<bool> {
    [Some(true), Some(false), None][random.usize(..3)]
}

fn sql<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| quoted(&value.to_string()))
}

impl World {
    /// Inserts random rows into an empty database.
    fn fill(raw: &RawConnection, random: &mut Rng) -> World {
        let mut world = World::default();
        let new_id = |random: &mut Rng| Uuid::from_u128(random.u128(..));
        for number in 0..4 {
            let user = new_id(random);
            raw.run(&format!("INSERT INTO users (id, email) VALUES ('{user}', '{number}')"));
            world.users.push(user);
        }
        for number in 0..3 {
            let (key, user) = (format!("key-{number}"), *random.choice(&world.users).expect("users"));
            raw.run(&format!("INSERT INTO townsquare.identities VALUES ('{key}', '{user}', now())"));
            world.holders.insert(key, user);
        }
        for _ in 0..7 {
            let (id, row) = (
                new_id(random),
                (
                    if random.u32(..100) < 20 { None } else { Some(*random.choice(&world.users).expect("users")) },
                    random_flag(random),
                ),
            );
            let values = format!("'{id}', 'x', {}, {}", sql(row.0), sql(row.1));
            raw.run(&format!("INSERT INTO spaces (id, name, owner_id, is_public) VALUES ({values})"));
            world.spaces.insert(id, row);
        }
        let spaces: Vec<_> = world.spaces.keys().copied().collect();
        for _ in 0..9 {
            let (id, space) = (
                new_id(random),
                if random.u32(..100) < 15 { None } else { Some(*random.choice(&spaces).expect("spaces")) },
            );
            raw.run(&format!("INSERT INTO fidgets (id, space_id, type) VALUES ('{id}', {}, 'x')", sql(space)));
            world.fidgets.insert(id, space);
        }
        for space in spaces.iter().copied().take(3).chain([new_id(random)]) {
            let values = format!("'{space}', 'x', 'token'");
            raw.run(&format!(
                r#"INSERT INTO "spaceRegistrations" ("spaceId", "spaceName", "spaceType") VALUES ({values})"#
            ));
            world.registrations.insert(space);
        }
        for _ in 0..6 {
            let (id, is_published) = (new_id(random), random_flag(random));
            let keys = (0..random.usize(..3)).map(|_| format!("key-{}", random.usize(..5))).collect::<Vec<_>>();
            let keys = if random.u32(..100) < 25 { None } else { Some(keys) };
            let array = keys.as_ref().map(|keys| format!("{{{}}}", keys.join(",")));
            raw.run(&format!(
                "INSERT INTO community_configs (id, community_id, brand_config, assets_config, community_config,
                 fidgets_config, is_published, admin_identity_public_keys)
                 VALUES ('{id}', '{id}', '1', '1', '1', '1', {}, {})",
                sql(is_published),
                sql(array)
            ));
            raw.run(&format!(
                "INSERT INTO community_domains (id, community_id, domain, domain_type) VALUES ('{id}', '{id}', '{id}', 'custom')"
            ));
            world.communities.insert(id, (is_published, keys));
            world.domains.insert(id);
        }
        world
    }

    fn space_of(&self, fidget: Option<Uuid>) -> Option<Space> {
        fidget.and_then(|space| self.spaces.get(&space)).copied()
    }

    fn owns_public_space(&self, user: Uuid) -> bool {
        self.spaces.values().any(|(owner, is_public)| *owner == Some(user) && *is_public == Some(true))
    }

    /// Returns the ids that `SELECT` must return.
    fn visible(&self, principal: Principal, table: &str) -> Ids {
        match table {
            "users" => {
                ids(self.users.iter().filter(|user| principal.sees_user(**user, self.owns_public_space(**user))))
            }
            "spaces" => pick(&self.spaces, |(owner, is_public)| principal.sees_space(*owner, *is_public)),
            "fidgets" => pick(&self.fidgets, |space| {
                self.space_of(*space).is_some_and(|(owner, is_public)| principal.sees_space(owner, is_public))
            }),
            "community_configs" => pick(&self.communities, |(is_published, _)| principal.sees_community(*is_published)),
            "community_domains" => ids(&self.domains),
            _ => ids(&self.registrations),
        }
    }

    /// Returns the ids that `UPDATE … RETURNING` must return.
    fn updated(&self, principal: Principal, table: &str) -> Ids {
        match table {
            "community_configs" => pick(&self.communities, |(is_published, keys)| {
                let holder = |key: &str| self.holders.get(key).copied();
                principal.sets_navigation(*is_published, keys.as_deref().unwrap_or_default(), holder)
            }),
            _ => self.deleted(principal, table),
        }
    }

    /// Returns the ids that `DELETE … RETURNING` must return.
    fn deleted(&self, principal: Principal, table: &str) -> Ids {
        match table {
            "spaces" => pick(&self.spaces, |(owner, _)| principal.owns_space(*owner)),
            "fidgets" => {
                pick(&self.fidgets, |space| self.space_of(*space).is_some_and(|(owner, _)| principal.owns_space(owner)))
            }
            // Only the service may write.
            _ => Ids::new(),
        }
    }
}

fn ids<'a>(all: impl IntoIterator<Item = &'a Uuid>) -> Ids {
    all.into_iter().map(ToString::to_string).collect()
}

fn pick<T>(rows: &BTreeMap<Uuid, T>, passes: impl Fn(&T) -> bool) -> Ids {
    ids(rows.iter().filter(|(_, row)| passes(row)).map(|(id, _)| id))
}

/// How many rows of a table a statement changes that reads none of them: it has neither `WHERE` nor `RETURNING`. `None` where the
/// statement is not granted.
fn blindly_changed(raw: &RawConnection, principal: Principal, table: &str, statement: &str) -> Option<usize> {
    let changed = format!("{table} AS changed WHERE xmin = pg_current_xact_id()::xid");
    let before = raw.count(table);
    begin_as(raw, principal);
    let outcome = raw.try_rows(statement);
    // As the owner of the tables.
    let count = outcome.as_ref().ok().map(|_| {
        raw.run("RESET ROLE");
        before - raw.count(table) + raw.count(&changed)
    });
    raw.run("ROLLBACK");
    match outcome {
        Err(error) if !error.contains("permission denied for table") => panic!("{statement}: {error}"),
        _ => count,
    }
}

/// Begins a transaction of a caller.
fn begin_as(raw: &RawConnection, principal: Principal) {
    let session = match principal {
        Principal::User(id) => insert_session(raw, id),
        Principal::Anonymous => String::new(),
        Principal::Service => panic!("the service is past every policy"),
    };
    let callers = callers_role(raw);
    raw.run(&format!("BEGIN; SET LOCAL ROLE {callers}; SELECT set_config('townsquare.session', '{session}', true)"));
}

/// Runs a statement for a caller and rolls it back; returns its ids, none where the statement is not granted.
fn returned_ids(raw: &RawConnection, principal: Principal, sql: &str) -> Result<Ids, String> {
    begin_as(raw, principal);
    let found = raw.try_rows(sql);
    raw.run("ROLLBACK");
    match found {
        Ok(rows) => Ok(rows.into_iter().map(|row| row[0].clone().expect("an id")).collect()),
        Err(error) if error.contains("permission denied for table") => Ok(Ids::new()),
        Err(error) => Err(error),
    }
}

fn check_inserts(world: &World, raw: &RawConnection, principal: Principal) {
    let strangers = [None, Some(Uuid::from_u128(7))];
    let holds = |sql: &str, due: bool| match returned_ids(raw, principal, sql) {
        Ok(made) => assert_eq!(!made.is_empty(), due, "{sql} by {principal:?}"),
        Err(error) => {
            assert!(!due && error.contains("violates row-level security policy"), "{sql} by {principal:?}: {error}");
        }
    };
    for owner in world.users.iter().copied().map(Some).chain(strangers) {
        let insert = format!("INSERT INTO spaces (name, owner_id) VALUES ('x', {}) RETURNING id", sql(owner));
        holds(&insert, principal.owns_space(owner));
    }
    for space in world.spaces.keys().copied().map(Some).chain(strangers) {
        let owns = world.space_of(space).is_some_and(|(owner, _)| principal.owns_space(owner));
        holds(&format!("INSERT INTO fidgets (space_id, type) VALUES ({}, 'x') RETURNING id", sql(space)), owns);
        if let Some(space) = space.filter(|space| !world.registrations.contains(space)) {
            let values = format!("'{space}', 'x', 'token'");
            let into = r#""spaceRegistrations" ("spaceId", "spaceName", "spaceType")"#;
            holds(&format!(r#"INSERT INTO {into} VALUES ({values}) RETURNING "spaceId""#), owns);
        }
    }
}

on_engine! { Postgres in postgres;
    fn every_policy_matches_the_rights(db: &TestDatabase) {
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        let mut random = Rng::with_seed(seed(4));
        for round in 0..12 {
            raw.run(
                "DELETE FROM users; DELETE FROM spaces; DELETE FROM fidgets; DELETE FROM community_configs;
             DELETE FROM \"spaceRegistrations\"",
            );
            let world = World::fill(&raw, &mut random);
            let callers: Vec<_> = world.users.iter().map(|id| Principal::User(*id)).chain([Principal::Anonymous]).collect();
            for principal in callers {
                for (table, key, change) in [
                    ("users", "id", "updated_at = now()"),
                    ("spaces", "id", "name = 'mine'"),
                    ("fidgets", "id", "type = 'mine'"),
                    ("community_configs", "id", "navigation_config = '1'"),
                    ("community_domains", "id", "domain_type = 'custom'"),
                    ("\"spaceRegistrations\"", "\"spaceId\"", "fid = 1"),
                ] {
                    for (due, statement) in [
                        (world.visible(principal, table), format!("SELECT {key} FROM {table}")),
                        (world.updated(principal, table), format!("UPDATE {table} SET {change} RETURNING {key}")),
                        (world.deleted(principal, table), format!("DELETE FROM {table} RETURNING {key}")),
                    ] {
                        assert_eq!(returned_ids(&raw, principal, &statement), Ok(due), "round {round}: {statement} by {principal:?}");
                    }
                    for (due, statement) in [
                        (world.updated(principal, table), format!("UPDATE {table} SET {change}")),
                        (world.deleted(principal, table), format!("DELETE FROM {table}")),
                    ] {
                        let changed = blindly_changed(&raw, principal, table, &statement).unwrap_or(0);
                        assert_eq!(changed, due.len(), "round {round}: {statement} by {principal:?}");
                    }
                }
                check_inserts(&world, &raw, principal);
            }
        }
    }
}
