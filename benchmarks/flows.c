/* The least that a program which follows connections does with libpcap: it decodes the headers of FILE's packets and
 * counts packets and bytes of every connection in a hash table, open addressing, as plainly as it is written. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    uint8_t low[16], high[16];
    uint16_t low_port, high_port;
};
struct flow {
    struct key key;
    uint32_t packets;
    uint64_t bytes;
};

static struct flow *table;
static size_t size = 1 << 10, used;

static uint64_t hash(const struct key *key) {
    uint64_t words[5] = {0}, value = 0x9E3779B97F4A7C15;
    memcpy(words, key, sizeof *key);
    for (int i = 0; i < 5; i++) {
        value = (value ^ words[i]) * 0xD6E8FEB86659FD93;
        value ^= value >> 32;
    }
    return value;
}

static struct flow *find(struct flow *in, size_t length, const struct key *key) {
    size_t at = hash(key) & (length - 1);
    while (in[at].packets && memcmp(&in[at].key, key, sizeof *key))
        at = (at + 1) & (length - 1);
    return &in[at];
}

static void grow(void) {
    struct flow *larger = calloc(size * 2, sizeof *larger);
    if (!larger)
        exit(1);
    for (size_t i = 0; i < size; i++)
        if (table[i].packets)
            *find(larger, size * 2, &table[i].key) = table[i];
    free(table);
    table = larger;
    size *= 2;
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *capture = argc == 2 ? pcap_open_offline(argv[1], error) : NULL;
    table = calloc(size, sizeof *table);
    if (!capture || !table)
        return 1;
    struct pcap_pkthdr *header;
    const u_char *data;
    unsigned long segments = 0;
    while (pcap_next_ex(capture, &header, &data) == 1) {
        uint8_t src[16] = {0}, dst[16] = {0};
        uint16_t src_port, dst_port;
        const u_char *ip = data + 14, *tcp;
        if (header->caplen < 54)
            continue;
        if (data[12] == 8 && data[13] == 0 && ip[9] == 6) {
            memcpy(src, ip + 12, 4);
            memcpy(dst, ip + 16, 4);
            tcp = ip + (ip[0] & 15) * 4;
        } else if (data[12] == 0x86 && data[13] == 0xdd && ip[6] == 6 && header->caplen >= 74) {
            memcpy(src, ip + 8, 16);
            memcpy(dst, ip + 24, 16);
            tcp = ip + 40;
        } else {
            continue;
        }
        memcpy(&src_port, tcp, 2);
        memcpy(&dst_port, tcp + 2, 2);
        int order = memcmp(src, dst, 16);
        int low = order < 0 || (order == 0 && src_port <= dst_port);
        struct key key;
        memcpy(key.low, low ? src : dst, 16);
        memcpy(key.high, low ? dst : src, 16);
        key.low_port = low ? src_port : dst_port;
        key.high_port = low ? dst_port : src_port;
        struct flow *flow = find(table, size, &key);
        if (!flow->packets) {
            if (used * 2 >= size) {
                grow();
                flow = find(table, size, &key);
            }
            flow->key = key;
            used++;
        }
        flow->packets++;
        flow->bytes += header->len;
        segments++;
    }
    printf("%lu segments, %zu connections\n", segments, used);
    return 0;
}
