use super::*;
use crate::capture::link_type;
use crate::segment::{flags, Direction, V4_MAPPED};

const SRC: [u8; 4] = [10, 0, 0, 1];
const DST: [u8; 4] = [10, 0, 0, 2];

/// A TCP header with these options (a multiple of 4 bytes) and payload.
fn tcp(options: &[u8], payload: usize) -> Vec<u8> {
    let mut bytes = vec![0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2];
    bytes.push(((20 + options.len()) as u8 / 4) << 4 | 1);
    bytes.extend([0x18, 0x02, 0x00, 0xbe, 0xef, 0, 0]);
    bytes.extend(options);
    bytes.resize(bytes.len() + payload, 0x55);
    bytes
}

fn ipv4_with(total: u16, fragment: u16, protocol: u8, options: &[u8], inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45 + (options.len() / 4) as u8, 0x02];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0x12, 0x34]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([61, protocol, 0, 0]);
    bytes.extend(SRC);
    bytes.extend(DST);
    bytes.extend(options);
    bytes.extend(inner);
    bytes
}

fn ipv4(inner: &[u8]) -> Vec<u8> {
    ipv4_with(20 + inner.len() as u16, 0x4000, 6, &[], inner)
}

fn ipv6(next: u8, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0x30, 0, 0];
    bytes.extend((inner.len() as u16).to_be_bytes());
    bytes.extend([next, 57]);
    bytes.extend([0x20; 16]);
    bytes.extend([0x21; 16]);
    bytes.extend(inner);
    bytes
}

fn ethernet(types: &[u16], inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    for (i, kind) in types.iter().enumerate() {
        if i > 0 {
            bytes.extend([0, 7]);
        }
        bytes.extend(kind.to_be_bytes());
    }
    bytes.extend(inner);
    bytes
}

fn decode_cut(link_type: u32, data: &[u8], wire_len: usize) -> Result<Segment, Skip> {
    let wire_len = wire_len as u32;
    decode(&Packet {
        frame: 1,
        time_ns: 5,
        link_type,
        wire_len,
        direction: Direction::Unknown,
        data,
    })
}

fn decode_on(link_type: u32, data: &[u8]) -> Result<Segment, Skip> {
    decode_cut(link_type, data, data.len())
}

#[test]
fn fields_of_a_segment() {
    let frame = ethernet(&[0x0800], &ipv4(&tcp(&[], 100)));
    let segment = decode_on(link_type::ETHERNET, &frame).unwrap();
    assert_eq!(V4_MAPPED, segment.src[..12]);
    assert_eq!(
        (SRC, DST),
        (
            segment.src[12..].try_into().unwrap(),
            segment.dst[12..].try_into().unwrap()
        )
    );
    assert_eq!(
        (40000, 443, 1, 2),
        (segment.sport, segment.dport, segment.seq, segment.ack)
    );
    assert_eq!(flags::ACK | flags::PSH | flags::AE, segment.flags);
    assert_eq!((512, 100, 154), (segment.window, segment.payload, segment.wire_bytes));
    assert_eq!(
        (Some(0x1234), 61, 2, 0xbeef),
        (segment.ip_id, segment.ttl, segment.ecn, segment.checksum)
    );
}

#[test]
fn every_way_to_ip() {
    let v4 = ipv4(&tcp(&[], 9));
    let v6 = ipv6(6, &tcp(&[], 9));
    let prefixed = |prefix: &[u8], inner: &[u8]| [prefix, inner].concat();
    let length = (v4.len() + 2) as u8;
    let cases = [
        (link_type::ETHERNET, ethernet(&[0x86dd], &v6)),
        (link_type::ETHERNET, ethernet(&[0x8100, 0x0800], &v4)),
        (link_type::ETHERNET, ethernet(&[0x88a8, 0x8100, 0x86dd], &v6)),
        (link_type::ETHERNET, ethernet(&[0x9100, 0x8100, 0x8100, 0x0800], &v4)),
        (
            link_type::ETHERNET,
            ethernet(&[0x8847], &prefixed(&[0, 1, 0, 9, 0, 1, 0x01, 9], &v4)),
        ),
        (
            link_type::ETHERNET,
            ethernet(&[0x8864], &prefixed(&[0x11, 0, 0, 1, 0, length, 0x00, 0x21], &v4)),
        ),
        (link_type::PPP, prefixed(&[0xff, 0x03, 0x00, 0x57], &v6)),
        (link_type::PPP, prefixed(&[0x21], &v4)),
        (link_type::NULL, prefixed(&[2, 0, 0, 0], &v4)),
        (link_type::NULL, prefixed(&[0, 0, 0, 2], &v4)),
        (link_type::NULL, prefixed(&[30, 0, 0, 0], &v6)),
        (link_type::LOOP, prefixed(&[0, 0, 0, 24], &v6)),
        (link_type::RAW, v4.clone()),
        (link_type::RAW_BSD, v6.clone()),
        (link_type::RAW_OPENBSD, v4.clone()),
        (link_type::IPV4, v4.clone()),
        (link_type::IPV6, v6.clone()),
    ];
    for (link_type, data) in &cases {
        let segment = decode_on(*link_type, data).unwrap_or_else(|skip| panic!("{link_type}: {skip:?}"));
        assert_eq!(
            (9, Direction::Unknown),
            (segment.payload, segment.direction),
            "{link_type}"
        );
    }
}

#[test]
fn cooked_captures_know_the_direction() {
    let v4 = ipv4(&tcp(&[], 9));
    for (packet_type, direction) in [
        (0, Direction::Inbound),
        (4, Direction::Outbound),
        (3, Direction::Unknown),
    ] {
        let v1 = [
            &[0, packet_type, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00],
            &v4[..],
        ]
        .concat();
        assert_eq!(direction, decode_on(link_type::LINUX_SLL, &v1).unwrap().direction);
        let v2 = [
            &[
                0x08,
                0x00,
                0,
                0,
                0,
                0,
                0,
                1,
                0,
                1,
                packet_type,
                6,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ],
            &v4[..],
        ]
        .concat();
        assert_eq!(direction, decode_on(link_type::LINUX_SLL2, &v2).unwrap().direction);
    }
}

#[test]
fn payload_comes_from_ip_lengths() {
    // padding of a short Ethernet frame
    let mut padded = ethernet(&[0x0800], &ipv4(&tcp(&[], 0)));
    padded.resize(60, 0xaa);
    assert_eq!(0, decode_on(link_type::ETHERNET, &padded).unwrap().payload);
    // cut by the snapshot length
    let whole = ethernet(&[0x0800], &ipv4(&tcp(&[], 1000)));
    assert_eq!(
        1000,
        decode_cut(link_type::ETHERNET, &whole[..60], whole.len())
            .unwrap()
            .payload
    );
    // total length 0: up to the end of the frame
    let offloaded = ethernet(&[0x0800], &ipv4_with(0, 0, 6, &[], &tcp(&[], 20)));
    assert_eq!(
        65000,
        decode_cut(link_type::ETHERNET, &offloaded, 14 + 40 + 65000)
            .unwrap()
            .payload
    );
    let mut jumbo = ipv6(6, &tcp(&[], 20));
    jumbo[4..6].fill(0);
    assert_eq!(70000, decode_cut(link_type::IPV6, &jumbo, 60 + 70000).unwrap().payload);
    // a device that padded the packet corrected only the PPPoE length
    let v4 = ipv4(&tcp(&[], 6));
    let session = [&[0x11, 0, 0, 1, 0, 42, 0x00, 0x21], &v4[..]].concat();
    assert_eq!(
        0,
        decode_on(link_type::ETHERNET, &ethernet(&[0x8864], &session))
            .unwrap()
            .payload
    );
    // IP options
    let with_options = ipv4_with(24 + 25, 0, 6, &[1, 1, 1, 0], &tcp(&[], 5));
    assert_eq!(5, decode_on(link_type::RAW, &with_options).unwrap().payload);
}

#[test]
fn extension_headers() {
    let inner = tcp(&[], 9);
    let hop_by_hop = ipv6(
        0,
        &[
            &[43, 0, 5, 2, 0, 0, 1, 0, 60, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
            &inner[..],
        ]
        .concat(),
    );
    assert_eq!(9, decode_on(link_type::RAW, &hop_by_hop).unwrap().payload);
    let authenticated = ipv6(51, &[&[6, 4][..], &[0; 22], &inner].concat());
    assert_eq!(9, decode_on(link_type::RAW, &authenticated).unwrap().payload);
    let atomic = ipv6(44, &[&[6, 0, 0, 0, 0, 0, 0, 1], &inner[..]].concat());
    assert_eq!(9, decode_on(link_type::RAW, &atomic).unwrap().payload);
    for offset in [[0, 1], [0, 8]] {
        let fragment = ipv6(44, &[&[6, 0], &offset[..], &[0; 4], &inner[..]].concat());
        assert_eq!(Err(Skip::IpFragment), decode_on(link_type::RAW, &fragment));
    }
}

#[test]
fn skips() {
    let skip = |data: &[u8]| {
        decode_on(link_type::ETHERNET, &ethernet(&[0x0800], data))
            .unwrap_err()
            .reason()
    };
    let inner = tcp(&[], 9);
    let with = |protocol| ipv4_with(49, 0, protocol, &[], &inner);
    assert_eq!("UDP", skip(&with(17)));
    assert_eq!("ICMP", skip(&with(1)));
    assert_eq!("IGMP", skip(&with(2)));
    assert_eq!("SCTP", skip(&with(132)));
    assert_eq!("IPsec ESP", skip(&with(50)));
    assert_eq!("IP protocol 89", skip(&with(89)));
    assert_eq!("IP fragment", skip(&ipv4_with(49, 0x2000, 6, &[], &inner)));
    assert_eq!("IP fragment", skip(&ipv4_with(49, 0x0001, 6, &[], &inner)));
    assert_eq!("bad IP header", skip(&ipv4_with(19, 0, 6, &[], &inner)));
    assert_eq!("bad IP header", skip(&[0x44; 40]));
    assert_eq!("bad TCP header length", skip(&ipv4_with(39, 0, 6, &[], &inner)));
    let mut short_offset = inner.clone();
    short_offset[12] = 0x40;
    assert_eq!("bad TCP header length", skip(&ipv4(&short_offset)));
    short_offset[12] = 0xf0;
    assert_eq!("bad TCP header length", skip(&ipv4(&short_offset)));
    assert_eq!("truncated header", skip(&[0x45, 0]));
    assert_eq!(
        "ARP",
        decode_on(link_type::ETHERNET, &ethernet(&[0x0806], &[]))
            .unwrap_err()
            .reason()
    );
    assert_eq!(
        "not IP",
        decode_on(link_type::ETHERNET, &ethernet(&[0x88cc], &[]))
            .unwrap_err()
            .reason()
    );
    assert_eq!(
        "unsupported link type 147 (USER0)",
        decode_on(147, &[]).unwrap_err().reason()
    );
    assert_eq!("unsupported link type 999", decode_on(999, &[]).unwrap_err().reason());

    let mut counts = SkipCounts::default();
    [Skip::Udp, Skip::Arp, Skip::Udp]
        .into_iter()
        .for_each(|skip| counts.add(skip));
    assert_eq!(vec![("UDP".into(), 2), ("ARP".into(), 1)], counts.sorted());
}

fn options_of(options: &[u8]) -> crate::segment::Options {
    decode_on(link_type::RAW, &ipv4(&tcp(options, 3))).unwrap().options
}

#[test]
fn tcp_options() {
    let syn = options_of(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7]);
    assert_eq!(
        (Some(1460), Some(7), true, Some((1, 2))),
        (syn.mss, syn.window_scale, syn.sack_permitted, syn.timestamps)
    );
    assert!(!syn.incomplete);
    assert_eq!(
        Some((1, 2)),
        options_of(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).timestamps
    );
    let sack = options_of(&[1, 1, 5, 18, 0, 0, 0, 9, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 4]);
    assert_eq!([(9, 12), (1, 4)], sack.sack_blocks());
    // the end marker ends the options; what follows is padding
    assert_eq!(None, options_of(&[0, 2, 4, 5]).mss);
    assert!(!options_of(&[0, 2, 4, 5]).incomplete);
}

#[test]
fn of_accurate_ecn_the_marked_bytes_stand_second() {
    let ce_bytes = |option: &[u8]| options_of(option).ce_bytes.get();
    // RFC 9768, 3.2.3: the last counters may be left out
    assert_eq!(Some(0x01_0203), ce_bytes(&[172, 11, 9, 9, 9, 1, 2, 3, 8, 8, 8, 1]));
    assert_eq!(Some(0x01_0203), ce_bytes(&[174, 11, 9, 9, 9, 1, 2, 3, 8, 8, 8, 1]));
    assert_eq!(Some(0xff_ffff), ce_bytes(&[172, 8, 9, 9, 9, 255, 255, 255]));
    assert_eq!(None, ce_bytes(&[174, 5, 9, 9, 9, 1, 1, 1]));
    assert_eq!(None, ce_bytes(&[172, 10, 9, 9, 9, 1, 2, 3, 8, 8, 1, 1]));
}

#[test]
fn malformed_options_end_the_options() {
    for malformed in [
        [2, 0, 5, 0xb4],
        [2, 1, 5, 0xb4],
        [2, 5, 5, 0xb4],
        [1, 1, 1, 2],
        [8, 255, 0, 0],
    ] {
        let options = options_of(&malformed);
        assert!(options.incomplete, "{malformed:?}");
        assert_eq!(None, options.mss);
    }
    let cut = ipv4(&tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], 3));
    assert!(
        decode_cut(link_type::RAW, &cut[..46], cut.len())
            .unwrap()
            .options
            .incomplete
    );
    // cut exactly between two options
    assert!(
        decode_cut(link_type::RAW, &cut[..42], cut.len())
            .unwrap()
            .options
            .incomplete
    );
}

#[test]
fn no_bytes_panic() {
    let link_types = [0, 1, 9, 12, 50, 101, 108, 113, 228, 229, 276, 7];
    let v6 = ipv6(
        0,
        &[
            &[43, 0, 5, 2, 0, 0, 1, 0, 60, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
            &tcp(&[5, 10, 1, 1], 9)[..],
        ]
        .concat(),
    );
    let seeds = [
        ethernet(&[0x8100, 0x0800], &ipv4(&tcp(&[8, 10, 1, 1], 9))),
        ethernet(&[0x86dd], &v6),
        v6,
        vec![0; 64],
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for seed in &seeds {
        for link_type in link_types {
            for cut in 0..=seed.len() {
                let _ = decode_cut(link_type, &seed[..cut], seed.len());
                let _ = decode_cut(link_type, &seed[..cut], 0);
            }
            for _ in 0..5_000 {
                let mut mutant = seed.clone();
                for _ in 0..=random() % 4 {
                    let at = random() % mutant.len();
                    mutant[at] = random() as u8;
                }
                let _ = decode_cut(link_type, &mutant, random() % 100_000);
            }
        }
    }
}
