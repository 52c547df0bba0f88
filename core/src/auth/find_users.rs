//! Lists and finds users, for the service.

use uuid::Uuid;

use super::{Auth, User};
use crate::{
    database::call,
    error::{Operation, Result},
};

impl Auth {
    /// Returns the `limit` users that follow the id `after`, in the order of their ids; the first ones without `after`. Only the
    /// service may do this. Only an empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT); `Unauthorized` for an anonymous caller,
    /// `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let service = client.as_service();
    /// let mut page = service.auth().list_users(100, None)?;
    /// while let Some(last) = page.last().map(|user| user.id) {
    ///     println!("{} users", page.len());
    ///     page = service.auth().list_users(100, Some(last))?;
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn list_users(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<User>> {
        let work = async {
            self.require_service()?;
            self.accounts.list_users(limit, after).await
        };
        call(self.principal(), Operation::ListUsers, work).await
    }

    /// Finds the user with an address, in any case; `None` when no user has it. Only the service may do this.
    ///
    /// # Errors
    /// `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// if let Some(user) = client.as_service().auth().find_user("Ann@town.example")? {
    ///     println!("{} signed up at {}", user.email, user.created_at);
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn find_user(&self, email: &str) -> Result<Option<User>> {
        self.run_as_service(Operation::FindUser, self.accounts.find_user(email)).await
    }
}
