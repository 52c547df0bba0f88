//! Failed sign-ins slow down the address they were for, known or not.
//!
//! Invariant: counts are in the database, so a restart forgets none and processes share them. After [`ALLOWED`] failures
//! within [`WINDOW`] every further one doubles a wait, during which nothing is hashed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    clock::{Clock, earlier},
    database::{Row, Scope, Statement},
    error::{Error, ErrorKind, Result},
};

/// Failures before an address has to wait.
const ALLOWED: i64 = 10;

/// The time they are counted over.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// The first wait, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15 * 60));

/// Failures this old are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(86_400);

static GET: Statement = Statement::new("SELECT failures, last_at FROM townsquare.failures WHERE address_hash = $1");

// $3 and $4 are the times before which a count starts anew; so does one from a clock that was ahead.
static COUNT: Statement = Statement::new(
    "INSERT INTO townsquare.failures AS tally (address_hash, failures, first_at, last_at) VALUES ($1, 1, $2, $2)
     ON CONFLICT (address_hash) DO UPDATE SET
         failures = CASE WHEN (tally.failures < $5 AND tally.first_at < $3) OR tally.last_at < $4 OR tally.first_at > $2
             THEN 1 ELSE tally.failures + 1 END,
         first_at = CASE WHEN (tally.failures < $5 AND tally.first_at < $3) OR tally.last_at < $4 OR tally.first_at > $2
             THEN $2 ELSE tally.first_at END,
         last_at = $2",
);

static SWEEP: Statement = Statement::new("DELETE FROM townsquare.failures WHERE last_at < $1");

/// Forgives an address: to be run in the transaction that lets somebody in.
pub(super) static CLEAR: Statement = Statement::new("DELETE FROM townsquare.failures WHERE address_hash = $1");

/// The counts of failed sign-ins.
#[derive(Clone)]
pub(super) struct Throttle {
    scope: Scope,
    clock: Clock,
}

impl Throttle {
    pub(super) fn new(scope: Scope, clock: Clock) -> Throttle {
        Throttle { scope, clock }
    }

    /// Lets an address try, unless it has to wait.
    ///
    /// # Errors
    /// `RateLimited`, with the time to wait.
    pub(super) async fn check(&self, address_hash: &str) -> Result<()> {
        let Some((failures, last_at)) = self.scope.fetch(&GET, &[address_hash.into()], tally).await?.pop() else {
            return Ok(());
        };
        match remaining(failures, last_at, self.clock.now()) {
            None => Ok(()),
            Some(wait) => Err(Error::new(
                ErrorKind::RateLimited,
                format!("Too many failed attempts; try again in {} s", wait.as_secs_f64().ceil()),
            )
            .retry_in(wait)),
        }
    }

    /// Counts a failure.
    pub(super) async fn failed(&self, address_hash: String) -> Result<()> {
        let now = self.clock.now();
        let values = [
            address_hash.into(),
            now.into(),
            earlier(now, WINDOW).into(),
            earlier(now, WINDOW + WAITS.1).into(),
            ALLOWED.into(),
        ];
        let count = self.scope.write(move |transaction| {
            Box::pin(async move {
                transaction.execute(&COUNT, &values).await?;
                transaction.execute(&SWEEP, &[earlier(now, FORGOTTEN).into()]).await?;
                Ok(())
            })
        });
        count.await
    }
}

fn tally(row: &Row<'_>) -> Result<(i64, Timestamp)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// How long an address still has to wait.
fn remaining(failures: i64, last_at: Timestamp, now: Timestamp) -> Option<Duration> {
    let past = u32::try_from(failures - ALLOWED).ok()?;
    let wait = WAITS.0.saturating_mul(1 << past.min(16)).min(WAITS.1);
    let passed = now.duration_since(last_at);
    // A failure far in the future is from a clock that was ahead: it may not shut anybody out for as long as it was. One
    // just ahead is from a server whose clock is.
    if passed.unsigned_abs() > WAITS.1 && passed < SignedDuration::ZERO {
        return None;
    }
    wait.checked_sub(passed.max(SignedDuration::ZERO).unsigned_abs()).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(failures: i64, seconds: i64) -> Option<u64> {
        let last = Timestamp::UNIX_EPOCH;
        remaining(failures, last, last + SignedDuration::from_secs(seconds)).map(|wait| wait.as_secs())
    }

    #[test]
    fn waits_begin_at_ten_failures_and_double_to_a_quarter_of_an_hour() {
        assert_eq!(after(9, 0), None);
        assert_eq!([10, 11, 12, 15, 16, 99].map(|failures| after(failures, 0)), [30, 60, 120, 900, 900, 900].map(Some));
        assert_eq!((after(10, 29), after(10, 30)), (Some(1), None));
    }

    #[test]
    fn a_clock_that_was_ahead_shuts_nobody_out() {
        assert_eq!(after(20, -3_600), None);
        assert_eq!(after(10, -1), Some(30), "a server a second ahead");
    }
}
