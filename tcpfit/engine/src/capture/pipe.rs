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

/// What the other thread gives.
pub trait Blocks {
    /// The next block, its bytes from `HEADROOM` on, and whether the stream goes on; before a failure there may be bytes too.
    /// `spare` gives blocks that can be filled again.
    fn next(&mut self, spare: &mut dyn FnMut() -> Vec<u8>) -> (Vec<u8>, io::Result<bool>);
}

/// What a reader reads. `whole` blocks are asked for where it does not wait for anybody.
pub struct Reads<R> {
    pub reader: R,
    pub whole: bool,
}

impl<R: Read> Blocks for Reads<R> {
    fn next(&mut self, spare: &mut dyn FnMut() -> Vec<u8>) -> (Vec<u8>, io::Result<bool>) {
        let mut block = spare();
        let read = fill(&mut self.reader, &mut block, self.whole);
        (block, read)
    }
}

pub struct Pipe {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that were read, to be filled again.
    used: Sender<Vec<u8>>,
    interrupt: Interrupt,
}

impl Pipe {
    /// `open` runs on the other thread, since opening a pipe waits for its writer; what it tells beside the blocks is
    /// waited for.
    pub fn new<B: Blocks, T: Send + 'static>(
        open: impl FnOnce() -> io::Result<(B, T)> + Send + 'static,
        mut interrupt: Interrupt,
    ) -> io::Result<(Self, T)> {
        let (tell, told) = sync_channel(1);
        let (send, blocks) = sync_channel(AHEAD);
        let (used, reuse) = std::sync::mpsc::channel::<Vec<u8>>();
        // never joined: it may wait for a writer that never writes, and ends with its first block for nobody
        thread::Builder::new().name("tcpfit-pipe".into()).spawn(move || {
            let mut source = match open() {
                Ok((source, known)) => {
                    let _ = tell.send(Ok(known));
                    source
                }
                Err(error) => return drop(tell.send(Err(error))),
            };
            loop {
                let (block, read) = source.next(&mut || reuse.try_recv().unwrap_or_default());
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
pub fn fill(reader: &mut impl Read, block: &mut Vec<u8>, whole: bool) -> io::Result<bool> {
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
