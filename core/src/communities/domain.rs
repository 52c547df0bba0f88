//! The normal form of hosts and domains (UPSTREAM 4).

use url::Host;

use crate::error::{Error, Result};

/// The host as [`spelled`], in its ASCII form if it has one: `xn--mnchen-3ya.de` for `münchen.de` (UTS 46).
/// Browsers send that form.
pub(crate) fn normalised(host: &str) -> String {
    let host = without_ends(host);
    match host.is_ascii() {
        true => trimmed(&host),
        false => trimmed(&Host::parse(&host).map_or(host, |ascii| ascii.to_string())),
    }
}

/// The host trimmed, in lower case, without scheme, port, path, the dot at its end, and one leading `www.`. The id of a
/// community may be spelled like this.
pub(crate) fn spelled(host: &str) -> String {
    trimmed(&without_ends(host))
}

/// The host trimmed, in lower case, without scheme, port and path.
fn without_ends(host: &str) -> String {
    let host = host.trim().to_lowercase();
    let host = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address are inside brackets; a port follows them.
    let host = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    host.trim().to_owned()
}

fn trimmed(host: &str) -> String {
    // In this order, because `www.` is no host.
    let host = host.strip_prefix("www.").unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).trim().to_owned()
}

/// The normalised domain; `InvalidInput` if it has nothing but dots, colons and white space: `..` becomes `.`, and `::1` becomes `:`.
pub(crate) fn required(domain: &str) -> Result<String> {
    let domain = normalised(domain);
    if domain.chars().all(|part| matches!(part, '.' | ':') || part.is_whitespace()) {
        return Err(Error::invalid_input("domain is empty"));
    }
    Ok(domain)
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
        assert_eq!(normalised("1234"), "1234", "the id of a community");
    }

    #[test]
    fn the_dot_of_an_absolute_domain_is_left_out() {
        for host in ["town.example.", "www.town.example.", "https://town.example.:8443/a", "town.example.:80"] {
            assert_eq!(normalised(host), "town.example", "{host}");
        }
    }

    #[test]
    fn an_internationalised_domain_has_its_ascii_form() {
        for host in ["münchen.de", "MÜNCHEN.DE.", "www.mu\u{308}nchen.de", "xn--mnchen-3ya.de", "münchen。de"] {
            assert_eq!(normalised(host), "xn--mnchen-3ya.de", "{host}");
        }
        assert_eq!(normalised("mün chen.de"), "mün chen.de", "no host");
    }

    #[test]
    fn a_domain_without_a_host_is_refused() {
        for empty in [" https:// ", "www.", ".", "..", ". .", "::1", ":::"] {
            assert!(required(empty).is_err(), "{empty}");
        }
    }
}
