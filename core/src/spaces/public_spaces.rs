//! Pages of public spaces after a space, and the iterator over all of them.
//!
//! Invariant: a page after a space begins at the position of that space in the order, whatever was inserted or deleted before
//! it, and finds that place in the index: it costs the same at any depth.

use std::{
    collections::HashSet,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use uuid::Uuid;

use super::{DEEP_OFFSET, PublicSpace, PublicSpaceCursor, Spaces, rows, sql};
use crate::{
    config::OwnerEmail,
    database::{Principal, ReadablePage, Row, RowStream, call},
    error::{Error, Operation, Result},
    model::CursorTime,
    validate,
};

impl Spaces {
    /// Returns public spaces with their owners: newest first, spaces created at the same time by id; the rows `offset`
    /// to `offset + limit - 1`. Every caller sees the e-mail addresses of the owners that the option
    /// [`expose_owner_email`](crate::Config::expose_owner_email) names.
    ///
    /// A page has fewer rows if they take more than 64 MiB of memory. Then
    /// [`get_public_spaces_after`](Spaces::get_public_spaces_after) returns the next page without a gap.
    ///
    /// The database reads and skips `offset` rows, and a row that is inserted or deleted meanwhile shifts the later pages.
    /// [`get_public_spaces_after`](Spaces::get_public_spaces_after) has neither cost.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT).
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::spaces::{DEFAULT_PAGE, NewSpace};
    ///
    /// client.spaces().create_spaces(vec![NewSpace::named("Chess").public(), NewSpace::named("Diary")])?;
    /// let spaces = client.spaces().get_public_spaces(DEFAULT_PAGE, 0)?;
    /// assert_eq!(spaces.len(), 1); // the diary is private
    /// let owner = spaces[0].owner.as_ref().unwrap();
    /// assert_eq!((spaces[0].name.as_str(), owner.email.as_deref()), ("Chess", Some("ann@town.example")));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_public_spaces(&self, limit: u32, offset: u64) -> Result<Vec<PublicSpace>> {
        call(&self.scope, Operation::GetPublicSpaces, async {
            let (limit, offset) = (validate::limit(limit)?, validate::offset(offset)?);
            let (statement, read) = (&sql::GET_PUBLIC_SPACES, rows::public_space);
            let mut page = ReadablePage::new(limit);
            loop {
                let values = [page.wanted.into(), offset.into()];
                let rows = if offset > DEEP_OFFSET {
                    self.scope.scan(statement, values.to_vec(), read).await?
                } else {
                    self.scope.fetch(statement, &values, read).await?
                };
                if let Some(spaces) = page.of(rows) {
                    return self.with_exposed_columns(spaces).await;
                }
            }
        })
        .await
    }

    /// Returns the public spaces that follow `after` in the order of [`get_public_spaces`](Spaces::get_public_spaces).
    ///
    /// When each page begins after the last space of the page before, the pages contain no space twice and leave none out, even
    /// while others insert and delete spaces. A page costs the same at any depth. A page has fewer spaces if they take more than
    /// 64 MiB of memory: only an empty page is the last one.
    ///
    /// `after` is a [`PublicSpace`], whose position stays valid when the space is deleted or unpublished, or the id of a
    /// space that is public now, which costs one more read.
    ///
    /// # Errors
    /// `InvalidInput` if `limit` is not 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT), and for an id that names no public space.
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
    /// client.spaces().create_spaces(["a", "b", "c"].map(|name| NewSpace::named(name).public()).into())?;
    /// let (mut page, mut names) = (client.spaces().get_public_spaces(2, 0)?, Vec::new());
    /// while let Some(last) = page.last() {
    ///     names.extend(page.iter().map(|space| space.name.clone()));
    ///     page = client.spaces().get_public_spaces_after(2, last)?;
    /// }
    /// assert_eq!(names, ["c", "b", "a"]);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_public_spaces_after(
        &self,
        limit: u32,
        after: impl Into<PublicSpaceCursor>,
    ) -> Result<Vec<PublicSpace>> {
        let PublicSpaceCursor { id, time } = after.into();
        call(&self.scope, Operation::GetPublicSpaces, async {
            let mut page = ReadablePage::new(validate::limit(limit)?);
            let created_at = match time {
                CursorTime::At(created_at) => Some(created_at),
                CursorTime::Null => None,
                CursorTime::Unknown => {
                    let created_at = |row: &Row<'_>| row.get_optional(0);
                    let position = self.scope.fetch_optional(&sql::GET_POSITION, &[id.into()], created_at).await?;
                    position.ok_or_else(|| Error::invalid_input(format!("after names no public space: {id}")))?
                }
            };
            loop {
                let limit = page.wanted.into();
                let rows = match created_at {
                    Some(created_at) => {
                        let values = [created_at.into(), id.into(), limit];
                        self.scope.fetch(&sql::GET_PUBLIC_SPACES_AFTER, &values, rows::public_space).await?
                    }
                    None => {
                        let values = [id.into(), limit];
                        self.scope.fetch(&sql::GET_PUBLIC_SPACES_AFTER_NULL, &values, rows::public_space).await?
                    }
                };
                if let Some(spaces) = page.of(rows) {
                    return self.with_exposed_columns(spaces).await;
                }
            }
        })
        .await
    }

    /// Returns all public spaces one by one, in the order of [`get_public_spaces`](Spaces::get_public_spaces). Reads
    /// `page_size` of them at a time, each page after the last space of the page before.
    ///
    /// The result ends after an error. The async one is a `Stream`, and its `next` needs no crate for
    /// streams.
    ///
    /// # Errors
    /// The items have the errors of [`get_public_spaces`](Spaces::get_public_spaces), also for a `page_size` that is not
    /// 1 to [`MAX_LIMIT`](crate::spaces::MAX_LIMIT).
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let mut spaces = client.spaces().iter_public_spaces(100);
    /// while let Some(space) = spaces.next().await {
    ///     println!("{}", space?.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_public_spaces(&self, page_size: u32) -> PublicSpaces {
        let spaces = self.clone();
        let load = move |after: Option<PublicSpaceCursor>| {
            let spaces = spaces.clone();
            async move {
                match after {
                    Some(after) => spaces.get_public_spaces_after(page_size, after).await,
                    None => spaces.get_public_spaces(page_size, 0).await,
                }
            }
        };
        PublicSpaces(RowStream::new(load, PublicSpace::cursor))
    }

    /// Removes the e-mail addresses that the client hides.
    async fn with_exposed_columns(&self, mut spaces: Vec<PublicSpace>) -> Result<Vec<PublicSpace>> {
        if self.owner_email == OwnerEmail::Always {
            return Ok(spaces);
        }
        let owners = || spaces.iter().filter_map(|space| space.owner.as_ref());
        let verified: HashSet<(Uuid, String)> = match self.owner_email {
            OwnerEmail::Verified => {
                let addresses: Vec<String> = owners().filter_map(|owner| owner.email.clone()).collect();
                let service = self.scope.for_principal(self.scope.handle_of(Principal::Service));
                let owner = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let found = service.fetch(&sql::GET_VERIFIED_EMAILS, &[addresses.into()], owner).await?;
                found.into_iter().collect()
            }
            OwnerEmail::Always | OwnerEmail::Never => HashSet::new(),
        };
        for owner in spaces.iter_mut().filter_map(|space| space.owner.as_mut()) {
            owner.email = owner.email.take().filter(|email| verified.contains(&(owner.id, email.clone())));
        }
        Ok(spaces)
    }
}

/// The public spaces one by one: the result of [`Spaces::iter_public_spaces`].
#[derive(Debug)]
pub struct PublicSpaces(RowStream<PublicSpace, PublicSpaceCursor>);

impl PublicSpaces {
    /// Returns the next space; `None` after the last one and after an error.
    ///
    /// Dropping the future loses no space.
    ///
    /// # Errors
    /// The errors of [`Spaces::get_public_spaces`].
    pub async fn next(&mut self) -> Option<Result<PublicSpace>> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// Whether [`next`](PublicSpaces::next) has its space in memory. For the Python binding.
    #[doc(hidden)]
    pub fn has_read_ahead(&self) -> bool {
        self.0.has_read_ahead()
    }
}

impl Stream for PublicSpaces {
    type Item = Result<PublicSpace>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<PublicSpace>>> {
        self.get_mut().0.poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::database::query_plan;

    #[test]
    fn a_page_after_a_space_seeks_in_the_index() {
        let plan = query_plan(&sql::GET_PUBLIC_SPACES_AFTER);
        let seek = "SEARCH spaces USING INDEX spaces_is_public_created_at_idx (is_public=? AND created_at<?)";
        assert!(plan.iter().any(|step| step == seek), "{plan:#?}");
        // Only rows created at the same time are sorted.
        assert!(plan.iter().any(|step| step == "USE TEMP B-TREE FOR LAST TERM OF ORDER BY"), "{plan:#?}");
        // A constant row is a subquery without a table.
        let scans = |step: &String| step.starts_with("SCAN") && step != "SCAN CONSTANT ROW";
        assert!(!plan.iter().any(|step| scans(step) || step.ends_with("FOR ORDER BY")), "{plan:#?}");
    }

    #[test]
    fn a_page_after_a_space_without_a_time_reads_in_the_order_of_the_index() {
        for statement in [&sql::GET_PUBLIC_SPACES, &sql::GET_PUBLIC_SPACES_AFTER_NULL] {
            let plan = query_plan(statement);
            let search = "SEARCH spaces USING INDEX spaces_is_public_created_at_idx (is_public=?)";
            assert!(plan.iter().any(|step| step == search), "{plan:#?}");
            assert!(!plan.iter().any(|step| step.ends_with("FOR ORDER BY")), "{plan:#?}");
        }
    }
}
