//! The snapshot: an immutable catalog with its orders, filters and search index.
//!
//! Invariant: reading an order, or one category of it, returns a slice of a prepared list, so the cost does not
//! depend on the size of the catalog.

mod address_index;
mod copies;
mod faceted;
mod facets;
mod filter;
mod finding;
mod listing;
mod similar;
mod trending_order;

use std::num::NonZeroU32;

pub(crate) use self::faceted::{FacetedList, ListOrder};
use self::{
    address_index::AddressIndex,
    copies::CopyIndex,
    filter::{AppFilter, CategoryIndex, NetworkIndex},
    trending_order::TrendingOrder,
};
pub use self::{facets::Facet, finding::Suggestion};
use super::{
    CatalogSource, MiniApp, MiniAppRecord, Selection, Timeframe,
    catalog_data::{CatalogData, ListKey},
    search::{Document, SearchIndex},
    taxonomy,
};
use crate::error::Result;

pub(crate) struct Snapshot {
    data: CatalogData,
    source: CatalogSource,
    orders: [Option<TrendingOrder>; Timeframe::ALL.len()],
    categories: CategoryIndex,
    networks: NetworkIndex,
    addresses: AddressIndex,
    copies: CopyIndex,
    /// The records of the default order, latest first seen first.
    newest: Box<[u32]>,
    search: SearchIndex,
}

impl Snapshot {
    /// Derives orders, filters and the search index.
    pub(crate) fn build(data: CatalogData, source: CatalogSource) -> Snapshot {
        let records = &data.records;
        let categories = CategoryIndex::build(records);
        let networks = NetworkIndex::build(&data);
        let search = SearchIndex::build(records.iter().map(|record| document(record)));
        let ranked = u32::try_from(data.header.ranked).unwrap_or(u32::MAX);
        let orders = Timeframe::ALL.map(|timeframe| {
            if timeframe == Timeframe::default() {
                return Some(TrendingOrder::build(records, (0..ranked).collect(), &categories));
            }
            data.order(timeframe).map(|ids| TrendingOrder::build(records, ids.into(), &categories))
        });
        let mut newest: Box<[u32]> = (0..ranked).collect();
        newest.sort_by_key(|&number| std::cmp::Reverse(records[number as usize].first_seen()));
        let (addresses, copies) = (AddressIndex::build(records), CopyIndex::build(records));
        Snapshot { source, orders, categories, networks, addresses, copies, newest, search, data }
    }

    pub(crate) fn data(&self) -> &CatalogData {
        &self.data
    }

    pub(crate) fn source(&self) -> CatalogSource {
        self.source
    }

    /// The number of apps.
    pub(crate) fn len(&self) -> usize {
        self.data.records.len()
    }

    /// The upstream lists that a read of `timeframe` and `selection` needs and this snapshot does not have.
    pub(crate) fn missing_lists(&self, timeframe: Timeframe, selection: &Selection) -> Vec<ListKey> {
        let header = &self.data.header;
        let mut missing = Vec::new();
        if !header.has_one_order && self.orders[timeframe as usize].is_none() {
            missing.push(ListKey::Timeframe(timeframe));
        }
        if !self.records_name_networks() {
            let networks = selection.networks.iter().filter_map(|name| taxonomy::canonical_network(name.trim()));
            for network in
                networks.filter(|name| taxonomy::is_upstream_network(name) && !header.members.contains_key(*name))
            {
                let list = ListKey::Network(network.into());
                if !missing.contains(&list) {
                    missing.push(list);
                }
            }
        }
        missing
    }

    /// Whether the records name their networks; otherwise a network's apps are a list of the upstream.
    fn records_name_networks(&self) -> bool {
        self.data.header.has_chains || self.data.header.has_one_order
    }

    /// # Errors
    /// Those of [`filter`](Snapshot::filter).
    pub(crate) fn check_filters(&self, selection: &Selection) -> Result<()> {
        self.filter(selection).map(drop)
    }

    /// Resolves the filters of a selection.
    ///
    /// # Errors
    /// `InvalidInput` for a category or network that is neither known nor in the catalog.
    pub(crate) fn filter(&self, selection: &Selection) -> Result<AppFilter> {
        AppFilter::resolve(selection, &self.categories, &self.networks, self.records_name_networks())
    }

    fn accepts(&self, filter: &AppFilter, number: u32) -> bool {
        let categories = filter.categories.as_deref();
        categories.is_none_or(|numbers| numbers.contains(&self.categories.of_record[number as usize]))
            && self.networks.matches(filter.networks.as_ref(), number, &self.data.records)
    }

    /// The number of apps in the default order.
    fn ranked(&self) -> u32 {
        u32::try_from(self.data.header.ranked).unwrap_or(u32::MAX)
    }

    /// The app of an id, a home URL in any spelling, or a domain.
    pub(crate) fn get(&self, text: &str) -> Option<MiniApp> {
        self.addresses.find(text, &self.data.records).map(|number| self.app(number))
    }

    /// A record with its rank in the default order.
    fn app(&self, id: u32) -> MiniApp {
        let is_ranked = (id as usize) < self.data.header.ranked;
        let rank = if is_ranked { NonZeroU32::new(id + 1) } else { None };
        MiniApp::new(self.data.records[id as usize].clone(), rank)
    }
}

fn document(record: &MiniAppRecord) -> Document<'_> {
    let author = record.author();
    Document {
        name: record.name(),
        tags: record.tags(),
        category: record.category(),
        subtitle: record.subtitle(),
        tagline: record.tagline(),
        author_username: author.map(|author| author.username),
        author_display_name: author.and_then(|author| author.display_name),
        description: record.description(),
        domain: record.domain(),
    }
}
