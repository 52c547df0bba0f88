//! The content of a record: all texts of an app in one string, the end of each text, and the author's numbers.
//!
//! Invariant: every text is a slice of the string, found by its number. A catalog holds up to a hundred thousand records:
//! one string takes less memory than two dozen.

use std::borrow::Cow;

use super::texts::Texts;

/// The texts that every record has, in the order in which they lie in the string. An absent text is empty.
#[derive(Clone, Copy)]
pub(super) enum Text {
    Name,
    Id,
    Domain,
    HomeUrl,
    Description,
    IconUrl,
    Category,
    HeroImageUrl,
    Tagline,
    Subtitle,
    Version,
    ButtonTitle,
    ImageUrl,
    SplashImageUrl,
    SplashBackgroundColor,
    AuthorUsername,
    AuthorDisplayName,
    AuthorPfpUrl,
}

pub(super) const TEXTS: usize = Text::AuthorPfpUrl as usize + 1;

/// The lists of a record, whose items lie behind the texts.
#[derive(Clone, Copy)]
pub(super) enum List {
    Networks,
    Tags,
    Screenshots,
}

const LISTS: usize = List::Screenshots as usize + 1;

#[derive(PartialEq)]
pub(super) struct RecordContent {
    texts: Box<str>,
    /// The end of each [`Text`].
    ends: [u32; TEXTS],
    /// The end of each item of each list.
    item_ends: Box<[u32]>,
    /// The place in `item_ends` after the last item of each list.
    list_ends: [u32; LISTS],
    pub(super) author: Option<AuthorNumbers>,
}

/// What a record says about its author in numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct AuthorNumbers {
    pub(super) fid: u64,
    pub(super) follower_count: u64,
    pub(super) score: Option<f64>,
    pub(super) is_power_user: bool,
}

impl RecordContent {
    /// Takes the texts in the order of [`Text`] and the lists in the order of [`List`].
    pub(super) fn new(
        fixed: [&str; TEXTS],
        lists: [&[Cow<'_, str>]; LISTS],
        author: Option<AuthorNumbers>,
    ) -> RecordContent {
        let items = || lists.iter().copied().flatten().map(AsRef::as_ref);
        let mut texts = String::with_capacity(fixed.into_iter().chain(items()).map(str::len).sum());
        let mut append = |text: &str| {
            texts.push_str(text);
            texts.len() as u32
        };
        let ends = fixed.map(&mut append);
        let item_ends = items().map(append).collect();
        let mut item_count = 0;
        let list_ends = lists.map(|list| {
            item_count += list.len() as u32;
            item_count
        });
        RecordContent { texts: texts.into(), ends, item_ends, list_ends, author }
    }

    #[inline]
    pub(super) fn text(&self, text: Text) -> &str {
        let number = text as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        // A text is in range unless the record has over 4 GiB.
        self.texts.get(start as usize..self.ends[number] as usize).unwrap_or_default()
    }

    /// A text that is absent if it is empty.
    pub(super) fn optional(&self, text: Text) -> Option<&str> {
        Some(self.text(text)).filter(|text| !text.is_empty())
    }

    pub(super) fn list(&self, list: List) -> Texts<'_> {
        let number = list as usize;
        let first = if number == 0 { 0 } else { self.list_ends[number - 1] as usize };
        let start = if first == 0 { self.ends[TEXTS - 1] } else { self.item_ends[first - 1] };
        Texts { texts: &self.texts, start, ends: &self.item_ends[first..self.list_ends[number] as usize] }
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(&(self.texts.len() as u64).to_le_bytes()).update(self.texts.as_bytes());
        for number in self.ends.iter().chain(&self.list_ends).chain(&*self.item_ends) {
            hasher.update(&number.to_le_bytes());
        }
        if let Some(AuthorNumbers { fid, follower_count, score, is_power_user }) = self.author {
            let score = score.map_or(u64::MAX, f64::to_bits);
            for number in [fid, follower_count, score, is_power_user.into()] {
                hasher.update(&number.to_le_bytes());
            }
        }
    }
}
