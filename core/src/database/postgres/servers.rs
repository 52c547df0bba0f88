//! The servers that a PostgreSQL URL names, and how to connect to the right one.
//!
//! Invariant: each part of the URL is used or refused by name. Nothing that the URL says is replaced silently.

use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, Row as _, postgres::PgConnectOptions};

use super::errors::translate;
use crate::{
    config::Secret,
    error::{Error, ErrorKind, Result},
};

/// The capacity of a connection's prepared statement cache: more than the library has statements.
const MAX_STATEMENTS: usize = 512;

/// The parameters of a URL that go to the driver as they are.
const DRIVER_PARAMETERS: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The settings that the library sets on each connection, so that a URL must not set them.
const OWN_SETTINGS: [&str; 7] =
    ["search_path", "role", "townsquare.", "statement_timeout", "client_encoding", "datestyle", "timezone"];

/// The servers of a URL.
pub(super) struct Servers {
    servers: Vec<PgConnectOptions>,
    target: Target,
    /// `statement-cache-capacity=0`, or `pgbouncer=true`.
    pub(super) is_without_names: bool,
}

/// The value of `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Any,
    /// Accepts writes.
    Writable,
    /// Refuses writes.
    ReadOnly,
    /// Refuses writes; any other server if there is none.
    PreferReadOnly,
}

impl Servers {
    /// Reads a URL: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`.
    ///
    /// # Errors
    /// `Config` for a URL that cannot be read, and for a parameter that has no effect. The message has no secret.
    pub(super) fn parse(url: &Secret) -> Result<Servers> {
        let text = url.reveal();
        // The driver's error may quote the URL and its password, so it is not the source of ours.
        let unreadable = || Error::config("Option database_url is not a PostgreSQL URL that can be read");
        let (scheme, rest) = text.split_once("://").ok_or_else(unreadable)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let mut passed: Vec<(String, String)> = Vec::new();
        let (mut target, mut is_without_names, mut capacity) = (Target::Any, false, MAX_STATEMENTS);
        for (name, value) in url::form_urlencoded::parse(query.split('#').next().unwrap_or_default().as_bytes()) {
            match &*name {
                "target_session_attrs" => target = Target::parse(&value)?,
                "pgbouncer" => is_without_names |= value == "true" || value == "1",
                "statement-cache-capacity" => {
                    capacity = value.parse().map_err(|_| refused("statement-cache-capacity is no number"))?;
                    is_without_names |= capacity == 0;
                }
                name if DRIVER_PARAMETERS.contains(&name) || name.starts_with("options[") => {
                    check_settings(name, &value)?;
                    passed.push((name.to_owned(), value.into_owned()));
                }
                name => return Err(refused(&format!("the parameter {name:?} is unknown"))),
            }
        }
        let names_application = passed.iter().any(|(name, value)| {
            name == "application_name"
                || name.starts_with("options") && format!("{name}{value}").contains("application_name")
        });
        let servers = each_host(hosts, &passed).into_iter().map(|(host, parameters)| {
            let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
            let url = format!("{scheme}://{user}{host}{path}?{query}");
            let mut server: PgConnectOptions = url.parse().map_err(|_| unreadable())?;
            if !names_application && server.get_application_name().is_none() {
                server = server.application_name("townsquare");
            }
            // Poolers refuse this start-up parameter. The library reads no floats as text.
            Ok(server.extra_float_digits(None).statement_cache_capacity(capacity))
        });
        Ok(Servers { servers: servers.collect::<Result<_>>()?, target, is_without_names })
    }

    /// Whether another server may take over: a connection that became read-only is then of no use.
    pub(super) fn has_alternatives(&self) -> bool {
        self.servers.len() > 1
    }

    /// Connects to the first server that fits.
    ///
    /// # Errors
    /// That of the last server; `Unavailable` (25006) if servers answer and none fits.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        self.connect_to_one().await.map(|(connection, _)| connection)
    }

    /// Finds the server that [`connect`](Servers::connect) would connect to.
    ///
    /// # Errors
    /// Those of [`connect`](Servers::connect), unless there is no choice.
    pub(super) async fn find(&self) -> Result<PgConnectOptions> {
        if let ([only], Target::Any) = (self.servers.as_slice(), self.target) {
            return Ok(only.clone());
        }
        let (connection, server) = self.connect_to_one().await?;
        // A failure is ignored: the server notices a closed socket as well.
        let _ = connection.close().await;
        Ok(server.clone())
    }

    async fn connect_to_one(&self) -> Result<(PgConnection, &PgConnectOptions)> {
        let mut failure = None;
        let mut second_choice = None;
        for server in &self.servers {
            let mut connection = match server.connect().await.map_err(translate) {
                Ok(connection) => connection,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            if self.target == Target::Any {
                return Ok((connection, server));
            }
            match (is_read_only(&mut connection).await, self.target) {
                (Ok(true), Target::ReadOnly | Target::PreferReadOnly) | (Ok(false), Target::Writable) => {
                    return Ok((connection, server));
                }
                (Ok(false), Target::PreferReadOnly) => second_choice = Some((connection, server)),
                (Ok(_), _) => {
                    // A failure is ignored: the server notices a closed socket as well.
                    let _ = connection.close().await;
                    let message = "no server of database_url fits its target_session_attrs";
                    failure = Some(Error::database(Some("25006"), ErrorKind::Unavailable, message));
                }
                (Err(error), _) => failure = Some(error),
            }
        }
        second_choice.ok_or_else(|| failure.unwrap_or_else(|| refused("it names no host")))
    }
}

impl Target {
    fn parse(text: &str) -> Result<Target> {
        match text {
            "any" => Ok(Target::Any),
            "read-write" | "primary" => Ok(Target::Writable),
            "read-only" | "standby" => Ok(Target::ReadOnly),
            "prefer-standby" => Ok(Target::PreferReadOnly),
            _ => Err(refused("target_session_attrs is any, read-write, primary, read-only, standby or prefer-standby")),
        }
    }
}

fn refused(why: &str) -> Error {
    Error::config(format!("Option database_url: {why}"))
}

/// Refuses a parameter `options` that sets what the library sets.
fn check_settings(name: &str, value: &str) -> Result<()> {
    let text = format!("{name} {value}").to_ascii_lowercase();
    match OWN_SETTINGS.iter().find(|setting| name.starts_with("options") && text.contains(*setting)) {
        Some(setting) => Err(refused(&format!("the library sets {setting} itself; take it out of options"))),
        None => Ok(()),
    }
}

/// The hosts, of the authority or of the parameters `host` and `port`, each with its own parameters.
fn each_host(authority: &str, parameters: &[(String, String)]) -> Vec<(String, Vec<(String, String)>)> {
    let list = |wanted: &str| -> Option<Vec<String>> {
        let (_, value) = parameters.iter().find(|(name, value)| name == wanted && value.contains(','))?;
        Some(value.split(',').map(str::to_owned).collect())
    };
    let Some(hosts) = list("host") else {
        return authority.split(',').map(|host| (host.to_owned(), parameters.to_vec())).collect();
    };
    let ports = list("port").unwrap_or_default();
    let each = hosts.iter().enumerate().map(|(index, host)| {
        let mut own = parameters.to_vec();
        for (name, value) in &mut own {
            match name.as_str() {
                "host" => value.clone_from(host),
                "port" => value.clone_from(ports.get(index).unwrap_or(&value.clone())),
                _ => {}
            }
        }
        (authority.to_owned(), own)
    });
    each.collect()
}

/// Whether the server refuses writes: a standby, or a database that is read-only by its settings.
pub(super) async fn is_read_only(connection: &mut PgConnection) -> Result<bool> {
    let row = connection.fetch_one("SHOW transaction_read_only").await.map_err(translate)?;
    Ok(row.try_get::<String, _>(0).map_err(translate)? == "on")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Servers> {
        Servers::parse(&Secret::new(url))
    }

    fn hosts(url: &str) -> Vec<(String, u16)> {
        let servers = parse(url).unwrap_or_else(|error| panic!("{url}: {error}")).servers;
        servers.iter().map(|server| (server.get_host().to_owned(), server.get_port())).collect()
    }

    #[test]
    fn a_url_names_one_or_several_servers() {
        assert_eq!(hosts("postgres://u@one:1/d"), [("one".to_owned(), 1)]);
        let two = [("one".to_owned(), 1), ("two".to_owned(), 2)];
        assert_eq!(hosts("postgresql://u:p%40@one:1,two:2/d?sslmode=disable"), two);
        assert_eq!(hosts("postgres://u@localhost/d?host=one,two&port=1,2"), two);
        assert!(parse("postgres://u@one,two/d").expect("valid").has_alternatives());
    }

    #[test]
    fn each_parameter_is_used_or_refused_by_name() {
        for (query, word) in [
            ("prepareThreshold=0", "prepareThreshold"),
            ("options=-c%20search_path%3Dx", "search_path"),
            ("options[role]=x", "role"),
            ("options=-c%20statement_timeout%3D5", "statement_timeout"),
            ("target_session_attrs=fast", "target_session_attrs"),
            ("statement-cache-capacity=many", "statement-cache-capacity"),
        ] {
            let error = parse(&format!("postgres://u:MARKED@h/d?{query}")).err().expect(query);
            assert!(error.message().contains(word) && !error.message().contains("MARKED"), "{error}");
        }
        let named = |query: &str| {
            let servers = parse(&format!("postgres://u@h/d?{query}")).expect(query).servers;
            (servers[0].get_application_name().map(str::to_owned), servers[0].get_options().map(str::to_owned))
        };
        assert_eq!(named("sslmode=disable").0.as_deref(), Some("townsquare"));
        assert_eq!(named("application_name=town").0.as_deref(), Some("town"));
        let options = "-c application_name=town";
        assert_eq!(named("options=-c%20application_name%3Dtown"), (None, Some(options.to_owned())));
        for query in ["pgbouncer=true", "statement-cache-capacity=0"] {
            assert!(parse(&format!("postgres://u@h/d?{query}")).expect(query).is_without_names);
        }
    }
}
