//! Rows of spaces and fidgets, in the column order of the statements.

use uuid::Uuid;

use crate::{
    database::Row,
    error::Result,
    model::{Fidget, Owner, PublicSpace, Space, SpaceWithFidgets},
};

/// Columns of a space.
const SPACE: usize = 7;

pub(super) fn id(row: &Row<'_>) -> Result<Uuid> {
    row.get(0)
}

pub(super) fn space(row: &Row<'_>) -> Result<Space> {
    Ok(Space {
        id: row.get(0)?,
        name: row.get(1)?,
        description: row.get_optional(2)?,
        owner_id: row.get_optional(3)?,
        // The columns have defaults and take NULL from others all the same.
        is_public: row.get_optional(4)?.unwrap_or(false),
        created_at: row.get_optional(5)?.unwrap_or_default(),
        updated_at: row.get_optional(6)?.unwrap_or_default(),
    })
}

pub(super) fn public_space(row: &Row<'_>) -> Result<PublicSpace> {
    let owner = row.get_optional(SPACE)?;
    let email = row.get_optional(SPACE + 1)?;
    Ok(PublicSpace { space: space(row)?, owner: owner.map(|id| Owner { id, email }) })
}

pub(super) fn fidget(row: &Row<'_>) -> Result<Fidget> {
    fidget_from(row, 0)
}

fn fidget_from(row: &Row<'_>, first: usize) -> Result<Fidget> {
    Ok(Fidget {
        id: row.get(first)?,
        space_id: row.get_optional(first + 1)?,
        kind: row.get(first + 2)?,
        config: row.get_optional(first + 3)?,
        position: row.get_optional(first + 4)?,
        created_at: row.get_optional(first + 5)?.unwrap_or_default(),
        updated_at: row.get_optional(first + 6)?.unwrap_or_default(),
    })
}

/// A row of a join: the space, and one of its fidgets if it has any.
pub(super) fn space_and_fidget(row: &Row<'_>) -> Result<(Space, Option<Fidget>)> {
    let fidget = match row.get_optional::<Uuid>(SPACE)? {
        Some(_) => Some(fidget_from(row, SPACE)?),
        None => None,
    };
    Ok((space(row)?, fidget))
}

/// Joined rows put together again; rows of one space stand together.
pub(super) fn grouped(rows: Vec<(Space, Option<Fidget>)>) -> Vec<SpaceWithFidgets> {
    let mut spaces: Vec<SpaceWithFidgets> = Vec::new();
    for (space, fidget) in rows {
        match spaces.last_mut().filter(|last| last.space.id == space.id) {
            Some(last) => last.fidgets.extend(fidget),
            None => spaces.push(SpaceWithFidgets { space, fidgets: fidget.into_iter().collect() }),
        }
    }
    spaces
}
