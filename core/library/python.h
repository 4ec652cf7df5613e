// Functions that the package python/cutelua calls by ctypes. They are not part
// of cutelua.h, because a package only uses the library of its own version.
#ifndef CUTE_LIBRARY_PYTHON_H
#define CUTE_LIBRARY_PYTHON_H

#include "base/dlpack.h"
#define CUTELUA_BUILD
#include "library/cutelua.h"

typedef void PyObject;

// cutelua_python_start takes the addresses of functions of Python's stable ABI,
// followed by those of Python objects. cutelua_python_names and
// cutelua_python_objects return the names of both, in this order.
CUTELUA_API const char *cutelua_python_names(void);
CUTELUA_API const char *cutelua_python_objects(void);
CUTELUA_API void cutelua_python_start(void *const *values);

// Calls the function or launches the kernel that `ref` identifies. `args` is a
// tuple, and `options` a dictionary or None. Returns a new reference, or NULL
// with an exception. `stream` is the CUDA stream for tensors whose Python
// library names none. The caller holds Python's global lock (GIL).
CUTELUA_API PyObject *cutelua_python_call(cutelua_state *s, cutelua_ref ref,
                                          PyObject *args, PyObject *options,
                                          unsigned flags, void *stream);

// Creates the class Callable, whose objects call a Lua function or kernel. The
// objects have the fields _state, number and _flags, which are the arguments s,
// ref and flags of cutelua_python_call. bytes: the size of a Python object
// without fields. from_spec: Python's function PyType_FromSpec.
CUTELUA_API PyObject *cutelua_python_class(int bytes,
                                           PyObject *(*from_spec)(void *));
// Sets the CUDA stream on which this thread's calls of Callable objects run;
// NULL: the default.
CUTELUA_API void cutelua_python_choose(void *stream);

// Calls a function with n tensors, without Python. Returns NULL, or the message
// of an error, which the caller frees. `stream` is the CUDA stream for tensors
// on a GPU.
char *python_run(cutelua_state *s, cutelua_ref ref,
                 DLManagedTensorVersioned *tensors, size_t n, void *stream);

// Returns a capsule with a managed DLPack tensor in the memory at `data`, which
// `owner` keeps alive. `extents` contains `rank` extents, then `rank` strides.
CUTELUA_API PyObject *cutelua_python_capsule(void *data, int rank,
                                             const int64_t *extents, int code,
                                             int bits, int device, int id,
                                             int readonly, PyObject *owner);
// Sets the CUDA stream of a tensor argument. The Python function `convert`
// calls this before it returns a description of the tensor.
CUTELUA_API void cutelua_python_stream(void *stream);
// Takes the managed tensor from a capsule, which then no longer owns it.
CUTELUA_API DLManagedTensorVersioned *cutelua_python_take(PyObject *capsule);
CUTELUA_API void cutelua_python_drop(DLManagedTensorVersioned *m);
// Returns a DLPack capsule for the memory of m, which `owner` keeps alive.
// `versioned` selects the versioned or the older form of the capsule.
CUTELUA_API PyObject *cutelua_python_share(DLManagedTensorVersioned *m,
                                           int versioned, PyObject *owner);

#endif
// SPDX-License-Identifier: MIT
