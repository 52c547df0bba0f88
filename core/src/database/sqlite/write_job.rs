//! A [`Job`] that runs the work of one transaction and sends its result.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;

use super::{write_connection::WriteConnection, writer::Job};
use crate::{
    database::{
        principal::Principal,
        transaction::{FailedWrite, Transaction, Work},
    },
    error::{Error, ErrorKind, Result},
    threads::panicked,
};

pub(super) struct TransactionJob<T, W> {
    principal: Arc<Principal>,
    /// The work of the transaction; `None` once it has run.
    work: Option<W>,
    is_exclusive: bool,
    /// What `work` returned, or why it was refused; `None` if the job has not run or `work` has panicked.
    result: Option<Result<T>>,
    sender: oneshot::Sender<Result<T, FailedWrite<W>>>,
}

impl<T, W> TransactionJob<T, W>
where
    W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T>,
{
    /// A job that runs `work` for `principal` and sends its result to `sender`.
    pub(super) fn new(
        principal: Arc<Principal>,
        work: W,
        is_exclusive: bool,
        sender: oneshot::Sender<Result<T, FailedWrite<W>>>,
    ) -> TransactionJob<T, W> {
        TransactionJob { principal, work: Some(work), is_exclusive, result: None, sender }
    }

    fn run_work(&self, work: W, connection: &mut WriteConnection) -> Result<T> {
        let mut transaction = Transaction::sqlite(connection, self.principal.caller());
        // Statements of SQLite never return Pending, so neither does work that awaits nothing else.
        match work(&mut transaction).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(Error::new(ErrorKind::Internal, "a transaction awaited something other than itself")),
        }
    }
}

impl<T: Send, W> Job for TransactionJob<T, W>
where
    W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send,
{
    fn run(&mut self, connection: &mut WriteConnection) -> bool {
        if let Err(error) = connection.with_valid_session(&self.principal, || Ok(())) {
            self.result = Some(Err(error));
            return false;
        }
        let Some(work) = self.work.take() else { return false };
        let result = self.run_work(work, connection);
        self.result.insert(result).is_ok()
    }

    fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let TransactionJob { work, result, sender, .. } = *self;
        let result = match (result, committed) {
            (Some(Ok(_)), Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, committed) => committed.and_then(|()| Err(panicked())),
        };
        // Sending fails if the caller dropped its future. The transaction stays committed.
        let _ = sender.send(result.map_err(|error| FailedWrite { error, work }));
    }
}
