//! Reads a PostgreSQL URL: the servers that it names, and how to choose among them.
//!
//! Invariant: each part of the URL is used or refused by name. Nothing that the URL says is replaced silently.

use std::{net::IpAddr, time::Duration};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::{
    config::Secret,
    error::{Error, Result},
};

/// The capacity of a connection's prepared statement cache: more than the library has statements.
const MAX_STATEMENTS: usize = 512;

/// The parameters of a URL that go to the driver as they are.
const DRIVER_PARAMETERS: [&str; 15] = [
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

/// The values of `sslmode`.
const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// The parameters of libpq that take no other value here than these, in lower case. They say what the library does anyway.
const FIXED_PARAMETERS: [(&str, &[&str]); 12] = [
    ("client_encoding", &["utf8", "utf-8", "unicode", "auto"]),
    ("gssencmode", &["prefer", "disable"]),
    ("keepalives", &["1"]),
    ("load_balance_hosts", &["disable"]),
    ("replication", &["false", "off", "no", "0"]),
    ("requiressl", &["0"]),
    ("ssl_min_protocol_version", &["tlsv1", "tlsv1.1", "tlsv1.2"]),
    ("sslcertmode", &["allow"]),
    ("sslcompression", &["0"]),
    ("sslnegotiation", &["postgres"]),
    ("sslsni", &["1"]),
    ("tcp_user_timeout", &["0"]),
];

/// The settings that the library sets on each connection, so that a URL must not set them.
const OWN_SETTINGS: [&str; 13] = [
    "search_path",
    "role",
    "townsquare.",
    "statement_timeout",
    "client_encoding",
    "datestyle",
    "timezone",
    "default_transaction_isolation",
    "row_security",
    "standard_conforming_strings",
    "bytea_output",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
];

/// What a URL says.
pub(in crate::database) struct ServerUrl {
    /// The servers, in their order.
    pub(in crate::database) servers: Vec<PgConnectOptions>,
    pub(in crate::database) target: SessionTarget,
    /// `statement-cache-capacity=0`, or `pgbouncer=true`.
    pub(in crate::database) is_without_names: bool,
    /// How long one server may take to accept a connection; `None` if the URL does not say it.
    pub(in crate::database) connect_timeout: Option<Duration>,
}

/// The value of `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::database) enum SessionTarget {
    /// Any; a standby if there is no other server.
    Any,
    /// Accepts writes.
    Writable,
    /// Refuses writes.
    ReadOnly,
    /// Refuses writes; any other server if there is none.
    PreferReadOnly,
}

/// The parameters that the library reads itself.
struct Parameters {
    target: SessionTarget,
    is_without_names: bool,
    connect_timeout: Option<Duration>,
    capacity: usize,
    application_name: String,
    requires_channel_binding: bool,
    /// The parameters for the driver.
    passed: Vec<(String, String)>,
}

impl ServerUrl {
    /// Reads a URL: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`.
    ///
    /// # Errors
    /// `Config` for a URL that cannot be read, and for a parameter that has no effect. The message has no secret.
    pub(in crate::database) fn parse(url: &Secret) -> Result<ServerUrl> {
        let text = url.reveal();
        // The driver's error may quote the URL and its password, so it is not the source of ours.
        let unreadable = || Error::config("Option database_url is not a PostgreSQL URL that can be read");
        let (scheme, rest) = text.split_once("://").ok_or_else(unreadable)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let mut parameters = Parameters::parse(query.split('#').next().unwrap_or_default())?;
        let ssl_mode = parameters.take_ssl_mode()?;
        let names_application = parameters.passed.iter().any(|(name, value)| {
            name == "application_name"
                || name.starts_with("options") && format!("{name}{value}").contains("application_name")
        });
        let servers = each_host(hosts, &parameters.passed).into_iter().map(|(host, passed)| {
            let names_host = passed.iter().any(|(name, _)| name == "host" || name == "hostaddr");
            let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(passed).finish();
            // A URL with a user has a host, too. Without one, the driver's default takes its place below.
            let is_without_host = host.is_empty() || host.starts_with(':');
            let placeholder = if is_without_host { "localhost" } else { "" };
            let url = format!("{scheme}://{user}{placeholder}{host}{path}?{query}");
            let mut server: PgConnectOptions = url.parse().map_err(|_| unreadable())?;
            if is_without_host && !names_host {
                server = server.host(PgConnectOptions::new_without_pgpass().get_host());
            }
            if let Some(mode) = ssl_mode {
                server = server.ssl_mode(mode);
            }
            if !names_application && server.get_application_name().is_none() {
                server = server.application_name(&parameters.application_name);
            }
            // Poolers refuse this start-up parameter. The library reads no floats as text.
            Ok(server.extra_float_digits(None).statement_cache_capacity(parameters.capacity))
        });
        Ok(ServerUrl {
            servers: servers.collect::<Result<_>>()?,
            target: parameters.target,
            is_without_names: parameters.is_without_names,
            connect_timeout: parameters.connect_timeout,
        })
    }
}

impl Parameters {
    fn parse(query: &str) -> Result<Parameters> {
        let mut parameters = Parameters {
            target: SessionTarget::Any,
            is_without_names: false,
            connect_timeout: None,
            capacity: MAX_STATEMENTS,
            application_name: "townsquare".to_owned(),
            requires_channel_binding: false,
            passed: Vec::new(),
        };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            parameters.read(&name, &value)?;
        }
        Ok(parameters)
    }

    fn read(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "target_session_attrs" => self.target = SessionTarget::parse(value)?,
            "pgbouncer" => self.is_without_names |= value == "true" || value == "1",
            "statement-cache-capacity" => {
                self.capacity = value.parse().map_err(|_| refused("statement-cache-capacity is no number"))?;
                self.is_without_names |= self.capacity == 0;
            }
            "connect_timeout" => self.connect_timeout = Some(connect_timeout(value)?),
            "fallback_application_name" => value.clone_into(&mut self.application_name),
            "channel_binding" => match value {
                "disable" | "prefer" => {}
                "require" => self.requires_channel_binding = true,
                _ => return Err(refused("channel_binding is disable, prefer or require")),
            },
            "sslmode" | "ssl-mode" => {
                let mode = value.to_ascii_lowercase();
                if !SSL_MODES.contains(&mode.as_str()) {
                    return Err(refused(&format!("{name} is {}", SSL_MODES.join(" or "))));
                }
                self.passed.push(("sslmode".to_owned(), mode));
            }
            "port" if value.split(',').any(|port| !port.is_empty() && port.parse::<u16>().is_err()) => {
                return Err(refused("port is a number up to 65535"));
            }
            "hostaddr" if value.parse::<IpAddr>().is_err() => return Err(refused("hostaddr is one IP address")),
            name if DRIVER_PARAMETERS.contains(&name) || name.starts_with("options[") => {
                check_settings(name, value)?;
                self.passed.push((name.to_owned(), value.to_owned()));
            }
            name => match FIXED_PARAMETERS.iter().find(|(fixed, _)| *fixed == name) {
                Some((_, values)) if value.is_empty() || values.contains(&value.to_ascii_lowercase().as_str()) => {}
                Some((_, values)) => return Err(refused(&format!("the parameter {name} is {}", values.join(" or ")))),
                None => return Err(refused(&format!("the parameter {name:?} is not known, or has no effect here"))),
            },
        }
        Ok(())
    }

    /// The mode of TLS, where libpq means another one than the driver. Removes `sslrootcert=system`, which the driver takes
    /// for a file.
    fn take_ssl_mode(&mut self) -> Result<Option<PgSslMode>> {
        let find = |names: &[&str], passed: &[(String, String)]| {
            passed.iter().rfind(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.clone())
        };
        let root_names = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
        let mode = find(&["sslmode"], &self.passed);
        let root = find(&root_names, &self.passed);
        let mut changed = None;
        if root.as_deref() == Some("system") {
            if !matches!(mode.as_deref(), None | Some("verify-full")) {
                return Err(refused("sslrootcert=system needs sslmode=verify-full"));
            }
            self.passed.retain(|(name, _)| !root_names.contains(&name.as_str()));
            changed = Some(PgSslMode::VerifyFull);
        } else if root.is_some() && mode.as_deref() == Some("require") {
            changed = Some(PgSslMode::VerifyCa);
        }
        if self.requires_channel_binding {
            // The driver binds no channel. A verified certificate is the other way to know that nobody is in between.
            if matches!(mode.as_deref(), Some("disable" | "allow")) {
                return Err(refused("channel_binding=require needs TLS; change sslmode"));
            }
            changed = Some(PgSslMode::VerifyFull);
        }
        Ok(changed)
    }
}

impl SessionTarget {
    fn parse(text: &str) -> Result<SessionTarget> {
        match text {
            "any" => Ok(SessionTarget::Any),
            "read-write" | "primary" => Ok(SessionTarget::Writable),
            "read-only" | "standby" => Ok(SessionTarget::ReadOnly),
            "prefer-standby" => Ok(SessionTarget::PreferReadOnly),
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

/// A number of seconds. As in libpq, zero or less is no limit.
fn connect_timeout(text: &str) -> Result<Duration> {
    let seconds: f64 = text.trim().parse().map_err(|_| refused("connect_timeout is a number of seconds"))?;
    if seconds <= 0.0 {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| refused("connect_timeout is a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<ServerUrl> {
        ServerUrl::parse(&Secret::new(url))
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
    }

    #[test]
    fn a_url_with_a_user_needs_no_host() {
        for url in ["postgres://u:p%40@/d?host=/run/sockets", "postgres:///d?user=u&host=/run/sockets"] {
            let servers = parse(url).expect(url).servers;
            assert_eq!(servers[0].get_socket().map(|path| path.display().to_string()).as_deref(), Some("/run/sockets"));
            assert_eq!((servers[0].get_username(), servers[0].get_database()), ("u", Some("d")));
        }
        let default = PgConnectOptions::new_without_pgpass();
        let servers = parse("postgres://u@:7/d").expect("valid").servers;
        assert_eq!((servers[0].get_host(), servers[0].get_port()), (default.get_host(), 7));
    }

    #[test]
    fn parameters_of_libpq_mean_what_they_mean_there() {
        let parsed = |query: &str| parse(&format!("postgres://u@h/d?{query}")).expect(query);
        let mode = |query: &str| format!("{:?}", parsed(query).servers[0].get_ssl_mode());
        assert_eq!(mode("sslmode=require"), "Require");
        assert_eq!(mode("sslmode=require&sslrootcert=/ca.crt"), "VerifyCa");
        assert_eq!(mode("sslmode=verify-full&sslrootcert=/ca.crt"), "VerifyFull");
        assert_eq!(mode("sslrootcert=system"), "VerifyFull");
        assert_eq!(mode("sslmode=require&channel_binding=prefer"), "Require");
        assert_eq!(mode("sslmode=require&channel_binding=require"), "VerifyFull");
        let timeout = |query: &str| parsed(query).connect_timeout;
        assert_eq!(timeout("sslmode=disable"), None);
        assert_eq!(timeout("connect_timeout=10"), Some(Duration::from_secs(10)));
        assert_eq!(timeout("connect_timeout=0"), Some(Duration::MAX));
        let name = |query: &str| parsed(query).servers[0].get_application_name().map(str::to_owned);
        assert_eq!(name("fallback_application_name=town").as_deref(), Some("town"));
        assert_eq!(name("fallback_application_name=town&application_name=own").as_deref(), Some("own"));
        for query in ["gssencmode=prefer", "keepalives=1", "client_encoding=UTF8", "ssl_min_protocol_version=TLSv1.2"] {
            parsed(query);
        }
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
            ("connect_timeout=soon", "connect_timeout"),
            ("sslmode=on", "sslmode"),
            ("port=x", "port"),
            ("hostaddr=x", "hostaddr"),
            ("channel_binding=maybe", "channel_binding"),
            ("sslmode=disable&channel_binding=require", "channel_binding"),
            ("sslmode=require&sslrootcert=system", "sslrootcert"),
            ("gssencmode=require", "gssencmode"),
            ("keepalives_idle=10", "keepalives_idle"),
            ("sslpassword=MARKED", "sslpassword"),
            ("service=town", "service"),
            ("options[default_transaction_isolation]=serializable", "default_transaction_isolation"),
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
