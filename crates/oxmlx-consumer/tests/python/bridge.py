"""The C library of this crate from Python, by ctypes alone: arrays, and DLPack's capsules out and in."""

import ctypes
import sys

# MLX's dtypes in their order, by the names that numpy and torch share.
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "bfloat16", "complex64",
]
CPU, CUDA = 1, 2

_lib = ctypes.CDLL(sys.argv[1])
_pointer, _py = ctypes.c_void_p, ctypes.pythonapi
_lib.oxc_last_error.restype = ctypes.c_char_p
_lib.oxc_new.argtypes = [_pointer, _pointer, ctypes.c_size_t, ctypes.c_int]
_lib.oxc_data.argtypes, _lib.oxc_data.restype = [_pointer], ctypes.c_size_t
_lib.oxc_read.argtypes = [_pointer, _pointer]
_lib.oxc_free.argtypes, _lib.oxc_free.restype = [_pointer], None
_lib.oxc_export_legacy.argtypes = [_pointer, ctypes.c_bool]
_lib.oxc_import.argtypes = _lib.oxc_import_legacy.argtypes = [_pointer, ctypes.POINTER(ctypes.c_bool)]
for _name in ("oxc_transpose", "oxc_tail", "oxc_double", "oxc_export"):
    getattr(_lib, _name).argtypes = [_pointer]
for _name in ("new", "transpose", "tail", "double", "export", "export_legacy", "import", "import_legacy"):
    getattr(_lib, "oxc_" + _name).restype = _pointer
_py.PyCapsule_New.argtypes, _py.PyCapsule_New.restype = [_pointer, ctypes.c_char_p, _pointer], ctypes.py_object
_py.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_py.PyCapsule_GetPointer.argtypes, _py.PyCapsule_GetPointer.restype = [ctypes.py_object, ctypes.c_char_p], _pointer
_py.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
# A capsule keeps a pointer to its name.
_USED = {VERSIONED: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}


class Failed(Exception):
    pass


def _checked(value):
    if not value:
        raise Failed(_lib.oxc_last_error().decode())
    return value


def gpu_count():
    return _lib.oxc_gpu_count()


class OxArray:
    """An oxmlx array that NumPy and PyTorch take by `from_dlpack`."""

    def __init__(self, handle, device=CPU, legacy=False):
        self.handle, self.device, self.legacy = _checked(handle), device, legacy

    def __del__(self):
        _lib.oxc_free(getattr(self, "handle", None))

    def _derived(self, name):
        return OxArray(getattr(_lib, "oxc_" + name)(self.handle), self.device)

    def transpose(self):
        return self._derived("transpose")

    def tail(self):
        return self._derived("tail")

    def double(self):
        return self._derived("double")

    @property
    def data(self):
        return _checked(_lib.oxc_data(self.handle))

    def read(self, nbytes):
        out = ctypes.create_string_buffer(max(nbytes, 1))
        if _lib.oxc_read(self.handle, out) != 0:
            raise Failed(_lib.oxc_last_error().decode())
        return out.raw[:nbytes]

    def as_legacy(self, accept_writable=True):
        """The legacy capsule, made at once: refused unless a writable tensor is accepted."""
        return _py.PyCapsule_New(_checked(_lib.oxc_export_legacy(self.handle, accept_writable)), LEGACY, None)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.legacy or max_version is None:
            return self.as_legacy()
        return _py.PyCapsule_New(_checked(_lib.oxc_export(self.handle)), VERSIONED, None)

    def __dlpack_device__(self):
        return self.device, 0


def new(raw, shape, dtype, device=CPU):
    dims = (ctypes.c_int32 * max(len(shape), 1))(*shape)
    return OxArray(_lib.oxc_new(raw, dims, len(shape), DTYPES.index(dtype)), device)


def take(producer, device=CPU, **asked):
    """An oxmlx array over what the producer exports, and whether it was not copied."""
    capsule = producer.__dlpack__(**asked)
    adopted = ctypes.c_bool()
    for name, take_over in ((VERSIONED, _lib.oxc_import), (LEGACY, _lib.oxc_import_legacy)):
        if _py.PyCapsule_IsValid(capsule, name):
            pointer = _py.PyCapsule_GetPointer(capsule, name)
            _py.PyCapsule_SetName(capsule, _USED[name])
            return OxArray(take_over(pointer, ctypes.byref(adopted)), device), adopted.value
    raise Failed("no capsule of DLPack")
