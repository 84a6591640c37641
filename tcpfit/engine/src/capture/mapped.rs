//! A file's pages where the kernel keeps them, without the copy that a read makes: of full packets the headers alone are
//! looked at, and the rest never comes near the processor.
//!
//! A page that is gone when it is looked at ends the process, so a file is mapped only while nobody can shorten it: where
//! it lies on a disk of this machine and the kernel grants a lease, which it does not for a file that is open for writing. Whoever
//! opens it for writing later waits until the lease is given back, which is asked for with every window (fcntl(2)); only who
//! is suspended for longer than the kernel lets others wait loses it before. Pages
//! come in windows, by a call that fails where a page cannot be had (madvise(2), MADV_POPULATE_READ: Linux 5.14); from
//! there on, as wherever there is no mapping, the file is read.

#[cfg(target_os = "linux")]
pub use linux::Mapped;
#[cfg(all(test, target_os = "linux"))]
use linux::WINDOW;
#[cfg(not(target_os = "linux"))]
pub use nowhere::Mapped;

#[cfg(target_os = "linux")]
mod linux {
    #![allow(unsafe_code)] // memory that a file backs, and calls that have no safe name

    use std::fs::File;
    use std::io::{self, Seek, SeekFrom};
    use std::mem::MaybeUninit;
    use std::ops::Deref;
    use std::os::fd::AsRawFd;

    use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};

    use crate::capture::input::{Counted, Position};

    /// Pages that are there at a time: so many that their calls cost little, so few that they are no memory to speak of.
    pub const WINDOW: usize = 2 << 20;

    /// Where nobody but this machine's kernel shortens a file.
    const DISKS: [libc::c_long; 5] = [
        libc::EXT4_SUPER_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::TMPFS_MAGIC,
        libc::OVERLAYFS_SUPER_MAGIC,
    ];

    /// Linux's asm-generic/fcntl.h, which no architecture changes.
    const F_SETSIG: i32 = 10;

    pub struct Mapped {
        pages: Mmap,
        lease: Lease,
        position: Position,
        /// Bytes from the beginning whose pages have come, and whose pages have been given back.
        come: usize,
        gone: usize,
    }

    impl Mapped {
        /// `None` where the file has to be read.
        pub fn open(file: File, position: Position) -> Option<Self> {
            let lease = Lease::take(file)?;
            let size = usize::try_from(lease.0.metadata().ok()?.len()).ok()?;
            if size <= WINDOW {
                return None;
            }
            // SAFETY: as long as there is the lease nobody shortens the file, and its pages are looked at no longer
            let pages = unsafe { MmapOptions::new().len(size).map(&lease.0) }.ok()?;
            pages.advise(Advice::Sequential).ok()?;
            Some(Self {
                pages,
                lease,
                position,
                come: 0,
                gone: 0,
            })
        }

        /// Bytes from the beginning that can be looked at now, one window more if there is one; those before `needed` need not
        /// be there any longer. `None` where the rest has to be read.
        pub fn more(&mut self, needed: usize) -> Option<usize> {
            if !self.lease.is_held() {
                return None;
            }
            let needed = needed & !(WINDOW - 1);
            if needed > self.gone {
                // SAFETY: what is asked for again would come back from the file, as it was
                unsafe {
                    self.pages
                        .unchecked_advise_range(UncheckedAdvice::DontNeed, self.gone, needed - self.gone)
                }
                .ok()?;
                self.gone = needed;
            }
            let more = WINDOW.min(self.pages.len() - self.come);
            if more > 0 {
                self.pages.advise_range(Advice::PopulateRead, self.come, more).ok()?;
                self.come += more;
                self.position.set(self.come as u64);
            }
            Some(self.come)
        }

        /// Reads on where the pages that have come end.
        pub fn rest(self) -> io::Result<Counted<File>> {
            let mut inner = self.lease.0.try_clone()?;
            inner.seek(SeekFrom::Start(self.come as u64))?;
            let position = self.position.clone();
            Ok(Counted { inner, position })
        }
    }

    impl Deref for Mapped {
        type Target = [u8];

        #[inline(always)]
        fn deref(&self) -> &[u8] {
            &self.pages
        }
    }

    /// Keeps everybody from writing to the file.
    struct Lease(File);

    impl Lease {
        #[allow(clippy::unnecessary_cast)] // `f_type` has another type elsewhere
        fn take(file: File) -> Option<Self> {
            let descriptor = file.as_raw_fd();
            let mut about = MaybeUninit::<libc::statfs>::uninit();
            // SAFETY: an open file, and room for what is told of where it lies, which is looked at only if it was told
            let magic = unsafe {
                (libc::fstatfs(descriptor, about.as_mut_ptr()) == 0).then(|| about.assume_init().f_type as libc::c_long)
            }?;
            // the signal that asks for the lease back is one that does nothing unless a program wants it to
            // SAFETY: calls on an open file
            let granted = DISKS.contains(&magic)
                && unsafe {
                    libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) == 0
                        && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) == 0
                };
            granted.then(|| Self(file))
        }

        /// Nobody waits for it.
        fn is_held(&self) -> bool {
            // SAFETY: a call on an open file
            unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
        }
    }

    impl Drop for Lease {
        fn drop(&mut self) {
            // SAFETY: a call on an open file
            unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use std::convert::Infallible;
    use std::fs::File;
    use std::io;
    use std::ops::Deref;

    use crate::capture::input::{Counted, Position};

    /// Never made.
    pub struct Mapped(Infallible);

    impl Mapped {
        pub fn open(_file: File, _position: Position) -> Option<Self> {
            None
        }

        pub fn more(&mut self, _needed: usize) -> Option<usize> {
            match self.0 {}
        }

        pub fn rest(self) -> io::Result<Counted<File>> {
            match self.0 {}
        }
    }

    impl Deref for Mapped {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            match self.0 {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
