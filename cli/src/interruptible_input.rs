//! The standard input as a reader that a signal ends. A read of a pipe or of a terminal waits for its other side, so a thread reads.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use crate::interrupt;

/// The bytes that are read at a time.
const CHUNK: usize = 64 * 1024;

/// How often a reader that waits looks for a signal.
const WAIT: Duration = Duration::from_millis(100);

/// The standard input. A signal makes the next read an error.
#[derive(Debug)]
pub(crate) struct InterruptibleInput {
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// The bytes of the last chunk that were not read yet.
    rest: io::Cursor<Vec<u8>>,
}

impl InterruptibleInput {
    pub(crate) fn start() -> io::Result<InterruptibleInput> {
        let (sender, chunks) = sync_channel(1);
        let read = move || {
            let mut input = io::stdin().lock();
            loop {
                let mut chunk = Vec::with_capacity(CHUNK);
                let read = input.by_ref().take(CHUNK as u64).read_to_end(&mut chunk).map(|_| chunk);
                let is_last = read.as_ref().is_ok_and(Vec::is_empty) || read.is_err();
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("townsquare-input".to_owned()).spawn(read)?;
        Ok(InterruptibleInput { chunks, rest: io::Cursor::default() })
    }
}

impl Read for InterruptibleInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.rest.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // Not the kind `Interrupted`, after which readers try again.
            if interrupt::is_requested() {
                return Err(io::Error::other("a signal ended the command"));
            }
            match self.chunks.recv_timeout(WAIT) {
                Ok(chunk) => match chunk? {
                    chunk if chunk.is_empty() => return Ok(0),
                    chunk => self.rest = io::Cursor::new(chunk),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
