//! A move: copies everything of a client into an empty database and store, and verifies it.
//!
//! Invariant: the target opens only after every table and every file of it was compared with one moment of the source. Until
//! then a mark in the target names the source and how far the move has come; a repeated call continues there. A move that follows
//! its source compares during a pause of the writers, and the source refuses writes before the target opens.
//!
//! What a moved database has of the source, and what it has of its own:
//!
//! | of the source | why |
//! |---|---|
//! | the public tables, accounts, password hashes, identities, verified addresses | the data; ids, times, owners and versions stay |
//! | ids of deleted spaces (`former_spaces`) | nobody may claim the id of a page that was there before |
//! | failed sign-ins, known clients | a move must not let an attacker guess anew, nor lock a device out |
//! | sessions and spent refresh tokens, unless the options leave them behind | users stay signed in; a copied token still ends its session |
//! | tokens of recovery and verification | links that were mailed stay valid |
//! | `url_generation` of a user | it counts; a new password still ends URLs of the target |
//! | buckets, files with metadata, times and etags | clients keep what they have cached |
//! | the catalog with its lists | the target answers at once |
//!
//! | of its own | why |
//! |---|---|
//! | incarnation, keys of cursors | a cursor of the source is refused by name: the log of the target begins empty |
//! | key of signed URLs | as after `restore`; the option `url_signing_key` keeps URLs valid |
//! | identity audience, unless the option `identity_audience` names one | a claim for the old audience links no key twice; linked keys stay |
//! | change log, capture | capture is off during the move, so subscribers of the target begin with the moved rows |
//! | store id, place, leases, policies, migrations | they describe the target |
//! | intents and outbox of files | an unfinished write is no file |
//!
//! Quotas are options, and count what an owner has: a move checks none. Nothing of the source is changed, except the mark at the
//! end of a move that followed it.

mod compare;
mod follow;

use std::{
    collections::{BTreeMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use self::compare::Compared;
use super::{Client, on_new_runtime};
use crate::{
    clock::{Clock, Moment},
    config::{Config, DatabaseLocation, FilesLocation, Resolved},
    database::{
        FILES, MoveMark, MoveProgress, Scope, StoredFiles, TransferRow, TransferTable, call, in_order_of_removal,
        require_unused, tables, unfinished_move,
    },
    error::{Error, ErrorKind, Operation, Result},
    model::{MoveOptions, MoveReport, MoveTarget},
    storage::{PreparedStorage, StorageCore, check_progress},
    threads::{BoxedFuture, Runtime, RuntimeHandle},
};

/// Why a client is opened.
pub(super) enum Purpose {
    Use,
    MoveTarget(MoveSource),
}

/// The source of a move.
#[derive(Clone)]
pub(super) struct MoveSource {
    /// What the mark of the target names: the incarnation of the source, or the name of a Supabase project.
    id: String,
    /// `None` for a Supabase project.
    storage: Option<Arc<StorageCore>>,
    /// The incarnation of the target of a move that followed the source and has closed it.
    moved_to: Option<String>,
}

impl MoveSource {
    /// A Supabase project.
    #[cfg(feature = "postgres")]
    pub(super) fn of_project(id: String) -> MoveSource {
        MoveSource { id, storage: None, moved_to: None }
    }
}

impl Purpose {
    /// Checks, before the first change, that the database may be opened for the purpose.
    ///
    /// # Errors
    /// `Config`.
    pub(super) async fn check(&self, storage: &PreparedStorage, stored: &StoredFiles) -> Result<()> {
        let unfinished = stored.unfinished_move.as_deref();
        let source = match (self, unfinished) {
            (Purpose::Use, None) => return Ok(()),
            (Purpose::Use, Some(source)) => return Err(unfinished_move(source)),
            (Purpose::MoveTarget(source), _) => source,
        };
        if stored.usage.incarnation == source.id {
            return Err(Error::config("The target of a move is another database than its source"));
        }
        match &source.moved_to {
            Some(moved_to) if *moved_to != stored.usage.incarnation => return Err(has_moved(moved_to)),
            Some(_) if unfinished.is_none() => {
                let message =
                    "The move is complete: the source takes no writes any more, and the target is the database to open";
                return Err(Error::config(message));
            }
            _ => {}
        }
        if let Some(of_source) = &source.storage {
            storage.check_source(of_source).await?;
        }
        match unfinished {
            Some(unfinished) if unfinished == source.id => Ok(()),
            Some(unfinished) => Err(unfinished_move(unfinished)),
            None => {
                require_unused(&stored.usage.used_tables)?;
                storage.check_empty(stored).await
            }
        }
    }
}

impl Client {
    /// Copies everything of this client into an empty database and file store: rows, users with their password hashes, linked
    /// identities, sessions, files with versions, metadata and times, and the catalog. Compares every table and every file with
    /// one moment of the source at the end. `target` is the configuration of the new place, as [`open`](Client::open) takes it;
    /// the engines and the kinds of stores may differ.
    ///
    /// `progress` gets the number of rows and files that are copied, and the number of all. `Break` stops the move. A move that
    /// was stopped, that failed, or whose process was killed continues when the call is repeated with the same source and target.
    /// Until it is complete, `open` refuses the target, and a client that had it open before cannot write: its calls fail with
    /// `Unavailable` (25006).
    ///
    /// The source is only read. Rows and files that others write meanwhile are copied as well if they are written before the last
    /// comparison begins; if they are written faster, the move fails and names the tables. So make the source read-only,
    /// or stop its writers. Or let the move [follow](crate::MoveOptions::follow) the source: at the end the writers wait for a
    /// short time, and from then on their writes to the source fail with `Unavailable` (25006). So no write is lost: what was
    /// acknowledged before is in the target.
    ///
    /// The target has its own incarnation: it refuses cursors of the change feed and signed URLs of the source, and its default
    /// [`identity_audience`](crate::Config::identity_audience) is another one. Sessions, and tokens of recovery and verification,
    /// are valid in both databases, in each until they end there.
    ///
    /// A move is an operation of the host, not of a caller: every handle may call it, and the target has every row and file, also
    /// those that policies hide from the handle's caller.
    ///
    /// # Errors
    /// - `Config` if the target names no place or a place in memory, if it is the source, has rows or files, is of an older version
    ///   of the library, or has an unfinished move from another source; and if the source has moved to another target before. Then
    ///   nothing is changed.
    /// - `Conflict` if the source was written during the comparison: the message names the tables. Also if another call has
    ///   taken the move over, and if the last copy of a source that is followed takes longer than the pause: its writers go on.
    /// - `Cancelled` if `progress` breaks; `Internal`, naming the file, if the bytes of a file are gone or of another version; the
    ///   errors of both databases and stores.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use std::ops::ControlFlow;
    /// use townsquare::{Config, MoveOptions};
    ///
    /// let target = Config::new().database_url("postgres://localhost/town").storage_url("s3://town-files");
    /// let report = client.move_to(target, MoveOptions::new(), |done, all| {
    ///     println!("{done} of {all}");
    ///     ControlFlow::Continue(())
    /// })?;
    /// println!("{} files in {:.1} s", report.files, report.seconds);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn move_to(
        &self,
        target: Config,
        options: MoveOptions,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<MoveReport> {
        let mut progress = progress;
        call(self.0.auth.principal(), Operation::MoveTo, self.run_move(target, options, &mut progress)).await
    }

    /// Checks whether [`move_to`](Client::move_to) would accept `target`, and returns what it would find there. Writes nothing.
    ///
    /// The check looks at the target alone. [`check`](Client::check) looks for faults of the source.
    ///
    /// # Errors
    /// `Config` if the move would be refused, with the error of the move; the errors of the target's database and store.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
    /// use townsquare::{Config, MoveTarget};
    ///
    /// let target = Config::new().data_dir(folder.path().join("target"));
    /// assert_eq!(client.check_move(target)?, MoveTarget::New);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn check_move(&self, target: Config) -> Result<MoveTarget> {
        let check = async {
            let source = self.move_source().await?;
            with_target(target, |resolved, runtime| Client::check_target(resolved, runtime, source)).await
        };
        call(self.0.auth.principal(), Operation::MoveTo, check).await
    }

    /// Accepts writes again after a move that [followed](crate::MoveOptions::follow) this database. Returns whether writes were
    /// refused. Call it if the target is given up: what is written from now on is in this database alone. A backup of a database that
    /// refuses writes refuses them, too, after its restore.
    ///
    /// Like a move, it is an operation of the host, not of a caller.
    ///
    /// # Errors
    /// The errors of the database.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// assert!(!client.reopen_for_writes()?);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn reopen_for_writes(&self) -> Result<bool> {
        let reopen = async { self.0.core.database.service().reopen_for_writes().await };
        call(self.0.auth.principal(), Operation::ReopenForWrites, reopen).await
    }

    async fn move_source(&self) -> Result<MoveSource> {
        let service = self.0.core.database.service();
        let (id, moved_to) = (service.incarnation().await?, service.moved_to().await?);
        Ok(MoveSource { id, storage: Some(Arc::clone(&self.0.core.storage)), moved_to })
    }

    fn run_move<'a>(
        &'a self,
        target: Config,
        options: MoveOptions,
        progress: &'a mut Progress<'a>,
    ) -> BoxedFuture<'a, Result<MoveReport>> {
        Box::pin(async move {
            let service = self.0.core.database.service();
            let source = self.move_source().await?;
            if options.longest_pause.is_some() && !service.can_pause_writes() {
                return Err(Error::config("A move cannot follow a database in memory: stop its writers instead"));
            }
            let id = source.id.clone();
            let purpose = Purpose::MoveTarget(source);
            let target = with_target(target, |resolved, runtime| Client::compose(resolved, runtime, purpose)).await?;
            let copied = async {
                let started = self.0.core.clock.moment();
                let report = Move::begin(self, id, &target, options, progress).await?.run().await?;
                Ok(MoveReport { seconds: self.0.core.clock.moment().since(started).as_secs_f64(), ..report })
            };
            let copied = copied.await;
            target.close().await;
            copied
        })
    }
}

/// Runs `work` with the configuration of the target, on a new runtime.
async fn with_target<T, F>(target: Config, work: impl FnOnce(Resolved, Arc<Runtime>) -> F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let resolved = resolve_target(target)?;
    on_new_runtime(|runtime| work(resolved, runtime)).await
}

/// The configuration of the target, which is neither in memory nor left to the defaults.
///
/// # Errors
/// `Config`.
pub(super) fn resolve_target(config: Config) -> Result<Resolved> {
    if !config.names_place() {
        return Err(Error::config("The target of a move needs the option data_dir or database_url"));
    }
    let resolved: Resolved = config.resolve()?;
    let in_memory = |option: &str| Error::config(format!("Option {option}: a target in memory is lost after the move"));
    match (&resolved.database, &resolved.files) {
        (DatabaseLocation::SqliteMemory, _) => Err(in_memory("data_dir")),
        (_, FilesLocation::Memory) => Err(in_memory("storage_url")),
        _ => Ok(resolved),
    }
}

/// How often a move copies again what was written to the source meanwhile.
const CATCH_UPS: usize = 3;

/// A callback with the number of rows and files that are copied, and the number of all. `Break` cancels the move.
pub(super) type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + Send + 'a;

/// A move that runs.
struct Move<'a> {
    runtime: RuntimeHandle,
    clock: Clock,
    source: Scope,
    target: Scope,
    source_files: Arc<StorageCore>,
    target_files: Arc<StorageCore>,
    tables: Vec<&'static TransferTable>,
    mark: MoveMark,
    is_resumed: bool,
    reached: MoveProgress,
    /// How long writers may wait at the end of a move that follows the source.
    longest_pause: Option<Duration>,
    /// When the pause that lasts now has to end.
    pause_end: Option<Moment>,
    /// The digests of keys and versions of the objects whose bytes were read in the target and are those of their rows. Nobody else
    /// writes the target.
    read_objects: HashSet<[u8; 32]>,
    progress: &'a mut Progress<'a>,
    done: u64,
    all: u64,
}

impl<'a> Move<'a> {
    async fn begin(
        source: &Client,
        source_id: String,
        target: &Client,
        options: MoveOptions,
        progress: &'a mut Progress<'a>,
    ) -> Result<Move<'a>> {
        let (source_scope, target_scope) = (source.0.core.database.service(), target.0.core.database.service());
        let begun = target_scope.begin_move(source_id, options.sessions).await?;
        let is_copied = |table: &&TransferTable| options.sessions || !table.is_of_sessions();
        let mut moving = Move {
            runtime: source.0.core.runtime.handle().clone(),
            clock: source.0.core.clock.clone(),
            source: source_scope,
            target: target_scope,
            source_files: Arc::clone(&source.0.core.storage),
            target_files: Arc::clone(&target.0.core.storage),
            tables: tables().iter().filter(is_copied).collect(),
            mark: begun.mark,
            is_resumed: begun.is_resumed,
            reached: begun.progress,
            longest_pause: options.longest_pause,
            pause_end: None,
            read_objects: HashSet::new(),
            progress,
            done: 0,
            all: 0,
        };
        moving.source_files.settle().await;
        for table in moving.tables.clone() {
            moving.all += moving.source.transfer_count(table).await?;
            moving.done += moving.target.transfer_count(table).await?;
        }
        Ok(moving)
    }

    async fn run(mut self) -> Result<MoveReport> {
        self.report(0)?;
        let misfit = misfit_of(self.copy_rest().await)?;
        match self.longest_pause {
            // An earlier call has ended the writes of the source.
            Some(longest) if self.source.moved_to().await?.is_none() => self.follow(misfit, longest).await,
            _ => self.catch_up(misfit).await,
        }
    }

    /// Copies what was written to the source meanwhile, and ends the move if nobody writes any more.
    async fn catch_up(mut self, mut misfit: Option<Error>) -> Result<MoveReport> {
        let mut changed = self.tables.clone();
        for catch_up in 0..=CATCH_UPS {
            if misfit.is_none() {
                let compared = self.compare().await?;
                changed = compared.iter().filter(|table| table.differs()).map(|table| table.table).collect();
                if changed.is_empty() {
                    return self.finish(&compared).await;
                }
            }
            if catch_up < CATCH_UPS {
                let tables = if misfit.is_none() { changed.clone() } else { self.tables.clone() };
                tracing::info!(
                    tables = names(&tables),
                    "the source of a move was written meanwhile: copying the changes"
                );
                misfit = misfit_of(self.copy_again(&tables, misfit.is_some()).await)?;
            }
        }
        Err(match misfit {
            Some(misfit) => {
                let message = format!(
                    "Rows of the source do not fit together ({misfit}). If programs write to it, stop them and call move_to again, or \
                     let it follow the source. If nobody does, mend the rows"
                );
                Error::new(ErrorKind::Conflict, message).caused_by(misfit)
            }
            None => Error::new(
                ErrorKind::Conflict,
                format!(
                    "The source was written during the move, in the tables {}. Stop its writers and call move_to again, or let it \
                     follow the source",
                    names(&changed)
                ),
            ),
        })
    }

    /// Copies what an earlier call has not copied.
    async fn copy_rest(&mut self) -> Result<()> {
        let reached = self.reached.clone();
        for table in self.tables.clone() {
            if !reached.is_behind(table) {
                self.copy_table(table, reached.after(table), false).await?;
            }
        }
        Ok(())
    }

    /// Makes tables that were copied what they are in the source now. `removes_changed`: rows that have changed are deleted first, with
    /// the rows that depend on them, so that no old value is in the way of a new one. Then `tables` must be all tables.
    async fn copy_again(&mut self, tables: &[&'static TransferTable], removes_changed: bool) -> Result<()> {
        for table in in_order_of_removal(tables) {
            self.remove_others(table, removes_changed).await?;
        }
        // The object of a file that was removed may be in the way of a file inside its path.
        self.target_files.settle().await;
        for table in tables {
            self.copy_table(table, None, true).await?;
        }
        Ok(())
    }

    /// Opens the target for everybody.
    async fn finish(self, compared: &[Compared]) -> Result<MoveReport> {
        if self.is_resumed {
            // Files that the source has lost since: no row of the target names their bytes.
            self.target_files.remove_rest_of_move().await?;
        }
        self.target.flush_commits().await?;
        // The mark of a source that was followed.
        self.source.flush_commits().await?;
        self.target.end_move(&self.mark).await?;
        let rows: BTreeMap<_, _> =
            compared.iter().map(|table| (table.table.name.to_owned(), table.source.rows)).collect();
        let files =
            compared.iter().find(|table| table.table.name == FILES).map(|table| table.source).unwrap_or_default();
        let rows = rows.into_iter().filter(|(name, _)| name != FILES).collect();
        Ok(MoveReport { rows, files: files.rows, bytes: files.bytes, seconds: 0.0, resumed: self.is_resumed })
    }

    /// Counts rows that were copied.
    fn report(&mut self, copied: usize) -> Result<()> {
        if self.is_pause_over() {
            return Err(Error::new(ErrorKind::Conflict, "The pause of the writers is over"));
        }
        self.done += copied as u64;
        self.all = self.all.max(self.done);
        // A host that writes the source in its callback would wait for the end of the pause, and the pause for the host.
        if self.pause_end.is_some() {
            return Ok(());
        }
        check_progress((self.progress)(self.done, self.all))
    }

    /// Copies the rows of a table after a key. `is_repeated`: rows and bytes of an earlier copy are there.
    async fn copy_table(
        &mut self,
        table: &'static TransferTable,
        mut after: Option<Vec<crate::database::Value<'static>>>,
        is_repeated: bool,
    ) -> Result<()> {
        // A page that was not committed may have left objects, which are written again.
        loop {
            let rows = self.source.transfer_page(table, after).await?;
            let Some(last) = rows.last() else { break };
            let (point, count) = (MoveProgress::at(last), rows.len());
            after = Some(last.key());
            let rows = if is_repeated { self.unlike_target(table, rows).await? } else { rows };
            let rows = match table.name {
                FILES => self.target_files.receive_files(&self.source_files, rows, is_repeated).await?,
                _ => rows,
            };
            for row in &rows {
                self.read_objects.remove(&TransferTable::version_of(row));
            }
            let point = (!is_repeated).then_some(&point);
            if !rows.is_empty() || point.is_some() {
                self.target.receive_rows(&self.mark, table, rows, point).await?;
            }
            self.report(if is_repeated { 0 } else { count })?;
        }
        if !is_repeated {
            self.target.receive_rows(&self.mark, table, Vec::new(), Some(&MoveProgress::behind(table))).await?;
        }
        Ok(())
    }

    /// The rows of the source that the target does not have, or has with other values.
    async fn unlike_target(
        &mut self,
        table: &'static TransferTable,
        mut rows: Vec<TransferRow>,
    ) -> Result<Vec<TransferRow>> {
        let known = self.target.transfer_rows(table, &rows).await?;
        rows.retain(|row| known.with_key_of(row).is_none_or(|known| !table.are_equal(known, row)));
        Ok(rows)
    }

    /// Deletes the rows of the target that the source does not have any more; with `removes_changed` also those that it has with other
    /// values.
    async fn remove_others(&mut self, table: &'static TransferTable, removes_changed: bool) -> Result<()> {
        let mut after = None;
        loop {
            let rows = self.target.transfer_page(table, after).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.key());
            let mut others = Vec::new();
            let found = self.source.transfer_rows(table, &rows).await?;
            for row in rows {
                let of_source = match found.with_key_of(&row) {
                    Some(of_source) => Some(of_source.clone()),
                    None => self.source.transfer_row(&row).await?,
                };
                let is_kept = match of_source {
                    // The place of a file's bytes is another one in each store.
                    Some(of_source) => !removes_changed || table.name == FILES || table.are_equal(&of_source, &row),
                    None => false,
                };
                if !is_kept {
                    others.push(row);
                }
            }
            self.target.remove_rows(&self.mark, table, others).await?;
            self.report(0)?;
        }
    }
}

/// # Errors
/// `Config` if a move that followed the source has closed it, and its target was another one.
async fn require_not_moved(source: &Scope, target: &Scope) -> Result<()> {
    match source.moved_to().await? {
        Some(moved_to) if moved_to != target.incarnation().await? => Err(has_moved(&moved_to)),
        _ => Ok(()),
    }
}

fn has_moved(moved_to: &str) -> Error {
    Error::config(format!(
        "The source has moved to the database with the incarnation {moved_to}: move that one, or call reopen_for_writes \
         (townsquare repair --reopen) if it is given up"
    ))
}

/// Why rows that were read one after the other do not fit together: the source was written meanwhile. `None` if they do.
///
/// # Errors
/// Any other error of the copy.
fn misfit_of(copied: Result<()>) -> Result<Option<Error>> {
    match copied {
        Ok(()) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::ReferenceMissing | ErrorKind::AlreadyExists) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

fn names(tables: &[&TransferTable]) -> String {
    tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ")
}
