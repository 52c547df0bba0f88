//! One data of the catalog: the lists as they were fetched, before anything is derived from them.
//!
//! Invariant: an data is complete (the default order and every list asked for besides, all from one time) and is
//! what the database keeps; a snapshot can be rebuilt from it alone. Apps of the default order come first and in
//! that order, so an app's number below `ranked` is its trending rank.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::page::Listing;
use crate::catalog::{MiniAppRecord, Timeframe};

/// One list of the upstream: the order of a timeframe, or the apps of a network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// The catalog in the trending order of a timeframe.
    Order(Timeframe),
    /// The apps that run on a network, by its name in the upstream's parameter.
    Network(Box<str>),
}

/// What the database keeps beside the records, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// When the default order was fetched.
    pub(crate) fetched_at: Timestamp,
    pub(crate) received: usize,
    pub(crate) skipped: usize,
    pub(crate) duplicates: usize,
    /// Whether rows say themselves which networks they need.
    pub(crate) has_chains: bool,
    /// Whether one order serves every timeframe (a catalog kept by hand).
    pub(crate) has_one_order: bool,
    /// How many of the records are in the default order.
    pub(crate) ranked: usize,
    /// Orders of the other timeframes, as numbers of records.
    orders: BTreeMap<Box<str>, Vec<u32>>,
    /// Apps of each network that was asked for, as numbers of records.
    pub(crate) members: BTreeMap<Box<str>, Vec<u32>>,
}

/// Header and records.
#[derive(Clone)]
pub(crate) struct CatalogData {
    pub(crate) header: Header,
    pub(crate) records: Vec<MiniAppRecord>,
}

impl CatalogData {
    /// An data of the default order alone.
    pub(crate) fn new(listing: Listing, fetched_at: Timestamp, has_one_order: bool) -> CatalogData {
        CatalogData {
            header: Header {
                fetched_at,
                received: listing.received,
                skipped: listing.skipped,
                duplicates: listing.duplicates,
                has_chains: listing.has_chains,
                has_one_order,
                ranked: listing.records.len(),
                orders: BTreeMap::new(),
                members: BTreeMap::new(),
            },
            records: listing.records,
        }
    }

    /// Puts an data together from what the database kept; `None` when its numbers name records that are not there.
    pub(crate) fn restore(header: Header, records: Vec<MiniAppRecord>) -> Option<CatalogData> {
        let count = records.len();
        let mut lists = header.orders.values().chain(header.members.values()).flatten();
        let is_whole = header.ranked <= count && lists.all(|&number| (number as usize) < count);
        is_whole.then_some(CatalogData { header, records })
    }

    /// Adds lists that were fetched besides; apps that only they know join the catalog unranked.
    pub(crate) fn add(&mut self, lists: Vec<(View, Listing)>) {
        if lists.is_empty() {
            return;
        }
        let mut numbers: HashMap<Box<str>, u32> =
            (0u32..).zip(&self.records).map(|(number, record)| (record.id().into(), number)).collect();
        for (view, listing) in lists {
            let mut order = Vec::with_capacity(listing.records.len());
            for record in listing.records {
                let next = self.records.len() as u32;
                let number = *numbers.entry(record.id().into()).or_insert(next);
                if number == next {
                    self.records.push(record);
                }
                order.push(number);
            }
            match view {
                View::Order(timeframe) => self.header.orders.insert(timeframe.as_str().into(), order),
                View::Network(network) => self.header.members.insert(network, order),
            };
        }
    }

    /// The order of a timeframe other than the default, if it was fetched.
    pub(crate) fn order(&self, timeframe: Timeframe) -> Option<&[u32]> {
        self.header.orders.get(timeframe.as_str()).map(Vec::as_slice)
    }

    /// The lists this data has besides the default order.
    pub(crate) fn views(&self) -> Vec<View> {
        let orders = Timeframe::ALL.into_iter().filter(|timeframe| self.order(*timeframe).is_some()).map(View::Order);
        orders.chain(self.header.members.keys().cloned().map(View::Network)).collect()
    }
}
