//! Category and network filters as numbers and bit masks.

use std::collections::{HashMap, HashSet};

use crate::{
    catalog::{CatalogData, MiniAppRecord, Selection, taxonomy},
    error::{Error, Result},
};

/// The filters of a [`Selection`], resolved against a snapshot.
#[derive(Clone, Default)]
pub(crate) struct AppFilter {
    /// Category numbers, sorted. A known category without apps has no number, so `Some` may be empty: it matches
    /// nothing.
    pub(super) categories: Option<Vec<u32>>,
    pub(super) networks: Option<NetworkFilter>,
}

#[derive(Clone, Default)]
pub(super) struct NetworkFilter {
    mask: u64,
    /// Networks without a bit of their own: compared by name. A set, because a request may name each of them, many times.
    unmasked: HashSet<Box<str>>,
}

/// The categories of the catalog, numbered.
pub(super) struct CategoryIndex {
    numbers: HashMap<Box<str>, u32>,
    /// The category of each record, or [`CategoryIndex::NONE`].
    pub(super) of_record: Box<[u32]>,
}

/// A number of records, where those of one group count once.
#[derive(Default)]
struct DistinctCount {
    without_group: usize,
    groups: HashSet<u32>,
}

impl DistinctCount {
    fn add(&mut self, group: Option<u32>) {
        match group {
            Some(group) => drop(self.groups.insert(group)),
            None => self.without_group += 1,
        }
    }

    fn len(&self) -> usize {
        self.without_group + self.groups.len()
    }

    /// The number of the records of both, which have no record in common.
    fn len_with(&self, other: &DistinctCount) -> usize {
        let new_groups = self.groups.iter().filter(|group| !other.groups.contains(group)).count();
        self.without_group + new_groups + other.len()
    }
}

/// The networks of the catalog, each a bit of a mask.
pub(super) struct NetworkIndex {
    bits: HashMap<Box<str>, u64>,
    /// The networks of each record.
    masks: Box<[u64]>,
}

impl AppFilter {
    /// Resolves the names of a selection. `has_chains` says whether the records themselves name their networks.
    ///
    /// # Errors
    /// `InvalidInput` for a category or network that is neither known nor in the catalog.
    pub(super) fn resolve(
        selection: &Selection,
        categories: &CategoryIndex,
        networks: &NetworkIndex,
        has_chains: bool,
    ) -> Result<AppFilter> {
        let mut filter = AppFilter::default();
        for name in &selection.categories {
            let name = taxonomy::canonical_category(name.trim());
            let number = categories.numbers.get(name);
            if number.is_none() && !taxonomy::CATEGORIES.contains(&name) {
                return Err(unknown("category", name, taxonomy::CATEGORIES.into_iter(), categories.other_names()));
            }
            filter.categories.get_or_insert_default().extend(number);
        }
        for name in &selection.networks {
            let name = name.trim();
            let canonical = taxonomy::canonical_network(name);
            let name = canonical.unwrap_or(name);
            if !networks.bits.contains_key(name) && canonical.is_none() {
                return Err(unknown("network", name, taxonomy::network_names(), networks.other_names()));
            }
            networks.add_to(filter.networks.get_or_insert_default(), name);
        }
        if let Some(categories) = &mut filter.categories {
            categories.sort_unstable();
            categories.dedup();
        }
        // An app without networks runs on every network, including those that no app names.
        if let Some(networks) = &mut filter.networks
            && has_chains
        {
            networks.mask |= NetworkIndex::ANY;
        }
        Ok(filter)
    }
}

impl CategoryIndex {
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn build(records: &[MiniAppRecord]) -> CategoryIndex {
        let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
        let of_record = records.iter().map(|record| {
            let Some(category) = record.category() else { return CategoryIndex::NONE };
            if let Some(&number) = numbers.get(category) {
                return number;
            }
            let number = numbers.len() as u32;
            numbers.insert(category.into(), number);
            number
        });
        CategoryIndex { of_record: of_record.collect(), numbers }
    }

    /// The categories of the catalog that the upstream does not know, in alphabetical order.
    fn other_names(&self) -> Vec<&str> {
        others(self.numbers.keys(), |name| taxonomy::CATEGORIES.contains(&name))
    }
}

impl NetworkIndex {
    /// The bit of apps that name no network and so run on every one.
    const ANY: u64 = 1 << 63;
    /// The bit shared by all networks beyond [`NetworkIndex::MAX_BITS`].
    const SHARED: u64 = 1 << 62;
    /// The number of networks with a bit of their own. Known networks get theirs first.
    const MAX_BITS: usize = 62;

    pub(super) fn build(data: &CatalogData) -> NetworkIndex {
        let mut index = NetworkIndex { bits: HashMap::new(), masks: vec![0; data.records.len()].into() };
        let named = data.records.iter().flat_map(MiniAppRecord::networks);
        for name in named.filter(|name| taxonomy::canonical_network(name).is_some()) {
            index.bit(name);
        }
        for (id, record) in data.records.iter().enumerate() {
            let networks = record.networks();
            index.masks[id] = if networks.is_empty() {
                NetworkIndex::ANY
            } else {
                networks.fold(0, |mask, name| mask | index.bit(name))
            };
        }
        for (network, members) in &data.header.members {
            let bit = index.bit(network);
            members.iter().for_each(|&id| index.masks[id as usize] |= bit);
        }
        index
    }

    /// How many of these records a filter by each network accepts: by the networks that some app names, and those with a fetched
    /// list. `has_chains` says whether the records name their networks. Records of one group count once.
    ///
    /// It takes one pass: a catalog may name as many networks as it likes.
    pub(super) fn counts<'a>(
        &'a self,
        numbers: impl Iterator<Item = u32>,
        has_chains: bool,
        records: &'a [MiniAppRecord],
        group_of: impl Fn(u32) -> Option<u32>,
    ) -> impl Iterator<Item = (&'a str, usize)> {
        let names_of_bits: Vec<(u64, &str)> =
            self.names_with_bits().filter(|(bit, _)| *bit != NetworkIndex::SHARED).collect();
        let (mut on_any, mut by_name) = (DistinctCount::default(), HashMap::<&str, DistinctCount>::new());
        for number in numbers {
            let (mask, group) = (self.masks[number as usize], group_of(number));
            if has_chains && mask & NetworkIndex::ANY != 0 {
                on_any.add(group);
                continue;
            }
            let with_bits = names_of_bits.iter().filter(|(bit, _)| mask & bit != 0).map(|(_, name)| *name);
            with_bits.for_each(|name| by_name.entry(name).or_default().add(group));
            if mask & NetworkIndex::SHARED != 0 {
                let shared = |name: &&str| self.bits.get(*name) == Some(&NetworkIndex::SHARED);
                let names: HashSet<&str> = records[number as usize].networks().filter(shared).collect();
                names.into_iter().for_each(|name| by_name.entry(name).or_default().add(group));
            }
        }
        self.names_with_bits().map(move |(_, name)| {
            let on_any = &on_any;
            (name, by_name.get(name).map_or(on_any.len(), |count| count.len_with(on_any)))
        })
    }

    fn names_with_bits(&self) -> impl Iterator<Item = (u64, &str)> {
        self.bits.iter().map(|(name, bit)| (*bit, &**name))
    }

    fn add_to(&self, filter: &mut NetworkFilter, name: &str) {
        match self.bits.get(name).copied() {
            Some(NetworkIndex::SHARED) => drop(filter.unmasked.insert(name.into())),
            bit => filter.mask |= bit.unwrap_or(0),
        }
    }

    /// The networks of the catalog that are not known, in alphabetical order.
    fn other_names(&self) -> Vec<&str> {
        others(self.bits.keys(), |name| taxonomy::canonical_network(name).is_some())
    }

    fn bit(&mut self, name: &str) -> u64 {
        if let Some(&bit) = self.bits.get(name) {
            return bit;
        }
        let bit = if self.bits.len() < NetworkIndex::MAX_BITS { 1 << self.bits.len() } else { NetworkIndex::SHARED };
        self.bits.insert(name.into(), bit);
        bit
    }

    /// Whether record `id` runs on one of the filter's networks.
    pub(super) fn matches(&self, filter: Option<&NetworkFilter>, id: u32, records: &[MiniAppRecord]) -> bool {
        let Some(filter) = filter else { return true };
        let mask = self.masks[id as usize];
        let mut names = records[id as usize].networks();
        mask & filter.mask != 0
            || (mask & NetworkIndex::SHARED != 0 && names.any(|name| filter.unmasked.contains(name)))
    }
}

fn others<'a>(names: impl Iterator<Item = &'a Box<str>>, is_known: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut others: Vec<&str> = names.map(|name| &**name).filter(|name| !is_known(name)).collect();
    others.sort_unstable();
    others
}

/// The error for a name that is neither known nor in the catalog. It lists the names that a filter takes.
fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>, others: Vec<&str>) -> Error {
    /// A catalog may contain many odd names.
    const MAX_OTHERS: usize = 20;
    let shown: String = name.chars().take(60).collect();
    let mut known: Vec<&str> = known.collect();
    known.extend(others.into_iter().take(MAX_OTHERS));
    Error::invalid_input(format!(
        "Unknown {what} {shown:?}: not a known {what}, and no app of the catalog has it; known: {}",
        known.join(", ")
    ))
}
