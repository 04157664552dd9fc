"""What the page's scripts do with packed numbers, done by Python: the numbers of a page for the tests."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PageData:
    """Numbers of a section of a page.

    Attributes:
        data: plain JSON.
        blobs: packed numbers by id.
    """

    def __init__(self, page: str, anchor: str = "s0") -> None:
        found = re.search(rf'<script type="application/json" id="{anchor}-data">(.*?)</script>', page, re.DOTALL)
        assert found is not None
        self.data: dict[str, Any] = json.loads(found[1])
        pattern = r'<script type="application/octet-stream" id="([^"]+)">(.*?)</script>'
        self.blobs = dict(re.findall(pattern, page, re.DOTALL))

    def bytes_of(self, name: str) -> bytes:
        return zlib.decompress(base64.b64decode(self.blobs[name]), wbits=-15)

    def whole(self, names: list[str]) -> NDArray[np.int64]:
        planes = [np.frombuffer(self.bytes_of(name), dtype=np.uint8).astype(np.int64) for name in names]
        total = np.zeros(len(planes[0]), dtype=np.int64)
        for place, plane in enumerate(planes):
            total += plane << 8 * place
        return total

    def doubles(self, name: str) -> NDArray[np.float64]:
        return np.frombuffer(self.bytes_of(name), dtype="<f8")

    def column(self, packed: dict[str, Any]) -> NDArray[np.float64]:
        codes, scale = self.whole(packed["planes"]), packed["scale"]
        values = scale["begin"] + scale["step"] * (codes - scale["first"])
        if scale["kind"] == "log":
            values = np.where(codes == 2, 0.0, np.exp(values))
        return np.where(codes == 0, np.nan, np.where(codes == 1, np.inf, values))

    def cells(self, name: str) -> NDArray[np.float64]:
        (packed,) = (column for column in self.data["run"]["cells"]["columns"] if column["name"] == name)
        return self.column(packed)

    def curve(self, chart: str, label: str) -> NDArray[np.float64]:
        (found,) = (each for each in self.data["charts"] if each["name"] == chart)
        (curve,) = (each for each in found["curves"] if each["label"] == label)
        return np.frombuffer(base64.b64decode(curve["y"]), dtype="<f8")
