//! The SQL of spaces and fidgets, in the order of their operations; see `database/statement.rs` for the templates.
//!
//! An INSERT selects its values from a subquery with the table's name, so that the table's insert policy can read the
//! new row.

use super::insert::Insert;
use crate::{
    database::{KeyPages, Page, PageStart, Statement, key_pages},
    policy::Table,
};

/// Inserts a space. `$conflict` says what happens if the id is taken; without it, that is an error.
macro_rules! insert_space {
    ($conflict:literal) => {
        Statement::new(concat!(
            "INSERT INTO spaces (created_at, updated_at, {spaces.new})
             SELECT created_at, created_at, {spaces.new}
             FROM (SELECT $1 AS created_at, {spaces.new $2}) AS spaces
             WHERE {spaces.insert} ",
            $conflict,
            " RETURNING {spaces.row}"
        ))
    };
}

pub(super) static INSERT_SPACE: Insert = Insert {
    table: Table::Spaces,
    insert: insert_space!(""),
    insert_if_new: insert_space!("ON CONFLICT (id) DO NOTHING"),
    // A caller who may not change the row learns nothing about it.
    get_own: Statement::new("SELECT {spaces.columns} FROM spaces WHERE spaces.id = $1 AND {spaces.update}"),
};

pub(super) static GET_SPACE: Statement =
    Statement::new("SELECT {spaces.columns} FROM spaces WHERE spaces.id = $1 AND {spaces.select}").may_lag();

pub(super) static UPDATE_SPACE: Statement = Statement::new(
    "UPDATE spaces SET {spaces.set $3}, updated_at = {spaces.monotonic_updated_at $2}
     WHERE id = $1 AND {spaces.update} RETURNING {spaces.row}",
);

pub(super) static DELETE_SPACE: Statement =
    Statement::new("DELETE FROM spaces WHERE id = $1 AND {spaces.delete} RETURNING id");

pub(super) static LIST_SPACES: KeyPages = key_pages!("spaces", "spaces.id", "{spaces.columns}");

pub(super) static SET_OWNER: Statement = Statement::new(
    "UPDATE spaces SET owner_id = $3, updated_at = {spaces.monotonic_updated_at $2}
     WHERE id = $1 RETURNING {spaces.row}",
);

// A caller who may see a space may see its fidgets: the policy of spaces covers both tables.
pub(super) static GET_USER_SPACES: Statement = Statement::new(
    "SELECT {spaces.columns}, {fidgets.columns}
     FROM spaces LEFT JOIN fidgets ON fidgets.space_id = spaces.id
     WHERE spaces.owner_id = $1 AND {spaces.select}
     ORDER BY spaces.created_at DESC NULLS FIRST, spaces.id, fidgets.created_at NULLS LAST, fidgets.id",
)
.within_memory()
.may_lag();

/// A page of public spaces with their owners. Every caller may see a public space and its owner's e-mail address (SPEC 4.5).
macro_rules! public_spaces {
    ($condition:literal, order: $order:literal, $start:expr, limit: $limit:literal) => {
        Statement::page(Page {
            table: "spaces",
            condition: concat!("spaces.is_public = true AND {spaces.select}", $condition),
            order: $order,
            join: "LEFT JOIN users ON users.id = spaces.owner_id",
            columns: "{spaces.columns}, users.id, users.email, spaces.created_at IS NULL",
            start: $start,
            limit: $limit,
        })
        .ending_early()
        .may_lag()
    };
}

pub(super) static GET_PUBLIC_SPACES: Statement =
    public_spaces!("", order: "spaces.created_at DESC NULLS FIRST, spaces.id", PageStart::Offset("$2"), limit: "$1");

/// The place of a public space in the order of `GET_PUBLIC_SPACES`, together with its id.
pub(super) static GET_POSITION: Statement = Statement::new(
    "SELECT spaces.created_at FROM spaces WHERE spaces.id = $1 AND spaces.is_public = true AND {spaces.select}",
);

// `created_at <= …` alone, so that both engines seek to the place in an index; of the rows created at the same time, the id
// leaves out those before the place. The row's own time, if the row is still there, is exact also where another program
// wrote a time that the library cannot represent.
//
// Under a policy PostgreSQL uses no condition with COALESCE for an index, because it does not count COALESCE as leakproof:
// the subquery's result is a parameter.
pub(super) static GET_PUBLIC_SPACES_AFTER: Statement = public_spaces!(
    " AND spaces.created_at <= (SELECT
         coalesce((SELECT place.created_at FROM spaces AS place WHERE place.id = $2 AND place.is_public = true), $1))
     AND (spaces.id > $2 OR spaces.created_at < (SELECT
         coalesce((SELECT place.created_at FROM spaces AS place WHERE place.id = $2 AND place.is_public = true), $1)))",
    order: "spaces.created_at DESC, spaces.id",
    PageStart::First,
    limit: "$3"
);

// Rows without `created_at` come first, so every row with one follows.
pub(super) static GET_PUBLIC_SPACES_AFTER_NULL: Statement = public_spaces!(
    " AND (spaces.created_at IS NOT NULL OR spaces.id > $1)",
    order: "spaces.created_at DESC NULLS FIRST, spaces.id",
    PageStart::First,
    limit: "$2"
);

/// Which of these addresses their users have verified. For the service.
pub(super) static GET_VERIFIED_EMAILS: Statement = Statement::new(
    "SELECT verified.user_id, verified.email
     FROM users JOIN townsquare.verified_emails AS verified ON verified.user_id = users.id AND verified.email = users.email
     WHERE users.email {any $1}",
);

/// A space with its fidgets. `$join` says what becomes of a space without fidgets.
macro_rules! space_with_fidgets {
    ($join:literal) => {
        Statement::new(concat!(
            "SELECT {spaces.columns}, {fidgets.columns} FROM spaces ",
            $join,
            " fidgets ON fidgets.space_id = spaces.id
             WHERE spaces.id = $1 AND {spaces.select}
             ORDER BY fidgets.created_at IS NULL, fidgets.created_at, fidgets.id"
        ))
        .within_memory()
        .may_lag()
    };
}

pub(super) static GET_SPACE_WITH_FIDGETS: Statement = space_with_fidgets!("JOIN");

pub(super) static GET_SPACE_WITH_ANY_FIDGETS: Statement = space_with_fidgets!("LEFT JOIN");

/// Inserts a fidget, like `insert_space!`.
macro_rules! insert_fidget {
    ($conflict:literal) => {
        Statement::new(concat!(
            "INSERT INTO fidgets (space_id, created_at, updated_at, {fidgets.new})
             SELECT space_id, created_at, created_at, {fidgets.new}
             FROM (SELECT $1 AS space_id, $2 AS created_at, {fidgets.new $3}) AS fidgets
             WHERE {fidgets.insert} ",
            $conflict,
            " RETURNING {fidgets.row}"
        ))
    };
}

pub(super) static INSERT_FIDGET: Insert = Insert {
    table: Table::Fidgets,
    insert: insert_fidget!(""),
    insert_if_new: insert_fidget!("ON CONFLICT (id) DO NOTHING"),
    get_own: Statement::new("SELECT {fidgets.columns} FROM fidgets WHERE fidgets.id = $1 AND {fidgets.update}"),
};

pub(super) static SAVE_POSITION: Statement = Statement::new(
    "UPDATE fidgets SET position = $3, updated_at = {fidgets.monotonic_updated_at $4}
     WHERE id = $1 AND space_id = $2 AND {fidgets.update} RETURNING {fidgets.row}",
);

pub(super) static GET_FIDGET: Statement =
    Statement::new("SELECT {fidgets.columns} FROM fidgets WHERE fidgets.id = $1 AND {fidgets.select}").may_lag();

pub(super) static UPDATE_FIDGET: Statement = Statement::new(
    "UPDATE fidgets SET {fidgets.set $3}, updated_at = {fidgets.monotonic_updated_at $2}
     WHERE id = $1 AND {fidgets.update} RETURNING {fidgets.row}",
);

pub(super) static DELETE_FIDGET: Statement =
    Statement::new("DELETE FROM fidgets WHERE id = $1 AND {fidgets.delete} RETURNING id");

pub(super) static GET_SPACE_FIDGETS: Statement = Statement::new(
    "SELECT {fidgets.columns} FROM fidgets WHERE fidgets.space_id = $1 AND {fidgets.select}
     ORDER BY fidgets.created_at IS NULL, fidgets.created_at, fidgets.id",
)
.within_memory()
.may_lag();

/// The first `$2` fidgets of a space.
pub(super) static GET_FIRST_FIDGETS: Statement = Statement::new(
    "SELECT {fidgets.columns} FROM fidgets WHERE fidgets.space_id = $1 AND {fidgets.select}
     ORDER BY fidgets.created_at IS NULL, fidgets.created_at, fidgets.id LIMIT $2",
)
.ending_early()
.may_lag();

// The place is the row's own time, as long as the row is there; another program may have written NULL.
pub(super) static GET_FIDGETS_AFTER: Statement = Statement::new(
    "SELECT {fidgets.columns} FROM fidgets WHERE fidgets.space_id = $1 AND {fidgets.select}
     AND CASE WHEN EXISTS (SELECT 1 FROM fidgets AS place
             WHERE place.id = $3 AND place.space_id = $1 AND place.created_at IS NULL)
         THEN fidgets.created_at IS NULL AND fidgets.id > $3
         ELSE fidgets.created_at IS NULL
             OR fidgets.created_at >
                 coalesce((SELECT place.created_at FROM fidgets AS place WHERE place.id = $3 AND place.space_id = $1), $4)
             OR fidgets.created_at =
                 coalesce((SELECT place.created_at FROM fidgets AS place WHERE place.id = $3 AND place.space_id = $1), $4)
                 AND fidgets.id > $3
         END
     ORDER BY fidgets.created_at IS NULL, fidgets.created_at, fidgets.id LIMIT $2",
)
.ending_early()
.may_lag();

pub(super) static HAS_FIDGET: Statement = Statement::new(
    "SELECT fidgets.id FROM fidgets WHERE fidgets.id = $1 AND fidgets.space_id = $2 AND {fidgets.select}",
);
