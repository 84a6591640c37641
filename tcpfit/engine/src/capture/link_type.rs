//! Link types by number and name (the registry of draft-ietf-opsawg-pcaplinktype, tcpdump's spelling).

pub const NULL: u32 = 0;
pub const ETHERNET: u32 = 1;
pub const TOKEN_RING: u32 = 6;
pub const PPP: u32 = 9;
pub const FDDI: u32 = 10;
pub const ATM_RFC1483: u32 = 100;
/// DLT_RAW as BSDs wrote it before LINKTYPE_RAW (101) existed.
pub const RAW_BSD: u32 = 12;
pub const RAW_OPENBSD: u32 = 14;
pub const PPP_HDLC: u32 = 50;
pub const PPP_ETHER: u32 = 51;
pub const RAW: u32 = 101;
pub const C_HDLC: u32 = 104;
pub const IEEE802_11: u32 = 105;
pub const FRAME_RELAY: u32 = 107;
pub const LOOP: u32 = 108;
pub const LINUX_SLL: u32 = 113;
pub const IEEE802_11_PRISM: u32 = 119;
pub const IP_OVER_FC: u32 = 122;
pub const IEEE802_11_RADIO: u32 = 127;
pub const IEEE802_11_AVS: u32 = 163;
pub const JUNIPER_ETHER: u32 = 178;
pub const PPI: u32 = 192;
pub const PPP_WITH_DIRECTION: u32 = 204;
pub const MPLS: u32 = 219;
pub const IPV4: u32 = 228;
pub const IPV6: u32 = 229;
pub const NFLOG: u32 = 239;
pub const IP_OVER_INFINIBAND: u32 = 242;
pub const PKTAP: u32 = 258;
pub const LINUX_SLL2: u32 = 276;

/// Name of a link type, `LINKTYPE_n` for one without a name here.
pub fn name(link_type: u32) -> String {
    let known = match link_type {
        NULL => "NULL",
        ETHERNET => "EN10MB",
        TOKEN_RING => "IEEE802",
        PPP => "PPP",
        FDDI => "FDDI",
        RAW_BSD | RAW_OPENBSD | RAW => "RAW",
        PPP_HDLC => "PPP_SERIAL",
        PPP_ETHER => "PPP_ETHER",
        ATM_RFC1483 => "ATM_RFC1483",
        C_HDLC => "C_HDLC",
        IEEE802_11 => "IEEE802_11",
        FRAME_RELAY => "FRELAY",
        LOOP => "LOOP",
        LINUX_SLL => "LINUX_SLL",
        117 => "PFLOG",
        IEEE802_11_PRISM => "PRISM_HEADER",
        IP_OVER_FC => "IP_OVER_FC",
        IEEE802_11_RADIO => "IEEE802_11_RADIO",
        143 => "DOCSIS",
        147 => "USER0",
        149 => "USER2",
        IEEE802_11_AVS => "IEEE802_11_RADIO_AVS",
        JUNIPER_ETHER => "JUNIPER_ETHER",
        189 => "USB_LINUX",
        PPI => "PPI",
        195 => "IEEE802_15_4",
        201 => "BLUETOOTH_HCI_H4_WITH_PHDR",
        PPP_WITH_DIRECTION => "PPP_WITH_DIR",
        MPLS => "MPLS",
        220 => "USB_LINUX_MMAPPED",
        IPV4 => "IPV4",
        IPV6 => "IPV6",
        NFLOG => "NFLOG",
        IP_OVER_INFINIBAND => "IPOIB",
        249 => "USBPCAP",
        252 => "WIRESHARK_UPPER_PDU",
        PKTAP => "PKTAP",
        LINUX_SLL2 => "LINUX_SLL2",
        _ => return format!("LINKTYPE_{link_type}"),
    };
    known.to_owned()
}
