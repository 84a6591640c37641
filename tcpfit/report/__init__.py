"""Reports of an analysis: the JSON contract, flat rows, the terminal, notebooks."""
