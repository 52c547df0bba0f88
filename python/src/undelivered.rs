//! Values on their way to Python code that may be gone: the task that waits for one can be cancelled after it was taken.

use tokio::sync::OwnedMutexGuard;

/// A source of values, and one that was taken and not delivered. The next call gets that one.
pub(crate) struct WithUndelivered<S, T> {
    pub(crate) source: S,
    pub(crate) undelivered: Option<T>,
}

impl<S, T> WithUndelivered<S, T> {
    pub(crate) fn new(source: S) -> WithUndelivered<S, T> {
        WithUndelivered { source, undelivered: None }
    }

    /// Wraps a value that was taken, or the end.
    pub(crate) fn taken(state: OwnedMutexGuard<Self>, value: Option<T>) -> Undelivered<S, T> {
        Undelivered { state, value }
    }
}

/// A value that was taken. It goes back unless it is delivered; nobody else takes a value meanwhile.
pub(crate) struct Undelivered<S, T> {
    state: OwnedMutexGuard<WithUndelivered<S, T>>,
    value: Option<T>,
}

impl<S, T> Undelivered<S, T> {
    /// The value, for the program.
    pub(crate) fn deliver(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<S, T> Drop for Undelivered<S, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.state.undelivered = Some(value);
        }
    }
}
