"""The pure Python reader: slow, short, and independent of the engine's decoders, which are compared with it."""

from __future__ import annotations

from collections import Counter

from tcpfit.readers import Reading, Settings
from tcpfit.readers.around import Skipped
from tcpfit.readers.batches import Batches, counts
from tcpfit.readers.containers import facts_of, open_capture
from tcpfit.readers.decode import Decoder
from tcpfit.readers.files import Stream


def read(path: str, settings: Settings) -> Reading:
    """Read a capture in Python; see `tcpfit.readers.read`."""
    batches = Batches(settings)
    skipped: Counter[str] = Counter()
    decoder = Decoder()
    stream = Stream(path, settings.progress)
    try:
        facts, packets = open_capture(stream, path)
        for packet in packets:
            try:
                decoded = decoder.segment(packet)
            except Skipped as reason:
                skipped[str(reason)] += 1
                continue
            assert facts.first_ns is not None
            if batches.wanted(packet.time_ns, facts.first_ns):
                batches.add(decoded)
                if batches.full:
                    break
        return batches.finish(facts_of(facts) | {"skipped": counts(skipped)})
    finally:
        stream.close()
