//! The plan of the migrations of a database, which changes nothing.

use super::{Client, on_new_runtime};
use crate::{
    config::Config,
    error::{Operation, Result, operation},
    model::MigrationPlan,
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
            on_new_runtime(|runtime| Client::read_plan(resolved, runtime)).await
        })
        .await
    }
}
