//! What every command gets: the settings, the output and the consent, and how it opens the client.

use townsquare::blocking::Client;

use crate::{
    confirm::confirm,
    failure::Failure,
    output::Output,
    settings::{IfMissing, Settings},
};

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
    /// Whether `--yes` is given.
    pub(crate) is_confirmed: bool,
    /// Makes the definition of the command line, for its completions and its manual.
    pub(crate) definition: fn() -> clap::Command,
}

impl Context {
    /// Opens a client that acts for the service, runs `work` and closes the client, also after a failure.
    pub(crate) fn with_client<T>(
        &self,
        if_missing: IfMissing,
        work: impl FnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = Client::open(self.settings.config_for(if_missing)?)?;
        let result = work(&client.as_service());
        client.close();
        result
    }

    /// See [`confirm`].
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        confirm(self.is_confirmed, question)
    }
}
