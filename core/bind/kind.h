// The kind of a launch's arguments: what of them is part of a program, as
// words, and what each launch hands over, as leaves. kindlib.c walks over
// arguments, fitlib.c compares, kernlib.c and launchlib.c ask.
#ifndef CUTE_KIND_H
#define CUTE_KIND_H

#include "bind/face.h"
#include "gpu/memory.h"

#define MT_KIND "cute.kind"
#define MT_CONSTEXPR "cute.constexpr"
#define MT_SYMBOL "cute.symbol"

// The words are a list of values in preorder, each with a head: tag, and what
// the tag says of the bits above it. Addresses in words are those of objects
// that a kept kind keeps alive.
typedef enum KindTag {
  KIND_NIL = 1, KIND_FALSE, KIND_TRUE,
  KIND_NUMBER,   // more: DType; a leaf
  KIND_INT, KIND_FLOAT,  // constants: the number
  KIND_STRING,   // more: bytes; these, padded
  KIND_DTYPE,    // more: DType
  KIND_CONST,    // more: ConstKind; Dim, swizzle
  KIND_OBJECT, KIND_STREAM,  // address; of calls, whichever
  KIND_TABLE,    // more: fields; metatable; key and value each
  KIND_SAME,     // more: which of the tables so far
  KIND_LAYOUT,   // more: KindFlags; layout
  KIND_TENSOR,   // more: DType, KindFlags; align, layout; leaves
  KIND_TMA,      // more: bytes; these, of a TMA atom, padded; a leaf
  KIND_CODE,     // more: number of a function's code; what it captures
  KIND_OVERLAP   // at the end: the group of each leaf
} KindTag;
enum KindFlags { KIND_COORD = 1 << 8, KIND_WIDE = 1 << 9,
                 KIND_DYNAMIC = 1 << 10, KIND_COMPOSED = 1 << 11 };
#define KIND_HEAD(tag, more) ((uint64_t)(tag) | (uint64_t)(more) << 8)
#define KIND_TAG(w) ((KindTag)((w) & 255))
#define KIND_MORE(w) ((size_t)((w) >> 8))
#define KIND_DEPTH 32         // nesting of tables
#define KIND_LEAVES 1024      // what a launch hands over at most

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
  struct { const void *table; int key; } open[KIND_DEPTH];
  int hold;                // stack index of a list for what words name by
                           // address, or 0
  int buffers;             // that of a list for those behind pointers, by
                           // the leaf's number from 1 on, of TMA atoms by
                           // its negative; or 0
  int func;                // the kernel's function: its arguments become what
  int copies;              // it sees, copies of tables in a list here; or 0
  int calls;               // stack index of those that callslib.c asks, or 0
  const struct GpuStream *stream;  // that it met there, or NULL
  bool constant, symbolic; // numbers are the program's; some leaf has none
  bool numbers, in_table;  // some argument is or holds one; in a table
} Walk;

// kindlib.c
// Begins a walk; `launch` says what else the program is for.
Walk kind_begin(Ctx *cx, lua_State *L, uint64_t launch);
void kind_add(Walk *w, int idx);  // the next argument, at a stack index
void kind_put(Walk *w, uint64_t word);
void kind_value(Walk *w, int idx);   // a value in an argument
void kind_object(Walk *w, int idx);  // as one that is told by its address
bool kind_met(Walk *w, const void *p);  // again: its words are put
void callslib_walk(Walk *w, int idx);  // callslib.c: a function's
void kind_end(Walk *w);           // no more arguments
uint64_t kind_hash(const Walk *w);
// The name of the kernel that the call at a stack index is of, or NULL.
const char *kind_name(lua_State *L, int call);
// Byte offset and bytes of a leaf's memory; fails where a kernel cannot have
// it. (Whether the buffer is open its user asks.)
typedef struct LeafMemory { int64_t offset, bytes; } LeafMemory;
LeafMemory kind_memory(Ctx *cx, const Leaf *l);
// Where memory of some leaves is that of others: their numbers in group[]
// (0: alone, else alike for all that are connected); false: nowhere.
bool kind_overlaps(Ctx *cx, const Leaf *l, size_t n, int *group);

// A kept kind.
typedef struct KindBox {
  const char *name;        // of the kernel, or NULL
  int arguments;
  bool symbolic, numbers, in_table;
  size_t n, nleaf;
  uint64_t *w;
  uint32_t *symbol;        // of each leaf
  int *group;              // of each leaf, see kind_overlaps
} KindBox;
static inline KindBox *kind_box(lua_State *L, int idx) {
  return face_check(L, idx, MT_KIND, "kind");
}

// kernlib.c: what the kernel being traced sees of an argument is pushed.
void kernlib_see_number(const Walk *w, DType type);
void kernlib_see_layout(const Walk *w, Layout l, const TensorMarks *m,
                        bool wide);
// count: elements of the memory behind it.
void kernlib_see_tensor(const Walk *w, Tensor t, const TensorMarks *m,
                        bool wide, int64_t count);
void kernlib_see_tma(const Walk *w, const struct TmaBox *b);
// Is all that cute.lang.dependencies noted, in the table at idx, as it was?
bool kernlib_unchanged(lua_State *L, int idx);

// fitlib.c
// The leaves that a program of this kind is handed for these arguments; an
// error that names the argument that does not fit.
const Leaf *kind_fit(const Walk *w, const KindBox *k);
bool kind_is_name(const char *s, size_t n);  // as a field is written: t.name
const char *kind_path(const Walk *w);  // "kernel k: argument 2.scale[3]"

#endif
