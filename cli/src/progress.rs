//! Progress bars, on the standard error of a terminal only.

use std::{io, io::IsTerminal as _, ops::ControlFlow, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{interrupt, output::Output};

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Items,
}

/// A progress bar. It is hidden with `--json` and where the standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(output: &Output, about: &str, unit: Unit) -> Progress {
        let is_shown = !output.is_json && io::stderr().is_terminal();
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
        Progress(bar)
    }

    /// A spinner for work of unknown length.
    pub(crate) fn waiting(output: &Output, about: &str) -> Progress {
        let progress = Progress::new(output, about, Unit::Items);
        progress.0.set_style(ProgressStyle::default_spinner());
        progress.0.enable_steady_tick(Duration::from_millis(120));
        progress
    }

    /// Shows how much is done. Ends the call if a signal asks for it.
    pub(crate) fn show(&self, done: u64, all: u64) -> ControlFlow<()> {
        self.0.set_length(all);
        self.0.set_position(done);
        if interrupt::is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
