//! The stored further lists, and the failures of every list.
//!
//! Invariant: each list has its own row, so processes that fetch different lists overwrite nothing of each other. An older
//! copy never replaces a newer one.

use std::time::Duration;

use jiff::Timestamp;

use super::{CatalogStore, internal, invalid, renewal_of, require_lease};
use crate::{
    catalog::{ListContent, ListKey},
    clock::later,
    database::{HeldLease, Row, Statement, Value},
    error::{Error, Result},
};

/// The state of a list in the database.
pub(in crate::discovery) struct ListState {
    /// When the stored copy was fetched.
    pub(in crate::discovery) fetched_at: Option<Timestamp>,
    pub(in crate::discovery) failure: Option<StoredFailure>,
}

/// The last failure of a list, of any process.
pub(in crate::discovery) struct StoredFailure {
    pub(in crate::discovery) failures: u32,
    /// The time until a process may fetch the list again; zero after the backoff.
    pub(in crate::discovery) wait: Duration,
    pub(in crate::discovery) error: Error,
}

static FIND: Statement = Statement::new(
    "SELECT fetched_at, failures, retry_at, error FROM townsquare.catalog_lists WHERE source = $1 AND list = $2",
);
static READ: Statement = Statement::new(
    "SELECT content FROM townsquare.catalog_lists WHERE source = $1 AND list = $2 AND content IS NOT NULL",
);
/// Replaces a list unless a newer copy is stored. A stored time in the future ($5 is now) was written by a wrong clock.
static WRITE: Statement = Statement::new(
    "INSERT INTO townsquare.catalog_lists AS lists (source, list, fetched_at, content) VALUES ($1, $2, $3, $4)
    ON CONFLICT (source, list) DO UPDATE SET fetched_at = excluded.fetched_at, content = excluded.content,
        failures = 0, retry_at = NULL, error = NULL
    WHERE lists.fetched_at IS NULL OR lists.fetched_at <= excluded.fetched_at OR lists.fetched_at > $5",
);
static WRITE_FAILURE: Statement = Statement::new(
    "INSERT INTO townsquare.catalog_lists (source, list, failures, retry_at, error) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (source, list) DO UPDATE SET failures = excluded.failures, retry_at = excluded.retry_at,
        error = excluded.error",
);
static CLEAR_FAILURE: Statement = Statement::new(
    "UPDATE townsquare.catalog_lists SET failures = 0, retry_at = NULL, error = NULL
    WHERE source = $1 AND list = $2 AND retry_at IS NOT NULL",
);

impl CatalogStore {
    /// The state of a list, `None` for the main one.
    pub(in crate::discovery) async fn list_state(&self, list: Option<&ListKey>) -> Result<Option<ListState>> {
        let read = |row: &Row<'_>| {
            let (failures, retry_at, error) =
                (row.get::<i64>(1)?, row.get_optional(2)?, row.get_optional::<String>(3)?);
            let failure = retry_at.zip(error).map(|(retry_at, error)| (failures, retry_at, error));
            Ok((row.get_optional(0)?, failure))
        };
        let row = self.database.fetch_optional(&FIND, &self.list_values(list), read).await?;
        let Some((fetched_at, failure)) = row else { return Ok(None) };
        let mut state = ListState { fetched_at, failure: None };
        if let Some((failures, retry_at, error)) = failure {
            let retry_at: Timestamp = retry_at;
            let wait = Duration::try_from(retry_at.duration_since(self.database.now().await?)).unwrap_or_default();
            let failures = u32::try_from(failures).unwrap_or(0);
            state.failure = Some(StoredFailure { failures, wait, error: Error::unavailable(error) });
        }
        Ok(Some(state))
    }

    /// Reads the stored copy of a further list; `None` if there is none.
    pub(in crate::discovery) async fn load_list(&self, list: &ListKey) -> Result<Option<ListContent>> {
        let read = |row: &Row<'_>| row.get::<String>(0);
        let text = self.database.fetch_optional(&READ, &self.list_values(Some(list)), read).await?;
        let Some(text) = text else { return Ok(None) };
        let content = self.blocking.run(move || serde_json::from_str::<ListContent>(&text)).await?;
        content.map(Some).map_err(|_| invalid("a list cannot be parsed"))
    }

    /// Stores a further list, unless a newer copy is stored, and clears its failures.
    ///
    /// # Errors
    /// `Unavailable` if another process has taken `lease` meanwhile; the errors of the database.
    pub(in crate::discovery) async fn save_list(
        &self,
        list: &ListKey,
        content: ListContent,
        lease: Option<&HeldLease>,
    ) -> Result<()> {
        let fetched_at = content.fetched_at;
        let text = self.blocking.run(move || serde_json::to_string(&content)).await?;
        let text = text.map_err(|error| internal("A list of the catalog cannot be serialized").caused_by(error))?;
        let mut values = self.list_values(Some(list)).to_vec();
        values.extend([fetched_at.into(), text.into(), self.database.now().await?.into()]);
        let renewal = renewal_of(lease).await?;
        let write = self.database.write(move |transaction| {
            Box::pin(async move {
                require_lease(transaction, renewal.as_ref()).await?;
                transaction.execute(&WRITE, &values).await
            })
        });
        write.await.map(drop)
    }

    /// Stores the failures of a list, so that no process fetches it for `wait`.
    pub(in crate::discovery) async fn save_failure(
        &self,
        list: Option<&ListKey>,
        failures: u32,
        wait: Duration,
        error: &Error,
    ) -> Result<()> {
        let mut values = self.list_values(list).to_vec();
        let message = error.message().to_owned();
        let retry_at = later(self.database.now().await?, wait);
        values.extend([i64::from(failures).into(), retry_at.into(), message.into()]);
        self.write(&WRITE_FAILURE, values).await.map(drop)
    }

    /// Clears the failures of a list.
    pub(in crate::discovery) async fn clear_failure(&self, list: Option<&ListKey>) -> Result<()> {
        self.write(&CLEAR_FAILURE, self.list_values(list).to_vec()).await.map(drop)
    }

    /// The key of a list's row.
    fn list_values(&self, list: Option<&ListKey>) -> [Value<'static>; 2] {
        [self.source.to_string().into(), list.map_or_else(String::new, ListKey::name).into()]
    }
}
