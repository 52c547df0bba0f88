//! Cargo, as a user starts it.
//!
//! Invariant: it does not get the variables that cargo sets for a test. Build scripts depend on them: cargo would compile crates such as
//! ring again, with all that use them, in this run and in the next one without the variables.

use std::{env, process::Command};

use crate::paths::workspace;

/// Returns the cargo that runs the test, in the folder of the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    remove_cargo_variables(&mut cargo);
    cargo.current_dir(workspace());
    cargo
}

/// Removes the variables that cargo sets for a test from a program that starts cargo.
pub fn remove_cargo_variables(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let is_set_by_cargo = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        if is_set_by_cargo {
            command.env_remove(name);
        }
    }
}
