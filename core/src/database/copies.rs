//! Recognizes a database that is a copy of another one and was not made by `restore`: its place is not the recorded place.
//!
//! The place of a SQLite database is the place of its file. The place of a PostgreSQL database is the system identifier of the server
//! and the oid of the database. A standby that takes over has the same place: it continues as the same database.

use uuid::Uuid;

use super::{Database, Engine, Scope, Statement};
use crate::error::Result;

static GET: Statement = Statement::new("SELECT place, incarnation, url_key = '' FROM townsquare.database");

static SET_PLACE: Statement = Statement::new("UPDATE townsquare.database SET place = $1 WHERE place = ''");

/// Makes a copy a database of its own, unless another client has done so. Its object store is the original's.
static BECOME_COPY: Statement = Statement::new(
    "UPDATE townsquare.database SET place = $1, incarnation = $2, url_key = $3, cursor_key = $5,
        owns_store = (owns_store AND (store_id = '' OR store_id = 'memory')) WHERE incarnation = $4",
);

#[cfg(feature = "postgres")]
static SERVER_PLACE: Statement = Statement::new(
    "SELECT control.system_identifier::text || '.' || databases.oid::text
     FROM pg_catalog.pg_control_system() AS control, pg_catalog.pg_database AS databases
     WHERE databases.datname = pg_catalog.current_database()",
);

/// SQLSTATE `insufficient_privilege`.
#[cfg(feature = "postgres")]
const NO_PRIVILEGE: &str = "42501";

impl Database {
    /// Gives the database a new incarnation and new keys of signed URLs and cursors if it is a copy. Then it refuses the cursors,
    /// signed URLs and identity claims of the original.
    pub(super) async fn recognize_copy(&self) -> Result<()> {
        let service = self.service();
        let read = |row: &super::Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<bool>(2)?));
        let (recorded, incarnation, is_backup) = service.fetch_one(&GET, &[], read).await?;
        let found = self.place(&service).await?;
        let is_elsewhere = found.as_ref().is_some_and(|found| !recorded.is_empty() && *found != recorded);
        if is_backup || is_elsewhere {
            let random = || Uuid::new_v4().simple().to_string();
            let key = || [random(), random()].concat();
            let place = found.unwrap_or_default();
            let values = vec![place.into(), random().into(), key().into(), incarnation.into(), key().into()];
            service.execute(&BECOME_COPY, values, |_| Ok(())).await?;
            tracing::warn!("the database is a copy of another one: cursors of the original have expired in it");
        } else if let Some(found) = found.filter(|_| recorded.is_empty())
            && let Err(error) = service.execute(&SET_PLACE, vec![found.into()], |_| Ok(())).await
        {
            // On a full disk, or on a standby.
            tracing::debug!(%error, "the place of the database is not recorded yet");
        }
        Ok(())
    }

    /// Where the database is; `None` if that is unknown.
    #[cfg_attr(
        not(feature = "postgres"),
        allow(unused_variables, clippy::unused_async, reason = "SQLite asks no server")
    )]
    async fn place(&self, service: &Scope) -> Result<Option<String>> {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => Ok(sqlite.place()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => match service.fetch_one(&SERVER_PLACE, &[], |row| row.get::<String>(0)).await {
                Err(error) if error.code() == Some(NO_PRIVILEGE) => Ok(None),
                place => place.map(Some),
            },
        }
    }
}
