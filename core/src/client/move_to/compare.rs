//! The comparison of the target of a move with one moment of its source.
//!
//! Invariant: the bytes of every object of the target are read once after they were written.

use super::{FILES, Move};
use crate::{
    database::{DatabaseMoment, TableDigest, TransferRow, TransferTable},
    error::Result,
};

/// The versions of objects that a move remembers: their digests take 64 MiB. It reads the objects of others again.
const MOST_READ_OBJECTS: usize = 1_000_000;

impl Move<'_> {
    /// Compares every table of one moment of the source with the target, and the bytes of every file.
    pub(super) async fn compare(&mut self) -> Result<Vec<Compared>> {
        // Without pauses: a server ends a transaction that is idle for long, as it would be while the target is read.
        let mut moment = self.source.moment().await?;
        let mut of_source = Vec::new();
        for table in self.tables.clone() {
            of_source.push(self.digest(Some(&mut moment), table).await?);
        }
        drop(moment);
        let mut compared = Vec::new();
        for (table, source) in self.tables.clone().into_iter().zip(of_source) {
            // The move alone writes the target, so there it needs no snapshot.
            compared.push(Compared { table, source, target: self.digest(None, table).await? });
        }
        Ok(compared)
    }

    /// The digest of a table of the source at a moment, or of the target.
    pub(super) async fn digest(
        &mut self,
        mut source: Option<&mut DatabaseMoment>,
        table: &'static TransferTable,
    ) -> Result<TableDigest> {
        let (mut digest, mut after) = (TableDigest::default(), None);
        loop {
            let rows = match &mut source {
                Some(moment) => moment.transfer_page(table, after).await?,
                None => self.target.transfer_page(table, after).await?,
            };
            let Some(last) = rows.last() else { return Ok(digest) };
            after = Some(last.key());
            let contents = match (table.name, &source) {
                (FILES, Some(_)) => self.source_files.digests(&rows, |_| true).await?,
                (FILES, None) => self.digests_of_target(&rows).await?,
                _ => Vec::new(),
            };
            digest.add_rows(table, &rows, &contents);
            self.report(0)?;
        }
    }

    /// The digests of files of the target. Reads the bytes of each version once.
    async fn digests_of_target(&mut self, rows: &[TransferRow]) -> Result<Vec<String>> {
        let versions: Vec<_> = rows.iter().map(TransferTable::version_of).collect();
        let is_read = versions.iter().map(|version| self.read_objects.contains(version)).collect::<Vec<_>>();
        let digests = self.target_files.digests(rows, |index| is_read[index]).await?;
        if self.longest_pause.is_some() && self.read_objects.len() < MOST_READ_OBJECTS {
            let found = rows.iter().zip(versions).zip(&digests);
            let is_whole = |row: &TransferRow, digest: &String| {
                row.file().is_some_and(|file| !file.is_inline && file.digest == *digest)
            };
            let whole = found.filter(|((row, _), digest)| is_whole(row, digest)).map(|((_, version), _)| version);
            self.read_objects.extend(whole);
        }
        Ok(digests)
    }
}

/// A table of both databases.
pub(super) struct Compared {
    pub(super) table: &'static TransferTable,
    pub(super) source: TableDigest,
    target: TableDigest,
}

impl Compared {
    pub(super) fn differs(&self) -> bool {
        self.source != self.target
    }
}
