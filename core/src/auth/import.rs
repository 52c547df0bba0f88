//! The import of passwords that another system hashed (DESIGN 3a).
//!
//! Invariant: the rows of one call are imported in one transaction, all or none. A user who has a password keeps it.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Auth, accounts::Accounts, email_address, password_hash::StoredHash, statements as sql};
use crate::{
    database::Transaction,
    error::{Error, ErrorKind, Operation, Result},
    model::{ImportReport, NewCredential},
};

impl Auth {
    /// Gives existing users the passwords that another system hashed, all or none. Only the service may do this. A user
    /// who has a password keeps it and counts as unchanged, so repeating a call does no harm. The library repeats a call once
    /// if the connection is lost; passwords that the first attempt imported then count as unchanged, too.
    ///
    /// Hashes are bcrypt (`$2a$`, `$2b$` and `$2y$`, costs 4 to 14) or Argon2 in PHC format (`argon2id`, `argon2i` and
    /// `argon2d`, up to 256 MiB and 1 GiB over all passes). The first sign-in replaces a bcrypt hash, and an Argon2 hash
    /// that is weaker than the hash of a new password, by Argon2id. bcrypt looks at the first 72 bytes of a password; from the
    /// first sign-in on the whole password counts, as it was typed then. The lengths of new passwords do not bind
    /// imported ones.
    ///
    /// # Errors
    /// `InvalidInput` for a hash that is malformed or costs too much to check, for a row that does not name its user by
    /// either id or address, and for two rows of one user; `ReferenceMissing` (23503) for an unknown user.
    /// [`Error::row`] is the index of the row. `TooLarge` for more rows than `max_bulk_rows`; `Unauthorized` for an
    /// anonymous caller, `Forbidden` for a user. No error shows a hash.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::auth::NewCredential;
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let old_hashes: Vec<(String, String)> = Vec::new();
    ///
    /// let rows = old_hashes.into_iter().map(|(email, hash)| NewCredential::of_address(email, hash)).collect();
    /// let report = client.as_service().auth().import_credentials(rows)?;
    /// println!("{} imported, {} had a password", report.imported, report.unchanged);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn import_credentials(&self, rows: Vec<NewCredential>) -> Result<ImportReport> {
        self.run_as_service(Operation::ImportCredentials, self.accounts.import_credentials(rows)).await
    }
}

/// How a row names its user.
#[derive(Clone)]
enum RowUser {
    Id(Uuid),
    /// An address in its normal form.
    Address(String),
}

impl Accounts {
    /// Imports password hashes. Does nothing about sessions: a user without a password has none.
    pub(super) async fn import_credentials(&self, rows: Vec<NewCredential>) -> Result<ImportReport> {
        let users = self.limits.each("rows", &rows, check)?;
        let rows: Vec<(RowUser, String)> =
            users.into_iter().zip(rows.into_iter().map(|row| row.password_hash)).collect();
        let now = self.clock.now();
        let import = self.scope.write_idempotent(move |transaction| {
            Box::pin(async move {
                let users = find_users(transaction, &rows).await?;
                let mut imported = 0;
                // In the order of the ids, so that two imports at once do not deadlock.
                for (id, index) in &users {
                    let hash = rows[*index].1.as_str();
                    let values = [(*id).into(), hash.into(), now.into()];
                    let inserted = transaction.execute(&sql::INSERT_CREDENTIALS, &values).await;
                    imported += inserted.map_err(|error| error.at_row(*index))?;
                }
                Ok(ImportReport::new(imported, users.len() as u64 - imported))
            })
        });
        import.await
    }
}

/// Checks a row; returns its user.
fn check(row: &NewCredential) -> Result<RowUser> {
    let user = match (row.user_id, &row.email) {
        (Some(id), None) => RowUser::Id(id),
        (None, Some(email)) => RowUser::Address(email_address::normal(email)?),
        (None, None) => return Err(Error::invalid_input("user_id or email is required")),
        (Some(_), Some(_)) => {
            return Err(Error::invalid_input("user_id and email are given; one of them names the user"));
        }
    };
    if row.password_hash.is_empty() {
        return Err(Error::invalid_input("password_hash is required"));
    }
    match StoredHash::parse(&row.password_hash) {
        Ok(_) => Ok(user),
        Err(why) => Err(Error::invalid_input(format!("password_hash {why}"))),
    }
}

/// The index of each user's row.
///
/// # Errors
/// `ReferenceMissing` for an unknown user, `InvalidInput` for a user with two rows.
async fn find_users(transaction: &mut Transaction<'_>, rows: &[(RowUser, String)]) -> Result<BTreeMap<Uuid, usize>> {
    let mut users = BTreeMap::new();
    for (index, (user, _)) in rows.iter().enumerate() {
        let found = match user {
            RowUser::Id(id) => transaction.fetch_optional(&sql::GET_USER, &[(*id).into()], sql::user).await?,
            RowUser::Address(email) => {
                transaction.fetch_optional(&sql::FIND_USER, &[email.as_str().into()], sql::user).await?
            }
        };
        let Some(user) = found else {
            return Err(Error::database(Some("23503"), ErrorKind::ReferenceMissing, "")
                .with_reason("users")
                .at_row(index));
        };
        if let Some(first) = users.insert(user.id, index) {
            let message = format!("rows[{first}] and rows[{index}] name the same user");
            return Err(Error::invalid_input(message).at_row(index));
        }
    }
    Ok(users)
}
