//! Fidgets: the widgets placed in a space (SPEC 2.7).
//!
//! Invariant: who may see a space may see its fidgets, who owns it may change them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use uuid::Uuid;

use super::{rows, statements as sql};
use crate::{
    clock::Clock,
    database::{Scope, Value},
    error::{Error, Operation, Result, WithOperation},
    model::{Fidget, FidgetPatch, NewFidget},
    policy::Table,
    validate,
};

/// Rows of `fidgets`, as the client's caller may see and change them.
#[derive(Clone)]
pub struct Fidgets {
    scope: Scope,
    clock: Clock,
}

impl Fidgets {
    pub(crate) fn new(scope: Scope, clock: Clock) -> Fidgets {
        Fidgets { scope, clock }
    }

    /// Places a fidget in a space and returns it.
    ///
    /// # Errors
    /// `FieldMissing` without a type, `ReferenceMissing` for a space that does not exist (the service), `Forbidden` for a
    /// space that is not the caller's, `InvalidInput` for text with a NUL or JSON deeper than 100.
    pub async fn create_fidget(&self, space_id: Uuid, fidget: NewFidget) -> Result<Fidget> {
        let insert = async {
            let values = self.insertion(space_id, fidget)?;
            self.scope.execute(&sql::INSERT_FIDGET, values, rows::fidget).await?.ok_or_else(forbidden)
        };
        insert.await.with_operation(Operation::CreateFidget)
    }

    /// Places fidgets in a space in one transaction: all of them or none. Returns them in the order given.
    ///
    /// # Errors
    /// As [`create_fidget`](Fidgets::create_fidget), for the first that fails.
    pub async fn create_fidgets(&self, space_id: Uuid, fidgets: Vec<NewFidget>) -> Result<Vec<Fidget>> {
        let insert = async {
            let all = fidgets.into_iter().map(|fidget| self.insertion(space_id, fidget));
            let all: Vec<_> = all.collect::<Result<_>>()?;
            let insert = self.scope.write(move |transaction| {
                Box::pin(async move {
                    let mut created = Vec::with_capacity(all.len());
                    for values in all {
                        let mut rows = transaction.fetch(&sql::INSERT_FIDGET, &values, rows::fidget).await?;
                        created.push(rows.pop().ok_or_else(forbidden)?);
                    }
                    Ok(created)
                })
            });
            insert.await
        };
        insert.await.with_operation(Operation::CreateFidgets)
    }

    /// Saves the positions of a space's fidgets in one transaction, as after a drag; `None` takes a place away. Returns
    /// the fidgets that were named, oldest first.
    ///
    /// # Errors
    /// `NotFound` when one of them is not a fidget of that space, or the space is not the caller's: nothing changes.
    pub async fn save_positions(&self, space_id: Uuid, positions: BTreeMap<Uuid, Option<Json>>) -> Result<Vec<Fidget>> {
        let save = async {
            for position in positions.values() {
                validate::json("position", position.as_ref())?;
            }
            let now = self.clock.now();
            let save = self.scope.write(move |transaction| {
                Box::pin(async move {
                    let mut moved = Vec::with_capacity(positions.len());
                    // In the order of their ids, as every other caller does: two drags at once cannot deadlock.
                    for (id, position) in &positions {
                        let values = [(*id).into(), space_id.into(), position.as_ref().into(), now.into()];
                        let mut rows = transaction.fetch(&sql::MOVE_FIDGET, &values, rows::fidget).await?;
                        moved.push(rows.pop().ok_or_else(Error::not_found)?);
                    }
                    moved.sort_by_key(|fidget: &Fidget| (fidget.created_at, fidget.id));
                    Ok(moved)
                })
            });
            save.await
        };
        save.await.with_operation(Operation::SavePositions)
    }

    /// One fidget by id.
    ///
    /// # Errors
    /// `NotFound` when there is none that the caller may see.
    pub async fn get_fidget(&self, id: Uuid) -> Result<Fidget> {
        let found = self.scope.fetch(&sql::GET_FIDGET, &[id.into()], rows::fidget).await;
        found.and_then(|mut rows| rows.pop().ok_or_else(Error::not_found)).with_operation(Operation::GetFidget)
    }

    /// Changes what the patch names and returns the row. A patch of nothing changes nothing.
    ///
    /// # Errors
    /// `NotFound` when there is no such fidget in a space of the caller's, `FieldMissing` when the type is cleared.
    pub async fn update_fidget(&self, id: Uuid, patch: FidgetPatch) -> Result<Fidget> {
        let update = async {
            validate::text("type", patch.kind.as_set())?;
            validate::json("config", patch.config.as_set())?;
            validate::json("position", patch.position.as_set())?;
            let rows = if patch == FidgetPatch::new() {
                self.scope.fetch(&sql::GET_OWN_FIDGET, &[id.into()], rows::fidget).await
            } else {
                let values = vec![
                    id.into(),
                    (!patch.kind.is_keep()).into(),
                    patch.kind.into_set().into(),
                    (!patch.config.is_keep()).into(),
                    patch.config.into_set().into(),
                    (!patch.position.is_keep()).into(),
                    patch.position.into_set().into(),
                    self.clock.now().into(),
                ];
                self.scope.change(&sql::UPDATE_FIDGET, values, rows::fidget).await
            };
            rows?.pop().ok_or_else(Error::not_found)
        };
        update.await.with_operation(Operation::UpdateFidget)
    }

    /// Takes a fidget out of its space.
    ///
    /// # Errors
    /// `NotFound` when there is no such fidget in a space of the caller's.
    pub async fn delete_fidget(&self, id: Uuid) -> Result<()> {
        let deleted = self.scope.change(&sql::DELETE_FIDGET, vec![id.into()], rows::id).await;
        deleted
            .and_then(|rows| rows.first().map(|_| ()).ok_or_else(Error::not_found))
            .with_operation(Operation::DeleteFidget)
    }

    /// The fidgets of a space, oldest first, those of one moment by id; none for a space that is missing or hidden.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn get_space_fidgets(&self, space_id: Uuid) -> Result<Vec<Fidget>> {
        let rows = self.scope.scan(&sql::GET_SPACE_FIDGETS, vec![space_id.into()], rows::fidget).await;
        rows.with_operation(Operation::GetSpaceFidgets)
    }

    /// What is bound to insert a fidget.
    fn insertion(&self, space_id: Uuid, fidget: NewFidget) -> Result<Vec<Value<'static>>> {
        validate::text("type", fidget.kind.as_ref())?;
        validate::json("config", fidget.config.as_ref())?;
        validate::json("position", fidget.position.as_ref())?;
        Ok(vec![
            Uuid::new_v4().into(),
            space_id.into(),
            fidget.kind.into(),
            fidget.config.into(),
            fidget.position.into(),
            self.clock.now().into(),
        ])
    }
}

fn forbidden() -> Error {
    Error::new_row_violates(Table::Fidgets.name())
}
