// The argument key of a launch. Its words are the properties of the arguments
// for which a program is compiled. Its leaves are the values that each launch
// passes. argkey.c builds the key from the arguments, and argmatch.c compares
// arguments with a key. kernlib.c and launchlib.c use both files.
#ifndef CUTE_ARGKEY_H
#define CUTE_ARGKEY_H

#include "bind/face.h"
#include "gpu/memory.h"

#define MT_KIND "cute.kind"
#define MT_CONSTEXPR "cute.constexpr"
#define MT_SYMBOL "cute.symbol"

// The words describe values in preorder. The first word of a value, its head,
// has a tag in the low 8 bits and a number above them. After "head", the
// comments below state the meaning of this number. After "words", they list the
// words that follow the head. Some words are addresses of objects, which an
// ArgKey keeps alive.
typedef enum ArgTag {
  ARG_NIL = 1, ARG_FALSE, ARG_TRUE,
  ARG_NUMBER,   // head: DType; the value itself is a leaf
  ARG_INT, ARG_FLOAT,  // constants of the program; words: the value
  ARG_STRING,   // head: number of bytes; words: the bytes, padded to words
  ARG_DTYPE,    // head: DType
  ARG_CONST,    // head: ConstKind; words: the constant's Dim and swizzle
  // ARG_OBJECT: words: the object's address. ARG_STREAM has no words, because
  // all streams are equal in a cached call.
  ARG_OBJECT, ARG_STREAM,
  // head: number of fields; words: the metatable, the keys and values
  ARG_TABLE,
  ARG_SAME,  // a table that was met before; head: its index in Walk.table
  // head: ArgFlags; words: the layout. Its dynamic extents and strides are
  // leaves.
  ARG_LAYOUT,
  // head: DType, ArgFlags; words: the alignment and the layout. The memory, and
  // dynamic extents and strides, are leaves.
  ARG_TENSOR,
  // head: number of bytes of a TMA atom; words: the atom. Its tensor is a leaf.
  ARG_TMA,
  ARG_CODE,     // head: id of a function's code; words: its upvalues
  // Follows the last argument. Words: the group of each leaf (argkey_overlaps).
  // In a cached call, distances between leaves follow (put_distances).
  ARG_OVERLAP
} ArgTag;
enum ArgFlags { ARG_COORD = 1 << 8, ARG_WIDE = 1 << 9,
                ARG_DYNAMIC = 1 << 10, ARG_COMPOSED = 1 << 11 };
#define ARG_HEAD(tag, more) ((uint64_t)(tag) | (uint64_t)(more) << 8)
#define ARG_TAG(w) ((ArgTag)((w) & 255))
#define ARG_MORE(w) ((size_t)((w) >> 8))
#define ARG_DEPTH 32         // maximum nesting of tables
#define ARG_LEAVES 1024      // maximum number of leaves

// A plain layout is stored as the number of words of its shape, the shape's
// words, and a stride for each mode. A dynamic layout is followed by the
// divisibility of each extent and stride (0: static). A composed layout is
// stored as its text. The base of a coordinate tensor is also stored as text,
// before the layout.

// A value that each launch passes: memory, or a number.
typedef struct Leaf {
  DType type;
  bool pointer;
  // true for the stride of a mode with one element, because such a stride may
  // have any value
  bool free;
  int argument;            // number of the argument that contains the value
  size_t place;            // number of this leaf, from 1 on
  uint32_t symbol;         // number of the value's cute.sym_int; 0: none
  int64_t number;          // the value, if it is an integer
  double real;             // the value, if it is a float
  uint64_t bits;
  const Tensor *t;         // for memory: the tensor inside its userdata
  const struct TmaBox *tma;  // TMA atom to which the tensor belongs, or NULL
  // The host or device buffer that contains the memory. Both are NULL for a
  // symbolic tensor.
  const HostBuf *host;
  DevBuf *dev;
  // The layout reaches the elements [-before, after), counted from the first
  // element.
  int64_t before, after;
} Leaf;

// cute.sym_int: a placeholder for an integer that the launch passes.
typedef struct Symbol {
  uint32_t id;             // number of the symbol, from 1 on
  DType type;              // DT_I32, DT_I64
  int64_t divides;
} Symbol;

// Callbacks of a walk over the arguments during a trace (kernlib.c). Each
// callback pushes the traced value that replaces an argument in the kernel.
// `count` is the number of elements of a tensor's memory.
struct Walk;
typedef struct Seen {
  void (*number)(const struct Walk *w, DType type);
  void (*layout)(const struct Walk *w, Layout l, const TensorMarks *m,
                 bool wide);
  void (*tensor)(const struct Walk *w, Tensor t, const TensorMarks *m,
                 bool wide, int64_t count);
  void (*tma)(const struct Walk *w, const struct TmaBox *b);
} Seen;

// State of a walk over arguments. Its arrays are in cx->scratch.
typedef struct Walk {
  Ctx *cx;
  lua_State *L;
  uint64_t *w;             // the words of the argument key so far
  Leaf *leaf;
  size_t n, cap, nleaf, leafcap;
  const void **table;      // addresses of the tables that the walk has seen
  size_t ntable, tablecap;
  int call;  // stack index of the table {arguments, kernel =} of the call, or 0
  int argument;            // number of the argument that the walk is reading
  int depth;               // number of tables around the current value
  struct { const void *table; int key; } open[ARG_DEPTH];
  // Stack index of a list, or 0. The list keeps alive the objects whose
  // addresses are words.
  int hold;
  // Stack index of a table, or 0: {[leaf] = buffer, [-leaf] = TMA atom}, where
  // `leaf` is the number of the leaf, from 1 on.
  int buffers;
  // Callbacks that replace arguments during a trace, or NULL.
  const Seen *see;
  // During a trace: stack index of the kernel's function, and stack index of
  // the list of tables that were copied for the kernel.
  int func, copies;
  // Stack index of the cache of calls (plan_cache.c), or 0 for a launch.
  int calls;
  // In a cached call (plan_cache.c): callback for each Lua function among the
  // arguments. NULL for a launch.
  void (*function)(struct Walk *w, int idx);
  // Stream among the arguments of a cached call, or NULL.
  const struct GpuStream *stream;
  // constant: whether numbers are treated as constants of the program.
  // symbolic: whether some leaf is a cute.sym_int or belongs to a symbolic
  // tensor.
  bool constant, symbolic;
  // numbers: some argument is or contains a number. in_table: a table among the
  // arguments contains a number.
  bool numbers, in_table;
} Walk;

// argkey.c: begins a walk. The first word is `launch`, an integer that encodes
// other properties for which the program is compiled.
Walk argkey_begin(Ctx *cx, lua_State *L, uint64_t launch);
// walks over the next argument of the kernel
void argkey_add(Walk *w, int idx);
void argkey_put(Walk *w, uint64_t word);
void argkey_value(Walk *w, int idx);   // walks over a value inside an argument
// Appends the address of the object at idx.
void argkey_object(Walk *w, int idx);
// Reports whether the walk has met table p before. If so, appends ARG_SAME.
bool argkey_met(Walk *w, const void *p);
void argkey_end(Walk *w);           // ends a walk, after the last argument
uint64_t argkey_hash(const Walk *w);
// Returns the name of the kernel that a call launches; NULL: the kernel has no
// name. `call` is the stack index of the table {arguments, kernel =}.
const char *argkey_name(lua_State *L, int call);
// Returns the part of the leaf's buffer that a kernel may access, as byte
// offset and number of bytes. Raises an error if a kernel cannot use this
// memory. The caller must have checked that the buffer is open.
typedef struct LeafMemory { int64_t offset, bytes; } LeafMemory;
LeafMemory argkey_memory(Ctx *cx, const Leaf *l);
// Groups the n leaves at l by overlapping memory. Sets group[i] to 0 if leaf i
// overlaps no other leaf, else to a number shared by all leaves that overlap
// it, directly or through others. Returns false if no leaves overlap.
bool argkey_overlaps(Ctx *cx, const Leaf *l, size_t n, int *group);

// An argument key, kept with its program. Arguments of later launches are
// compared with it.
typedef struct ArgKey {
  const char *name;        // name of the kernel, or NULL
  int arguments;
  bool symbolic, numbers, in_table;
  size_t n, nleaf;
  uint64_t *w;
  uint32_t *symbol;        // per leaf
  int *group;              // group of each leaf (argkey_overlaps)
} ArgKey;
static inline ArgKey *argkey_box(lua_State *L, int idx) {
  return face_check(L, idx, MT_KIND, "kind");
}

// kernlib.c: reports whether all values that a trace read, which the table at
// idx lists, are unchanged.
bool kernlib_unchanged(lua_State *L, int idx);

// argmatch.c: returns the leaves to pass to a program with key k, for the
// arguments of walk w. If an argument does not fit the key, raises an error
// that names it.
const Leaf *argmatch_fit(const Walk *w, const ArgKey *k);
// A plain layout as words of a key: n words of a shape, and `leaves` strides.
// shape_div and stride_div have the divisibility of each extent and stride.
// They are NULL if the layout is static.
typedef struct ArgLayout {
  size_t n, leaves;
  const uint64_t *shape, *stride, *shape_div, *stride_div;
} ArgLayout;
// Reads a plain layout from the words at *at, and advances *at past it.
ArgLayout argmatch_layout(const uint64_t **at, bool dynamic);
// Converts a word of a layout to an extent or stride.
Dim argmatch_dim(uint64_t word);
// Returns the number of words, with the head, of a string, a TMA atom, a number
// or a constant.
size_t argmatch_words(const uint64_t *at);
// Reports whether s is a Lua name, which can follow a dot as in t.name.
bool argkey_is_name(const char *s, size_t n);
// Returns a text that names the argument that the walk has reached, such as
// "kernel k: argument 2.scale[3]".
const char *argkey_path(const Walk *w);

#endif
// SPDX-License-Identifier: MIT
