//! Passwords from the first line of the standard input, from the environment, or from the terminal without echo.

use std::{
    env,
    io::{self, BufRead as _, IsTerminal as _, Read as _},
};

use crate::failure::Failure;

/// The variable that a password may come from.
pub(crate) const PASSWORD_VARIABLE: &str = "TOWNSQUARE_PASSWORD";

/// The most bytes that are read. A password has at most 1,024.
const MOST_BYTES: u64 = 8_192;

/// Reads a new password. On a terminal it is typed twice.
pub(crate) fn new_password() -> Result<String, Failure> {
    let is_terminal = io::stdin().is_terminal();
    if !is_terminal && let Some(line) = read_line()? {
        return Ok(line);
    }
    if let Some(password) = env::var_os(PASSWORD_VARIABLE) {
        let advice = "Give the password as the first line of the standard input.";
        return password.into_string().map_err(|_| Failure::usage(format!("{PASSWORD_VARIABLE} is not UTF-8"), advice));
    }
    if !is_terminal {
        return Err(no_line());
    }
    let ask = |prompt: &str| {
        let advice = "Give the password as the first line of the standard input, or in TOWNSQUARE_PASSWORD.";
        rpassword::prompt_password(prompt)
            .map_err(|error| Failure::usage(format!("Cannot read a password: {error}"), advice))
    };
    let password = ask("New password: ")?;
    if ask("The same password again: ")? != password {
        return Err(Failure::usage("The two passwords differ", "Run the command again."));
    }
    Ok(password)
}

/// The first line of the standard input, without its end.
pub(crate) fn first_line() -> Result<String, Failure> {
    read_line()?.ok_or_else(no_line)
}

/// The first line of the standard input, without its end and without a byte order mark. `None` if it is empty.
fn read_line() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let read = io::stdin().lock().take(MOST_BYTES).read_line(&mut line);
    read.map_err(|error| {
        Failure::usage(format!("Cannot read the standard input: {error}"), "Send one line of UTF-8 text.")
    })?;
    let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    Ok((!line.is_empty()).then(|| line.to_owned()))
}

fn no_line() -> Failure {
    Failure::usage(
        "The standard input has no line",
        "Send the secret as the first line of the standard input, for example from a file: < FILE.",
    )
}
