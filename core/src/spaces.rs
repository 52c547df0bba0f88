//! The service for spaces: rows that belong to users, and what other callers may see of them (SPEC 2.6, 4.5, 5.4).
//!
//! Invariant: every statement names the policy that it runs under. A row that the caller may not see or change is
//! treated as missing.

mod fidgets;
mod public_spaces;
mod rows;
mod statements;

use std::fmt;

use uuid::Uuid;

use self::statements as sql;
pub use self::{fidgets::Fidgets, public_spaces::PublicSpaces};
use crate::{
    clock::Clock,
    database::{Read, Scope, Statement, Value, record},
    error::{Error, Operation, Result, operation},
    policy::{Caller, Table},
};
pub use crate::{
    model::{
        Change, Fidget, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, PublicSpaceCursor, Space, SpacePatch,
        SpaceWithFidgets,
    },
    validate::MAX_LIMIT,
};

/// The default `limit` of `get_public_spaces` (SPEC 8).
pub const DEFAULT_PAGE: u32 = 20;

/// Beyond this offset a page of public spaces is read off the calling thread: it skips that many rows first.
const DEEP_OFFSET: i64 = 1_000;

/// Operations on rows of `spaces`, under the policies of the client's caller.
#[derive(Clone)]
pub struct Spaces {
    scope: Scope,
    clock: Clock,
    exposes_email: bool,
}

impl Spaces {
    pub(crate) fn new(scope: Scope, clock: Clock, exposes_email: bool) -> Spaces {
        Spaces { scope, clock, exposes_email }
    }

    /// Creates a space and returns it (SPEC 4.5). The owner is the caller, unless the service names another user.
    ///
    /// # Errors
    /// `FieldMissing` without a name; `ReferenceMissing` if the owner does not exist; `Forbidden` if the owner is not
    /// the caller; `InvalidInput` for text with a NUL.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::NewSpace;
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let space = client.spaces().create_space(NewSpace::named("Chess").public())?;
    /// assert!(space.is_public);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_space(&self, space: NewSpace) -> Result<Space> {
        operation(Operation::CreateSpace, async {
            insert_one(&self.scope, &sql::INSERT_SPACE, Table::Spaces, self.insert_values(space)?, record).await
        })
        .await
    }

    /// Creates spaces in one transaction: all or none. Returns them in the order of `spaces`.
    ///
    /// # Errors
    /// As [`create_space`](Spaces::create_space), for the first space that fails.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::NewSpace;
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let spaces = client.spaces().create_spaces(vec![NewSpace::named("Chess"), NewSpace::named("Go")])?;
    /// assert_eq!(spaces[1].name, "Go");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_spaces(&self, spaces: Vec<NewSpace>) -> Result<Vec<Space>> {
        operation(Operation::CreateSpaces, async {
            let rows = spaces.into_iter().map(|space| self.insert_values(space)).collect::<Result<_>>()?;
            insert_all(&self.scope, &sql::INSERT_SPACE, Table::Spaces, rows, record).await
        })
        .await
    }

    /// Returns a space (SPEC 4.5).
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or the caller may not see it.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let space = client.spaces().get_space(id)?;
    /// println!("{}, created {}", space.name, space.created_at);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space(&self, id: Uuid) -> Result<Space> {
        operation(Operation::GetSpace, self.scope.fetch_one(&sql::GET_SPACE, &[id.into()], record)).await
    }

    /// Changes a space and returns it (SPEC 4.5). An empty patch changes nothing, not even `updated_at`.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or is not the caller's; `FieldMissing` if the patch clears the name.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::SpacePatch;
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let space = client.spaces().update_space(id, SpacePatch::new().name("Chess club").published())?;
    /// assert_eq!(space.name, "Chess club");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_space(&self, id: Uuid, patch: SpacePatch) -> Result<Space> {
        operation(Operation::UpdateSpace, async {
            patch.validate()?;
            if patch.is_empty() {
                return self.scope.fetch_one(&sql::GET_OWN_SPACE, &[id.into()], record).await;
            }
            let values = patch.update_values([id.into(), self.clock.now().into()]);
            self.scope.execute(&sql::UPDATE_SPACE, values, record).await?.ok_or_else(Error::not_found)
        })
        .await
    }

    /// Deletes a space and its fidgets (SPEC 2.7, 4.5).
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or is not the caller's.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// client.spaces().delete_space(id)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_space(&self, id: Uuid) -> Result<()> {
        operation(Operation::DeleteSpace, async {
            let deleted = self.scope.execute(&sql::DELETE_SPACE, vec![id.into()], |row| row.get::<Uuid>(0)).await?;
            deleted.map(drop).ok_or_else(Error::not_found)
        })
        .await
    }

    /// Returns a user's spaces with their fidgets: newest first, spaces created at the same time by id (SPEC 4.5). An
    /// unknown user has no spaces.
    ///
    /// # Errors
    /// Errors of the database only.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, user_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// for space in client.spaces().get_user_spaces(user_id)? {
    ///     println!("{} has {} fidgets", space.name, space.fidgets.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_user_spaces(&self, user_id: Uuid) -> Result<Vec<SpaceWithFidgets>> {
        operation(Operation::GetUserSpaces, async {
            let rows = self.scope.scan(&sql::GET_USER_SPACES, vec![user_id.into()], rows::space_and_fidget).await?;
            Ok(rows::group_by_space(rows))
        })
        .await
    }

    /// Returns a space with its fidgets, oldest first. A space without fidgets does not match (SPEC 4.5).
    ///
    /// # Errors
    /// `NotFound` if the space does not exist, has no fidget, or the caller may not see it.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let space = client.spaces().get_space_with_fidgets(id)?;
    /// println!("The oldest fidget is a {}", space.fidgets[0].kind);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space_with_fidgets(&self, id: Uuid) -> Result<SpaceWithFidgets> {
        operation(Operation::GetSpaceWithFidgets, async {
            let rows = self.scope.fetch(&sql::GET_SPACE_WITH_FIDGETS, &[id.into()], rows::space_and_fidget).await?;
            rows::group_by_space(rows).pop().ok_or_else(Error::not_found)
        })
        .await
    }

    /// The values of [`sql::INSERT_SPACE`].
    fn insert_values(&self, mut space: NewSpace) -> Result<Vec<Value<'static>>> {
        space.validate()?;
        if self.scope.caller() != Caller::Service {
            space.owner_id = space.owner_id.or(self.scope.caller().id());
        }
        Ok(space.insert_values([Uuid::new_v4().into(), self.clock.now().into()]))
    }
}

impl fmt::Debug for Spaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spaces").finish_non_exhaustive()
    }
}

/// Inserts a row and returns it.
async fn insert_one<T: Send + 'static>(
    scope: &Scope,
    insert: &'static Statement,
    table: Table,
    values: Vec<Value<'static>>,
    read: Read<T>,
) -> Result<T> {
    scope.execute(insert, values, read).await?.ok_or_else(|| table.insert_refused())
}

/// Inserts rows in one transaction, all or none, and returns them in the same order.
async fn insert_all<T: Send + 'static>(
    scope: &Scope,
    insert: &'static Statement,
    table: Table,
    rows: Vec<Vec<Value<'static>>>,
    read: Read<T>,
) -> Result<Vec<T>> {
    let work = scope.write(move |transaction| {
        Box::pin(async move {
            let mut inserted = Vec::with_capacity(rows.len());
            for values in rows {
                let row = transaction.fetch_optional(insert, &values, read).await?;
                inserted.push(row.ok_or_else(|| table.insert_refused())?);
            }
            Ok(inserted)
        })
    });
    work.await
}
