"""Write down the numbers of the package's stream version."""

import tempfile
from pathlib import Path

from tests.golden.numbers import write_down

with tempfile.TemporaryDirectory() as folder:
    print(write_down(Path(folder)))
