/* The least that a program which reads captures with libpcap does: it counts the packets of FILE. */
#include <pcap/pcap.h>
#include <stdio.h>

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *capture = argc == 2 ? pcap_open_offline(argv[1], error) : NULL;
    if (!capture)
        return 1;
    struct pcap_pkthdr *header;
    const u_char *data;
    unsigned long packets = 0, bytes = 0;
    while (pcap_next_ex(capture, &header, &data) == 1) {
        packets++;
        bytes += header->len;
    }
    printf("%lu packets, %lu bytes\n", packets, bytes);
    return 0;
}
