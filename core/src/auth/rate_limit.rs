//! The rate limit of password checks: failures are counted per e-mail address, whether or not it has an account.
//!
//! Invariant: the counts are in the database, so they survive a restart and all processes share them. [`ALLOWED`] failures
//! within [`WINDOW`] start a wait; each further failure doubles it. During a wait no password is hashed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    clock::{Clock, earlier},
    database::{Row, Scope, Statement},
    error::{Error, ErrorKind, Result},
};

/// Failures before an address has to wait.
const ALLOWED: i64 = 10;

/// Failures are counted over this time.
const WINDOW: Duration = Duration::from_secs(15 * 60);

const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// The count of an address is deleted this long after its last failure.
const RETENTION: Duration = Duration::from_secs(86_400);

static GET_FAILURES: Statement =
    Statement::new("SELECT failures, last_at FROM townsquare.failures WHERE address_hash = $1");

// The count restarts at 1 in three cases: its window began before $3 and no wait was started; its last failure was
// before $4; it began after now ($2), because the clock of an earlier failure was ahead.
static COUNT_FAILURE: Statement = Statement::new(
    "INSERT INTO townsquare.failures AS tally (address_hash, failures, first_at, last_at) VALUES ($1, 1, $2, $2)
     ON CONFLICT (address_hash) DO UPDATE SET
         failures = CASE WHEN (tally.failures < $5 AND tally.first_at < $3) OR tally.last_at < $4 OR tally.first_at > $2
             THEN 1 ELSE tally.failures + 1 END,
         first_at = CASE WHEN (tally.failures < $5 AND tally.first_at < $3) OR tally.last_at < $4 OR tally.first_at > $2
             THEN $2 ELSE tally.first_at END,
         last_at = $2",
);

static DELETE_OLD_FAILURES: Statement = Statement::new("DELETE FROM townsquare.failures WHERE last_at < $1");

/// Resets the count of an address. A sign-in runs this in the transaction that creates its session.
pub(super) static CLEAR_FAILURES: Statement = Statement::new("DELETE FROM townsquare.failures WHERE address_hash = $1");

/// Counts failed password checks and refuses further ones for a while.
#[derive(Clone)]
pub(super) struct RateLimit {
    scope: Scope,
    clock: Clock,
}

impl RateLimit {
    pub(super) fn new(scope: Scope, clock: Clock) -> RateLimit {
        RateLimit { scope, clock }
    }

    /// # Errors
    /// `RateLimited`, with the remaining time, while the address has to wait.
    pub(super) async fn check(&self, address_hash: &str) -> Result<()> {
        let values = [address_hash.into()];
        let Some((failures, last_at)) = self.scope.fetch_optional(&GET_FAILURES, &values, failures_row).await? else {
            return Ok(());
        };
        match remaining_wait(failures, last_at, self.clock.now()) {
            None => Ok(()),
            Some(wait) => Err(Error::new(
                ErrorKind::RateLimited,
                format!("Too many failed attempts; try again in {} s", wait.as_secs_f64().ceil()),
            )
            .retry_in(wait)),
        }
    }

    /// Counts a failed password check.
    pub(super) async fn count_failure(&self, address_hash: &str) -> Result<()> {
        let now = self.clock.now();
        let values = [
            address_hash.to_owned().into(),
            now.into(),
            earlier(now, WINDOW).into(),
            earlier(now, WINDOW + LONGEST_WAIT).into(),
            ALLOWED.into(),
        ];
        let count = self.scope.write(move |transaction| {
            Box::pin(async move {
                transaction.execute(&COUNT_FAILURE, &values).await?;
                transaction.execute(&DELETE_OLD_FAILURES, &[earlier(now, RETENTION).into()]).await?;
                Ok(())
            })
        });
        count.await
    }
}

/// Reads the number of failures and the time of the last one.
fn failures_row(row: &Row<'_>) -> Result<(i64, Timestamp)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Returns how long an address still has to wait.
fn remaining_wait(failures: i64, last_at: Timestamp, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures - ALLOWED).ok()?;
    let wait = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(LONGEST_WAIT);
    let passed = now.duration_since(last_at);
    // A failure slightly in the future comes from a server whose clock is ahead, and counts. One far in the future comes
    // from a clock that was wrong and has been corrected since; it must not block the address until that time.
    if passed.unsigned_abs() > LONGEST_WAIT && passed < SignedDuration::ZERO {
        return None;
    }
    wait.checked_sub(passed.max(SignedDuration::ZERO).unsigned_abs()).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_seconds(failures: i64, passed_seconds: i64) -> Option<u64> {
        let last = Timestamp::UNIX_EPOCH;
        let wait = remaining_wait(failures, last, last + SignedDuration::from_secs(passed_seconds));
        wait.map(|wait| wait.as_secs())
    }

    #[test]
    fn waits_begin_at_ten_failures_and_double_to_a_quarter_of_an_hour() {
        assert_eq!(wait_seconds(9, 0), None);
        let waits = [10, 11, 12, 15, 16, 99].map(|failures| wait_seconds(failures, 0));
        assert_eq!(waits, [30, 60, 120, 900, 900, 900].map(Some));
        assert_eq!((wait_seconds(10, 29), wait_seconds(10, 30)), (Some(1), None));
    }

    #[test]
    fn failures_far_in_the_future_start_no_wait() {
        assert_eq!(wait_seconds(20, -3_600), None);
        assert_eq!(wait_seconds(10, -1), Some(30), "the clock of another server is a second ahead");
    }
}
