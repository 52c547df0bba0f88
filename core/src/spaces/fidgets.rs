//! The service for fidgets: widgets placed in a space (SPEC 2.7).
//!
//! Invariant: a caller who may see a space may see its fidgets; its owner may change them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use super::{
    insert::{GivenId, NewRow, Quota, increasing_times, insert_all, insert_one},
    statements as sql,
};
use crate::{
    clock::Clock,
    database::{ReadablePage, Scope, call, readable_record, record},
    error::{Error, Operation, Result},
    model::{Fidget, FidgetCursor, FidgetPatch, NewFidget, Validate as _},
    validate::{self, Limits},
};

/// Operations on rows of `fidgets`, under the policies of the client's caller.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
#[derive(Clone)]
pub struct Fidgets {
    scope: Scope,
    clock: Clock,
    limits: Limits,
}

impl Fidgets {
    pub(crate) fn new(scope: Scope, clock: Clock, limits: Limits) -> Fidgets {
        Fidgets { scope, clock, limits }
    }

    /// Creates a fidget in a space and returns it.
    ///
    /// A call with an id can be repeated, for example after a lost connection: if a fidget of the space has this id and
    /// the same type, config and position, the call returns that fidget.
    ///
    /// # Errors
    /// - `FieldMissing` without a type.
    /// - `Forbidden` if the space is not the caller's, or for the service `ReferenceMissing` if it does not exist.
    /// - `AlreadyExists` if another fidget has the id.
    /// - `InvalidInput` for text with a NUL or JSON deeper than 100; `TooLarge` for text over `max_text_size` or JSON over
    ///   `max_json_size`.
    /// - `QuotaExceeded` (409) if the space would have more fidgets than `max_space_fidgets`; the service may add more.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::spaces::{NewFidget, NewSpace};
    ///
    /// let space = client.spaces().create_space(NewSpace::named("Harbor"))?;
    /// let clock = NewFidget::of_type("clock").position(vec![0, 0, 4, 2]);
    /// let clock = client.fidgets().create_fidget(space.id, clock)?;
    /// assert_eq!(clock.space_id, Some(space.id));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// The space of another user is refused, whether it exists or not:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::{ErrorKind, Uuid, spaces::NewFidget};
    ///
    /// let error = client.fidgets().create_fidget(Uuid::new_v4(), NewFidget::of_type("clock")).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Forbidden);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn create_fidget(&self, space_id: Uuid, fidget: NewFidget) -> Result<Fidget> {
        call(&self.scope, Operation::CreateFidget, async {
            fidget.validate(&self.limits)?;
            let row = new_row(space_id, fidget, self.clock.now());
            insert_one(&self.scope, &sql::INSERT_FIDGET, row, self.quota(space_id), record).await
        })
        .await
    }

    /// Creates fidgets in a space in one transaction: all or none. Returns them in the order of `fidgets`. Their
    /// `created_at` increases in this order, so lists of the space's fidgets keep it.
    ///
    /// # Errors
    /// As [`create_fidget`](Fidgets::create_fidget), for the first fidget that fails: [`Error::row`] is its index.
    /// `TooLarge` for more fidgets than `max_bulk_rows`.
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
        call(&self.scope, Operation::CreateFidgets, async {
            self.limits.each("fidgets", &fidgets, |fidget| fidget.validate(&self.limits))?;
            let times = increasing_times(self.clock.now());
            let rows = fidgets.into_iter().zip(times).map(|(fidget, time)| new_row(space_id, fidget, time)).collect();
            insert_all(&self.scope, &sql::INSERT_FIDGET, rows, self.quota(space_id), record).await
        })
        .await
    }

    /// Saves the positions of fidgets of a space in one transaction; `None` clears a position. Returns these fidgets,
    /// oldest first.
    ///
    /// # Errors
    /// `NotFound` if a fidget is not in the space or the space is not the caller's; then no position changes.
    /// `InvalidInput` for JSON deeper than 100; `TooLarge` for JSON over `max_json_size`, and for more positions than
    /// `max_bulk_rows`.
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
        call(&self.scope, Operation::SavePositions, async {
            self.limits.rows("positions", positions.len())?;
            for (id, position) in &positions {
                position.validate(&format!("positions[{id}]"), &self.limits)?;
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
        call(&self.scope, Operation::GetFidget, self.scope.fetch_one(&sql::GET_FIDGET, &[id.into()], record)).await
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
        call(&self.scope, Operation::UpdateFidget, async {
            patch.validate(&self.limits)?;
            if patch.is_empty() {
                return self.scope.fetch_one(&sql::INSERT_FIDGET.get_own, &[id.into()], record).await;
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
        call(&self.scope, Operation::DeleteFidget, async {
            let deleted = self.scope.execute(&sql::DELETE_FIDGET, vec![id.into()], |row| row.get::<Uuid>(0)).await?;
            deleted.map(drop).ok_or_else(Error::not_found)
        })
        .await
    }

    /// Returns the fidgets of a space: oldest first, fidgets created at the same time by id. A space that does not exist
    /// or that the caller may not see has none.
    ///
    /// # Errors
    /// `TooLarge` if they take more than 64 MiB of memory; [`get_space_fidgets_after`](Fidgets::get_space_fidgets_after)
    /// returns pages of them.
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
        call(&self.scope, Operation::GetSpaceFidgets, async {
            let values = vec![space_id.into()];
            let rows = self.scope.scan(&sql::GET_SPACE_FIDGETS, values, readable_record).await?;
            Ok(rows.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns the `limit` fidgets that follow `after` in the order of [`get_space_fidgets`](Fidgets::get_space_fidgets); the
    /// first ones without `after`.
    ///
    /// When each page begins after the last fidget of the page before, the pages contain no fidget twice and leave none out,
    /// even while others insert and delete fidgets. A page has fewer fidgets if they take more than 64 MiB of memory: only an
    /// empty page is the last one.
    ///
    /// `after` is a [`Fidget`] of an earlier page, which may be deleted meanwhile, or the id of a fidget of the space.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT), and for an id that names no fidget of the space.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let first = client.fidgets().get_space_fidgets_after(space_id, 100, None)?;
    /// if let Some(last) = first.last() {
    ///     let second = client.fidgets().get_space_fidgets_after(space_id, 100, Some(last.into()))?;
    ///     println!("{} more", second.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space_fidgets_after(
        &self,
        space_id: Uuid,
        limit: u32,
        after: Option<FidgetCursor>,
    ) -> Result<Vec<Fidget>> {
        call(&self.scope, Operation::GetSpaceFidgets, async {
            let mut page = ReadablePage::new(validate::limit(limit)?);
            if let Some(FidgetCursor { id, created_at: None }) = after {
                let named = [id.into(), space_id.into()];
                let found = self.scope.fetch_optional(&sql::HAS_FIDGET, &named, |row| row.get::<Uuid>(0)).await?;
                found.ok_or_else(|| Error::invalid_input(format!("after names no fidget of the space: {id}")))?;
            }
            loop {
                let (space_id, limit) = (space_id.into(), page.wanted.into());
                let (statement, values) = match after {
                    None => (&sql::GET_FIRST_FIDGETS, vec![space_id, limit]),
                    Some(FidgetCursor { id, created_at }) => {
                        (&sql::GET_FIDGETS_AFTER, vec![space_id, limit, id.into(), created_at.into()])
                    }
                };
                if let Some(fidgets) = page.of(self.scope.scan(statement, values, readable_record).await?) {
                    return Ok(fidgets);
                }
            }
        })
        .await
    }

    /// The quota of a space. The service has none; an anonymous caller owns no space.
    fn quota(&self, space_id: Uuid) -> Option<Quota> {
        let limit = self.limits.max_space_fidgets;
        self.scope.caller().id().map(|_| Quota::FidgetsIn { space_id, limit })
    }
}

/// The row of a new fidget.
fn new_row(space_id: Uuid, mut fidget: NewFidget, created_at: Timestamp) -> NewRow<Fidget> {
    let given = fidget.id.map(|id| {
        let new = fidget.clone();
        let is_same = move |existing: &Fidget| existing.space_id == Some(space_id) && new.is_same(existing);
        GivenId { id, is_same: Arc::new(is_same) }
    });
    fidget.id.get_or_insert_with(Uuid::new_v4);
    NewRow { values: fidget.insert_values([space_id.into(), created_at.into()]), given }
}

crate::model::opaque!(Fidgets);

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::database::query_plan;

    #[test]
    fn a_page_of_fidgets_is_read_in_the_order_of_the_index() {
        for statement in [&sql::GET_FIRST_FIDGETS, &sql::GET_FIDGETS_AFTER] {
            let plan = query_plan(statement);
            let search = "SEARCH fidgets USING INDEX townsquare_fidgets_in_order (space_id=?)";
            assert!(plan.iter().any(|step| step == search), "{plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("ORDER BY")), "{plan:#?}");
        }
    }
}
