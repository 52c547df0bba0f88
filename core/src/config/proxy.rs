//! The HTTP proxy of the environment, as curl reads it: `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`, each also in
//! upper case.

use std::env;

use url::Url;

use super::{Secret, variable_value};
use crate::error::{Error, Result};

/// A proxy for the requests to the upstream.
#[derive(Debug, Clone)]
pub(crate) struct ProxySettings {
    /// The proxy's URL, which may contain a password.
    pub(crate) url: Secret,
    pub(crate) is_https: bool,
    /// The hosts that are reached without the proxy, separated by commas.
    pub(crate) exceptions: Option<String>,
}

impl ProxySettings {
    /// Reads the proxy for requests to `base`; `None` if the environment names none.
    ///
    /// # Errors
    /// `Config`, naming the variable, for a proxy that is no URL.
    pub(super) fn from_env(base: &Url) -> Result<Option<ProxySettings>> {
        let scheme = base.scheme();
        let names = [format!("{scheme}_proxy"), format!("{}_PROXY", scheme.to_uppercase())];
        let names = names.into_iter().chain(["all_proxy".to_owned(), "ALL_PROXY".to_owned()]);
        for name in names {
            // A CGI server sets HTTP_PROXY from the header `Proxy` of a request.
            if name == "HTTP_PROXY" && env::var_os("REQUEST_METHOD").is_some() {
                continue;
            }
            let Some(text) = variable_value(&name)?.filter(|text| !text.trim().is_empty()) else { continue };
            let text = text.trim();
            let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
            // The text is not part of the message, because it may contain a password.
            let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let url =
                url.ok_or_else(|| Error::config(format!("Environment variable {name} is no URL of an HTTP proxy")))?;
            let exceptions = match variable_value("no_proxy")? {
                Some(hosts) => Some(hosts),
                None => variable_value("NO_PROXY")?,
            };
            return Ok(Some(ProxySettings {
                url: Secret::new(url.as_str()),
                is_https: url.scheme() == "https",
                exceptions,
            }));
        }
        Ok(None)
    }
}
