//! The catalog as readers see it: built once from an data, never changed, shared by pointer.
//!
//! Invariant: answering the common questions (an order, a category of an order) hands out a part of a list that
//! stands ready, so their cost does not depend on the size of the catalog.

mod order;

use std::{collections::HashMap, num::NonZeroU32};

use self::order::Order;
use super::{
    catalog_data::{CatalogData, View},
    search::{Document, SearchIndex},
    selection::Selection,
    taxonomy,
};
use crate::{
    catalog::{CatalogSource, MiniApp, MiniAppRecord, MiniApps, Timeframe},
    error::{Error, Result},
};

/// An immutable catalog with everything derived from it.
pub(crate) struct Snapshot {
    data: CatalogData,
    source: CatalogSource,
    orders: [Option<Order>; Timeframe::ALL.len()],
    categories: Categories,
    networks: Networks,
    search: SearchIndex,
}

/// The categories that apps have, by number.
struct Categories {
    numbers: HashMap<Box<str>, u32>,
    /// The category of each record; [`Categories::NONE`] without one.
    of: Box<[u32]>,
}

/// The networks that can be filtered by, each a bit of a record's mask.
struct Networks {
    bits: HashMap<Box<str>, u64>,
    /// For each record the networks it runs on.
    masks: Box<[u64]>,
}

/// A selection whose words were found.
#[derive(Default)]
pub(crate) struct Filter {
    /// Categories by number; one that no app has is left out, so `Some` of nothing matches nothing.
    categories: Option<Vec<u32>>,
    networks: Option<Wanted>,
}

/// The networks of a selection.
#[derive(Default)]
struct Wanted {
    mask: u64,
    /// Names that share a bit with others, and are compared as text besides.
    rare: Vec<Box<str>>,
}

impl Snapshot {
    pub(crate) fn build(data: CatalogData, source: CatalogSource) -> Snapshot {
        let records = &data.records;
        let categories = Categories::of(records);
        let networks = Networks::of(&data);
        let search = SearchIndex::build(records.iter().map(|record| document(record)));
        let ranked = u32::try_from(data.header.ranked).unwrap_or(u32::MAX);
        let orders = Timeframe::ALL.map(|timeframe| {
            if timeframe == Timeframe::default() {
                return Some(Order::build(records, (0..ranked).collect(), &categories.of));
            }
            data.order(timeframe).map(|ids| Order::build(records, ids.into(), &categories.of))
        });
        Snapshot { source, orders, categories, networks, search, data }
    }

    pub(crate) fn data(&self) -> &CatalogData {
        &self.data
    }

    pub(crate) fn source(&self) -> CatalogSource {
        self.source
    }

    /// How many apps the catalog has.
    pub(crate) fn len(&self) -> usize {
        self.data.records.len()
    }

    /// The lists that `timeframe` and the networks of `selection` need and this catalog has not.
    pub(crate) fn missing(&self, timeframe: Timeframe, selection: &Selection) -> Vec<View> {
        let header = &self.data.header;
        let mut missing = Vec::new();
        if !header.has_one_order && self.orders[timeframe as usize].is_none() {
            missing.push(View::Order(timeframe));
        }
        if !self.networks_are_named() {
            let asked = selection.networks.iter().filter_map(|name| taxonomy::known_network(name.trim()));
            for network in asked.filter(|name| taxonomy::upstream_knows(name) && !header.members.contains_key(*name)) {
                let view = View::Network(network.into());
                if !missing.contains(&view) {
                    missing.push(view);
                }
            }
        }
        missing
    }

    /// Whether the records themselves say which networks they need (else the upstream was asked).
    fn networks_are_named(&self) -> bool {
        self.data.header.has_chains || self.data.header.has_one_order
    }

    /// Finds the words of a selection.
    ///
    /// # Errors
    /// `InvalidInput` for a category or network that neither the closed lists nor any app knows.
    pub(crate) fn filter(&self, selection: &Selection) -> Result<Filter> {
        let mut filter = Filter::default();
        for name in &selection.categories {
            let name = taxonomy::fold_category(name.trim());
            let number = self.categories.numbers.get(name);
            if number.is_none() && !taxonomy::CATEGORIES.contains(&name) {
                return Err(unknown("category", name, "a category of the catalog"));
            }
            filter.categories.get_or_insert_default().extend(number);
        }
        for name in &selection.networks {
            let name = name.trim();
            let folded = taxonomy::known_network(name).unwrap_or(name);
            let bit = self.networks.bits.get(folded).copied();
            if bit.is_none() && taxonomy::known_network(name).is_none() {
                return Err(unknown("network", name, "a network of the catalog"));
            }
            let wanted = filter.networks.get_or_insert_default();
            match bit {
                Some(Networks::RARE) => wanted.rare.push(folded.into()),
                bit => wanted.mask |= bit.unwrap_or(0),
            }
        }
        if let Some(categories) = &mut filter.categories {
            categories.sort_unstable();
            categories.dedup();
        }
        // Apps that name no network run on every one, also on one that no app names.
        if let Some(wanted) = &mut filter.networks
            && self.networks_are_named()
        {
            wanted.mask |= Networks::ANY;
        }
        Ok(filter)
    }

    /// The first apps of a timeframe's order that pass. A timeframe without an order of its own answers in the default one.
    pub(crate) fn list(&self, timeframe: Timeframe, filter: &Filter, limit: usize) -> MiniApps {
        let default = &self.orders[Timeframe::default() as usize];
        let Some(order) = self.orders[timeframe as usize].as_ref().or(default.as_ref()) else {
            return MiniApps::empty();
        };
        match (filter.categories.as_deref(), filter.networks.as_ref()) {
            (None, None) => MiniApps::first(&order.apps, limit),
            (Some([category]), None) => {
                order.category(*category).map_or_else(MiniApps::empty, |apps| MiniApps::first(apps, limit))
            }
            (categories, networks) => {
                let positions = order.positions(categories);
                let passing = positions.filter(|&position| self.runs_on(networks, order.ids[position as usize]));
                passing.take(limit).map(|position| order.apps[position as usize].clone()).collect()
            }
        }
    }

    /// The best matches for a query; a blank one has none.
    pub(crate) fn search(&self, query: &str, filter: &Filter, limit: usize) -> MiniApps {
        let categories = filter.categories.as_deref();
        let accept = |id: u32| {
            categories.is_none_or(|wanted| wanted.contains(&self.categories.of[id as usize]))
                && self.runs_on(filter.networks.as_ref(), id)
        };
        self.search.search(query, limit, &accept).into_iter().map(|id| self.app(id)).collect()
    }

    fn runs_on(&self, wanted: Option<&Wanted>, id: u32) -> bool {
        let Some(wanted) = wanted else { return true };
        let mask = self.networks.masks[id as usize];
        mask & wanted.mask != 0
            || (mask & Networks::RARE != 0
                && self.data.records[id as usize].networks().any(|name| wanted.rare.iter().any(|rare| **rare == *name)))
    }

    /// An app with its rank in the default order.
    fn app(&self, id: u32) -> MiniApp {
        let is_ranked = (id as usize) < self.data.header.ranked;
        let rank = if is_ranked { NonZeroU32::new(id + 1) } else { None };
        MiniApp::new(self.data.records[id as usize].clone(), rank)
    }
}

impl Categories {
    const NONE: u32 = u32::MAX;

    fn of(records: &[MiniAppRecord]) -> Categories {
        let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
        let of = records.iter().map(|record| {
            let Some(category) = record.category() else { return Categories::NONE };
            if let Some(&number) = numbers.get(category) {
                return number;
            }
            let number = numbers.len() as u32;
            numbers.insert(category.into(), number);
            number
        });
        Categories { of: of.collect(), numbers }
    }
}

impl Networks {
    /// The bit of apps that run on every network.
    const ANY: u64 = 1 << 63;
    /// The bit that all networks share for which no bit of their own was left.
    const RARE: u64 = 1 << 62;
    /// Networks with a bit of their own; those of the closed list come first.
    const MOST: usize = 62;

    fn of(data: &CatalogData) -> Networks {
        let mut networks = Networks { bits: HashMap::new(), masks: vec![0; data.records.len()].into() };
        let named = data.records.iter().flat_map(MiniAppRecord::networks);
        for name in named.filter(|name| taxonomy::known_network(name).is_some()) {
            networks.bit(name);
        }
        for (id, record) in data.records.iter().enumerate() {
            let named = record.networks();
            networks.masks[id] =
                if named.is_empty() { Networks::ANY } else { named.fold(0, |mask, name| mask | networks.bit(name)) };
        }
        for (network, members) in &data.header.members {
            let bit = networks.bit(network);
            members.iter().for_each(|&id| networks.masks[id as usize] |= bit);
        }
        networks
    }

    fn bit(&mut self, name: &str) -> u64 {
        if let Some(&bit) = self.bits.get(name) {
            return bit;
        }
        let bit = if self.bits.len() < Networks::MOST { 1 << self.bits.len() } else { Networks::RARE };
        self.bits.insert(name.into(), bit);
        bit
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

fn unknown(what: &str, name: &str, known: &str) -> Error {
    let shown: String = name.chars().take(60).collect();
    Error::invalid_input(format!("Unknown {what} {shown:?}: neither the known list nor any app has it as {known}"))
}
