"""Where the networks of these tests are computed: FEATURESTEP_DEVICE=cuda takes a GPU.

Numbers are drawn on the host, so that a seed is the same network wherever it runs.
"""

import os
from typing import Any

DEVICE: dict[str, Any] = {"device": os.environ.get("FEATURESTEP_DEVICE", "cpu"), "drawn": "host"}
