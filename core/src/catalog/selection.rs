//! A selection: the limit and the filters of a discovery call.

/// How many apps a call returns, and which categories and networks they must have.
///
/// Filters combine: an app must be in one of the categories *and* on one of the networks. An empty filter accepts every
/// app. A plain number converts to a selection without filters.
///
/// ```
/// use townsquare::discovery::Selection;
///
/// let unfiltered: Selection = 20.into();
/// let games_on_base = Selection::first(20).in_categories(["games"]).on_networks(["base"]);
/// assert_ne!(unfiltered, games_on_base);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub(crate) limit: u32,
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
        Selection { limit, categories: Vec::new(), networks: Vec::new() }
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
