"""Makes the strategies and brute-force references of these tests importable by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
