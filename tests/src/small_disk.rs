//! A file system of a few megabytes, for tests of full disks.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::subprocess::in_shell;

/// Runs `command` in a name space of its own, with a file system of `megabytes` at `folder`. `None` if nothing can be mounted
/// here, which needs root or user name spaces.
///
/// # Panics
/// When the command does not start.
pub fn on_small_disk(folder: &Path, megabytes: u32, command: &Command) -> Option<Output> {
    let mount = format!("mount -t tmpfs -o size={megabytes}m none '{}'", folder.display());
    let may = |flags: &&str| {
        let output = Command::new("unshare").args([*flags, "sh", "-c", &mount]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let flags = ["-m", "-rm"].into_iter().find(may)?;
    let shell = in_shell(&format!("{mount} || exit 9"), command);
    let mut unshare = Command::new("unshare");
    unshare.arg(flags).arg(shell.get_program()).args(shell.get_args());
    unshare.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(unshare.output().expect("unshare starts"))
}
