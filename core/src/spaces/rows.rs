//! Rows of the statements that join spaces with users or fidgets.

use uuid::Uuid;

use crate::{
    database::Row,
    error::Result,
    model::{Fidget, FromRow as _, Owner, PublicSpace, Space, SpaceWithFidgets},
};

/// The first column after the columns of a space.
const JOINED: usize = Space::COLUMNS.all.len();

/// A space of a list, its owner's id and e-mail address, and whether its `created_at` is NULL; `None` for a row to leave
/// out.
pub(super) fn public_space(row: &Row<'_>) -> Result<Option<PublicSpace>> {
    Ok(row.readable(|row| {
        let email = row.get_optional(JOINED + 1)?;
        let owner = row.get_optional(JOINED)?.map(|id| Owner { id, email });
        Ok(PublicSpace { space: Space::from_row(row, 0)?, owner, has_null_time: row.get(JOINED + 2)? })
    }))
}

/// A space and one of its fidgets; `None` if it has no fidget, or one that cannot be read.
pub(super) fn space_and_fidget(row: &Row<'_>) -> Result<(Space, Option<Fidget>)> {
    let space = Space::from_row(row, 0)?;
    let fidget = row.readable(|row| {
        let id: Option<Uuid> = row.get_optional(JOINED)?;
        id.map(|_| Fidget::from_row(row, JOINED)).transpose()
    });
    Ok((space, fidget.flatten()))
}

/// Groups joined rows by space. The rows of a space are consecutive.
pub(super) fn group_by_space(rows: impl IntoIterator<Item = (Space, Option<Fidget>)>) -> Vec<SpaceWithFidgets> {
    let mut spaces: Vec<SpaceWithFidgets> = Vec::new();
    for (space, fidget) in rows {
        match spaces.last_mut().filter(|last| last.space.id == space.id) {
            Some(last) => last.fidgets.extend(fidget),
            None => spaces.push(SpaceWithFidgets { space, fidgets: fidget.into_iter().collect() }),
        }
    }
    spaces
}
