//! Finds apps by id, home URL or domain.
//!
//! Invariant: an app's id starts with its domain, followed by nothing, a port, a path or a query. So the ids in byte order
//! have the apps of a domain in at most four runs.

use url::Url;

use crate::catalog::{MiniAppRecord, app_id};

/// The record numbers in the order of their ids.
pub(super) struct AddressIndex(Box<[u32]>);

impl AddressIndex {
    pub(super) fn build(records: &[MiniAppRecord]) -> AddressIndex {
        let mut numbers: Box<[u32]> = (0..records.len() as u32).collect();
        numbers.sort_unstable_by_key(|&number| records[number as usize].id());
        AddressIndex(numbers)
    }

    /// The record of an id or a home URL in any spelling; else the best ranked one of a domain, with or without `www.`.
    pub(super) fn find(&self, text: &str, records: &[MiniAppRecord]) -> Option<u32> {
        let text = text.trim();
        if let Some(number) = self.by_id(text, records) {
            return Some(number);
        }
        let address = Address::parse(text)?;
        let spellings = [address.id.clone(), toggle_www(&address.id)];
        let by_id = spellings.iter().find_map(|id| self.by_id(id, records));
        by_id.or_else(|| if address.has_path { None } else { self.of_host(&address.host, records).first().copied() })
    }

    /// The records that a query addresses, best ranked first: of a home URL, or else of its host.
    pub(super) fn matches(&self, address: &Address, records: &[MiniAppRecord]) -> Vec<u32> {
        let exact = [address.id.clone(), toggle_www(&address.id)];
        let mut found: Vec<u32> = exact.iter().filter_map(|id| self.by_id(id, records)).collect();
        for number in self.of_host(&address.host, records) {
            if !found.contains(&number) {
                found.push(number);
            }
        }
        found
    }

    fn by_id(&self, id: &str, records: &[MiniAppRecord]) -> Option<u32> {
        let place = self.0.binary_search_by_key(&id, |&number| records[number as usize].id());
        place.ok().map(|place| self.0[place])
    }

    /// The records of a host, with or without `www.`, best ranked first.
    fn of_host(&self, host: &str, records: &[MiniAppRecord]) -> Vec<u32> {
        let mut found = Vec::new();
        for host in [host.to_owned(), toggle_www(host)] {
            found.extend(self.by_id(&host, records));
            for next in [':', '/', '?'] {
                let prefix = format!("{host}{next}");
                let start = self.0.partition_point(|&number| records[number as usize].id() < prefix.as_str());
                let run =
                    self.0[start..].iter().take_while(|&&number| records[number as usize].id().starts_with(&prefix));
                found.extend(run);
            }
        }
        found.sort_unstable();
        found
    }
}

/// A text that looks like a URL or a host name.
pub(super) struct Address {
    pub(super) id: String,
    pub(super) host: String,
    has_path: bool,
    /// Whether the text has a scheme or starts with `www.`: it is an address and nothing else.
    pub(super) is_certain: bool,
}

impl Address {
    /// `None` for a text with spaces, without a dot, or with a scheme other than http and https.
    pub(super) fn parse(text: &str) -> Option<Address> {
        let text = text.trim();
        if text.len() > 2_048 || !text.contains('.') || text.contains(char::is_whitespace) {
            return None;
        }
        let has_scheme = text.contains("://");
        let url = if has_scheme { Url::parse(text) } else { Url::parse(&format!("https://{text}")) };
        let url = url.ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let host = url.host_str()?.trim_end_matches('.');
        if !host.contains('.') || host.starts_with('.') {
            return None;
        }
        let has_www = host.starts_with("www.");
        Some(Address {
            id: app_id(&url, host),
            host: host.to_owned(),
            has_path: !matches!(url.path(), "" | "/") || url.query().is_some(),
            is_certain: has_scheme || has_www,
        })
    }
}

/// The other of `www.a.example` and `a.example`.
fn toggle_www(address: &str) -> String {
    address.strip_prefix("www.").map_or_else(|| format!("www.{address}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_words() {
        for text in ["https://a.example/x?y=1", "a.example", "WWW.A.example/", "http://a.example:80"] {
            assert!(Address::parse(text).is_some(), "{text}");
        }
        for text in ["", "chess", "a b.example", "ftp://a.example", "...", "https://", "a.example b"] {
            assert!(Address::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn www_is_toggled() {
        assert_eq!(
            (toggle_www("www.a.example").as_str(), toggle_www("a.example").as_str()),
            ("a.example", "www.a.example")
        );
    }
}
