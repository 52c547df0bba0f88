//! A list with facets: the apps of a query and filters, and how many apps each other filter would give.
//!
//! Invariant: the number of a facet is the total of the list with that filter in place of all filters of its kind. A list has one of
//! several near-copies, and a number counts them once.

use std::collections::HashMap;

use super::{AppFilter, CategoryIndex, Facet, Snapshot, facets::most_first};
use crate::catalog::{MiniApp, Timeframe};

/// The apps of a list before its filters, and their order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListOrder<'a> {
    /// All apps, in the order of a timeframe; in the default order if the snapshot lacks that of the timeframe.
    Trending(Timeframe),
    /// All apps, latest first seen first.
    Newest,
    /// The matches of a query, best first.
    Matches(&'a str),
}

/// A list and the facets beside it.
pub(crate) struct FacetedList<'a> {
    snapshot: &'a Snapshot,
    /// The trending order, if the list has its ranks.
    ranks: Option<Timeframe>,
    /// The accepted apps: the place in the order, and the record.
    accepted: Vec<(u32, u32)>,
    /// The categories of the apps that the networks accept.
    pub(crate) categories: Vec<Facet>,
    /// The networks of the apps that the categories accept.
    pub(crate) networks: Vec<Facet>,
    /// The number of apps without filters.
    pub(crate) unfiltered: usize,
}

impl FacetedList<'_> {
    /// The number of apps that the filters accept.
    pub(crate) fn total(&self) -> usize {
        self.accepted.len()
    }

    /// The apps from `offset` on, at most `limit`.
    pub(crate) fn apps(&self, offset: usize, limit: usize) -> Vec<MiniApp> {
        let page = self.accepted.iter().skip(offset).take(limit);
        let order = self.ranks.and_then(|timeframe| self.snapshot.order(timeframe));
        let app = |&(place, number): &(u32, u32)| match order {
            Some(order) => order.apps[place as usize].clone(),
            None => self.snapshot.app(number),
        };
        page.map(app).collect()
    }
}

impl Snapshot {
    /// Lists apps with facets.
    ///
    /// Unlike [`search`](Snapshot::search), the filters choose among the matches of the whole catalog: a filter never adds a match,
    /// so that the numbers of the facets are right.
    pub(crate) fn faceted(&self, order: ListOrder<'_>, filter: AppFilter) -> FacetedList<'_> {
        let numbers: Vec<u32> = match order {
            ListOrder::Trending(timeframe) => self.order(timeframe).map_or_else(Vec::new, |order| order.ids.to_vec()),
            ListOrder::Newest => self.newest.to_vec(),
            ListOrder::Matches(query) => self.matches(query, &AppFilter::default(), false, usize::MAX),
        };
        let by_category = AppFilter { networks: None, ..filter.clone() };
        let by_network = AppFilter { categories: None, ..filter };
        let (mut both, mut in_category, mut on_network) = (Vec::new(), Vec::new(), HashMap::<u32, Vec<u32>>::new());
        for (place, &number) in (0u32..).zip(&numbers) {
            let has_category = self.accepts(&by_category, number);
            let has_network = self.accepts(&by_network, number);
            if has_category {
                in_category.push(number);
            }
            let category = self.categories.of_record[number as usize];
            if has_network && category != CategoryIndex::NONE {
                on_network.entry(category).or_default().push(number);
            }
            if has_category && has_network {
                both.push((place, number));
            }
        }
        let categories = on_network.values().filter_map(|numbers| {
            let name = self.data.records[*numbers.first()? as usize].category()?;
            Some((name, self.count_distinct(numbers.iter().copied())))
        });
        FacetedList {
            snapshot: self,
            ranks: if let ListOrder::Trending(timeframe) = order { Some(timeframe) } else { None },
            categories: most_first(categories),
            networks: most_first(self.networks.counts(
                in_category.into_iter(),
                self.records_name_networks(),
                &self.data.records,
                |number| self.copies.group_of(number),
            )),
            unfiltered: self.count_distinct(numbers.iter().copied()),
            accepted: self.copies.collapse_by(both.into_iter(), |(_, number)| number).collect(),
        }
    }

    /// The timeframes that differ: those with an order of their own, or with `can_fetch` all. Empty if all timeframes share one
    /// order.
    pub(crate) fn timeframes(&self, can_fetch: bool) -> Vec<Timeframe> {
        let has_order = |timeframe: &Timeframe| can_fetch || self.has_order(*timeframe);
        Timeframe::ALL.into_iter().filter(|timeframe| !self.data.header.has_one_order && has_order(timeframe)).collect()
    }

    /// Whether the order of a timeframe is loaded.
    pub(crate) fn has_order(&self, timeframe: Timeframe) -> bool {
        self.data.header.has_one_order || self.orders[timeframe as usize].is_some()
    }

    /// The number of apps without their near-copies.
    fn count_distinct(&self, numbers: impl Iterator<Item = u32>) -> usize {
        self.copies.collapse_by(numbers, |number| number).count()
    }
}
