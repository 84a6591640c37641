"""The captures made for other tests serve here as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
