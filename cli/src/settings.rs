//! The options of the client, and where each value comes from: the command line, the environment, or `townsquare.toml`.
//!
//! Invariant: the command line goes before the environment, and the environment before the file, as the library puts a value of
//! the program before the environment.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use townsquare::{Config, config::OPTIONS};

use crate::{
    failure::Failure,
    redact::{SECRET_OPTIONS, URL_OPTIONS, has_secret},
};

/// The name of the file beside the data.
const FILE_NAME: &str = "townsquare.toml";

/// The folder of the data if no option names one.
const DEFAULT_DATA_DIR: &str = "townsquare-data";

/// The `data_dir` of a client with nothing on the disk.
const MEMORY: &str = ":memory:";

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    CommandLine,
    Environment(String),
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::CommandLine => f.write_str("command line"),
            Source::Environment(variable) => write!(f, "environment variable {variable}"),
            Source::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// What a command does if there is no database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    /// As `Create`, whatever the option `migrate` says: the operator asked for it.
    Migrate,
    /// The command would find nothing.
    Fail,
    /// As `Fail`. The command changes nothing, so it does not claim the files of another database either, whatever the option
    /// `claim_store` says.
    FailReadOnly,
    /// The command reads the directory of apps, which a client in memory can fetch.
    UseMemory,
}

/// The value of an option.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) value: OsString,
    pub(crate) source: Source,
}

/// The options that have a value. The others have the default of the library.
#[derive(Clone, Default)]
pub(crate) struct Settings(BTreeMap<&'static str, Setting>);

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Settings {
    /// Reads the options: `given` on the command line, then the environment, then the file.
    pub(crate) fn read(given: &[(String, OsString)]) -> Result<Settings, Failure> {
        let mut settings = Settings::without_file(given)?;
        settings.read_file()?;
        Ok(settings)
    }

    /// Reads the options without the file.
    pub(crate) fn without_file(given: &[(String, OsString)]) -> Result<Settings, Failure> {
        let mut settings = Settings::default();
        for (name, value) in given {
            let name = known(name)?;
            let may_have_secret = URL_OPTIONS.contains(&name) && value.to_str().is_some_and(has_secret);
            if SECRET_OPTIONS.contains(&name) || may_have_secret {
                let verb = if may_have_secret { "may have" } else { "is" };
                return Err(Failure::usage(
                    format!("The option {name} {verb} a secret, and other users can read a command line"),
                    format!("Set the environment variable {} instead.", variable(name)),
                ));
            }
            if settings.get(name).is_some() {
                return Err(Failure::usage(format!("The option {name} is given twice"), "Give it once."));
            }
            settings.add(name, value.clone(), Source::CommandLine);
        }
        settings.read_environment();
        Ok(settings)
    }

    /// The options of a place that is a folder: those of the environment and of its file.
    pub(crate) fn of_folder(folder: &str) -> Result<Settings, Failure> {
        let mut settings = Settings::default();
        settings.add("data_dir", folder.into(), Source::CommandLine);
        settings.read_environment();
        settings.read_file()?;
        Ok(settings)
    }

    fn read_environment(&mut self) {
        for (name, _) in OPTIONS {
            if let Some(value) = env::var_os(variable(name)) {
                self.add(name, value, Source::Environment(variable(name)));
            }
        }
        if let Some(key) = env::var_os("CATALOG_API_KEY") {
            self.add("catalog_api_key", key, Source::Environment("CATALOG_API_KEY".to_owned()));
        }
    }

    /// Adds a value, unless the option has one.
    fn add(&mut self, name: &'static str, value: OsString, source: Source) {
        self.0.entry(name).or_insert(Setting { value, source });
    }

    /// Reads the file beside the data.
    fn read_file(&mut self) -> Result<(), Failure> {
        if self.data_dir() == Path::new(MEMORY) {
            return Ok(());
        }
        let path = &self.data_dir().join(FILE_NAME);
        let advice =
            "Write one option a line, such as catalog_url = \"sample:\"; `townsquare config` lists the options.";
        // To open a pipe would wait for its writer.
        let is_file = fs::metadata(path).map(|metadata| metadata.is_file());
        let text = match is_file.and_then(|is_file| if is_file { fs::read_to_string(path).map(Some) } else { Ok(None) })
        {
            Ok(Some(text)) => text,
            Ok(None) => return Err(Failure::usage(format!("{} is no regular file", path.display()), advice)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Failure::usage(format!("{} is not UTF-8", path.display()), advice));
            }
            Err(error) => return Err(Failure::of_file(path, &error)),
        };
        let at_line = |error: &toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            // The error itself may quote a secret.
            format!("{}:{}: {}", path.display(), before.lines().count().max(1), error.message())
        };
        let table: toml::Table = text.parse().map_err(|error| Failure::usage(at_line(&error), advice))?;
        for (name, value) in table {
            let name = known(&name).map_err(|failure| failure.at(path.display()))?;
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                _ => {
                    let sentence = format!("{}: Option {name} is a text, a number, true or false", path.display());
                    return Err(Failure::usage(sentence, advice));
                }
            };
            if name == "data_dir" {
                let sentence = format!("{}: the file lies in data_dir and cannot name another one", path.display());
                return Err(Failure::usage(sentence, "Give data_dir by --data-dir or TOWNSQUARE_DATA_DIR."));
            }
            self.add(name, value.into(), Source::File(path.to_owned()));
        }
        Ok(())
    }

    /// The options with a value, and its source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&'static str, &Source)> {
        self.0.iter().map(|(name, setting)| (*name, &setting.source))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }

    /// The folder of the data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.get("data_dir").map_or_else(|| DEFAULT_DATA_DIR.into(), |setting| PathBuf::from(&setting.value))
    }

    /// The configuration with these values.
    ///
    /// # Errors
    /// Usage, naming the source of the value that is not valid.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::new();
        for (name, Setting { value, source }) in &self.0 {
            config = match (*name, value.to_str()) {
                // A path need not be UTF-8.
                ("data_dir", _) => config.data_dir(Path::new(value)),
                (name, Some(text)) => config.set(name, text).map_err(|error| Failure::from(error).at(source))?,
                (name, None) => {
                    let sentence = format!("{source}: Option {name} is not UTF-8");
                    return Err(Failure::usage(sentence, "Correct the value."));
                }
            };
        }
        Ok(config)
    }

    /// The configuration with nothing on the disk, whatever place the values name.
    pub(crate) fn config_in_memory(&self) -> Result<Config, Failure> {
        let config = self.config()?.data_dir(MEMORY).persist_session(false);
        Ok(config.database_url(format!("sqlite:{MEMORY}")).storage_url("memory:"))
    }
}

/// The environment variable of an option.
fn variable(name: &str) -> String {
    format!("TOWNSQUARE_{}", name.to_ascii_uppercase())
}

/// The option with a name.
///
/// # Errors
/// Usage for a name that is no option. The error of the library names a similar option.
fn known(name: &str) -> Result<&'static str, Failure> {
    if let Some((option, _)) = OPTIONS.iter().find(|(option, _)| *option == name) {
        return Ok(option);
    }
    let message = match Config::new().set(name, "") {
        Err(error) => error.message().to_owned(),
        Ok(_) => format!("Unknown option {name:?}"),
    };
    let sentence = message.split_once(" The options are ").map_or(&*message, |(sentence, _)| sentence);
    Err(Failure::usage(sentence.trim_end_matches('.'), "`townsquare config` lists the options."))
}
