//! Which format the first bytes announce, and a name for those that tcpfit does not read.

/// Bytes needed to tell formats apart.
pub const HEAD: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Pcap(PcapVariant),
    Pcapng,
    Snoop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapVariant {
    pub big_endian: bool,
    pub nanoseconds: bool,
    /// Kuznetzov's variant: 24-byte record headers that also hold the packet type.
    pub modified: bool,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcap(_) => "pcap",
            Self::Pcapng => "pcapng",
            Self::Snoop => "snoop",
        }
    }

    pub fn recognise(head: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let pcap = |big_endian, nanoseconds, modified| {
            Some(Self::Pcap(PcapVariant {
                big_endian,
                nanoseconds,
                modified,
            }))
        };
        match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => pcap(true, false, false),
            0xd4c3_b2a1 => pcap(false, false, false),
            0xa1b2_3c4d => pcap(true, true, false),
            0x4d3c_b2a1 => pcap(false, true, false),
            0xa1b2_cd34 => pcap(true, false, true),
            0x34cd_b2a1 => pcap(false, false, true),
            0x0a0d_0d0a => Some(Self::Pcapng),
            _ if head.starts_with(b"snoop\0\0\0") => Some(Self::Snoop),
            _ => None,
        }
    }
}

/// What is wrong with a file that is in none of them, and was compressed by `outer`: the rule and the next step.
pub fn explain(head: &[u8], outer: Option<&str>) -> String {
    const CONVERT: &str = "convert it with editcap";
    const FORMATS: &[(&[u8], &str)] = &[
        (b"btsnoop\0", "a btsnoop capture"),
        (b"RTSS", "a Network Monitor 1 capture"),
        (b"GMBU", "a Network Monitor 2 capture"),
        (b"iptrace ", "an AIX iptrace capture"),
        (b"TRSNIFF data", "a Sniffer capture"),
        (b"XCP\0", "a NetXRay capture"),
        (b"\x1c\x00\x01\xac", "an IXIA lcap capture"),
        (b"\x1c\x00\x01\xab", "an IXIA lcap capture"),
        (b"\xac\x01\x00\x1c", "an IXIA lcap capture"),
        (b"\xab\x01\x00\x1c", "an IXIA lcap capture"),
    ];
    const COMPRESSED: &[(&[u8], &str, &str)] = &[
        (b"\xfd7zXZ\0", "xz", "xz -dc"),
        (b"BZh", "bzip2", "bzip2 -dc"),
        (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
        (b"PK\x03\x04", "zip", "unzip -p"),
        (b"7z\xbc\xaf\x27\x1c", "7z", "7z x -so"),
        (b"\x1f\x8b", "gzip", "gzip -dc"),
        (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    ];
    const OTHERS: &[(&[u8], &str)] = &[
        (b"PAR1", "a Parquet file"),
        (b"ARROW1", "an Arrow file"),
        (b"\x7fELF", "a program"),
        (b"%PDF", "a PDF"),
    ];

    if head.is_empty() {
        return "empty file (0 bytes), no capture in it; capture or copy it again".into();
    }
    if let Some((_, name)) = FORMATS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return format!("{name}, and tcpfit reads pcap, pcapng and snoop; {CONVERT}");
    }
    if let Some((_, name, command)) = COMPRESSED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        let (name, command) = match outer {
            // what is left then is undone, or its own command comes next
            Some(outer) => (format!("{name} and then by {outer}"), format!("{outer} -dc")),
            None => ((*name).to_owned(), (*command).to_owned()),
        };
        return format!(
            "compressed by {name}, and tcpfit undoes gzip or zstd, once; pipe `{command}` into tcpfit with '-'"
        );
    }
    if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return format!("{name}, not a capture; tcpfit reads pcap, pcapng and snoop");
    }
    if looks_like_erf(head) {
        return format!("probably an ERF capture, and tcpfit reads pcap, pcapng and snoop; {CONVERT}");
    }
    if head
        .iter()
        .all(|&byte| byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'))
    {
        return "a text file, not a capture; give the file that tcpdump -w wrote, or text2pcap's output".into();
    }
    let magic: Vec<String> = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!(
        "in no format that tcpfit reads (it begins {}); if Wireshark opens it, {CONVERT}",
        magic.join(" ")
    )
}

/// ERF has no magic: a little-endian time, a known type, and lengths that agree.
fn looks_like_erf(head: &[u8]) -> bool {
    let [_, _, _, _, seconds @ .., kind, _, r0, r1, _, _, w0, w1] = head.get(..16).unwrap_or_default() else {
        return false;
    };
    let record = u16::from_be_bytes([*r0, *r1]);
    let wire = u16::from_be_bytes([*w0, *w1]);
    let year_2000 = 946_684_800;
    let time = seconds.try_into().map_or(0, u32::from_le_bytes);
    (1..=48).contains(&(kind & 0x7f))
        && time > year_2000
        && record >= 16
        && wire > 0
        && record <= wire.saturating_add(64)
}
