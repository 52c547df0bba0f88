//! The catalog's record of one mini app: about twenty texts and a few numbers in one allocation.
//!
//! Invariant: a record never changes, and every text read from it is a slice of its encoding. A catalog holds up to a
//! hundred thousand records and most are never read, so the encoding saves memory at the cost of decoding a field.

use std::{ops::Range, sync::Arc};

use jiff::Timestamp;

use super::{author::Author, encoding::Decoder, layout, texts::Texts};

/// What the catalog says about a mini app. A clone shares the data.
#[derive(Clone, PartialEq)]
pub struct MiniAppRecord {
    pub(super) encoded: Arc<str>,
    /// In microseconds. Not part of the encoding: a refresh changes it in every record and shares the rest.
    pub(super) last_fetched: i64,
    /// In microseconds, at most `last_fetched`. A fetched row says now; the catalog before it may know an earlier time.
    pub(super) first_seen: i64,
}

/// The text of a documentation example with a record `app`.
macro_rules! example {
    ($code:literal) => {
        concat!("\n```\n# fn example(app: &townsquare::discovery::MiniAppRecord) {\n", $code, "\n# }\n```")
    };
}

impl MiniAppRecord {
    /// Adds the record to a hash, without the time of its fetch.
    pub(crate) fn hash_content(&self, hasher: &mut blake3::Hasher) {
        hasher.update(&(self.encoded.len() as u64).to_le_bytes()).update(self.encoded.as_bytes());
        hasher.update(&self.first_seen.to_le_bytes());
    }

    /// Whether two records say the same about an app, whenever they were fetched.
    pub(crate) fn is_same_content(&self, other: &MiniAppRecord) -> bool {
        Arc::ptr_eq(&self.encoded, &other.encoded) || self.encoded == other.encoded
    }

    /// Sets the time at which the app was first seen, unless it is earlier already.
    pub(crate) fn seen_at(&mut self, at: Timestamp) {
        self.first_seen = self.first_seen.min(at.as_microsecond());
    }

    /// Sets the time of the fetch, unless it is later already.
    pub(crate) fn fetched_again(&mut self, at: Timestamp) {
        self.last_fetched = self.last_fetched.max(at.as_microsecond());
    }

    /// The id: the normalised home URL without its scheme.
    #[doc = example!("println!(\"{}\", app.id()); // rodeo.club/app")]
    pub fn id(&self) -> &str {
        self.address(layout::ID)
    }

    /// Host of the home URL.
    #[doc = example!("println!(\"{}\", app.domain()); // rodeo.club")]
    pub fn domain(&self) -> &str {
        self.address(layout::DOMAIN)
    }

    /// Display name, at most 200 characters.
    #[doc = example!("println!(\"{}\", app.name());")]
    #[inline]
    pub fn name(&self) -> &str {
        Decoder::name(&self.encoded)
    }

    /// Description, at most 2,000 characters.
    #[doc = example!("println!(\"{}\", app.description().unwrap_or(\"no description\"));")]
    pub fn description(&self) -> Option<&str> {
        self.optional(layout::DESCRIPTION)
    }

    /// URL of the icon, or else of the app's image; empty if the catalog has neither.
    #[doc = example!("println!(\"<img src=\\\"{}\\\">\", app.icon_url());")]
    pub fn icon_url(&self) -> &str {
        self.text(layout::ICON_URL)
    }

    /// URL that opens the app: http or https.
    #[doc = example!("println!(\"{} at {}\", app.name(), app.home_url());")]
    pub fn home_url(&self) -> &str {
        self.address(layout::HOME_URL)
    }

    /// One of [`CATEGORIES`](crate::discovery::CATEGORIES), or another word of the catalog.
    #[doc = example!("let is_game = app.category() == Some(\"games\");\n# let _ = is_game;")]
    pub fn category(&self) -> Option<&str> {
        self.optional(layout::CATEGORY)
    }

    /// Networks that the app requires. An app without any runs on all networks.
    #[doc = example!("let needs_base = app.networks().any(|network| network == \"base\");\n# let _ = needs_base;")]
    pub fn networks(&self) -> Texts<'_> {
        self.list(layout::NETWORKS)
    }

    /// Search tags.
    #[doc = example!("for tag in app.tags() {\n    println!(\"#{tag}\");\n}")]
    pub fn tags(&self) -> Texts<'_> {
        self.list(layout::TAGS)
    }

    /// The publisher, if the catalog names one.
    #[doc = example!("if let Some(author) = app.author() {\n    println!(\"by @{}\", author.username);\n}")]
    pub fn author(&self) -> Option<Author<'_>> {
        let mut decoder = self.texts();
        decoder.skip_texts(layout::AUTHOR);
        let (username, display_name, pfp_url) = (decoder.text(), decoder.optional_text(), decoder.optional_text());
        Author::decode(username, display_name, pfp_url, &mut decoder)
    }

    /// URLs of screenshots.
    #[doc = example!("println!(\"{} screenshots\", app.screenshots().len());")]
    pub fn screenshots(&self) -> Texts<'_> {
        self.list(layout::SCREENSHOTS)
    }

    /// URL of a wide picture for promotion.
    #[doc = example!("let picture = app.hero_image_url().unwrap_or(app.icon_url());\n# let _ = picture;")]
    pub fn hero_image_url(&self) -> Option<&str> {
        self.optional(layout::HERO_IMAGE_URL)
    }

    /// One line of promotion.
    #[doc = example!("println!(\"{}\", app.tagline().unwrap_or_default());")]
    pub fn tagline(&self) -> Option<&str> {
        self.optional(layout::TAGLINE)
    }

    /// One line of explanation.
    #[doc = example!("println!(\"{}\", app.subtitle().unwrap_or_default());")]
    pub fn subtitle(&self) -> Option<&str> {
        self.optional(layout::SUBTITLE)
    }

    /// Version of the app's manifest.
    #[doc = example!("println!(\"manifest version {}\", app.version());")]
    pub fn version(&self) -> &str {
        self.text(layout::VERSION)
    }

    /// Label of the button that opens the app.
    #[doc = example!("println!(\"[{}]\", app.button_title().unwrap_or(\"Open\"));")]
    pub fn button_title(&self) -> Option<&str> {
        self.optional(layout::BUTTON_TITLE)
    }

    /// URL of the picture for a feed.
    #[doc = example!("println!(\"{}\", app.image_url().unwrap_or_default());")]
    pub fn image_url(&self) -> Option<&str> {
        self.optional(layout::IMAGE_URL)
    }

    /// URL of the picture shown while the app loads.
    #[doc = example!("println!(\"{}\", app.splash_image_url().unwrap_or_default());")]
    pub fn splash_image_url(&self) -> Option<&str> {
        self.optional(layout::SPLASH_IMAGE_URL)
    }

    /// Background colour of the splash image, as the catalog spells it (usually `#rrggbb`).
    #[doc = example!("println!(\"{}\", app.splash_background_color().unwrap_or(\"#ffffff\"));")]
    pub fn splash_background_color(&self) -> Option<&str> {
        self.optional(layout::SPLASH_BACKGROUND_COLOR)
    }

    /// When the record was fetched, to the microsecond.
    #[doc = example!("println!(\"{}\", app.last_fetched());")]
    pub fn last_fetched(&self) -> Timestamp {
        // The value was made from a Timestamp, so it is in range.
        Timestamp::from_microsecond(self.last_fetched).unwrap_or_default()
    }

    /// When the app was first in the catalog of this database, to the microsecond. An app that leaves the catalog and
    /// comes back keeps the time.
    #[doc = example!("println!(\"{}\", app.first_seen());")]
    pub fn first_seen(&self) -> Timestamp {
        // The value was made from a Timestamp, so it is in range.
        Timestamp::from_microsecond(self.first_seen).unwrap_or_default()
    }

    /// Shares the encoding of `earlier` if it is equal, which saves memory.
    pub(crate) fn share(&mut self, earlier: &MiniAppRecord) {
        if self.encoded == earlier.encoded {
            self.encoded = Arc::clone(&earlier.encoded);
        }
    }

    /// One slice of the address text.
    fn address(&self, slice: usize) -> &str {
        let mut decoder = Decoder::new(&self.encoded);
        let slices = decode_slices(&mut decoder);
        &decoder.text()[slices[slice].clone()]
    }

    /// A decoder at the texts.
    fn texts(&self) -> Decoder<'_> {
        let mut decoder = Decoder::new(&self.encoded);
        decoder.skip_numbers(2 * layout::SLICES);
        decoder
    }

    fn text(&self, index: usize) -> &str {
        let mut decoder = self.texts();
        decoder.skip_texts(index);
        decoder.text()
    }

    fn optional(&self, index: usize) -> Option<&str> {
        let mut decoder = self.texts();
        decoder.skip_texts(index);
        decoder.optional_text()
    }

    fn list(&self, index: usize) -> Texts<'_> {
        let mut decoder = self.texts();
        decoder.skip_texts(layout::TEXTS);
        decoder.skip_numbers(layout::AUTHOR_NUMBERS);
        for _ in 0..index {
            let len = decoder.number() as usize;
            decoder.skip_texts(len);
        }
        Texts { len: decoder.number() as usize, rest: decoder }
    }
}

/// Decodes the slices of the address text: home URL, id and domain.
pub(super) fn decode_slices(decoder: &mut Decoder<'_>) -> [Range<usize>; layout::SLICES] {
    std::array::from_fn(|_| {
        let start = decoder.number() as usize;
        start..start + decoder.number() as usize
    })
}
