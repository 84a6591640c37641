//! A thread that reads ahead: pipes and terminals, whose reads wait as long as their writer likes, so that this thread can
//! be stopped (signals alone do not do it, for whoever installed the handler may have asked for reads to go on); and
//! decompressors, which work while the packets before are followed.

use std::io::{self, Read};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::input::{Interrupt, Stopped};

/// Bytes of a block, and room before them for what is left of the block before.
const SIZE: usize = 256 << 10;
pub const HEADROOM: usize = 16 << 10;

/// Blocks under way between the threads.
const AHEAD: usize = 2;

/// Time between questions whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

pub struct Pipe {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that were read, to be filled again.
    used: Sender<Vec<u8>>,
    interrupt: Interrupt,
}

impl Pipe {
    /// `open` runs on the other thread, since opening a pipe waits for its writer; what it tells beside the reader is
    /// waited for. `whole` blocks are asked for where the reader does not wait for anybody.
    pub fn new<R: Read, T: Send + 'static>(
        open: impl FnOnce() -> io::Result<(R, T)> + Send + 'static,
        whole: bool,
        mut interrupt: Interrupt,
    ) -> io::Result<(Self, T)> {
        let (tell, told) = sync_channel(1);
        let (send, blocks) = sync_channel(AHEAD);
        let (used, reuse) = std::sync::mpsc::channel::<Vec<u8>>();
        // never joined: it may wait for a writer that never writes, and ends with its first block for nobody
        thread::Builder::new().name("tcpfit-pipe".into()).spawn(move || {
            let mut reader = match open() {
                Ok((reader, known)) => {
                    let _ = tell.send(Ok(known));
                    reader
                }
                Err(error) => return drop(tell.send(Err(error))),
            };
            loop {
                let mut block = reuse.try_recv().unwrap_or_default();
                let read = fill(&mut reader, &mut block, whole);
                // what came before a failure is handed over too
                if block.len() > HEADROOM && send.send(Ok(block)).is_err() {
                    return;
                }
                match read {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => return drop(send.send(Err(error))),
                }
            }
        })?;
        let known = wait(&told, &mut interrupt)?.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))?;
        let pipe = Self {
            blocks,
            used,
            interrupt,
        };
        Ok((pipe, known))
    }

    /// The next block, its bytes from `HEADROOM` on; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        wait(&self.blocks, &mut self.interrupt)?.transpose()
    }

    /// Takes a block back, to be filled again.
    pub fn give_back(&self, block: Vec<u8>) {
        // the other thread may have ended, then nobody wants it
        let _ = self.used.send(block);
    }
}

/// What the other thread sends next; `None` if it has ended.
fn wait<T>(receiver: &Receiver<T>, interrupt: &mut Interrupt) -> io::Result<Option<T>> {
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(sent) => return Ok(Some(sent)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if interrupt() => return Err(io::Error::other(Stopped)),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Fills a block, `whole` or with what one read gives; false at the end of the stream.
fn fill(reader: &mut impl Read, block: &mut Vec<u8>, whole: bool) -> io::Result<bool> {
    block.resize(HEADROOM + SIZE, 0);
    let mut end = HEADROOM;
    let done = loop {
        match reader.read(&mut block[end..]) {
            Ok(0) => break Ok(false),
            Ok(n) => {
                end += n;
                if !whole || end == block.len() {
                    break Ok(true);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    block.truncate(end);
    done
}
