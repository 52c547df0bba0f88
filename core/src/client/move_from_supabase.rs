//! A move from a Supabase project: copies its tables, passwords and files into an empty database and store, and verifies them.
//!
//! Invariant: the project is only read, in one transaction, so all rows are of one moment. Every fault of the project that can be
//! known before the copy is found before the target is touched. The target opens only after every table and every file of it was
//! compared with what was read. Until then a mark in it names the project; a repeated call begins anew.

mod project;

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::Arc,
};

use self::project::Project;
use super::{
    Client,
    move_to::{MoveSource, Progress, Purpose, resolve_target},
};
use crate::{
    auth::is_usable_hash,
    config::{Config, DatabaseLocation, Resolved, SupabaseProject},
    database::{
        FILES, MoveMark, Scope, TableDigest, TransferRow, TransferTable, in_order_of_removal, is_same_project, tables,
    },
    error::{Error, ErrorKind, Operation, Result, operation},
    model::{SupabaseCheck, SupabaseReport},
    storage::{StorageCore, check_progress},
    threads::{self, Runtime},
};

/// The table of the password hashes.
const CREDENTIALS: &str = "credentials";

impl Client {
    /// Copies a Supabase project into an empty database and file store: the tables of the library in the schema `public`, the
    /// password hashes and confirmed addresses of `auth.users`, and the objects of Supabase Storage. `target` is the configuration
    /// of the new place, as [`open`](Client::open) takes it. Needs the feature `postgres`.
    ///
    /// The project is only read, and all rows are of one moment: one transaction, `REPEATABLE READ READ ONLY`. If the bytes of a
    /// file are replaced meanwhile, the move fails, or copies the new bytes if they are as many: stop the writers first.
    ///
    /// Ids and times stay. Users sign in with their old passwords, at first by the bcrypt hash. Deleted users, banned users and
    /// users with an unconfirmed address get no password; [`SupabaseReport::skipped`] counts them. Files keep their bucket, name,
    /// owner, media type, cache time and metadata. The option [`buckets`](Config::buckets) of the target declares the buckets besides
    /// `spaces`, `private` and `assets`. A bucket that is private in the project may be public in the target:
    /// [`SupabaseReport::published_buckets`] names them.
    ///
    /// `progress` gets the number of rows and files that are copied, and the number of all. `Break` stops the move. A move that was
    /// stopped, that failed, or whose process was killed begins anew when the call is repeated with the same project and target.
    /// Until it is complete, `open` refuses the target.
    ///
    /// # Errors
    /// - `Config` if the target is not a new or empty place, as for [`move_to`](Client::move_to); if the project's tables or rows
    ///   do not fit, if the target lacks a bucket, if a file has a path that no file may have, if its bytes are missing or have
    ///   another size than its row says, and if the role of the URL may not read every row. The message lists the faults. Then the
    ///   target is not changed.
    /// - `Cancelled` if `progress` breaks; `Unavailable` if the project or the target does not answer; `Internal`, naming the file,
    ///   if its bytes changed during the move; the errors of the target.
    ///
    /// No error shows a password of a URL.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use townsquare::{Config, SupabaseProject, blocking::Client};
    ///
    /// let project = SupabaseProject::new(std::env::var("PROJECT_URL").unwrap())
    ///     .files("s3://?endpoint=https://abc.storage.supabase.co/storage/v1/s3&region=eu-central-1");
    /// let target = Config::new().data_dir("town").buckets("avatars=public");
    /// let report = Client::move_from_supabase(project, target, |_done, _all| ControlFlow::Continue(()))?;
    /// println!("{} users, {} files", report.rows["users"], report.files);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn move_from_supabase(
        project: SupabaseProject,
        target: Config,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<SupabaseReport> {
        let mut progress = progress;
        operation(Operation::MoveTo, Box::pin(move_project(project, target, &mut progress))).await
    }

    /// Checks what [`move_from_supabase`](Client::move_from_supabase) would do: counts what it would copy, looks for faults of the
    /// project, also for each file, and says whether the move would accept the target. Writes nothing.
    ///
    /// # Errors
    /// `Config` if the project cannot be read at all, such as for a URL of another database; `Unavailable` if the project or the
    /// target does not answer; also `Config` for a target in memory or without a place, and for the project itself. Faults are no
    /// error, nor is a target that would be refused for what it has.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::{Config, SupabaseProject, blocking::Client};
    ///
    /// let project = SupabaseProject::new(std::env::var("PROJECT_URL").unwrap()).files("backup/storage");
    /// let check = Client::check_move_from_supabase(project, Config::new().data_dir("town"))?;
    /// for fault in &check.faults {
    ///     println!("{fault}");
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn check_move_from_supabase(project: SupabaseProject, target: Config) -> Result<SupabaseCheck> {
        operation(Operation::MoveTo, Box::pin(check_project(project, target))).await
    }
}

async fn check_project(project: SupabaseProject, target: Config) -> Result<SupabaseCheck> {
    let runtime = Arc::new(Runtime::start()?);
    let resolved = resolve_target(target)?;
    require_another_database(&project, &resolved)?;
    let buckets = resolved.options.buckets.clone();
    let mut project = Project::open(&project, &buckets, &runtime).await?;
    let purpose = MoveSource::of_project(project.id().to_owned());
    let of_target = on(&runtime, Client::check_target(resolved, Arc::clone(&runtime), purpose)).await;
    let (target, refusal) = match of_target {
        Ok(target) => (Some(target), None),
        Err(error) if error.kind() == ErrorKind::Config => (None, Some(error.message().to_owned())),
        Err(error) => return Err(error),
    };
    let check = project.survey(&mut |_, _| ControlFlow::Continue(())).await?;
    Ok(SupabaseCheck { target, refusal, ..check })
}

async fn move_project(project: SupabaseProject, target: Config, progress: &mut Progress<'_>) -> Result<SupabaseReport> {
    let runtime = Arc::new(Runtime::start()?);
    let resolved = resolve_target(target.clone())?;
    require_another_database(&project, &resolved)?;
    let buckets = resolved.options.buckets.clone();
    let mut project = Project::open(&project, &buckets, &runtime).await?;
    let source = MoveSource::of_project(project.id().to_owned());
    // Before the survey, which may take long.
    on(&runtime, Client::check_target(resolve_target(target)?, Arc::clone(&runtime), source.clone())).await?;
    let check = project.survey(progress).await?;
    if !check.faults.is_empty() {
        let faults: String = check.faults.iter().map(|fault| format!("\n- {fault}")).collect();
        return Err(Error::config(format!("The project cannot be moved as it is:{faults}")));
    }
    check_progress(progress(0, check.rows.values().sum::<u64>() + check.files))?;
    let purpose = Purpose::MoveTarget(source);
    let target = on(&runtime, Client::compose(resolved, Arc::clone(&runtime), purpose)).await?;
    let copied = Copy::new(project, &target, check, progress).run().await;
    target.close().await;
    copied
}

/// # Errors
/// `Config` if the target has the URL of the project: the move would write to the project.
fn require_another_database(project: &SupabaseProject, target: &Resolved) -> Result<()> {
    match &target.database {
        DatabaseLocation::Postgres(url) if is_same_project(url, project.database_url()) => {
            Err(Error::config("The target of a move is another database than its source"))
        }
        _ => Ok(()),
    }
}

/// Runs work on the threads of a runtime.
async fn on<T, F>(runtime: &Arc<Runtime>, work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    runtime.handle().spawn(work).await.unwrap_or_else(|_| Err(threads::panicked()))
}

/// A copy that runs.
struct Copy<'a> {
    project: Project,
    target: Scope,
    target_files: Arc<StorageCore>,
    clock: crate::clock::Clock,
    check: SupabaseCheck,
    progress: &'a mut Progress<'a>,
    /// What was read of the project, by table.
    read: HashMap<&'static str, TableDigest>,
    done: u64,
    all: u64,
}

impl<'a> Copy<'a> {
    fn new<'p: 'a>(
        project: Project,
        target: &Client,
        check: SupabaseCheck,
        progress: &'a mut Progress<'p>,
    ) -> Copy<'a> {
        let core = &target.0.core;
        Copy {
            project,
            target: core.database.service(),
            target_files: Arc::clone(&core.storage),
            clock: core.clock.clone(),
            all: check.rows.values().sum::<u64>() + check.files,
            check,
            progress,
            read: HashMap::new(),
            done: 0,
        }
    }

    async fn run(mut self) -> Result<SupabaseReport> {
        let started = self.clock.moment();
        let begun = self.target.begin_move(self.project.id().to_owned(), true).await?;
        if begun.is_resumed {
            self.clear(&begun.mark).await?;
        }
        for table in tables() {
            match table.name {
                "buckets" => self.declare_buckets(&begun.mark).await?,
                FILES => self.copy_files(&begun.mark, table).await?,
                _ => self.copy_rows(&begun.mark, table).await?,
            }
        }
        let rows = self.compare().await?;
        if begun.is_resumed {
            self.target_files.remove_rest_of_move().await?;
        }
        self.target.flush_commits().await?;
        self.target.end_move(&begun.mark).await?;
        let files = self.read.get(FILES).copied().unwrap_or_default();
        let SupabaseCheck { skipped, published_buckets, .. } = self.check;
        let seconds = self.clock.moment().since(started).as_secs_f64();
        Ok(SupabaseReport { rows, files: files.rows, bytes: files.bytes, skipped, published_buckets, seconds })
    }

    /// Deletes what an earlier call has copied.
    async fn clear(&mut self, mark: &MoveMark) -> Result<()> {
        let all: Vec<_> = tables().iter().collect();
        for table in in_order_of_removal(&all) {
            loop {
                let rows = self.target.transfer_page(table, None).await?;
                if rows.is_empty() {
                    break;
                }
                self.target.remove_rows(mark, table, rows).await?;
                self.report(0)?;
            }
        }
        // The object of a file may be in the way of a file inside its path.
        self.target_files.settle().await;
        Ok(())
    }

    async fn declare_buckets(&mut self, mark: &MoveMark) -> Result<()> {
        let Some((table, rows)) = self.project.buckets().rows() else { return Ok(()) };
        self.read.entry(table.name).or_default().add_rows(table, &rows, &[]);
        self.target.receive_rows(mark, table, rows, None).await
    }

    async fn copy_rows(&mut self, mark: &MoveMark, table: &'static TransferTable) -> Result<()> {
        self.project.moment().open_rows(table).await?;
        loop {
            let mut rows = self.project.moment().next_rows().await?;
            if rows.is_empty() {
                return Ok(());
            }
            if table.name == CREDENTIALS {
                rows.retain(|row| has_usable_hash(table, row));
            }
            let count = rows.len();
            self.read.entry(table.name).or_default().add_rows(table, &rows, &[]);
            self.target.receive_rows(mark, table, rows, None).await?;
            self.report(count)?;
        }
    }

    async fn copy_files(&mut self, mark: &MoveMark, table: &'static TransferTable) -> Result<()> {
        let Some(place) = self.project.place() else { return Ok(()) };
        self.project.moment().open_objects().await?;
        loop {
            let Some(rows) = self.project.next_files().await? else { return Ok(()) };
            let count = rows.len();
            let received = self.target_files.receive_foreign_files(&place, rows).await?;
            let (rows, contents): (Vec<_>, Vec<_>) = received.into_iter().unzip();
            self.read.entry(table.name).or_default().add_rows(table, &rows, &contents);
            self.target.receive_rows(mark, table, rows, None).await?;
            self.report(count)?;
        }
    }

    /// Compares each table of the target with what was read, and the bytes of each file. Returns the numbers of rows.
    ///
    /// # Errors
    /// `Internal`, naming the table.
    async fn compare(&mut self) -> Result<BTreeMap<String, u64>> {
        let mut counts = BTreeMap::new();
        for table in tables() {
            let (mut digest, mut after) = (TableDigest::default(), None);
            loop {
                let rows = self.target.transfer_page(table, after).await?;
                let Some(last) = rows.last() else { break };
                after = Some(last.key());
                let contents = match table.name {
                    FILES => self.target_files.digests(&rows, |_| false).await?,
                    _ => Vec::new(),
                };
                digest.add_rows(table, &rows, &contents);
                self.report(0)?;
            }
            if digest != self.read.get(table.name).copied().unwrap_or_default() {
                let message = format!("The rows of {} in the target are not those of the project", table.name);
                return Err(Error::new(ErrorKind::Internal, message));
            }
            if table.name != FILES {
                counts.insert(table.name.to_owned(), digest.rows);
            }
        }
        Ok(counts)
    }

    /// Counts rows that were copied.
    fn report(&mut self, copied: usize) -> Result<()> {
        self.done += copied as u64;
        self.all = self.all.max(self.done);
        check_progress((self.progress)(self.done, self.all))
    }
}

/// Whether the library can check passwords with the hash of a row.
fn has_usable_hash(table: &TransferTable, row: &TransferRow) -> bool {
    row.text_in(table, "password_hash").is_some_and(is_usable_hash)
}
