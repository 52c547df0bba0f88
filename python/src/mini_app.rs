//! The records `MiniApp`, `Author` and `Engagement`, and lists of mini apps (SPEC 2.1).
//!
//! Invariant: a `MiniApp` and its `Author` share the catalog's record, so that a list of mini apps copies no text.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyList};
use townsquare::discovery::{MiniAppRecord, MiniApps};

use crate::{
    argument::TextArg,
    json::serialized,
    record::{PyTime, RecordValue, endpoint_dict, record},
    run::MethodResult,
};

record! {
    #[doc = text_of!(MiniApp)]
    MiniApp(townsquare::discovery::MiniApp) [] as app, hash [id] => {
        /// Identifies the app: its home URL without the scheme.
        id: "str" = app.id(),
        /// Host of the home URL.
        domain: "str" = app.domain(),
        /// Display name, at most 200 characters.
        name: "str" = app.name(),
        /// Description, at most 2,000 characters.
        description: "Optional[str]" = app.description(),
        /// URL of the icon or, without one, of the app's image; empty when the catalog has neither.
        icon_url: "str" = app.icon_url(),
        /// URL that opens the app: http or https.
        home_url: "str" = app.home_url(),
        /// One of the catalog's categories, or the app's own text.
        category: "Optional[str]" = app.category(),
        /// Networks that the app requires; empty when it runs on any.
        networks: "list[str]" = app.networks().collect::<Vec<_>>(),
        /// Search tags.
        tags: "list[str]" = app.tags().collect::<Vec<_>>(),
        /// The publisher, if the catalog names one.
        author: "Optional[Author]" = AppWithAuthor::of(app).map(Author::from),
        /// Followers and trending rank.
        engagement: "Engagement" = Engagement::from(app.engagement()),
        /// URLs of screenshots.
        screenshots: "list[str]" = app.screenshots().collect::<Vec<_>>(),
        /// URL of a wide image.
        hero_image_url: "Optional[str]" = app.hero_image_url(),
        /// Promotional line.
        tagline: "Optional[str]" = app.tagline(),
        /// Explanatory line.
        subtitle: "Optional[str]" = app.subtitle(),
        /// Version of the app's manifest.
        version: "str" = app.version(),
        /// The text of the button that opens the app.
        button_title: "Optional[str]" = app.button_title(),
        /// URL of the image shown in a feed.
        image_url: "Optional[str]" = app.image_url(),
        /// URL of the image shown while the app loads.
        splash_image_url: "Optional[str]" = app.splash_image_url(),
        /// Colour behind the splash image: `#rrggbb`.
        splash_background_color: "Optional[str]" = app.splash_background_color(),
        /// When this record was fetched, UTC.
        last_fetched: "datetime" = PyTime(app.last_fetched()),
        /// When the app was first in the catalog, UTC.
        first_seen: "datetime" = PyTime(app.first_seen()),
    }
    also {
        #[doc = text_of!(MiniApp.highlights)]
        fn highlights(this: &Bound<'_, Self>, query: TextArg) -> PyResult<Vec<Highlight>> {
            let query = query.value("query").unwrap_or_default();
            match &this.get().0 {
                RecordValue::Core(app) => Ok(app.highlights(&query).into_iter().map(Highlight::from).collect()),
                RecordValue::Attributes(_) => highlights(this, &query),
            }
        }

        #[doc = text_of!(MiniApp.to_dict)]
        fn to_dict<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            match &this.get().0 {
                RecordValue::Core(app) => serialized(this.py(), app),
                RecordValue::Attributes(_) => endpoint_dict(this),
            }
        }

        /// HTML for a notebook: a card.
        fn _repr_html_<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            static CARD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            CARD.import(this.py(), "townsquare.notebook", "card")?.call1((this,))
        }
    }
}

/// The highlights of an app that Python code made.
fn highlights(app: &Bound<'_, MiniApp>, query: &str) -> PyResult<Vec<Highlight>> {
    let text = |of: &Bound<'_, PyAny>, name: &str| of.getattr(name)?.extract::<Option<String>>();
    let mut texts = Vec::new();
    for field in ["name", "category", "subtitle", "tagline"] {
        texts.push((field, text(app, field)?));
    }
    let author = app.getattr("author")?;
    if !author.is_none() {
        texts.push(("author_display_name", text(&author, "display_name")?));
        texts.push(("author_username", text(&author, "username")?));
    }
    for field in ["description", "domain"] {
        texts.push((field, text(app, field)?));
    }
    texts.extend(app.getattr("tags")?.extract::<Vec<String>>()?.into_iter().map(|tag| ("tags", Some(tag))));
    let texts: Vec<_> = texts.iter().filter_map(|(field, text)| Some((*field, text.as_deref()?))).collect();
    Ok(townsquare::discovery::Highlight::of_texts(query, &texts).into_iter().map(Highlight::from).collect())
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

record! {
    #[doc = text_of!(Author)]
    Author(AppWithAuthor) [] as author, hash [fid] => {
        /// Farcaster id.
        fid: "int" = author.read(|author| author.fid),
        /// Handle, without `@`.
        username: "str" = author.read(|author| author.username),
        /// Display name.
        display_name: "Optional[str]" = author.read(|author| author.display_name),
        /// URL of the profile picture.
        pfp_url: "Optional[str]" = author.read(|author| author.pfp_url),
        /// How many followers the author has.
        follower_count: "int" = author.read(|author| author.follower_count),
        /// The catalog's quality score, 0 to 1.
        score: "Optional[float]" = author.read(|author| author.score),
        /// Whether the author has the power badge of older catalogs.
        is_power_user: "bool" = author.read(|author| author.is_power_user),
    }
    also {
        #[doc = text_of!(Author.to_dict)]
        fn to_dict<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            match &this.get().0 {
                RecordValue::Core(author) => serialized(this.py(), &author.0.author()),
                RecordValue::Attributes(_) => endpoint_dict(this),
            }
        }
    }
}

record! {
    #[doc = text_of!(Engagement)]
    Engagement(townsquare::discovery::Engagement) [] as engagement,
    hash [follower_count, trending_rank] => {
        /// Followers of the app's author.
        follower_count: "int" = engagement.follower_count,
        /// Rank in the trending order that the app was listed from, starting at 1; None outside that order.
        trending_rank: "Optional[int]" = engagement.trending_rank,
    }
    also {
        #[doc = text_of!(Engagement.to_dict)]
        fn to_dict<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            endpoint_dict(this)
        }
    }
}

record! {
    #[doc = text_of!(Suggestion)]
    Suggestion(townsquare::discovery::Suggestion) [] as suggestion,
    hash [app] => {
        /// The app.
        app: "MiniApp" = MiniApp::from(suggestion.app.clone()),
        /// The text to show: the app's name.
        text: "str" = suggestion.text.as_str(),
        /// The parts of `text` that the input matches, as start and end in characters.
        matches: "list[tuple[int, int]]" = suggestion.matches.clone(),
    }
}

record! {
    #[doc = text_of!(Highlight)]
    Highlight(townsquare::discovery::Highlight) [] as highlight,
    hash [field, text] => {
        /// The name of the field.
        field: "str" = highlight.field,
        /// The whole text; of `tags`, one tag.
        text: "str" = highlight.text.as_str(),
        /// The matched words, as start and end in characters.
        matches: "list[tuple[int, int]]" = highlight.matches.clone(),
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
        let apps = PyList::new(py, self.0.iter().map(|app| MiniApp::from(app.clone())))?;
        LIST.import(py, "townsquare.notebook", "MiniApps")?.call1((apps, ListTotal(self.0)))
    }
}
