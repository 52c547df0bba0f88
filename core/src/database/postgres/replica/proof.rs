//! The proof that a replica follows the primary: a row that is written on the primary, and arrives on its standbys alone.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::time::sleep;
use uuid::Uuid;

use super::super::errors::translate;
use crate::error::Result;

/// How often, and how long apart, the task looks for its proof before it does something else.
const PROOF_LOOKS: (u32, Duration) = (10, Duration::from_millis(20));

/// A row of `townsquare.leases` with a random name, which is written on the primary. It may be removed after an hour, by the next one.
pub(super) struct Proof(String);

impl Proof {
    /// Writes a new row as the role `service`.
    pub(super) async fn write(primary: &mut PgConnection, service: &str) -> Result<Proof> {
        let proof = Proof(Uuid::new_v4().simple().to_string());
        let sql = format!(
            "BEGIN;
             SET LOCAL ROLE {service};
             DELETE FROM townsquare.leases WHERE name LIKE 'replica %' AND held_until < pg_catalog.now();
             INSERT INTO townsquare.leases (name, holder, held_until)
             VALUES ('replica {0}', '{0}', pg_catalog.now() + interval '1 hour');
             COMMIT",
            proof.0
        );
        primary.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(translate)?;
        Ok(proof)
    }

    /// Whether the row arrives on a standby soon.
    pub(super) async fn is_on(&self, standby: &mut PgConnection) -> Result<bool> {
        let sql = format!("SELECT FROM townsquare.leases WHERE name = 'replica {}'", self.0);
        let (looks, pause) = PROOF_LOOKS;
        for _ in 0..looks {
            let row = standby.fetch_optional(sqlx::raw_sql(AssertSqlSafe(sql.clone()))).await.map_err(translate)?;
            if row.is_some() {
                return Ok(true);
            }
            sleep(pause).await;
        }
        Ok(false)
    }
}
