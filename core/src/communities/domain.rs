//! The normal form of hosts and domains (UPSTREAM 4).

use crate::error::{Error, Result};

/// The host trimmed, in lower case, without scheme, port, path, and one leading `www.`.
pub(crate) fn normalised(host: &str) -> String {
    let host = host.trim().to_lowercase();
    let host = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address are inside brackets; a port follows them.
    let host = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    host.strip_prefix("www.").unwrap_or(host).trim().to_owned()
}

/// The normalised domain; `InvalidInput` if it is empty.
pub(crate) fn required(domain: &str) -> Result<String> {
    match normalised(domain) {
        domain if domain.is_empty() => Err(Error::invalid_input("domain is empty")),
        domain => Ok(domain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_normalised_to_its_domain() {
        for host in
            ["Town.Example", " www.town.example ", "https://town.example:8443/a?b", "town.example:80", "town.example/"]
        {
            assert_eq!(normalised(host), "town.example", "{host}");
        }
        assert_eq!(normalised("www.www.town.example"), "www.town.example");
        assert_eq!(normalised("[::1]:8080"), "[::1]");
    }

    #[test]
    fn a_domain_without_a_host_is_refused() {
        assert!(required(" https:// ").is_err());
    }
}
