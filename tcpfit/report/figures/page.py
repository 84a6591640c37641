"""A figure as an HTML file that holds all its scripts: it zooms, says what is under the pointer, and a click copies the
display filter that shows the frame in Wireshark. It loads nothing, and its policy forbids it to."""

from __future__ import annotations

import json
from html import escape
from typing import Any

POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
"""Vega makes functions of its expressions, so `unsafe-eval`; nothing may come from or go to a network."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
body {{ margin: 1rem; background: {background}; color: {text}; font: 15px/1.5 system-ui, sans-serif; }}
figure {{ margin: 0; }}
#figure {{ overflow-x: auto; }}
figcaption, #copied {{ max-width: 60rem; }}
</style>
</head>
<body>
<main>
<figure aria-labelledby="caption">
<div id="figure"></div>
<figcaption id="caption">{caption}</figcaption>
</figure>
<p id="copied" role="status"></p>
</main>
<script>{library}</script>
<script>
const spec = {spec};
const said = document.getElementById("copied");
const actions = {{ export: true, source: false, compiled: false, editor: false }};
vegaEmbed("#figure", spec, {{ renderer: "svg", actions }})
  .then(({{ view }}) => view.addEventListener("click", (_, item) => {{
    const filter = item && item.datum && item.datum.filter;
    if (!filter) return;
    said.textContent = "Wireshark filter: " + filter;
    const copied = () => {{ said.textContent += " (copied)"; }};
    if (navigator.clipboard) navigator.clipboard.writeText(filter).then(copied, () => {{}});
  }}))
  .catch((error) => {{ said.textContent = "The figure could not be drawn: " + error; }});
</script>
</body>
</html>
"""


def page(spec: dict[str, Any], library: str) -> str:
    """The page of a specification; `library` is the script that has vegaEmbed. Texts of the figure stay text."""
    title = spec.get("title") or {}
    heading = title if isinstance(title, str) else title.get("text", "")
    inside = json.dumps(spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return PAGE.format(
        policy=escape(POLICY),
        title=escape(str(heading) or "tcpfit"),
        caption=escape(spec.get("description", "")),
        background=spec["config"].get("background", "#ffffff"),
        text=spec["config"].get("title", {}).get("color", "#24292f"),
        library=library,
        spec=inside,
    )
