use super::*;

fn segment(src: [u8; 4], sport: u16, dst: [u8; 4], dport: u16) -> Segment {
    let mapped = |v4: [u8; 4]| {
        let mut address = [0; 16];
        address[..12].copy_from_slice(&V4_MAPPED);
        address[12..].copy_from_slice(&v4);
        address
    };
    Segment {
        frame: 1,
        time_ns: 0,
        src: mapped(src),
        dst: mapped(dst),
        sport,
        dport,
        seq: 0,
        ack: 0,
        flags: 0,
        window: 0,
        payload: 0,
        wire_bytes: 60,
        ip_id: None,
        ttl: 64,
        ecn: 0,
        checksum: 0,
        direction: Default::default(),
        around: 0,
        options: Default::default(),
    }
}

fn matches(filter: &str) -> bool {
    let filter = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    filter.matches(&segment([10, 0, 0, 1], 40000, [192, 168, 1, 2], 443))
}

#[test]
fn primitives() {
    for filter in [
        "",
        "tcp",
        "ip",
        "host 10.0.0.1",
        "10.0.0.1",
        "src 10.0.0.1",
        "src host 10.0.0.1",
        "dst host 192.168.1.2",
        "ip host 10.0.0.1",
        "net 10.0.0.0/8",
        "net 10",
        "net 192.168",
        "dst net 192.168.1.0/24",
        "net 10.0.0.0 mask 255.0.0.0",
        "net 0.0.0.0/0",
        "port 443",
        "tcp port 443",
        "tcp dst port 443",
        "portrange 440-450",
        "src portrange 40000-40000",
        "src or dst port 443",
        "greater 60",
        "less 60",
    ] {
        assert!(matches(filter), "{filter}");
    }
    for filter in [
        "ip6",
        "udp",
        "udp port 443",
        "host 10.0.0.2",
        "dst host 10.0.0.1",
        "ip6 host 10.0.0.1",
        "net 11.0.0.0/8",
        "src net 192.168.1.0/24",
        "src port 443",
        "src and dst port 443",
        "portrange 1-442",
        "host ::1",
        "net 2001:db8::/32",
        "net ::/64",
        "greater 61",
    ] {
        assert!(!matches(filter), "{filter}");
    }
}

#[test]
fn operators_as_pcap_filter_has_them() {
    assert!(matches("port 80 or 443"));
    assert!(matches("port 80 or port 443 and host 10.0.0.1"));
    assert!(matches("tcp port 80 or 443"));
    assert!(matches("not port 80 and not udp"));
    assert!(matches("!(port 80 || host 1.2.3.4)"));
    // from the left: (port 443 or port 80) and port 80
    assert!(!matches("port 443 or port 80 and port 80"));
    assert!(matches("port 443 or (port 80 and port 80)"));
    assert!(matches("src 10.0.0.1 or dst 10.0.0.1"));
    assert!(matches("src 10.0.0.1 and dst 192.168.1.2"));
    assert!(!matches("not tcp"));
}

#[test]
fn errors_name_place_and_expectation() {
    let error = |filter: &str| Filter::parse(filter).expect_err(filter).to_string();
    assert_eq!(
        "filter, character 6: expected a port number from 0 to 65535, got \"http\"",
        error("port http")
    );
    assert_eq!(
        "filter, character 6: expected an IPv4 or IPv6 address (names are not looked up), got \"example.org\"",
        error("host example.org")
    );
    assert_eq!(
        "filter, character 10: expected ')', 'and' or 'or', got the end",
        error("(port 80 ")
    );
    assert_eq!(
        "filter, character 9: expected 'and', 'or' or the end, got \"port\"",
        error("port 80 port 81")
    );
    assert!(error("port").ends_with("got the end"));
    assert!(error("port 70000").contains("65535"));
    assert!(error("net 10.0.0.0/33").contains("a network"));
    assert!(error("tcp[13] & 2 != 0").contains("character 4"));
    assert!(error("vlan 3").contains("a primitive"));
    assert!(error("and").contains("a primitive"));
    assert!(error("src").contains("'host'"));
    assert!(error("port 80 or").contains("got the end"));
    assert!(error(&"(".repeat(100_000)).contains("64 levels"));
    assert!(error(&"not ".repeat(100_000)).contains("64 levels"));
}

#[test]
fn no_text_panics() {
    let words = [
        "host", "net", "port", "or", "and", "not", "(", ")", "src", "1.2.3.4", "::/0", "80", "é", "mask", "-", "/",
    ];
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..state % 9 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
            text.push(' ');
        }
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state ^= state >> 29;
        let _ = Filter::parse(&text);
    }
}
