//! A statement, written once and spelt for each engine.
//!
//! Invariant: a statement's text is a constant of this library; what comes from outside is bound, never spliced. In
//! the text stand `$1…$n` in order of first use, the library's own tables as `townsquare.name`, and in braces what
//! depends on the engine or the caller: `{spaces.select}` is that policy's condition (TRUE for the service; a
//! statement that others run has one, also where it lets everything pass: with it comes the question for the session),
//! `{spaces.later $3}` a new `updated_at` that is `$3` but never at or before the row's old one.

use std::sync::OnceLock;

use crate::policy::{Action, Caller, Spell, Table, rule};

/// A statement of this library.
pub(crate) struct Statement {
    text: &'static str,
    #[cfg(feature = "sqlite")]
    sqlite: OnceLock<Spelling>,
    #[cfg(feature = "postgres")]
    postgres: OnceLock<Spelling>,
}

/// How an engine spells what differs.
pub(super) trait Dialect {
    /// `$n` in its syntax.
    fn parameter(number: usize) -> String;
    /// The prefix of the library's own tables.
    const OWN_TABLES: &'static str;
    /// `time` or, where that is no later than what the column `old` holds, a microsecond after that.
    fn later(time: &str, old: &str) -> String;
    /// What a policy asks first: whether the caller's session stands. Nothing where the engine asks by itself.
    const ADMITTED: Option<&'static str>;
    /// Whether the user has linked one of the identity keys that the column lists.
    fn holds_key(user: &str, column: &str) -> String;
}

/// A statement as one engine wants it.
pub(super) struct Spelling {
    /// For the service: every policy is TRUE.
    trusted: String,
    /// For everybody else, where the statement has policies.
    restricted: Option<String>,
    /// Whether those name the caller, whose id is then bound behind the other values.
    binds_caller: bool,
}

/// The text to run, and whether the caller's id is to be bound behind the values.
#[derive(Clone, Copy)]
pub(super) struct Runnable<'a> {
    pub(super) sql: &'a str,
    pub(super) binds_caller: bool,
}

impl Statement {
    pub(crate) const fn new(text: &'static str) -> Statement {
        Statement {
            text,
            #[cfg(feature = "sqlite")]
            sqlite: OnceLock::new(),
            #[cfg(feature = "postgres")]
            postgres: OnceLock::new(),
        }
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn for_sqlite<D: Dialect>(&'static self, caller: Caller) -> Runnable<'static> {
        self.sqlite.get_or_init(|| Spelling::of::<D>(self.text)).runnable(caller)
    }

    #[cfg(feature = "postgres")]
    pub(super) fn for_postgres<D: Dialect>(&'static self, caller: Caller) -> Runnable<'static> {
        self.postgres.get_or_init(|| Spelling::of::<D>(self.text)).runnable(caller)
    }
}

impl Spelling {
    pub(super) fn of<D: Dialect>(text: &str) -> Spelling {
        let caller = D::parameter(parameters(text) + 1);
        let restricted = spell::<D>(text, Some(&caller));
        let trusted = spell::<D>(text, None);
        let binds_caller = spell::<D>(text, Some("NULL")) != restricted;
        Spelling { restricted: (restricted != trusted).then_some(restricted), trusted, binds_caller }
    }

    pub(super) fn runnable(&self, caller: Caller) -> Runnable<'_> {
        match (&self.restricted, caller) {
            (Some(sql), Caller::Anonymous | Caller::User(_)) => Runnable { sql, binds_caller: self.binds_caller },
            _ => Runnable { sql: &self.trusted, binds_caller: false },
        }
    }
}

/// The highest `$n` of a text.
fn parameters(text: &str) -> usize {
    text.split('$').skip(1).map(|rest| leading_number(rest).0).max().unwrap_or(0)
}

fn leading_number(text: &str) -> (usize, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().unwrap_or(0), &text[end..])
}

fn spell<D: Dialect>(text: &str, caller: Option<&str>) -> String {
    let mut sql = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(start) = rest.find(['$', '{']) {
        sql.push_str(&rest[..start]);
        let (mark, tail) = rest[start..].split_at(1);
        if mark == "$" {
            let (number, tail) = leading_number(tail);
            sql.push_str(&D::parameter(number));
            rest = tail;
        } else {
            let (inside, tail) = tail.split_once('}').unwrap_or((tail, ""));
            sql.push_str(&braced::<D>(inside, caller));
            rest = tail;
        }
    }
    sql.push_str(rest);
    sql.replace("townsquare.", D::OWN_TABLES)
}

fn braced<D: Dialect>(inside: &str, caller: Option<&str>) -> String {
    if let Some((table, time)) = inside.split_once(".later $") {
        return D::later(&D::parameter(leading_number(time).0), &format!("{table}.updated_at"));
    }
    let found = Table::ALL.into_iter().find_map(|table| {
        let action = inside.strip_prefix(table.name())?.strip_prefix('.')?;
        Action::ALL.into_iter().find(|known| known.name() == action).map(|action| (table, action))
    });
    match (found, caller) {
        (Some((table, action)), Some(caller)) => {
            let condition = rule(table, action).sql(table, Spell { caller, holds_key: D::holds_key });
            match (D::ADMITTED, action) {
                (None, _) => condition,
                // A new row is all constants: a planner that finds the condition false would ask nothing more.
                (Some(admitted), Action::Insert) => format!("CASE WHEN {admitted} THEN {condition} END"),
                (Some(admitted), _) => format!("({admitted} AND {condition})"),
            }
        }
        (Some(_), None) => "TRUE".to_owned(),
        // A test spells every statement; one that nobody can read would fail there and must not run as if it could.
        (None, _) => format!("<no such policy: {inside}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    struct Plain;
    impl Dialect for Plain {
        const OWN_TABLES: &'static str = "own_";
        const ADMITTED: Option<&'static str> = Some("admitted()");
        fn parameter(number: usize) -> String {
            format!("?{number}")
        }
        fn later(time: &str, old: &str) -> String {
            format!("max({time}, {old})")
        }
        fn holds_key(user: &str, column: &str) -> String {
            format!("holds({user}, {column})")
        }
    }

    #[test]
    fn the_service_is_past_every_policy_and_others_are_bound_behind_the_values() {
        let spelling = Spelling::of::<Plain>("DELETE FROM spaces WHERE id = $1 AND {spaces.delete}");
        let service = spelling.runnable(Caller::Service);
        assert_eq!((service.sql, service.binds_caller), ("DELETE FROM spaces WHERE id = ?1 AND TRUE", false));
        let user = spelling.runnable(Caller::User(Uuid::nil()));
        assert_eq!(user.sql, "DELETE FROM spaces WHERE id = ?1 AND (admitted() AND spaces.owner_id = ?2)");
        assert!(user.binds_caller && spelling.runnable(Caller::Anonymous).binds_caller);
    }

    #[test]
    fn what_everyone_may_see_binds_no_caller_and_still_asks_for_the_session() {
        let spelling = Spelling::of::<Plain>("SELECT id FROM community_domains WHERE {community_domains.select}");
        let user = spelling.runnable(Caller::User(Uuid::nil()));
        assert_eq!(user.sql, "SELECT id FROM community_domains WHERE (admitted() AND TRUE)");
        assert!(!user.binds_caller);
    }

    #[test]
    fn a_new_row_is_looked_at_after_the_session() {
        let spelling = Spelling::of::<Plain>("INSERT INTO spaces SELECT $1 WHERE {spaces.insert}");
        let user = spelling.runnable(Caller::User(Uuid::nil()));
        assert_eq!(user.sql, "INSERT INTO spaces SELECT ?1 WHERE CASE WHEN admitted() THEN spaces.owner_id = ?2 END");
    }

    #[test]
    fn a_statement_without_policies_is_the_same_for_everybody() {
        let spelling = Spelling::of::<Plain>("UPDATE x SET updated_at = {x.later $2} WHERE id = $1");
        let anonymous = spelling.runnable(Caller::Anonymous);
        assert_eq!(anonymous.sql, "UPDATE x SET updated_at = max(?2, x.updated_at) WHERE id = ?1");
        assert!(!anonymous.binds_caller);
    }
}
