//! One trending order, prepared for reads of any prefix and any category.

use std::{num::NonZeroU32, sync::Arc};

use super::filter::CategoryIndex;
use crate::catalog::{MiniApp, MiniAppRecord};

/// The apps of a timeframe, best first, as a whole and by category.
pub(super) struct TrendingOrder {
    pub(super) apps: Arc<[MiniApp]>,
    /// The record number at each position.
    pub(super) ids: Box<[u32]>,
    /// By category number.
    categories: Box<[CategoryOrder]>,
}

/// The apps of one category, with their positions in the whole order.
#[derive(Default)]
struct CategoryOrder {
    positions: Vec<u32>,
    apps: Arc<[MiniApp]>,
}

impl TrendingOrder {
    pub(super) fn build(records: &[MiniAppRecord], ids: Box<[u32]>, categories: &CategoryIndex) -> TrendingOrder {
        let ranks = (1u32..).map(NonZeroU32::new);
        let apps: Arc<[MiniApp]> =
            ids.iter().zip(ranks).map(|(&id, rank)| MiniApp::new(records[id as usize].clone(), rank)).collect();
        let mut by_category: Vec<CategoryOrder> = Vec::new();
        for (position, &id) in (0u32..).zip(&*ids) {
            let category = categories.of_record[id as usize];
            if category == CategoryIndex::NONE {
                continue;
            }
            let category = category as usize;
            if by_category.len() <= category {
                by_category.resize_with(category + 1, CategoryOrder::default);
            }
            by_category[category].positions.push(position);
        }
        for order in &mut by_category {
            order.positions.shrink_to_fit();
            order.apps = order.positions.iter().map(|&position| apps[position as usize].clone()).collect();
        }
        TrendingOrder { apps, ids, categories: by_category.into() }
    }

    /// The apps of one category.
    pub(super) fn category(&self, number: u32) -> Option<&Arc<[MiniApp]>> {
        self.categories.get(number as usize).map(|order| &order.apps)
    }

    /// The positions of the apps in any of the categories, in order; all positions without a category filter.
    pub(super) fn positions<'a>(&'a self, categories: Option<&[u32]>) -> Box<dyn Iterator<Item = u32> + 'a> {
        let Some(categories) = categories else {
            return Box::new(0..self.apps.len() as u32);
        };
        // A merge of sorted lists without duplicates: an app has one category.
        let orders = categories.iter().filter_map(|&number| self.categories.get(number as usize));
        let mut remaining: Vec<&[u32]> = orders.map(|order| order.positions.as_slice()).collect();
        Box::new(std::iter::from_fn(move || {
            let least = remaining.iter_mut().filter(|rest| !rest.is_empty()).min_by_key(|rest| rest[0])?;
            let (position, rest) = least.split_first()?;
            *least = rest;
            Some(*position)
        }))
    }
}
