//! Signals that end the command: SIGINT, SIGTERM and SIGHUP.
//!
//! Invariant: the first signal ends the process, unless the command has called `defer`. Then it sets a mark, and the second
//! signal ends the process. A signal that the parent process made the command ignore stays ignored, as `nohup` needs.

use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::{runtime, sync::Notify};

use crate::{exit_code, failure::Failure, output::note};

static IS_DEFERRED: AtomicBool = AtomicBool::new(false);
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);
static REQUESTED: Notify = Notify::const_new();
static UNSTOPPABLE: OnceLock<&str> = OnceLock::new();

/// Receives the signals from now on. Called before the first client opens, because the threads of a client block signals.
pub(crate) fn install() -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let sentence = format!("Cannot receive signals: {error}");
        Failure::new(exit_code::FAILURE, sentence, "Check the limits of threads and open files of this process.")
    };
    let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new().map_err(failed)?
    };
    let receive = move || {
        runtime.block_on(async {
            loop {
                signals.next().await;
                handle();
            }
        });
    };
    thread::Builder::new().name("townsquare-signals".to_owned()).spawn(receive).map(drop).map_err(failed)
}

fn handle() {
    let is_repeated = IS_REQUESTED.swap(true, Ordering::AcqRel);
    if is_repeated || !IS_DEFERRED.load(Ordering::Acquire) {
        exit_code::end_process(exit_code::INTERRUPTED);
    }
    if let Some(what) = UNSTOPPABLE.get() {
        note(&format!("{what} is finished first. A second signal ends it at once."));
    }
    REQUESTED.notify_one();
}

/// From now on the first signal does not end the process: the command ends by itself.
pub(crate) fn defer() {
    IS_DEFERRED.store(true, Ordering::Release);
}

/// Defers the signals, for work that cannot be stopped in the middle. `what` is the subject of the note that the first signal
/// prints.
pub(crate) fn finish_first(what: &'static str) {
    UNSTOPPABLE.get_or_init(|| what);
    defer();
}

/// Whether a signal asks the command to end.
pub(crate) fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Acquire)
}

/// Waits for the signal. One task may wait.
pub(crate) async fn requested() {
    REQUESTED.notified().await;
}

/// The signals that end the command.
#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};

        let ignored = ignored_signals();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].into_iter();
        let received = kinds.filter(|kind| ignored & (1 << (kind.as_raw_value() - 1)) == 0);
        received.map(signal).collect::<io::Result<_>>().map(Signals)
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let is_received = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if is_received { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

/// The signals that this process ignores, as the kernel of Linux states them: bit 0 is signal 1. Other systems state them only to
/// unsafe code: none there.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// The events of a console that end the command.
#[cfg(windows)]
struct Signals {
    ctrl_c: tokio::signal::windows::CtrlC,
    ctrl_break: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};

        Ok(Signals { ctrl_c: ctrl_c()?, ctrl_break: ctrl_break()? })
    }

    async fn next(&mut self) {
        let (ctrl_c, ctrl_break) = (std::pin::pin!(self.ctrl_c.recv()), std::pin::pin!(self.ctrl_break.recv()));
        futures_util::future::select(ctrl_c, ctrl_break).await;
    }
}
