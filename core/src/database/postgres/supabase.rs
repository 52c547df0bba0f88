//! The database of a Supabase project, which is only read.
//!
//! Invariant: every statement runs in one transaction, `REPEATABLE READ READ ONLY`, so all rows are of one moment and nothing is
//! written. Row-level security never leaves a row out: a role that it binds gets an error.

mod accounts;
mod objects;
mod survey;

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, postgres::PgRow};

pub(crate) use self::objects::ProjectObject;
use super::{
    connection::{server_url::ServerUrl, servers::Servers},
    errors::{cannot_connect, translate},
    in_runtime::InRuntime,
    query::execute_batch,
};
use crate::{
    config::Secret,
    database::{
        row::{Columns, Rows},
        statement::Bound,
        transfer::{SUPABASE, TransferRow, TransferTable},
    },
    error::{Error, ErrorKind, Result},
    threads::RuntimeHandle,
};

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long one server of the URL may take, unless the URL says it.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one statement may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Begins the transaction. No setting of the role or the database ends it before the move does, hides a row or decides what a name
/// means.
const BEGIN: &str = "BEGIN ISOLATION LEVEL repeatable read READ ONLY;
    SET LOCAL row_security = off;
    SET LOCAL search_path = pg_catalog;
    SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL lock_timeout = '60s';
    SET LOCAL standard_conforming_strings = on;
    SET LOCAL bytea_output = 'hex';
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'";

/// The rows that are read at a time: rows with large JSON take much memory.
const PAGE: usize = 64;

/// The SQLSTATE of a role that lacks a right, and of a query that row-level security would change.
const DENIED: &str = "42501";

/// A moment of a project's database. Dropping it closes the connection.
pub(crate) struct ProjectMoment {
    runtime: RuntimeHandle,
    connection: PgConnection,
    /// Names the project in the mark of a move.
    id: String,
    /// The tables of SPEC 2 that the project has. Set by [`survey`](ProjectMoment::survey).
    found: Vec<String>,
    has_accounts: bool,
    has_objects: bool,
}

impl ProjectMoment {
    /// Takes this moment.
    ///
    /// # Errors
    /// `Config` for a URL that cannot be used, and for a database that is none of a Supabase project; `Unavailable` if the server
    /// does not answer. No error has a part of the URL that may be secret.
    pub(crate) async fn take(url: &Secret, runtime: RuntimeHandle) -> Result<ProjectMoment> {
        if !matches!(url.reveal().split_once(':'), Some(("postgres" | "postgresql", _))) {
            return Err(Error::config("The database of the project is a URL postgres://…"));
        }
        let in_runtime = runtime.clone();
        InRuntime::new(&in_runtime, async move {
            let mut connection = connect(url, &runtime).await.map_err(of_project)?;
            within(execute_batch(&mut connection, BEGIN)).await.map_err(of_project)?;
            let id = id_of(url)?;
            let moment =
                ProjectMoment { runtime, connection, id, found: Vec::new(), has_accounts: false, has_objects: false };
            Ok(moment)
        })
        .await
    }

    /// The name of the project as the source of a move.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Begins to read the rows for `table`.
    pub(crate) async fn open_rows(&mut self, table: &'static TransferTable) -> Result<()> {
        let sql = match table.name {
            "credentials" if self.has_accounts => Some(table.select_values(accounts::CREDENTIALS)),
            "verified_emails" if self.has_accounts => Some(table.select_values(accounts::VERIFIED_EMAILS)),
            name if self.found.iter().any(|found| found == name) => Some(table.select_of_project()),
            _ => None,
        };
        // A cursor without rows, so that its reader needs no other way.
        self.open_cursor(&sql.unwrap_or_else(|| "SELECT 1 WHERE false".to_owned())).await
    }

    /// The next rows of the table that was opened last. None at the end.
    pub(crate) async fn next_rows(&mut self) -> Result<Vec<TransferRow>> {
        let rows = self.fetch_page().await?;
        let mut all = Rows::new(Bound::None);
        for row in &rows {
            all.add(Columns::Postgres(row), TransferRow::read)?;
        }
        Ok(all.into_rows())
    }

    async fn open_cursor(&mut self, select: &str) -> Result<()> {
        // CLOSE ALL closes the cursor of the table before.
        let sql = format!("CLOSE ALL; DECLARE townsquare_rows NO SCROLL CURSOR FOR {select}");
        let ProjectMoment { runtime, connection, .. } = self;
        InRuntime::new(runtime, within(execute_batch(connection, &sql))).await.map_err(of_project)
    }

    async fn fetch_page(&mut self) -> Result<Vec<PgRow>> {
        let ProjectMoment { runtime, connection, .. } = self;
        let fetch = async {
            let query = sqlx::query(AssertSqlSafe(format!("FETCH {PAGE} FROM townsquare_rows"))).persistent(false);
            query.fetch_all(connection).await.map_err(translate)
        };
        InRuntime::new(runtime, within(fetch)).await.map_err(of_project)
    }
}

/// Connects to the project, so that also a statement outside of the transaction would write nothing.
async fn connect(url: &Secret, runtime: &RuntimeHandle) -> Result<PgConnection> {
    let servers = |is_read_only: bool| {
        let mut parsed = ServerUrl::parse(url)?;
        if is_read_only {
            let read_only =
                |server: sqlx::postgres::PgConnectOptions| server.options([("default_transaction_read_only", "on")]);
            parsed.servers = parsed.servers.into_iter().map(read_only).collect();
        }
        Ok::<_, Error>(Servers::new(parsed, SERVER_TIMEOUT, runtime.tokio.clone()))
    };
    let connect = async {
        match servers(true)?.connect().await {
            // A pooler may refuse the start-up parameter. The transaction is read-only by itself.
            Err(error) if !is_of_login(&error) => servers(false)?.connect().await,
            connected => connected,
        }
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect).await;
    connected
        .unwrap_or_else(|_| Err(Error::unavailable("The database of the project does not answer")))
        .map_err(cannot_connect)
}

/// Whether the server knows the start-up parameters and refuses the login or the database.
fn is_of_login(error: &Error) -> bool {
    error.code().is_some_and(|code| code.starts_with("28") || code == "3D000")
}

/// Whether two URLs name one database.
pub(crate) fn is_same_project(one: &Secret, other: &Secret) -> bool {
    matches!((id_of(one), id_of(other)), (Ok(one), Ok(other)) if one == other)
}

/// Names the server and the database of a URL, without its login. A pooler that serves many projects tells them apart by the end of
/// the user's name, such as `postgres.abc`.
fn id_of(url: &Secret) -> Result<String> {
    let servers = ServerUrl::parse(url).map_err(of_project)?.servers;
    let names = servers.iter().map(|server| {
        let database = server.get_database().unwrap_or(server.get_username());
        let reference = server.get_username().split_once('.').map_or("", |(_, reference)| reference);
        format!("{reference}@{}:{}/{database}", server.get_host(), server.get_port())
    });
    let names = names.collect::<Vec<_>>().join(",");
    let hash = blake3::hash(names.as_bytes()).to_hex();
    Ok(format!("{SUPABASE}{}", &hash[..32]))
}

/// Runs a statement within its time limit. Requires the runtime.
async fn within<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::time::timeout(STATEMENT_TIMEOUT, work).await;
    done.unwrap_or_else(|_| Err(Error::unavailable("The database of the project does not answer")))
}

/// Says that an error is of the project, and what its role lacks.
fn of_project(error: Error) -> Error {
    if error.code() == Some(DENIED) {
        let message = format!(
            "The role of the project's URL may not read every row ({}). Use the role postgres of the project, or another one with \
             BYPASSRLS and the right to read",
            error.message()
        );
        return Error::config(message).caused_by(error);
    }
    match (error.kind(), error.message().strip_prefix("Option database_url")) {
        (ErrorKind::Config, Some(rest)) => Error::config(format!("The database of the project{rest}")).caused_by(error),
        _ => error,
    }
}
