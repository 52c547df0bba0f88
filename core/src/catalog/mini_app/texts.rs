//! The lists of a record: networks, tags, screenshots.

use std::fmt;

/// A list of texts of a record: an iterator of slices that borrow from it.
///
/// ```
/// # fn example(app: &townsquare::discovery::MiniApp) {
/// for tag in app.tags() {
///     println!("#{tag}");
/// }
/// # }
/// ```
#[derive(Clone, Copy, Default)]
pub struct Texts<'a> {
    pub(super) texts: &'a str,
    /// The start of the next text in `texts`.
    pub(super) start: u32,
    /// The ends of the texts that are left.
    pub(super) ends: &'a [u32],
}

impl<'a> Texts<'a> {
    /// Whether no texts are left.
    ///
    /// ```
    /// # fn example(app: &townsquare::discovery::MiniApp) {
    /// if app.networks().is_empty() {
    ///     println!("{} runs on every network", app.name());
    /// }
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (&end, rest) = self.ends.split_first()?;
        // A text is in range unless the record has over 4 GiB.
        let text = self.texts.get(self.start as usize..end as usize).unwrap_or_default();
        (self.start, self.ends) = (end, rest);
        Some(text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ends.len(), Some(self.ends.len()))
    }
}

impl ExactSizeIterator for Texts<'_> {}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
