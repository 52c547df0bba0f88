//! Lists of a snapshot: the trending orders, and the newest apps.

use std::sync::Arc;

use super::{AppFilter, Snapshot, trending_order::TrendingOrder};
use crate::{
    catalog::{MiniApp, MiniApps, Selection, Timeframe},
    error::Result,
};

impl Snapshot {
    /// The apps of a timeframe's order that match the selection; of the default order if the timeframe has none.
    pub(crate) fn trending(self: &Arc<Self>, timeframe: Timeframe, selection: &Selection) -> Result<MiniApps> {
        let filter = self.filter(selection)?;
        let Some(order) = self.order(timeframe) else { return Ok(MiniApps::empty()) };
        let (offset, limit) = (selection.start(), selection.limit as usize);
        if !selection.is_collapsed && filter.networks.is_none() {
            match filter.categories.as_deref() {
                None => return Ok(MiniApps::page(&order.apps, offset, limit)),
                Some([category]) => {
                    let page = |apps| MiniApps::page(apps, offset, limit);
                    return Ok(order.category(*category).map_or_else(MiniApps::empty, page));
                }
                Some(_) => {}
            }
        }
        let (snapshot, is_collapsed) = (Arc::clone(self), selection.is_collapsed);
        let positions = self.positions(order, &filter, is_collapsed);
        let apps: Vec<MiniApp> =
            positions.skip(offset).take(limit).map(|position| order.apps[position as usize].clone()).collect();
        Ok(MiniApps::counted_by(apps, move || {
            let order = snapshot.order(timeframe);
            order.map_or(0, |order| snapshot.positions(order, &filter, is_collapsed).count())
        }))
    }

    /// The apps that match the selection, latest first seen first; apps of one time in trending order.
    pub(crate) fn newest(self: &Arc<Self>, selection: &Selection) -> Result<MiniApps> {
        let filter = self.filter(selection)?;
        let (snapshot, is_collapsed) = (Arc::clone(self), selection.is_collapsed);
        let numbers = self.newest_numbers(&filter, is_collapsed);
        let apps: Vec<MiniApp> =
            numbers.skip(selection.start()).take(selection.limit as usize).map(|number| self.app(number)).collect();
        Ok(MiniApps::counted_by(apps, move || snapshot.newest_numbers(&filter, is_collapsed).count()))
    }

    pub(super) fn order(&self, timeframe: Timeframe) -> Option<&TrendingOrder> {
        self.orders[timeframe as usize].as_ref().or(self.orders[Timeframe::default() as usize].as_ref())
    }

    /// The positions in an order of the apps that the filter accepts; each group of near-copies once, if collapsed.
    fn positions<'a>(
        &'a self,
        order: &'a TrendingOrder,
        filter: &'a AppFilter,
        is_collapsed: bool,
    ) -> Box<dyn Iterator<Item = u32> + 'a> {
        let accepts = |&position: &u32| {
            let number = order.ids[position as usize];
            self.networks.matches(filter.networks.as_ref(), number, &self.data.records)
        };
        let positions = order.positions(filter.categories.as_deref()).filter(accepts);
        if is_collapsed {
            Box::new(self.copies.collapse_by(positions, |position| order.ids[position as usize]))
        } else {
            Box::new(positions)
        }
    }

    fn newest_numbers<'a>(&'a self, filter: &'a AppFilter, is_collapsed: bool) -> Box<dyn Iterator<Item = u32> + 'a> {
        let numbers = self.newest.iter().copied().filter(|&number| self.accepts(filter, number));
        if is_collapsed { Box::new(self.copies.collapse_by(numbers, |number| number)) } else { Box::new(numbers) }
    }
}
