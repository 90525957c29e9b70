"""PyTorch reads oxmlx arrays and oxmlx reads PyTorch's, both without a copy.

Usage: torch_exchange.py LIBRARY [cpu|cuda]

Needs PyTorch, this folder's bridge.py, and LIBRARY with the libmlx it was linked with (or, for cuda, MLX's CUDA libmlx) on the loader's
path. Synchronisation is the script's: it calls torch.cuda.synchronize() before oxmlx reads, and oxmlx hands out available arrays only.
"""

import ctypes
import gc
import sys

import torch

import bridge

DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
CODE = bridge.CUDA if DEVICE == "cuda" else bridge.CPU
# What MLX can't compute with on a GPU, and what torch.from_dlpack does not know.
DTYPES = [name for name in bridge.DTYPES if DEVICE == "cpu" or name != "float64"]


def raw(tensor):
    tensor = tensor.detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def doubled(tensor):
    """PyTorch has no arithmetic for some unsigned types."""
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor + tensor
    return (tensor.to(torch.int64) * 2).to(tensor.dtype)


def sample(dtype, shape):
    values = torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(len(shape)))
    return (values % 2 == 0) if dtype == "bool" else values.to(getattr(torch, dtype))


def out():
    for dtype in DTYPES:
        for shape in ((3, 4), (2, 3, 5), (300,), ()):
            values = sample(dtype, shape)
            ours = bridge.new(raw(values), shape, dtype, CODE)
            if dtype != "bool":  # computed, so that it lies in the device's own memory
                ours, values = ours.double(), doubled(values)
            cases = [(ours, values)]
            if shape:
                backwards = values.permute(*reversed(range(values.ndim)))
                cases += [(ours.transpose(), backwards), (ours.tail(), values[1:])]
            for array, expected in cases:
                theirs = torch.from_dlpack(array)
                assert theirs.device.type == DEVICE, theirs.device
                assert theirs.dtype == expected.dtype and theirs.shape == expected.shape
                assert raw(theirs) == raw(expected), (dtype, shape)
                assert theirs.data_ptr() == array.data, (dtype, shape)


def out_lives_on_its_own():
    values = torch.arange(100000, dtype=torch.float32)
    theirs = torch.from_dlpack(bridge.new(raw(values), (100000,), "float32", CODE).double())
    gc.collect()
    for i in range(50):
        bridge.new(raw(torch.full((1000,), float(i))), (1000,), "float32", CODE).double()
    assert raw(theirs) == raw(values * 2)


def reading_by_the_host_moves_nothing():
    values = torch.arange(100000, dtype=torch.float32)
    ours = bridge.new(raw(values), (100000,), "float32", CODE).double()
    theirs = torch.from_dlpack(ours)
    before = theirs.data_ptr()
    assert ours.read(400000) == raw(values * 2)
    assert ours.data == before
    assert raw(theirs + 0) == raw(values * 2)


def back():
    for dtype in DTYPES:
        whole = sample(dtype, (6, 8)).to(DEVICE)
        for theirs in (whole, whole.T, whole[1:4, 2:], whole[:, 3], whole[2, 2]):
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            for asked in ({}, {"max_version": (1, 0)}):
                try:
                    ours, adopted = bridge.take(theirs, CODE, **asked)
                except TypeError:  # an older PyTorch knows no versions
                    continue
                assert adopted, (dtype, theirs.shape)
                assert ours.data == theirs.data_ptr(), (dtype, theirs.shape)
                assert ours.read(theirs.numel() * theirs.element_size()) == raw(theirs), (dtype, theirs.shape, asked)
    theirs = torch.arange(100000, dtype=torch.float32, device=DEVICE)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    twice = bridge.take(theirs, CODE)[0].double()
    assert raw(torch.from_dlpack(twice)) == raw(theirs * 2)
    assert raw(theirs) == raw(torch.arange(100000, dtype=torch.float32))


if __name__ == "__main__":
    for test in (out, out_lives_on_its_own, reading_by_the_host_moves_nothing, back):
        test()
        print(f"torch {torch.__version__} on {DEVICE}: {test.__name__} ok", flush=True)
