//! Passwords of users that another system hashed, for [`import_credentials`](crate::auth::Auth::import_credentials).

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

/// The password hash of an existing user. The user is named by the id or by the address.
///
/// # Examples
///
/// ```
/// use townsquare::auth::NewCredential;
///
/// let hash = "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";
/// let credential = NewCredential::of_address("ann@town.example", hash);
/// // `Debug` omits the hash.
/// assert!(!format!("{credential:?}").contains("N9qo8"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewCredential {
    /// The user's id; required without an address.
    pub user_id: Option<Uuid>,
    /// The user's address, in any spelling; required without an id.
    pub email: Option<String>,
    /// A bcrypt hash (`$2b$10$…`) or an Argon2 hash in PHC format (`$argon2id$v=19$m=…`). A secret.
    pub password_hash: String,
}

impl NewCredential {
    /// The password hash of the user with this id.
    pub fn of_user(user_id: Uuid, password_hash: impl Into<String>) -> NewCredential {
        NewCredential { user_id: Some(user_id), email: None, password_hash: password_hash.into() }
    }

    /// The password hash of the user with this address.
    pub fn of_address(email: impl Into<String>, password_hash: impl Into<String>) -> NewCredential {
        NewCredential { user_id: None, email: Some(email.into()), password_hash: password_hash.into() }
    }
}

impl fmt::Debug for NewCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("NewCredential");
        out.field("user_id", &self.user_id).field("email", &self.email).finish_non_exhaustive()
    }
}

/// What an import of password hashes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// Users who had no password and have the imported one.
    pub imported: u64,
    /// Users who had a password, which stays.
    pub unchanged: u64,
}

impl ImportReport {
    pub(crate) fn new(imported: u64, unchanged: u64) -> ImportReport {
        ImportReport { imported, unchanged }
    }
}
