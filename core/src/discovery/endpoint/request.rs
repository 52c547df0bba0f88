//! A request to the endpoint: its route, and the headers that the endpoint reads (RFC 9110).

use super::ENDPOINT_PATH;

/// The parts of a request.
pub(super) struct EndpointRequest<'a> {
    pub(super) method: &'a str,
    /// The path below [`ENDPOINT_PATH`], without slashes at its ends; `None` for another path.
    pub(super) route: Option<&'a str>,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    headers: &'a [(String, String)],
}

impl<'a> EndpointRequest<'a> {
    pub(super) fn new(
        method: &'a str,
        target: &'a str,
        body: &'a [u8],
        headers: &'a [(String, String)],
    ) -> EndpointRequest<'a> {
        let (path, query) = split_target(target);
        let route = match path.strip_prefix(ENDPOINT_PATH) {
            Some("" | "/") => Some(""),
            Some(rest) => {
                let route = rest.strip_prefix('/').map(|route| route.strip_suffix('/').unwrap_or(route));
                route.filter(|route| !route.is_empty())
            }
            None => None,
        };
        EndpointRequest { method, route, query, body, headers }
    }

    /// The value of a header, by its lower-case name.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.values(name).next()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let headers = self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        headers.map(|(_, value)| value.trim())
    }

    /// The items of a header that is a list, also if it is sent several times.
    fn items(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.values(name).flat_map(|value| value.split(',')).map(str::trim)
    }

    /// Whether the caller prefers or accepts gzip: `gzip` or `*` with a weight above 0.
    pub(super) fn accepts_gzip(&self) -> bool {
        let weight_of = |wanted: &str| {
            self.items("accept-encoding").find_map(|item| {
                let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
                let coding = coding.trim();
                let is_wanted =
                    coding.eq_ignore_ascii_case(wanted) || (wanted == "gzip" && coding.eq_ignore_ascii_case("x-gzip"));
                let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |text| text.trim().parse().ok());
                is_wanted.then(|| weight.unwrap_or(0.0))
            })
        };
        weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight: f32| weight > 0.0)
    }

    /// Whether the caller has the version of this entity tag. Tags are compared weakly.
    pub(super) fn has_version(&self, etag: &str) -> bool {
        let opaque = |tag: &'a str| tag.strip_prefix("W/").unwrap_or(tag);
        let etag = etag.strip_prefix("W/").unwrap_or(etag);
        self.items("if-none-match").any(|tag| tag == "*" || opaque(tag) == etag)
    }
}

/// Splits a request target in origin form or absolute form into path and query (RFC 9112, 3.2).
fn split_target(target: &str) -> (&str, &str) {
    let origin_form = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    };
    let without_fragment = origin_form.split('#').next().unwrap_or_default();
    without_fragment.split_once('?').unwrap_or((without_fragment, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(value: &str) -> bool {
        let headers = [("Accept-Encoding".to_owned(), value.to_owned())];
        EndpointRequest::new("GET", "/", b"", &headers).accepts_gzip()
    }

    #[test]
    fn gzip_is_accepted_by_name_or_wildcard_unless_its_weight_is_zero() {
        for value in ["gzip", "br, gzip;q=0.5", "*", "GZIP", "x-gzip", "deflate;q=1, *;q=0.1"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip;q=0.0, *", "identity", "*;q=0", "gzip;q=x", "gzip;q=NaN"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!EndpointRequest::new("GET", "/", b"", &[]).accepts_gzip());
    }

    #[test]
    fn a_route_is_the_path_below_the_endpoint_without_a_slash_at_its_end() {
        for (target, route) in [
            ("/api/miniapp-discovery", Some("")),
            ("/api/miniapp-discovery/?x=1", Some("")),
            ("http://a.example/api/miniapp-discovery/suggest/#x", Some("suggest")),
            ("/api/miniapp-discoveryx", None),
            ("/api", None),
        ] {
            assert_eq!(EndpointRequest::new("GET", target, b"", &[]).route, route, "{target}");
        }
    }
}
