//! Finds servers that have fallen silent: their machine is paused, or the network drops its packets. Their connections are not
//! closed, so nothing else tells a call that its server is gone.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

/// What is known of one server.
#[derive(Default)]
pub(super) struct Silence {
    /// The last attempt to connect got no answer.
    is_silent: AtomicBool,
    /// When the last probe ended, and whether the server was silent. Of the calls that wait for the server, one probes it.
    probed: Mutex<Option<(Instant, bool)>>,
}

impl Silence {
    pub(super) fn is_known(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Notes whether the server answered an attempt to connect, be it by an error.
    pub(super) fn note(&self, has_answered: bool) {
        self.is_silent.store(!has_answered, Ordering::Relaxed);
    }

    /// Whether the server is silent. Runs `probe`, which returns whether the server answered, unless another call has done so within
    /// `recent`.
    pub(super) async fn ask(&self, recent: Duration, probe: impl Future<Output = bool>) -> bool {
        let mut probed = self.probed.lock().await;
        if let Some((at, is_silent)) = *probed
            && at.elapsed() < recent
        {
            return is_silent;
        }
        let has_answered = probe.await;
        self.note(has_answered);
        *probed = Some((Instant::now(), !has_answered));
        !has_answered
    }
}
