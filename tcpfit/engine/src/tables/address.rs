//! Addresses as text: IPv4 with dots, IPv6 as RFC 5952 writes it.

use crate::segment::{Address, V4_MAPPED};

/// Addresses that were written lately, by a hash; one is written again in most packets of a capture.
pub struct Written(Vec<Text>);

/// Of them so many.
const KEPT: usize = 1 << KEPT_BITS;
const KEPT_BITS: u32 = 6;

/// The longest text of an address: eight groups of four digits, seven colons.
const LONGEST: usize = 39;

#[derive(Clone)]
struct Text {
    address: Address,
    text: String,
}

impl Text {
    fn of(address: &Address) -> Self {
        let mut text = Self {
            address: *address,
            text: String::with_capacity(LONGEST),
        };
        text.write();
        text
    }

    fn write(&mut self) {
        let mut text = [0; LONGEST];
        let len = match self.address.strip_prefix(&V4_MAPPED) {
            Some(&[a, b, c, d]) => write_v4([a, b, c, d], &mut text),
            _ => write_v6(&self.address, &mut text),
        };
        self.text.clear();
        self.text
            .push_str(std::str::from_utf8(&text[..len]).unwrap_or_default());
    }
}

impl Default for Written {
    fn default() -> Self {
        Self(vec![Text::of(&[0; 16]); KEPT])
    }
}

impl Written {
    #[inline]
    pub fn text(&mut self, address: &Address) -> &str {
        // the last bytes differ most: a multiplication carries them into the highest bits (Fibonacci hashing)
        let number = u128::from_be_bytes(*address);
        let spread = (number as u64 ^ (number >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let kept = &mut self.0[(spread >> (u64::BITS - KEPT_BITS)) as usize];
        if kept.address != *address {
            kept.address = *address;
            kept.write();
        }
        &kept.text
    }
}

/// The last digit of the number.
const fn digit(n: usize) -> u8 {
    b'0' + (n % 10) as u8
}

/// Each octet as text with a dot behind it, and how long that is.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut octets = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < octets.len() {
        let (hundreds, tens, ones) = (digit(octet / 100), digit(octet / 10), digit(octet));
        octets[octet] = match octet {
            0..10 => ([ones, b'.', 0, 0], 2),
            10..100 => ([tens, ones, b'.', 0], 3),
            _ => ([hundreds, tens, ones, b'.'], 4),
        };
        octet += 1;
    }
    octets
};

/// Writes the four numbers and gives the length.
fn write_v4(octets: [u8; 4], text: &mut [u8; LONGEST]) -> usize {
    let mut len = 0;
    for octet in octets {
        let (written, length) = OCTETS[usize::from(octet)];
        text[len..len + written.len()].copy_from_slice(&written);
        len += usize::from(length);
    }
    len - 1 // nothing follows the last dot
}

/// Writes the eight groups, two colons for the longest run of zeros (RFC 5952, 4.2), and gives the length.
fn write_v6(address: &Address, text: &mut [u8; LONGEST]) -> usize {
    let group = |n: usize| u16::from_be_bytes([address[2 * n], address[2 * n + 1]]);
    let (mut gap, mut run) = (0..0, 0..0);
    for n in (0..8).filter(|&n| group(n) == 0) {
        run = if run.end == n { run.start..n + 1 } else { n..n + 1 };
        // the first of those as long as it; a single zero is written
        if run.len() > gap.len().max(1) {
            gap = run.clone();
        }
    }
    let (mut len, mut n) = (0, 0);
    let mut put = |byte: u8| {
        text[len] = byte;
        len += 1;
    };
    while n < 8 {
        if n == gap.start && !gap.is_empty() {
            put(b':');
            put(b':');
            n = gap.end;
            continue;
        }
        if n > 0 && n != gap.end {
            put(b':');
        }
        for digits in (0..4).rev() {
            if digits == 0 || group(n) >> (4 * digits) > 0 {
                put(b"0123456789abcdef"[usize::from(group(n) >> (4 * digits) & 15)]);
            }
        }
        n += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn addresses_are_written_as_the_library_writes_them() {
        let mut written = Written::default();
        for octets in [[0, 9, 10, 99], [100, 101, 109, 110], [199, 200, 255, 1]] {
            let v4 = std::net::Ipv4Addr::from(octets);
            assert_eq!(v4.to_string(), written.text(&v4.to_ipv6_mapped().octets()));
        }
        // every pattern of groups that are zero, the others of one to four digits
        for zeros in 0..256u32 {
            let groups: [u16; 8] = std::array::from_fn(|n| (0x1204 >> (n % 4 * 4)) * u16::from(zeros >> n & 1 == 0));
            let v6 = Ipv6Addr::from(groups);
            assert_eq!(v6.to_string(), written.text(&v6.octets()));
        }
    }

    #[test]
    fn no_address_is_taken_for_another() {
        let mut written = Written::default();
        for _ in 0..2 {
            for n in 0..4 * KEPT as u32 {
                let v4 = std::net::Ipv4Addr::from(n.wrapping_mul(0x0101_4321));
                assert_eq!(v4.to_string(), written.text(&v4.to_ipv6_mapped().octets()));
            }
        }
    }
}
