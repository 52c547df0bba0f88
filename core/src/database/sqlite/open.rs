//! Opens a SQLite file: checks that it is a townsquare database, configures the connection, migrates.
//!
//! Invariant: a file that is not a SQLite database, belongs to another program or another build, or is newer than this library
//! is refused before anything is written to it. The file is read through SQLite only: closing any other descriptor of the
//! file would drop the locks of another client of this process.

use std::{io, path::Path, sync::Arc, time::Duration};

use rusqlite::{ErrorCode, OpenFlags, config::DbConfig, ffi};

use super::{
    connection::Connection,
    copy_stage,
    errors::{is_out_of_memory, translate},
    file_id::{FileId, beside, file_id},
    memory::{Gate, Source},
    migrate,
    open_files::OpenFiles,
    open_mark::OpenMark,
    private_file::{self, parent},
    stored_files,
    write_connection::WriteConnection,
};
#[cfg(unix)]
use crate::regular_file::DatabaseFiles;
use crate::{
    clock::Clock,
    config::Durability,
    database::{
        migration::{SQLITE as MIGRATIONS, must_be_current, plan},
        options::OpenOptions,
        stored_files::StoredFiles,
    },
    error::{Error, ErrorKind, Result, is_out_of_descriptors},
    file_place::{Use, denied_use},
    threads::ForkMark,
};

/// `PRAGMA application_id` of a townsquare database: "twsq".
const APPLICATION_ID: i64 = 0x7477_7371;

/// The name of the database file in a data folder.
pub(super) const FILE_NAME: &str = "townsquare.db";

/// The bytes to which the WAL file shrinks after a checkpoint that a larger transaction made necessary.
const WAL_SIZE_LIMIT: u64 = 64 << 20;

/// The oldest SQLite that resets a WAL without a risk of losing it.
const OLDEST_SQLITE: i32 = 3_051_003;

/// The flags of every connection to a database in memory.
const MEMORY_FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_URI.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// A database that may be opened. Nothing was written yet.
pub(super) struct CheckedFile {
    /// `None` if there is no file yet, and for a database in memory.
    opened: Option<OpenedFile>,
    pub(super) stored_files: StoredFiles,
}

/// A database file with an open connection.
struct OpenedFile {
    connection: rusqlite::Connection,
    file_id: FileId,
    marks: ProcessMarks,
}

/// What shows the rest of the process that a client has the database open. Dropped after the last connection.
pub(super) struct ProcessMarks {
    /// `None` for a database in memory, and until the database has all its files.
    #[cfg(unix)]
    files: Option<DatabaseFiles>,
    /// `None` for a database in memory.
    _copies: Option<OpenMark>,
    _fork: ForkMark,
}

impl ProcessMarks {
    fn new(fork: ForkMark, copies: Option<OpenMark>) -> ProcessMarks {
        ProcessMarks {
            #[cfg(unix)]
            files: None,
            _copies: copies,
            _fork: fork,
        }
    }

    /// Keeps the rest of the process from opening the files.
    fn reserve(&mut self, files: &OpenFiles) {
        #[cfg(unix)]
        {
            self.files = Some(DatabaseFiles::new(files.ids()));
        }
        #[cfg(not(unix))]
        let _ = files;
    }
}

/// Checks a database, and that it may be created or migrated if it has to be. Writes nothing.
///
/// # Errors
/// `Config`.
pub(super) fn check(source: &Source, options: &OpenOptions) -> Result<CheckedFile> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = rusqlite::version();
        return Err(Error::config(format!("SQLite {found} is linked; townsquare needs 3.51.3 or newer")));
    }
    let Some(file) = source.file() else {
        return new_database(options, || "A database in memory is always new".to_owned());
    };
    // In this order: another process that creates the database writes to the file first.
    if has_bytes(&beside(file, "-wal")) && !has_bytes(file) {
        return Err(lost_database(file));
    }
    if !exists(file)? {
        refuse_unfinished_copy(file)?;
        return new_database(options, || format!("There is no database {}", file.display()));
    }
    let (opened, version) = connect_checked(file, options)?;
    let mut stored_files = stored_files::read(&opened.connection, version)?;
    // A move that was killed may leave a file without tables.
    if options.is_move_target && version > 0 {
        must_be_current(MIGRATIONS, version)?;
        stored_files.usage = stored_files::read_usage(&opened.connection)?;
    }
    if options.is_plan {
        stored_files.plan = Some(migrate::plan(&opened.connection, version)?);
    }
    Ok(CheckedFile { opened: Some(opened), stored_files })
}

/// What is known of a database that `open` makes. `missing` says that there is none.
///
/// # Errors
/// `Config` if the options do not allow a new database.
fn new_database(options: &OpenOptions, missing: impl FnOnce() -> String) -> Result<CheckedFile> {
    if !options.migrate {
        return Err(Error::no_database(missing()));
    }
    let plan = options.is_plan.then(|| plan(MIGRATIONS, 0, false));
    Ok(CheckedFile { opened: None, stored_files: StoredFiles { plan, ..StoredFiles::default() } })
}

/// Whether there is a database file.
///
/// # Errors
/// `Config` if the host denies to look for it.
fn exists(file: &Path) -> Result<bool> {
    match file.try_exists() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(denied(file, error)),
        exists => Ok(exists.unwrap_or(false)),
    }
}

fn has_bytes(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() > 0)
}

/// The error for a write-ahead log without its database. It has writes that were acknowledged, and SQLite would delete it.
fn lost_database(file: &Path) -> Error {
    let name = file.display();
    Error::config(format!(
        "{name} is missing or empty, and its write-ahead log {name}-wal is there: put the database back beside the log, or \
         move the log away to begin with a new database"
    ))
}

/// The error of an open that failed with `error`: a damaged database cannot be used.
pub(super) fn refuse_damage(source: &Source, error: Error) -> Error {
    match source.file() {
        Some(file) if error.kind() == ErrorKind::Internal && error.is_damage() => {
            Error::damaged_file(format!("{} is damaged: {}", file.display(), error.message())).caused_by(error)
        }
        _ => error,
    }
}

/// # Errors
/// `Unavailable` while a backup or a restore writes the database `file`; `Config` if one was killed before its end: a new database
/// would take the place of the one that was expected.
fn refuse_unfinished_copy(file: &Path) -> Result<()> {
    let name = file.display();
    if !has_bytes(file) && copy_stage::is_in_use(file) {
        return Err(Error::unavailable(format!("A backup or a restore writes {name}: open it when that has ended")));
    }
    if copy_stage::is_left_unfinished(file) {
        return Err(Error::config(format!(
            "A restore or a backup to {name} was killed before its end: repeat it, or remove the folder {name}.*.part for a new \
             database"
        )));
    }
    Ok(())
}

/// # Errors
/// `Config` if the file is mounted without its folder: its write-ahead log would be in another place, which a container loses. (Known on
/// Linux 5.8 and newer.)
fn require_its_folder(file: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

        let mount_of = |path: &Path| {
            let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
            StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID).then_some(found.stx_mnt_id)
        };
        // SQLite follows a symbolic link and keeps the log beside its target.
        let real = file.canonicalize().ok();
        let mounts = real.as_deref().and_then(|real| Some((mount_of(real)?, mount_of(real.parent()?)?)));
        if mounts.is_some_and(|(of_file, of_folder)| of_file != of_folder) {
            return Err(Error::config(format!(
                "{} is mounted without its folder, so its write-ahead log would not be beside it: mount the folder",
                file.display()
            )));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    Ok(())
}

/// # Errors
/// `Config` if the file is a hard link of another one: each name would have a write-ahead log of its own, with writes that are not in
/// the other. (Known on Unix.)
fn require_one_name(file: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let has_another = || file.metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) > 1);
        // Where a file is renamed in two steps, a new database has two names for a moment.
        for _ in 0..50 {
            if !has_another() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Error::config(format!(
            "{} has another name, a hard link, and each name would have a write-ahead log of its own: remove the other name, or \
             copy the file",
            file.display()
        )))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}

/// Connects to a file that exists. Returns the version of the database, too.
///
/// # Errors
/// `Config` if the file is no database for this library, has another name or is mounted without its folder, if another copy of the library in this process
/// has it open, and in a child that was forked while its parent had a client open.
fn connect_checked(file: &Path, options: &OpenOptions) -> Result<(OpenedFile, usize)> {
    let fork_mark = ForkMark::new()?;
    // Before the connection opens the file: a file that is replaced meanwhile is noticed.
    let file_id = file_id(file).map_err(|error| {
        Error::config(format!("Cannot use {} as database: {error}", file.display())).caused_by(error)
    })?;
    require_its_folder(file)?;
    require_one_name(file)?;
    let marks = ProcessMarks::new(fork_mark, Some(OpenMark::create(&file_id)?));
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(file, flags, options.busy_timeout).map_err(|error| cannot_use(file, error))?;
    check_application_id(&connection).map_err(|reason| reason.into_error(file))?;
    let version = migrate::version(&connection)?;
    if !options.migrate
        && let Some(error) = migrate::must_not_migrate(&connection, version)?
    {
        return Err(error);
    }
    Ok((OpenedFile { connection, file_id, marks }, version))
}

/// Opens the connection that writes. Creates `folder` and the database if they are missing, and migrates the database.
pub(super) fn open_writer(
    checked: CheckedFile,
    file: &Path,
    folder: Option<&Path>,
    options: &OpenOptions,
) -> Result<(WriteConnection, Arc<OpenFiles>, ProcessMarks)> {
    if let Some(folder) = folder {
        private_file::create_folder(folder).map_err(|error| {
            let message = format!("Option data_dir: cannot create {}: {error}", folder.display());
            Error::new(kind_of_host(&error), message).caused_by(error)
        })?;
    }
    refuse_unfinished_copy(file)?;
    if file.exists()
        && let Err(error) = copy_stage::remove_stale(file)
    {
        tracing::warn!(%error, "what a killed restore or backup left cannot be removed");
    }
    let create = || {
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            private_file::create_folder(folder)?;
        }
        private_file::create_file(file)
    };
    private_file::repeat_if_missing(create).map_err(|error| denied(file, error))?;
    // A restore that has begun since may not have seen the file. One that begins now does.
    refuse_unfinished_copy(file)?;
    // An error drops these in reverse order: the connection before the marks.
    let OpenedFile { mut marks, file_id, mut connection } = match checked.opened {
        Some(opened) => opened,
        None => connect_checked(file, options)?.0,
    };
    if let Some(reason) = denied_write(file) {
        tracing::warn!(path = %file.display(), %reason, "every write to the database will fail");
    }
    configure(&connection, options).map_err(|error| cannot_use(file, error))?;
    migrate::run(&mut connection, APPLICATION_ID, &options.clock)?;
    connection.set_prepared_statement_cache_capacity(Connection::MAX_STATEMENTS);
    let files = Arc::new(OpenFiles::of(file, file_id)?);
    marks.reserve(&files);
    Ok((WriteConnection::new(Connection(connection), Arc::clone(&files), None), files, marks))
}

/// Opens the connection that writes to a new database in memory, and creates the tables.
pub(super) fn open_memory(
    uri: &str,
    gate: &Arc<Gate>,
    options: &OpenOptions,
) -> Result<(WriteConnection, Arc<OpenFiles>, ProcessMarks)> {
    let marks = ProcessMarks::new(ForkMark::new()?, None);
    let flags = MEMORY_FLAGS | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = connect(Path::new(uri), flags, options.busy_timeout).map_err(translate)?;
    let settings = "PRAGMA journal_mode = MEMORY; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -4096; PRAGMA trusted_schema = OFF;";
    connection.execute_batch(settings).map_err(translate)?;
    migrate::run(&mut connection, APPLICATION_ID, &options.clock)?;
    connection.set_prepared_statement_cache_capacity(Connection::MAX_STATEMENTS);
    let files = Arc::new(OpenFiles::none());
    let connection = WriteConnection::new(Connection(connection), Arc::clone(&files), Some(Arc::clone(gate)));
    Ok((connection, files, marks))
}

/// Opens a read-only connection.
///
/// It keeps SQLite's default page cache of 2 MiB, so that many readers stay small. A larger cache measured no faster.
pub(super) fn open_reader(source: &Source, busy_timeout: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let (connection, settings) = match source {
        Source::File(file) => (connect(file, flags, busy_timeout), "PRAGMA query_only = ON;"),
        Source::Memory(uri, _) => (
            connect(Path::new(uri), MEMORY_FLAGS | OpenFlags::SQLITE_OPEN_READ_WRITE, busy_timeout),
            "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY;",
        ),
    };
    let connection = connection.map_err(translate)?;
    connection.execute_batch(settings).map_err(translate)?;
    connection.set_prepared_statement_cache_capacity(Connection::MAX_STATEMENTS);
    Ok(Connection(connection))
}

fn connect(file: &Path, flags: OpenFlags, busy_timeout: Duration) -> rusqlite::Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open_with_flags(file, flags)?;
    // Plans do not depend on bound values, so a bound LIMIT does not prepare the statement again at each call.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(busy_timeout)?;
    Ok(connection)
}

/// Why a file is refused.
enum RefusedFile {
    NotADatabase,
    OtherProgram,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for RefusedFile {
    fn from(error: rusqlite::Error) -> RefusedFile {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => RefusedFile::NotADatabase,
            _ => RefusedFile::Sqlite(error),
        }
    }
}

impl RefusedFile {
    fn into_error(self, file: &Path) -> Error {
        let name = file.display();
        match self {
            RefusedFile::NotADatabase => Error::damaged_file(format!("{name} is not a SQLite database")),
            RefusedFile::OtherProgram => Error::config(format!("{name} is a SQLite database of another program")),
            RefusedFile::Sqlite(error) => cannot_use(file, error),
        }
    }
}

/// Returns `Config` unless `connection` is open on a townsquare database.
pub(super) fn require_application_id(connection: &rusqlite::Connection, file: &Path) -> Result<()> {
    match application_id(connection).map_err(RefusedFile::from) {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(RefusedFile::OtherProgram.into_error(file)),
        Err(reason) => Err(reason.into_error(file)),
    }
}

/// Refuses a database that is neither empty nor a townsquare database.
fn check_application_id(connection: &rusqlite::Connection) -> Result<(), RefusedFile> {
    // One transaction, because another process may be creating the database at the same time.
    let transaction = connection.unchecked_transaction()?;
    let objects: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match application_id(&transaction)? {
        APPLICATION_ID => Ok(()),
        0 if objects == 0 => Ok(()),
        _ => Err(RefusedFile::OtherProgram),
    }
}

fn application_id(connection: &rusqlite::Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Sets the options of the connection that writes.
fn configure(connection: &rusqlite::Connection, options: &OpenOptions) -> rusqlite::Result<()> {
    let mode = switch_to_wal(connection, options.busy_timeout)?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_CANTOPEN),
            Some(format!("its file system does not support WAL (journal mode {mode})")),
        ));
    }
    // Without secure_delete, deleted rows stay readable in free pages of the file and of its backups.
    // On macOS fsync alone does not reach the disk; elsewhere `fullfsync` changes nothing.
    let (synchronous, fullfsync) = match options.durability {
        Durability::Full => ("FULL", "ON"),
        Durability::Normal => ("NORMAL", "OFF"),
    };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA fullfsync = {fullfsync};
         PRAGMA checkpoint_fullfsync = {fullfsync};
         PRAGMA foreign_keys = ON;
         PRAGMA secure_delete = ON;
         PRAGMA cache_size = -4096;
         PRAGMA wal_autocheckpoint = 8000;
         PRAGMA journal_size_limit = {WAL_SIZE_LIMIT};
         PRAGMA trusted_schema = OFF;"
    ))
}

/// Switches to WAL and returns the journal mode. Retries until `busy_timeout` has passed, because SQLite does not wait
/// for a lock in this statement, and another client may hold the lock while it opens the file.
fn switch_to_wal(connection: &rusqlite::Connection, busy_timeout: Duration) -> rusqlite::Result<String> {
    let clock = Clock::default();
    let deadline = clock.moment().after(busy_timeout);
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && clock.moment() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// The error of a database file that this process may not create or read; 58030, as SQLite's own failure to open it.
fn denied(file: &Path, error: io::Error) -> Error {
    let message = format!("Cannot use {} as database: {error}", file.display());
    let kind = kind_of_host(&error);
    let first = Error::database(Some("58030"), ErrorKind::Unavailable, &error).caused_by(error);
    Error::new(kind, message).because_of(first)
}

/// The kind of the error if the host refuses a file or a folder of the database: `Config`, unless it may do so for a moment only.
fn kind_of_host(error: &io::Error) -> ErrorKind {
    if is_out_of_descriptors(error) { ErrorKind::Unavailable } else { ErrorKind::Config }
}

fn cannot_use(file: &Path, error: rusqlite::Error) -> Error {
    if let Some(reason) = denied_by_host(file, &error) {
        return denied(file, reason);
    }
    let error = translate(error);
    let message = format!("Cannot use {} as database: {}", file.display(), error.message());
    // The file may be usable: only memory, room on the disk or a file descriptor is missing.
    let is_lack = is_out_of_memory(&error) || error.is_disk_full() || error.is_out_of_descriptors();
    let kind = if is_lack { ErrorKind::Unavailable } else { ErrorKind::Config };
    Error::new(kind, message).because_of(error)
}

/// Returns the host's reason if SQLite cannot use a database because this process may not. SQLite does not tell the reason.
fn denied_by_host(database: &Path, error: &rusqlite::Error) -> Option<io::Error> {
    if !matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
        return None;
    }
    denied_use(database, Use::Read)
        .or_else(|| denied_write(database))
        .or_else(|| denied_and_named(parent(database), Use::Create))
}

/// Returns the host's error if this process may not write to a database, or to a file beside it that another user left.
fn denied_write(database: &Path) -> Option<io::Error> {
    let of_others = ["-wal", "-shm"].into_iter().find_map(|end| denied_and_named(&beside(database, end), Use::Write));
    of_others.or_else(|| denied_use(database, Use::Write))
}

/// [`denied_use`] with the path in front.
fn denied_and_named(path: &Path, wanted: Use) -> Option<io::Error> {
    denied_use(path, wanted).map(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::{
        database::{row::Row, statement::Statement},
        policy::Caller,
    };

    /// The page of `GET_PUBLIC_SPACES`.
    static PAGE: Statement = Statement::new(
        "SELECT {spaces.columns} FROM spaces WHERE spaces.is_public = true AND {spaces.select}
         ORDER BY spaces.created_at DESC NULLS FIRST, spaces.id LIMIT $1 OFFSET $2",
    );

    /// Reads pages of several sizes. Returns how many times SQLite prepared the statement again.
    fn repeated_preparations(reader: &Connection) -> i32 {
        let name = |row: &Row<'_>| row.get::<String>(1);
        for limit in 1..20_i64 {
            let names = reader.fetch(Caller::Service, &PAGE, &[limit.into(), 0.into()], name).expect("a page");
            assert_eq!(names.len(), 1);
        }
        let sql = PAGE.for_sqlite::<super::super::dialect::SqliteDialect>(Caller::Service).sql;
        reader.0.prepare_cached(sql).expect("the same statement").get_status(StatementStatus::RePrepare)
    }

    #[test]
    fn a_lack_of_memory_at_open_is_unavailable_and_no_fault_of_the_file() {
        for code in [ffi::SQLITE_NOMEM, ffi::SQLITE_IOERR_NOMEM, ffi::SQLITE_IOERR_SHMMAP] {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = cannot_use(Path::new("town.db"), failure);
            assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("53200")), "{code}");
            assert!(error.is_retryable() && error.message().starts_with("Cannot use town.db"), "{error}");
        }
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_READ), None);
        assert_eq!(cannot_use(Path::new("town.db"), failure).kind(), ErrorKind::Config);
    }

    #[test]
    fn a_bound_limit_does_not_prepare_the_page_again() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let folder = temporary.path().join("town");
        let file = folder.join(FILE_NAME);
        let busy_timeout = Duration::from_secs(5);
        let options = OpenOptions {
            durability: Durability::Full,
            busy_timeout,
            postgres: crate::database::PostgresOptions::default(),
            replica: None,
            migrate: true,
            is_move_target: false,
            is_plan: false,
            clock: Clock::default(),
        };
        let checked = check(&Source::File(file.clone()), &options).expect("no file");
        let (writer, _files, _marks) = open_writer(checked, &file, Some(&folder), &options).expect("a new database");
        writer.0.execute("INSERT INTO spaces (name, is_public) VALUES ('x', true)", []).expect("a row");
        let reader = open_reader(&Source::File(file.clone()), busy_timeout).expect("a reader");
        assert_eq!(repeated_preparations(&reader), 0);
        // Without the option SQLite prepares it at each call: the test would see that.
        let reader = open_reader(&Source::File(file.clone()), busy_timeout).expect("a reader");
        reader.0.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, false).expect("an option");
        assert!(repeated_preparations(&reader) > 0);
        drop((reader, writer));
    }
}
