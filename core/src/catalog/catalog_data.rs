//! The fetched catalog: its lists and records, before the snapshot derives orders and indexes from them.
//!
//! Invariant: the records of the default order come first, in that order, so record number `n` below `ranked` has the
//! trending rank `n + 1`. The database stores this data, and a snapshot can be built from it alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{MiniAppRecord, Timeframe, page::FetchedList};

/// Identifies one list of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ListKey {
    /// The catalog in the trending order of a timeframe.
    Timeframe(Timeframe),
    /// The apps on a network, by the network's name in the upstream's parameter.
    Network(Box<str>),
}

/// Everything but the records; the database stores it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CatalogHeader {
    /// When the default order was fetched.
    pub(crate) fetched_at: Timestamp,
    pub(crate) received: usize,
    pub(crate) skipped: usize,
    pub(crate) duplicates: usize,
    /// Whether any row names the chains that it requires.
    pub(crate) has_chains: bool,
    /// Whether all timeframes share one order (a `file:` catalog).
    pub(crate) has_one_order: bool,
    /// Whether the source has more pages than the fetch may read.
    #[serde(default)]
    pub(crate) is_truncated: bool,
    /// The number of records in the default order.
    pub(crate) ranked: usize,
    /// The orders of the other timeframes, as record numbers.
    orders: BTreeMap<Box<str>, Vec<u32>>,
    /// The apps of each fetched network, as record numbers.
    pub(crate) members: BTreeMap<Box<str>, Vec<u32>>,
    /// When each further list was fetched, by its name; a list without an entry was fetched with the default order.
    #[serde(skip)]
    fetched: BTreeMap<String, Timestamp>,
    /// When apps that left the catalog were first seen, by id: an app that comes back is not new.
    #[serde(default)]
    departed: BTreeMap<Box<str>, Timestamp>,
}

/// How many apps that left the catalog are remembered. The first seen ones are forgotten first.
const MAX_DEPARTED: usize = 10_000;

#[derive(Clone)]
pub(crate) struct CatalogData {
    pub(crate) header: CatalogHeader,
    pub(crate) records: Vec<MiniAppRecord>,
}

/// A list as discovery keeps and stores it, apart from the catalog: record numbers change with every refresh.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ListContent {
    pub(crate) fetched_at: Timestamp,
    /// The apps in the order of the list.
    ids: Vec<Box<str>>,
    /// The records of apps that are not in the default order.
    records: Vec<MiniAppRecord>,
}

impl ListKey {
    /// The name of the list in `DiscoveryStats::stale_lists` and in the database.
    pub(crate) fn name(&self) -> String {
        match self {
            ListKey::Timeframe(timeframe) => timeframe.to_string(),
            ListKey::Network(network) => format!("networks={network}"),
        }
    }
}

impl ListContent {
    /// The content of a list that was fetched at `fetched_at`.
    pub(crate) fn new(list: FetchedList, fetched_at: Timestamp) -> ListContent {
        let ids = list.records.iter().map(|record| record.id().into()).collect();
        ListContent { fetched_at, ids, records: list.records }
    }

    /// The number of apps.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Leaves out the records that are in the default order of `data`.
    pub(crate) fn without_ranked(mut self, data: &CatalogData) -> ListContent {
        let ranked: HashSet<&str> = data.ranked_records().iter().map(MiniAppRecord::id).collect();
        self.records.retain(|record| !ranked.contains(record.id()));
        self
    }
}

impl CatalogData {
    /// Makes a catalog of the default order alone.
    pub(crate) fn new(list: FetchedList, fetched_at: Timestamp, has_one_order: bool) -> CatalogData {
        CatalogData {
            header: CatalogHeader {
                fetched_at,
                received: list.received,
                skipped: list.skipped,
                duplicates: list.duplicates,
                has_chains: list.has_chains(),
                has_one_order,
                is_truncated: list.is_truncated,
                ranked: list.records.len(),
                orders: BTreeMap::new(),
                members: BTreeMap::new(),
                fetched: BTreeMap::new(),
                departed: BTreeMap::new(),
            },
            records: list.records,
        }
    }

    /// Makes a catalog of stored parts; `None` if a list contains a record number without a record.
    pub(crate) fn restore(header: CatalogHeader, records: Vec<MiniAppRecord>) -> Option<CatalogData> {
        let count = records.len();
        let mut lists = header.orders.values().chain(header.members.values()).flatten();
        let is_valid = header.ranked <= count && lists.all(|&number| (number as usize) < count);
        is_valid.then_some(CatalogData { header, records })
    }

    /// The records of the default order.
    pub(crate) fn ranked_records(&self) -> &[MiniAppRecord] {
        &self.records[..self.header.ranked]
    }

    /// Adds further lists, or replaces them. Apps that are not in the default order are added without a rank. Apps
    /// without a record are left out: an earlier default order had them, and this one does not.
    pub(crate) fn add_lists(&mut self, lists: Vec<(ListKey, ListContent)>) {
        if lists.is_empty() {
            return;
        }
        let mut numbers: HashMap<Box<str>, u32> =
            (0u32..).zip(&self.records).map(|(number, record)| (record.id().into(), number)).collect();
        for (key, list) in lists {
            for record in list.records {
                let next = self.records.len() as u32;
                if *numbers.entry(record.id().into()).or_insert(next) == next {
                    self.records.push(record);
                }
            }
            let order = list.ids.iter().filter_map(|id| numbers.get(id).copied()).collect();
            self.header.fetched.insert(key.name(), list.fetched_at);
            match key {
                ListKey::Timeframe(timeframe) => self.header.orders.insert(timeframe.as_str().into(), order),
                ListKey::Network(network) => self.header.members.insert(network, order),
            };
        }
    }

    /// A further list, to keep it in the next catalog.
    pub(crate) fn list(&self, key: &ListKey) -> Option<ListContent> {
        let numbers = match key {
            ListKey::Timeframe(timeframe) => self.order(*timeframe)?,
            ListKey::Network(network) => self.header.members.get(network)?,
        };
        let record = |number: &u32| &self.records[*number as usize];
        let unranked = numbers.iter().filter(|number| **number as usize >= self.header.ranked);
        Some(ListContent {
            fetched_at: self.list_fetched_at(key),
            ids: numbers.iter().map(|number| record(number).id().into()).collect(),
            records: unranked.map(|number| record(number).clone()).collect(),
        })
    }

    /// When a further list was fetched.
    pub(crate) fn list_fetched_at(&self, key: &ListKey) -> Timestamp {
        self.header.fetched.get(&key.name()).copied().unwrap_or(self.header.fetched_at)
    }

    /// The further lists that are older than the default order.
    pub(crate) fn stale_lists(&self) -> Vec<ListKey> {
        let mut lists = self.further_lists();
        lists.retain(|key| self.list_fetched_at(key) < self.header.fetched_at);
        lists
    }

    /// The default order alone, as it is stored.
    pub(crate) fn main_list(&self) -> CatalogData {
        let mut header = self.header.clone();
        (header.orders, header.members, header.fetched) = Default::default();
        CatalogData { header, records: self.ranked_records().to_vec() }
    }

    /// Takes over from an earlier catalog when each app was first seen.
    pub(crate) fn inherit_first_seen(&mut self, earlier: &CatalogData) {
        let mut known: HashMap<&str, Timestamp> =
            earlier.header.departed.iter().map(|(id, seen)| (&**id, *seen)).collect();
        known.extend(earlier.records.iter().map(|record| (record.id(), record.first_seen())));
        for (id, seen) in &self.header.departed {
            known.entry(id).and_modify(|known| *known = (*known).min(*seen)).or_insert(*seen);
        }
        for record in &mut self.records {
            if let Some(seen) = known.remove(record.id()) {
                record.seen_at(seen);
            }
        }
        let mut departed: Vec<(&str, Timestamp)> = known.into_iter().collect();
        departed.sort_unstable_by_key(|(id, seen)| (std::cmp::Reverse(*seen), *id));
        departed.truncate(MAX_DEPARTED);
        self.header.departed = departed.into_iter().map(|(id, seen)| (id.into(), seen)).collect();
    }

    /// Takes over when the apps of further lists alone were first seen: those have no place in the stored catalog.
    pub(crate) fn keep_first_seen(&mut self, earlier: &CatalogData) {
        let unranked = &mut self.records[self.header.ranked..];
        if unranked.is_empty() {
            return;
        }
        let mut known: HashMap<&str, Timestamp> =
            self.header.departed.iter().map(|(id, seen)| (&**id, *seen)).collect();
        known.extend(earlier.records.iter().map(|record| (record.id(), record.first_seen())));
        for record in unranked {
            if let Some(seen) = known.get(record.id()) {
                record.seen_at(*seen);
            }
        }
    }

    /// Whether two catalogs have the same apps with the same texts in the same default order, and no list that both have
    /// differs.
    pub(crate) fn is_same_content(&self, other: &CatalogData) -> bool {
        let (own, others) = (&self.header, &other.header);
        let is_same_list = |order: &[u32], known: Option<&Vec<u32>>| {
            known.is_none_or(|known| order.len() == known.len() && self.ids(order).eq(other.ids(known)))
        };
        let mut ranked = self.records.iter().zip(&other.records).take(own.ranked);
        own.ranked == others.ranked
            && ranked.all(|(one, two)| one.is_same_content(two))
            && own.orders.iter().all(|(key, order)| is_same_list(order, others.orders.get(key)))
            && own.members.iter().all(|(key, list)| is_same_list(list, others.members.get(key)))
    }

    /// The ids of a list.
    fn ids<'a>(&'a self, list: &'a [u32]) -> impl Iterator<Item = &'a str> {
        list.iter().map(|&number| self.records[number as usize].id())
    }

    /// The fetched order of a timeframe other than the default.
    pub(crate) fn order(&self, timeframe: Timeframe) -> Option<&[u32]> {
        self.header.orders.get(timeframe.as_str()).map(Vec::as_slice)
    }

    /// The keys of all further lists.
    pub(crate) fn further_lists(&self) -> Vec<ListKey> {
        let orders =
            Timeframe::ALL.into_iter().filter(|timeframe| self.order(*timeframe).is_some()).map(ListKey::Timeframe);
        orders.chain(self.header.members.keys().cloned().map(ListKey::Network)).collect()
    }
}
