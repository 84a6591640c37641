//! Addresses and networks as pcap-filter writes them.

use std::net::{IpAddr, Ipv4Addr};

use super::Net;
use crate::segment::V4_MAPPED;

/// One host.
pub fn host(text: &str) -> Option<Net> {
    let address = match text.parse().ok()? {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    Some(Net::new(address, u128::MAX))
}

/// `10.0.0.0/8`, `2001:db8::/32`, `192.168.1` (as many octets as are given), or a whole address.
pub fn net(text: &str) -> Option<Net> {
    let Some((address, length)) = text.split_once('/') else {
        return host(text).or_else(|| {
            let (address, octets) = leading_octets(text)?;
            Some(of_length(v4(address), 96 + 8 * octets))
        });
    };
    let length: u32 = length.parse().ok()?;
    match address.parse() {
        Ok(IpAddr::V6(v6)) if length <= 128 => Some(of_length(v6.octets(), length)),
        Ok(IpAddr::V6(_)) => None,
        _ if length <= 32 => Some(of_length(v4(leading_octets(address)?.0), 96 + length)),
        _ => None,
    }
}

/// `net ADDRESS mask MASK`.
pub fn masked(address: &str, mask: &str) -> Option<Net> {
    let (address, _) = leading_octets(address)?;
    let mask: Ipv4Addr = mask.parse().ok()?;
    Some(Net::new(v4(address), u128::MAX << 32 | u128::from(mask.to_bits())))
}

/// One to four octets, the missing ones 0, and how many were given.
fn leading_octets(text: &str) -> Option<([u8; 4], u32)> {
    let mut octets = [0; 4];
    let mut given = 0;
    for part in text.split('.') {
        *octets.get_mut(given)? = part.parse().ok()?;
        given += 1;
    }
    Some((octets, given as u32))
}

fn v4(octets: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&V4_MAPPED);
    address[12..].copy_from_slice(&octets);
    address
}

fn of_length(address: [u8; 16], bits: u32) -> Net {
    Net::new(address, u128::MAX.checked_shl(128 - bits).unwrap_or(0))
}
