//! Ends a connection after an interrupted call: the caller dropped its future, a deadline passed, or an error occurred.
//!
//! Invariant: the permit of the connection is returned only when its server process has answered or is gone, so that
//! cancelled calls do not add up to more server processes than the pool allows. A server that is silent, where the URL names
//! others, counts as gone: the calls that wait for a connection get one of another server.

use std::{sync::Arc, time::Duration};

use sqlx::Connection as _;
use tokio::sync::OwnedSemaphorePermit;

use super::pool_state::{OpenConnection, Shared};

/// How long the server process may take before it is cancelled.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// How long to wait for the connection that cancels.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the answer to what was sent, cancels it if that takes long, and closes the connection.
pub(in crate::database) async fn drain(mut open: OpenConnection, permit: OwnedSemaphorePermit, shared: Arc<Shared>) {
    if shared.timeout(ANSWER_TIMEOUT, open.connection.ping()).await.is_err() {
        let is_replaceable = shared.servers.has_alternatives();
        if is_replaceable && shared.servers.is_silent(open.server).await {
            return;
        }
        if let Some(process) = open.process {
            // A failure is ignored: the statement's own time limit ends it as well.
            let cancelled = shared.timeout(CANCEL_TIMEOUT, cancel(&shared, open.server, process)).await;
            if cancelled.is_err() && is_replaceable {
                return;
            }
        }
        let _ = shared.with_timeout(open.connection.ping()).await;
    }
    let _ = shared.timeout(CANCEL_TIMEOUT, open.connection.close()).await;
    drop(permit);
}

/// Cancels what the process runs. The number of a process means it on its own server only.
async fn cancel(shared: &Shared, server: usize, process: i32) -> crate::error::Result<()> {
    let mut connection = shared.servers.connect_to(server).await?;
    let cancel = sqlx::query("SELECT pg_catalog.pg_cancel_backend($1)").bind(process).persistent(false);
    let _ = cancel.execute(&mut connection).await;
    let _ = connection.close().await;
    Ok(())
}
