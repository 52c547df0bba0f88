//! The rows of a list one by one: reads a page at a time, each page after the last row of the page before.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use crate::error::Result;

/// The future of a page.
type Page<T> = Pin<Box<dyn Future<Output = Result<Vec<T>>> + Send>>;

/// The rows of a list. `C` is the position of a row in the list.
pub(crate) struct RowStream<T, C> {
    /// Loads the page after a position; the first page if there is none.
    load: Box<dyn Fn(Option<C>) -> Page<T> + Send>,
    position: fn(&T) -> C,
    /// The rest of the current page.
    page: vec::IntoIter<T>,
    next_page: NextPage<T, C>,
}

/// What follows the current page.
enum NextPage<T, C> {
    /// The page after this position; `None` is the first page.
    After(Option<C>),
    Loading(Page<T>),
    /// The current page is the last one, or an error ended the stream.
    None,
}

impl<T, C: Clone> RowStream<T, C> {
    pub(crate) fn new<F>(load: impl Fn(Option<C>) -> F + Send + 'static, position: fn(&T) -> C) -> RowStream<T, C>
    where
        F: Future<Output = Result<Vec<T>>> + Send + 'static,
    {
        let load = Box::new(move |after| -> Page<T> { Box::pin(load(after)) });
        RowStream { load, position, page: Vec::new().into_iter(), next_page: NextPage::After(None) }
    }

    /// Whether the next row is in memory.
    pub(crate) fn has_read_ahead(&self) -> bool {
        !self.page.as_slice().is_empty()
    }

    /// The next row; `None` after the last one and after an error.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(row) = self.page.next() {
                return Poll::Ready(Some(Ok(row)));
            }
            match &mut self.next_page {
                NextPage::After(position) => self.next_page = NextPage::Loading((self.load)(position.clone())),
                NextPage::Loading(page) => match ready!(page.as_mut().poll(context)) {
                    Ok(page) => {
                        // A page may be short because rows of it could not be read: only an empty page is the last one.
                        let last = page.last().map(self.position);
                        self.next_page = last.map_or(NextPage::None, |last| NextPage::After(Some(last)));
                        self.page = page.into_iter();
                    }
                    Err(error) => {
                        self.next_page = NextPage::None;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                NextPage::None => return Poll::Ready(None),
            }
        }
    }

    pub(crate) fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.page.len();
        (rest, matches!(self.next_page, NextPage::None).then_some(rest))
    }
}

impl<T, C> fmt::Debug for RowStream<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream").field("read_ahead", &self.page.len()).finish_non_exhaustive()
    }
}
