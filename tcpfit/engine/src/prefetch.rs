//! Memory that will be needed soon, asked for ahead.
#![allow(unsafe_code)] // an instruction without a safe name

/// Asks the processor to bring the lines of `value` near; where it cannot be asked, nothing happens.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    ask(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// The same of so many bytes from `at` on, whether there are as many or not: what lies beyond is asked for in vain.
#[inline(always)]
pub fn prefetch_at(bytes: &[u8], at: usize, len: usize) {
    ask(bytes.as_ptr().wrapping_add(at), len);
}

#[inline(always)]
fn ask(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        const LINE: usize = 64;
        for line in 0..len.div_ceil(LINE) {
            // SAFETY: a hint: it reads nothing and cannot fault, whatever the address
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}
