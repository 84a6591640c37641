//! How much memory the process has: what a bound on it is held against.

/// Bytes resident; 0 where the system does not say, which no bound is below.
pub fn resident() -> u64 {
    // proc(5): sizes in pages, the second is what is resident
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(PAGE)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_used_is_counted() {
        // more than all other tests together, which come and go meanwhile
        let used = vec![1u8; 256 << 20];
        assert!(super::resident() >= 256 << 20, "{}", used.len());
    }
}
