//! Why a packet is no TCP segment, in words, and how many there were of each.

use std::borrow::Cow;

use super::protocol;
use crate::capture::link_type;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    Arp,
    Udp,
    Icmp,
    Igmp,
    Sctp,
    Encrypted,
    OtherProtocol(u8),
    NotIp,
    TruncatedHeader,
    BadIpHeader,
    BadTcpHeader,
    IpFragment,
    EncryptedFrame,
    AggregateFrame,
    TooDeep,
    UnsupportedLinkType(u32),
}

impl Skip {
    #[cold]
    pub(super) fn of_protocol(number: u8) -> Self {
        match number {
            protocol::UDP => Self::Udp,
            protocol::ICMP | protocol::ICMPV6 => Self::Icmp,
            protocol::IGMP => Self::Igmp,
            protocol::SCTP => Self::Sctp,
            protocol::ESP => Self::Encrypted,
            other => Self::OtherProtocol(other),
        }
    }

    pub fn reason(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Arp => "ARP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
            Self::Igmp => "IGMP",
            Self::Sctp => "SCTP",
            Self::Encrypted => "IPsec ESP",
            Self::NotIp => "not IP",
            Self::TruncatedHeader => "truncated header",
            Self::BadIpHeader => "bad IP header",
            Self::BadTcpHeader => "bad TCP header length",
            Self::IpFragment => "IP fragment",
            Self::EncryptedFrame => "encrypted frame",
            Self::AggregateFrame => "802.11 aggregate (A-MSDU)",
            Self::TooDeep => "more than 8 tunnels in each other",
            Self::OtherProtocol(number) => return format!("IP protocol {number}").into(),
            Self::UnsupportedLinkType(number) => {
                return match link_type::name(number) {
                    name if name.starts_with("LINKTYPE_") => format!("unsupported link type {number}").into(),
                    name => format!("unsupported link type {number} ({name})").into(),
                }
            }
        })
    }
}

/// Packets skipped, by reason.
#[derive(Clone, Debug, Default)]
pub struct SkipCounts(Vec<(Skip, u64)>);

impl SkipCounts {
    pub fn add(&mut self, skip: Skip) {
        match self.0.iter_mut().find(|(known, _)| *known == skip) {
            Some((_, count)) => *count += 1,
            None => self.0.push((skip, 1)),
        }
    }

    /// Most frequent first, then by reason.
    pub fn sorted(&self) -> Vec<(Cow<'static, str>, u64)> {
        let mut counts: Vec<_> = self.0.iter().map(|(skip, count)| (skip.reason(), *count)).collect();
        counts.sort_by(|(a_reason, a), (b_reason, b)| b.cmp(a).then_with(|| a_reason.cmp(b_reason)));
        counts
    }
}
