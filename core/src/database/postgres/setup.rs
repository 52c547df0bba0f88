//! Prepares a database when it is opened: the restricted role, migrations, policies.

use super::{
    errors::cannot_connect,
    migrate::{self, SchemaState},
    policies,
    pool::Pool,
    query::execute_batch,
    role_mode,
    role_mode::RoleMode,
};
use crate::{clock::Clock, database::principal::Principal, error::Result};

/// Brings the database up to date and returns the role mode of its connections.
///
/// # Errors
/// `Config` if the server cannot be reached, if the login role lacks a right, or if a newer version of the library
/// wrote the database.
pub(super) async fn run(pool: &Pool, clock: &Clock) -> Result<RoleMode> {
    let mut connection = pool.acquire(&Principal::Service).await.map_err(cannot_connect)?;
    let role_mode = role_mode::detect(&mut connection).await?;
    let is_up_to_date = match migrate::state(&mut connection).await? {
        SchemaState::Outdated => false,
        SchemaState::Current => policies::are_current(&mut connection, role_mode).await?,
        SchemaState::NewerCompatible => true,
    };
    if !is_up_to_date {
        execute_batch(&mut connection, "BEGIN").await?;
        // After an error the connection is closed and not released, so the server rolls the transaction back.
        let state = migrate::apply(&mut connection, clock).await?;
        // Another process may have applied the policies while this one waited for the lock.
        if state == SchemaState::Current && !policies::are_current(&mut connection, role_mode).await? {
            policies::apply(&mut connection, role_mode).await?;
        }
        execute_batch(&mut connection, "COMMIT").await?;
    }
    connection.release();
    Ok(role_mode)
}
