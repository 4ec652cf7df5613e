// Calls from Python: converts arguments and results between Python's objects
// and Lua's values, and passes tensors by DLPack without a copy. The package
// python/cutelua loads the library by ctypes. It passes the addresses of the
// functions of Python's stable ABI that this file uses.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/dlpack.h"
#include "bind/dlpacklib.h"
#include "bind/gpulib.h"
#include "bind/tensorlib.h"
#include "library/python.h"
#include "library/recycle.h"
#include "library/state.h"

// Functions of Python's stable ABI: F(name, type of the result, types of the
// parameters).
#define PYTHON(F) \
  F(Py_IncRef, void, (PyObject *)) \
  F(Py_DecRef, void, (PyObject *)) \
  F(PyTuple_Size, ptrdiff_t, (PyObject *)) \
  F(PyTuple_GetItem, PyObject *, (PyObject *, ptrdiff_t)) \
  F(PyTuple_New, PyObject *, (ptrdiff_t)) \
  F(PyTuple_SetItem, int, (PyObject *, ptrdiff_t, PyObject *)) \
  F(PyList_Size, ptrdiff_t, (PyObject *)) \
  F(PyList_GetItem, PyObject *, (PyObject *, ptrdiff_t)) \
  F(PyList_New, PyObject *, (ptrdiff_t)) \
  F(PyList_Append, int, (PyObject *, PyObject *)) \
  F(PyDict_Size, ptrdiff_t, (PyObject *)) \
  F(PyDict_New, PyObject *, (void)) \
  F(PyDict_SetItem, int, (PyObject *, PyObject *, PyObject *)) \
  F(PyDict_Next, int, (PyObject *, ptrdiff_t *, PyObject **, PyObject **)) \
  F(PyLong_AsLongLong, long long, (PyObject *)) \
  F(PyLong_AsUnsignedLongLong, unsigned long long, (PyObject *)) \
  F(PyLong_FromLongLong, PyObject *, (long long)) \
  F(PyFloat_AsDouble, double, (PyObject *)) \
  F(PyFloat_FromDouble, PyObject *, (double)) \
  F(PyBool_FromLong, PyObject *, (long)) \
  F(PyUnicode_AsUTF8AndSize, const char *, (PyObject *, ptrdiff_t *)) \
  F(PyUnicode_DecodeUTF8, PyObject *, (const char *, ptrdiff_t, \
                                       const char *)) \
  F(PyObject_Type, PyObject *, (PyObject *)) \
  F(PyObject_GetAttr, PyObject *, (PyObject *, PyObject *)) \
  F(PyObject_HasAttrString, int, (PyObject *, const char *)) \
  F(PyObject_CallObject, PyObject *, (PyObject *, PyObject *)) \
  F(PyObject_IsTrue, int, (PyObject *)) \
  F(PyCapsule_New, PyObject *, (void *, const char *, \
                                void (*)(PyObject *))) \
  F(PyCapsule_GetPointer, void *, (PyObject *, const char *)) \
  F(PyCapsule_IsValid, int, (PyObject *, const char *)) \
  F(PyCapsule_SetName, int, (PyObject *, const char *)) \
  F(PyErr_Occurred, PyObject *, (void)) \
  F(PyErr_Clear, void, (void)) \
  F(PyErr_ExceptionMatches, int, (PyObject *)) \
  F(PyErr_CheckSignals, int, (void)) \
  F(PyErr_Fetch, void, (PyObject **, PyObject **, PyObject **)) \
  F(PyErr_Restore, void, (PyObject *, PyObject *, PyObject *)) \
  F(PyErr_SetString, void, (PyObject *, const char *)) \
  F(PyEval_SaveThread, void *, (void)) \
  F(PyEval_RestoreThread, void, (void *)) \
  F(PyGILState_Ensure, int, (void)) \
  F(PyGILState_Release, void, (int)) \
  F(Py_IsInitialized, int, (void))

// Objects of Python: types, None, and functions of the package.
#define OBJECTS(F) \
  F(bool_type) F(int_type) F(float_type) F(str_type) F(tuple_type) \
  F(list_type) F(dict_type) F(none) F(type_error) \
  F(requires_grad)  /* the name "requires_grad" */ \
  F(failed)   /* f(status, state's address): raises a call's error */ \
  F(ref_type)  /* class of references to Lua values, a subclass of Callable; \
                  made from the number and the state's address */ \
  F(classify)  /* f(type): address of its DLPackExchangeAPI, or 0 */ \
  F(convert)  /* f(object): converts it to a capsule, or to a simpler value */ \
  F(wrap)     /* f(capsule, like): makes a tensor of the kind of `like` */ \
  F(check_grad)  /* f(object): raises an error if gradients are recorded */ \
  F(bind)  /* f(callable without a state): sets its fields */ \
  F(gradient_error)  /* class of the error that check_grad raises */ \
  F(differentiate)  /* f(operation, arguments, options): calls the operation, \
                       and records its gradients */

static struct {
#define FIELD(name, result, args) result (*name) args;
  PYTHON(FIELD)
#undef FIELD
#define FIELD(name) PyObject *name;
  OBJECTS(FIELD)
#undef FIELD
} py;

const char *cutelua_python_names(void) {
#define NAME(name, result, args) #name " "
  return PYTHON(NAME);
#undef NAME
}

const char *cutelua_python_objects(void) {
#define NAME(name) #name " "
  return OBJECTS(NAME);
#undef NAME
}

void cutelua_python_start(void *const *values) {
  memcpy(&py, values, sizeof py);
}

// ---- calls of Python's functions ----

// Calls f with the arguments in `list`, up to the first NULL.
static PyObject *call_with(PyObject *f, PyObject *const list[3]) {
  int n = 0;
  while (n < 3 && list[n]) n++;
  PyObject *args = py.PyTuple_New(n);
  if (!args) return NULL;
  for (int i = 0; i < n; i++) {
    py.Py_IncRef(list[i]);
    py.PyTuple_SetItem(args, i, list[i]);
  }
  PyObject *out = py.PyObject_CallObject(f, args);
  py.Py_DecRef(args);
  return out;
}

// Calls f(a), or f(a, b) if b is not NULL.
static PyObject *call(PyObject *f, PyObject *a, PyObject *b) {
  return call_with(f, (PyObject *const[]){a, b, NULL});
}

// ---- the exchange interface of DLPack 1.3 ----

typedef struct Exchange {
  struct { uint32_t major, minor; } version;
  void *previous;
  int (*allocate)(DLTensor *like, DLManagedTensorVersioned **out, void *error,
                  void (*set_error)(void *error, const char *kind,
                                    const char *message));
  int (*from_object)(void *object, DLManagedTensorVersioned **out);
  int (*to_object)(DLManagedTensorVersioned *t, void **object);
  int (*view)(void *object, DLTensor *out);
  int (*stream)(int32_t device, int32_t id, void **out);
} Exchange;

// For each Python tensor class seen so far: its DLPack exchange interface
// (NULL: none), and whether its tensors have an attribute requires_grad.
static struct { PyObject *type; const Exchange *api; bool grad; } known[64];
static int nknown;

static const Exchange *exchange_of(PyObject *type, bool *grad) {
  for (int i = 0; i < nknown; i++) {
    if (known[i].type != type) continue;
    *grad = known[i].grad;
    return known[i].api;
  }
  *grad = py.PyObject_HasAttrString(type, "requires_grad");
  PyObject *got = call(py.classify, type, NULL);
  if (!got) return NULL;
  const Exchange *api =
    (const Exchange *)(uintptr_t)py.PyLong_AsUnsignedLongLong(got);
  py.Py_DecRef(got);
  if (nknown < (int)(sizeof known / sizeof *known)) {
    py.Py_IncRef(type);
    known[nknown].type = type;
    known[nknown].grad = *grad;
    known[nknown++].api = api;
  }
  return api;
}

// ---- a call ----

// A step that pushes an argument, or a part of an argument, onto Lua's stack.
typedef enum StepKind {
  STEP_NIL, STEP_BOOL, STEP_INT, STEP_FLOAT, STEP_TEXT,
  STEP_TENSOR, STEP_REF, STEP_TABLE, STEP_FIELD, STEP_ITEM
} StepKind;

typedef struct Step {
  StepKind op;
  size_t size;
  PyObject *owner;  // object that contains the text or the reference, or NULL
  union {
    int64_t i;
    double x;
    const char *text;
    void *managed;
  } as;
} Step;

// A result: a value, or the head of a list whose `size` elements are the
// following results.
typedef enum Kind { RES_NIL, RES_BOOL, RES_INT, RES_FLOAT, RES_TEXT,
                    RES_TENSOR, RES_LIST, RES_NAMED, RES_REF } Kind;
typedef struct Res {
  Kind kind;
  size_t size;
  union {
    int64_t i;
    double x;
    char *text;
    DLManagedTensorVersioned *tensor;
  } as;
} Res;

enum { MOST_DEPTH = 16, HERE = 48 };

typedef struct PyCall {
  cutelua_state *state;
  cutelua_ref ref;
  unsigned flags;
  Step few[HERE], *step;
  size_t nstep, maxstep;
  Res some[HERE], *res;
  size_t nres, maxres;
  int nargs;  // number of values that the steps push onto the stack
  const Exchange *api;  // exchange interface of the first tensor that has one
  PyObject *like;  // first tensor that has no exchange interface, or NULL
  // whether an argument is a tensor on the host (host), or on a GPU (gpu)
  bool host, gpu;
  // recycles: whether this call may use recycle_push (recycle.h). recycled:
  // whether it did.
  bool recycles, recycled;
  bool refs;                // whether some result is a reference
  int device;               // number of the GPU
  void *stream;
} PyCall;

// Flags of cutelua_python_call. NO_GRAD_CHECK: skip check_grad. OURS: the
// function belongs to cutelua. After a call that returns no reference to a Lua
// value, such a function keeps no reference to the call's tensors.
enum { NO_GRAD_CHECK = 1, OURS = 2 };

static bool grow(void **p, void *here, size_t *max, size_t need, size_t size) {
  if (need <= *max) return true;
  size_t n = *max * 2;
  void *q = *p == here ? malloc(n * size) : realloc(*p, n * size);
  if (!q) return false;
  if (*p == here) memcpy(q, here, *max * size);
  *p = q;
  *max = n;
  return true;
}

static Step *step(PyCall *c, StepKind op) {
  if (!grow((void **)&c->step, c->few, &c->maxstep, c->nstep + 1,
            sizeof *c->step))
    return NULL;
  Step *s = &c->step[c->nstep++];
  *s = (Step){.op = op};
  return s;
}

// Keeps the object of a step alive until the end of the call. Otherwise another
// thread, or code of an argument's class, could remove the object from a list
// and destroy it.
static void own(Step *s, PyObject *owner) {
  py.Py_IncRef(owner);
  s->owner = owner;
}

static bool fail(const char *text) {
  if (!py.PyErr_Occurred()) py.PyErr_SetString(py.type_error, text);
  return false;
}

// ---- objects that can be called ----

// The fields of an object of the Python class Callable. They follow the fields
// that every Python object has.
typedef struct Callable {
  cutelua_state *state;  // NULL: py.bind sets the fields before the first call
  cutelua_ref number;
  uint64_t flags;        // argument `flags` of cutelua_python_call
} Callable;

static ptrdiff_t head;  // bytes of the fields that every Python object has

static Callable *callable_of(PyObject *x) {
  return (Callable *)(void *)((char *)x + head);
}

// ---- arguments ----

static bool read_value(PyCall *c, PyObject *x, int depth);

static void place(PyCall *c, const DLTensor *t) {
  if (t->device.kind == DL_CUDA || t->device.kind == DL_CUDA_MANAGED) {
    if (!c->gpu) c->device = t->device.id;
    c->gpu = true;
  } else {
    c->host = true;
  }
}

// Raises an error, and returns false, if tensor x records gradients.
static bool check_grad(PyObject *x) {
  PyObject *grad = py.PyObject_GetAttr(x, py.requires_grad);
  if (!grad) return false;
  bool on = py.PyObject_IsTrue(grad) == 1;
  py.Py_DecRef(grad);
  if (!on) return true;
  PyObject *ok = call(py.check_grad, x, NULL);
  if (ok) py.Py_DecRef(ok);
  return ok != NULL;
}

static bool read_tensor(PyCall *c, PyObject *x, const Exchange *api) {
  DLManagedTensorVersioned *m = NULL;
  if (api->from_object(x, &m) != 0 || !m)
    return fail("the tensor cannot be exported by DLPack");
  Step *s = step(c, STEP_TENSOR);
  if (!s) {
    m->deleter(m);
    return fail("out of memory");
  }
  s->as.managed = m;
  s->size = 1;
  if (!c->api) c->api = api;
  place(c, &m->t);
  return true;
}

static bool read_capsule(PyCall *c, PyObject *x) {
  bool versioned = py.PyCapsule_IsValid(x, "dltensor_versioned");
  if (!versioned && !py.PyCapsule_IsValid(x, "dltensor")) return false;
  void *m = py.PyCapsule_GetPointer(x, versioned ? "dltensor_versioned"
                                                 : "dltensor");
  Step *s = m ? step(c, STEP_TENSOR) : NULL;
  if (!s) return fail("out of memory");
  py.PyCapsule_SetName(x, versioned ? "used_dltensor_versioned"
                                    : "used_dltensor");
  s->as.managed = m;
  s->size = versioned;
  place(c, versioned ? &((DLManagedTensorVersioned *)m)->t
                     : &((DLManagedTensor *)m)->t);
  return true;
}

static bool read_int(PyCall *c, PyObject *x) {
  long long i = py.PyLong_AsLongLong(x);
  if (i == -1 && py.PyErr_Occurred()) {
    py.PyErr_Clear();
    i = (long long)py.PyLong_AsUnsignedLongLong(x);
    if (i == -1 && py.PyErr_Occurred()) {
      py.PyErr_Clear();
      return fail("an integer does not fit in 64 bits");
    }
  }
  Step *s = step(c, STEP_INT);
  if (!s) return fail("out of memory");
  s->as.i = i;
  return true;
}

static bool read_text(PyCall *c, PyObject *x, StepKind op) {
  ptrdiff_t n;
  const char *text = py.PyUnicode_AsUTF8AndSize(x, &n);
  if (!text) {
    py.PyErr_Clear();
    return fail(op == STEP_FIELD ? "a key of a dictionary is not a string"
                                 : "a string is not valid Unicode");
  }
  Step *s = step(c, op);
  if (!s) return fail("out of memory");
  s->as.text = text;
  s->size = (size_t)n;
  own(s, x);
  return true;
}

// Reads an item of a list or dictionary. Keeps a reference to the item, because
// code of the item's class may remove it from the container.
static bool read_held(PyCall *c, PyObject *item, int depth) {
  py.Py_IncRef(item);
  bool ok = read_value(c, item, depth);
  py.Py_DecRef(item);
  return ok;
}

static bool read_items(PyCall *c, PyObject *x, bool list, int depth) {
  ptrdiff_t n = list ? py.PyList_Size(x) : py.PyTuple_Size(x);
  if (!step(c, STEP_TABLE)) return fail("out of memory");
  for (ptrdiff_t i = 0; i < n; i++) {
    PyObject *item = list ? py.PyList_GetItem(x, i) : py.PyTuple_GetItem(x, i);
    if (!item || !read_held(c, item, depth)) return false;
    Step *s = step(c, STEP_ITEM);
    if (!s) return fail("out of memory");
    s->as.i = i + 1;
  }
  return true;
}

static bool read_dict(PyCall *c, PyObject *x, int depth) {
  PyObject *key, *value;
  ptrdiff_t at = 0;
  if (!step(c, STEP_TABLE)) return fail("out of memory");
  while (py.PyDict_Next(x, &at, &key, &value)) {
    if (value == py.none) continue;
    py.Py_IncRef(key);
    bool ok = read_held(c, value, depth) && read_text(c, key, STEP_FIELD);
    py.Py_DecRef(key);
    if (!ok) return false;
  }
  return true;
}

static bool read_number(PyCall *c, PyObject *x, PyObject *type) {
  if (type == py.int_type) return read_int(c, x);
  Step *s = step(c, type == py.float_type ? STEP_FLOAT : STEP_BOOL);
  if (!s) return fail("out of memory");
  if (type == py.float_type) s->as.x = py.PyFloat_AsDouble(x);
  else s->as.i = py.PyObject_IsTrue(x);
  return true;
}

// Reads an object of a class that is not built into Python.
static bool read_other(PyCall *c, PyObject *x, int depth) {
  PyObject *simple = call(py.convert, x, NULL);
  if (!simple) return false;
  bool ok = read_capsule(c, simple);
  if (ok && !c->like) {
    py.Py_IncRef(x);
    c->like = x;
  }
  if (!ok && !py.PyErr_Occurred()) ok = read_value(c, simple, depth + 8);
  py.Py_DecRef(simple);
  return ok;
}

static bool read_ref(PyCall *c, PyObject *x) {
  if (callable_of(x)->state != c->state)
    return fail("an argument is a function of another cutelua.State");
  Step *s = step(c, STEP_REF);
  if (!s) return fail("out of memory");
  s->as.i = (int64_t)callable_of(x)->number;
  own(s, x);
  return true;
}

static bool read_value(PyCall *c, PyObject *x, int depth) {
  if (depth > MOST_DEPTH) return fail("an argument is nested too deep");
  if (x == py.none) return step(c, STEP_NIL) || fail("out of memory");
  PyObject *type = py.PyObject_Type(x);
  // x keeps its type alive, so release the reference to the type
  py.Py_DecRef(type);
  if (type == py.int_type || type == py.float_type || type == py.bool_type)
    return read_number(c, x, type);
  if (type == py.str_type) return read_text(c, x, STEP_TEXT);
  if (type == py.tuple_type || type == py.list_type)
    return read_items(c, x, type == py.list_type, depth + 1);
  if (type == py.dict_type) return read_dict(c, x, depth + 1);
  if (type == py.ref_type) return read_ref(c, x);
  bool grad = false;
  const Exchange *api = exchange_of(type, &grad);
  if (!api) return !py.PyErr_Occurred() && read_other(c, x, depth);
  if (grad && !(c->flags & NO_GRAD_CHECK) && !check_grad(x)) return false;
  return read_tensor(c, x, api);
}

static bool read_args(PyCall *c, PyObject *args, PyObject *options) {
  ptrdiff_t n = py.PyTuple_Size(args);
  for (ptrdiff_t i = 0; i < n; i++)
    if (!read_value(c, py.PyTuple_GetItem(args, i), 0)) return false;
  c->nargs = (int)n;
  if (options == py.none || !py.PyDict_Size(options)) return true;
  c->nargs++;
  return read_dict(c, options, 1);
}

static void drop_step(Step *s) {
  if (s->owner) py.Py_DecRef(s->owner);
  if (s->op != STEP_TENSOR || !s->as.managed) return;
  DLManagedTensor *old = s->as.managed;
  if (s->size) dlpacklib_release(s->as.managed, 0);
  else if (old->deleter) old->deleter(old);
  s->as.managed = NULL;
}

// ---- the call in Lua ----

// Executes a step. Also stores the buffers of imported tensors in the list at
// stack index `opened`.
static void run_step(lua_State *L, PyCall *c, Step *s, int opened) {
  switch (s->op) {
    case STEP_NIL: lua_pushnil(L); return;
    case STEP_BOOL: lua_pushboolean(L, (int)s->as.i); return;
    case STEP_INT: lua_pushinteger(L, s->as.i); return;
    case STEP_FLOAT: lua_pushnumber(L, s->as.x); return;
    case STEP_TEXT: lua_pushlstring(L, s->as.text, s->size); return;
    case STEP_REF: state_push(c->state, L, (cutelua_ref)s->as.i); return;
    case STEP_TABLE: lua_newtable(L); return;
    case STEP_ITEM: lua_rawseti(L, -2, s->as.i); return;
    case STEP_FIELD:
      lua_pushlstring(L, s->as.text, s->size);
      lua_insert(L, -2);
      lua_rawset(L, -3);
      return;
    case STEP_TENSOR:
      if (c->recycles && s->size && recycle_push(L, s->as.managed)) {
        s->as.managed = NULL;
        c->recycled = true;
        return;
      }
      dlpacklib_import(L, s->as.managed, s->size != 0);
      s->as.managed = NULL;  // The Lua tensor now owns the managed tensor.
      lua_getiuservalue(L, -1, 1);
      lua_rawseti(L, opened, (lua_Integer)lua_rawlen(L, opened) + 1);
      return;
  }
}

// Pushes a stream object for the driver's stream `handle` on the GPU at stack
// index `gpu`, or nil for the default stream. Caches these objects, because
// closing one makes the host wait.
static void push_stream(lua_State *L, int gpu, void *handle) {
  // The driver's handles 0 and 1 both denote the default stream.
  if ((uintptr_t)handle <= 1) {
    lua_pushnil(L);
    return;
  }
  // The address of an element of `key` is the registry key of a GPU's table of
  // streams.
  static const char key[64];
  int ordinal = ((Gpu *)lua_touserdata(L, gpu))->ordinal;
  const char *k = &key[ordinal & 63];
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, k) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, k);
  }
  if (lua_rawgetp(L, -1, handle) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getfield(L, gpu, "foreign_stream");
    lua_pushvalue(L, gpu);
    lua_pushlightuserdata(L, handle);
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2))
      face_error(L, ERR_LIMIT, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, handle);
  }
  lua_replace(L, -2);
}

static void keep_error(void *error, const char *kind, const char *message) {
  (void)kind;
  why(error, ERR_MEMORY, "%s", message);
}

// Allocates GPU memory by the allocator of the Python library (such as PyTorch)
// that made the call's tensors.
static bool allocate(void *ud, int ordinal, size_t bytes, uint64_t *ptr,
                     Shared **shared, Why *w) {
  const Exchange *api = ud;
  int64_t shape = (int64_t)bytes;
  DLTensor like = {.device = {DL_CUDA, ordinal}, .ndim = 1,
                   .dtype = {DL_UINT, 8, 1}, .shape = &shape};
  DLManagedTensorVersioned *m = NULL;
  why(w, ERR_MEMORY, "the allocator has no %zu bytes", bytes);
  if (api->allocate(&like, &m, w, keep_error) != 0 || !m) return false;
  *shared = shared_new(dlpacklib_release, m, 0);
  if (!*shared) {
    dlpacklib_release(m, 0);
    return why(w, ERR_MEMORY, "out of memory");
  }
  *ptr = (uint64_t)(uintptr_t)m->t.data + m->t.byte_offset;
  return true;
}

static Res *result(lua_State *L, PyCall *c, Kind kind) {
  if (!grow((void **)&c->res, c->some, &c->maxres, c->nres + 1,
            sizeof *c->res))
    face_error(L, ERR_MEMORY, "out of memory");
  Res *r = &c->res[c->nres++];
  *r = (Res){.kind = kind};
  return r;
}

static void write_text(lua_State *L, PyCall *c, int idx) {
  size_t n;
  const char *text = lua_tolstring(L, idx, &n);
  Res *r = result(L, c, RES_TEXT);
  r->as.text = malloc(n + 1);
  if (!r->as.text) face_error(L, ERR_MEMORY, "out of memory");
  memcpy(r->as.text, text, n);
  r->size = n;
}

static void write_value(lua_State *L, PyCall *c, int idx, int depth);

// Appends a table to the results: as a list if it has the indices 1 to n,
// otherwise as named fields. Ignores all other keys.
static void write_table(lua_State *L, PyCall *c, int idx, int depth) {
  size_t n = (size_t)lua_rawlen(L, idx), at = c->nres;
  if (depth > MOST_DEPTH)
    face_error(L, ERR_TYPE, "a result is a table nested more than %d deep",
               MOST_DEPTH);
  result(L, c, n ? RES_LIST : RES_NAMED)->size = n;
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, idx, (lua_Integer)i);
    write_value(L, c, lua_gettop(L), depth + 1);
    lua_pop(L, 1);
  }
  if (n) return;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) continue;
    write_text(L, c, lua_gettop(L) - 1);
    write_value(L, c, lua_gettop(L), depth + 1);
    n++;
  }
  c->res[at].size = n;
}

// Appends the value at idx to the results. May leave values on the stack.
static void write_any(lua_State *L, PyCall *c, int idx, int depth) {
  if (!lua_checkstack(L, 8))
    face_error(L, ERR_LIMIT, "the results do not fit on Lua's stack");
  switch (lua_type(L, idx)) {
    case LUA_TNIL: result(L, c, RES_NIL); return;
    case LUA_TBOOLEAN:
      result(L, c, RES_BOOL)->as.i = lua_toboolean(L, idx);
      return;
    case LUA_TNUMBER:
      if (lua_isinteger(L, idx))
        result(L, c, RES_INT)->as.i = lua_tointeger(L, idx);
      else
        result(L, c, RES_FLOAT)->as.x = lua_tonumber(L, idx);
      return;
    case LUA_TSTRING: write_text(L, c, idx); return;
    default: break;
  }
  if (tensorlib_box(L, idx)) {
    DLManagedTensorVersioned *m = dlpacklib_export(L, idx);
    result(L, c, RES_TENSOR)->as.tensor = m;
    return;
  }
  if (lua_istable(L, idx) && !lua_getmetatable(L, idx)) {
    write_table(L, c, lua_absindex(L, idx), depth);
    return;
  }
  const char *type = face_typename(L, idx);
  if (strcmp(type, "dtype") == 0) {
    luaL_tolstring(L, idx, NULL);
    write_text(L, c, lua_gettop(L));
    return;
  }
  lua_pushvalue(L, idx);
  cutelua_ref ref = state_ref(c->state, L);
  c->refs = true;
  result(L, c, RES_REF)->as.i = (int64_t)ref;
}

static void write_value(lua_State *L, PyCall *c, int idx, int depth) {
  int top = lua_gettop(L);
  write_any(L, c, idx, depth);
  lua_settop(L, top);
}

// Closes the Lua buffers of results and arguments, and empties their list. From
// then on, the memory of the results belongs to Python, and that of the
// arguments to the caller.
static void close_all(lua_State *L, int opened) {
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, opened); i > 0; i--) {
    lua_rawgeti(L, opened, i);
    lua_pushnil(L);
    lua_rawseti(L, opened, i);
    DevBuf *b = face_test(L, -1, MT_DEVBUF);
    if (b) {
      devbuf_close(b);
      lua_pop(L, 1);
      continue;
    }
    if (luaL_getmetafield(L, -1, "close") != LUA_TNIL) {
      lua_insert(L, -2);
      lua_call(L, 1, 0);
    } else {
      lua_pop(L, 1);
    }
  }
}

// Adds the buffers of result tensors to the list at stack index `opened`. The
// results are the values from stack index `first` on.
static void note_results(lua_State *L, int first, int opened) {
  for (int i = first, top = lua_gettop(L); i <= top; i++) {
    if (!tensorlib_box(L, i)) continue;
    if (lua_getiuservalue(L, i, 1) == LUA_TUSERDATA)
      lua_rawseti(L, opened, (lua_Integer)lua_rawlen(L, opened) + 1);
    else
      lua_pop(L, 1);
  }
}

// Calls the function or launches the kernel that c->ref identifies. Arguments
// on the stack: the PyCall, the list of opened buffers, the module cute.python.
static int call_inside(lua_State *L) {
  PyCall *c = lua_touserdata(L, 1);
  int opened = 2, first = lua_gettop(L) + 1;
  state_push(c->state, L, c->ref);
  c->recycles = c->flags & OURS || !lua_isfunction(L, -1);
  if (!lua_isfunction(L, -1)) {
    lua_getfield(L, 3, "launch");
    lua_insert(L, -2);
    c->nargs++;
  }
  if (!lua_checkstack(L, c->nargs + 20))
    face_error(L, ERR_LIMIT, "a call with %d arguments; the limit is about %d",
               c->nargs, LUAI_MAXSTACK);
  for (size_t i = 0; i < c->nstep; i++) run_step(L, c, &c->step[i], opened);
  lua_call(L, c->nargs, LUA_MULTRET);
  int n = lua_gettop(L) - first + 1;
  for (int i = 0; i < n; i++) write_value(L, c, first + i, 0);
  lua_settop(L, first + n - 1);
  note_results(L, first, opened);
  c->nargs = n;
  return 0;
}

// Sets devices.simulates of the Lua module. If it is true, operations run on
// the simulator, because the tensors are on the host.
static void set_simulates(lua_State *L, int module, bool on) {
  lua_getfield(L, module, "devices");
  lua_pushboolean(L, on);
  lua_setfield(L, -2, "simulates");
  lua_pop(L, 1);
}

// Makes the call's stream and allocator the current ones of the GPU. Returns
// the GPU. Sets *before to the CUDA context that was current.
static Gpu *enter_gpu(lua_State *L, PyCall *c, CUcontext *before) {
  Why w;
  const Gpu *opened = gpulib_known(L, c->device);
  if (opened) opened->api->cuCtxGetCurrent(before);
  else *before = gpulib_context();
  if (!gpulib_open_gpu(L, c->device, &w)) face_error(L, w.kind, "%s", w.msg);
  int at = lua_gettop(L);
  Gpu *g = lua_touserdata(L, at);
  push_stream(L, at, c->stream);
  g->now = lua_touserdata(L, -1);
  lua_setiuservalue(L, at, 1);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (g->now && g->api->cuStreamIsCapturing)
    g->api->cuStreamIsCapturing(g->now->s, &status);
  g->captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  if (c->api && c->api->allocate) {
    g->allocate = allocate;
    g->allocator = (void *)(uintptr_t)c->api;
  }
  return g;
}

static void restore(const Gpu *g, CUcontext before) {
  CUcontext now = NULL;
  g->api->cuCtxGetCurrent(&now);
  if (before && now != before) g->api->cuCtxSetCurrent(before);
}

static void leave_gpu(lua_State *L, int at, Gpu *g) {
  g->now = NULL;
  g->captured = false;
  g->allocate = NULL;
  lua_pushnil(L);
  lua_setiuservalue(L, at, 1);
}

static int call_protected(lua_State *L) {
  PyCall *c = lua_touserdata(L, 1);
  Gpu *g = NULL;
  arena_reset(&face_state(L)->scratch);
  // stack index 2: the list of opened buffers, which is empty between calls
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "cutelua.opened");
  // stack index 3: the module cute.python
  lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.python");
  if (lua_isnil(L, 3)) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "cute.python");
    lua_call(L, 1, 1);
    lua_replace(L, 3);
    lua_pushvalue(L, 3);
    lua_setfield(L, LUA_REGISTRYINDEX, "cutelua.python");
  }
  bool simulates = c->host && !c->gpu;
  CUcontext before = NULL;
  if (c->gpu) g = enter_gpu(L, c, &before);    // stack index 4: the GPU
  if (simulates) set_simulates(L, 3, true);
  // Functions of the bindings expect the context (face_state) as upvalue 1.
  lua_pushlightuserdata(L, face_state(L));
  lua_pushcclosure(L, call_inside, 1);
  lua_pushvalue(L, 1), lua_pushvalue(L, 2), lua_pushvalue(L, 3);
  int status = lua_pcall(L, 3, 0, 0);
  if (simulates) set_simulates(L, 3, false);
  if (g) leave_gpu(L, 4, g);
  int top = lua_gettop(L);
  if (c->recycled) recycle_end(L, status == LUA_OK && !c->refs);
  close_all(L, 2);
  lua_settop(L, top);
  if (g) restore(g, before);
  return status == LUA_OK ? 0 : lua_error(L);
}

// ---- results ----

static void drop_result(Res *r) {
  if (r->kind == RES_TENSOR && r->as.tensor)
    r->as.tensor->deleter(r->as.tensor);
  if (r->kind == RES_TEXT) free(r->as.text);
  r->kind = RES_NIL;
}

static void capsule_gone(PyObject *capsule) {
  if (!py.PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  DLManagedTensorVersioned *m =
    py.PyCapsule_GetPointer(capsule, "dltensor_versioned");
  m->deleter(m);
}

// Calls f(number, address of the call's state), and returns the result.
static PyObject *with_state(const PyCall *c, PyObject *f, int64_t number) {
  PyObject *a = py.PyLong_FromLongLong(number);
  PyObject *b = py.PyLong_FromLongLong((int64_t)(intptr_t)c->state);
  PyObject *out = a && b ? call(f, a, b) : NULL;
  if (a) py.Py_DecRef(a);
  if (b) py.Py_DecRef(b);
  return out;
}

static PyObject *make_tensor(PyCall *c, Res *r) {
  DLManagedTensorVersioned *m = r->as.tensor;
  r->as.tensor = NULL;
  if (c->api) {
    void *out = NULL;
    if (c->api->to_object(m, &out) == 0) return out;
    return NULL;
  }
  PyObject *capsule = py.PyCapsule_New(m, "dltensor_versioned", capsule_gone);
  if (!capsule) {
    m->deleter(m);
    return NULL;
  }
  PyObject *out = call(py.wrap, capsule, c->like ? c->like : py.none);
  py.Py_DecRef(capsule);
  return out;
}

static PyObject *make_value(PyCall *c, size_t *at);

static PyObject *make_named(PyCall *c, size_t *at, size_t n) {
  PyObject *out = py.PyDict_New();
  for (size_t i = 0; out && i < n; i++) {
    PyObject *key = make_value(c, at), *x = make_value(c, at);
    bool ok = key && x && py.PyDict_SetItem(out, key, x) == 0;
    if (key) py.Py_DecRef(key);
    if (x) py.Py_DecRef(x);
    if (ok) continue;
    py.Py_DecRef(out);
    out = NULL;
  }
  return out;
}

static PyObject *make_list(PyCall *c, size_t *at, size_t n) {
  PyObject *out = py.PyList_New(0);
  for (size_t i = 0; out && i < n; i++) {
    PyObject *x = make_value(c, at);
    bool ok = x && py.PyList_Append(out, x) == 0;
    if (x) py.Py_DecRef(x);
    if (ok) continue;
    py.Py_DecRef(out);
    out = NULL;
  }
  return out;
}

// Makes the Python object for result *at, and advances *at to the next result.
static PyObject *make_value(PyCall *c, size_t *at) {
  Res *r = &c->res[(*at)++];
  switch (r->kind) {
    case RES_NIL: py.Py_IncRef(py.none); return py.none;
    case RES_BOOL: return py.PyBool_FromLong((long)r->as.i);
    case RES_INT: return py.PyLong_FromLongLong(r->as.i);
    case RES_FLOAT: return py.PyFloat_FromDouble(r->as.x);
    case RES_TEXT:
      return py.PyUnicode_DecodeUTF8(r->as.text, (ptrdiff_t)r->size,
                                     "surrogateescape");
    case RES_TENSOR: return make_tensor(c, r);
    case RES_LIST: return make_list(c, at, r->size);
    case RES_NAMED: return make_named(c, at, r->size);
    case RES_REF: return with_state(c, py.ref_type, r->as.i);
  }
  return NULL;
}

// Returns None, the result, or a tuple of several results.
static PyObject *make_results(PyCall *c) {
  size_t at = 0;
  int n = c->nargs;
  if (n == 1) return make_value(c, &at);
  if (n == 0) {
    py.Py_IncRef(py.none);
    return py.none;
  }
  PyObject *out = py.PyTuple_New(n);
  for (int i = 0; out && i < n; i++) {
    PyObject *x = make_value(c, &at);
    if (x) {
      py.PyTuple_SetItem(out, i, x);
      continue;
    }
    py.Py_DecRef(out);
    out = NULL;
  }
  return out;
}

// ---- Ctrl-C ----

// The state whose call a SIGINT ends, or NULL, and Python's own SIGINT handler.
static cutelua_state *interruptible;
static struct sigaction python_handler;

static void on_interrupt(int sig) {
  if (interruptible) cutelua_interrupt(interruptible);
  if (python_handler.sa_handler != SIG_DFL &&
      python_handler.sa_handler != SIG_IGN)
    python_handler.sa_handler(sig);
}

// Reports whether this is the main thread, where Python handles signals.
static bool in_main_thread(void) {
  static _Thread_local unsigned known_for;
  static _Thread_local bool main;
  if (known_for != state_forks() + 1) {
    known_for = state_forks() + 1;
    main = syscall(SYS_gettid) == getpid();
  }
  return main;
}

// Lets Ctrl-C end a call that runs on the simulator. Returns false if another
// call has already installed the handler, or if Python does not handle Ctrl-C.
static bool watch_interrupts(cutelua_state *s) {
  struct sigaction ours = {.sa_handler = on_interrupt};
  if (!in_main_thread() || interruptible) return false;
  if (sigaction(SIGINT, &ours, &python_handler) != 0) return false;
  if (python_handler.sa_flags & SA_SIGINFO ||
      python_handler.sa_handler == SIG_DFL ||
      python_handler.sa_handler == SIG_IGN) {
    sigaction(SIGINT, &python_handler, NULL);
    return false;
  }
  interruptible = s;
  return true;
}

static void unwatch_interrupts(void) {
  sigaction(SIGINT, &python_handler, NULL);
  interruptible = NULL;
}

// ---- the interface ----

// The CUDA stream that a tensor's Python library named during this call, or
// NULL.
static _Thread_local void *named_stream;

void cutelua_python_stream(void *stream) { named_stream = stream; }

static bool find_stream(PyCall *c) {
  if (c->gpu && !c->stream) c->stream = named_stream;
  if (!c->gpu || !c->api || !c->api->stream) return true;
  if (c->api->stream(DL_CUDA, c->device, &c->stream) == 0) return true;
  return fail("the current stream of the tensors' library is unknown");
}

// Initializes the lists of a call's steps and results as empty lists.
static void begin(PyCall *c) {
  c->step = c->few;
  c->res = c->some;
  c->maxstep = c->maxres = HERE;
}

// Releases the arguments whose ownership did not pass to Lua, and the results
// whose ownership did not pass to Python.
static void end(PyCall *c) {
  for (size_t i = 0; i < c->nstep; i++) drop_step(&c->step[i]);
  for (size_t i = 0; i < c->nres; i++) drop_result(&c->res[i]);
  if (c->like) py.Py_DecRef(c->like);
  if (c->step != c->few) free(c->step);
  if (c->res != c->some) free(c->res);
}

char *python_run(cutelua_state *s, cutelua_ref ref,
                 DLManagedTensorVersioned *tensors, size_t n, void *stream) {
  PyCall c = {.state = s, .ref = ref, .stream = stream, .nargs = (int)n};
  begin(&c);
  char *message = NULL;
  cutelua_status status = CUTELUA_MEMORY;
  for (size_t i = 0; i < n; i++) {
    Step *t = step(&c, STEP_TENSOR);
    if (!t) goto done;
    t->as.managed = &tensors[i];
    t->size = 1;
    place(&c, &tensors[i].t);
  }
  status = state_enter(s);
  if (status != CUTELUA_OK) goto done;
  status = state_run(s->L, call_protected, &c, &s->error);
  if (status != CUTELUA_OK && cutelua_error(s))
    message = strdup(cutelua_error(s));
  state_leave(s, status);
done:
  end(&c);
  if (status == CUTELUA_OK || message) return message;
  return strdup(cutelua_status_text(status));
}

static PyObject *run(PyCall *c) {
  bool watched = c->host && !c->gpu && watch_interrupts(c->state);
  void *thread = py.PyEval_SaveThread();
  cutelua_status status = state_enter(c->state);
  if (status == CUTELUA_OK) {
    state_watch(c->state, watched);
    status = state_leave(c->state, state_run(c->state->L, call_protected, c,
                                             &c->state->error));
  }
  py.PyEval_RestoreThread(thread);
  if (watched) unwatch_interrupts();
  if (watched && py.PyErr_CheckSignals() != 0) return NULL;
  if (status == CUTELUA_OK) return make_results(c);
  PyObject *none = with_state(c, py.failed, status);
  if (none) py.Py_DecRef(none);
  return none ? (fail("the call failed"), NULL) : NULL;
}

PyObject *cutelua_python_call(cutelua_state *s, cutelua_ref ref,
                              PyObject *args, PyObject *options,
                              unsigned flags, void *stream) {
  PyCall c = {.state = s, .ref = ref, .flags = flags, .stream = stream};
  begin(&c);
  PyObject *out = NULL;
  named_stream = NULL;
  if (read_args(&c, args, options) && find_stream(&c)) out = run(&c);
  // Deleters may run code of Python, which expects no pending exception.
  PyObject *type = NULL, *value = NULL, *trace = NULL;
  if (!out) py.PyErr_Fetch(&type, &value, &trace);
  end(&c);
  if (!out) py.PyErr_Restore(type, value, trace);
  return out;
}

// The CUDA stream that `with cutelua.stream(handle)` names in this thread.
static _Thread_local void *chosen_stream;

void cutelua_python_choose(void *stream) { chosen_stream = stream; }

// The method __call__ of the class Callable.
static PyObject *call_object(PyObject *self, PyObject *args,
                             PyObject *options) {
  Callable *f = callable_of(self);
  if (!f->state) {
    PyObject *none = call(py.bind, self, NULL);
    if (!none) return NULL;
    py.Py_DecRef(none);
  }
  if (!options) options = py.none;
  PyObject *out = cutelua_python_call(f->state, f->number, args, options,
                                      (unsigned)f->flags, chosen_stream);
  if (out || !(f->flags & OURS) ||
      !py.PyErr_ExceptionMatches(py.gradient_error))
    return out;
  py.PyErr_Clear();
  return call_with(py.differentiate, (PyObject *const[]){self, args, options});
}

// The structures of Python's stable ABI that describe a class.
typedef struct Member {
  const char *name;
  int type;
  ptrdiff_t offset;
  int flags;
  const char *doc;
} Member;
typedef struct Slot {
  int slot;
  void *value;
} Slot;
typedef struct Spec {
  const char *name;
  int size, item_size;
  unsigned flags;
  Slot *slots;
} Spec;
// TYPE_FLAGS: Python's default flags, and the flag that allows subclasses.
enum { MEMBER_U64 = 18, SLOT_CALL = 50, SLOT_MEMBERS = 72,
       TYPE_FLAGS = 1 << 18 | 1 << 10 };

PyObject *cutelua_python_class(int bytes, PyObject *(*from_spec)(void *)) {
  static Member members[] = {
    {"_state", MEMBER_U64, offsetof(Callable, state), 0, NULL},
    {"number", MEMBER_U64, offsetof(Callable, number), 0, NULL},
    {"_flags", MEMBER_U64, offsetof(Callable, flags), 0, NULL},
    {NULL, 0, 0, 0, NULL}};
  static Slot slots[] = {{SLOT_MEMBERS, members}, {0}, {0}};
  PyObject *(*function)(PyObject *, PyObject *, PyObject *) = call_object;
  if (!head)
    for (Member *m = members; m->name; m++) m->offset += bytes;
  head = bytes;
  slots[1].slot = SLOT_CALL;
  memcpy(&slots[1].value, &function, sizeof function);
  Spec spec = {"cutelua.Callable", bytes + (int)sizeof(Callable), 0, TYPE_FLAGS,
               slots};
  return from_spec(&spec);
}

// ---- memory of Python's objects ----

// A managed tensor whose memory belongs to a Python object.
typedef struct Held {
  DLManagedTensorVersioned m;
  PyObject *owner;
  int64_t extents[];
} Held;

static void held_gone(DLManagedTensorVersioned *m) {
  Held *h = m->owner;
  if (py.Py_IsInitialized()) {
    int lock = py.PyGILState_Ensure();
    py.Py_DecRef(h->owner);
    py.PyGILState_Release(lock);
  }
  free(h);
}

PyObject *cutelua_python_capsule(void *data, int rank, const int64_t *extents,
                                 int code, int bits, int device, int id,
                                 int readonly, PyObject *owner) {
  size_t n = 2 * (size_t)rank * sizeof *extents;
  Held *h = calloc(1, sizeof *h + n);
  if (!h) return NULL;
  memcpy(h->extents, extents, n);
  h->m = (DLManagedTensorVersioned){
    .version = {DLPACK_MAJOR, DLPACK_MINOR}, .owner = h, .deleter = held_gone,
    .flags = readonly ? DL_READ_ONLY : 0,
    .t = {.data = data, .device = {device, id}, .ndim = rank,
          .dtype = {(uint8_t)code, (uint8_t)bits, 1}, .shape = h->extents,
          .strides = h->extents + rank}};
  py.Py_IncRef(owner);
  h->owner = owner;
  PyObject *capsule = py.PyCapsule_New(&h->m, "dltensor_versioned",
                                       capsule_gone);
  if (!capsule) held_gone(&h->m);
  return capsule;
}

// ---- tensors of Python's class cutelua.Tensor ----

DLManagedTensorVersioned *cutelua_python_take(PyObject *capsule) {
  DLManagedTensorVersioned *m =
    py.PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (!m) return NULL;
  const DLTensor *t = &m->t;
  bool fits = m->version.major == DLPACK_MAJOR && t->dtype.lanes == 1 &&
              t->ndim >= 0 && t->ndim <= DLPACK_RANK &&
              (t->ndim == 0 || (t->shape && t->strides));
  if (!fits) {
    fail("the capsule contains no tensor of DLPack 1 with strides and at most "
         "64 modes");
    return NULL;
  }
  py.PyCapsule_SetName(capsule, "used_dltensor_versioned");
  return m;
}

void cutelua_python_drop(DLManagedTensorVersioned *m) {
  dlpacklib_release(m, 0);
}

static void old_gone(DLManagedTensor *m) {
  DLManagedTensorVersioned *v = m->owner;
  v->deleter(v);
  free(m);
}

static void old_capsule_gone(PyObject *capsule) {
  if (!py.PyCapsule_IsValid(capsule, "dltensor")) return;
  DLManagedTensor *m = py.PyCapsule_GetPointer(capsule, "dltensor");
  m->deleter(m);
}

PyObject *cutelua_python_share(DLManagedTensorVersioned *m, int versioned,
                               PyObject *owner) {
  if (!m) {
    fail("the tensor was closed");
    return NULL;
  }
  const DLTensor *t = &m->t;
  int64_t extents[2 * DLPACK_RANK];
  size_t n = (size_t)t->ndim * sizeof *extents;
  memcpy(extents, t->shape, n);
  memcpy(extents + t->ndim, t->strides, n);
  PyObject *capsule = cutelua_python_capsule(
    (char *)t->data + t->byte_offset, t->ndim, extents, t->dtype.code,
    t->dtype.bits, t->device.kind, t->device.id,
    (m->flags & DL_READ_ONLY) != 0, owner);
  if (versioned || !capsule) return capsule;
  DLManagedTensor *old = calloc(1, sizeof *old);
  DLManagedTensorVersioned *v = cutelua_python_take(capsule);
  py.Py_DecRef(capsule);
  if (!old) return NULL;
  *old = (DLManagedTensor){v->t, v, old_gone};
  return py.PyCapsule_New(old, "dltensor", old_capsule_gone);
}
// SPDX-License-Identifier: MIT
