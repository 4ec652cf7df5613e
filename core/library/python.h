// Functions that the package python/cutelua calls by ctypes. They are not part
// of cutelua.h: a package uses only the library of the same version.
#ifndef CUTE_LIBRARY_PYTHON_H
#define CUTE_LIBRARY_PYTHON_H

#include "base/dlpack.h"
#define CUTELUA_BUILD
#include "library/cutelua.h"

typedef void PyObject;

// cutelua_python_start takes the addresses of functions of Python's stable
// interface, then of Python objects. The other two functions return their
// names, in the same order.
CUTELUA_API const char *cutelua_python_names(void);
CUTELUA_API const char *cutelua_python_objects(void);
CUTELUA_API void cutelua_python_start(void *const *values);

// Calls the function or launches the kernel that `ref` identifies, with a tuple
// of arguments and a dictionary of options, or None. Returns a new reference,
// or NULL with an exception. `stream` is the CUDA stream for tensors whose
// Python library names none. The caller holds Python's lock.
CUTELUA_API PyObject *cutelua_python_call(cutelua_state *s, cutelua_ref ref,
                                          PyObject *args, PyObject *options,
                                          unsigned flags, void *stream);

// Creates the class Callable, whose objects call a Lua function or kernel. The
// objects have the fields _state, number and _flags, which are arguments of
// cutelua_python_call. bytes: the size of an object of Python without fields.
// from_spec: Python's function PyType_FromSpec.
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

// Returns a capsule with a managed tensor of DLPack on the memory at `data`,
// which `owner` keeps alive. `extents` are `rank` extents, then strides.
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
// Returns a capsule of either form (versioned or not) with the memory of m,
// which `owner` keeps alive.
CUTELUA_API PyObject *cutelua_python_share(DLManagedTensorVersioned *m,
                                           int versioned, PyObject *owner);

#endif
// SPDX-License-Identifier: MIT
