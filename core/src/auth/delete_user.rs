//! The deletion of a user: by the user or by the service.

use uuid::Uuid;

use super::{
    Auth,
    accounts::{DELETIONS, account_grows},
};
use crate::{
    database::call,
    error::{Operation, Result},
};

impl Auth {
    /// Deletes the signed-in user's account with everything that belongs to it, as [`delete_user`](Auth::delete_user) does. Sends
    /// `SIGNED_OUT` to listeners.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in or the password is wrong; `RateLimited` after too many failures.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// client.auth().delete_own_user("correct horse battery")?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete_own_user(&self, current_password: &str) -> Result<()> {
        call(self.principal(), Operation::DeleteUser, self.delete_account(current_password)).await
    }

    async fn delete_account(&self, current_password: &str) -> Result<()> {
        let prepare = || async { Ok(((), self.accounts.check_user(self.state.credential().await?.user_id).await?)) };
        let (auth, password) = (self.clone(), current_password.to_owned());
        let confirm = |permit, ()| async move {
            let _lock = auth.principal().lock_session().await;
            let session = auth.state.require_session().await?;
            auth.accounts.confirm_user(permit, &session, &password).await
        };
        let user_id = self.with_permit(prepare(), confirm).await?.id;
        for _ in 0..DELETIONS {
            // The steps can take long. They hold no permit, because other users wait for permits.
            let entries = self.accounts.clear_account(user_id).await?;
            let (auth, password) = (self.clone(), current_password.to_owned());
            let delete = |permit, ()| async move {
                let _lock = auth.principal().lock_session().await;
                let session = auth.state.require_session().await?;
                let is_deleted = auth.accounts.delete_own_user(permit, &session, &password, entries).await?;
                if is_deleted {
                    auth.state.clear().await;
                }
                Ok(is_deleted)
            };
            if self.with_permit(prepare(), delete).await? {
                return Ok(());
            }
        }
        Err(account_grows())
    }

    /// Deletes a user with everything that belongs to it: spaces, fidgets, private files and sessions. Only the service may do this.
    /// The change log keeps only the keys of these rows, so that the feed can still deliver their `DELETE`. Private files that the
    /// user wrote and that lie in the folder of another user now, by id or by linked key, stay.
    ///
    /// If a user has more than 100 spaces, 32 fidgets or 100 files, most of them are deleted in steps before, so that other writers
    /// need not wait for all of it. If such a call fails, it may have deleted some of them; repeat it.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `Unauthorized` for an anonymous caller, `Forbidden` for a user; `Unavailable` (503) if the user
    /// writes so much meanwhile that the deletion does not end.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let user = client.auth().sign_up("ann@town.example", "correct horse battery")?;
    /// client.as_service().auth().delete_user(user.id)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete_user(&self, user_id: Uuid) -> Result<()> {
        self.run_as_service(Operation::DeleteUser, self.accounts.delete_user(user_id)).await
    }
}
