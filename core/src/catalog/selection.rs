//! A selection: the page and the filters of a discovery call.

/// Which apps a call returns: the limit and the offset of its page, and the categories and networks they must have.
///
/// Filters combine: an app must be in one of the categories *and* on one of the networks. An empty filter accepts every
/// app. A plain number converts to a selection of the first apps without filters. The name of a category or network that does
/// not exist makes the call fail.
///
/// ```
/// use townsquare::discovery::Selection;
///
/// let unfiltered: Selection = 20.into();
/// let games_on_base = Selection::first(20).in_categories(["games"]).on_networks(["base"]);
/// assert_ne!(unfiltered, games_on_base);
/// ```
///
/// Pages of one list:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
/// # let client = townsquare::blocking::Client::open(config)?;
/// use townsquare::discovery::{Selection, Timeframe};
///
/// let first = client.discovery().get_trending_mini_apps(Timeframe::Hours24, Selection::first(20))?;
/// let rest = client.discovery().get_trending_mini_apps(Timeframe::Hours24, Selection::first(20).offset(20))?;
/// assert_eq!((first.len(), rest.len(), first.total()), (20, 20, 40));
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    pub(crate) is_collapsed: bool,
    pub(crate) categories: Vec<String>,
    pub(crate) networks: Vec<String>,
}

impl Selection {
    /// Selects the first `limit` apps. Calls accept 1 to 1,000.
    ///
    /// ```
    /// use townsquare::discovery::Selection;
    ///
    /// assert_eq!(Selection::first(20), Selection::from(20));
    /// ```
    pub fn first(limit: u32) -> Selection {
        Selection { limit, offset: 0, is_collapsed: false, categories: Vec::new(), networks: Vec::new() }
    }

    /// Leaves out the first `offset` apps of the list. An offset beyond the end gives an empty list.
    ///
    /// ```
    /// use townsquare::discovery::Selection;
    ///
    /// let third_page = Selection::first(20).offset(40);
    /// # let _ = third_page;
    /// ```
    pub fn offset(mut self, offset: u64) -> Selection {
        self.offset = offset;
        self
    }

    /// Returns near-copies once. Near-copies are apps with the same name, ignoring case, and the same author, for
    /// instance the deployments of one app on several hosts. The best of them that the filters accept is returned.
    ///
    /// ```
    /// use townsquare::discovery::Selection;
    ///
    /// let distinct = Selection::first(20).collapsed();
    /// # let _ = distinct;
    /// ```
    pub fn collapsed(mut self) -> Selection {
        self.is_collapsed = true;
        self
    }

    /// Adds categories to the filter.
    ///
    /// ```
    /// use townsquare::discovery::Selection;
    ///
    /// let selection = Selection::first(20).in_categories(["games", "social"]);
    /// # let _ = selection;
    /// ```
    pub fn in_categories<S: Into<String>>(mut self, categories: impl IntoIterator<Item = S>) -> Selection {
        self.categories.extend(categories.into_iter().map(Into::into));
        self
    }

    /// Adds networks to the filter. An app that names no network runs on all of them.
    ///
    /// ```
    /// use townsquare::discovery::Selection;
    ///
    /// let selection = Selection::first(20).on_networks(["base", "ethereum"]);
    /// # let _ = selection;
    /// ```
    pub fn on_networks<S: Into<String>>(mut self, networks: impl IntoIterator<Item = S>) -> Selection {
        self.networks.extend(networks.into_iter().map(Into::into));
        self
    }
}

impl Selection {
    /// The place of the first app of the page in the whole list.
    pub(crate) fn start(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }
}

impl Default for Selection {
    /// Selects the first 50 apps.
    fn default() -> Selection {
        Selection::first(50)
    }
}

impl From<u32> for Selection {
    fn from(limit: u32) -> Selection {
        Selection::first(limit)
    }
}
