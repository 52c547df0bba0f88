//! The fields of a record: a record is made from them, shown and stored through them.
//!
//! Invariant: a record made from fields gives the same fields, and equal fields make equal records. An absent text and an
//! empty one are the same.

use std::{borrow::Cow, fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    author::Author,
    content::{AuthorNumbers, RecordContent, TEXTS},
    record::MiniAppRecord,
};

/// The fields of a [`MiniAppRecord`], documented there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordFields<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) domain: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) icon_url: Cow<'a, str>,
    pub(crate) home_url: Cow<'a, str>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) networks: Vec<Cow<'a, str>>,
    pub(crate) tags: Vec<Cow<'a, str>>,
    pub(crate) author: Option<AuthorFields<'a>>,
    pub(crate) screenshots: Vec<Cow<'a, str>>,
    pub(crate) hero_image_url: Option<Cow<'a, str>>,
    pub(crate) tagline: Option<Cow<'a, str>>,
    pub(crate) subtitle: Option<Cow<'a, str>>,
    pub(crate) version: Cow<'a, str>,
    pub(crate) button_title: Option<Cow<'a, str>>,
    pub(crate) image_url: Option<Cow<'a, str>>,
    pub(crate) splash_image_url: Option<Cow<'a, str>>,
    pub(crate) splash_background_color: Option<Cow<'a, str>>,
    pub(crate) last_fetched: Timestamp,
    /// Records stored by earlier libraries have none: then it is `last_fetched`.
    #[serde(default = "unknown_time")]
    pub(crate) first_seen: Timestamp,
}

/// Later than every fetch: a record's `first_seen` is at most its `last_fetched`.
fn unknown_time() -> Timestamp {
    Timestamp::MAX
}

/// The fields of an [`Author`], documented there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthorFields<'a> {
    pub(crate) fid: u64,
    pub(crate) username: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pfp_url: Option<Cow<'a, str>>,
    pub(crate) follower_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    pub(crate) is_power_user: bool,
}

impl From<&RecordFields<'_>> for MiniAppRecord {
    fn from(fields: &RecordFields<'_>) -> MiniAppRecord {
        let author = fields.author.as_ref();
        // In the order of `Text`.
        let fixed: [&str; TEXTS] = [
            &fields.name,
            &fields.id,
            &fields.domain,
            &fields.home_url,
            fields.description.as_deref().unwrap_or_default(),
            &fields.icon_url,
            fields.category.as_deref().unwrap_or_default(),
            fields.hero_image_url.as_deref().unwrap_or_default(),
            fields.tagline.as_deref().unwrap_or_default(),
            fields.subtitle.as_deref().unwrap_or_default(),
            &fields.version,
            fields.button_title.as_deref().unwrap_or_default(),
            fields.image_url.as_deref().unwrap_or_default(),
            fields.splash_image_url.as_deref().unwrap_or_default(),
            fields.splash_background_color.as_deref().unwrap_or_default(),
            author.map_or("", |author| &author.username),
            author.and_then(|author| author.display_name.as_deref()).unwrap_or_default(),
            author.and_then(|author| author.pfp_url.as_deref()).unwrap_or_default(),
        ];
        // In the order of `List`.
        let lists = [&fields.networks[..], &fields.tags, &fields.screenshots];
        let numbers = author.map(|author| AuthorNumbers {
            fid: author.fid,
            follower_count: author.follower_count,
            score: author.score,
            is_power_user: author.is_power_user,
        });
        let content = Arc::new(RecordContent::new(fixed, lists, numbers));
        let last_fetched = fields.last_fetched.as_microsecond();
        let first_seen = fields.first_seen.as_microsecond().min(last_fetched);
        MiniAppRecord { content, last_fetched, first_seen }
    }
}

impl<'a> From<&'a MiniAppRecord> for RecordFields<'a> {
    fn from(record: &'a MiniAppRecord) -> RecordFields<'a> {
        RecordFields {
            id: record.id().into(),
            domain: record.domain().into(),
            name: record.name().into(),
            description: record.description().map(Cow::Borrowed),
            icon_url: record.icon_url().into(),
            home_url: record.home_url().into(),
            category: record.category().map(Cow::Borrowed),
            networks: record.networks().map(Cow::Borrowed).collect(),
            tags: record.tags().map(Cow::Borrowed).collect(),
            author: record.author().map(AuthorFields::from),
            screenshots: record.screenshots().map(Cow::Borrowed).collect(),
            hero_image_url: record.hero_image_url().map(Cow::Borrowed),
            tagline: record.tagline().map(Cow::Borrowed),
            subtitle: record.subtitle().map(Cow::Borrowed),
            version: record.version().into(),
            button_title: record.button_title().map(Cow::Borrowed),
            image_url: record.image_url().map(Cow::Borrowed),
            splash_image_url: record.splash_image_url().map(Cow::Borrowed),
            splash_background_color: record.splash_background_color().map(Cow::Borrowed),
            last_fetched: record.last_fetched(),
            first_seen: record.first_seen(),
        }
    }
}

impl<'a> From<Author<'a>> for AuthorFields<'a> {
    fn from(author: Author<'a>) -> AuthorFields<'a> {
        AuthorFields {
            fid: author.fid,
            username: author.username.into(),
            display_name: author.display_name.map(Cow::Borrowed),
            pfp_url: author.pfp_url.map(Cow::Borrowed),
            follower_count: author.follower_count,
            score: author.score,
            is_power_user: author.is_power_user,
        }
    }
}

impl fmt::Debug for MiniAppRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MiniAppRecord").field(&RecordFields::from(self)).finish()
    }
}

impl Serialize for MiniAppRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RecordFields::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MiniAppRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MiniAppRecord, D::Error> {
        RecordFields::deserialize(deserializer).map(|fields| MiniAppRecord::from(&fields))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::texts::Texts, *};

    fn full() -> RecordFields<'static> {
        RecordFields {
            id: "a.example/app".into(),
            domain: "a.example".into(),
            name: "Näme".into(),
            description: Some("description".into()),
            icon_url: "icon".into(),
            home_url: "https://a.example/app/".into(),
            category: Some("category".into()),
            networks: vec!["one".into(), "two".into()],
            tags: vec!["tag".into(), "".into(), "other".into()],
            author: Some(AuthorFields {
                fid: 7,
                username: "user".into(),
                display_name: Some("display".into()),
                pfp_url: Some("pfp".into()),
                follower_count: 8,
                score: Some(0.87),
                is_power_user: true,
            }),
            screenshots: vec!["shot".into()],
            hero_image_url: Some("hero".into()),
            tagline: Some("tagline".into()),
            subtitle: Some("subtitle".into()),
            version: "version".into(),
            button_title: Some("button".into()),
            image_url: Some("image".into()),
            splash_image_url: Some("splash".into()),
            splash_background_color: Some("colour".into()),
            last_fetched: Timestamp::from_microsecond(-5).expect("a time"),
            first_seen: Timestamp::from_microsecond(-7).expect("a time"),
        }
    }

    #[test]
    fn fields_survive_a_record_and_json() {
        let elsewhere = RecordFields { id: "b.example".into(), domain: "c.example".into(), ..full() };
        for fields in [RecordFields::default(), full(), elsewhere] {
            let record = MiniAppRecord::from(&fields);
            assert_eq!(RecordFields::from(&record), fields);
            assert_eq!(MiniAppRecord::from(&RecordFields::from(&record)), record);
            let json = serde_json::to_string(&record).expect("JSON");
            assert_eq!(serde_json::from_str::<MiniAppRecord>(&json).expect("a record"), record);
        }
    }

    #[test]
    fn every_accessor_returns_its_field() {
        let fields = full();
        let record = MiniAppRecord::from(&fields);
        let texts =
            [record.id(), record.domain(), record.name(), record.icon_url(), record.home_url(), record.version()];
        assert_eq!(
            texts,
            [&fields.id, &fields.domain, &fields.name, &fields.icon_url, &fields.home_url, &fields.version]
        );
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
            assert_eq!(
                (decoded.len(), decoded.collect::<Vec<_>>()),
                (original.len(), original.iter().map(AsRef::as_ref).collect())
            );
        }
        assert_eq!((record.last_fetched(), record.first_seen()), (fields.last_fetched, fields.first_seen));
        assert_eq!(record.author().map(AuthorFields::from), fields.author);
        assert_eq!(MiniAppRecord::from(&RecordFields::default()).author(), None);
    }
}
