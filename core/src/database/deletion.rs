//! Deleting much in steps. One transaction for a large space, or for all that a user has, would keep the other writers of SQLite
//! waiting for seconds, and exceed the time limit of an operation on PostgreSQL.
//!
//! Invariant: a step is one transaction of bounded size. What the steps leave is small enough for the transaction that deletes the
//! space or the user itself, so that a small deletion is one transaction.

use uuid::Uuid;

use super::{Scope, Statement, Transaction};
use crate::error::Result;

/// The most fidgets that a step deletes. Each may have half a megabyte by default, and the change log has a copy.
const FIDGETS: i64 = 32;

/// The most files that a step deletes: rows and the bytes of small files.
const FILES: i64 = 100;

/// The most spaces that a step deletes, after their fidgets and files.
const SPACES: i64 = 100;

/// Rows that depend on a space or a user, whose id is `$1`.
struct Part {
    /// Has a row if there are more than `$2` of the rows.
    has_more: Statement,
    /// Deletes at most `$2` of them.
    delete: Statement,
    /// Takes at most `$2` of the others from the user.
    release: Option<Statement>,
    most: i64,
}

/// The condition that a file lies in the folder of the space `$1`. '0' is the character after '/'.
macro_rules! in_folder {
    ($files:literal) => {
        concat!(
            $files,
            ".bucket = 'spaces' AND ",
            $files,
            ".path >= CAST($1 AS TEXT) AND ",
            $files,
            ".path < CAST($1 AS TEXT) || '0' AND ",
            $files,
            ".space_id = $1"
        )
    };
}

/// The condition that a file is one of the first `$2` files that the user `$1` owns.
macro_rules! is_owned {
    () => {
        "(files.bucket, files.path) IN (SELECT chosen.bucket, chosen.path FROM townsquare.files AS chosen
            WHERE chosen.owner_id = $1 LIMIT $2)"
    };
}

/// The condition that a private file is in nobody's folder: below the id of a deleted user, or a key that was unlinked. With OFFSET,
/// PostgreSQL looks each one up in an index: it could else read all of a table into a hash table first.
macro_rules! in_nobodys_folder {
    () => {
        "NOT EXISTS (SELECT 1 FROM users WHERE users.id = {uuid_of files.first_segment} LIMIT 1 OFFSET 0)
            AND NOT EXISTS (SELECT 1 FROM townsquare.identities AS linked
                WHERE linked.public_key = {key_of files.first_segment} LIMIT 1 OFFSET 0)"
    };
}

/// The condition that a file is deleted with its owner, the user `$1`. The others lose their owner: a private one that the service
/// moved into the folder of another user, or whose key another user has linked, belongs to that user.
macro_rules! goes_with_owner {
    () => {
        concat!(
            "(files.access = 'spaces'
                AND EXISTS (SELECT 1 FROM spaces WHERE spaces.id = files.space_id AND spaces.owner_id = $1)
            OR files.access = 'private' AND (files.first_segment = CAST($1 AS TEXT) OR files.first_segment IN (
                SELECT identities.public_key FROM townsquare.identities AS identities WHERE identities.user_id = $1)
            OR ",
            in_nobodys_folder!(),
            "))"
        )
    };
}

/// What lies in a space. Whether there is more is asked of the space first: for a caller who may not delete it, no row in it is
/// looked at.
static IN_SPACE: [Part; 2] = [
    Part {
        has_more: Statement::new(
            "SELECT 1 FROM spaces WHERE spaces.id = $1 AND {spaces.delete}
                AND EXISTS (SELECT 1 FROM fidgets WHERE fidgets.space_id = $1 LIMIT 1 OFFSET $2)",
        ),
        delete: Statement::new(
            "DELETE FROM fidgets WHERE id IN (SELECT chosen.id FROM fidgets AS chosen WHERE chosen.space_id = $1 LIMIT $2)
                AND {fidgets.delete}",
        ),
        release: None,
        most: FIDGETS,
    },
    Part {
        has_more: Statement::new(concat!(
            "SELECT 1 FROM spaces WHERE spaces.id = $1 AND {spaces.delete}
                AND EXISTS (SELECT 1 FROM townsquare.files AS files WHERE ",
            in_folder!("files"),
            " LIMIT 1 OFFSET $2)"
        )),
        delete: Statement::new(concat!(
            "DELETE FROM townsquare.files AS files WHERE files.bucket = 'spaces' AND files.path IN (
                SELECT chosen.path FROM townsquare.files AS chosen WHERE ",
            in_folder!("chosen"),
            " ORDER BY chosen.path LIMIT $2) AND {files.delete}"
        )),
        release: None,
        most: FILES,
    },
];

/// What is deleted, or loses its owner, with a user.
static OF_USER: [Part; 3] = [
    Part {
        has_more: Statement::new(
            "SELECT 1 FROM spaces JOIN fidgets ON fidgets.space_id = spaces.id WHERE spaces.owner_id = $1 LIMIT 1 OFFSET $2",
        ),
        delete: Statement::new(
            "DELETE FROM fidgets WHERE id IN (SELECT chosen.id FROM spaces JOIN fidgets AS chosen ON chosen.space_id = spaces.id
                WHERE spaces.owner_id = $1 LIMIT $2)",
        ),
        release: None,
        most: FIDGETS,
    },
    Part {
        has_more: Statement::new(
            "SELECT 1 FROM townsquare.files AS files WHERE files.owner_id = $1 LIMIT 1 OFFSET $2",
        ),
        delete: Statement::new(concat!(
            "DELETE FROM townsquare.files AS files WHERE ",
            is_owned!(),
            " AND ",
            goes_with_owner!()
        )),
        release: Some(Statement::new(concat!(
            "UPDATE townsquare.files AS files SET owner_id = NULL WHERE ",
            is_owned!(),
            " AND NOT ",
            goes_with_owner!()
        ))),
        most: FILES,
    },
    Part {
        has_more: Statement::new("SELECT 1 FROM spaces WHERE spaces.owner_id = $1 LIMIT 1 OFFSET $2"),
        delete: Statement::new(
            "DELETE FROM spaces WHERE id IN (SELECT chosen.id FROM spaces AS chosen WHERE chosen.owner_id = $1 LIMIT $2)",
        ),
        release: None,
        most: SPACES,
    },
];

impl Scope {
    /// Deletes in steps what lies in a space, until the rest is small. What the caller may not delete stays.
    pub(crate) async fn clear_large_space(&self, id: Uuid) -> Result<()> {
        self.clear(&IN_SPACE, id, |part| part.most).await
    }

    /// Deletes in steps what is deleted with a user, until the rest is small. For the service.
    pub(crate) async fn clear_large_account(&self, user_id: Uuid) -> Result<()> {
        self.clear(&OF_USER, user_id, |part| part.most).await
    }

    /// Deletes in steps all that is deleted with a user. For the service.
    pub(crate) async fn clear_whole_account(&self, user_id: Uuid) -> Result<()> {
        self.clear(&OF_USER, user_id, |_| 0).await
    }

    /// Deletes in steps until of each part no more rows are left than `rest` says.
    async fn clear(&self, parts: &'static [Part], id: Uuid, rest: fn(&Part) -> i64) -> Result<()> {
        for part in parts {
            let Part { has_more, delete, release, most } = part;
            while !self.scan(has_more, vec![id.into(), rest(part).into()], |_| Ok(())).await?.is_empty() {
                let step = self.write(move |transaction| {
                    Box::pin(async move {
                        let values = [id.into(), (*most).into()];
                        let mut changed = transaction.execute(delete, &values).await?;
                        if let Some(release) = release {
                            changed += transaction.execute(release, &values).await?;
                        }
                        Ok(changed)
                    })
                });
                if step.await? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Deletes the private files of the user `$1` in nobody's folder. Those below the id and the linked keys go with the row of the user.
static FILES_IN_NOBODYS_FOLDER: Statement = Statement::new(concat!(
    "DELETE FROM townsquare.files AS files WHERE files.owner_id = $1 AND files.access = 'private' AND ",
    in_nobodys_folder!()
));

impl Transaction<'_> {
    /// Deletes the private files that a user owns in nobody's folder.
    pub(crate) async fn delete_files_in_nobodys_folder(&mut self, user_id: Uuid) -> Result<()> {
        self.execute(&FILES_IN_NOBODYS_FOLDER, &[user_id.into()]).await.map(drop)
    }

    /// Whether so much depends on a user that it is to be deleted in steps before.
    pub(crate) async fn is_large_account(&mut self, user_id: Uuid) -> Result<bool> {
        for Part { has_more, most, .. } in &OF_USER {
            if self.fetch_optional(has_more, &[user_id.into(), (*most).into()], |_| Ok(())).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
