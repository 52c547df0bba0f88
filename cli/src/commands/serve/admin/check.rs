//! The findings of a quick check.
//!
//! Invariant: at most one check runs at a time, however many pages are loaded. A page waits at most [`WAIT`] for the check, and then
//! shows the result of the check before.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use maud::html;
use tokio::{sync::watch, time::timeout};
use townsquare::{
    Client, Timestamp,
    check::{CheckDepth, Finding},
};

use super::{
    Admin,
    page::{Page, lines, table, time},
};

/// The longest time that a page waits for a check.
const WAIT: Duration = Duration::from_secs(2);

/// The shortest time for which a result is kept.
const SHORTEST_LIFE: Duration = Duration::from_secs(10);

/// A result is kept for this many times the duration of its check, so that a large store is not checked all the time.
const LIFE_PER_DURATION: u32 = 20;

/// The check that runs, and the result of the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckState {
    pub(super) running_since: Option<Timestamp>,
    pub(super) last: Option<Arc<CheckResult>>,
}

#[derive(Debug)]
pub(super) struct CheckResult {
    pub(super) time: Timestamp,
    ended: Instant,
    took: Duration,
    /// The findings, or why the check failed.
    pub(super) findings: Result<Vec<Finding>, String>,
}

impl CheckResult {
    async fn of(client: &Client) -> CheckResult {
        let (time, began) = (Timestamp::now(), Instant::now());
        let findings = client.check(CheckDepth::Quick).await.map_err(|error| error.to_string());
        CheckResult { time, ended: Instant::now(), took: began.elapsed(), findings }
    }

    fn is_old(&self) -> bool {
        self.ended.elapsed() > SHORTEST_LIFE.max(self.took * LIFE_PER_DURATION)
    }
}

#[derive(Debug, Default)]
pub(super) struct LastCheck(watch::Sender<CheckState>);

/// The state of the check, after a check that this call begins if the last result is old.
pub(super) async fn current(admin: &Admin) -> CheckState {
    let states = &admin.check.0;
    let begins = states.send_if_modified(|state| {
        let begins = state.running_since.is_none() && state.last.as_ref().is_none_or(|last| last.is_old());
        if begins {
            state.running_since = Some(Timestamp::now());
        }
        begins
    });
    if begins {
        let (client, states) = (admin.client.clone(), states.clone());
        tokio::spawn(async move {
            let result = Arc::new(CheckResult::of(&client).await);
            states.send_replace(CheckState { running_since: None, last: Some(result) });
        });
    }
    let mut receiver = states.subscribe();
    let _ = timeout(WAIT, receiver.wait_for(|state| state.running_since.is_none())).await;
    states.borrow().clone()
}

pub(super) async fn page(admin: &Admin) -> Page {
    let CheckState { running_since, last } = current(admin).await;
    let row = |finding: &Finding| {
        let severity = finding.severity().as_str();
        vec![
            html! { span class=(severity) { (severity) } },
            html! { code { (finding.code.as_str()) } },
            html! { (lines(&finding.message)) },
            html! { (finding.advice()) },
        ]
    };
    let body = html! {
        @if let Some(since) = running_since { p { "A check runs since " (time(since)) "." } }
        @if let Some(last) = last {
            p {
                "Quick check at " (time(last.time)) ", " (last.took.as_millis()) " ms. "
                code { "townsquare check --full" } " reads every byte."
            }
            @match &last.findings {
                Err(error) => p.error { (lines(error)) }
                Ok(findings) if findings.is_empty() => p.good { "Nothing is wrong." }
                Ok(findings) => (table(&["Severity", "Code", "What is wrong", "What to do"], findings.iter().map(row)))
            }
        }
    };
    Page::new("Check", "Check", body).refreshed(15)
}
