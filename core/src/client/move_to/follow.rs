//! The end of a move that follows its source: the rounds that copy what is written meanwhile, and the pause of the writers.
//!
//! Invariant: the source is closed for writes only while the pause lasts in which it was found equal to the target.

use std::time::Duration;

use super::{Compared, Move, misfit_of, names};
use crate::{
    database::FILES,
    error::{Error, ErrorKind, Result},
    model::MoveReport,
};

/// The most rounds before the first pause.
const ROUNDS: usize = 5;

/// How many pauses a move makes before it gives up.
const PAUSES: usize = 5;

impl Move<'_> {
    /// Copies what is written meanwhile, until a round does not become much shorter by the round before. Then compares while the
    /// writers wait, closes the source for writes and opens the target.
    pub(super) async fn follow(mut self, misfit: Option<Error>, longest: Duration) -> Result<MoveReport> {
        let (mut misfit, mut last) = (misfit, Duration::MAX);
        for _ in 0..ROUNDS {
            let begun = self.clock.moment();
            misfit = self.copy_changes(misfit).await?;
            // Reads the bytes of the objects that were copied, which then need not be read during the pause.
            self.read_target_files().await?;
            let took = self.clock.moment().since(begun);
            if misfit.is_none() && took > last / 2 {
                break;
            }
            last = took;
        }
        for _ in 0..PAUSES {
            let uploads = self.source_files.pause_uploads(longest).await?;
            let closed = self.close_source(misfit, longest).await;
            self.pause_end = None;
            uploads.release().await;
            if let Some(compared) = closed? {
                return self.finish(&compared).await;
            }
            tracing::info!("the pause of a move was too short; its source is written again");
            misfit = self.copy_changes(None).await?;
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "The changes of the source cannot be copied and compared in a pause of {:.1} s. Allow a longer one, or stop its writers",
                longest.as_secs_f64()
            ),
        ))
    }

    /// Compares while the writers wait, and closes the source for writes. `None` if the pause is too short for that.
    async fn close_source(&mut self, misfit: Option<Error>, longest: Duration) -> Result<Option<Vec<Compared>>> {
        let pause = self.source.pause_writes(&self.runtime).await?;
        self.pause_end = Some(self.clock.moment().after(longest));
        if self.source_files.unfinished_uploads().await? > 0 {
            return Ok(None);
        }
        let compared = match self.copy_and_compare(misfit).await {
            Err(_) if self.is_pause_over() => return Ok(None),
            compared => compared?,
        };
        let changed: Vec<_> = compared.iter().filter(|table| table.differs()).map(|table| table.table).collect();
        if !changed.is_empty() {
            let message = format!("The tables {} changed while all writers waited", names(&changed));
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.target.flush_commits().await?;
        pause.keep(self.target.incarnation().await?).await?;
        Ok(Some(compared))
    }

    /// Whether a pause lasts and has to end.
    pub(super) fn is_pause_over(&self) -> bool {
        self.pause_end.is_some_and(|end| self.clock.moment() >= end)
    }

    /// Makes the target what the source was at some time of this call, table by table. Returns why rows did not fit together.
    async fn copy_changes(&mut self, misfit: Option<Error>) -> Result<Option<Error>> {
        let tables = self.tables.clone();
        misfit_of(self.copy_again(&tables, misfit.is_some()).await)
    }

    async fn copy_and_compare(&mut self, misfit: Option<Error>) -> Result<Vec<Compared>> {
        // Values that are unique may have gone from one row to another: then the changed rows are removed first.
        if let Some(misfit) = self.copy_changes(misfit).await?
            && let Some(misfit) = self.copy_changes(Some(misfit)).await?
        {
            return Err(misfit);
        }
        self.compare().await
    }

    async fn read_target_files(&mut self) -> Result<()> {
        for table in self.tables.clone().into_iter().filter(|table| table.name == FILES) {
            self.digest(None, table).await?;
        }
        Ok(())
    }
}
