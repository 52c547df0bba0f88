//! The triggers that keep everybody else from writing a database of a move: its target until the move is complete, and the source
//! after a move that followed it. A client that had the target open before the move began does not look for the mark of the move,
//! and the move would replace what it writes. What is written to the source after its last comparison would be lost.
//!
//! Invariant: from [`Side::raise`] to the end of the mark, a transaction changes a table of the target only between [`LET_IN`] and
//! [`SHUT_OUT`], and no upload begins. What those write in the mark is seen by their own transaction alone. From the end of a pause to
//! the end of its mark, nobody changes a table of the source. One case is not refused at the target: a program beside the library
//! whose transaction began before, at another isolation level than READ COMMITTED.

use std::sync::LazyLock;

use super::{Statement, Transaction, TransferTable, tables, tables::Contents};
use crate::error::Result;

/// The message for other writers of the target, in SQLite and in `functions.sql`.
#[cfg(feature = "sqlite")]
pub(in crate::database) const MOVE_RUNS: &str =
    "a move into this database runs, so nobody else writes it; open it again when the move is complete";

/// The message for writers of the source, in SQLite and in `functions.sql`.
pub(in crate::database) const HAS_MOVED: &str =
    "the database has moved to another place and takes no further writes; open that place";

/// States that the transaction writes for the move. `$1` is the holder. No row if another call has taken the move over.
pub(super) static LET_IN: Statement =
    Statement::new("UPDATE townsquare.unfinished_move SET holder = 'writes ' || $1 WHERE holder = $1");

/// Ends what [`LET_IN`] began. `$2` is the point that the move has reached; NULL if it is the same.
pub(super) static SHUT_OUT: Statement = Statement::new(
    "UPDATE townsquare.unfinished_move SET holder = $1, progress = COALESCE($2, progress) WHERE holder = 'writes ' || $1",
);

/// The uploads of large files that have begun. A move writes none, and an upload would put its bytes in place of a moved file.
pub(super) const INTENTS: &str = "townsquare.file_intents";

/// How long [`Side::lower`] waits for the readers of a table on PostgreSQL: others wait behind it.
#[cfg(feature = "postgres")]
static SHORT_LOCKS: Statement = Statement::new("SELECT set_config('lock_timeout', '500ms', true)");

/// One of the two databases of a move. Each has triggers with names of their own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Source,
    Target,
}

/// The statements of a side in an engine.
struct Guard {
    raise: Vec<Statement>,
    /// One transaction each.
    lower: Vec<Vec<Statement>>,
}

#[cfg(feature = "sqlite")]
static SQLITE: LazyLock<[Guard; 2]> = LazyLock::new(|| {
    let guard = |side: Side, prefix: &str, mark: &str, message: &str| {
        let events = || {
            let all = side.tables().flat_map(|table| {
                ["INSERT", "UPDATE", "DELETE"].map(|event| (event, table.name, table.in_template.as_str()))
            });
            all.chain([("INSERT", "file_intents", INTENTS)])
        };
        let name = |event: &str, table: &str| format!("townsquare.{prefix}_{}_{table}", event.to_lowercase());
        let raise = events().map(|(event, table, in_template)| {
            let name = name(event, table);
            Statement::made(format!(
                "CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event} ON {in_template}
                 WHEN EXISTS (SELECT 1 FROM {mark}) BEGIN SELECT RAISE(ABORT, '{message}'); END"
            ))
        });
        let lower = events().map(|(event, table, _)| {
            let name = name(event, table);
            Statement::made(format!("DROP TRIGGER IF EXISTS {name}"))
        });
        Guard { raise: raise.collect(), lower: vec![lower.collect()] }
    };
    [
        guard(Side::Source, "moved", "townsquare.moved_away", HAS_MOVED),
        guard(Side::Target, "move", "townsquare.unfinished_move WHERE holder NOT LIKE 'writes %'", MOVE_RUNS),
    ]
});

// The triggers call functions of `functions.sql`.
#[cfg(feature = "postgres")]
static POSTGRES: LazyLock<[Guard; 2]> = LazyLock::new(|| {
    let guard = |side: Side, trigger: &str, function: &str| {
        let drop = |table: &str| Statement::made(format!("DROP TRIGGER IF EXISTS {trigger} ON {table}"));
        let create = |(table, events): (&str, &str)| {
            Statement::made(format!(
                "CREATE TRIGGER {trigger} BEFORE {events} ON {table}
                 FOR EACH STATEMENT EXECUTE FUNCTION townsquare.{function}()"
            ))
        };
        let copied = side.tables().map(|table| (table.in_template.as_str(), "INSERT OR UPDATE OR DELETE OR TRUNCATE"));
        let guarded: Vec<_> = copied.chain([(INTENTS, "INSERT")]).collect();
        Guard {
            raise: guarded.iter().flat_map(|(table, events)| [drop(table), create((table, events))]).collect(),
            // A transaction that drops many of them would wait for the readers of one table and hold up those of the others.
            lower: guarded.iter().map(|(table, _)| vec![drop(table)]).collect(),
        }
    };
    [
        guard(Side::Source, "townsquare_moved", "refuse_after_move"),
        guard(Side::Target, "townsquare_move", "refuse_during_move"),
    ]
});

impl Side {
    /// The tables that nobody else writes. Every client that opens the source writes its own tables.
    fn tables(self) -> impl Iterator<Item = &'static TransferTable> {
        let is_guarded = move |table: &&TransferTable| match self {
            Side::Source => table.contents != Contents::Client,
            Side::Target => true,
        };
        tables().iter().filter(is_guarded)
    }

    fn guard(self, transaction: &Transaction<'_>) -> &'static Guard {
        let index = match self {
            Side::Source => 0,
            Side::Target => 1,
        };
        #[cfg(all(feature = "sqlite", feature = "postgres"))]
        return if transaction.is_sqlite() { &SQLITE[index] } else { &POSTGRES[index] };
        #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
        {
            let _ = transaction;
            #[cfg(feature = "sqlite")]
            return &SQLITE[index];
            #[cfg(feature = "postgres")]
            return &POSTGRES[index];
        }
    }

    /// Refuses the writes of others from the commit on. Waits for transactions that have begun to write.
    pub(super) async fn raise(self, transaction: &mut Transaction<'_>) -> Result<()> {
        for statement in &self.guard(transaction).raise {
            transaction.execute(statement, &[]).await?;
        }
        Ok(())
    }

    /// Drops triggers, in one transaction of several. Without the mark they refuse nothing. Returns false after the last one.
    pub(super) async fn lower(self, transaction: &mut Transaction<'_>, number: usize) -> Result<bool> {
        let guard = self.guard(transaction);
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
}
