// The kind of a launch's arguments: what of them is part of a program, as
// words, and what each launch hands over, as leaves. argkey.c walks over
// arguments, argmatch.c compares, kernlib.c and launchlib.c ask.
#ifndef CUTE_ARGKEY_H
#define CUTE_ARGKEY_H

#include "bind/face.h"
#include "gpu/memory.h"

#define MT_KIND "cute.kind"
#define MT_CONSTEXPR "cute.constexpr"
#define MT_SYMBOL "cute.symbol"

// The words are a list of values in preorder, each with a head: tag, and what
// the tag says of the bits above it. Addresses in words are those of objects
// that a kept kind keeps alive.
typedef enum ArgTag {
  ARG_NIL = 1, ARG_FALSE, ARG_TRUE,
  ARG_NUMBER,   // more: DType; a leaf
  ARG_INT, ARG_FLOAT,  // constants: the number
  ARG_STRING,   // more: bytes; these, padded
  ARG_DTYPE,    // more: DType
  ARG_CONST,    // more: ConstKind; Dim, swizzle
  ARG_OBJECT, ARG_STREAM,  // address; of calls, whichever
  ARG_TABLE,    // more: fields; metatable; key and value each
  ARG_SAME,     // more: which of the tables so far
  ARG_LAYOUT,   // more: ArgFlags; layout
  ARG_TENSOR,   // more: DType, ArgFlags; align, layout; leaves
  ARG_TMA,      // more: bytes; these, of a TMA atom, padded; a leaf
  ARG_CODE,     // more: number of a function's code; what it captures
  ARG_OVERLAP   // at the end: the group of each leaf
} ArgTag;
enum ArgFlags { ARG_COORD = 1 << 8, ARG_WIDE = 1 << 9,
                ARG_DYNAMIC = 1 << 10, ARG_COMPOSED = 1 << 11 };
#define ARG_HEAD(tag, more) ((uint64_t)(tag) | (uint64_t)(more) << 8)
#define ARG_TAG(w) ((ArgTag)((w) & 255))
#define ARG_MORE(w) ((size_t)((w) >> 8))
#define ARG_DEPTH 32         // nesting of tables
#define ARG_LEAVES 1024      // what a launch hands over at most

// A layout is the count of its shape's words, these, a stride a leaf, and, if
// it is dynamic, the divisibility of each extent and each stride, 0 where it
// is static (else the word before is 0). A composed one is its text, as a
// string; so is what a coordinate tensor counts from, in front of its layout.

// What a launch hands over: memory, or a number.
typedef struct Leaf {
  DType type;
  bool pointer;
  bool free;               // the stride of one element: any would do
  int argument;            // number of the argument it is in
  size_t place;            // number of the leaf, from 1 on
  uint32_t symbol;         // of a number: its cute.sym_int, 0: none
  int64_t number;          // where it is an integer
  double real;             // where it is a float
  uint64_t bits;
  const Tensor *t;         // of a pointer: in its userdata
  const struct TmaBox *tma;  // the pointer is that of its tensor map; or NULL
  const HostBuf *host;     // one of them; neither: symbolic
  DevBuf *dev;
  int64_t before, after;   // elements that its layout reaches to
} Leaf;

// cute.sym_int: an integer that a launch will tell.
typedef struct Symbol {
  uint32_t id;             // from 1 on
  DType type;              // DT_I32, DT_I64
  int64_t divides;
} Symbol;

// Pushes what the kernel being traced sees of an argument (kernlib.c). count:
// elements of the memory behind a tensor.
struct Walk;
typedef struct Seen {
  void (*number)(const struct Walk *w, DType type);
  void (*layout)(const struct Walk *w, Layout l, const TensorMarks *m,
                 bool wide);
  void (*tensor)(const struct Walk *w, Tensor t, const TensorMarks *m,
                 bool wide, int64_t count);
  void (*tma)(const struct Walk *w, const struct TmaBox *b);
} Seen;

// Arguments as they are walked over; all of it is in scratch.
typedef struct Walk {
  Ctx *cx;
  lua_State *L;
  uint64_t *w;             // words
  Leaf *leaf;
  size_t n, cap, nleaf, leafcap;
  const void **table;      // those met so far
  size_t ntable, tablecap;
  int call;                // stack index of {arguments, kernel =}, or 0
  int argument;            // number of the one at work
  int depth;               // tables that are open
  struct { const void *table; int key; } open[ARG_DEPTH];
  int hold;                // stack index of a list for what words name by
                           // address, or 0
  int buffers;             // that of a list for those behind pointers, by
                           // the leaf's number from 1 on, of TMA atoms by
                           // its negative; or 0
  const Seen *see;         // while a kernel is traced: its arguments become
                           // what it sees, or NULL
  int func, copies;        // then: its function, a list of copies of tables
  int calls;               // stack index of those that plan_cache.c asks, or 0
  void (*function)(struct Walk *w, int idx);  // then: walks over a function
  const struct GpuStream *stream;  // that it met there, or NULL
  bool constant, symbolic; // numbers are the program's; some leaf has none
  bool numbers, in_table;  // some argument is or holds one; in a table
} Walk;

// argkey.c
// Begins a walk; `launch` says what else the program is for.
Walk argkey_begin(Ctx *cx, lua_State *L, uint64_t launch);
void argkey_add(Walk *w, int idx);  // the next argument, at a stack index
void argkey_put(Walk *w, uint64_t word);
void argkey_value(Walk *w, int idx);   // a value in an argument
void argkey_object(Walk *w, int idx);  // as one that is told by its address
bool argkey_met(Walk *w, const void *p);  // again: its words are put
void argkey_end(Walk *w);           // no more arguments
uint64_t argkey_hash(const Walk *w);
// The name of the kernel that the call at a stack index is of, or NULL.
const char *argkey_name(lua_State *L, int call);
// Byte offset and bytes of a leaf's memory; fails where a kernel cannot have
// it. (Whether the buffer is open its user asks.)
typedef struct LeafMemory { int64_t offset, bytes; } LeafMemory;
LeafMemory argkey_memory(Ctx *cx, const Leaf *l);
// Where memory of some leaves is that of others: their numbers in group[]
// (0: alone, else alike for all that are connected); false: nowhere.
bool argkey_overlaps(Ctx *cx, const Leaf *l, size_t n, int *group);

// A kept kind.
typedef struct ArgKey {
  const char *name;        // of the kernel, or NULL
  int arguments;
  bool symbolic, numbers, in_table;
  size_t n, nleaf;
  uint64_t *w;
  uint32_t *symbol;        // of each leaf
  int *group;              // of each leaf, see argkey_overlaps
} ArgKey;
static inline ArgKey *argkey_box(lua_State *L, int idx) {
  return face_check(L, idx, MT_KIND, "kind");
}

// kernlib.c: is all that cute.lang.reach noted, in the table at idx, as it was?
bool kernlib_unchanged(lua_State *L, int idx);

// argmatch.c
// The leaves that a program of this kind is handed for these arguments; an
// error that names the argument that does not fit.
const Leaf *argmatch_fit(const Walk *w, const ArgKey *k);
bool argkey_is_name(const char *s, size_t n);  // as a field is written: t.name
const char *argkey_path(const Walk *w);  // "kernel k: argument 2.scale[3]"

#endif
