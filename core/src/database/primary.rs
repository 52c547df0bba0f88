//! Reads that only the primary of a PostgreSQL server can answer, whatever other servers its URL names.

#[cfg(feature = "postgres")]
use super::transaction::Effect;
use super::{Engine, Read, Scope, Statement, Value};
use crate::error::Result;

impl Scope {
    /// The position of everything that the handles on the database have written, and of what this one was told. Empty if there is
    /// nothing, and on SQLite.
    pub(crate) async fn read_position(&self) -> Result<String> {
        self.principal.check_open()?;
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => Ok(String::new()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.read_position(&self.principal).await,
        }
    }

    /// Does what [`fetch_optional`](Scope::fetch_optional) does, on a server that accepts writes: a standby that answers while the primary
    /// is lost may not have the newest rows.
    ///
    /// # Errors
    /// `Unavailable` (25006) if no such server can be reached.
    pub(crate) async fn fetch_optional_on_primary<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => self.fetch_optional(statement, values, read).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                let principal = self.principal().await?;
                let rows = Box::pin(postgres.execute(&principal, statement, values, read, Effect::ReadsLog)).await?;
                Ok(rows.into_iter().next_back())
            }
        }
    }
}
