//! Fragments of IP datagrams. The first says which connection and which sequence numbers; those after it are given out as
//! the further data of its segment, at the times they passed. So what is there counts, whether or not the rest comes (a capture
//! filter on ports lets only first fragments through), and no time or order has to be made up.

use super::around::Around;
use super::{
    ipv4, ipv6, layers, link, plain, protocol, tcp, tunnel, Datagram, Fragment, Network, Place, Skip, Version,
};
use crate::capture::Packet;
use crate::segment::{flags, Options, Segment};

/// First fragments remembered; the oldest goes.
const REMEMBERED: usize = 64;
/// Hosts wait so long for the rest (RFC 8200, 4.5).
const PATIENCE_NS: i64 = 60_000_000_000;
/// No datagram is longer.
const LARGEST: u32 = 65_535;

/// Decodes the packets of a capture in their order.
#[derive(Default)]
pub struct Decoder {
    firsts: Vec<First>,
    oldest: usize,
}

/// A first fragment's segment.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    src: u128,
    dst: u128,
    around: u32,
    id: u32,
}

struct First {
    name: Name,
    segment: Segment,
    /// Bytes of the datagram before the payload of TCP.
    header: u32,
}

impl Decoder {
    /// Decodes the next packet, with what earlier packets said of a datagram's fragments, into a segment that is used again:
    /// moving one just written costs as much as decoding it, for the processor cannot forward many small stores to the wide
    /// loads of a copy. After `Err` the segment is meaningless.
    #[inline(always)]
    pub fn decode_into(&mut self, packet: &Packet<'_>, segment: &mut Segment) -> Result<(), Skip> {
        if plain::segment(packet, segment) {
            return Ok(());
        }
        self.other(*packet, segment)
    }

    /// The packet comes by value: one whose address is asked for is written to memory, and most are only looked at.
    #[inline(never)]
    fn other(&mut self, packet: Packet<'_>, segment: &mut Segment) -> Result<(), Skip> {
        let decoded = layers(&packet, segment);
        if decoded == Err(Skip::IpFragment) {
            return self.fragment(&packet, segment);
        }
        decoded
    }

    /// A packet one of whose datagrams is a fragment.
    #[cold]
    fn fragment(&mut self, packet: &Packet<'_>, segment: &mut Segment) -> Result<(), Skip> {
        let mut direction = packet.direction;
        let mut network = link::network(packet, &mut direction)?;
        let mut place = Place::of_packet(packet);
        loop {
            let (datagram, part) = any(&network, place)?;
            let around = network.around;
            match (datagram.protocol, part) {
                (protocol::TCP, Some(part)) if part.offset > 0 => {
                    self.further(&name(&datagram, around, &part), &datagram, &part, packet, segment)?;
                    segment.direction = direction;
                    return Ok(());
                }
                (protocol::TCP, part) => {
                    tcp::inner_segment(packet, direction, &datagram, around.identity, segment)?;
                    if let Some(part) = part {
                        self.remember(name(&datagram, around, &part), &datagram, segment);
                    }
                    return Ok(());
                }
                (_, Some(part)) if part.offset > 0 => return Err(Skip::IpFragment),
                _ => {
                    network = tunnel::inside(&datagram, around)?;
                    place = Place::of_datagram(&datagram);
                }
            }
        }
    }

    fn remember(&mut self, name: Name, datagram: &Datagram<'_>, segment: &mut Segment) {
        let first = First {
            name,
            segment: *segment,
            header: datagram.length - segment.payload,
        };
        // it ends the datagram's data only where there is no more
        segment.flags &= !(flags::FIN | flags::PSH);
        if self.firsts.len() < REMEMBERED {
            self.firsts.push(first);
        } else {
            self.firsts[self.oldest] = first;
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
    }

    fn further(
        &mut self,
        name: &Name,
        datagram: &Datagram<'_>,
        part: &Fragment,
        packet: &Packet<'_>,
        segment: &mut Segment,
    ) -> Result<(), Skip> {
        let in_time =
            |first: &&First| (0..=PATIENCE_NS).contains(&packet.time_ns.saturating_sub(first.segment.time_ns));
        let known = self.firsts.iter().filter(|first| first.name == *name);
        // an identification may come again: the newest
        let first = known
            .filter(in_time)
            .max_by_key(|first| first.segment.frame)
            .ok_or(Skip::IpFragment)?;
        let before = part.offset.checked_sub(first.header).ok_or(Skip::BadIpHeader)?;
        if part.offset + datagram.length > LARGEST {
            return Err(Skip::BadIpHeader);
        }
        let of_first = &first.segment;
        let only_first = flags::SYN | if part.more { flags::FIN | flags::PSH } else { 0 };
        *segment = Segment {
            frame: packet.frame,
            time_ns: packet.time_ns,
            seq: of_first
                .seq
                .wrapping_add(before)
                .wrapping_add(u32::from(of_first.has(flags::SYN))),
            flags: of_first.flags & !only_first,
            payload: datagram.length,
            wire_bytes: packet.wire_len,
            // the first has shown it: one that comes twice would be a copy
            ip_id: None,
            ttl: datagram.ttl,
            ecn: datagram.ecn,
            checksum: 0,
            options: Options {
                timestamps: of_first.options.timestamps,
                ..Options::default()
            },
            ..*of_first
        };
        Ok(())
    }
}

fn name(datagram: &Datagram<'_>, around: Around, part: &Fragment) -> Name {
    Name {
        src: datagram.src,
        dst: datagram.dst,
        around: around.identity,
        id: part.id,
    }
}

fn any<'a>(network: &Network<'a>, place: Place) -> Result<(Datagram<'a>, Option<Fragment>), Skip> {
    let left = place.left(network.data);
    let (datagram, part) = match network.version()? {
        Version::Six => ipv6::fragment(network.data, left)?,
        _ => ipv4::fragment(network.data, left)?,
    };
    Ok((network.limited(datagram), part))
}
