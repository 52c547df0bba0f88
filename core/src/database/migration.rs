//! The numbered migrations, and the check that a database has the migrations of this library.

use crate::{
    error::{Error, Result},
    model::{FindingCode, Findings, MigrationPlan, PlannedMigration},
};

/// Declares the migrations, and what they do. Each has a script of its name for each engine.
macro_rules! migrations {
    ($($name:literal needs $minimum_version:literal, $about:literal;)*) => {
        /// The migrations of a SQLite database.
        #[cfg(feature = "sqlite")]
        pub(super) const SQLITE: &[Migration] = &[$(Migration {
            name: $name,
            about: $about,
            sql: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            minimum_version: $minimum_version,
        }),*];

        /// The migrations of a PostgreSQL database.
        #[cfg(feature = "postgres")]
        pub(super) const POSTGRES: &[Migration] = &[$(Migration {
            name: $name,
            about: $about,
            sql: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
            minimum_version: $minimum_version,
        }),*];
    };
}

// The migrations make tables, indexes and the triggers of files. `open` makes the triggers of the change log, policies and the
// functions of both.
migrations! {
    "0001_catalog" needs 1, "stores the catalog of mini apps";
    "0002_tables" needs 2, "creates the public tables: communities, domains, registrations, users, spaces and fidgets";
    "0003_auth" needs 3, "stores password hashes, sessions, failed sign-ins and identity keys";
    "0004_database" needs 4, "stores what the library knows of the database itself: its incarnation and its keys";
    "0005_files" needs 4, "stores files: buckets, rows, small contents, and unfinished writes";
    "0006_realtime" needs 4, "creates the change log";
    "0007_spaces" needs 4, "adds an index for the order of fidgets, and gives the files of a space to a new owner";
    "0008_moves" needs 4, "marks the target of an unfinished move";
    "0009_revocations" needs 4, "ends uploads whose user or session is revoked";
    "0010_moved_away" needs 4, "marks the source of a move that followed it";
    "0011_addresses" needs 4, "finds users by an index of their addresses (PostgreSQL)";
    "0012_ended_uploads" needs 4, "names the staged bytes of uploads that were ended";
}

/// A migration. Its version is its position in the list of its engine, counted from 1.
pub(super) struct Migration {
    pub(super) name: &'static str,
    /// What the migration does: a predicate such as `stores files`.
    pub(super) about: &'static str,
    pub(super) sql: &'static str,
    /// The oldest schema version with a library that works with a database that has this migration.
    pub(super) minimum_version: usize,
}

/// A migration as a database records it.
pub(super) struct AppliedMigration {
    pub(super) version: i64,
    pub(super) name: String,
    pub(super) minimum_version: i64,
    /// [`Migration::checksum`]; `None` if the library that applied the migration recorded none.
    pub(super) checksum: Option<String>,
}

impl Migration {
    /// BLAKE3 of the script in hex, whatever ends its lines.
    pub(super) fn checksum(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for line in self.sql.lines() {
            hasher.update(line.as_bytes()).update(b"\n");
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Returns the version of a database with the migrations `applied`, which are in order; 0 for a new one.
///
/// # Errors
/// `Config` if the database needs a newer library than this one, whose migrations are `known`, and if one of its migrations
/// is not the one of this library.
pub(super) fn compare(known: &[Migration], applied: &[AppliedMigration]) -> Result<usize> {
    let version = version_of(applied);
    if version > known.len() {
        let minimum_version = applied.iter().map(|migration| migration.minimum_version).max();
        let minimum_version = minimum_version.map_or(version, number);
        if minimum_version > known.len() {
            return Err(Error::config(format!(
                "The database is at version {version}, written by a newer townsquare; it needs a library that knows \
                 version {minimum_version}, and this one knows {}",
                known.len()
            )));
        }
    }
    match changed(known, applied).next() {
        Some((own, found)) => Err(Error::config(format!(
            "Another build of townsquare made the database: its migration {} is not the migration {} of this library",
            found.name, own.name
        ))),
        None => Ok(version),
    }
}

/// The version of a database with the migrations `applied`.
fn version_of(applied: &[AppliedMigration]) -> usize {
    applied.iter().map(|migration| number(migration.version)).max().unwrap_or_default()
}

fn number(version: i64) -> usize {
    usize::try_from(version).unwrap_or(usize::MAX)
}

/// The migrations of this library with those in their place that the database records and that are others.
fn changed<'a>(
    known: &'a [Migration],
    applied: &'a [AppliedMigration],
) -> impl Iterator<Item = (&'a Migration, &'a AppliedMigration)> {
    (1..)
        .zip(known)
        .filter_map(|(version, own)| applied.iter().find(|found| found.version == version).map(|found| (own, found)))
        .filter(|(own, found)| {
            let has_checksum = |checksum: &String| *checksum == own.checksum();
            found.name != own.name || !found.checksum.as_ref().is_none_or(has_checksum)
        })
}

/// Adds what is wrong with the migrations that a database records. Returns whether its schema should be that of this library.
pub(super) fn inspect(known: &[Migration], applied: &[AppliedMigration], findings: &mut Findings) -> bool {
    for (own, found) in changed(known, applied) {
        let message =
            format!("The recorded migration {} is not the migration {} of this library.", found.name, own.name);
        findings.add(FindingCode::MigrationChanged, message);
    }
    let is_recorded = |version: i64| applied.iter().any(|migration| migration.version == version);
    for (_, missing) in (1..).zip(known).filter(|(version, _)| !is_recorded(*version)) {
        let message = format!("The database does not record the migration {}.", missing.name);
        findings.add(FindingCode::MigrationMissing, message);
    }
    let version = version_of(applied);
    if version > known.len() {
        let message = format!("The database is at version {version}, and this library knows {}.", known.len());
        findings.add(FindingCode::SchemaNewer, message);
    }
    version <= known.len()
}

/// The plan for a database at `version`. `is_current`: `open` changes nothing.
pub(super) fn plan(known: &[Migration], version: usize, is_current: bool) -> MigrationPlan {
    let planned = |(index, migration): (usize, &Migration)| PlannedMigration {
        name: migration.name,
        about: migration.about,
        is_applied: index < version,
    };
    MigrationPlan { migrations: known.iter().enumerate().map(planned).collect(), is_new: version == 0, is_current }
}

/// Returns the error of an `open` that may not migrate, if a database at `version` needs it.
pub(super) fn must_not_migrate(known: &[Migration], version: usize) -> Option<Error> {
    let missing: Vec<&str> = known.iter().skip(version).map(|migration| migration.name).collect();
    match version {
        _ if missing.is_empty() => None,
        0 => Some(Error::no_database("There is no townsquare in the database")),
        _ => Some(Error::not_migrated(format!("The database needs the migrations {}", missing.join(", ")))),
    }
}

/// # Errors
/// `Config` if a database at `version`, which is not new, lacks migrations: a move does not change a database that it may refuse.
pub(super) fn must_be_current(known: &[Migration], version: usize) -> Result<()> {
    if version >= known.len() {
        return Ok(());
    }
    Err(Error::config(format!(
        "The target of a move is a database of an older version ({version}, and this library has {}): open it once, or take a new \
         one",
        known.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Migration] = &[
        Migration { name: "0001_one", about: "one", sql: "CREATE TABLE one (x);\n", minimum_version: 1 },
        Migration { name: "0002_two", about: "two", sql: "CREATE TABLE two (x);\n", minimum_version: 1 },
    ];

    fn applied(version: i64, name: &str, checksum: Option<String>) -> AppliedMigration {
        AppliedMigration { version, name: name.to_owned(), minimum_version: 1, checksum }
    }

    #[test]
    fn the_end_of_lines_is_not_part_of_a_checksum() {
        let windows = Migration { sql: "CREATE TABLE one (x);\r\n", ..KNOWN[0] };
        assert_eq!(windows.checksum(), KNOWN[0].checksum());
        assert_ne!(KNOWN[1].checksum(), KNOWN[0].checksum());
    }

    #[test]
    fn a_plan_lists_what_a_database_lacks() {
        for (version, is_current, missing) in [(0, false, 2), (1, false, 1), (2, false, 0), (2, true, 0), (3, true, 0)]
        {
            let plan = plan(KNOWN, version, is_current);
            let expected = (2, missing, version == 0, is_current);
            assert_eq!((plan.migrations.len(), plan.missing().count(), plan.is_new, plan.is_current), expected);
        }
    }

    #[test]
    fn a_database_of_another_build_is_refused_by_the_name_of_its_migration() {
        let first = || applied(1, "0001_one", Some(KNOWN[0].checksum()));
        let without_checksum = applied(2, "0002_two", None);
        assert_eq!(compare(KNOWN, &[first(), without_checksum]).ok(), Some(2));
        assert_eq!(compare(KNOWN, &[]).ok(), Some(0));
        for other in [applied(2, "0002_other", None), applied(2, "0002_two", Some(KNOWN[0].checksum()))] {
            let name = other.name.clone();
            let error = compare(KNOWN, &[first(), other]).expect_err("another migration");
            assert!(error.message().contains(&name) && error.message().contains("0002_two"), "{error}");
        }
        let error = must_not_migrate(KNOWN, 1).expect("a migration is missing");
        assert_eq!((error.sentence(), error.code()), ("The database needs the migrations 0002_two", Some("55000")));
        let error = must_not_migrate(KNOWN, 0).expect("there are no tables");
        assert_eq!((error.sentence(), error.code()), ("There is no townsquare in the database", Some("3D000")));
        assert!(must_not_migrate(KNOWN, 2).is_none());
    }
}
