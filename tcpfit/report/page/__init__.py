"""A capture's report as one HTML file that can be mailed: verdict, how sure, what it looks like, evidence.

`content` says what is on the page, `render` makes the file of it with the templates, the style and the script of
`tcpfit/report/templates`. The file loads nothing: figures and the library that draws them are packed into it.
"""

from tcpfit.report.page.render import DRAWN, check, render

__all__ = ["DRAWN", "check", "render"]
