//! Bytes by where they are, whoever owns them.
#![allow(unsafe_code)] // a reference would borrow the struct that it is a field of

use std::ops::Deref;
use std::ptr::NonNull;

/// Bytes that another field of the same struct owns. Which field it is need not be asked then, with every look.
pub struct View(NonNull<[u8]>);

// SAFETY: it goes where the owner of its bytes goes, and only reads them, as a reference does
unsafe impl Send for View {}

impl View {
    /// # Safety
    /// The bytes stay where they are, and are not written to, for as long as the view is looked at.
    pub unsafe fn of(bytes: &[u8]) -> Self {
        Self(NonNull::from(bytes))
    }
}

impl Default for View {
    fn default() -> Self {
        Self(NonNull::from(&[]))
    }
}

impl Deref for View {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `of` asks for it
        unsafe { self.0.as_ref() }
    }
}
