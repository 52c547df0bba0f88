//! The lists of all communities, domains and registrations, for the service.

use uuid::Uuid;

use super::{Communities, CommunityConfig, CommunityDomain, SpaceRegistration, sql};
use crate::{
    database::{KeyPages, Row, call, readable_record},
    error::{Operation, Result},
    model::FromRow,
    policy::Table,
};

impl Communities {
    /// Returns the `limit` community configurations that follow the id `after`, published or not, in the order of their ids; the first ones without
    /// `after`. Only for the service. Only an empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT); `Unauthorized` or `Forbidden` if the
    /// caller is not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let service = client.as_service();
    /// let mut page = service.communities().list_community_configs(100, None)?;
    /// while let Some(last) = page.last().map(|row| row.id) {
    ///     println!("{} configurations", page.len());
    ///     page = service.communities().list_community_configs(100, Some(last))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_community_configs(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<CommunityConfig>> {
        let page = self.list(Table::CommunityConfigs, &sql::LIST_CONFIGS, limit, after);
        call(&self.scope, Operation::ListCommunityConfigs, page).await
    }

    /// Returns the `limit` domains of communities that follow the id `after`, in the order of their ids; the first ones without
    /// `after`. Only for the service. Only an empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT); `Unauthorized` or `Forbidden` if the
    /// caller is not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let service = client.as_service();
    /// let mut page = service.communities().list_community_domains(100, None)?;
    /// while let Some(last) = page.last().map(|row| row.id) {
    ///     println!("{} domains", page.len());
    ///     page = service.communities().list_community_domains(100, Some(last))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_community_domains(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<CommunityDomain>> {
        let page = self.list(Table::CommunityDomains, &sql::LIST_DOMAINS, limit, after);
        call(&self.scope, Operation::ListCommunityDomains, page).await
    }

    /// Returns the `limit` registrations of spaces that follow the space `after`, in the order of the ids of their spaces; the first ones without
    /// `after`. Only for the service. Only an empty page is the last one.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT); `Unauthorized` or `Forbidden` if the
    /// caller is not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let service = client.as_service();
    /// let mut page = service.communities().list_space_registrations(100, None)?;
    /// while let Some(last) = page.last().map(|row| row.space_id) {
    ///     println!("{} registrations", page.len());
    ///     page = service.communities().list_space_registrations(100, Some(last))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_space_registrations(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<SpaceRegistration>> {
        let page = self.list(Table::SpaceRegistrations, &sql::LIST_REGISTRATIONS, limit, after);
        call(&self.scope, Operation::ListSpaceRegistrations, page).await
    }

    async fn list<T>(&self, table: Table, pages: &'static KeyPages, limit: u32, after: Option<Uuid>) -> Result<Vec<T>>
    where
        T: for<'a> FromRow<Row<'a>> + Send + 'static,
    {
        self.scope.current_principal().require_service(table)?;
        self.scope.key_page(pages, limit, after, readable_record).await
    }
}
