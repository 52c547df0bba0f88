//! The service for spaces: rows that belong to users, and what other callers may see of them.
//!
//! Invariant: every statement names the policy that it runs under. A row that the caller may not see or change is
//! treated as missing.

mod fidgets;
mod insert;
mod list;
mod public_spaces;
mod rows;
mod statements;

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

pub use self::{fidgets::Fidgets, public_spaces::PublicSpaces};
use self::{
    insert::{GivenId, NewRow, Quota, increasing_times, insert_all, insert_one},
    statements as sql,
};
use crate::{
    clock::Clock,
    config::OwnerEmail,
    database::{Row, Scope, Statement, call, record},
    error::{Error, Operation, Result},
    policy::Caller,
    validate::Limits,
};
pub use crate::{
    model::{
        Change, Fidget, FidgetCursor, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, PublicSpaceCursor, Space,
        SpacePatch, SpaceWithFidgets,
    },
    validate::{MAX_LIMIT, parse_json},
};

/// The default `limit` of `get_public_spaces`.
pub const DEFAULT_PAGE: u32 = 20;

/// Beyond this offset a page of public spaces is read off the calling thread: it skips that many rows first.
const DEEP_OFFSET: i64 = 1_000;

/// Operations on rows of `spaces`, under the policies of the client's caller.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
#[derive(Clone)]
pub struct Spaces {
    scope: Scope,
    clock: Clock,
    limits: Limits,
    owner_email: OwnerEmail,
}

impl Spaces {
    pub(crate) fn new(scope: Scope, clock: Clock, limits: Limits, owner_email: OwnerEmail) -> Spaces {
        Spaces { scope, clock, limits, owner_email }
    }

    /// Creates a space and returns it. The owner is the caller, unless the service names another user. A space is
    /// private unless it is made public.
    ///
    /// A call with an id can be repeated, for example after a lost connection: if a space of the caller has this id and
    /// the same owner, name, description and `is_public`, the call returns that space. Without an id, a repeated call may create a
    /// second space.
    ///
    /// # Errors
    /// - `FieldMissing` without a name.
    /// - `Forbidden` if the owner is not the caller, also for an anonymous caller, and if the id belongs to a registered page, to
    ///   files or to a deleted space.
    /// - `ReferenceMissing` if the owner does not exist; `AlreadyExists` if another space has the id.
    /// - `InvalidInput` for text with a NUL; `TooLarge` for text over `max_text_size`, and a name over `max_name_size`.
    /// - `QuotaExceeded` if the caller would own more spaces than `max_owner_spaces`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::spaces::NewSpace;
    ///
    /// let space = client.spaces().create_space(NewSpace::named("Chess").public())?;
    /// assert!(space.is_public);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// A program that gives the id may repeat the call:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::{Uuid, spaces::NewSpace};
    ///
    /// let chess = NewSpace::named("Chess").with_id(Uuid::new_v4());
    /// let space = client.spaces().create_space(chess.clone())?;
    /// assert_eq!(client.spaces().create_space(chess)?, space);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn create_space(&self, space: NewSpace) -> Result<Space> {
        call(&self.scope, Operation::CreateSpace, async {
            space.validate(&self.limits)?;
            let row = self.new_row(space, self.clock.now());
            insert_one(&self.scope, &sql::INSERT_SPACE, row, self.quota(), record).await
        })
        .await
    }

    /// Creates spaces in one transaction: all or none. Returns them in the order of `spaces`. Their `created_at` increases
    /// in this order.
    ///
    /// # Errors
    /// As [`create_space`](Spaces::create_space), for the first space that fails: [`Error::row`] is its index. `TooLarge`
    /// for more spaces than `max_bulk_rows`.
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
        call(&self.scope, Operation::CreateSpaces, async {
            self.limits.each("spaces", &spaces, |space| space.validate(&self.limits))?;
            let times = increasing_times(self.clock.now());
            let rows = spaces.into_iter().zip(times).map(|(space, time)| self.new_row(space, time)).collect();
            insert_all(&self.scope, &sql::INSERT_SPACE, rows, self.quota(), record).await
        })
        .await
    }

    /// Returns a space without its fidgets.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or the caller may not see it: the two cannot be told apart.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::{ErrorKind, spaces::NewSpace};
    ///
    /// let space = client.spaces().create_space(NewSpace::named("Chess"))?;
    /// assert_eq!(client.spaces().get_space(space.id)?.name, "Chess");
    ///
    /// client.auth().sign_out()?;
    /// assert_eq!(client.spaces().get_space(space.id).unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_space(&self, id: Uuid) -> Result<Space> {
        call(&self.scope, Operation::GetSpace, self.scope.fetch_one(&sql::GET_SPACE, &[id.into()], record)).await
    }

    /// Changes a space and returns it. The patch names the columns to change; the others stay. An empty patch changes
    /// nothing, not even `updated_at`.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or is not the caller's; `FieldMissing` if the patch clears the name
    /// or `is_public`; `InvalidInput` for text with a NUL; `TooLarge` for a name over `max_name_size` and other text over
    /// `max_text_size`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::spaces::{NewSpace, SpacePatch};
    ///
    /// let space = client.spaces().create_space(NewSpace::named("Chess"))?;
    /// let space = client.spaces().update_space(space.id, SpacePatch::new().name("Chess club").published())?;
    /// assert_eq!((space.name.as_str(), space.is_public), ("Chess club", true));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn update_space(&self, id: Uuid, patch: SpacePatch) -> Result<Space> {
        call(&self.scope, Operation::UpdateSpace, async {
            patch.validate(&self.limits)?;
            if patch.is_empty() {
                return self.scope.fetch_one(&sql::INSERT_SPACE.get_own, &[id.into()], record).await;
            }
            let values = patch.update_values([id.into(), self.clock.now().into()]);
            self.scope.execute(&sql::UPDATE_SPACE, values, record).await?.ok_or_else(Error::not_found)
        })
        .await
    }

    /// Deletes a space with its fidgets and files.
    ///
    /// A space with more than 32 fidgets or 100 files is deleted in steps, so that other writers need not wait for all of it:
    /// first fidgets and files, then the rest and the space. If such a call fails, it may have deleted some of them; repeat it.
    /// The bytes of large files are removed soon after.
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
        call(&self.scope, Operation::DeleteSpace, async {
            self.scope.clear_large_space(id).await?;
            let deleted = self.scope.execute(&sql::DELETE_SPACE, vec![id.into()], |row| row.get::<Uuid>(0)).await?;
            deleted.ok_or_else(Error::not_found)?;
            self.scope.superfluous_objects().notify_one();
            Ok(())
        })
        .await
    }

    /// Returns a user's spaces with their fidgets: newest first, spaces created at the same time by id. An
    /// unknown user has no spaces.
    ///
    /// # Errors
    /// `TooLarge` if they take more than 64 MiB of memory.
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
        call(&self.scope, Operation::GetUserSpaces, async {
            let values = vec![user_id.into()];
            // A space that cannot be read is left out.
            let read = |row: &Row<'_>| Ok(row.readable(rows::space_and_fidget));
            let rows = self.scope.scan(&sql::GET_USER_SPACES, values, read).await?;
            Ok(rows::group_by_space(rows.into_iter().flatten()))
        })
        .await
    }

    /// Returns a space with its fidgets, oldest first. A space without fidgets does not match: its error is the one of
    /// a missing space.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist, has no fidget, or the caller may not see it. `TooLarge` if the fidgets take more
    /// than 64 MiB of memory; [`get_space_fidgets_after`](Fidgets::get_space_fidgets_after) returns pages of them.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::{ErrorKind, spaces::{NewFidget, NewSpace}};
    ///
    /// let id = client.spaces().create_space(NewSpace::named("Harbor"))?.id;
    /// assert_eq!(client.spaces().get_space_with_fidgets(id).unwrap_err().kind(), ErrorKind::NotFound);
    ///
    /// client.fidgets().create_fidget(id, NewFidget::of_type("clock"))?;
    /// let space = client.spaces().get_space_with_fidgets(id)?;
    /// assert_eq!((space.name.as_str(), space.fidgets[0].kind.as_str()), ("Harbor", "clock"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_space_with_fidgets(&self, id: Uuid) -> Result<SpaceWithFidgets> {
        self.space_with_fidgets(&sql::GET_SPACE_WITH_FIDGETS, id).await
    }

    /// Returns a space with its fidgets, oldest first. Unlike
    /// [`get_space_with_fidgets`](Spaces::get_space_with_fidgets) it also returns a space without fidgets.
    ///
    /// # Errors
    /// `NotFound` if the space does not exist or the caller may not see it. `TooLarge` if the fidgets take more than 64 MiB of
    /// memory.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let space = client.spaces().get_space_with_any_fidgets(id)?;
    /// println!("{} has {} fidgets", space.name, space.fidgets.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space_with_any_fidgets(&self, id: Uuid) -> Result<SpaceWithFidgets> {
        self.space_with_fidgets(&sql::GET_SPACE_WITH_ANY_FIDGETS, id).await
    }

    async fn space_with_fidgets(&self, statement: &'static Statement, id: Uuid) -> Result<SpaceWithFidgets> {
        call(&self.scope, Operation::GetSpaceWithFidgets, async {
            let rows = self.scope.scan(statement, vec![id.into()], rows::space_and_fidget).await?;
            rows::group_by_space(rows).pop().ok_or_else(Error::not_found)
        })
        .await
    }

    /// The quota of the caller. The service has none.
    fn quota(&self) -> Option<Quota> {
        let (owner_id, limit) = self.scope.caller().id().zip(self.limits.max_owner_spaces)?;
        Some(Quota::SpacesOf { owner_id, limit })
    }

    /// The row of a new space.
    fn new_row(&self, mut space: NewSpace, created_at: Timestamp) -> NewRow<Space> {
        if self.scope.caller() != Caller::Service {
            space.owner_id = space.owner_id.or(self.scope.caller().id());
        }
        let given = space.id.map(|id| {
            let new = space.clone();
            GivenId { id, is_same: Arc::new(move |existing: &Space| new.is_same(existing)) }
        });
        space.id.get_or_insert_with(Uuid::new_v4);
        NewRow { values: space.insert_values([created_at.into()]), given }
    }
}

crate::model::opaque!(Spaces);
