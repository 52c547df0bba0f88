//! The catalog's record of one app: some twenty texts and a few numbers, packed.
//!
//! Invariant: a record never changes, and a field read from it is a view into its one allocation. A catalog keeps a
//! hundred thousand of these, most of them never asked for: what counts is how little room they take.

use std::{fmt, ops::Range, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;

use super::packed::Unpacker;

/// What the catalog says about a mini app. A clone shares it.
#[derive(Clone, PartialEq)]
pub struct MiniAppRecord {
    pub(super) packed: Arc<str>,
    /// In microseconds. Beside the text: it is all that a refresh changes in most records, and the rest is shared.
    pub(super) last_fetched: i64,
}

/// Where in the packed record things are, the name in front: [`Fields`](super::fields::Fields) packs them in this order.
pub(super) mod place {
    /// Parts of the first text, each a first byte and a length.
    pub(in super::super) const PARTS: usize = 3;
    pub(super) const HOME_URL: usize = 0;
    pub(super) const ID: usize = 1;
    pub(super) const DOMAIN: usize = 2;

    /// Texts behind them; the one with those parts is the first.
    pub(super) const TEXTS: usize = 15;
    pub(super) const DESCRIPTION: usize = 1;
    pub(super) const ICON_URL: usize = 2;
    pub(super) const CATEGORY: usize = 3;
    pub(super) const HERO_IMAGE_URL: usize = 4;
    pub(super) const TAGLINE: usize = 5;
    pub(super) const SUBTITLE: usize = 6;
    pub(super) const VERSION: usize = 7;
    pub(super) const BUTTON_TITLE: usize = 8;
    pub(super) const IMAGE_URL: usize = 9;
    pub(super) const SPLASH_IMAGE_URL: usize = 10;
    pub(super) const SPLASH_BACKGROUND_COLOR: usize = 11;
    /// The author's username, display name and picture.
    pub(super) const AUTHOR: usize = 12;

    /// Numbers behind those, the author's.
    pub(super) const AUTHOR_NUMBERS: usize = 6;

    /// Lists behind those.
    pub(super) const NETWORKS: usize = 0;
    pub(super) const TAGS: usize = 1;
    pub(super) const SCREENSHOTS: usize = 2;
}

/// The publisher of a mini app: a view into its record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Author<'a> {
    /// Farcaster id.
    pub fid: u64,
    /// Handle, without `@`.
    pub username: &'a str,
    /// Name as shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<&'a str>,
    /// URL of the profile picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfp_url: Option<&'a str>,
    /// How many follow the author.
    pub follower_count: u64,
    /// Upstream's quality score, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The power badge of older bodies; false without one.
    pub is_power_user: bool,
}

impl MiniAppRecord {
    /// The normalised home URL without its scheme: one app, one id.
    pub fn id(&self) -> &str {
        self.home(place::ID)
    }

    /// Host of the home URL.
    pub fn domain(&self) -> &str {
        self.home(place::DOMAIN)
    }

    /// Display name, at most 200 characters.
    #[inline]
    pub fn name(&self) -> &str {
        Unpacker::first(&self.packed)
    }

    /// At most 2,000 characters.
    pub fn description(&self) -> Option<&str> {
        self.optional(place::DESCRIPTION)
    }

    /// Icon or, without one, the app's image; empty when the catalog has neither.
    pub fn icon_url(&self) -> &str {
        self.text(place::ICON_URL)
    }

    /// Where the app is opened: http or https.
    pub fn home_url(&self) -> &str {
        self.home(place::HOME_URL)
    }

    /// One of the upstream's categories, or the row's own word.
    pub fn category(&self) -> Option<&str> {
        self.optional(place::CATEGORY)
    }

    /// Names of the networks the app asks for; empty when it names none and so runs on any.
    pub fn networks(&self) -> Texts<'_> {
        self.list(place::NETWORKS)
    }

    /// Search tags.
    pub fn tags(&self) -> Texts<'_> {
        self.list(place::TAGS)
    }

    /// Who published it, when the catalog says so.
    pub fn author(&self) -> Option<Author<'_>> {
        let mut packed = self.texts();
        packed.skip_texts(place::AUTHOR);
        let texts = [packed.text(), packed.text(), packed.text()];
        Author::unpack(texts, &mut packed)
    }

    /// URLs of screenshots.
    pub fn screenshots(&self) -> Texts<'_> {
        self.list(place::SCREENSHOTS)
    }

    /// URL of a wide picture.
    pub fn hero_image_url(&self) -> Option<&str> {
        self.optional(place::HERO_IMAGE_URL)
    }

    /// A line of promotion.
    pub fn tagline(&self) -> Option<&str> {
        self.optional(place::TAGLINE)
    }

    /// A line of explanation.
    pub fn subtitle(&self) -> Option<&str> {
        self.optional(place::SUBTITLE)
    }

    /// Version of the app's manifest.
    pub fn version(&self) -> &str {
        self.text(place::VERSION)
    }

    /// The text of the button that opens the app.
    pub fn button_title(&self) -> Option<&str> {
        self.optional(place::BUTTON_TITLE)
    }

    /// URL of the picture shown in a feed.
    pub fn image_url(&self) -> Option<&str> {
        self.optional(place::IMAGE_URL)
    }

    /// URL of the picture shown while the app loads.
    pub fn splash_image_url(&self) -> Option<&str> {
        self.optional(place::SPLASH_IMAGE_URL)
    }

    /// Colour behind that picture, as the catalog has it (`#rrggbb`).
    pub fn splash_background_color(&self) -> Option<&str> {
        self.optional(place::SPLASH_BACKGROUND_COLOR)
    }

    /// When this record was fetched, to the microsecond.
    pub fn last_fetched(&self) -> Timestamp {
        // Only what was a time is kept.
        Timestamp::from_microsecond(self.last_fetched).unwrap_or_default()
    }

    /// Takes over the text of an earlier record that says the same, so that there is one of it.
    pub(crate) fn share(&mut self, earlier: &MiniAppRecord) {
        if self.packed == earlier.packed {
            self.packed = Arc::clone(&earlier.packed);
        }
    }

    fn home(&self, part: usize) -> &str {
        let mut packed = Unpacker::new(&self.packed);
        let parts = unpack_parts(&mut packed);
        &packed.text()[parts[part].clone()]
    }

    fn texts(&self) -> Unpacker<'_> {
        let mut packed = Unpacker::new(&self.packed);
        packed.skip_numbers(2 * place::PARTS);
        packed
    }

    fn text(&self, place: usize) -> &str {
        let mut packed = self.texts();
        packed.skip_texts(place);
        packed.text()
    }

    fn optional(&self, place: usize) -> Option<&str> {
        present(self.text(place))
    }

    fn numbers(&self) -> Unpacker<'_> {
        let mut packed = self.texts();
        packed.skip_texts(place::TEXTS);
        packed
    }

    fn list(&self, place: usize) -> Texts<'_> {
        let mut packed = self.numbers();
        packed.skip_numbers(place::AUTHOR_NUMBERS);
        for _ in 0..place {
            let len = packed.number() as usize;
            packed.skip_texts(len);
        }
        Texts { len: packed.number() as usize, rest: packed }
    }
}

impl<'a> Author<'a> {
    pub(super) fn unpack(
        [username, display_name, pfp_url]: [&'a str; 3],
        packed: &mut Unpacker<'_>,
    ) -> Option<Author<'a>> {
        let numbers: [u64; place::AUTHOR_NUMBERS] = std::array::from_fn(|_| packed.number());
        let [is_known, fid, follower_count, has_score, score, is_power_user] = numbers;
        (is_known > 0).then(|| Author {
            fid,
            username,
            display_name: present(display_name),
            pfp_url: present(pfp_url),
            follower_count,
            score: (has_score > 0).then(|| f64::from_bits(score)),
            is_power_user: is_power_user > 0,
        })
    }
}

/// The home URL, the id and the domain, as parts of the first text.
pub(super) fn unpack_parts(packed: &mut Unpacker<'_>) -> [Range<usize>; place::PARTS] {
    std::array::from_fn(|_| {
        let start = packed.number() as usize;
        start..start + packed.number() as usize
    })
}

/// An absent text is packed as an empty one.
pub(super) fn present(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A list of texts of a record: an iterator over views into it.
#[derive(Clone, Copy, Default)]
pub struct Texts<'a> {
    rest: Unpacker<'a>,
    len: usize,
}

impl<'a> Texts<'a> {
    /// Whether there is none (left).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.len = self.len.checked_sub(1)?;
        Some(self.rest.text())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Texts<'_> {}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
