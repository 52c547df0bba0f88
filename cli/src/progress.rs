//! Progress on the standard error: a bar on a terminal, or JSON lines with `--progress json`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    ops::ControlFlow,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::{interrupt, output::Output, printable::printable_json, progress_form::ProgressForm};

/// The time between two lines.
const BETWEEN_LINES: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Items,
}

/// The progress of a piece of work, which ends when it is dropped.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines(Lines),
}

impl Progress {
    pub(crate) fn new(output: &Output, about: &str, unit: Unit) -> Progress {
        if output.progress == ProgressForm::Json {
            return Progress::Lines(Lines::start(about, Some(unit)));
        }
        let is_shown = output.progress == ProgressForm::Auto && !output.is_json && io::stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target).with_message(about.to_owned());
        let figures = match unit {
            Unit::Bytes => "{bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            Unit::Items => "{human_pos} of {human_len}, {per_sec}, {eta} left",
        };
        // The template is a constant; a bar of the default style is as good.
        if let Ok(style) = ProgressStyle::with_template(&format!("{{msg}} [{{wide_bar}}] {figures}")) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress::Bar(bar)
    }

    /// A spinner for work of unknown length. As JSON, a line every half second says that it goes on.
    pub(crate) fn waiting(output: &Output, about: &str) -> Progress {
        if output.progress == ProgressForm::Json {
            return Progress::Lines(Lines::start(about, None));
        }
        let progress = Progress::new(output, about, Unit::Items);
        if let Progress::Bar(bar) = &progress {
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        progress
    }

    /// Shows how much is done. Ends the call if a signal asks for it.
    pub(crate) fn show(&self, done: u64, all: u64) -> ControlFlow<()> {
        match self {
            Progress::Bar(bar) => {
                bar.set_length(all);
                bar.set_position(done);
            }
            Progress::Lines(lines) => lines.set(done, all),
        }
        if interrupt::is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match self {
            Progress::Bar(bar) => bar.finish_and_clear(),
            Progress::Lines(lines) => lines.end(),
        }
    }
}

/// Writes a line at the begin, one every half second, and one at the end.
#[derive(Debug)]
pub(crate) struct Lines {
    shared: Arc<SharedLines>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedLines {
    about: String,
    unit: Option<Unit>,
    started: Instant,
    state: Mutex<LinesState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct LinesState {
    /// `None` for work that is not counted.
    done: Option<u64>,
    /// `None` until the work says how much there is.
    all: Option<u64>,
    has_ended: bool,
}

impl Lines {
    fn start(about: &str, unit: Option<Unit>) -> Lines {
        let state = LinesState { done: unit.map(|_| 0), ..LinesState::default() };
        let shared = SharedLines {
            about: about.to_owned(),
            unit,
            started: Instant::now(),
            state: Mutex::new(state),
            ended: Condvar::new(),
        };
        let shared = Arc::new(shared);
        let writing = Arc::clone(&shared);
        let writer =
            thread::Builder::new().name("townsquare-progress".to_owned()).spawn(move || writing.write_until_end());
        // Without the thread there is only the last line.
        Lines { shared, writer: writer.ok() }
    }

    fn set(&self, done: u64, all: u64) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.done, state.all) = (Some(done), Some(all));
    }

    fn end(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
        self.shared.ended.notify_all();
        match self.writer.take() {
            // It does not panic.
            Some(writer) => drop(writer.join()),
            None => self.shared.write_until_end(),
        }
    }
}

impl SharedLines {
    fn write_until_end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let line = json!({
                "progress": self.about,
                "done": state.done,
                "all": state.all,
                "unit": self.unit.map(|unit| match unit {
                    Unit::Bytes => "bytes",
                    Unit::Items => "items",
                }),
                "seconds": (self.started.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0,
                "ended": state.has_ended,
            });
            // It is no data, so a failure is ignored.
            let _ = io::stderr().write_all(format!("{}\n", printable_json(&line.to_string())).as_bytes());
            if state.has_ended {
                return;
            }
            let waited = self.ended.wait_timeout_while(state, BETWEEN_LINES, |state| !state.has_ended);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
