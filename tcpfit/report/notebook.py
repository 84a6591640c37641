"""An analysis as a notebook shows it: what is known of the capture, and the largest flows."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tcpfit.report import sentences, words
from tcpfit.report.contract import capture_facts, flow_facts

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

SHOWN = 10

HEADINGS = ("flow", "from", "to", "duration", "goodput", "segments", "lost", "p", "RTT", "verdict")


def html(analysis: Analysis) -> str:
    """A small table; nothing in it comes from the capture unescaped."""
    facts, flows = capture_facts(analysis), list(flow_facts(analysis.select(analysis.largest()[:SHOWN])))
    body, doubtful = [], False
    for flow in flows:
        verdict = flow["verdict"]
        cells = (
            str(flow["id"]),
            words.endpoint(flow["src"], flow["src_port"]),
            words.endpoint(flow["dst"], flow["dst_port"]),
            words.seconds(flow["duration_s"]),
            sentences.goodput(flow),
            str(flow["counts"]["sent_segments"]),
            sentences.lost(flow),
            sentences.loss_rate(flow),
            words.seconds(flow["parameters"]["rtt"]["value"]),
            " ".join([verdict["state"].replace("_", " "), ", ".join(verdict["models"])]).strip(),
        )
        doubtful |= sentences.loss_rate(flow).endswith("?")
        body.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    summary = f"{words.plural(facts['packets'] or 0, 'packet')}, {words.plural(analysis.flows.height, 'flow')}"
    more = analysis.flows.height - len(flows)
    return (
        f"<p><b>{escape(facts['path'])}</b>: {escape(summary)}, {words.seconds(facts['duration_s'])}</p>"
        + "".join(f"<p>warning: {escape(warning)}</p>" for warning in facts["warnings"])
        + f"<table><thead><tr>{''.join(f'<th>{heading}</th>' for heading in HEADINGS)}</tr></thead>"
        + f"<tbody>{''.join(body)}</tbody></table>"
        + (f"<p>{escape(sentences.DOUBTFUL)}</p>" if doubtful else "")
        + (f"<p>{words.plural(more, 'smaller flow')} not shown</p>" if more > 0 else "")
    )
