//! The catalog's record of one mini app.
//!
//! Invariant: a record never changes. Its clones, and the records of later catalogs that say the same, share its content.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{author::Author, content::RecordContent, texts::Texts};

/// What the catalog says about a mini app. A clone shares the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MiniAppRecord {
    #[serde(flatten, with = "shared")]
    pub(super) content: Arc<RecordContent>,
    /// To the microsecond. Not part of the content: a refresh changes it in every record and shares the rest.
    last_fetched: Timestamp,
    /// To the microsecond, at most `last_fetched`. A fetched row says now; the catalog before it may know an earlier time.
    first_seen: Timestamp,
}

/// Shared content in JSON: the content itself.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RecordContent;

    pub(super) fn serialize<S: Serializer>(content: &Arc<RecordContent>, serializer: S) -> Result<S::Ok, S::Error> {
        (**content).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<RecordContent>, D::Error> {
        RecordContent::deserialize(deserializer).map(Arc::new)
    }
}

/// The text of a documentation example with a record `app`.
macro_rules! example {
    ($code:literal) => {
        concat!("\n```\n# fn example(app: &townsquare::discovery::MiniAppRecord) {\n", $code, "\n# }\n```")
    };
}

impl MiniAppRecord {
    /// The record of an app that was fetched, and first seen, at a time.
    pub(crate) fn new(content: RecordContent, at: Timestamp) -> MiniAppRecord {
        let at = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
        MiniAppRecord { content: Arc::new(content), last_fetched: at, first_seen: at }
    }

    /// Adds the record to a hash, without the time of its fetch.
    pub(crate) fn hash_content(&self, hasher: &mut blake3::Hasher) {
        serde_json::to_writer(&mut *hasher, &*self.content)
            .expect("texts and numbers become JSON; a hash takes all bytes");
        hasher.update(&self.first_seen.as_microsecond().to_le_bytes());
    }

    /// Whether two records say the same about an app, whenever they were fetched.
    pub(crate) fn is_same_content(&self, other: &MiniAppRecord) -> bool {
        Arc::ptr_eq(&self.content, &other.content) || self.content == other.content
    }

    /// Sets the time at which the app was first seen, unless it is earlier already.
    pub(crate) fn seen_at(&mut self, at: Timestamp) {
        self.first_seen = self.first_seen.min(at);
    }

    /// Sets the time of the fetch, unless it is later already.
    pub(crate) fn fetched_again(&mut self, at: Timestamp) {
        self.last_fetched = self.last_fetched.max(at);
    }

    /// The id: the normalised home URL without its scheme.
    #[doc = example!("println!(\"{}\", app.id()); // rodeo.club/app")]
    pub fn id(&self) -> &str {
        &self.content.id
    }

    /// Host of the home URL.
    #[doc = example!("println!(\"{}\", app.domain()); // rodeo.club")]
    pub fn domain(&self) -> &str {
        &self.content.domain
    }

    /// Display name, at most 200 characters.
    #[doc = example!("println!(\"{}\", app.name());")]
    #[inline]
    pub fn name(&self) -> &str {
        &self.content.name
    }

    /// Description, at most 2,000 characters.
    #[doc = example!("println!(\"{}\", app.description().unwrap_or(\"no description\"));")]
    pub fn description(&self) -> Option<&str> {
        self.content.description.as_deref()
    }

    /// URL of the icon, or else of the app's image; empty if the catalog has neither.
    #[doc = example!("println!(\"<img src=\\\"{}\\\">\", app.icon_url());")]
    pub fn icon_url(&self) -> &str {
        &self.content.icon_url
    }

    /// URL that opens the app: http or https.
    #[doc = example!("println!(\"{} at {}\", app.name(), app.home_url());")]
    pub fn home_url(&self) -> &str {
        &self.content.home_url
    }

    /// One of [`CATEGORIES`](crate::discovery::CATEGORIES), or another word of the catalog.
    #[doc = example!("let is_game = app.category() == Some(\"games\");\n# let _ = is_game;")]
    pub fn category(&self) -> Option<&str> {
        self.content.category.as_deref()
    }

    /// Networks that the app requires. An app without any runs on all networks.
    #[doc = example!("let needs_base = app.networks().any(|network| network == \"base\");\n# let _ = needs_base;")]
    pub fn networks(&self) -> Texts<'_> {
        Texts { texts: &self.content.networks }
    }

    /// Search tags.
    #[doc = example!("for tag in app.tags() {\n    println!(\"#{tag}\");\n}")]
    pub fn tags(&self) -> Texts<'_> {
        Texts { texts: &self.content.tags }
    }

    /// The publisher, if the catalog names one.
    #[doc = example!("if let Some(author) = app.author() {\n    println!(\"by @{}\", author.username);\n}")]
    pub fn author(&self) -> Option<Author<'_>> {
        self.content.author.as_ref().map(Author::of)
    }

    /// URLs of screenshots.
    #[doc = example!("println!(\"{} screenshots\", app.screenshots().len());")]
    pub fn screenshots(&self) -> Texts<'_> {
        Texts { texts: &self.content.screenshots }
    }

    /// URL of a wide picture for promotion.
    #[doc = example!("let picture = app.hero_image_url().unwrap_or(app.icon_url());\n# let _ = picture;")]
    pub fn hero_image_url(&self) -> Option<&str> {
        self.content.hero_image_url.as_deref()
    }

    /// One line of promotion.
    #[doc = example!("println!(\"{}\", app.tagline().unwrap_or_default());")]
    pub fn tagline(&self) -> Option<&str> {
        self.content.tagline.as_deref()
    }

    /// One line of explanation.
    #[doc = example!("println!(\"{}\", app.subtitle().unwrap_or_default());")]
    pub fn subtitle(&self) -> Option<&str> {
        self.content.subtitle.as_deref()
    }

    /// Version of the app's manifest.
    #[doc = example!("println!(\"manifest version {}\", app.version());")]
    pub fn version(&self) -> &str {
        &self.content.version
    }

    /// Label of the button that opens the app.
    #[doc = example!("println!(\"[{}]\", app.button_title().unwrap_or(\"Open\"));")]
    pub fn button_title(&self) -> Option<&str> {
        self.content.button_title.as_deref()
    }

    /// URL of the picture for a feed.
    #[doc = example!("println!(\"{}\", app.image_url().unwrap_or_default());")]
    pub fn image_url(&self) -> Option<&str> {
        self.content.image_url.as_deref()
    }

    /// URL of the picture shown while the app loads.
    #[doc = example!("println!(\"{}\", app.splash_image_url().unwrap_or_default());")]
    pub fn splash_image_url(&self) -> Option<&str> {
        self.content.splash_image_url.as_deref()
    }

    /// Background colour of the splash image, as the catalog spells it (usually `#rrggbb`).
    #[doc = example!("println!(\"{}\", app.splash_background_color().unwrap_or(\"#ffffff\"));")]
    pub fn splash_background_color(&self) -> Option<&str> {
        self.content.splash_background_color.as_deref()
    }

    /// When the record was fetched, to the microsecond.
    #[doc = example!("println!(\"{}\", app.last_fetched());")]
    pub fn last_fetched(&self) -> Timestamp {
        self.last_fetched
    }

    /// When the app was first in the catalog of this database, to the microsecond. An app that leaves the catalog and
    /// comes back keeps the time.
    #[doc = example!("println!(\"{}\", app.first_seen());")]
    pub fn first_seen(&self) -> Timestamp {
        self.first_seen
    }

    /// Shares the content of `earlier` if it is equal, which saves memory.
    pub(crate) fn share(&mut self, earlier: &MiniAppRecord) {
        if self.content == earlier.content {
            self.content = Arc::clone(&earlier.content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::content::AuthorContent, *};

    fn full() -> RecordContent {
        RecordContent {
            id: "a.example/app".into(),
            domain: "a.example".into(),
            name: "Näme".into(),
            description: Some("description".into()),
            icon_url: "icon".into(),
            home_url: "https://a.example/app/".into(),
            category: Some("category".into()),
            networks: ["one".into(), "two".into()].into(),
            tags: ["tag".into(), "".into(), "other".into()].into(),
            author: Some(AuthorContent {
                fid: 7,
                username: "user".into(),
                display_name: Some("display".into()),
                pfp_url: Some("pfp".into()),
                follower_count: 8,
                score: Some(0.87),
                is_power_user: true,
            }),
            screenshots: ["shot".into()].into(),
            hero_image_url: Some("hero".into()),
            tagline: Some("tagline".into()),
            subtitle: Some("subtitle".into()),
            version: "version".into(),
            button_title: Some("button".into()),
            image_url: Some("image".into()),
            splash_image_url: Some("splash".into()),
            splash_background_color: Some("colour".into()),
        }
    }

    #[test]
    fn a_record_survives_json() {
        let at = Timestamp::from_microsecond(-5).expect("a time");
        for content in [RecordContent::default(), full()] {
            let mut record = MiniAppRecord::new(content, at);
            record.seen_at(Timestamp::from_microsecond(-7).expect("a time"));
            let json = serde_json::to_string(&record).expect("JSON");
            assert_eq!(serde_json::from_str::<MiniAppRecord>(&json).expect("a record"), record);
        }
    }

    #[test]
    fn every_accessor_returns_its_field() {
        let at = Timestamp::from_microsecond(-5).expect("a time");
        let record = MiniAppRecord::new(full(), at);
        let fields = full();
        for (text, original) in [
            (record.id(), &fields.id),
            (record.domain(), &fields.domain),
            (record.name(), &fields.name),
            (record.icon_url(), &fields.icon_url),
            (record.home_url(), &fields.home_url),
            (record.version(), &fields.version),
        ] {
            assert_eq!(text, &**original);
        }
        for (decoded, original) in [
            (record.description(), &fields.description),
            (record.category(), &fields.category),
            (record.hero_image_url(), &fields.hero_image_url),
            (record.tagline(), &fields.tagline),
            (record.subtitle(), &fields.subtitle),
            (record.button_title(), &fields.button_title),
            (record.image_url(), &fields.image_url),
            (record.splash_image_url(), &fields.splash_image_url),
            (record.splash_background_color(), &fields.splash_background_color),
        ] {
            assert_eq!(decoded, original.as_deref());
        }
        let lists: [Texts<'_>; 3] = [record.networks(), record.tags(), record.screenshots()];
        for (decoded, original) in lists.into_iter().zip([&fields.networks, &fields.tags, &fields.screenshots]) {
            assert_eq!(decoded.len(), original.len());
            assert!(decoded.eq(original.iter().map(AsRef::as_ref)));
        }
        assert_eq!((record.last_fetched(), record.first_seen()), (at, at));
        assert_eq!(record.author(), fields.author.as_ref().map(Author::of));
        assert_eq!(MiniAppRecord::new(RecordContent::default(), at).author(), None);
    }
}
