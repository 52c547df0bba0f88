//! The service for fidgets: widgets placed in a space (SPEC 2.7).
//!
//! Invariant: a caller who may see a space may see its fidgets; its owner may change them.

use std::{collections::BTreeMap, fmt};

use serde_json::Value as Json;
use uuid::Uuid;

use super::{insert_all, insert_one, statements as sql};
use crate::{
    clock::Clock,
    database::{Scope, Value, record},
    error::{Error, Operation, Result, operation},
    model::{Fidget, FidgetPatch, NewFidget, Validate as _},
    policy::Table,
};

/// Operations on rows of `fidgets`, under the policies of the client's caller.
#[derive(Clone)]
pub struct Fidgets {
    scope: Scope,
    clock: Clock,
}

impl Fidgets {
    pub(crate) fn new(scope: Scope, clock: Clock) -> Fidgets {
        Fidgets { scope, clock }
    }

    /// Creates a fidget in a space and returns it.
    ///
    /// # Errors
    /// `FieldMissing` without a type; `Forbidden` if the space is not the caller's, or for the service
    /// `ReferenceMissing` if it does not exist; `InvalidInput` for text with a NUL or JSON deeper than 100.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::NewFidget;
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let clock = NewFidget::of_type("clock").position(vec![0, 0, 4, 2]);
    /// let clock = client.fidgets().create_fidget(space_id, clock)?;
    /// assert_eq!(clock.space_id, Some(space_id));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_fidget(&self, space_id: Uuid, fidget: NewFidget) -> Result<Fidget> {
        operation(Operation::CreateFidget, async {
            let values = self.insert_values(space_id, fidget)?;
            insert_one(&self.scope, &sql::INSERT_FIDGET, Table::Fidgets, values, record).await
        })
        .await
    }

    /// Creates fidgets in a space in one transaction: all or none. Returns them in the order of `fidgets`.
    ///
    /// # Errors
    /// As [`create_fidget`](Fidgets::create_fidget), for the first fidget that fails.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::NewFidget;
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let fidgets = vec![NewFidget::of_type("clock"), NewFidget::of_type("calendar")];
    /// let fidgets = client.fidgets().create_fidgets(space_id, fidgets)?;
    /// assert_eq!(fidgets[1].kind, "calendar");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_fidgets(&self, space_id: Uuid, fidgets: Vec<NewFidget>) -> Result<Vec<Fidget>> {
        operation(Operation::CreateFidgets, async {
            let rows = fidgets.into_iter().map(|fidget| self.insert_values(space_id, fidget)).collect::<Result<_>>()?;
            insert_all(&self.scope, &sql::INSERT_FIDGET, Table::Fidgets, rows, record).await
        })
        .await
    }

    /// Saves the positions of fidgets of a space in one transaction; `None` clears a position. Returns these fidgets,
    /// oldest first.
    ///
    /// # Errors
    /// `NotFound` if a fidget is not in the space or the space is not the caller's; then no position changes.
    ///
    /// # Examples
    /// ```
    /// use std::collections::BTreeMap;
    /// use townsquare::Json;
    /// # fn example(
    /// #     client: &townsquare::blocking::Client, space_id: townsquare::Uuid, clock: townsquare::Uuid,
    /// # ) -> townsquare::Result<()> {
    /// let positions = BTreeMap::from([(clock, Some(Json::from(vec![4, 0, 4, 2])))]);
    /// client.fidgets().save_positions(space_id, positions)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_positions(&self, space_id: Uuid, positions: BTreeMap<Uuid, Option<Json>>) -> Result<Vec<Fidget>> {
        operation(Operation::SavePositions, async {
            for position in positions.values() {
                position.validate("position")?;
            }
            let now = self.clock.now();
            let work = self.scope.write(move |transaction| {
                Box::pin(async move {
                    let mut fidgets: Vec<Fidget> = Vec::with_capacity(positions.len());
                    // Every transaction updates the rows in the order of their ids, so that two cannot deadlock.
                    for (id, position) in &positions {
                        let values = [(*id).into(), space_id.into(), position.as_ref().into(), now.into()];
                        let row = transaction.fetch_optional(&sql::SAVE_POSITION, &values, record).await?;
                        fidgets.push(row.ok_or_else(Error::not_found)?);
                    }
                    fidgets.sort_by_key(|fidget| (fidget.created_at, fidget.id));
                    Ok(fidgets)
                })
            });
            work.await
        })
        .await
    }

    /// Returns a fidget.
    ///
    /// # Errors
    /// `NotFound` if the fidget does not exist or the caller may not see it.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let fidget = client.fidgets().get_fidget(id)?;
    /// println!("{} at {:?}", fidget.kind, fidget.position);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_fidget(&self, id: Uuid) -> Result<Fidget> {
        operation(Operation::GetFidget, self.scope.fetch_one(&sql::GET_FIDGET, &[id.into()], record)).await
    }

    /// Changes a fidget and returns it. An empty patch changes nothing, not even `updated_at`.
    ///
    /// # Errors
    /// `NotFound` if the fidget does not exist or its space is not the caller's; `FieldMissing` if the patch clears the
    /// type.
    ///
    /// # Examples
    /// ```
    /// use townsquare::spaces::FidgetPatch;
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let fidget = client.fidgets().update_fidget(id, FidgetPatch::new().kind("calendar").config(None))?;
    /// assert_eq!(fidget.config, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_fidget(&self, id: Uuid, patch: FidgetPatch) -> Result<Fidget> {
        operation(Operation::UpdateFidget, async {
            patch.validate()?;
            if patch.is_empty() {
                return self.scope.fetch_one(&sql::GET_OWN_FIDGET, &[id.into()], record).await;
            }
            let values = patch.update_values([id.into(), self.clock.now().into()]);
            self.scope.execute(&sql::UPDATE_FIDGET, values, record).await?.ok_or_else(Error::not_found)
        })
        .await
    }

    /// Deletes a fidget.
    ///
    /// # Errors
    /// `NotFound` if the fidget does not exist or its space is not the caller's.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// client.fidgets().delete_fidget(id)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_fidget(&self, id: Uuid) -> Result<()> {
        operation(Operation::DeleteFidget, async {
            let deleted = self.scope.execute(&sql::DELETE_FIDGET, vec![id.into()], |row| row.get::<Uuid>(0)).await?;
            deleted.map(drop).ok_or_else(Error::not_found)
        })
        .await
    }

    /// Returns the fidgets of a space: oldest first, fidgets created at the same time by id. A space that does not exist
    /// or that the caller may not see has none.
    ///
    /// # Errors
    /// Errors of the database only.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// for fidget in client.fidgets().get_space_fidgets(space_id)? {
    ///     println!("{}", fidget.kind);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space_fidgets(&self, space_id: Uuid) -> Result<Vec<Fidget>> {
        operation(Operation::GetSpaceFidgets, self.scope.scan(&sql::GET_SPACE_FIDGETS, vec![space_id.into()], record))
            .await
    }

    /// The values of [`sql::INSERT_FIDGET`].
    fn insert_values(&self, space_id: Uuid, fidget: NewFidget) -> Result<Vec<Value<'static>>> {
        fidget.validate()?;
        Ok(fidget.insert_values([Uuid::new_v4().into(), space_id.into(), self.clock.now().into()]))
    }
}

impl fmt::Debug for Fidgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fidgets").finish_non_exhaustive()
    }
}
