//! Similar apps: by shared words, author and category.
//!
//! Invariant: the app itself and its near-copies are never in the list, and other near-copies are in it once. First come
//! the apps that share words with the app, then the other apps of its category in trending order.

use std::collections::HashSet;

use super::Snapshot;
use crate::{
    catalog::{MiniApp, MiniApps},
    error::{Error, Result},
};

/// The weight of an equal category and of an equal author, relative to the shared words.
const CATEGORY_BONUS: f32 = 1.25;
const AUTHOR_BONUS: f32 = 1.5;
/// Apps of other authors under this share of the best score are not similar.
const MIN_SHARE: f32 = 0.08;

impl Snapshot {
    /// The apps similar to the one of an id, best first.
    ///
    /// # Errors
    /// `NotFound` for an unknown id.
    pub(crate) fn similar(&self, id: &str, limit: usize) -> Result<MiniApps> {
        let records = &self.data.records;
        let number = self.addresses.find(id, records).ok_or_else(Error::not_found)?;
        let (category, author) = (self.categories.of_record[number as usize], records[number as usize].author());
        let related = self.search.related(number);
        let floor = MIN_SHARE * related.iter().map(|(_, score)| *score).fold(0.0, f32::max);
        let mut scored: Vec<(f32, u32)> = Vec::new();
        for (other, score) in related {
            let record = &records[other as usize];
            let is_by_author = author.is_some_and(|author| record.author().is_some_and(|by| by.fid == author.fid));
            if score < floor && !is_by_author {
                continue;
            }
            let is_in_category = record.category().is_some() && self.categories.of_record[other as usize] == category;
            let by_category = if is_in_category { CATEGORY_BONUS } else { 1.0 };
            let by_author = if is_by_author { AUTHOR_BONUS } else { 1.0 };
            scored.push((score * by_category * by_author, other));
        }
        scored.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let by_words: HashSet<u32> = scored.iter().map(|(_, other)| *other).collect();
        let in_category = (0..self.ranked()).filter(|&other| {
            records[other as usize].category().is_some()
                && self.categories.of_record[other as usize] == category
                && !by_words.contains(&other)
        });
        let others = scored.iter().map(|(_, other)| *other).chain(in_category);
        let others = others.filter(|&other| !self.copies.are_copies(number, other));
        let all: Vec<u32> = self.copies.collapse_by(others, |other| other).collect();
        let apps: Vec<MiniApp> = all.iter().take(limit).map(|&other| self.app(other)).collect();
        Ok(MiniApps::of_total(apps, all.len()))
    }
}
