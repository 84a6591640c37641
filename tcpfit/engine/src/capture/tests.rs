use std::io::{Cursor, Write};

use super::*;

/// Writes numbers in one byte order.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.0 {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.0 {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u64(self, value: u64) -> [u8; 8] {
        if self.0 {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
}

const LITTLE: Order = Order(false);
const BIG: Order = Order(true);

fn pcap(order: Order, magic: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = order.u32(magic).to_vec();
    bytes.extend([order.u16(2), order.u16(4)].concat());
    bytes.extend([order.u32(0), order.u32(0), order.u32(65535), order.u32(1)].concat());
    for (seconds, fraction, data) in packets {
        let length = data.len() as u32;
        bytes.extend(
            [
                order.u32(*seconds),
                order.u32(*fraction),
                order.u32(length),
                order.u32(length + 40),
            ]
            .concat(),
        );
        if magic == 0xa1b2_cd34 {
            bytes.extend([order.u32(1), [0, 0, 4, 0]].concat());
        }
        bytes.extend(*data);
    }
    bytes
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = order.u32(kind).to_vec();
    let length = order.u32(12 + body.len().next_multiple_of(4) as u32);
    bytes.extend(length);
    bytes.extend(body);
    bytes.resize(8 + body.len().next_multiple_of(4), 0);
    bytes.extend(length);
    bytes
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [order.u16(code), order.u16(value.len() as u16)].concat();
    bytes.extend(value);
    bytes.resize(4 + value.len().next_multiple_of(4), 0);
    bytes
}

fn section(order: Order) -> Vec<u8> {
    block(
        order,
        0x0a0d_0d0a,
        &[&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat(),
    )
}

fn interface(order: Order, link_type: u16, options: &[u8]) -> Vec<u8> {
    block(
        order,
        1,
        &[&order.u16(link_type)[..], &order.u16(0), &order.u32(0), options].concat(),
    )
}

fn enhanced(order: Order, interface: u32, ticks: u64, data: &[u8], options: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let mut body = [interface, (ticks >> 32) as u32, ticks as u32, length, length + 1]
        .map(|n| order.u32(n))
        .concat();
    body.extend(data);
    body.resize(20 + data.len().next_multiple_of(4), 0);
    body.extend(options);
    block(order, 6, &body)
}

/// Frame, time, wire length, direction, data.
type Seen = (u64, i64, u32, Direction, Vec<u8>);

fn read(bytes: &[u8]) -> Result<(Vec<Seen>, Info), String> {
    let mut capture = Capture::from_reader(Cursor::new(bytes.to_vec())).map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    while let Some(packet) = capture.next().map_err(|error| error.to_string())? {
        seen.push((
            packet.frame,
            packet.time_ns,
            packet.wire_len,
            packet.direction,
            packet.data.to_vec(),
        ));
    }
    assert!(capture.next().unwrap().is_none());
    Ok((seen, capture.info().clone()))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn sections() -> Vec<u8> {
    let drops = |order: Order, count: u64| {
        block(
            order,
            5,
            &[&[0; 12][..], &option(order, 5, &order.u64(count)), &order.u32(0)].concat(),
        )
    };
    [
        section(LITTLE),
        interface(LITTLE, 1, &option(LITTLE, 9, &[9])),
        interface(
            LITTLE,
            276,
            &[option(LITTLE, 9, &[0x80 | 10]), option(LITTLE, 14, &LITTLE.u64(100))].concat(),
        ),
        block(LITTLE, 0x0bad, &[7; 13]),
        enhanced(LITTLE, 0, 1_500_000_000, b"abcde", &option(LITTLE, 2, &LITTLE.u32(2))),
        enhanced(LITTLE, 1, 512, b"f", &[]),
        drops(LITTLE, 3),
        section(BIG),
        interface(BIG, 1, &[]),
        enhanced(BIG, 0, 2_000_000, b"gh", &option(BIG, 2, &BIG.u32(1))),
        enhanced(BIG, 9, 2_000_000, b"lost", &[]),
        block(BIG, 3, &[&BIG.u32(3)[..], b"ijk"].concat()),
        block(
            BIG,
            2,
            &[
                &BIG.u16(0)[..],
                &BIG.u16(2),
                &[0, 0, 0, 0],
                &BIG.u32(5),
                &BIG.u32(1),
                &BIG.u32(9),
                b"l",
            ]
            .concat(),
        ),
        drops(BIG, 4),
    ]
    .concat()
}

#[test]
fn pcap_in_both_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        let (seen, info) = read(&pcap(order, 0xa1b2_c3d4, &[(1, 5, b"abc"), (2, 0, b"")])).unwrap();
        assert_eq!((1, 1_000_005_000, 43, Direction::Unknown, b"abc".to_vec()), seen[0]);
        assert_eq!(
            (2, 83, Some((1_000_005_000, 2_000_000_000))),
            (info.packets, info.wire_bytes, info.times_ns)
        );
        assert_eq!(
            ("pcap", Compression::None, vec![1]),
            (info.format, info.compression, info.link_types)
        );
        let (seen, _) = read(&pcap(order, 0xa1b2_3c4d, &[(1, 5, b"abc")])).unwrap();
        assert_eq!(1_000_000_005, seen[0].1);
        let (seen, _) = read(&pcap(order, 0xa1b2_cd34, &[(1, 5, b"abc"), (1, 6, b"d")])).unwrap();
        assert_eq!((2, 1_000_006_000, 41, Direction::Outbound, b"d".to_vec()), seen[1]);
    }
}

#[test]
fn pcapng_sections_interfaces_and_every_packet_block() {
    let (seen, info) = read(&sections()).unwrap();
    let packet =
        |frame, time_ns, wire_len, direction, data: &[u8]| (frame, time_ns, wire_len, direction, data.to_vec());
    assert_eq!(
        vec![
            packet(1, 1_500_000_000, 6, Direction::Outbound, b"abcde"),
            packet(2, 100_500_000_000, 2, Direction::Unknown, b"f"),
            packet(3, 2_000_000_000, 3, Direction::Inbound, b"gh"),
            packet(5, 2_000_000_000, 3, Direction::Unknown, b"ijk"),
            packet(6, 5_000, 9, Direction::Unknown, b"l"),
        ],
        seen
    );
    assert_eq!(
        (vec![1, 276], 6, Some(7)),
        (info.link_types, info.packets, info.interface_drops)
    );
    let warnings = info.warnings.sentences();
    assert_eq!(2, warnings.len(), "{warnings:?}");
    assert!(warnings[0].starts_with("frame 4 (byte "), "{warnings:?}");
}

#[test]
fn compressed_in_several_members() {
    let bytes = sections();
    let (first, second) = bytes.split_at(100);
    let expected = read(&bytes).unwrap().0;
    let (seen, info) = read(&[gzip(first), gzip(second)].concat()).unwrap();
    assert_eq!((&expected, Compression::Gzip), (&seen, info.compression));
    let zstd = |part: &[u8]| zstd::stream::encode_all(part, 1).unwrap();
    let skippable = [0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
    let (seen, info) = read(&[&skippable[..], &zstd(first), &zstd(second)].concat()).unwrap();
    assert_eq!((&expected, Compression::Zstd), (&seen, info.compression));
}

/// Whatever is cut off, the packets before it are read, and one warning tells where the capture ends.
#[test]
fn every_truncation_is_read_up_to_the_cut() {
    let whole_pcap = pcap(
        LITTLE,
        0xa1b2_c3d4,
        &[(1, 5, b"abc"), (2, 0, b"defghijk"), (3, 0, b"l")],
    );
    let whole_pcapng = sections();
    let zstd = zstd::stream::encode_all(&whole_pcap[..], 1).unwrap();
    for whole in [
        &whole_pcap,
        &whole_pcapng,
        &gzip(&whole_pcap),
        &gzip(&whole_pcapng),
        &zstd,
    ] {
        let (expected, _) = read(whole).unwrap();
        for cut in 0..whole.len() {
            match read(&whole[..cut]) {
                Ok((seen, info)) => {
                    assert_eq!(expected[..seen.len()], seen, "cut at {cut}");
                    let ends = info
                        .warnings
                        .sentences()
                        .iter()
                        .filter(|text| text.ends_with("the capture ends here"))
                        .count();
                    assert!(ends <= 1, "cut at {cut}");
                }
                Err(sentence) => assert!(sentence.starts_with("capture: "), "{sentence}"),
            }
        }
    }
    let (seen, info) = read(&whole_pcap[..whole_pcap.len() - 20]).unwrap();
    assert_eq!(1, seen.len());
    assert_eq!(
        vec!["frame 2 (byte 43): record cut, 5 of 8 bytes; the capture ends here"],
        info.warnings.sentences()
    );
}

#[test]
fn absurd_lengths_end_the_capture() {
    let mut bytes = pcap(LITTLE, 0xa1b2_c3d4, &[(1, 5, b"abc"), (2, 0, b"def")]);
    bytes[24 + 19 + 8..][..4].fill(0xff);
    let (seen, info) = read(&bytes).unwrap();
    assert_eq!(1, seen.len());
    assert!(info.warnings.sentences()[0].starts_with("frame 2 (byte 43): record length 4294967295"));
    for length in [0u32, 11, 13, u32::MAX] {
        let bytes = [&section(LITTLE)[..], &LITTLE.u32(6), &LITTLE.u32(length), &[0; 64]].concat();
        assert_eq!(1, read(&bytes).unwrap().1.warnings.sentences().len(), "{length}");
    }
    let beyond = [
        section(LITTLE),
        interface(LITTLE, 1, &[]),
        block(LITTLE, 6, &[0xff; 24]),
    ]
    .concat();
    assert_eq!(1, read(&beyond).unwrap().1.warnings.sentences().len());
}

#[test]
fn no_bytes_panic() {
    let mut state = 7u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for whole in [
        sections(),
        pcap(BIG, 0xa1b2_c3d4, &[(1, 5, b"abc"), (2, 0, b"defghijk")]),
    ] {
        for compress in [false, true] {
            let whole = if compress { gzip(&whole) } else { whole.clone() };
            for _ in 0..3_000 {
                let mut mutant = whole.clone();
                for _ in 0..=random() % 4 {
                    let at = random() % mutant.len();
                    mutant[at] = random() as u8;
                }
                let _ = read(&mutant);
            }
        }
    }
}

#[test]
fn what_is_no_capture_is_named() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err();
    assert!(error(b"").contains("empty file"));
    assert!(error(b"snoop\0\0\0\0\0\0\x02\0\0\0\x1a").contains("snoop capture of data link 26"));
    assert!(error(b"snoop\0\0\0\0\0\0\x03\0\0\0\x04").contains("editcap"));
    assert!(error(b"\xfd7zXZ\0\0\x04").contains("xz -dc"));
    assert!(error(b"Hello, this is a text.\n").contains("text file"));
    assert!(error(&[0xde, 0xad, 0xbe, 0xef, 1, 2, 3]).contains("de ad be ef"));
    assert!(error(&gzip(b"Hello, this is a text.\n")).contains("text file"));
    assert!(error(&gzip(&gzip(b"twice"))).contains("by gzip and then by gzip"));
    let other = error(&zstd::stream::encode_all(&gzip(b"twice")[..], 1).unwrap());
    assert!(other.contains("by gzip and then by zstd") && other.contains("`zstd -dc`"));
    let erf = [
        &[1, 2, 3, 4][..],
        &LITTLE.u32(1_700_000_000),
        &[2, 4],
        &BIG.u16(80),
        &[0, 0],
        &BIG.u16(64),
        &[0; 64],
    ]
    .concat();
    assert!(error(&erf).contains("ERF"));
    assert!(error(&gzip(b"Hello")[..12]).contains("gzip"));
}

#[test]
fn valid_captures_may_be_empty() {
    for bytes in [
        pcap(LITTLE, 0xa1b2_c3d4, &[]),
        section(BIG),
        [section(BIG), interface(BIG, 1, &[])].concat(),
    ] {
        let (seen, info) = read(&bytes).unwrap();
        assert_eq!((0, None, true), (seen.len(), info.times_ns, info.warnings.is_empty()));
    }
}

#[test]
fn records_across_block_borders() {
    let data: Vec<u8> = (0..=255).cycle().take(70_001).collect();
    let packets: Vec<(u32, u32, &[u8])> = (0..40).map(|i| (i, 0, &data[i as usize..])).collect();
    let (seen, info) = read(&pcap(LITTLE, 0xa1b2_c3d4, &packets)).unwrap();
    assert!(info.warnings.is_empty());
    assert!(seen.iter().zip(&packets).all(|(seen, packet)| seen.4 == packet.2));
    assert_eq!(40, seen.len());
}

#[test]
fn a_pipe_gives_its_bytes_and_can_be_stopped() {
    struct Slow(Vec<u8>);
    impl std::io::Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some(byte) = self.0.pop() else {
                std::thread::park();
                return Ok(0);
            };
            buffer[0] = byte;
            Ok(1)
        }
    }
    let mut asked = 0;
    let stop_at_second = Box::new(move || {
        asked += 1;
        asked == 2
    });
    let mut bytes = pcap(LITTLE, 0xa1b2_c3d4, &[(1, 5, b"abc")]);
    bytes.reverse();
    let piped = Input::from_pipe(|| Ok(Slow(bytes)), stop_at_second).unwrap();
    let mut capture = Capture::from_input(piped, Path::new("-")).unwrap();
    assert_eq!(b"abc", capture.next().unwrap().unwrap().data);
    assert!(matches!(capture.next(), Err(CaptureError::Stopped)));
}

#[test]
fn a_pipe_ends_and_fails_as_its_reader_does() {
    let piped = Input::from_pipe(|| Ok(Cursor::new(sections())), Box::new(|| false)).unwrap();
    let mut capture = Capture::from_input(piped, Path::new("-")).unwrap();
    while capture.next().unwrap().is_some() {}
    assert_eq!(6, capture.info().packets);
    let failing = || Err::<Cursor<Vec<u8>>, _>(std::io::ErrorKind::PermissionDenied.into());
    let failed = Input::from_pipe(failing, Box::new(|| false)).map(drop).unwrap_err();
    assert_eq!(std::io::ErrorKind::PermissionDenied, failed.kind());
}

/// A stream that gives one byte at a time, so that no block is at hand before it is asked for.
struct Trickle(Cursor<Vec<u8>>);

impl std::io::Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

/// All that is known of every packet, then of the capture.
fn all_of(reader: impl std::io::Read + Send + 'static) -> Vec<String> {
    let mut capture = match Capture::from_reader(reader) {
        Ok(capture) => capture,
        Err(error) => return vec![error.to_string()],
    };
    let mut seen = Vec::new();
    while let Some(packet) = capture.next().unwrap() {
        seen.push(format!("{packet:?}"));
    }
    seen.push(format!("{:?}", capture.info()));
    seen
}

/// A packet block at hand is read in one look; where its bytes trickle in, block by block. Both must see the same.
fn assert_one_look_sees_the_same(bytes: &[u8]) {
    let expected = all_of(Trickle(Cursor::new(bytes.to_vec())));
    let shown = &bytes[..bytes.len().min(1000)];
    assert_eq!(expected, all_of(Cursor::new(bytes.to_vec())), "{shown:02x?}");
}

/// What reads a pcapng capture, without the capture.
fn pcapng_reader(bytes: &[u8]) -> (Block, pcapng::Pcapng, Info) {
    let mut block = Block::new(input::Source::Reader(Box::new(Cursor::new(bytes.to_vec()))));
    let pcapng = pcapng::Pcapng::open(&mut block).unwrap();
    let info = Capture::from_reader(Cursor::new(bytes.to_vec())).unwrap().info;
    (block, pcapng, info)
}

/// Options of a packet as they are seen, and as they should not be.
fn packet_options(order: Order) -> Vec<Vec<u8>> {
    let flags = |flags: u32| option(order, 2, &order.u32(flags));
    let end = option(order, 0, &[]);
    let comment = option(order, 1, b"odd");
    let drops = option(order, 4, &order.u64(5));
    vec![
        vec![],
        end.clone(),
        flags(1),
        [flags(2), end.clone()].concat(),
        [flags(0x1ff), end.clone()].concat(),
        [&comment[..], &flags(1), &end].concat(),
        [flags(1), flags(2), end.clone()].concat(),
        [&end[..], &flags(1)].concat(),
        [&drops[..], &end].concat(),
        [&flags(2)[..], &drops, &end].concat(),
        [option(order, 2, &order.u16(1)), option(order, 4, &order.u32(1))].concat(),
        [&flags(2)[..], &order.u16(2), &order.u16(400)].concat(),
        [&flags(1)[..], &[0xff; 4]].concat(),
    ]
}

#[test]
fn one_look_sees_the_same_as_block_by_block() {
    let clock = |order: Order, resolution: u8| option(order, 9, &[resolution]);
    let from = |order: Order, seconds: i64| option(order, 14, &order.u64(seconds as u64));
    for order in [LITTLE, BIG] {
        let mut bytes = section(order);
        let mut interfaces = 0;
        for options in [0, 3, 6, 9, 10, 12, 28, 29, 0x80, 0x8a, 0xa0, 0xfe]
            .map(|resolution| clock(order, resolution))
            .into_iter()
            .chain([100, -100, i64::MAX, i64::MIN].map(|seconds| from(order, seconds)))
            .chain([vec![], [clock(order, 9), from(order, -2)].concat()])
        {
            bytes.extend(interface(order, 1 + interfaces, &options));
            interfaces += 1;
        }
        let simple = block(order, 3, &[&order.u32(3)[..], b"ijk"].concat());
        let statistics = block(
            order,
            5,
            &[&[0; 12][..], &option(order, 7, &order.u64(9)), &order.u32(0)].concat(),
        );
        for (length, ticks) in [0, 1, 999, 1 << 32, 1_700_000_000_123_456, i64::MAX as u64, u64::MAX]
            .into_iter()
            .enumerate()
        {
            // one more than there are
            for interface_id in 0..=u32::from(interfaces) {
                for options in packet_options(order) {
                    bytes.extend(enhanced(order, interface_id, ticks, &b"abcdefgh"[..length], &options));
                }
                bytes.extend(&simple);
            }
            bytes.extend(&statistics);
            bytes.extend(block(order, 0x0bad, &[7; 13]));
        }
        bytes.extend(section(order));
        bytes.extend(enhanced(order, 0, 1, b"of no interface", &[]));
        assert_one_look_sees_the_same(&bytes);
    }
}

#[test]
fn one_look_sees_the_same_of_damage() {
    let before = [
        section(LITTLE),
        interface(LITTLE, 1, &[]),
        enhanced(LITTLE, 0, 1, b"abc", &[]),
        enhanced(LITTLE, 0, 2, b"defgh", &option(LITTLE, 2, &LITTLE.u32(1))),
    ]
    .concat();
    let after = [
        enhanced(LITTLE, 0, 3, b"after", &[]),
        section(BIG),
        interface(BIG, 1, &[]),
        enhanced(BIG, 0, 4, b"big", &option(BIG, 2, &BIG.u32(2))),
        section(LITTLE),
        interface(LITTLE, 113, &[]),
        enhanced(LITTLE, 0, 5, b"little", &[]),
        enhanced(LITTLE, 0, 6, b"end", &option(LITTLE, 4, &LITTLE.u64(1))),
    ]
    .concat();
    for options in packet_options(LITTLE) {
        let packet = enhanced(LITTLE, 0, 7, b"packet", &options);
        let whole = [&before[..], &packet, &after].concat();
        for cut in 0..=whole.len() {
            assert_one_look_sees_the_same(&whole[..cut]);
        }
        // every word of the block, near what it was and far from it
        for at in (0..packet.len()).step_by(4) {
            let word = u32::from_le_bytes(packet[at..at + 4].try_into().unwrap());
            let near = (0..=20).flat_map(|by| [word.wrapping_add(by), word.wrapping_sub(by)]);
            for word in near.chain([1 << 20, 1 << 21, i32::MAX as u32, u32::MAX - 3, u32::MAX]) {
                let mut packet = packet.clone();
                packet[at..at + 4].copy_from_slice(&LITTLE.u32(word));
                assert_one_look_sees_the_same(&[&before[..], &packet, &after].concat());
                if at == 4 {
                    // the length at the end agrees
                    let end = packet.len() - 4;
                    packet[end..].copy_from_slice(&LITTLE.u32(word));
                    assert_one_look_sees_the_same(&[&before[..], &packet, &after].concat());
                }
            }
        }
        // lengths that are no multiple of 4, the block padded all the same or not
        for by in 1..4 {
            let length = LITTLE.u32(packet.len() as u32 - by);
            let mut padded = packet.clone();
            padded[4..8].copy_from_slice(&length);
            let end = padded.len() - 4;
            padded[end..].copy_from_slice(&length);
            assert_one_look_sees_the_same(&[&before[..], &padded, &after].concat());
            let unpadded = [&padded[..end - by as usize], &length].concat();
            assert_one_look_sees_the_same(&[&before[..], &unpadded, &after].concat());
        }
    }
    let other_order = [
        section(BIG),
        interface(BIG, 1, &[]),
        enhanced(BIG, 0, 7, b"packet", &[]),
        enhanced(LITTLE, 0, 8, b"no packet", &[]),
    ];
    assert_one_look_sees_the_same(&[&other_order.concat()[..], &after].concat());
    let long = vec![7; record::MAX_RECORD + (256 << 10)];
    for length in [record::MAX_RECORD + 1, long.len() - 32, long.len() - 31] {
        let packet = enhanced(LITTLE, 0, 7, &long[..length], &[]);
        assert_one_look_sees_the_same(&[&before[..], &packet, &after].concat());
    }
    // what is too long to be believed is damage even where it is at hand
    let bytes = [before, enhanced(LITTLE, 0, 7, &long, &[])].concat();
    let (mut block, mut pcapng, mut info) = pcapng_reader(&bytes);
    for _ in 0..2 {
        assert!(matches!(pcapng.step(&mut block, &mut info), Step::Record(_)));
    }
    block.peek(bytes.len());
    assert!(matches!(pcapng.step(&mut block, &mut info), Step::Damaged(_)));
}

#[test]
fn usual_packet_blocks_are_read_in_one_look() {
    let usual = packet_options(LITTLE).into_iter().take(7);
    let packets: Vec<Vec<u8>> = usual
        .zip(0u64..)
        .map(|(options, ticks)| enhanced(LITTLE, 0, ticks, &b"abcdefg"[..ticks as usize], &options))
        .collect();
    let bytes = [
        section(LITTLE),
        interface(LITTLE, 1, &[]),
        enhanced(LITTLE, 0, 0, b"first", &[]),
        packets.concat(),
    ]
    .concat();
    let (mut block, mut pcapng, mut info) = pcapng_reader(&bytes);
    assert!(matches!(pcapng.step(&mut block, &mut info), Step::Record(_)));
    let seen: Vec<(i64, Direction, usize)> = std::iter::from_fn(|| pcapng.record(&mut block))
        .map(|record| (record.time_ns, record.direction, record.place.len))
        .collect();
    let directions = {
        use Direction::{Inbound, Outbound, Unknown};
        [Unknown, Unknown, Inbound, Outbound, Unknown, Inbound, Outbound]
    };
    let expected: Vec<(i64, Direction, usize)> = (0i64..)
        .zip(directions)
        .map(|(ticks, direction)| (ticks * 1000, direction, ticks as usize))
        .collect();
    assert_eq!(expected, seen);
    assert!(matches!(pcapng.step(&mut block, &mut info), Step::End));
}
