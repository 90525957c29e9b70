"""Writes fixtures/prompt_caches: caches as mlx-lm saves them, whose rows hold their own position plus one.

    python oracle/make_prompt_caches.py fixtures/prompt_caches     (versions in oracle/requirements.txt)
    python oracle/make_prompt_caches.py --check FILE...            (mlx-lm loads files of oxmlx and goes on with them)
"""

import importlib.util
import sys
import types
from pathlib import Path

import mlx.core as mx

# The package as its folder alone: its caches need nothing but MLX, what it imports at its start needs much more.
package = types.ModuleType("mlx_lm")
package.__path__ = importlib.util.find_spec("mlx_lm").submodule_search_locations
sys.modules["mlx_lm"] = package
from mlx_lm.models.cache import (
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
    load_prompt_cache,
    save_prompt_cache,
)

WIDTH = 32


def rows(first, count):
    return mx.broadcast_to(mx.arange(first + 1, first + count + 1, dtype=mx.float32)[None, None, :, None], (1, 1, count, WIDTH))


def fed(cache, pieces):
    at = 0
    for piece in pieces:
        if hasattr(cache, "maybe_trim_front"):
            cache.maybe_trim_front()
        cache.update_and_fetch(rows(at, piece), rows(at, piece))
        at += piece
    return cache


CACHES = {
    "plain": lambda: fed(KVCache(), [5, 1, 1]),
    "quantized": lambda: fed(QuantizedKVCache(group_size=32, bits=8), [5, 1, 1]),
    "rotating_short": lambda: fed(RotatingKVCache(8, keep=2), [5, 1]),
    "rotating_prefilled": lambda: fed(RotatingKVCache(8, keep=2), [21]),
    "rotating_decoded": lambda: fed(RotatingKVCache(8, keep=2), [5] + [1] * 16),
    "chunked": lambda: fed(ChunkedKVCache(4), [6, 5, 1]),
}


def check(path):
    """The next token's row must come last, and the cache must hold a window of the rows before it."""
    caches = load_prompt_cache(path)
    assert caches, f"{path}: no caches"
    for cache in caches:
        at = cache.offset
        keys, _ = cache.update_and_fetch(rows(at, 1), rows(at, 1))
        if isinstance(cache, QuantizedKVCache):
            keys = mx.dequantize(*keys, group_size=cache.group_size, bits=cache.bits)
        held = sorted(round(x) - 1 for x in keys[0, 0, :, 0].tolist())
        expected = list(range(at + 1))
        if isinstance(cache, RotatingKVCache) and at >= cache.max_size:
            expected = expected[: cache.keep] + expected[at + 1 - (cache.max_size - cache.keep) :]
        if isinstance(cache, ChunkedKVCache):
            expected = expected[cache.start_position :]
        assert held == expected, (path, type(cache).__name__, held, expected)
        print(path, type(cache).__name__, held)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        for path in sys.argv[2:]:
            check(path)
    else:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in CACHES.items():
            save_prompt_cache(str(folder / f"{name}.safetensors"), [make(), make()], {"note": "by mlx-lm"})
