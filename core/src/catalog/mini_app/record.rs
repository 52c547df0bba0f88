//! The catalog's record of one mini app.
//!
//! Invariant: a record never changes. Its clones, and the records of later catalogs that say the same, share its content.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    author::Author,
    content::{List, RecordContent, Text},
    texts::Texts,
};

/// What the catalog says about a mini app. A clone shares the data.
#[derive(Clone, PartialEq)]
pub struct MiniAppRecord {
    pub(super) content: Arc<RecordContent>,
    /// In microseconds. Not part of the content: a refresh changes it in every record and shares the rest.
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
        self.content.hash(hasher);
        hasher.update(&self.first_seen.to_le_bytes());
    }

    /// Whether two records say the same about an app, whenever they were fetched.
    pub(crate) fn is_same_content(&self, other: &MiniAppRecord) -> bool {
        Arc::ptr_eq(&self.content, &other.content) || self.content == other.content
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
        self.content.text(Text::Id)
    }

    /// Host of the home URL.
    #[doc = example!("println!(\"{}\", app.domain()); // rodeo.club")]
    pub fn domain(&self) -> &str {
        self.content.text(Text::Domain)
    }

    /// Display name, at most 200 characters.
    #[doc = example!("println!(\"{}\", app.name());")]
    #[inline]
    pub fn name(&self) -> &str {
        self.content.text(Text::Name)
    }

    /// Description, at most 2,000 characters.
    #[doc = example!("println!(\"{}\", app.description().unwrap_or(\"no description\"));")]
    pub fn description(&self) -> Option<&str> {
        self.content.optional(Text::Description)
    }

    /// URL of the icon, or else of the app's image; empty if the catalog has neither.
    #[doc = example!("println!(\"<img src=\\\"{}\\\">\", app.icon_url());")]
    pub fn icon_url(&self) -> &str {
        self.content.text(Text::IconUrl)
    }

    /// URL that opens the app: http or https.
    #[doc = example!("println!(\"{} at {}\", app.name(), app.home_url());")]
    pub fn home_url(&self) -> &str {
        self.content.text(Text::HomeUrl)
    }

    /// One of [`CATEGORIES`](crate::discovery::CATEGORIES), or another word of the catalog.
    #[doc = example!("let is_game = app.category() == Some(\"games\");\n# let _ = is_game;")]
    pub fn category(&self) -> Option<&str> {
        self.content.optional(Text::Category)
    }

    /// Networks that the app requires. An app without any runs on all networks.
    #[doc = example!("let needs_base = app.networks().any(|network| network == \"base\");\n# let _ = needs_base;")]
    pub fn networks(&self) -> Texts<'_> {
        self.content.list(List::Networks)
    }

    /// Search tags.
    #[doc = example!("for tag in app.tags() {\n    println!(\"#{tag}\");\n}")]
    pub fn tags(&self) -> Texts<'_> {
        self.content.list(List::Tags)
    }

    /// The publisher, if the catalog names one.
    #[doc = example!("if let Some(author) = app.author() {\n    println!(\"by @{}\", author.username);\n}")]
    pub fn author(&self) -> Option<Author<'_>> {
        Author::of(&self.content)
    }

    /// URLs of screenshots.
    #[doc = example!("println!(\"{} screenshots\", app.screenshots().len());")]
    pub fn screenshots(&self) -> Texts<'_> {
        self.content.list(List::Screenshots)
    }

    /// URL of a wide picture for promotion.
    #[doc = example!("let picture = app.hero_image_url().unwrap_or(app.icon_url());\n# let _ = picture;")]
    pub fn hero_image_url(&self) -> Option<&str> {
        self.content.optional(Text::HeroImageUrl)
    }

    /// One line of promotion.
    #[doc = example!("println!(\"{}\", app.tagline().unwrap_or_default());")]
    pub fn tagline(&self) -> Option<&str> {
        self.content.optional(Text::Tagline)
    }

    /// One line of explanation.
    #[doc = example!("println!(\"{}\", app.subtitle().unwrap_or_default());")]
    pub fn subtitle(&self) -> Option<&str> {
        self.content.optional(Text::Subtitle)
    }

    /// Version of the app's manifest.
    #[doc = example!("println!(\"manifest version {}\", app.version());")]
    pub fn version(&self) -> &str {
        self.content.text(Text::Version)
    }

    /// Label of the button that opens the app.
    #[doc = example!("println!(\"[{}]\", app.button_title().unwrap_or(\"Open\"));")]
    pub fn button_title(&self) -> Option<&str> {
        self.content.optional(Text::ButtonTitle)
    }

    /// URL of the picture for a feed.
    #[doc = example!("println!(\"{}\", app.image_url().unwrap_or_default());")]
    pub fn image_url(&self) -> Option<&str> {
        self.content.optional(Text::ImageUrl)
    }

    /// URL of the picture shown while the app loads.
    #[doc = example!("println!(\"{}\", app.splash_image_url().unwrap_or_default());")]
    pub fn splash_image_url(&self) -> Option<&str> {
        self.content.optional(Text::SplashImageUrl)
    }

    /// Background colour of the splash image, as the catalog spells it (usually `#rrggbb`).
    #[doc = example!("println!(\"{}\", app.splash_background_color().unwrap_or(\"#ffffff\"));")]
    pub fn splash_background_color(&self) -> Option<&str> {
        self.content.optional(Text::SplashBackgroundColor)
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

    /// Shares the content of `earlier` if it is equal, which saves memory.
    pub(crate) fn share(&mut self, earlier: &MiniAppRecord) {
        if self.content == earlier.content {
            self.content = Arc::clone(&earlier.content);
        }
    }
}
