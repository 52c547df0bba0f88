//! What a move from a Supabase project would copy, and what it has copied.

use std::collections::BTreeMap;

use serde::Serialize;

use super::MoveTarget;

/// What a Supabase project has that a move leaves out, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SupabaseSkipped {
    /// Users of `auth.users` without a row in `public.users`. They do not exist in the target.
    pub users_without_row: u64,
    /// Users with `deleted_at`. They have neither a password nor a confirmed address in the target.
    pub deleted_users: u64,
    /// Users who are banned at the moment of the move. They have neither a password nor a confirmed address in the target.
    pub banned_users: u64,
    /// Users who have not confirmed their address, and so cannot sign in to Supabase. They have no password in the target.
    pub unconfirmed_users: u64,
    /// Password hashes that the library cannot check: neither bcrypt of a cost of 4 to 14 nor Argon2.
    pub unsupported_passwords: u64,
    /// Objects of the name `.emptyFolderPlaceholder`, which Supabase makes for empty folders.
    pub folder_placeholders: u64,
    /// Files whose owner has no row in `public.users`. They are copied, and have no owner.
    pub owners_of_files: u64,
}

/// What [`Client::check_move_from_supabase`](crate::Client::check_move_from_supabase) found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SupabaseCheck {
    /// The number of rows to move by table, as in [`MoveReport::rows`](crate::MoveReport::rows). Empty if the tables do not fit.
    pub rows: BTreeMap<String, u64>,
    /// The number of files.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// What would be left out.
    pub skipped: SupabaseSkipped,
    /// The buckets that are private in the project and that everyone may read in the target.
    pub published_buckets: Vec<String>,
    /// Why the project cannot be moved, one sentence each. Of many faults of one kind, the first are named.
    pub faults: Vec<String>,
    /// What the target is; `None` if the move refuses it.
    pub target: Option<MoveTarget>,
    /// Why the move refuses the target.
    pub refusal: Option<String>,
}

/// What a move from a Supabase project has copied, as it was verified at its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SupabaseReport {
    /// The number of rows by table. `credentials` has the passwords, `verified_emails` the confirmed addresses.
    pub rows: BTreeMap<String, u64>,
    /// The number of files.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// What was left out.
    pub skipped: SupabaseSkipped,
    /// The buckets that are private in the project and that everyone may read in the target.
    pub published_buckets: Vec<String>,
    /// How long the move took, in seconds.
    pub seconds: f64,
}
