// The kind of a launch's arguments: words for what is part of a program, and
// leaves for what each launch passes. argkey.c walks over arguments, argmatch.c
// compares them; kernlib.c and launchlib.c use both.
#ifndef CUTE_ARGKEY_H
#define CUTE_ARGKEY_H

#include "bind/face.h"
#include "gpu/memory.h"

#define MT_KIND "cute.kind"
#define MT_CONSTEXPR "cute.constexpr"
#define MT_SYMBOL "cute.symbol"

// The words are a list of values in preorder. Each starts with a head: a tag,
// and in the bits above it a field that depends on the tag (more). Addresses in
// words are those of objects that a kept kind keeps alive.
typedef enum ArgTag {
  ARG_NIL = 1, ARG_FALSE, ARG_TRUE,
  ARG_NUMBER,   // more: DType; a leaf
  ARG_INT, ARG_FLOAT,  // constants; then the number
  ARG_STRING,   // more: number of bytes; then the bytes, padded
  ARG_DTYPE,    // more: DType
  ARG_CONST,    // more: ConstKind; then Dim, swizzle
  ARG_OBJECT, ARG_STREAM,  // then the object's address; in calls any stream has
                           // this word
  ARG_TABLE,    // more: number of fields; then metatable, keys and values
  ARG_SAME,     // more: index of an earlier table
  ARG_LAYOUT,   // more: ArgFlags; then the layout
  ARG_TENSOR,   // more: DType, ArgFlags; then align, layout; leaves
  ARG_TMA,      // more: bytes; then a TMA atom, padded; a leaf
  ARG_CODE,     // more: number of the function's code; then its captures
  ARG_OVERLAP   // at the end of the words: group of each leaf
} ArgTag;
enum ArgFlags { ARG_COORD = 1 << 8, ARG_WIDE = 1 << 9,
                ARG_DYNAMIC = 1 << 10, ARG_COMPOSED = 1 << 11 };
#define ARG_HEAD(tag, more) ((uint64_t)(tag) | (uint64_t)(more) << 8)
#define ARG_TAG(w) ((ArgTag)((w) & 255))
#define ARG_MORE(w) ((size_t)((w) >> 8))
#define ARG_DEPTH 32         // maximum nesting of tables
#define ARG_LEAVES 1024      // maximum number of leaves

// A layout is the number of words of its shape, these words, and one stride per
// leaf. A dynamic layout is followed by the divisibility of each extent and
// stride, 0 if static. A composed layout is its text, as a string. The base of
// a coordinate tensor is also a string, in front of its layout.

// A value that a launch passes: memory, or a number.
typedef struct Leaf {
  DType type;
  bool pointer;
  bool free;               // stride of a mode with one element, for which any
                           // value will do
  int argument;            // number of the argument that contains it
  size_t place;            // number of the leaf, from 1 on
  uint32_t symbol;         // for a number: its cute.sym_int; 0: none
  int64_t number;          // value if it is an integer
  double real;             // value if it is a float
  uint64_t bits;
  const Tensor *t;         // for a pointer: the tensor in its userdata
  const struct TmaBox *tma;  // set if a tensor map describes the pointer
  const HostBuf *host;     // host or device buffer; both NULL if symbolic
  DevBuf *dev;
  int64_t before, after;   // elements before and after the first one that its
                           // layout reaches
} Leaf;

// cute.sym_int: an integer that is known at the launch.
typedef struct Symbol {
  uint32_t id;             // number, from 1 on
  DType type;              // DT_I32, DT_I64
  int64_t divides;
} Symbol;

// Callbacks that push what the traced kernel sees for an argument (kernlib.c).
// count is the number of elements of a tensor's memory.
struct Walk;
typedef struct Seen {
  void (*number)(const struct Walk *w, DType type);
  void (*layout)(const struct Walk *w, Layout l, const TensorMarks *m,
                 bool wide);
  void (*tensor)(const struct Walk *w, Tensor t, const TensorMarks *m,
                 bool wide, int64_t count);
  void (*tma)(const struct Walk *w, const struct TmaBox *b);
} Seen;

// State of a walk over arguments; in scratch.
typedef struct Walk {
  Ctx *cx;
  lua_State *L;
  uint64_t *w;             // words written so far
  Leaf *leaf;
  size_t n, cap, nleaf, leafcap;
  const void **table;      // tables met so far
  size_t ntable, tablecap;
  int call;                // stack index of {arguments, kernel =}, or 0
  int argument;            // number of the current argument
  int depth;               // number of open tables
  struct { const void *table; int key; } open[ARG_DEPTH];
  int hold;                // stack index of a list that keeps objects alive
                           // which words identify by address, or 0
  int buffers;             // stack index of a list of buffers, or 0; key of a
                           // pointer's buffer: number of its leaf, from 1 on;
                           // key of a TMA atom's buffer: that number negated
  const Seen *see;         // replaces arguments while a kernel is traced;
                           // otherwise NULL
  int func, copies;        // while a kernel is traced: stack indices of its
                           // function, and of a list of copied tables
  int calls;               // stack index of the cache of calls (plan_cache.c),
                           // or 0
  void (*function)(struct Walk *w, int idx);  // callback of the cache that
                                              // walks over a function
  const struct GpuStream *stream;  // stream that the call's arguments contain,
                                   // or NULL
  bool constant, symbolic; // constant: whether numbers are constants; symbolic:
                           // whether a leaf is symbolic
  bool numbers, in_table;  // numbers: whether some argument is or contains a
                           // number; in_table: whether a table contains one
} Walk;

// argkey.c
// Begins a walk; `launch` stands for other properties of the program.
Walk argkey_begin(Ctx *cx, lua_State *L, uint64_t launch);
void argkey_add(Walk *w, int idx);  // next argument, at a stack index
void argkey_put(Walk *w, uint64_t word);
void argkey_value(Walk *w, int idx);   // a value in an argument
void argkey_object(Walk *w, int idx);  // appends a value identified by its
                                       // address
bool argkey_met(Walk *w, const void *p);  // if the walk met table p before,
                                          // appends its words and returns true
void argkey_end(Walk *w);           // after the last argument
uint64_t argkey_hash(const Walk *w);
// Returns the name of the called kernel if the call is at a stack index,
// otherwise NULL.
const char *argkey_name(lua_State *L, int call);
// Returns byte offset and bytes of a leaf's memory; fails if a kernel cannot
// use it. (The caller checks that the buffer is open.)
typedef struct LeafMemory { int64_t offset, bytes; } LeafMemory;
LeafMemory argkey_memory(Ctx *cx, const Leaf *l);
// Finds leaves with overlapping memory and sets group[]: 0 for a leaf alone,
// otherwise an equal number for all connected leaves. Returns false if none
// overlap.
bool argkey_overlaps(Ctx *cx, const Leaf *l, size_t n, int *group);

// A kind that is kept for later launches.
typedef struct ArgKey {
  const char *name;        // name of the kernel, or NULL
  int arguments;
  bool symbolic, numbers, in_table;
  size_t n, nleaf;
  uint64_t *w;
  uint32_t *symbol;        // per leaf
  int *group;              // group of each leaf, see argkey_overlaps
} ArgKey;
static inline ArgKey *argkey_box(lua_State *L, int idx) {
  return face_check(L, idx, MT_KIND, "kind");
}

// kernlib.c: reports whether all values that the trace read, in the table at
// idx, are unchanged.
bool kernlib_unchanged(lua_State *L, int idx);

// argmatch.c
// Returns the leaves that a program of this kind gets for these arguments, or
// raises an error that names an argument that does not fit.
const Leaf *argmatch_fit(const Walk *w, const ArgKey *k);
bool argkey_is_name(const char *s, size_t n);  // a valid field name: t.name
const char *argkey_path(const Walk *w);  // "kernel k: argument 2.scale[3]"

#endif
// SPDX-License-Identifier: MIT
