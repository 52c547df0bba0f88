//! Search queries. Pages keep their limit and are parts of one list; highlights are in order, apart from each other, and in the text.

use townsquare::{
    ErrorKind,
    blocking::Client,
    discovery::{CATEGORIES, Selection},
};

use super::{Target, fixture};

/// The most apps that a page may have.
const MAX_LIMIT: u32 = 1_000;

/// See the module.
pub struct Search {
    client: Client,
}

impl Target for Search {
    const NAME: &'static str = "search";

    fn new() -> Search {
        let client = fixture::open(fixture::in_memory().catalog_url("sample:"));
        client.discovery().refresh().expect("the sample is a catalog");
        Search { client }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&[limit, offset, filter], rest)) = data.split_first_chunk::<3>() else { return };
        let (limit, offset) = (1 + u32::from(limit) * 3, u64::from(offset));
        let query = fixture::text(rest);
        let discovery = self.client.discovery();
        let selection = |limit| {
            let mut selection = Selection::first(limit);
            if filter & 1 == 1 {
                selection = selection.in_categories([CATEGORIES[usize::from(filter / 4) % CATEGORIES.len()]]);
            }
            if filter & 2 == 2 { selection.collapsed() } else { selection }
        };
        let all = match discovery.search_mini_apps(&query, selection(MAX_LIMIT)) {
            Ok(all) => all,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::InvalidInput, "{query:?}: {error}"),
        };
        assert_eq!(all.len(), all.total(), "{query:?}");
        let page = selection(limit).offset(offset);
        let found = discovery.search_mini_apps(&query, page).expect("the whole list was returned");
        assert!(found.len() <= limit as usize && found.total() == all.total(), "{query:?}");
        let expected: Vec<_> = all.iter().skip(offset as usize).take(limit as usize).map(|app| app.id()).collect();
        assert_eq!(found.iter().map(|app| app.id()).collect::<Vec<_>>(), expected, "{query:?}");
        // Highlights take longer than the search.
        for app in all.iter().skip(usize::from(filter / 4)).take(2) {
            for highlight in app.highlights(&query) {
                check_matches(&highlight.text, &highlight.matches);
                assert!(!highlight.matches.is_empty(), "{query:?}: {highlight:?}");
            }
        }
        if let Ok(suggestions) = discovery.suggest_mini_apps(&query, limit) {
            assert!(suggestions.len() <= limit as usize, "{query:?}");
            suggestions.iter().for_each(|suggestion| check_matches(&suggestion.text, &suggestion.matches));
        }
    }
}

/// Checks ranges of characters: in order, apart from each other, not empty, and inside the text.
fn check_matches(text: &str, matches: &[(usize, usize)]) {
    let mut end = 0;
    for &(from, to) in matches {
        assert!(from >= end && from < to, "{matches:?} in {text:?}");
        end = to;
    }
    assert!(end <= text.chars().count(), "{matches:?} in {text:?}");
}
