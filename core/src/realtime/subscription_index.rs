//! The subscriptions of one table, by the value that their filters demand of a column.

use std::{
    collections::{HashMap, hash_map},
    hash::Hash,
    sync::Arc,
};

use super::{
    filter::{Equality, Scalar},
    subscription_state::SubscriptionState,
};
use crate::policy::{Column, RowImage};

/// The subscriptions of one table. Its clones are independent.
#[derive(Default, Clone)]
pub(super) struct TableSubscriptions {
    by_value: Vec<ColumnSubscriptions>,
    /// The subscriptions whose filters demand no value.
    others: Vec<Arc<SubscriptionState>>,
}

/// The subscriptions whose filters demand one value of a column, by that value.
#[derive(Clone)]
struct ColumnSubscriptions {
    column: Column,
    subscriptions: HashMap<Scalar<'static>, Vec<Arc<SubscriptionState>>>,
}

impl TableSubscriptions {
    pub(super) fn add(&mut self, subscription: &Arc<SubscriptionState>) {
        let list = match subscription.view.filter.equality() {
            Some(Equality { column, value }) => {
                let index = self.by_value.iter().position(|by| by.column == *column).unwrap_or_else(|| {
                    self.by_value.push(ColumnSubscriptions { column: *column, subscriptions: HashMap::new() });
                    self.by_value.len() - 1
                });
                self.by_value[index].subscriptions.entry(value.clone()).or_default()
            }
            None => &mut self.others,
        };
        list.push(Arc::clone(subscription));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty() && self.by_value.iter().all(|by| by.subscriptions.is_empty())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SubscriptionState>> {
        self.by_value.iter().flat_map(|by| by.subscriptions.values()).flatten().chain(&self.others)
    }

    /// Removes a subscription. Returns false if it is not there.
    pub(super) fn remove(&mut self, subscription: &Arc<SubscriptionState>) -> bool {
        match subscription.view.filter.equality() {
            Some(Equality { column, value }) => self
                .by_value
                .iter_mut()
                .find(|by| by.column == *column)
                .is_some_and(|by| remove_from(&mut by.subscriptions, value, subscription)),
            None => remove_one(&mut self.others, subscription),
        }
    }

    /// Calls `visit` with each subscription that can have the old or the new row in its view.
    pub(super) fn for_each_candidate(
        &self,
        old: Option<&RowImage>,
        new: Option<&RowImage>,
        mut visit: impl FnMut(&Arc<SubscriptionState>),
    ) {
        for ColumnSubscriptions { column, subscriptions } in
            self.by_value.iter().filter(|by| !by.subscriptions.is_empty())
        {
            if [old, new].into_iter().flatten().any(|row| !row.contains_key(column.name)) {
                // An erased row does not say what the column held.
                subscriptions.values().flatten().for_each(&mut visit);
                continue;
            }
            let (before, after) = (value_of(column, old), value_of(column, new));
            let moved = before.filter(|before| Some(before) != after.as_ref());
            for value in [moved, after].into_iter().flatten() {
                subscriptions.get(&value).into_iter().flatten().for_each(&mut visit);
            }
        }
        self.others.iter().for_each(visit);
    }
}

/// The value of a column in a row.
fn value_of<'a>(column: &Column, row: Option<&'a RowImage>) -> Option<Scalar<'a>> {
    Scalar::of_image(column.column_type, row?.get(column.name)?)
}

/// Removes a value from the list of a key, and the list if it is empty. Returns false if the value is not there.
pub(super) fn remove_from<K: Eq + Hash + Clone, T>(
    lists: &mut HashMap<K, Vec<Arc<T>>>,
    key: &K,
    value: &Arc<T>,
) -> bool {
    let hash_map::Entry::Occupied(mut list) = lists.entry(key.clone()) else { return false };
    let is_there = remove_one(list.get_mut(), value);
    if list.get().is_empty() {
        list.remove();
    }
    is_there
}

/// Removes a value from a list. Returns false if it is not there.
fn remove_one<T>(list: &mut Vec<Arc<T>>, value: &Arc<T>) -> bool {
    let Some(index) = list.iter().position(|known| Arc::ptr_eq(known, value)) else { return false };
    list.swap_remove(index);
    true
}
