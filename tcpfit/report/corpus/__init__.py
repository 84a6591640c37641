"""A corpus as a whole, shown: terminal.py for 80 columns, figures.py as Vega-Lite, page.py as one HTML file."""
