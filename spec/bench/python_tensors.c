// A library of GPU tensors for spec/bench/python.py, with the exchange
// interface of DLPack 1.3. Its calls take as little time as possible. A tensor
// is an object of a subclass of Python's int; its value is a Block's address.
#include <stdlib.h>

#include "base/dlpack.h"

typedef struct PyObject PyObject;
extern unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
extern PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
extern PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
extern void Py_DecRef(PyObject *);

// A block of GPU memory, and the managed tensor that describes it.
typedef struct Block {
  DLManagedTensorVersioned m;
  int64_t shape, stride;
  int owners;
  struct Block *next;                 // next free block, while this one is free
  // tensor of another library that owns the memory, or NULL
  DLManagedTensorVersioned *foreign;
} Block;

enum { BYTES = 4096 };

static Block *unused;
static PyObject *class;

void bench_drop(Block *b) {
  if (--b->owners) return;
  if (b->foreign) b->foreign->deleter(b->foreign);
  b->foreign = NULL;
  b->next = unused;
  unused = b;
}

static void delete(DLManagedTensorVersioned *m) { bench_drop((Block *)m); }

Block *bench_new(int64_t n, int bits) {
  Block *b = unused;
  if (b) {
    unused = b->next;
  } else {
    char *data = aligned_alloc(256, BYTES);
    b = calloc(1, sizeof *b);
    if (!b || !data) abort();
    b->m = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR, DLPACK_MINOR}, .deleter = delete,
      .t = {.data = data, .device = {DL_CUDA, 0}, .ndim = 1,
            .shape = &b->shape, .strides = &b->stride}};
    b->stride = 1;
  }
  b->shape = n;
  b->m.t.dtype = (DLDataType){bits == 8 ? DL_UINT : DL_FLOAT, (uint8_t)bits, 1};
  b->owners = 1;
  return b;
}

static int allocate(DLTensor *like, DLManagedTensorVersioned **out, void *error,
                    void (*set_error)(void *, const char *, const char *)) {
  (void)error, (void)set_error;
  *out = &bench_new(like->shape[0], like->dtype.bits)->m;
  return 0;
}

static int from_object(void *object, DLManagedTensorVersioned **out) {
  Block *b = (Block *)(uintptr_t)PyLong_AsUnsignedLongLong(object);
  b->owners++;
  *out = &b->m;
  return 0;
}

static int to_object(DLManagedTensorVersioned *m, void **object) {
  Block *b = bench_new(m->t.shape[0], m->t.dtype.bits);
  b->foreign = m;
  PyObject *address = PyLong_FromUnsignedLongLong((uintptr_t)b);
  *object = PyObject_CallFunctionObjArgs(class, address, NULL);
  Py_DecRef(address);
  return 0;
}

static int view(void *object, DLTensor *out) {
  *out = ((Block *)(uintptr_t)PyLong_AsUnsignedLongLong(object))->m.t;
  return 0;
}

static int stream(int32_t device, int32_t id, void **out) {
  (void)device, (void)id;
  *out = NULL;
  return 0;
}

static struct {
  struct { uint32_t major, minor; } version;
  void *previous;
  int (*allocate)(DLTensor *, DLManagedTensorVersioned **, void *,
                  void (*)(void *, const char *, const char *));
  int (*from_object)(void *, DLManagedTensorVersioned **);
  int (*to_object)(DLManagedTensorVersioned *, void **);
  int (*view)(void *, DLTensor *);
  int (*stream)(int32_t, int32_t, void **);
} interface = {{DLPACK_MAJOR, DLPACK_MINOR}, NULL, allocate, from_object,
               to_object, view, stream};

// Returns the exchange interface for tensors of class c.
void *bench_interface(PyObject *c) {
  class = c;
  return &interface;
}
// SPDX-License-Identifier: MIT
