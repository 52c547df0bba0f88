//! Operations of the service on all spaces: listing them and changing an owner.

use uuid::Uuid;

use super::{Space, Spaces, sql};
use crate::{
    database::{call, readable_record, record},
    error::{Error, Operation, Result},
    policy::Table,
};

impl Spaces {
    /// Returns the `limit` spaces that follow the id `after`, in the order of their ids; the first ones without `after`. Only
    /// for the service. Pages that each begin after the last space of the page before contain no space twice and leave none
    /// out, whatever is inserted or deleted meanwhile. A page has fewer spaces if they take more than 64 MiB of memory: only an
    /// empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT); `Unauthorized` or `Forbidden` if the caller is
    /// not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let service = client.as_service();
    /// let mut page = service.spaces().list_spaces(100, None)?;
    /// while let Some(last) = page.last().map(|space| space.id) {
    ///     println!("{} spaces", page.len());
    ///     page = service.spaces().list_spaces(100, Some(last))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_spaces(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<Space>> {
        call(&self.scope, Operation::ListSpaces, async {
            self.scope.current_principal().require_service(Table::Spaces)?;
            self.scope.key_page(&sql::LIST_SPACES, limit, after, readable_record).await
        })
        .await
    }

    /// Changes the owner of a space and returns it. Only for the service. The fidgets stay in the space. Its files get the new
    /// owner, unless the service wrote them, and count for the quota of the new owner. The quota is not checked here, so it may
    /// be exceeded afterwards.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist; `ReferenceMissing` if the user does not exist; `Unauthorized` or `Forbidden`
    /// if the caller is not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid, bob: townsquare::Uuid)
    /// # -> townsquare::Result<()> {
    /// let space = client.as_service().spaces().set_owner(id, bob)?;
    /// assert_eq!(space.owner_id, Some(bob));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_owner(&self, id: Uuid, owner_id: Uuid) -> Result<Space> {
        call(&self.scope, Operation::SetOwner, async {
            self.scope.current_principal().require_service(Table::Spaces)?;
            let values = vec![id.into(), self.clock.now().into(), owner_id.into()];
            self.scope.execute(&sql::SET_OWNER, values, record).await?.ok_or_else(Error::not_found)
        })
        .await
    }
}
