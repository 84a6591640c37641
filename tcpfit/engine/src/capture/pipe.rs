//! Pipes and terminals, whose reads wait as long as their writer likes: a thread waits there, so that this one can be
//! stopped. Signals alone do not do it, for whoever installed the handler may have asked for reads to go on.

use std::io::{self, Read};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::input::{Interrupt, Stopped};

const SIZE: usize = 256 << 10;

/// Blocks under way between the threads.
const AHEAD: usize = 2;

/// Time between questions whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

pub struct Pipe {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that were read, to be filled again.
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
    interrupt: Interrupt,
}

impl Pipe {
    /// `open` runs on the other thread: opening a pipe waits for its writer.
    pub fn new<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        interrupt: Interrupt,
    ) -> io::Result<Self> {
        let (send, blocks) = sync_channel(AHEAD);
        let (used, reuse) = std::sync::mpsc::channel::<Vec<u8>>();
        // never joined: it may wait for a writer that never writes, and ends with its first block for nobody
        thread::Builder::new().name("tcpfit-pipe".into()).spawn(move || {
            let mut reader = match open() {
                Ok(reader) => reader,
                Err(error) => return drop(send.send(Err(error))),
            };
            loop {
                let mut block = reuse.try_recv().unwrap_or_default();
                block.resize(SIZE, 0);
                let read = match reader.read(&mut block) {
                    Ok(0) => return,
                    Ok(n) => {
                        block.truncate(n);
                        Ok(block)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                if send.send(read).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self {
            blocks,
            used,
            block: Vec::new(),
            at: 0,
            interrupt,
        })
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(block) => {
                    // the other thread may have ended, then nobody wants it
                    let _ = self.used.send(std::mem::replace(&mut self.block, block?));
                    self.at = 0;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if (self.interrupt)() {
                        return Err(io::Error::other(Stopped));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let n = buffer.len().min(self.block.len() - self.at);
        buffer[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
