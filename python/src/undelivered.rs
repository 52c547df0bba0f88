//! Values on their way to Python code that may be gone: the task that waits for one can be cancelled after it was taken.

use tokio::sync::OwnedMutexGuard;

/// A value that was taken out of a shared state. It goes back unless it is delivered; nobody else takes a value meanwhile.
pub(crate) struct Undelivered<S, T> {
    state: OwnedMutexGuard<S>,
    value: Option<T>,
    put_back: fn(&mut S, T),
}

impl<S, T> Undelivered<S, T> {
    /// `put_back` makes the next call that takes a value get this one.
    pub(crate) fn new(state: OwnedMutexGuard<S>, value: Option<T>, put_back: fn(&mut S, T)) -> Undelivered<S, T> {
        Undelivered { state, value, put_back }
    }

    /// The value, for the program.
    pub(crate) fn deliver(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<S, T> Drop for Undelivered<S, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            (self.put_back)(&mut self.state, value);
        }
    }
}

/// A source of values, and one that was taken and not delivered.
pub(crate) struct WithUndelivered<S, T> {
    pub(crate) source: S,
    pub(crate) undelivered: Option<T>,
}

impl<S, T> WithUndelivered<S, T> {
    pub(crate) fn new(source: S) -> WithUndelivered<S, T> {
        WithUndelivered { source, undelivered: None }
    }

    /// Wraps a value that was taken.
    pub(crate) fn taken(this: OwnedMutexGuard<Self>, value: Option<T>) -> Undelivered<Self, T> {
        Undelivered::new(this, value, |this, value| this.undelivered = Some(value))
    }
}
