//! The check of a client: what is wrong, or will be.
//!
//! Invariant: a check changes nothing: no row, no file, no object. It takes no lock that a writer waits for. Its findings have no
//! secret, no e-mail address and no token. The parts that know a fault find it; this module asks them in turn.
//!
//! The page [`check_guide`](crate::check_guide) lists the codes.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
//! use townsquare::check::CheckDepth;
//!
//! for finding in client.check(CheckDepth::Quick)? {
//!     println!("{finding}\n  {}", finding.advice());
//! }
//! # Ok::<(), townsquare::Error>(())
//! ```

mod host;

use std::sync::Arc;

pub(crate) use self::host::Places;
use crate::{
    database::Database,
    error::{Error, ErrorKind, Result},
    model::Findings,
    realtime::RealtimeCore,
    storage::StorageCore,
    threads::RuntimeHandle,
};

pub use crate::model::{CheckDepth, Finding, FindingCode, Severity};

/// The parts of a client that a check asks.
pub(crate) struct CheckedParts<'c> {
    pub(crate) database: &'c Database,
    pub(crate) storage: &'c StorageCore,
    pub(crate) realtime: &'c RealtimeCore,
    pub(crate) places: &'c Arc<Places>,
    pub(crate) runtime: &'c RuntimeHandle,
}

/// Checks everything. Returns the findings, the worst first.
///
/// # Errors
/// `Closed`. Every other failure is a finding.
pub(crate) async fn run(parts: CheckedParts<'_>, depth: CheckDepth) -> Result<Vec<Finding>> {
    let CheckedParts { database, storage, realtime, places, runtime } = parts;
    let mut findings = Findings::default();
    let places = Arc::clone(places);
    for (code, message) in runtime.blocking.run(move || host::inspect(&places)).await? {
        findings.add(code, message);
    }
    let inspected = database.inspect(depth, &mut findings).await;
    add_failure("database", inspected, &mut findings)?;
    // Each statement of the other parts would wait for a server that does not answer.
    if findings.has(FindingCode::DatabaseUnreachable) || findings.has(FindingCode::DatabaseReplaced) {
        return Ok(findings.into_list());
    }
    let inspected = storage.inspect(depth, &mut findings).await;
    add_failure("files", inspected, &mut findings)?;
    // Only the primary answers what the change feed asks.
    if !findings.has(FindingCode::ServerReadOnly) {
        let inspected = realtime.inspect(&mut findings).await;
        add_failure("change feed", inspected, &mut findings)?;
    }
    Ok(findings.into_list())
}

/// Makes a finding of the failure of a part. The error itself goes to the log, because its text may name a host.
///
/// # Errors
/// `Closed`.
fn add_failure(part: &str, inspected: Result<()>, findings: &mut Findings) -> Result<()> {
    let Err(error) = inspected else { return Ok(()) };
    let name = |error: &Error| format!("{}{}", error.kind().as_str(), error.code().map_or(String::new(), of_code));
    match error.kind() {
        ErrorKind::Closed => return Err(error),
        _ if error.is_damage() => {
            let message = format!("The check of the {part} met a page or a row of the database that cannot be read.");
            findings.add(FindingCode::DatabaseDamaged, message);
        }
        ErrorKind::Unavailable => {
            let message = format!("The database did not answer the check of the {part} ({}).", name(&error));
            findings.add(FindingCode::DatabaseUnreachable, message);
        }
        _ => {
            let message = format!("The check of the {part} failed ({}).", name(&error));
            findings.add(FindingCode::CheckIncomplete, message);
        }
    }
    tracing::warn!(%error, part, "a part of the check failed");
    Ok(())
}

fn of_code(code: &str) -> String {
    format!(", {code}")
}
