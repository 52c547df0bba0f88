//! The plan of the migrations of a database, which changes nothing.

use std::sync::Arc;

use super::Client;
use crate::{
    config::Config,
    error::{Operation, Result, operation},
    model::MigrationPlan,
    threads::{self, Runtime},
};

impl Client {
    /// Lists the migrations of this library, and which of them the database of `config` lacks. Changes nothing, and creates no
    /// database. [`open`](Client::open) applies the missing ones.
    ///
    /// The object store of `config` is not opened, and the option `migrate` has no effect.
    ///
    /// # Errors
    /// Those of `open`: `Config` if the file is not a townsquare database, if the database needs a newer version of the library, or
    /// if another build of this version made it; `Unavailable` if the server does not answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use townsquare::{Config, blocking::Client};
    ///
    /// let config = Config::new().data_dir(folder.path().join("town"));
    /// for migration in Client::plan_migrations(config)?.missing() {
    ///     println!("{} {}", migration.name, migration.about);
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn plan_migrations(config: Config) -> Result<MigrationPlan> {
        operation(Operation::Open, async {
            let resolved = config.resolve()?;
            let runtime = Arc::new(Runtime::start()?);
            let handle = runtime.tokio().clone();
            // Spawned, because the caller may have no runtime to drive it.
            let plan = handle.spawn(Client::read_plan(resolved, runtime)).await;
            plan.unwrap_or_else(|_| Err(threads::panicked()))
        })
        .await
    }
}
