//! Values that belong to the process that made them: a forked child has copies of them, without the threads that serve them.

use std::{fmt, mem::ManuallyDrop, process};

use crate::error::{Error, Result};

/// A value that only the process that made it uses and drops. A forked child leaks its copy: the destructor could wait for a
/// thread or for a lock of the parent, or remove what the parent still needs. Each use costs a system call.
pub(crate) struct ProcessOwned<T> {
    /// `None` only while this value is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> ProcessOwned<T> {
    pub(crate) fn new(value: T) -> ProcessOwned<T> {
        ProcessOwned { value: Some(value), process: process::id() }
    }

    /// # Errors
    /// `Closed` in a forked child of the process that made the value.
    pub(crate) fn get(&self) -> Result<&T> {
        self.value.as_ref().filter(|_| !self.is_inherited()).ok_or_else(Error::inherited)
    }

    /// # Errors
    /// `Closed` in a forked child of the process that made the value.
    pub(crate) fn get_mut(&mut self) -> Result<&mut T> {
        let is_inherited = self.is_inherited();
        self.value.as_mut().filter(|_| !is_inherited).ok_or_else(Error::inherited)
    }

    /// True in a forked child of the process that made the value.
    pub(crate) fn is_inherited(&self) -> bool {
        self.process != process::id()
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.is_inherited() {
            let _leaked = ManuallyDrop::new(self.value.take());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ProcessOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProcessOwned").field(&self.value).finish()
    }
}
