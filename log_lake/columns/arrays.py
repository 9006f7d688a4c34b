"""Types of arrays of plain numbers, for whole columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
"""One boolean for each row: whether it is selected."""
