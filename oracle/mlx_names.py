"""Writes fixtures/mlx_names.txt: every public name of mlx.core, of its submodules and of its array type, one a line.

    pip install mlx==0.32.4 'mlx[cpu]==0.32.4'
    python oracle/mlx_names.py
"""

import inspect
import pathlib

import mlx.core as mx


def public(thing):
    return sorted(name for name in dir(thing) if not name.startswith("_"))


def main():
    assert mx.__version__ == "0.32.4", mx.__version__
    names = []
    for name in public(mx):
        inner = getattr(mx, name)
        if inspect.ismodule(inner):
            names += [f"{name}.{one}" for one in public(inner)]
        else:
            names.append(name)
    names += [f"array.{name}" for name in public(mx.array)]
    (pathlib.Path(__file__).parent.parent / "fixtures/mlx_names.txt").write_text("".join(f"{name}\n" for name in names))


main()
