//! What every command gets: the settings, the output and the consent, and how it opens the client.

use std::{cell::OnceCell, ffi::OsString};

use townsquare::{Client, Config, Result as LibraryResult, blocking};

use crate::{
    confirm::confirm,
    failure::Failure,
    missing::{self, is_missing},
    output::Output,
    runtime::block_on,
    settings::{IfMissing, Settings},
};

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    /// The options of the library on the command line.
    pub(crate) given: Vec<(String, OsString)>,
    pub(crate) settings: OnceCell<Settings>,
    pub(crate) output: Output,
    /// Whether `--yes` is given.
    pub(crate) is_confirmed: bool,
    /// Makes the definition of the command line, for its completions and its manual.
    pub(crate) definition: fn() -> clap::Command,
}

impl Context {
    /// The options of the library, which are read at the first call.
    pub(crate) fn settings(&self) -> Result<&Settings, Failure> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = Settings::read(&self.given)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// Opens a client that acts for the service, runs `work` and closes the client, also after a failure.
    pub(crate) fn with_client<T>(
        &self,
        if_missing: IfMissing,
        work: impl FnOnce(&blocking::Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = blocking::Client::from(self.open(if_missing)?);
        let result = work(&client.as_service());
        client.close();
        result
    }

    /// Opens a client. Only [`IfMissing::Create`] and [`IfMissing::Migrate`] make a database or change the schema of one.
    pub(crate) fn open(&self, if_missing: IfMissing) -> Result<Client, Failure> {
        let config = self.settings()?.config()?;
        match if_missing {
            IfMissing::Create => return Ok(open(config)??),
            IfMissing::Migrate => return Ok(open(config.migrate(true))??),
            IfMissing::Fail | IfMissing::FailReadOnly | IfMissing::UseMemory => {}
        }
        let config = if if_missing == IfMissing::Fail { config } else { config.claim_store(false) };
        open(config.migrate(false))?.or_else(|error| match if_missing {
            IfMissing::UseMemory if is_missing(&error) => Ok(open(self.settings()?.config_in_memory()?)??),
            _ => Err(missing::failure(error)),
        })
    }

    /// See [`confirm`].
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        confirm(self.is_confirmed, question)
    }
}

fn open(config: Config) -> Result<LibraryResult<Client>, Failure> {
    block_on(Client::open(config))
}
