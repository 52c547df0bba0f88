//! Rate limits: failed password checks per e-mail address, per client and per signed-in user, and sign-ups per hour.
//!
//! Invariant: the counts are in the database, so they survive a restart and all processes share them. A count decays by one
//! for each period that passes outside of a wait; there is no window that begins or ends. As many failures as a [`Budget`]
//! allows start a wait; each further failure doubles it. During a wait no password is hashed. An address is counted whether or
//! not it has an account; text that is no address is not counted, so it is not stored. A client from which the user has signed
//! in before is counted for itself and not for the address, so that strangers who guess do not lock the user out.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::token;
use crate::{
    client_key::ClientKey,
    clock::{Clock, earlier, later},
    database::{Row, Scope, Statement, Transaction},
    error::{Error, ErrorKind, Result},
};

const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// How many failures a count allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Budget {
    /// Failures before a wait.
    allowed: i64,
    /// The time in which one failure is forgotten.
    period: Duration,
}

/// The budget of one account.
const ACCOUNT: Budget = Budget { allowed: 10, period: LONGEST_WAIT };

/// The budget of one client, over all accounts: many users may share an address.
const CLIENT: Budget = Budget { allowed: 50, period: Duration::from_secs(60) };

/// Doublings of the wait: after as many failures beyond a budget it is [`LONGEST_WAIT`].
const DOUBLINGS: i64 = 5;

/// The time over which an option counts sign-ups.
const HOUR: Duration = Duration::from_secs(3_600);

/// A count is deleted this long after its last change. Every count has decayed to zero by then.
const RETENTION: Duration = Duration::from_secs(86_400);

static GET_COUNT: Statement =
    Statement::new("SELECT failures, decayed_at, last_at FROM townsquare.failures WHERE key_hash = $1");

// Creates the count if it is missing, and locks its row until the transaction ends.
static LOCK_COUNT: Statement = Statement::new(
    "INSERT INTO townsquare.failures AS tally (key_hash, failures, decayed_at, last_at) VALUES ($1, 0, $2, $2)
     ON CONFLICT (key_hash) DO UPDATE SET failures = tally.failures",
);

static SET_COUNT: Statement =
    Statement::new("UPDATE townsquare.failures SET failures = $2, decayed_at = $3, last_at = $4 WHERE key_hash = $1");

static DELETE_OLD_COUNTS: Statement = Statement::new("DELETE FROM townsquare.failures WHERE last_at < $1");

static CLEAR_COUNT: Statement = Statement::new("DELETE FROM townsquare.failures WHERE key_hash = $1");

/// The key of a count: a hash of text. The texts of different kinds differ: only the text of an address has an `@` and no
/// white space.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CountKey {
    hash: String,
    budget: Budget,
}

/// Counts failed password checks and refuses further ones for a while.
#[derive(Clone)]
pub(super) struct RateLimit {
    scope: Scope,
    clock: Clock,
    /// Accounts that can be created per hour; 0 is no limit.
    sign_ups: u32,
}

/// A row of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    number: i64,
    /// The time up to which `number` has decayed: the end of the wait while there is one.
    decayed_at: Timestamp,
    last_at: Timestamp,
}

impl CountKey {
    /// Sign-ins with an address, which is in its normal form.
    pub(super) fn address(email: &str) -> CountKey {
        CountKey::of(email, ACCOUNT)
    }

    /// Sign-ins with an address by a client from which its user has signed in before.
    pub(super) fn known_client(email: &str, client: ClientKey) -> CountKey {
        CountKey::of(&format!("client {} {email}", client.hex()), ACCOUNT)
    }

    /// Sign-ins by a client.
    pub(super) fn client(client: ClientKey) -> CountKey {
        CountKey::of(&format!("client {}", client.hex()), CLIENT)
    }

    /// Confirmations of the password inside sessions of a user.
    pub(super) fn user(id: Uuid) -> CountKey {
        CountKey::of(&format!("user {}", id.hyphenated()), ACCOUNT)
    }

    /// All sign-ups.
    fn sign_ups() -> CountKey {
        CountKey::of("sign-ups", ACCOUNT)
    }

    fn of(text: &str, budget: Budget) -> CountKey {
        CountKey { hash: token::hash(text), budget }
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }
}

impl RateLimit {
    /// `sign_ups` is the number of accounts that can be created per hour; 0 is no limit.
    pub(super) fn new(scope: Scope, clock: Clock, sign_ups: u32) -> RateLimit {
        RateLimit { scope, clock, sign_ups }
    }

    /// # Errors
    /// `RateLimited`, with the remaining time, while password checks for the key have to wait.
    pub(super) async fn check(&self, key: &CountKey) -> Result<()> {
        let count = self.scope.fetch_optional(&GET_COUNT, &[key.hash().into()], count_row).await?;
        match count.and_then(|count| count.remaining_wait(self.clock.now(), key.budget)) {
            None => Ok(()),
            Some(wait) => Err(rate_limited("failed attempts", wait)),
        }
    }

    /// Counts a failed password check for each of `keys`. The client's key is first, so that two calls cannot deadlock.
    pub(super) async fn count_failure(&self, keys: &[CountKey]) -> Result<()> {
        let (keys, now) = (keys.to_vec(), self.clock.now());
        let count = self.scope.write(move |transaction| {
            Box::pin(async move {
                for key in &keys {
                    let count = lock_count(transaction, key, now).await?.add_failure(now, key.budget);
                    set_count(transaction, key, count).await?;
                }
                transaction.execute(&DELETE_OLD_COUNTS, &[earlier(now, RETENTION).into()]).await?;
                Ok(())
            })
        });
        count.await
    }

    /// # Errors
    /// `RateLimited`, with the remaining time, while no account can be created.
    pub(super) async fn check_sign_ups(&self) -> Result<()> {
        if self.sign_ups == 0 {
            return Ok(());
        }
        let key = CountKey::sign_ups();
        let count = self.scope.fetch_optional(&GET_COUNT, &[key.hash().into()], count_row).await?;
        count.map_or(Ok(()), |count| count.add_sign_up(self.sign_ups, self.clock.now()).map(drop))
    }

    /// Counts a sign-up, in the transaction that creates the account.
    ///
    /// # Errors
    /// `RateLimited`, as [`RateLimit::check_sign_ups`].
    pub(super) async fn count_sign_up(&self, transaction: &mut Transaction<'_>, now: Timestamp) -> Result<()> {
        if self.sign_ups == 0 {
            return Ok(());
        }
        let key = CountKey::sign_ups();
        let count = lock_count(transaction, &key, now).await?.add_sign_up(self.sign_ups, now)?;
        set_count(transaction, &key, count).await
    }
}

/// Resets the count of a key, in a transaction that relies on a right password or replaces the password.
pub(super) async fn clear(transaction: &mut Transaction<'_>, key: &CountKey) -> Result<()> {
    transaction.execute(&CLEAR_COUNT, &[key.hash().into()]).await.map(drop)
}

async fn lock_count(transaction: &mut Transaction<'_>, key: &CountKey, now: Timestamp) -> Result<Count> {
    transaction.execute(&LOCK_COUNT, &[key.hash().into(), now.into()]).await?;
    let count = transaction.fetch_optional(&GET_COUNT, &[key.hash().into()], count_row).await?;
    Ok(count.unwrap_or(Count { number: 0, decayed_at: now, last_at: now }))
}

async fn set_count(transaction: &mut Transaction<'_>, key: &CountKey, count: Count) -> Result<()> {
    let values = [key.hash().into(), count.number.into(), count.decayed_at.into(), count.last_at.into()];
    transaction.execute(&SET_COUNT, &values).await.map(drop)
}

fn count_row(row: &Row<'_>) -> Result<Count> {
    Ok(Count { number: row.get(0)?, decayed_at: row.get(1)?, last_at: row.get(2)? })
}

fn rate_limited(what: &str, wait: Duration) -> Error {
    let message = format!("Too many {what}; try again in {} s", wait.as_secs_f64().ceil());
    Error::new(ErrorKind::RateLimited, message).retry_in(wait)
}

impl Count {
    /// The count at `now`: lower by one for each `period` since it decayed last.
    fn decayed(self, now: Timestamp, period: Duration) -> Count {
        let passed = now.duration_since(self.decayed_at);
        // A time slightly in the future comes from another server with a clock that is ahead. A time far in the future comes
        // from a clock that was wrong and has been corrected since.
        if is_far_ahead(now.duration_since(self.last_at)) {
            return Count { number: 0, decayed_at: now, ..self };
        }
        let periods = passed.max(SignedDuration::ZERO).unsigned_abs().as_micros() / period.as_micros().max(1);
        match u32::try_from(periods).ok().filter(|periods| i64::from(*periods) < self.number) {
            Some(periods) => Count {
                number: self.number - i64::from(periods),
                decayed_at: later(self.decayed_at, period.saturating_mul(periods)),
                ..self
            },
            None => Count { number: 0, decayed_at: now, ..self },
        }
    }

    /// The count after one more failure.
    fn add_failure(self, now: Timestamp, budget: Budget) -> Count {
        let count = self.decayed(now, budget.period);
        let count = Count { number: (count.number + 1).min(budget.allowed + DOUBLINGS), last_at: now, ..count };
        Count { decayed_at: count.wait(budget).map_or(count.decayed_at, |wait| later(now, wait)), ..count }
    }

    /// The wait that the last failure started.
    fn wait(self, budget: Budget) -> Option<Duration> {
        let doublings = u32::try_from(self.number - budget.allowed).ok()?;
        Some(FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(LONGEST_WAIT))
    }

    /// Returns how long password checks still have to wait.
    fn remaining_wait(self, now: Timestamp, budget: Budget) -> Option<Duration> {
        let wait = self.wait(budget)?;
        let passed = now.duration_since(self.last_at);
        if is_far_ahead(passed) {
            return None;
        }
        wait.checked_sub(passed.max(SignedDuration::ZERO).unsigned_abs()).filter(|left| !left.is_zero())
    }

    /// The count after one more sign-up, of at most `limit` per hour.
    ///
    /// # Errors
    /// `RateLimited`, with the time until one sign-up is forgotten.
    fn add_sign_up(self, limit: u32, now: Timestamp) -> Result<Count> {
        let period = HOUR / limit;
        let count = self.decayed(now, period);
        if count.number < i64::from(limit) {
            return Ok(Count { number: count.number + 1, last_at: now, ..count });
        }
        let passed = now.duration_since(count.decayed_at).max(SignedDuration::ZERO).unsigned_abs();
        Err(rate_limited("sign-ups", period.saturating_sub(passed)))
    }
}

/// Whether a stored time is so far in the future that its clock must have been wrong.
fn is_far_ahead(passed: SignedDuration) -> bool {
    passed < SignedDuration::ZERO && passed.unsigned_abs() > LONGEST_WAIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(number: i64) -> Count {
        let at = Timestamp::UNIX_EPOCH;
        Count { number, decayed_at: at, last_at: at }
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn wait_seconds(failures: i64, passed_seconds: i64) -> Option<u64> {
        count(failures).remaining_wait(after(passed_seconds), ACCOUNT).map(|wait| wait.as_secs())
    }

    #[test]
    fn waits_begin_at_ten_failures_and_double_to_a_quarter_of_an_hour() {
        assert_eq!(wait_seconds(9, 0), None);
        let waits = [10, 11, 12, 14, 15, 99].map(|failures| wait_seconds(failures, 0));
        assert_eq!(waits, [30, 60, 120, 480, 900, 900].map(Some));
        assert_eq!((wait_seconds(10, 29), wait_seconds(10, 30)), (Some(1), None));
    }

    #[test]
    fn failures_far_in_the_future_start_no_wait() {
        assert_eq!(wait_seconds(20, -3_600), None);
        assert_eq!(wait_seconds(10, -1), Some(30), "the clock of another server is a second ahead");
        assert_eq!(count(10).decayed(after(-3_600), ACCOUNT.period).number, 0);
        let limited = count(9).add_failure(after(0), ACCOUNT);
        assert_eq!((limited.number, limited.decayed_at), (10, after(30)));
        assert_eq!(limited.decayed(after(-1), ACCOUNT.period).number, 10);
    }

    #[test]
    fn a_count_decays_by_one_for_each_period_and_keeps_the_rest_of_a_period() {
        let numbers = [0, 899, 900, 1_800, 8_999, 9_000, 1_000_000_000];
        let numbers = numbers.map(|seconds| count(10).decayed(after(seconds), ACCOUNT.period).number);
        assert_eq!(numbers, [10, 10, 9, 8, 1, 0, 0]);
        let once = count(10).decayed(after(1_000), ACCOUNT.period);
        assert_eq!((once.number, once.decayed_at), (9, after(900)));
        assert_eq!(once.decayed(after(1_800), ACCOUNT.period).number, 8, "not 900 s after the second decay");
    }

    #[test]
    fn a_count_does_not_decay_during_a_wait() {
        let (mut counted, mut now) = (count(9), 0);
        for wait in [30, 60, 120, 240, 480, 900, 900] {
            counted = counted.add_failure(after(now), ACCOUNT);
            assert_eq!(counted.remaining_wait(after(now), ACCOUNT), Some(Duration::from_secs(wait)));
            now += i64::try_from(wait).expect("small");
            assert_eq!(counted.remaining_wait(after(now), ACCOUNT), None);
        }
        assert_eq!(counted.decayed(after(now + 899), ACCOUNT.period).number, ACCOUNT.allowed + DOUBLINGS);
        assert_eq!(counted.decayed(after(now + 900), ACCOUNT.period).number, ACCOUNT.allowed + DOUBLINGS - 1);
    }

    #[test]
    fn sign_ups_are_limited_over_an_hour() {
        let mut counted = count(0);
        for _ in 0..4 {
            counted = counted.add_sign_up(4, after(0)).expect("within the limit");
        }
        let refused = counted.add_sign_up(4, after(60)).expect_err("one too many");
        assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, Some(Duration::from_secs(840))));
        assert!(counted.add_sign_up(4, after(900)).is_ok());
        assert_eq!(counted.add_sign_up(4, after(3_600)).map(|count| count.number).ok(), Some(1));
    }
}
