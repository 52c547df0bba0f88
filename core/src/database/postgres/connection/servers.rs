//! The servers that a PostgreSQL URL names, and how to connect to the right one.
//!
//! Invariant: a server that does not answer holds up a connection for the connect timeout, not for the time limit of the
//! operation. Where the URL names another server, it holds up a call that it has received for three times as long.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, Row as _, postgres::PgConnectOptions};
use tokio::runtime::Handle;

use super::{
    super::errors::{at_server, is_unreachable, translate},
    server_url::{ServerUrl, SessionTarget},
    silence::Silence,
};
use crate::error::{Error, ErrorKind, Result};

/// The servers of a URL.
pub(in crate::database) struct Servers {
    servers: Vec<PgConnectOptions>,
    /// In the order of `servers`.
    silences: Vec<Silence>,
    target: SessionTarget,
    /// What the URL says about named statements.
    pub(in crate::database) is_without_names: bool,
    /// How long one server may take to accept a connection.
    connect_timeout: Duration,
    /// Runs the timers: the caller's runtime may have none.
    timer_runtime: Handle,
}

/// How well a server fits the target of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Best,
    /// It fits if no other server does better.
    SecondChoice,
    None,
}

impl Servers {
    /// Makes the servers of `url`. `connect_timeout` applies if the URL does not say another one.
    pub(in crate::database) fn new(url: ServerUrl, connect_timeout: Duration, timer_runtime: Handle) -> Servers {
        let connect_timeout = url.connect_timeout.unwrap_or(connect_timeout);
        let ServerUrl { servers, target, is_without_names, .. } = url;
        let silences = servers.iter().map(|_| Silence::default()).collect();
        Servers { servers, silences, target, is_without_names, connect_timeout, timer_runtime }
    }

    /// Whether another server may take over: a connection that became read-only is then of no use.
    pub(in crate::database) fn has_alternatives(&self) -> bool {
        self.servers.len() > 1
    }

    /// How long one server may take to accept a connection.
    pub(in crate::database) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// How long a call waits for an answer before it is asked whether its server is silent.
    pub(in crate::database) fn patience(&self) -> Duration {
        self.connect_timeout
    }

    /// How long a server that has work may take to accept a connection before it counts as silent. A busy one takes longer.
    pub(in crate::database) fn silence_limit(&self) -> Duration {
        self.connect_timeout.saturating_mul(2)
    }

    /// Whether the last attempt to connect to the server at this position got no answer.
    fn is_known_silent(&self, position: usize) -> bool {
        self.silences[position].is_known()
    }

    /// Notes that the server at this position did not answer within the connect timeout.
    pub(in crate::database) fn note_silence(&self, position: usize) {
        self.silences[position].note(false);
    }

    /// Whether the server at this position accepts no connection within the limit. Tries it, unless another call just did.
    pub(in crate::database) async fn is_silent(&self, position: usize) -> bool {
        let probe = async {
            let connect = async {
                match self.connect_to(position).await {
                    Ok(connection) => {
                        // A failure is ignored: the server has answered.
                        let _ = connection.close().await;
                        true
                    }
                    Err(error) => !is_unreachable(&error),
                }
            };
            self.timeout(self.silence_limit(), connect).await.unwrap_or(false)
        };
        self.silences[position].ask(self.patience(), probe).await
    }

    /// Connects to the first server that fits. Each server has the connect timeout to accept a connection. While none
    /// answers, each has twice the time in another round. The caller limits the time of all rounds.
    ///
    /// # Errors
    /// The error of the last server that refused the connection; `Unavailable` (25006) if servers answer and none fits.
    pub(in crate::database) async fn connect(&self) -> Result<PgConnection> {
        self.connect_to_one().await.map(|(connection, _)| connection)
    }

    /// Connects to the server at this position, within the time limit of the caller.
    pub(in crate::database) async fn connect_to(&self, position: usize) -> Result<PgConnection> {
        connect(&self.servers[position]).await
    }

    /// Finds the server that [`connect`](Servers::connect) would connect to.
    ///
    /// # Errors
    /// Those of [`connect`](Servers::connect), unless there is no choice.
    pub(in crate::database) async fn find(&self) -> Result<PgConnectOptions> {
        if let ([only], SessionTarget::Any) = (self.servers.as_slice(), self.target) {
            return Ok(only.clone());
        }
        let (connection, position) = self.connect_to_one().await?;
        // A failure is ignored: the server notices a closed socket as well.
        let _ = connection.close().await;
        Ok(self.servers[position].clone())
    }

    /// Does what [`connect`](Servers::connect) does, and returns the position of the server.
    pub(in crate::database) async fn connect_to_one(&self) -> Result<(PgConnection, usize)> {
        let mut limit = self.connect_timeout;
        loop {
            if let Some(connected) = self.try_each(limit).await? {
                return Ok(connected);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Tries each server once, those last that were silent. Returns `None` if none answered within `limit`.
    async fn try_each(&self, limit: Duration) -> Result<Option<(PgConnection, usize)>> {
        let mut failure = None;
        let mut second_choice = None;
        let mut order: Vec<_> = self.servers.iter().enumerate().collect();
        order.sort_by_key(|(position, _)| self.is_known_silent(*position));
        for (position, server) in order {
            let connecting = async {
                let mut connection = connect(server).await?;
                let fit = self.fit(&mut connection).await?;
                Ok((connection, fit))
            };
            let connected = self.timeout(limit, connecting).await;
            self.silences[position].note(connected.is_ok());
            match connected {
                Ok(Ok((connection, Fit::Best))) => return Ok(Some((connection, position))),
                Ok(Ok((connection, Fit::SecondChoice))) if second_choice.is_none() => {
                    second_choice = Some((connection, position));
                }
                Ok(Ok((connection, fit))) => {
                    // A failure is ignored: the server notices a closed socket as well.
                    let _ = connection.close().await;
                    if fit == Fit::None {
                        let message = "no server of database_url fits its target_session_attrs";
                        failure = Some(Error::database(Some("25006"), ErrorKind::Unavailable, message));
                    }
                }
                Ok(Err(error)) => failure = Some(error),
                Err(_) => {}
            }
        }
        match (second_choice, failure) {
            (Some(connected), _) => Ok(Some(connected)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// How well the server of this connection fits.
    async fn fit(&self, connection: &mut PgConnection) -> Result<Fit> {
        Ok(match self.target {
            SessionTarget::Any if !self.has_alternatives() => Fit::Best,
            SessionTarget::Any if is_in_recovery(connection).await? => Fit::SecondChoice,
            SessionTarget::Any => Fit::Best,
            SessionTarget::Writable if is_read_only(connection).await? => Fit::None,
            SessionTarget::Writable => Fit::Best,
            SessionTarget::ReadOnly | SessionTarget::PreferReadOnly if is_read_only(connection).await? => Fit::Best,
            SessionTarget::ReadOnly => Fit::None,
            SessionTarget::PreferReadOnly => Fit::SecondChoice,
        })
    }

    fn timeout<F: Future>(&self, limit: Duration, future: F) -> tokio::time::Timeout<F> {
        let _entered = self.timer_runtime.enter();
        tokio::time::timeout(limit, future)
    }
}

/// Connects to one server. The error names it.
async fn connect(server: &PgConnectOptions) -> Result<PgConnection> {
    server.connect().await.map_err(|error| match server.get_socket() {
        Some(folder) => at_server(error, &folder.display().to_string(), server.get_port()),
        None => at_server(error, server.get_host(), server.get_port()),
    })
}

/// Whether the server is a standby.
pub(in crate::database) async fn is_in_recovery(connection: &mut PgConnection) -> Result<bool> {
    // The simple protocol, because a pooler may give a prepared statement to another server process.
    let row = connection.fetch_one(sqlx::raw_sql("SELECT pg_catalog.pg_is_in_recovery()::text")).await;
    Ok(row.map_err(translate)?.try_get::<String, _>(0).map_err(translate)? == "true")
}

/// The error of a write, or of a read of the change log, on a standby.
pub(in crate::database) fn in_recovery() -> Error {
    let message = "the server is in recovery (a standby): it accepts no writes, and its change log cannot be followed";
    Error::database(Some("25006"), ErrorKind::Unavailable, message)
}

/// Whether the server refuses writes: a standby, or a database that is read-only by its settings.
pub(in crate::database) async fn is_read_only(connection: &mut PgConnection) -> Result<bool> {
    let row = connection.fetch_one("SHOW transaction_read_only").await.map_err(translate)?;
    Ok(row.try_get::<String, _>(0).map_err(translate)? == "on")
}
