//! Spaces: the rows that users own, and what they show to others (SPEC 2.6, 4.5, 5.4).
//!
//! Invariant: every statement names the policy it runs under, so a row that the caller may not see or change answers
//! like one that is not there.

mod fidgets;
mod rows;
mod statements;

use uuid::Uuid;

pub use self::fidgets::Fidgets;
use self::statements as sql;
pub use crate::model::{
    Change, Fidget, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, Space, SpacePatch, SpaceWithFidgets,
};
use crate::{
    clock::Clock,
    database::{Scope, Transaction, Value},
    error::{Error, Operation, Result, WithOperation},
    policy::{Caller, Table},
    validate,
};

/// Rows of `spaces`, as the client's caller may see and change them.
#[derive(Clone)]
pub struct Spaces {
    scope: Scope,
    clock: Clock,
    exposes_email: bool,
}

/// The page that `get_public_spaces` returns when nothing else is said (SPEC 8).
pub const DEFAULT_PAGE: u32 = 20;

impl Spaces {
    pub(crate) fn new(scope: Scope, clock: Clock, exposes_email: bool) -> Spaces {
        Spaces { scope, clock, exposes_email }
    }

    /// Inserts a space and returns it (SPEC 4.5). It belongs to the caller unless the service names somebody else.
    ///
    /// # Errors
    /// `FieldMissing` without a name, `ReferenceMissing` for an owner who does not exist, `Forbidden` for a space that
    /// would not be the caller's own, `InvalidInput` for text with a NUL.
    pub async fn create_space(&self, space: NewSpace) -> Result<Space> {
        let insert = async {
            let values = self.insertion(space)?;
            self.scope.execute(&sql::INSERT_SPACE, values, rows::space).await?.ok_or_else(forbidden)
        };
        insert.await.with_operation(Operation::CreateSpace)
    }

    /// Inserts spaces in one transaction: all of them or none. Returns them in the order given.
    ///
    /// # Errors
    /// As [`create_space`](Spaces::create_space), for the first that fails.
    pub async fn create_spaces(&self, spaces: Vec<NewSpace>) -> Result<Vec<Space>> {
        let insert = async {
            let all: Vec<_> = spaces.into_iter().map(|space| self.insertion(space)).collect::<Result<_>>()?;
            let insert = self.scope.write(move |transaction| {
                Box::pin(async move {
                    let mut created = Vec::with_capacity(all.len());
                    for values in all {
                        created.push(one(transaction, &values).await?);
                    }
                    Ok(created)
                })
            });
            insert.await
        };
        insert.await.with_operation(Operation::CreateSpaces)
    }

    /// One space by id (SPEC 4.5).
    ///
    /// # Errors
    /// `NotFound` when there is none that the caller may see.
    pub async fn get_space(&self, id: Uuid) -> Result<Space> {
        let found = self.scope.fetch(&sql::GET_SPACE, &[id.into()], rows::space).await;
        found.and_then(|mut rows| rows.pop().ok_or_else(Error::not_found)).with_operation(Operation::GetSpace)
    }

    /// Changes what the patch names and returns the row (SPEC 4.5). A patch of nothing changes nothing.
    ///
    /// # Errors
    /// `NotFound` when there is no such space of the caller's, `FieldMissing` when the name is cleared.
    pub async fn update_space(&self, id: Uuid, patch: SpacePatch) -> Result<Space> {
        let update = async {
            validate::text("name", patch.name.as_set())?;
            validate::text("description", patch.description.as_set())?;
            let rows = if patch == SpacePatch::new() {
                self.scope.fetch(&sql::GET_OWN_SPACE, &[id.into()], rows::space).await
            } else {
                let values = vec![
                    id.into(),
                    (!patch.name.is_keep()).into(),
                    patch.name.into_set().into(),
                    (!patch.description.is_keep()).into(),
                    patch.description.into_set().into(),
                    (!patch.is_public.is_keep()).into(),
                    patch.is_public.into_set().into(),
                    self.clock.now().into(),
                ];
                self.scope.change(&sql::UPDATE_SPACE, values, rows::space).await
            };
            rows?.pop().ok_or_else(Error::not_found)
        };
        update.await.with_operation(Operation::UpdateSpace)
    }

    /// Deletes a space and its fidgets (SPEC 2.7, 4.5).
    ///
    /// # Errors
    /// `NotFound` when there is no such space of the caller's.
    pub async fn delete_space(&self, id: Uuid) -> Result<()> {
        let deleted = self.scope.change(&sql::DELETE_SPACE, vec![id.into()], rows::id).await;
        deleted
            .and_then(|rows| rows.first().map(|_| ()).ok_or_else(Error::not_found))
            .with_operation(Operation::DeleteSpace)
    }

    /// The spaces of a user with their fidgets, newest first, those of one moment by id (SPEC 4.5).
    ///
    /// # Errors
    /// Those of the database alone: an unknown user has no spaces.
    pub async fn get_user_spaces(&self, user_id: Uuid) -> Result<Vec<SpaceWithFidgets>> {
        let rows = self.scope.scan(&sql::GET_USER_SPACES, vec![user_id.into()], rows::space_and_fidget).await;
        rows.map(rows::grouped).with_operation(Operation::GetUserSpaces)
    }

    /// Public spaces with their owners, newest first, those of one moment by id: rows `offset` to `offset + limit - 1`
    /// (SPEC 4.5). The owner's e-mail address is shown to every reader, unless the client was opened not to.
    ///
    /// # Errors
    /// `InvalidInput` for a limit that is not 1 to 1,000.
    pub async fn get_public_spaces(&self, limit: u32, offset: u64) -> Result<Vec<PublicSpace>> {
        let select = async {
            let limit = i64::from(validate::limit(limit)?);
            let offset = validate::offset(offset)?;
            let values = [limit.into(), offset.into()];
            let mut spaces = self.scope.fetch(&sql::GET_PUBLIC_SPACES, &values, rows::public_space).await?;
            if !self.exposes_email {
                for owner in spaces.iter_mut().filter_map(|space| space.owner.as_mut()) {
                    owner.email = None;
                }
            }
            Ok(spaces)
        };
        select.await.with_operation(Operation::GetPublicSpaces)
    }

    /// One space with its fidgets, oldest first; only a space that has a fidget matches (SPEC 4.5).
    ///
    /// # Errors
    /// `NotFound` when there is none with a fidget that the caller may see.
    pub async fn get_space_with_fidgets(&self, id: Uuid) -> Result<SpaceWithFidgets> {
        let rows = self.scope.fetch(&sql::GET_SPACE_WITH_FIDGETS, &[id.into()], rows::space_and_fidget).await;
        rows.and_then(|rows| rows::grouped(rows).pop().ok_or_else(Error::not_found))
            .with_operation(Operation::GetSpaceWithFidgets)
    }

    /// What is bound to insert a space.
    fn insertion(&self, space: NewSpace) -> Result<Vec<Value<'static>>> {
        validate::text("name", space.name.as_ref())?;
        validate::text("description", space.description.as_ref())?;
        let owner = match self.scope.caller() {
            Caller::Service => space.owner_id,
            caller => space.owner_id.or(caller.id()),
        };
        Ok(vec![
            Uuid::new_v4().into(),
            space.name.into(),
            space.description.into(),
            owner.into(),
            space.is_public.into(),
            self.clock.now().into(),
        ])
    }
}

async fn one(transaction: &mut Transaction<'_>, values: &[Value<'_>]) -> Result<Space> {
    transaction.fetch_optional(&sql::INSERT_SPACE, values, rows::space).await?.ok_or_else(forbidden)
}

/// The insert's policy let no row through.
fn forbidden() -> Error {
    Error::new_row_violates(Table::Spaces.name())
}
