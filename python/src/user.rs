//! Users and sessions as records (SPEC 2.5, 5.3).
//!
//! Invariant: a session shows its tokens to who asks for them by name, and to nobody else: not in its `repr`, not to a
//! traceback or a log that prints it.

use pyo3::{prelude::*, types::PyDict};

use crate::record::{attributes, record};

record! {
    /// A row of `users`.
    User(townsquare::User) as user, hashed by user.id, shown by [id, email] {
        /// Primary key.
        id: user.id,
        /// The address, trimmed and in lower case.
        email: &user.email,
        /// When the user signed up, UTC.
        created_at: user.created_at,
        /// When the row last changed, UTC.
        updated_at: user.updated_at,
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [id, email, created_at, updated_at])
        }
    }
}

record! {
    /// What proves that somebody is signed in.
    Session(townsquare::Session) as session, hashed by (session.user.id, session.expires_at), shown by [expires_at, user] {
        /// Shows who is calling, for an hour.
        access_token: &session.access_token,
        /// Gets the next pair of tokens, once; empty where only the access token is known.
        refresh_token: &session.refresh_token,
        /// When the access token ends, UTC.
        expires_at: session.expires_at,
        /// Whose session it is.
        user: User(session.user.clone()),
    }
    also {
        /// The attributes by name, tokens and all; the user as a dict.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let attributes: PyResult<Bound<'py, PyDict>> =
                attributes!(self, py, [access_token, refresh_token, expires_at]);
            let attributes = attributes?;
            attributes.set_item("user", User(self.0.user.clone()).to_dict(py)?)?;
            Ok(attributes)
        }
    }
}
