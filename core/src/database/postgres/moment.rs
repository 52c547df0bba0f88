//! One moment of a database: a read transaction of a connection outside of the pool, which its reader may need meanwhile.

use std::sync::Arc;

use sqlx::PgConnection;

use super::{
    Postgres,
    connection::principal::{self, Lifetime},
    errors::no_server_answered,
    query::{self, execute_batch},
};
use crate::{
    database::{principal::Principal, row::Read, statement::Statement, value::Value},
    error::Result,
};

/// Begins a transaction that sees the database as it is at its first statement.
const BEGIN: &str = "BEGIN ISOLATION LEVEL repeatable read READ ONLY";

/// What the database is at one moment. Dropping it closes the connection.
pub(crate) struct PostgresMoment {
    postgres: Arc<Postgres>,
    connection: PgConnection,
}

impl PostgresMoment {
    /// Takes this moment.
    pub(in crate::database) async fn take(postgres: Arc<Postgres>) -> Result<PostgresMoment> {
        let shared = postgres.pool.shared();
        let timeout = shared.options.operation_timeout;
        let begin = async {
            let mut connection = shared.servers.connect().await?;
            execute_batch(&mut connection, BEGIN).await?;
            // The settings of a transaction hold behind every pooler.
            let (roles, lifetime) = (&postgres.pool.roles, Lifetime::Transaction);
            principal::set(&mut connection, &Principal::Service, roles, lifetime, false, timeout).await?;
            Ok(connection)
        };
        let begun = async { shared.with_timeout(begin).await.unwrap_or_else(|_| Err(no_server_answered(timeout))) };
        let connection = postgres.in_runtime(begun).await?;
        Ok(PostgresMoment { postgres, connection })
    }

    pub(in crate::database) async fn fetch<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let (postgres, caller) = (&self.postgres, Principal::Service.caller());
        let fetch = query::fetch(&mut self.connection, Lifetime::Transaction, caller, statement, values);
        query::read_rows(&postgres.within_deadline(fetch).await?, statement, read)
    }
}
