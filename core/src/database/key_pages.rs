//! All rows of a table in the order of its key, page by page: the lists that only the service reads.

use uuid::Uuid;

use super::{Read, ReadablePage, Scope, Statement};
use crate::{error::Result, validate};

/// The statements that read a table page by page. Made by `key_pages!`.
pub(crate) struct KeyPages {
    /// `$1` is the limit.
    pub(crate) first: Statement,
    /// `$1` is the limit, `$2` the key of the last row of the page before.
    pub(crate) after: Statement,
}

/// Declares [`KeyPages`] of a table, by its key, which is a UUID, and the columns to select.
macro_rules! key_pages {
    ($table:literal, $key:literal, $($columns:tt)+) => {
        $crate::database::KeyPages {
            first: $crate::database::Statement::new(concat!(
                "SELECT ", $($columns)+, " FROM ", $table, " ORDER BY ", $key, " LIMIT $1"
            ))
            .ending_early()
            .may_lag(),
            after: $crate::database::Statement::new(concat!(
                "SELECT ", $($columns)+, " FROM ", $table, " WHERE ", $key, " > $2 ORDER BY ", $key, " LIMIT $1"
            ))
            .ending_early()
            .may_lag(),
        }
    };
}

pub(crate) use key_pages;

impl Scope {
    /// Returns the `limit` rows that follow the key `after`, the first ones without it. Leaves out rows that cannot be read.
    /// A page has fewer rows if they take more than 64 MiB of memory: only an empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to `MAX_LIMIT`.
    pub(crate) async fn key_page<T: Send + 'static>(
        &self,
        pages: &'static KeyPages,
        limit: u32,
        after: Option<Uuid>,
        read: Read<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut page = ReadablePage::new(validate::limit(limit)?);
        loop {
            let limit = page.wanted.into();
            let (statement, values) = match after {
                None => (&pages.first, vec![limit]),
                Some(key) => (&pages.after, vec![limit, key.into()]),
            };
            if let Some(rows) = page.of(self.scan(statement, values, read).await?) {
                return Ok(rows);
            }
        }
    }
}
