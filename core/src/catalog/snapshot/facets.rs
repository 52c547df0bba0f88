//! Facets: the categories and networks of the catalog with their numbers of apps.

use std::collections::HashMap;

use super::{AppFilter, Snapshot};
use crate::{catalog::Selection, error::Result};

/// A category or a network, with how many apps a list filtered by it has.
///
/// ```
/// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
/// use townsquare::discovery::Selection;
///
/// for facet in client.discovery().categories(Selection::default().on_networks(["base"]))? {
///     println!("{} ({})", facet.name, facet.count);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Facet {
    /// The name, as a filter takes it.
    pub name: String,
    /// The number of apps.
    pub count: usize,
}

impl Snapshot {
    /// The categories of the apps that the selection's networks accept.
    pub(crate) fn category_facets(&self, selection: &Selection) -> Result<Vec<Facet>> {
        let filter = AppFilter { categories: None, ..self.filter(selection)? };
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for number in (0..self.ranked()).filter(|&number| self.accepts(&filter, number)) {
            if let Some(category) = self.data.records[number as usize].category() {
                *counts.entry(category).or_default() += 1;
            }
        }
        Ok(most_first(counts))
    }

    /// The networks of the apps that the selection's categories accept. Where the records name their networks, an app
    /// without any counts for each.
    pub(crate) fn network_facets(&self, selection: &Selection) -> Result<Vec<Facet>> {
        let filter = AppFilter { networks: None, ..self.filter(selection)? };
        let accepted = (0..self.ranked()).filter(|&number| self.accepts(&filter, number));
        let (has_chains, records) = (self.records_name_networks(), &self.data.records);
        Ok(most_first(self.networks.counts(accepted, has_chains, records, |_| None)))
    }
}

/// Most apps first, then by name; without those that have no app.
pub(super) fn most_first<'a>(counts: impl IntoIterator<Item = (&'a str, usize)>) -> Vec<Facet> {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let mut facets: Vec<Facet> = counts.map(|(name, count)| Facet { name: name.to_owned(), count }).collect();
    facets.sort_unstable_by(|one, other| other.count.cmp(&one.count).then_with(|| one.name.cmp(&other.name)));
    facets
}
