// A parsed PTX module: functions, variables and instructions as written in the
// text, with names resolved. core/ptx/parse.c fills it.
#ifndef PTX_MODULE_H
#define PTX_MODULE_H

#include "base/base.h"

// State spaces of variables and parameters.
typedef enum PtxSpace {
  PTX_REG,
  PTX_PARAM,
  PTX_SHARED,
  PTX_GLOBAL,
  PTX_CONST,
  PTX_LOCAL
} PtxSpace;

// Kinds of fundamental types: .b, .u, .s, .f, .pred, and opaque types.
typedef enum PtxKind { PTX_B, PTX_U, PTX_S, PTX_F, PTX_P, PTX_OTHER } PtxKind;

typedef struct PtxType {
  uint8_t kind;   // PtxKind
  uint8_t lanes;  // 2 or 4 for .v2 and .v4 variables, otherwise 1
  uint16_t bits;  // width of a lane; 1 for .pred, 0 for PTX_OTHER
} PtxType;

// A variable, a parameter, or a range of registers such as `%r<n>`.
typedef struct PtxVar {
  const char *name;  // name; for a range of registers, its prefix
  PtxType type;
  uint8_t space;     // PtxSpace
  // .extern: dynamic shared memory, or a variable of another module
  bool external;
  bool pointer;      // whether this is a parameter declared with .ptr
  uint8_t ptr_space;  // PtxSpace that a .ptr parameter points to; PTX_REG:
                      // generic
  // alignment in bytes; for a .ptr parameter, the alignment of the pointee
  uint32_t align;
  // number of elements, 0 for `[]`; for a range, number of registers
  int64_t count;
  bool array, range;
  uint32_t line;
  uint32_t reg;      // number of the range's first register in its function
  // for a parameter: its byte offset from the start of the first parameter
  uint32_t offset;
  // initial values: index of the first one in PtxModule.inits, and their number
  uint32_t init, inits;
} PtxVar;

// Returns the bytes of one element of a variable, or 0 for textures.
static inline int64_t ptx_bytes(const PtxVar *v) {
  return v->type.bits / 8 * v->type.lanes;
}

// Returns the number of bytes of all elements of a variable together.
static inline int64_t ptx_size(const PtxVar *v) {
  return ptx_bytes(v) * v->count;
}

// Returns the lowest offset, not below `at`, with the alignment of variable v.
static inline int64_t ptx_aligned(const PtxVar *v, int64_t at) {
  int64_t own = ptx_bytes(v);
  int64_t align = v->align && !v->pointer ? v->align : own ? own : 1;
  return (at + align - 1) / align * align;
}

// One element of an initialiser: a number, or the address of a symbol plus a
// number (`value`).
typedef struct PtxInit {
  int64_t value;
  const char *symbol;  // NULL if the element is a number
} PtxInit;

typedef enum PtxArgKind {
  PTX_A_REG,      // register; value is its number in the function
  PTX_A_INT,      // integer in value
  PTX_A_FLOAT,    // float; value holds its bit pattern, of width `bits`
  PTX_A_VAR,      // a variable's address: value indexes PtxModule.vars
  PTX_A_LABEL,    // label; value is an index into PtxModule.labels
  PTX_A_FUNC,     // a function's name
  PTX_A_SPECIAL,  // a special register: name "%tid.x"
  PTX_A_SINK,     // the operand _, which discards a result
  PTX_A_ADDRESS,  // [base + value]: the first part is the base; an operand such
                  // as [map, {c0, c1}] has more parts
  PTX_A_VECTOR,   // {a, b}
  PTX_A_LIST,     // (a, b) of a call
  PTX_A_PAIR      // p|q
} PtxArgKind;

typedef struct PtxArg {
  uint8_t kind;    // PtxArgKind
  uint8_t bits;    // width of a float: 32 or 64
  bool negated;    // whether the operand is negated, as in !p
  uint8_t lane;    // 1 to 4: .x to .w of a vector register; 0: all of it
  // operands inside this operand: index of the first one in PtxModule.args
  // (part), and their number (parts)
  uint32_t part, parts;
  int64_t value;
  const char *name;
} PtxArg;

typedef struct PtxIns {
  const char *op;       // "ld.global.v4.f32", interned
  // label in front of a .branchtargets, .callprototype or .calltargets;
  // otherwise NULL
  const char *label;
  uint32_t line;        // line number in the PTX text
  uint32_t loc;         // index into PtxModule.locs, plus 1; 0: none
  int32_t guard;        // register of the guard predicate, or -1
  bool guard_not;
  // operands: index of the first one in PtxModule.args (arg), and their number
  // (args)
  uint32_t arg, args;
} PtxIns;

// A label: a position before an instruction of its function.
typedef struct PtxLabel {
  const char *name;
  uint32_t at;     // index into PtxModule.ins
  uint32_t line;
  uint32_t block;  // number of the `{ }` block that the label is local to
  // 1 + number of another label of the function with the same name, or 0
  uint32_t next;
} PtxLabel;

// A source position: `.loc file line column[, inlined_at ...]`.
typedef struct PtxLoc {
  uint32_t file, line, column;
  uint32_t parent;  // number + 1 in PtxModule.locs of the position where the
                    // call was inlined; 0: none
} PtxLoc;

typedef struct PtxFile {
  uint32_t index;
  const char *name;
} PtxFile;

typedef struct PtxReg {
  PtxType type;
  const char *name;
  int32_t number;  // number after the name, for .reg %r<9>; otherwise -1
} PtxReg;

typedef struct PtxFunc {
  const char *name;
  bool entry, body;
  uint32_t line, end;         // lines of the head and of the closing brace
  // Ranges of the module's arrays, each as first index and number of elements.
  uint32_t param, params;     // parameters, in PtxModule.vars
  uint32_t ret, rets;         // results of a .func, in PtxModule.vars
  uint32_t ins, n_ins;        // in PtxModule.ins
  uint32_t label, labels;     // in PtxModule.labels
  uint32_t reg, regs;         // in PtxModule.regs
  uint32_t var, vars;         // variables of the body, in PtxModule.vars
  uint32_t reqntid[3], maxntid[3], reqnctapercluster[3];  // 0: no directive
  // operands of the directives with these names; 0: the entry has no such
  // directive
  uint32_t maxnreg, minnctapersm, maxclusterrank;
  bool explicitcluster;
  // for an entry: 1 + the index in PtxModule.funcs of its copy without calls
  // (ptx_whole), or 0. For such a copy: 1 + its own index.
  uint32_t whole;
} PtxFunc;

// A declaration that hides a declaration of the same name in an outer scope.
typedef struct PtxHidden {
  const char *name;
  int32_t outer;  // index into PtxModule.vars of the hidden declaration, or -1
} PtxHidden;

// An operand with a name that may be declared later, as a label or a function.
// block, line: where the operand is.
typedef struct PtxPending {
  uint32_t block, line;
} PtxPending;

typedef struct PtxModule {
  uint32_t version;      // 10 * major + minor
  const char *target;    // "sm_90a"
  uint32_t address_size;
  Arena names;           // interned text
  struct PtxNames *table;
  VEC(PtxFunc) funcs;
  VEC(PtxVar) vars;
  VEC(PtxIns) ins;
  VEC(PtxArg) args;
  VEC(PtxLabel) labels;
  VEC(PtxLoc) locs;
  VEC(PtxFile) files;
  VEC(PtxReg) regs;
  VEC(PtxInit) inits;
  // Fields that only the parser uses.
  VEC(PtxHidden) hidden;
  VEC(PtxPending) pending;
  VEC(uint32_t) parents;  // for each block of a function, its outer block
} PtxModule;

// Parses n bytes of PTX into an empty module. Errors: ERR_PTX, whose message
// begins with "line N: ".
void ptx_parse(Ctx *cx, PtxModule *m, const char *text, size_t n);
void ptx_free(PtxModule *m);

// Returns the interned text of n bytes. Equal texts have one address.
const char *ptx_name(Ctx *cx, PtxModule *m, const char *s, size_t n);

// Returns the innermost position, in a chain of inlined calls, that is in a
// file of the user. If all positions are in headers of the toolkit, returns the
// innermost one. `loc` is the number of the chain's position in PtxModule.locs,
// plus 1.
const PtxLoc *ptx_loc(const PtxModule *m, uint32_t loc);
const PtxFile *ptx_file(const PtxModule *m, const PtxLoc *l);

// Reports whether the code at a position comes from a toolkit header whose name
// contains `header`, directly or through inlined calls.
bool ptx_through(const PtxModule *m, uint32_t loc, const char *header);

// Returns the file and line of source position `loc` as text such as
// "saxpy.cu:3", or NULL if there is no such position.
const char *ptx_place(Ctx *cx, const PtxModule *m, uint32_t loc);

#endif
// SPDX-License-Identifier: MIT
