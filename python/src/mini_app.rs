//! The records `MiniApp`, `Author` and `Engagement`, and lists of mini apps (SPEC 2.1).
//!
//! Invariant: a `MiniApp` and its `Author` share the catalog's record, so that a list of mini apps copies no text.

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};
use townsquare::discovery::{MiniAppRecord, MiniApps};

use crate::{
    argument::TextArg,
    json::serialized,
    record::{PyTime, record},
    run::MethodResult,
};

record! {
    /// A mini app of the catalog, with its rank in the order it was listed in.
    MiniApp(townsquare::discovery::MiniApp) [] as app, hash app.id() => {
        /// Identifies the app: its home URL without the scheme.
        id: app.id(),
        /// Host of the home URL.
        domain: app.domain(),
        /// Display name, at most 200 characters.
        name: app.name(),
        /// Description, at most 2,000 characters.
        description: app.description(),
        /// URL of the icon or, without one, of the app's image; empty when the catalog has neither.
        icon_url: app.icon_url(),
        /// URL that opens the app: http or https.
        home_url: app.home_url(),
        /// One of the catalog's categories, or the app's own text.
        category: app.category(),
        /// Networks that the app requires; empty when it runs on any.
        networks: app.networks().collect::<Vec<_>>(),
        /// Search tags.
        tags: app.tags().collect::<Vec<_>>(),
        /// The publisher, if the catalog names one.
        author: AppWithAuthor::of(app).map(Author),
        /// Followers and trending rank.
        engagement: Engagement(app.engagement()),
        /// URLs of screenshots.
        screenshots: app.screenshots().collect::<Vec<_>>(),
        /// URL of a wide image.
        hero_image_url: app.hero_image_url(),
        /// Promotional line.
        tagline: app.tagline(),
        /// Explanatory line.
        subtitle: app.subtitle(),
        /// Version of the app's manifest.
        version: app.version(),
        /// The text of the button that opens the app.
        button_title: app.button_title(),
        /// URL of the image shown in a feed.
        image_url: app.image_url(),
        /// URL of the image shown while the app loads.
        splash_image_url: app.splash_image_url(),
        /// Colour behind the splash image: `#rrggbb`.
        splash_background_color: app.splash_background_color(),
        /// When this record was fetched, UTC.
        last_fetched: PyTime(app.last_fetched()),
        /// When the app was first in the catalog, UTC.
        first_seen: PyTime(app.first_seen()),
    }
    also {
        /// The words of the app that match a search query, by field.
        fn highlights(&self, query: TextArg) -> PyResult<Vec<Highlight>> {
            let query = query.value("query").unwrap_or_default();
            Ok(self.0.highlights(&query).into_iter().map(Highlight).collect())
        }

        /// The endpoint's JSON shape, camelCase.
        fn to_dict<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
            serialized(py, &self.0)
        }

        /// HTML for a notebook: a card.
        fn _repr_html_<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            static CARD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            CARD.import(this.py(), "townsquare.notebook", "card")?.call1((this,))
        }
    }
}

/// The record of an app that has an author.
#[derive(Clone)]
pub(crate) struct AppWithAuthor(MiniAppRecord);

impl AppWithAuthor {
    fn of(app: &MiniAppRecord) -> Option<AppWithAuthor> {
        app.author().map(|_| AppWithAuthor(app.clone()))
    }

    /// Reads a field of the author. Never `None`: the record has an author.
    fn read<'a, T>(&'a self, field: impl FnOnce(townsquare::discovery::Author<'a>) -> T) -> Option<T> {
        self.0.author().map(field)
    }
}

impl PartialEq for AppWithAuthor {
    fn eq(&self, other: &AppWithAuthor) -> bool {
        self.0.author() == other.0.author()
    }
}

record! {
    /// The publisher of a mini app.
    Author(AppWithAuthor) [] as author, hash author.read(|author| author.fid) => {
        /// Farcaster id.
        fid: author.read(|author| author.fid),
        /// Handle, without `@`.
        username: author.read(|author| author.username),
        /// Display name.
        display_name: author.read(|author| author.display_name),
        /// URL of the profile picture.
        pfp_url: author.read(|author| author.pfp_url),
        /// How many followers the author has.
        follower_count: author.read(|author| author.follower_count),
        /// The catalog's quality score, 0 to 1.
        score: author.read(|author| author.score),
        /// Whether the author has the power badge of older catalogs.
        is_power_user: author.read(|author| author.is_power_user),
    }
    also {
        /// The `author` of `MiniApp.to_dict()`.
        fn to_dict<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
            serialized(py, &self.0.0.author())
        }
    }
}

record! {
    /// Followers and trending rank of a mini app.
    Engagement(townsquare::discovery::Engagement) [] as engagement,
    hash (engagement.follower_count, engagement.trending_rank) => {
        /// Followers of the app's author.
        follower_count: engagement.follower_count,
        /// Rank in the trending order that the app was listed from, starting at 1; None outside that order.
        trending_rank: engagement.trending_rank,
    }
    also {
        /// The `engagement` of `MiniApp.to_dict()`.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let json = PyDict::new(py);
            json.set_item("followerCount", self.0.follower_count)?;
            if let Some(rank) = self.0.trending_rank {
                json.set_item("trendingRank", rank)?;
            }
            Ok(json)
        }
    }
}

record! {
    /// A suggestion for a search box.
    Suggestion(townsquare::discovery::Suggestion) [] as suggestion,
    hash suggestion.app.id() => {
        /// The app.
        app: MiniApp(suggestion.app.clone()) => nested,
        /// The text to show: the app's name.
        text: suggestion.text.as_str(),
        /// The parts of `text` that the input matches, as start and end in characters.
        matches: suggestion.matches.clone(),
    }
}

record! {
    /// A text of an app with the words that match a query.
    Highlight(townsquare::discovery::Highlight) [] as highlight,
    hash (highlight.field, &highlight.text) => {
        /// The name of the field.
        field: highlight.field,
        /// The whole text; of `tags`, one tag.
        text: highlight.text.as_str(),
        /// The matched words, as start and end in characters.
        matches: highlight.matches.clone(),
    }
}

/// Counts the apps of the whole list that a page is taken from.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct ListTotal(MiniApps);

#[pymethods]
impl ListTotal {
    fn __int__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.total())
    }
}

/// Converts to a `MiniApps`, which a notebook shows as a gallery.
pub(crate) struct PyMiniApps(pub(crate) MiniApps);

impl<'py> IntoPyObject<'py> for PyMiniApps {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        static LIST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let apps = PyList::new(py, self.0.iter().map(|app| MiniApp(app.clone())))?;
        LIST.import(py, "townsquare.notebook", "MiniApps")?.call1((apps, ListTotal(self.0)))
    }
}
