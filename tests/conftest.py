"""Before anything is imported: BLAS with one thread, and machine code that belongs to this source and no other."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parents[1]

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two test workers with two BLAS threads each fight for two cores

# Numba does not notice that a kernel changed when only a function it calls did: one cache per state of the source.
_source = hashlib.sha256()
for _path in sorted((ROOT / "src").rglob("*.py")):
    _source.update(_path.read_bytes())
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _source.hexdigest()[:16])
