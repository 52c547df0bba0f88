//! Search and suggestions of a snapshot.

use std::{collections::HashSet, sync::Arc};

use super::{AppFilter, Snapshot, address_index::Address};
use crate::{
    catalog::{
        MiniApp, MiniApps, Selection,
        search::{Query, matched_ranges},
    },
    error::Result,
};

/// The most apps that follow the apps of an address.
const MAX_AFTER_ADDRESSED: usize = 4;

/// A suggestion for a search box while the user types.
///
/// ```
/// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
/// for suggestion in client.discovery().suggest_mini_apps("harb", 8)? {
///     println!("{} {:?}", suggestion.text, suggestion.matches);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// The app.
    pub app: MiniApp,
    /// The text to show: the app's name.
    pub text: String,
    /// The parts of `text` that the input matches, as start and end in characters, in order and apart from each other.
    /// Empty if the input matches another text of the app.
    pub matches: Vec<(usize, usize)>,
}

impl Snapshot {
    /// The apps that match a query and the selection, best first; none for a blank query.
    pub(crate) fn search(self: &Arc<Self>, query: &str, selection: &Selection) -> Result<MiniApps> {
        let filter = self.filter(selection)?;
        let offset = selection.start();
        let end = offset.saturating_add(selection.limit as usize);
        let numbers = self.matches(query, &filter, selection.is_collapsed, end);
        let apps = numbers.get(offset..).unwrap_or_default().iter().map(|&number| self.app(number));
        if numbers.len() < end {
            return Ok(MiniApps::of_total(apps, numbers.len()));
        }
        let (snapshot, query, is_collapsed) = (Arc::clone(self), query.to_owned(), selection.is_collapsed);
        Ok(MiniApps::counted_by(apps, move || snapshot.matches(&query, &filter, is_collapsed, usize::MAX).len()))
    }

    /// The best matches of a text that is being typed; near-copies once.
    pub(crate) fn suggest(&self, text: &str, limit: usize) -> Vec<Suggestion> {
        let numbers = self.matches(text, &AppFilter::default(), true, limit);
        let suggestion = |&number: &u32| {
            let app = self.app(number);
            Suggestion { text: app.name().to_owned(), matches: matched_ranges(text, app.name()), app }
        };
        numbers.iter().map(suggestion).collect()
    }

    pub(super) fn matches(&self, query: &str, filter: &AppFilter, is_collapsed: bool, limit: usize) -> Vec<u32> {
        let accept = |number| self.accepts(filter, number);
        let groups = is_collapsed.then(|| self.copies.groups());
        let address = Address::parse(query);
        let mut addressed =
            address.as_ref().map_or_else(Vec::new, |address| self.addresses.matches(address, &self.data.records));
        let mut seen = HashSet::new();
        addressed.retain(|&number| accept(number) && groups.is_none_or(|groups| seen.insert(groups[number as usize])));
        // The words of an address are the words of its host. A text without a scheme may also be a name: `Warp.cast`.
        let host = address.filter(|address| address.is_certain || !addressed.is_empty()).map(|address| address.host);
        let text = host.as_deref().map(crate::catalog::search::host_words);
        let limit = if addressed.is_empty() { limit } else { limit.min(addressed.len() + MAX_AFTER_ADDRESSED) };
        self.search.search(&Query {
            text: text.as_deref().unwrap_or(query),
            first: &addressed,
            limit,
            groups,
            accept: &accept,
        })
    }
}
