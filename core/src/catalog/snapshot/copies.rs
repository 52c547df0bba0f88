//! Near-copies: apps with the same name and author, for instance the deployments of one app on several hosts.

use std::collections::{HashMap, HashSet};

use crate::catalog::MiniAppRecord;

/// The group of near-copies of each record.
pub(super) struct CopyIndex {
    /// The first record of the same name and author.
    first: Box<[u32]>,
    /// Whether a record has a near-copy.
    has_copies: Box<[bool]>,
}

impl CopyIndex {
    pub(super) fn build(records: &[MiniAppRecord]) -> CopyIndex {
        let mut groups: HashMap<(u64, String), u32> = HashMap::with_capacity(records.len());
        let mut has_copies = vec![false; records.len()].into_boxed_slice();
        let first = (0u32..).zip(records).map(|(number, record)| {
            let Some(author) = record.author() else { return number };
            let first = *groups.entry((author.fid, record.name().to_lowercase())).or_insert(number);
            if first != number {
                has_copies[first as usize] = true;
                has_copies[number as usize] = true;
            }
            first
        });
        let first = first.collect();
        CopyIndex { first, has_copies }
    }

    /// The first record of each record's group.
    pub(super) fn groups(&self) -> &[u32] {
        &self.first
    }

    /// The group of a record that has near-copies.
    pub(super) fn group_of(&self, number: u32) -> Option<u32> {
        self.has_copies[number as usize].then(|| self.first[number as usize])
    }

    pub(super) fn are_copies(&self, one: u32, other: u32) -> bool {
        self.first[one as usize] == self.first[other as usize]
    }

    /// Keeps the first item of each group. `number` gives the record of an item.
    pub(super) fn collapse_by<'a, T: Copy + 'a>(
        &'a self,
        items: impl Iterator<Item = T> + 'a,
        number: impl Fn(T) -> u32 + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        let mut seen = HashSet::new();
        items.filter(move |&item| self.group_of(number(item)).is_none_or(|group| seen.insert(group)))
    }
}
