//! The SQL of spaces and fidgets, each statement once for both engines.
//!
//! An insert selects its own values under the name of the table, so that the table's insert policy reads them as the
//! row they are to become.

use crate::database::Statement;

macro_rules! space {
    () => {
        "spaces.id, spaces.name, spaces.description, spaces.owner_id, spaces.is_public, spaces.created_at, \
         spaces.updated_at"
    };
}

macro_rules! fidget {
    () => {
        "fidgets.id, fidgets.space_id, fidgets.type, fidgets.config, fidgets.position, fidgets.created_at, \
         fidgets.updated_at"
    };
}

pub(super) static INSERT_SPACE: Statement = Statement::new(
    "INSERT INTO spaces (id, name, description, owner_id, is_public, created_at, updated_at)
     SELECT id, name, description, owner_id, is_public, created_at, created_at FROM (SELECT
         $1 AS id, $2 AS name, $3 AS description, $4 AS owner_id, $5 AS is_public, $6 AS created_at) AS spaces
     WHERE {spaces.insert}
     RETURNING id, name, description, owner_id, is_public, created_at, updated_at",
);

pub(super) static GET_SPACE: Statement =
    Statement::new(concat!("SELECT ", space!(), " FROM spaces WHERE spaces.id = $1 AND {spaces.select}"));

pub(super) static GET_OWN_SPACE: Statement =
    Statement::new(concat!("SELECT ", space!(), " FROM spaces WHERE spaces.id = $1 AND {spaces.update}"));

pub(super) static UPDATE_SPACE: Statement = Statement::new(
    "UPDATE spaces SET
         name = CASE WHEN $2 THEN $3 ELSE name END,
         description = CASE WHEN $4 THEN $5 ELSE description END,
         is_public = CASE WHEN $6 THEN $7 ELSE is_public END,
         updated_at = {spaces.later $8}
     WHERE id = $1 AND {spaces.update}
     RETURNING id, name, description, owner_id, is_public, created_at, updated_at",
);

pub(super) static DELETE_SPACE: Statement =
    Statement::new("DELETE FROM spaces WHERE id = $1 AND {spaces.delete} RETURNING id");

// Whoever may see a space may see its fidgets: the one policy covers both sides of the join.
pub(super) static GET_USER_SPACES: Statement = Statement::new(concat!(
    "SELECT ",
    space!(),
    ", ",
    fidget!(),
    " FROM spaces LEFT JOIN fidgets ON fidgets.space_id = spaces.id
     WHERE spaces.owner_id = $1 AND {spaces.select}
     ORDER BY spaces.created_at DESC NULLS FIRST, spaces.id, fidgets.created_at NULLS LAST, fidgets.id",
));

// A public space and its owner's address are everyone's to see (SPEC 4.5).
pub(super) static GET_PUBLIC_SPACES: Statement = Statement::new(concat!(
    "SELECT ",
    space!(),
    ", users.id, users.email
     FROM spaces LEFT JOIN users ON users.id = spaces.owner_id
     WHERE spaces.is_public = true AND {spaces.select}
     ORDER BY spaces.created_at DESC NULLS FIRST, spaces.id LIMIT $1 OFFSET $2",
));

pub(super) static GET_SPACE_WITH_FIDGETS: Statement = Statement::new(concat!(
    "SELECT ",
    space!(),
    ", ",
    fidget!(),
    " FROM spaces JOIN fidgets ON fidgets.space_id = spaces.id
     WHERE spaces.id = $1 AND {spaces.select}
     ORDER BY fidgets.created_at NULLS LAST, fidgets.id",
));

pub(super) static INSERT_FIDGET: Statement = Statement::new(
    "INSERT INTO fidgets (id, space_id, type, config, position, created_at, updated_at)
     SELECT id, space_id, type, config, position, created_at, created_at FROM (SELECT
         $1 AS id, $2 AS space_id, $3 AS type, $4 AS config, $5 AS position, $6 AS created_at) AS fidgets
     WHERE {fidgets.insert}
     RETURNING id, space_id, type, config, position, created_at, updated_at",
);

pub(super) static GET_FIDGET: Statement =
    Statement::new(concat!("SELECT ", fidget!(), " FROM fidgets WHERE fidgets.id = $1 AND {fidgets.select}"));

pub(super) static GET_OWN_FIDGET: Statement =
    Statement::new(concat!("SELECT ", fidget!(), " FROM fidgets WHERE fidgets.id = $1 AND {fidgets.update}"));

pub(super) static UPDATE_FIDGET: Statement = Statement::new(
    "UPDATE fidgets SET
         type = CASE WHEN $2 THEN $3 ELSE type END,
         config = CASE WHEN $4 THEN $5 ELSE config END,
         position = CASE WHEN $6 THEN $7 ELSE position END,
         updated_at = {fidgets.later $8}
     WHERE id = $1 AND {fidgets.update}
     RETURNING id, space_id, type, config, position, created_at, updated_at",
);

pub(super) static MOVE_FIDGET: Statement = Statement::new(
    "UPDATE fidgets SET position = $3, updated_at = {fidgets.later $4}
     WHERE id = $1 AND space_id = $2 AND {fidgets.update}
     RETURNING id, space_id, type, config, position, created_at, updated_at",
);

pub(super) static DELETE_FIDGET: Statement =
    Statement::new("DELETE FROM fidgets WHERE id = $1 AND {fidgets.delete} RETURNING id");

pub(super) static GET_SPACE_FIDGETS: Statement = Statement::new(concat!(
    "SELECT ",
    fidget!(),
    " FROM fidgets WHERE fidgets.space_id = $1 AND {fidgets.select} ORDER BY fidgets.created_at NULLS LAST, fidgets.id",
));
