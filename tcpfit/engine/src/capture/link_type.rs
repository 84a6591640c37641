//! Link types by number and name (the registry of draft-ietf-opsawg-pcaplinktype, tcpdump's spelling).

pub const NULL: u32 = 0;
pub const ETHERNET: u32 = 1;
pub const PPP: u32 = 9;
/// DLT_RAW as BSDs wrote it before LINKTYPE_RAW (101) existed.
pub const RAW_BSD: u32 = 12;
pub const RAW_OPENBSD: u32 = 14;
pub const PPP_HDLC: u32 = 50;
pub const RAW: u32 = 101;
pub const LOOP: u32 = 108;
pub const LINUX_SLL: u32 = 113;
pub const IPV4: u32 = 228;
pub const IPV6: u32 = 229;
pub const LINUX_SLL2: u32 = 276;

/// Name of a link type, `LINKTYPE_n` for one without a name here.
pub fn name(link_type: u32) -> String {
    let known = match link_type {
        NULL => "NULL",
        ETHERNET => "EN10MB",
        PPP => "PPP",
        RAW_BSD | RAW_OPENBSD | RAW => "RAW",
        PPP_HDLC => "PPP_SERIAL",
        104 => "C_HDLC",
        105 => "IEEE802_11",
        LOOP => "LOOP",
        LINUX_SLL => "LINUX_SLL",
        127 => "IEEE802_11_RADIO",
        147 => "USER0",
        149 => "USER2",
        189 => "USB_LINUX",
        220 => "USB_LINUX_MMAPPED",
        IPV4 => "IPV4",
        IPV6 => "IPV6",
        239 => "NFLOG",
        258 => "PKTAP",
        LINUX_SLL2 => "LINUX_SLL2",
        _ => return format!("LINKTYPE_{link_type}"),
    };
    known.to_owned()
}
