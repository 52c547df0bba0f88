//! The triggers that keep everybody else from writing the target of a move. A client that had the target open before the move
//! began does not look for the mark of the move, and the move would replace what it writes.
//!
//! Invariant: from [`raise`] to the end of the mark, a transaction changes a table of the move only between [`LET_IN`] and
//! [`SHUT_OUT`], and no upload begins. What those write in the mark is seen by their own transaction alone. Not refused is a program
//! beside the library whose transaction began before the move, at another isolation level than READ COMMITTED.

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

/// The uploads of large files that have begun. A move writes none, and an upload would put its bytes in place of a moved file.
const INTENTS: &str = "townsquare.file_intents";

/// How long [`lower`] waits for the readers of a table on PostgreSQL: others wait behind it.
#[cfg(feature = "postgres")]
static SHORT_LOCKS: Statement = Statement::new("SELECT set_config('lock_timeout', '500ms', true)");

/// The statements of an engine.
struct Guard {
    raise: Vec<Statement>,
    /// One transaction each.
    lower: Vec<Vec<Statement>>,
}

#[cfg(feature = "sqlite")]
static SQLITE: LazyLock<Guard> = LazyLock::new(|| {
    let tables = || tables().iter().map(|table| (table.name, table.in_template.as_str()));
    let events = || tables().flat_map(|table| ["INSERT", "UPDATE", "DELETE"].map(|event| (event, table)));
    let events = || events().chain([("INSERT", ("file_intents", INTENTS))]);
    let name = |event: &str, table: &str| format!("townsquare.move_{}_{table}", event.to_lowercase());
    let raise = events().map(|(event, (table, in_template))| {
        let (name, table) = (name(event, table), in_template);
        Statement::made(format!(
            "CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event} ON {table}
             WHEN EXISTS (SELECT 1 FROM townsquare.unfinished_move WHERE holder NOT LIKE 'writes %')
             BEGIN SELECT RAISE(ABORT, '{MOVE_RUNS}'); END"
        ))
    });
    let lower = events().map(|(event, (table, _))| {
        let name = name(event, table);
        Statement::made(format!("DROP TRIGGER IF EXISTS {name}"))
    });
    Guard { raise: raise.collect(), lower: vec![lower.collect()] }
});

// The triggers call a function of `functions.sql`.
#[cfg(feature = "postgres")]
static POSTGRES: LazyLock<Guard> = LazyLock::new(|| {
    let drop = |table: &str| Statement::made(format!("DROP TRIGGER IF EXISTS townsquare_move ON {table}"));
    let create = |(table, events): (&str, &str)| {
        Statement::made(format!(
            "CREATE TRIGGER townsquare_move BEFORE {events} ON {table}
             FOR EACH STATEMENT EXECUTE FUNCTION townsquare.refuse_during_move()"
        ))
    };
    let copied = tables().iter().map(|table| (table.in_template.as_str(), "INSERT OR UPDATE OR DELETE OR TRUNCATE"));
    let guarded: Vec<_> = copied.chain([(INTENTS, "INSERT")]).collect();
    Guard {
        raise: guarded.iter().flat_map(|(table, events)| [drop(table), create((table, events))]).collect(),
        // A transaction that drops many of them would wait for the readers of one table and hold up those of the others.
        lower: guarded.iter().map(|(table, _)| vec![drop(table)]).collect(),
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

/// Drops triggers, in one transaction of several. Without the mark they refuse nothing. Returns false after the last one.
pub(super) async fn lower(transaction: &mut Transaction<'_>, number: usize) -> Result<bool> {
    let guard = guard(transaction);
    let Some(statements) = guard.lower.get(number) else { return Ok(false) };
    #[cfg(feature = "postgres")]
    if !transaction.is_sqlite() {
        transaction.fetch(&SHORT_LOCKS, &[], |_| Ok(())).await?;
    }
    for statement in statements {
        transaction.execute(statement, &[]).await?;
    }
    Ok(true)
}
