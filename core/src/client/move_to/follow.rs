//! The end of a move that follows its source: the rounds that copy what is written meanwhile, and the pause of the writers.
//!
//! Invariant: the source is closed for writes only in the pause in which it was found equal to the target.

use std::time::Duration;

use super::{Move, compare::Compared, misfit_of, names, require_not_moved};
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
    /// Copies in rounds what is written meanwhile, until a round takes more than half as long as the one before. Then compares while
    /// the writers wait, closes the source for writes and opens the target.
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
        let mut obstacle = too_short(longest);
        for _ in 0..PAUSES {
            match self.close_source_within(misfit, longest).await {
                Ok(Some(compared)) => return self.finish(&compared).await,
                Ok(None) => obstacle = too_short(longest),
                Err(error) if is_temporary(&error) => obstacle = error,
                Err(error) => return Err(error),
            }
            tracing::info!(error = %obstacle, "the writers of the source of a move go on");
            // A writer that died meanwhile may have left an upload.
            self.source_files.settle().await;
            misfit = self.copy_changes(None).await?;
        }
        Err(obstacle)
    }

    /// Does what [`close_source`](Self::close_source) does, while no upload begins.
    async fn close_source_within(&mut self, misfit: Option<Error>, longest: Duration) -> Result<Option<Vec<Compared>>> {
        let uploads = self.source_files.pause_uploads(longest).await?;
        let closed = self.close_source(misfit, longest).await;
        self.pause_end = None;
        uploads.release().await;
        closed
    }

    /// Compares while the writers wait, and closes the source for writes. `None` if the pause is too short for that.
    async fn close_source(&mut self, misfit: Option<Error>, longest: Duration) -> Result<Option<Vec<Compared>>> {
        let end = self.clock.moment().after(longest);
        let pause = self.source.pause_writes(&self.runtime, longest).await?;
        self.pause_end = Some(end);
        require_not_moved(&self.source, &self.target).await?;
        if self.source_files.unfinished_uploads().await? > 0 {
            return Ok(None);
        }
        let compared = match self.copy_and_compare(misfit).await {
            Err(_) if self.is_pause_over() => return Ok(None),
            compared => compared?,
        };
        let changed: Vec<_> = compared.iter().filter(|table| table.differs()).map(|table| table.table).collect();
        if self.is_pause_over() {
            return Ok(None);
        }
        if !changed.is_empty() {
            let message = format!(
                "The copy of the tables {} differs from the source, although all writers waited: see whether `check` finds damaged files",
                names(&changed)
            );
            return Err(Error::new(ErrorKind::Internal, message));
        }
        self.target.flush_commits().await?;
        let is_closed = pause.keep(self.target.incarnation().await?).await?;
        Ok(is_closed.then_some(compared))
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

/// Whether a later pause may succeed: a transaction of another program, or an upload, has not ended.
fn is_temporary(error: &Error) -> bool {
    matches!(error.code(), Some("55P03" | "57014")) || error.kind() == ErrorKind::Conflict
}

fn too_short(longest: Duration) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!(
            "The changes of the source cannot be copied and compared in a pause of {:.1} s. Allow a longer one, or stop its writers",
            longest.as_secs_f64()
        ),
    )
}
