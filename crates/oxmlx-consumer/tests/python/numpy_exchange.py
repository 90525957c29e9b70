"""NumPy reads oxmlx arrays and oxmlx reads NumPy's, both without a copy. Usage: numpy_exchange.py LIBRARY"""

import gc
import sys
import weakref

import numpy as np

import bridge

rng = np.random.default_rng(0)


def sample(dtype, shape):
    raw = rng.integers(0, 256, size=shape + (np.dtype(dtype).itemsize,), dtype=np.uint8)
    return raw.view(dtype).reshape(shape) if dtype != "bool" else raw[..., 0] > 127


def refuses_to_write(array):
    assert not array.flags.writeable
    try:
        array[...] = 0
    except ValueError:
        return
    raise AssertionError("NumPy wrote into an oxmlx array")


def out():
    for dtype in bridge.DTYPES:
        if dtype == "bfloat16":  # NumPy has none
            continue
        for shape in ((3, 4), (2, 3, 5), (7,), ()):
            values = sample(dtype, shape)
            ours = bridge.new(values.tobytes(), shape, dtype)
            cases = [(ours, values)]
            if shape:
                cases += [(ours.transpose(), values.T), (ours.tail(), values[1:]), (ours.tail().transpose(), values[1:].T)]
            for array, expected in cases:
                theirs = np.from_dlpack(array)
                assert theirs.dtype == expected.dtype and theirs.shape == expected.shape
                assert theirs.tobytes() == expected.tobytes(), (dtype, shape)
                assert theirs.__array_interface__["data"][0] == array.data
                refuses_to_write(theirs)
    empty = np.from_dlpack(bridge.new(None, (0, 3), "float32"))
    assert empty.shape == (0, 3) and empty.dtype == np.float32


def out_lives_on_its_own():
    values = np.arange(10000, dtype=np.float32)
    theirs = np.from_dlpack(bridge.new(values.tobytes(), values.shape, "float32"))
    gc.collect()
    for i in range(200):
        bridge.new(np.full(10000, i, dtype=np.float32).tobytes(), values.shape, "float32").double()
    assert (theirs == values).all()


def legacy():
    ours = bridge.new(np.arange(3, dtype=np.int32).tobytes(), (3,), "int32")
    try:
        ours.as_legacy(accept_writable=False)
    except bridge.Failed as error:
        assert "read-only" in str(error), error
    else:
        raise AssertionError("a legacy tensor was made without asking")
    ours.legacy = True
    assert (np.from_dlpack(ours) == [0, 1, 2]).all()


def back():
    for dtype in bridge.DTYPES:
        if dtype == "bfloat16":
            continue
        whole = sample(dtype, (6, 8))
        frozen = whole.copy()
        frozen.flags.writeable = False
        for theirs in (whole, whole.T, whole[1:4, 2:], whole[:, 3], whole[2, 2:3].reshape(()), frozen):
            ours, adopted = bridge.take(theirs, max_version=(1, 0))
            assert adopted, (dtype, theirs.shape, theirs.strides)
            assert ours.data == theirs.__array_interface__["data"][0]
            assert ours.read(theirs.nbytes) == theirs.tobytes()
        ours, adopted = bridge.take(whole[:, ::-1], max_version=(1, 0))
        assert not adopted and ours.read(whole.nbytes) == whole[:, ::-1].tobytes()
        ours, adopted = bridge.take(whole)
        assert adopted and ours.read(whole.nbytes) == whole.tobytes()
    doubled = bridge.take(np.arange(5, dtype=np.float32), max_version=(1, 0))[0].double()
    assert (np.from_dlpack(doubled) == [0, 2, 4, 6, 8]).all()


def back_is_given_back():
    class Watched(np.ndarray):
        pass

    theirs = np.arange(100.0).view(Watched)
    gone = weakref.ref(theirs)
    ours, adopted = bridge.take(theirs, max_version=(1, 0))
    assert adopted
    del theirs
    gc.collect()
    assert gone() is not None
    doubled = ours.double()
    del ours
    gc.collect()
    assert np.from_dlpack(doubled)[99] == 198.0
    assert gone() is None


if __name__ == "__main__":
    for test in (out, out_lives_on_its_own, legacy, back, back_is_given_back):
        test()
        print(f"numpy {np.__version__}: {test.__name__} ok", flush=True)
    sys.exit(0)
