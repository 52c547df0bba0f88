//! The proof that a replica follows the primary: a row that is written on the primary, and arrives on its standbys alone.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::super::errors::translate;
use crate::error::Result;

/// How often, and how long apart, the task looks for its proof before it does something else.
const PROOF_LOOKS: (u32, Duration) = (10, Duration::from_millis(20));

/// How long a row is looked for. The next proof of any client removes it after twice as long.
const LIFE: Duration = Duration::from_secs(1800);

/// A row of `townsquare.leases` with a random name, written on the primary when a server process of the replica was there. A copy of the
/// primary that is made later has the row, too, but its standby is another process.
pub(super) struct Proof {
    name: String,
    server: String,
    written: Instant,
}

impl Proof {
    /// Writes a new row as the role `service`, for the process `server`.
    pub(super) async fn write(primary: &mut PgConnection, service: &str, server: String) -> Result<Proof> {
        let name = Uuid::new_v4().simple().to_string();
        let sql = format!(
            "BEGIN;
             SET LOCAL ROLE {service};
             DELETE FROM townsquare.leases WHERE name LIKE 'replica %' AND held_until < pg_catalog.now();
             INSERT INTO townsquare.leases (name, holder, held_until)
             VALUES ('replica {name}', '{name}', pg_catalog.now() + interval '{} seconds');
             COMMIT",
            2 * LIFE.as_secs()
        );
        primary.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(translate)?;
        Ok(Proof { name, server, written: Instant::now() })
    }

    /// Whether the process `server` can still show it.
    pub(super) fn is_for(&self, server: &str) -> bool {
        self.server == server && self.written.elapsed() < LIFE
    }

    /// Whether the row arrives on a standby soon.
    pub(super) async fn is_on(&self, standby: &mut PgConnection) -> Result<bool> {
        let sql = format!("SELECT FROM townsquare.leases WHERE name = 'replica {}'", self.name);
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
