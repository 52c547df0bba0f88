//! One trending order, ready to be handed out in parts.

use std::{num::NonZeroU32, sync::Arc};

use super::Categories;
use crate::catalog::{MiniApp, MiniAppRecord};

/// The apps of a timeframe, best first, and the same by category.
pub(super) struct Order {
    pub(super) apps: Arc<[MiniApp]>,
    /// The record of each place.
    pub(super) ids: Box<[u32]>,
    /// By number of the category.
    categories: Box<[Part]>,
}

/// The places of an order that one category has, and the apps in them.
#[derive(Default)]
struct Part {
    positions: Vec<u32>,
    apps: Arc<[MiniApp]>,
}

impl Order {
    pub(super) fn build(records: &[MiniAppRecord], ids: Box<[u32]>, category_of: &[u32]) -> Order {
        let ranks = (1u32..).map(NonZeroU32::new);
        let apps: Arc<[MiniApp]> =
            ids.iter().zip(ranks).map(|(&id, rank)| MiniApp::new(records[id as usize].clone(), rank)).collect();
        let mut categories: Vec<Part> = Vec::new();
        for (position, &id) in (0u32..).zip(&*ids) {
            let category = category_of[id as usize];
            if category == Categories::NONE {
                continue;
            }
            let category = category as usize;
            if categories.len() <= category {
                categories.resize_with(category + 1, Part::default);
            }
            categories[category].positions.push(position);
        }
        for part in &mut categories {
            part.positions.shrink_to_fit();
            part.apps = part.positions.iter().map(|&position| apps[position as usize].clone()).collect();
        }
        Order { apps, ids, categories: categories.into() }
    }

    /// The apps of one category.
    pub(super) fn category(&self, number: u32) -> Option<&Arc<[MiniApp]>> {
        self.categories.get(number as usize).map(|part| &part.apps)
    }

    /// The places, in order, that any of the categories has; all places without a restriction.
    pub(super) fn positions<'a>(&'a self, categories: Option<&[u32]>) -> Box<dyn Iterator<Item = u32> + 'a> {
        let Some(categories) = categories else {
            return Box::new(0..self.apps.len() as u32);
        };
        // An app has one category, so the parts share no place and a merge needs no check for repeats.
        let parts = categories.iter().filter_map(|&number| self.categories.get(number as usize));
        let mut rests: Vec<&[u32]> = parts.map(|part| part.positions.as_slice()).collect();
        Box::new(std::iter::from_fn(move || {
            let first = rests.iter_mut().filter(|rest| !rest.is_empty()).min_by_key(|rest| rest[0])?;
            let (position, rest) = first.split_first()?;
            *first = rest;
            Some(*position)
        }))
    }
}
