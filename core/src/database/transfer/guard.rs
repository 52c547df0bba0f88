//! The triggers that keep everybody else from writing the target of a move. A client that had the target open before the move
//! began does not look for the mark of the move, and the move would replace what it writes.
//!
//! Invariant: from [`raise`] to [`lower`], a transaction changes a table of the move only between [`LET_IN`] and [`SHUT_OUT`]. What
//! those write in the mark is seen by their own transaction alone.

use std::sync::LazyLock;

use super::{Statement, Transaction, tables};
use crate::error::Result;

/// The message for other writers, in SQLite and in `functions.sql`.
#[cfg(feature = "sqlite")]
pub(in crate::database) const MOVE_RUNS: &str =
    "a move into this database runs, so nobody else writes it; open it again when the move is complete";

/// States that the transaction writes for the move. `$1` is the holder. No row if another call has taken the move over.
pub(super) static LET_IN: Statement =
    Statement::new("UPDATE townsquare.unfinished_move SET holder = 'writes ' || $1 WHERE holder = $1");

/// Ends what [`LET_IN`] began. `$2` is the point that the move has reached; NULL if it is the same.
pub(super) static SHUT_OUT: Statement = Statement::new(
    "UPDATE townsquare.unfinished_move SET holder = $1, progress = COALESCE($2, progress) WHERE holder = 'writes ' || $1",
);

/// The statements of an engine.
struct Guard {
    raise: Vec<Statement>,
    lower: Vec<Statement>,
}

#[cfg(feature = "sqlite")]
static SQLITE: LazyLock<Guard> = LazyLock::new(|| {
    let events = || tables().iter().flat_map(|table| ["INSERT", "UPDATE", "DELETE"].map(|event| (event, table)));
    let name = |event: &str, table: &str| format!("townsquare.move_{}_{table}", event.to_lowercase());
    let raise = events().map(|(event, table)| {
        let (name, table) = (name(event, table.name), &table.in_template);
        Statement::made(format!(
            "CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event} ON {table}
             WHEN EXISTS (SELECT 1 FROM townsquare.unfinished_move WHERE holder NOT LIKE 'writes %')
             BEGIN SELECT RAISE(ABORT, '{MOVE_RUNS}'); END"
        ))
    });
    let lower = events().map(|(event, table)| {
        let name = name(event, table.name);
        Statement::made(format!("DROP TRIGGER IF EXISTS {name}"))
    });
    Guard { raise: raise.collect(), lower: lower.collect() }
});

// The triggers call a function of `functions.sql`.
#[cfg(feature = "postgres")]
static POSTGRES: LazyLock<Guard> = LazyLock::new(|| {
    let drop = |table: &str| Statement::made(format!("DROP TRIGGER IF EXISTS townsquare_move ON {table}"));
    let create = |table: &str| {
        Statement::made(format!(
            "CREATE TRIGGER townsquare_move BEFORE INSERT OR UPDATE OR DELETE ON {table}
             FOR EACH STATEMENT EXECUTE FUNCTION townsquare.refuse_during_move()"
        ))
    };
    let names = || tables().iter().map(|table| table.in_template.as_str());
    Guard {
        raise: names().flat_map(|table| [drop(table), create(table)]).collect(),
        lower: names().map(drop).collect(),
    }
});

fn guard(transaction: &Transaction<'_>) -> &'static Guard {
    #[cfg(all(feature = "sqlite", feature = "postgres"))]
    return if transaction.is_sqlite() { &SQLITE } else { &POSTGRES };
    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    {
        let _ = transaction;
        #[cfg(feature = "sqlite")]
        return &SQLITE;
        #[cfg(feature = "postgres")]
        return &POSTGRES;
    }
}

/// Refuses the writes of others from the commit on. Waits for transactions that have begun to write.
pub(super) async fn raise(transaction: &mut Transaction<'_>) -> Result<()> {
    for statement in &guard(transaction).raise {
        transaction.execute(statement, &[]).await?;
    }
    Ok(())
}

/// Accepts the writes of others from the commit on.
pub(super) async fn lower(transaction: &mut Transaction<'_>) -> Result<()> {
    for statement in &guard(transaction).lower {
        transaction.execute(statement, &[]).await?;
    }
    Ok(())
}
