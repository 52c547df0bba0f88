//! The accounts of Supabase Auth: which of them keep their password, and how many do not.
//!
//! Invariant: an account that cannot sign in to the project by a password now has none in the target: one of single sign-on, a deleted
//! and a banned one, and one with an unconfirmed address.

/// What a query knows of an account. Columns that an older project lacks are NULL.
macro_rules! accounts {
    () => {
        "(SELECT account.id, account.email::text AS email,
            CASE WHEN (more.fields->>'is_sso_user')::boolean THEN '' ELSE account.encrypted_password::text END AS password_hash,
            account.email_confirmed_at, (more.fields->>'updated_at')::timestamptz AS updated_at,
            more.fields->>'deleted_at' IS NOT NULL AS is_deleted,
            COALESCE((more.fields->>'banned_until')::timestamptz > now(), false) AS is_banned
            FROM auth.users AS account CROSS JOIN LATERAL (SELECT to_jsonb(account) AS fields) AS more) AS account"
    };
}

/// Accounts that may sign in, with their public rows.
macro_rules! active {
    () => {
        concat!(
            "FROM ",
            accounts!(),
            " JOIN public.users AS person ON person.id = account.id
            WHERE NOT account.is_deleted AND NOT account.is_banned AND account.email_confirmed_at IS NOT NULL"
        )
    };
}

/// The values of rows of `credentials`.
pub(super) const CREDENTIALS: &str = concat!(
    "account.id, account.password_hash, COALESCE(account.updated_at, now()), 0::bigint ",
    active!(),
    " AND account.password_hash <> '' ORDER BY account.id"
);

/// The values of rows of `verified_emails`. A user whose public row has another address has proved nothing about that one.
pub(super) const VERIFIED_EMAILS: &str = concat!(
    "person.id, person.email, account.email_confirmed_at ",
    active!(),
    " AND lower(account.email) = lower(person.email) ORDER BY person.id"
);

/// Counts passwords and confirmed addresses that are moved, then the accounts that lose something, each once.
pub(super) const COUNT: &str = concat!(
    "SELECT count(*) FILTER (WHERE is_active AND password_hash <> ''),
        count(*) FILTER (WHERE is_active AND is_of_address),
        count(*) FILTER (WHERE person_id IS NULL),
        count(*) FILTER (WHERE person_id IS NOT NULL AND is_deleted),
        count(*) FILTER (WHERE person_id IS NOT NULL AND NOT is_deleted AND is_banned),
        count(*) FILTER (WHERE person_id IS NOT NULL AND NOT is_deleted AND NOT is_banned AND email_confirmed_at IS NULL)
     FROM (SELECT account.*, person.id AS person_id,
            COALESCE(lower(account.email) = lower(person.email), false) AS is_of_address,
            person.id IS NOT NULL AND NOT is_deleted AND NOT is_banned AND email_confirmed_at IS NOT NULL AS is_active
        FROM ",
    accounts!(),
    " LEFT JOIN public.users AS person ON person.id = account.id) AS account"
);

/// Counts the accounts of a project without the table `users`.
pub(super) const COUNT_ALONE: &str = "SELECT count(*) FROM auth.users";
