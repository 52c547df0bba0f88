//! The check of the database, whatever its engine.

use super::{Database, Engine};
use crate::{
    error::Result,
    model::{CheckDepth, FindingCode, Findings},
};

impl Database {
    /// Adds what is wrong with the database. Changes nothing. A full check reads every byte.
    ///
    /// # Errors
    /// Those of the database: `Unavailable` if it does not answer, `Closed`, and XX001 if it is damaged so that nothing can be read.
    pub(crate) async fn inspect(&self, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        on_engine!(self, engine => engine.inspect(depth, findings).await)?;
        // A server in recovery, and a database that lacks migrations, are other findings.
        if let Ok(Some(target)) = self.service().moved_to().await {
            findings.add(FindingCode::MovedAway, format!("It is now the database with the incarnation {target}."));
        }
        Ok(())
    }
}
