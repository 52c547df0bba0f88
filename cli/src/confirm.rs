//! Consent to a step that destroys data.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::{exit_code, failure::Failure, printable::printable};

/// Asks on the terminal whether to go on. Without a terminal, only the option `--yes` is consent.
pub(crate) fn confirm(is_confirmed: bool, question: &str) -> Result<(), Failure> {
    if is_confirmed {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let sentence = format!("There is no terminal to confirm this on: {question}");
        return Err(Failure::usage(sentence, "Give --yes if that is what you want."));
    }
    let _ = write!(io::stderr(), "{} [y/N] ", printable(question));
    let mut answer = String::new();
    let is_yes = io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if is_yes {
        return Ok(());
    }
    Err(Failure::new(exit_code::FAILURE, "Nothing was changed", "Answer y, or give --yes."))
}
