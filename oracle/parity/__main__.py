"""Writes fixtures/parity: the values that Python MLX gives for every operation of oxmlx's safe API.

Run in this folder's parent: `python -m parity` (versions: requirements.txt). A case is one line of JSON, its inputs included.
"""

import importlib
from pathlib import Path

import mlx.core as mx

FAMILIES = [
    "elementwise",
    "reduce",
    "construct",
    "shape",
    "index",
    "matmul",
    "conv",
    "linalg",
    "fft",
    "random",
    "fast",
    "quantize",
]


def main():
    mx.set_default_device(mx.cpu)
    folder = Path(__file__).resolve().parents[2] / "fixtures" / "parity"
    folder.mkdir(exist_ok=True)
    for name in FAMILIES:
        family = importlib.import_module(f"parity.{name}").family
        print(f"{name}: {len(family.groups)} operations, {family.write(folder)} cases")


main()
