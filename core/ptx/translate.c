// translate.c: the main part of a translation. Decides which registers become
// values and which become variables, finds the parameter into whose memory each
// pointer points, and emits regions and lines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/target.h"
#include "ptx/inside.h"

// ---- blocks ----

typedef struct Block {
  uint32_t first, n;   // index of the first instruction; number of instructions
                       // before the branch
  int32_t cond;        // the predicate register of its branch, or -1
  bool cond_not;
  uint32_t region, pos;  // region: number of the region that the block is
                         // emitted in; pos: position in the order of emission
} Block;

typedef struct Frame {
  PtxBuild *b;
  Block *block;
  ShapeBlock *graph;
  uint32_t n;
  uint32_t *parent;    // for each region, the region around it
  Shape shape;
} Frame;

static bool ends(const PtxIns *i) {
  return ptx_is(i->op, "ret") || ptx_is(i->op, "exit") || ptx_is(i->op, "bra");
}

// Rejects a branch to a label that is not visible.
_Noreturn static void no_label(const PtxBuild *b, const char *name) {
  const PtxFunc *f = b->f;
  for (uint32_t l = 0; l < f->labels; l++) {
    const PtxLabel *x = &b->m->labels.p[f->label + l];
    if (strcmp(x->name, name)) continue;
    ptx_fail(b, "no label '%s' is in scope here; that of line %u is local to "
             "its braces", name, (unsigned)x->line);
  }
  ptx_fail(b, "no label '%s' is in scope here", name);
}

// Splits the function at labels and after branches.
static void split(Frame *fr) {
  PtxBuild *b = fr->b;
  const PtxModule *m = b->m;
  const PtxFunc *f = b->f;
  uint32_t n = f->n_ins;
  uint8_t *leads = NEW(b->cx, uint8_t, n + 2);
  uint32_t *of = NEW(b->cx, uint32_t, n + 2);
  memset(leads, 0, n + 2);
  leads[0] = 1;
  for (uint32_t l = 0; l < f->labels; l++) {
    leads[m->labels.p[f->label + l].at - f->ins] = 1;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (ends(&m->ins.p[f->ins + i])) leads[i + 1] = 1;
  }
  leads[n] = 1;
  for (uint32_t i = 0; i <= n; i++) fr->n += leads[i];
  fr->block = NEW(b->cx, Block, fr->n);
  fr->graph = NEW(b->cx, ShapeBlock, fr->n);
  uint32_t k = 0;
  for (uint32_t i = 0; i <= n; i++) {
    if (leads[i]) fr->block[k++] = (Block){.first = f->ins + i, .cond = -1};
    of[i] = k - 1;
    if (i < n) fr->block[k - 1].n++;
  }
  for (k = 0; k < fr->n; k++) {
    Block *x = &fr->block[k];
    ShapeBlock *g = &fr->graph[k];
    // A block without a branch falls through to the next block; the last block
    // ends the thread.
    g->to[0] = k + 1 < fr->n ? k + 1 : SHAPE_NONE;
    g->to[1] = SHAPE_NONE;
    const PtxIns *last = x->n ? &m->ins.p[x->first + x->n - 1] : NULL;
    if (!last || !ends(last)) continue;
    x->n--;
    b->at = last;
    uint32_t next = g->to[0], to = SHAPE_NONE;
    if (ptx_is(last->op, "bra")) {
      const PtxArg *a = last->args == 1 ? &m->args.p[last->arg] : NULL;
      if (!a) ptx_fail(b, "'%s' cannot have %u operands", last->op, last->args);
      if (a->kind != PTX_A_LABEL && a->name) no_label(b, a->name);
      if (a->kind != PTX_A_LABEL) {
        ptx_fail(b, "'%s': a label is expected", last->op);
      }
      to = of[m->labels.p[a->value].at - f->ins];
    } else {
      if (last->args) ptx_fail(b, "'%s' takes no operands", last->op);
      to = fr->n - 1;  // an exit branches to the last block, which is empty
    }
    g->to[0] = to;
    if (last->guard >= 0) {
      x->cond = last->guard;
      x->cond_not = last->guard_not;
      g->to[1] = next;
    }
  }
  b->at = NULL;
}

// Turns the loop `W: try_wait p; @p bra D; bra W` into a wait. The try_wait
// must be the only instruction of a block that repeats until p is true.
static void waits(Frame *fr) {
  PtxBuild *b = fr->b;
  b->waits = NEW(b->cx, bool, b->m->ins.n + 1);
  memset(b->waits, 0, b->m->ins.n + 1);
  for (uint32_t k = 0; k < fr->n; k++) {
    Block *x = &fr->block[k];
    ShapeBlock *g = &fr->graph[k];
    const PtxIns *i = &b->m->ins.p[x->first];
    if (x->n != 1 || x->cond < 0 || i->guard >= 0 ||
        strncmp(i->op, "mbarrier.try_wait", 17) != 0) {
      continue;
    }
    const PtxArg *d = &b->m->args.p[i->arg];
    if (!i->args || d->kind != PTX_A_REG || d->value != x->cond) continue;
    uint32_t done = g->to[x->cond_not], again = g->to[!x->cond_not];
    // The branch back to the try_wait may pass through an empty block.
    if (again != k) {
      const ShapeBlock *e = &fr->graph[again];
      if (fr->block[again].n || fr->block[again].cond >= 0 || e->to[0] != k) {
        continue;
      }
    }
    if (done == k || done == SHAPE_NONE) continue;
    *g = (ShapeBlock){{done, SHAPE_NONE}};
    x->cond = -1;
    b->waits[x->first] = true;
  }
}

// Finds the region and the position in which each block is emitted.
static void regions(Frame *fr) {
  uint32_t n = 1, open = 0, pos = 0;
  fr->parent = NEW(fr->b->cx, uint32_t, fr->shape.n + 1);
  fr->parent[0] = 0;
  for (uint32_t k = 0; k < fr->n; k++) fr->block[k].region = SHAPE_NONE;
  for (size_t i = 0; i < fr->shape.n; i++) {
    const ShapeItem *it = &fr->shape.item[i];
    switch ((ShapeKind)it->kind) {
    case SHAPE_BLOCK:
      fr->block[it->b].region = open;
      fr->block[it->b].pos = pos++;
      break;
    case SHAPE_ONCE: case SHAPE_LOOP: case SHAPE_IF: case SHAPE_CASE:
      fr->parent[n] = open;
      open = n++;
      break;
    case SHAPE_ELSE:
      fr->parent[n] = fr->parent[open];
      open = n++;
      break;
    case SHAPE_END: open = fr->parent[open]; break;
    case SHAPE_BREAK: case SHAPE_EXIT: case SHAPE_NEXT: break;
    }
  }
}

// ---- registers ----

// Where a register is defined: the region, the block's position in the order of
// emission, and the index of the instruction in PtxModule.ins.
typedef struct Def {
  uint32_t region, pos, at;
} Def;

static bool is_dst(const PtxBuild *b, const PtxIns *i, uint32_t k) {
  const PtxRow *row = ptx_row(b, i);
  return row && k < row->dsts;
}

// Looks up each opcode once. Equal opcodes are interned at one address.
static void find_rows(PtxBuild *b) {
  enum { SEEN = 256 };
  struct { const char *op; const PtxRow *row; } seen[SEEN];
  memset(seen, 0, sizeof seen);
  b->row = NEW(b->cx, const PtxRow *, b->f->n_ins + 1);
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const char *op = b->m->ins.p[b->f->ins + k].op;
    size_t at = ((uintptr_t)op >> 4) % SEEN;
    if (seen[at].op != op) {
      seen[at].op = op;
      seen[at].row = ptxrow_find(op);
    }
    b->row[k] = seen[at].row;
  }
}

typedef struct Scan {
  Frame *fr;
  Def *def;
  uint32_t block, at;  // block and position of the current instruction
  bool guarded;
} Scan;

static void scan_def(Scan *s, const PtxArg *a) {
  for (uint32_t k = 0; k < a->parts; k++) {
    scan_def(s, &s->fr->b->m->args.p[a->part + k]);
  }
  if (a->kind != PTX_A_REG) return;
  const Block *x = &s->fr->block[s->block];
  PtxSlot *slot = &s->fr->b->slot[a->value];
  if (slot->defs++ || s->guarded) slot->variable = true;
  s->def[a->value] = (Def){x->region, x->pos, s->at};
}

static void scan_reg(Scan *s, int64_t reg) {
  const Def *d = &s->def[reg];
  const Block *x = &s->fr->block[s->block];
  uint32_t r = x->region;
  while (r != d->region && r != 0) r = s->fr->parent[r];
  bool behind = d->pos < x->pos || (d->pos == x->pos && d->at < s->at);
  PtxSlot *slot = &s->fr->b->slot[reg];
  slot->read = true;
  if (r != d->region || !behind || !slot->defs) slot->variable = true;
}

static void scan_use(Scan *s, const PtxArg *a) {
  for (uint32_t k = 0; k < a->parts; k++) {
    scan_use(s, &s->fr->b->m->args.p[a->part + k]);
  }
  if (a->kind == PTX_A_REG) scan_reg(s, a->value);
}

// Returns the index of the group of registers (PtxPool) for registers of `bits`
// bits with elements of type t; -1: there are too many groups.
static int pool_of(PtxBuild *b, DType t, int bits) {
  for (int k = 0; k < b->pools; k++) {
    if (b->pool[k].type == t && b->pool[k].bits == bits) return k;
  }
  if (b->pools == POOLS) return -1;
  b->pool[b->pools] = (PtxPool){.type = t, .bits = bits};
  return b->pools++;
}

// Puts the registers of operand a into a group (PtxPool) with elements of type
// t.
static void give_home(PtxBuild *b, const PtxArg *a, DType t) {
  for (uint32_t k = 0; k < a->parts && a->kind == PTX_A_VECTOR; k++) {
    give_home(b, &b->m->args.p[a->part + k], t);
  }
  if (a->kind != PTX_A_REG) return;
  PtxSlot *slot = &b->slot[a->value];
  int bits = b->m->regs.p[b->f->reg + (uint32_t)a->value].type.bits;
  if (slot->home >= 0 || (bits != 32 && bits != 64)) return;
  if (t == DT_NONE || dtype_bits(t) < 8 || bits % dtype_bits(t)) {
    t = bits == 64 ? DT_U64 : DT_U32;
  }
  int pool = pool_of(b, t, bits);
  if (pool < 0) pool = pool_of(b, bits == 64 ? DT_U64 : DT_U32, bits);
  slot->pool = (uint8_t)pool;
  slot->home = (int32_t)b->pool[pool].n++;
}

// Marks registers that a tcgen05.ld writes.
static void mark_loaded(PtxBuild *b, const PtxArg *a) {
  for (uint32_t k = 0; k < a->parts; k++) {
    mark_loaded(b, &b->m->args.p[a->part + k]);
  }
  if (a->kind == PTX_A_REG) b->slot[a->value].loaded = true;
}

// Assigns elements of register groups (PtxPool) to the registers that
// instructions take without a conversion. MMAs come first, because they know
// the element types, then ldmatrix.
static void homes(PtxBuild *b) {
  pool_of(b, DT_U32, 32);
  pool_of(b, DT_U64, 64);
  // Registers of 128 bits are stored as pairs of 64-bit elements.
  for (uint32_t r = 0; r < b->f->regs; r++) {
    if (b->m->regs.p[b->f->reg + r].type.bits != 128) continue;
    int pool = pool_of(b, DT_U64, 128);
    b->slot[r].pool = (uint8_t)pool;
    b->slot[r].home = (int32_t)b->pool[pool].n++;
  }
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = b->f->ins; i < b->f->ins + b->f->n_ins; i++) {
      const PtxIns *ins = &b->m->ins.p[i];
      const PtxRow *row = ptx_row(b, ins);
      if (!row || !row->homes) continue;
      for (uint32_t k = 0; k < ins->args; k++) {
        const PtxArg *a = &b->m->args.p[ins->arg + k];
        DType t = ptxrow_elements(b, ins, k);
        bool plain = a->kind != PTX_A_VECTOR && row->dsts == 1 &&
                     strncmp(ins->op, "wgmma", 5) == 0 &&
                     !ptxrow_metadata(ins, k);
        if (!plain && (t != DT_NONE || pass)) give_home(b, a, t);
        if (pass && k == 0 && row->k == OP_TCLD) mark_loaded(b, a);
      }
    }
  }
}

// Finds the registers that can be values instead of variables. Such a register
// has one unguarded definition, which is emitted before all uses, in a region
// around them.
static void scan(Frame *fr) {
  const PtxModule *m = fr->b->m;
  Scan s = {.fr = fr, .def = NEW(fr->b->cx, Def, fr->b->f->regs + 1)};
  memset(s.def, 0, (fr->b->f->regs + 1) * sizeof *s.def);
  for (int pass = 0; pass < 2; pass++) {
    for (s.block = 0; s.block < fr->n; s.block++) {
      const Block *x = &fr->block[s.block];
      if (x->region == SHAPE_NONE) continue;
      for (uint32_t i = x->first; i < x->first + x->n; i++) {
        const PtxIns *ins = &m->ins.p[i];
        s.at = i;
        s.guarded = ins->guard >= 0;
        if (pass && ins->guard >= 0) scan_reg(&s, ins->guard);
        for (uint32_t k = 0; k < ins->args; k++) {
          const PtxArg *a = &m->args.p[ins->arg + k];
          bool address = a->kind == PTX_A_ADDRESS;
          if (is_dst(fr->b, ins, k) && !address) {
            if (!pass) scan_def(&s, a);
          } else if (pass) {
            scan_use(&s, a);
          }
        }
      }
      s.at = x->first + x->n;
      if (pass && x->cond >= 0) scan_reg(&s, x->cond);
    }
  }
}

// ---- registers that may have no value ----

// A set of registers, 64 in a word.
typedef struct RegSet {
  uint64_t *word;
  uint32_t n;  // words
} RegSet;

static bool in_set(const RegSet *s, int64_t reg) {
  return s->word[reg / 64] >> (reg & 63) & 1;
}

static void set_defs(const PtxBuild *b, RegSet *s, const PtxArg *a) {
  for (uint32_t k = 0; k < a->parts; k++) {
    set_defs(b, s, &b->m->args.p[a->part + k]);
  }
  if (a->kind == PTX_A_REG) s->word[a->value / 64] |= UINT64_C(1)
                                                      << (a->value & 63);
}

static void mark_early(const PtxBuild *b, const RegSet *s, const PtxArg *a) {
  for (uint32_t k = 0; k < a->parts; k++) {
    mark_early(b, s, &b->m->args.p[a->part + k]);
  }
  if (a->kind != PTX_A_REG || in_set(s, a->value)) return;
  b->slot[a->value].early = true;
}

// Adds to s the registers that block x defines. If `mark` is set, marks
// registers that x reads before they are in s.
static void pass_block(Frame *fr, const Block *x, RegSet *s, bool mark) {
  const PtxBuild *b = fr->b;
  for (uint32_t i = x->first; i < x->first + x->n; i++) {
    const PtxIns *ins = &b->m->ins.p[i];
    const PtxArg *arg = &b->m->args.p[ins->arg];
    PtxArg guard = {.kind = PTX_A_REG, .value = ins->guard};
    if (mark && ins->guard >= 0) mark_early(b, s, &guard);
    for (int dst = 0; dst < 2; dst++) {
      for (uint32_t k = 0; k < ins->args; k++) {
        bool writes = is_dst(b, ins, k) && arg[k].kind != PTX_A_ADDRESS;
        if (dst && writes && ins->guard < 0) set_defs(b, s, &arg[k]);
        if (!dst && !writes && mark) mark_early(b, s, &arg[k]);
      }
    }
  }
  PtxArg cond = {.kind = PTX_A_REG, .value = x->cond};
  if (mark && x->cond >= 0) mark_early(b, s, &cond);
}

// Marks the registers that an instruction may read before any instruction
// writes them. A register has a value at the start of a block if it has a value
// at the end of all preceding blocks.
static void find_early(Frame *fr) {
  const PtxBuild *b = fr->b;
  uint32_t n = b->f->regs / 64 + 1;
  uint64_t *all = NEW(b->cx, uint64_t, (size_t)n * (fr->n + 1));
  memset(all, 0xff, sizeof *all * n * (fr->n + 1));
  memset(all, 0, sizeof *all * n);
  RegSet s = {all + (size_t)n * fr->n, n};
  for (int pass = 0, changed = 1; pass < 2; pass += !changed) {
    bool mark = !changed;
    changed = 0;
    for (uint32_t k = 0; k < fr->n; k++) {
      if (fr->block[k].region == SHAPE_NONE) continue;
      memcpy(s.word, all + (size_t)n * k, sizeof *all * n);
      pass_block(fr, &fr->block[k], &s, mark);
      for (int q = 0; q < 2; q++) {
        uint32_t to = fr->graph[k].to[q];
        for (uint32_t w = 0; to != SHAPE_NONE && w < n; w++) {
          uint64_t *at = all + (size_t)n * to + w, now = *at & s.word[w];
          changed |= now != *at;
          *at = now;
        }
      }
    }
    if (mark) break;
  }
}

// ---- parameters that pointers point into ----

static int32_t join(int32_t a, int32_t b) {
  if (a == UNSEEN) return b;
  if (b == UNSEEN || a == b) return a;
  return MIXED;
}

// Combines roots: a root is the parameter into whose memory a value points
// (PtxSlot.root). Returns the root of the sum of two values with roots a and b.
static int32_t root_sum(int32_t a, int32_t b) {
  if (a == PLAIN) return b;
  if (b == PLAIN) return a;
  return a == UNSEEN || b == UNSEEN ? UNSEEN : MIXED;
}

// Reports whether an instruction copies an address.
static bool copies(const PtxIns *i) {
  return ptx_is(i->op, "mov") || ptx_is(i->op, "cvta") ||
         strcmp(i->op, "cvt.u64.u32") == 0;
}

// Returns the root (PtxSlot.root) of the value that an instruction computes:
// the parameter into whose memory it points.
static int32_t root_result(const PtxBuild *b, const PtxIns *i) {
  const PtxArg *a = &b->m->args.p[i->arg];
  if (i->args < 2) return PLAIN;
  if (ptx_is(i->op, "ld") && strstr(i->op, ".param")) {
    const PtxArg *base = &b->m->args.p[a[1].part];
    if (a[1].kind != PTX_A_ADDRESS || base->kind != PTX_A_VAR) return PLAIN;
    const PtxVar *v = &b->m->vars.p[base->value];
    if (a[1].value < 0 || a[1].value > UINT16_MAX) return PLAIN;
    int64_t at = v->offset + a[1].value;
    bool wide = strstr(i->op, "64") != NULL;
    return wide ? ptx_bound_pointer(b, at) : PLAIN;
  }
  if (copies(i)) {
    return ptx_root(b, &a[1]);
  }
  if (i->args < 3) return PLAIN;
  if (ptx_is(i->op, "add")) {
    return root_sum(ptx_root(b, &a[1]), ptx_root(b, &a[2]));
  }
  if (ptx_is(i->op, "sub")) {
    int32_t x = ptx_root(b, &a[1]), y = ptx_root(b, &a[2]);
    if (x >= 0 && x == y) return PLAIN;
    return y == PLAIN || y == UNSEEN ? x : MIXED;
  }
  if (ptx_is(i->op, "mad")) return i->args < 4 ? PLAIN : ptx_root(b, &a[3]);
  if (ptx_is(i->op, "selp")) {
    return join(ptx_root(b, &a[1]), ptx_root(b, &a[2]));
  }
  return PLAIN;
}

// Returns the root (PtxSlot.root) of register r if instruction i writes r. Only
// 64-bit registers hold addresses, because an address of shared memory is an
// offset. The exception is the address of a tensor map that is a parameter. A
// mov may put such an address into a register of 32 bits.
static int32_t root_written(const PtxBuild *b, const PtxIns *i, uint32_t r) {
  PtxType own = b->m->regs.p[b->f->reg + r].type;
  if (own.kind == PTX_F || own.bits < 32) return PLAIN;
  int32_t root = root_result(b, i);
  if (own.bits == 64 || root == UNSEEN) return root;
  return root >= 0 && b->bound[root].map && ptx_is(i->op, "mov") ? root : PLAIN;
}

static void roots(PtxBuild *b) {
  for (uint32_t r = 0; r < b->f->regs; r++) b->slot[r].root = UNSEEN;
  for (bool changed = true; changed; ) {
    changed = false;
    for (uint32_t k = 0; k < b->f->n_ins; k++) {
      const PtxIns *i = &b->m->ins.p[b->f->ins + k];
      const PtxRow *row = ptx_row(b, i);
      if (!row || !row->dsts || !i->args) continue;
      const PtxArg *a = &b->m->args.p[i->arg];
      if (a->kind != PTX_A_REG) continue;
      PtxSlot *s = &b->slot[a->value];
      if (s->home >= 0) continue;
      int32_t now = join(s->root, root_written(b, i, (uint32_t)a->value));
      changed = changed || now != s->root;
      s->root = now;
    }
  }
  for (uint32_t r = 0; r < b->f->regs; r++) {
    if (b->slot[r].root == UNSEEN) b->slot[r].root = PLAIN;
  }
}

// Marks registers that may point into a tensor map that is a parameter, after
// its first byte. Such registers are results of sums, and copies of them.
static void find_inside(PtxBuild *b) {
  for (bool changed = true; changed; ) {
    changed = false;
    for (uint32_t k = 0; k < b->f->n_ins; k++) {
      const PtxIns *i = &b->m->ins.p[b->f->ins + k];
      const PtxArg *a = &b->m->args.p[i->arg];
      if (i->args < 2 || !is_dst(b, i, 0) || a->kind != PTX_A_REG) continue;
      PtxSlot *s = &b->slot[a->value];
      if (s->root < 0 || !b->bound[s->root].map || s->inside) continue;
      s->inside = !copies(i) || (a[1].kind == PTX_A_REG &&
                                 b->slot[a[1].value].inside);
      changed = changed || s->inside;
    }
  }
}

// ---- memory ----

// Reports whether the function has a barrier.red or bar.red, which needs a word
// of shared memory.
static bool reduces(const PtxBuild *b) {
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const PtxIns *i = &b->m->ins.p[b->f->ins + k];
    if (strncmp(i->op, "bar", 3) == 0 && strstr(i->op, ".red.")) return true;
  }
  return false;
}

// Reports whether the function reads a special register that holds an address
// of reserved shared memory.
static bool names_reserved(const PtxBuild *b) {
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const PtxIns *i = &b->m->ins.p[b->f->ins + k];
    const PtxArg *a = &b->m->args.p[i->arg];
    if (i->args == 2 && a[1].kind == PTX_A_SPECIAL &&
        strncmp(a[1].name, "%reserved_smem", 14) == 0) {
      return true;
    }
  }
  return false;
}

// Reports whether any instruction reads or writes the condition code's carry.
static bool carries(const PtxBuild *b) {
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const char *op = b->m->ins.p[b->f->ins + k].op;
    if (strstr(op, ".cc") || strncmp(op, "addc", 4) == 0 ||
        strncmp(op, "subc", 4) == 0 || strncmp(op, "madc", 4) == 0) {
      return true;
    }
  }
  return false;
}

// Reports whether variable k is in the shared memory of f: it belongs to f, or
// to the module.
static bool in_shared(const PtxModule *m, const PtxFunc *f, size_t k) {
  if (m->vars.p[k].space != PTX_SHARED) return false;
  if (k >= f->var && k < f->var + f->vars) return true;
  for (size_t q = 0; q < m->funcs.n; q++) {
    const PtxFunc *g = &m->funcs.p[q];
    if (k >= g->var && k < g->var + g->vars) return false;
  }
  return true;
}

// Assigns addresses to shared variables of f, from byte `at` on. With
// `external`, these are the external variables, otherwise all others. Stores
// the offset of variable k in at_of[k]. Returns the first byte after the last
// variable.
static int64_t lay_out(const PtxModule *m, const PtxFunc *f, bool external,
                       int64_t at, int64_t *at_of) {
  for (size_t k = 0; k < m->vars.n; k++) {
    const PtxVar *v = &m->vars.p[k];
    if (v->external != external || !in_shared(m, f, k)) continue;
    at = ptx_aligned(v, at);
    if (at_of) at_of[k] = at;
    if (!external) at += ptx_size(v);
  }
  return at;
}

int64_t ptx_shared(const PtxModule *m, const PtxFunc *f, bool *dynamic) {
  *dynamic = false;
  for (size_t k = 0; k < m->vars.n; k++) {
    if (m->vars.p[k].external && in_shared(m, f, k)) *dynamic = true;
  }
  return lay_out(m, f, false, 0, NULL);
}

// Lays out shared memory: the function's variables in the order of their
// declarations, then dynamic memory.
static void shared_memory(PtxBuild *b, int64_t dynamic) {
  const PtxModule *m = b->m;
  b->shared = NEW(b->cx, int64_t, m->vars.n + 1);
  for (size_t k = 0; k < m->vars.n; k++) b->shared[k] = -1;
  int64_t at = lay_out(m, b->f, false, 0, b->shared);
  at = lay_out(m, b->f, true, at, b->shared);
  b->reduced = (at + dynamic + 3) / 4 * 4;
  int64_t bytes = reduces(b) ? b->reduced + 4 : at + dynamic;
  b->reserved = names_reserved(b) ? (bytes + 15) / 16 * 16 : -1;
  if (b->reserved >= 0) bytes = b->reserved + RESERVED_BYTES;
  if (bytes == 0) return;
  Mem mem = {.space = SP_SMEM, .type = DT_U8, .align = 1024, .count = bytes,
             .ptx = true};
  mem.name = ir_text(b->cx, b->fn, "shared memory", 13);
  b->smem = ir_mem(b->cx, b->fn, mem);
  b->fn->smem_bytes = bytes;
}

// Closes a region. Gives every IF of the IR an ELSE, because the simulator
// relies on it.
static void close_region(PtxBuild *b, bool has_else) {
  Fn *fn = b->fn;
  Ref head = fn->region.p[fn->region.n - 1];
  if (!has_else && ir_get(fn, head)->op == OP_IF) ir_else(b->cx, fn);
  ir_close(b->cx, fn);
}

// Clears the barriers in reserved shared memory: 5 words, for the cooperative
// groups of 2, 4, 8, 16 and 32 warps. On a GPU, their initial contents are
// unknown, and each warp clears its bit before it uses the bit.
static void clear_reserved(PtxBuild *b) {
  if (b->reserved < 0) return;
  Ctx *cx = b->cx;
  Fn *fn = b->fn;
  Ref zero = ir_int(cx, fn, DT_U32, 0), first = ir_int(cx, fn, DT_BOOL, 1);
  static const SReg tid[] = {SR_TID_X, SR_TID_Y, SR_TID_Z};
  for (int k = 0; k < 3; k++) {
    Ref own = ir_op2(cx, fn, OP_EQ, ir_sreg(cx, fn, tid[k]),
                     ir_int(cx, fn, DT_I32, 0));
    first = ir_op2(cx, fn, OP_AND, first, own);
  }
  ir_open(cx, fn, (Ins){.op = OP_IF, .a = {first}});
  for (int k = 0; k < 5; k++) {
    Ref at = ir_int(cx, fn, DT_I32, b->reserved + RESERVED_BYTES / 2 + 4 * k);
    ir_emit(cx, fn, (Ins){.op = OP_ST, .a = {b->smem, at, zero}});
  }
  close_region(b, false);
  ir_emit(cx, fn, (Ins){.op = OP_BAR});
}

// Names the memory object of p after its parameter or variable.
static void name_object(PtxBuild *b, const PtxBound *p) {
  const char *name = p->var ? b->m->vars.p[p->var - 1].name : NULL;
  for (uint32_t k = 0; k < b->f->params; k++) {
    const PtxVar *v = &b->m->vars.p[b->f->param + k];
    if (!p->var && p->offset >= v->offset) name = v->name;
  }
  Mem *m = &b->fn->mem.p[ir_get(b->fn, p->mem)->imm];
  if (!name) return;
  m->name = ir_text(b->cx, b->fn, name, strlen(name));
  if (m->arg != NO_ARG) b->fn->arg.p[m->arg].name = m->name;
}

static void objects(PtxBuild *b) {
  b->object = NEW(b->cx, Ref, b->nbound + 1);
  for (size_t k = 0; k < b->nbound; k++) {
    b->object[k] = 0;
    if (!b->bound[k].mem) continue;
    name_object(b, &b->bound[k]);
    Mem mem = *ir_memof(b->fn, b->bound[k].mem);
    if (mem.space != SP_GMEM) continue;
    if (mem.count >= 0) mem.count = mem.count * dtype_bits(mem.type) / 8;
    mem.type = DT_U8;
    mem.ptx = true;
    // Drop the layout's text, because the layout counts elements and the object
    // consists of bytes.
    mem.layout = 0;
    b->object[k] = ir_mem(b->cx, b->fn, mem);
  }
}

static DType slot_type(const PtxBuild *b, uint32_t reg) {
  PtxType t = b->m->regs.p[b->f->reg + reg].type;
  if (b->slot[reg].root >= 0) return DT_I64;
  return op_dtype(t);
}

// Returns an undefined value for register r, which no instruction wrote.
static Ref no_value(PtxBuild *b, DType t, const PtxReg *r) {
  const char *name = r->number < 0 ? r->name
    : arena_printf(b->cx, &b->cx->scratch, "%s%d", r->name, (int)r->number);
  uint32_t at = b->fn->at;
  b->fn->at = 0;  // The load of the undefined value has no source line.
  Mem m = {.space = SP_RMEM, .type = t, .align = 16, .count = 1, .ptx = true};
  m.name = ir_text(b->cx, b->fn, name, strlen(name));
  Ref mem = ir_mem(b->cx, b->fn, m);
  Ref v = ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = (uint8_t)t,
    .a = {mem, ir_int(b->cx, b->fn, DT_I32, 0)}});
  b->fn->at = at;
  return v;
}

static void variables(PtxBuild *b) {
  for (int k = 0; k < b->pools; k++) {
    PtxPool *p = &b->pool[k];
    if (!p->n) continue;
    Mem m = {.space = SP_RMEM, .type = p->type, .align = 16, .ptx = true,
             .count = p->n * (p->bits / dtype_bits(p->type))};
    p->mem = ir_mem(b->cx, b->fn, m);
  }
  if (carries(b)) {
    b->carry = ir_emit(b->cx, b->fn, (Ins){.op = OP_VAR, .type = DT_BOOL,
      .a = {ir_int(b->cx, b->fn, DT_BOOL, 0)}});
  }
  for (uint32_t r = 0; r < b->f->regs; r++) {
    PtxSlot *s = &b->slot[r];
    if (!s->variable || s->home >= 0) continue;
    DType t = slot_type(b, r);
    const PtxReg *reg = &b->m->regs.p[b->f->reg + r];
    Ref first = s->early ? no_value(b, t, reg)
              : dtype_is_float(t) ? ir_float(b->cx, b->fn, t, 0)
                                  : ir_int(b->cx, b->fn, t, 0);
    s->var = ir_emit(b->cx, b->fn, (Ins){.op = OP_VAR, .type = (uint8_t)t,
                                         .a = {first}});
    ir_name(b->cx, b->fn, s->var, reg->name);
  }
}

// ---- instructions ----

// A type among the modifiers, and the corresponding types of a register (kind,
// bits) and of the register's elements (elem).
typedef struct TypeName {
  const char *name;
  uint8_t kind;   // PtxKind
  uint16_t bits;
  uint8_t elem;   // DType
} TypeName;

static const TypeName type_names[] = {
  {"b8", PTX_B, 8, DT_U8}, {"b16", PTX_B, 16, DT_U16},
  {"b32", PTX_B, 32, DT_U32}, {"b64", PTX_B, 64, DT_U64},
  {"b128", PTX_B, 128, DT_U128}, {"u8", PTX_U, 8, DT_U8},
  {"u16", PTX_U, 16, DT_U16}, {"u32", PTX_U, 32, DT_U32},
  {"u64", PTX_U, 64, DT_U64}, {"s8", PTX_S, 8, DT_I8},
  {"s16", PTX_S, 16, DT_I16}, {"s32", PTX_S, 32, DT_I32},
  {"s64", PTX_S, 64, DT_I64}, {"f32", PTX_F, 32, DT_F32},
  {"f64", PTX_F, 64, DT_F64}, {"pred", PTX_P, 1, DT_BOOL},
  {"f16", PTX_F, 16, DT_F16}, {"bf16", PTX_F, 16, DT_BF16},
  {"f32x2", PTX_B, 64, DT_F32},
  {"bf16x2", PTX_B, 32, DT_BF16}, {"f16x2", PTX_B, 32, DT_F16},
  {"s16x2", PTX_B, 32, DT_I16}, {"u16x2", PTX_B, 32, DT_U16},
  {"tf32", PTX_B, 32, DT_TF32}, {"e4m3x2", PTX_B, 16, DT_E4M3},
  {"e5m2x2", PTX_B, 16, DT_E5M2}};

static const TypeName *type_named(const char *name) {
  for (size_t k = 0; k < sizeof type_names / sizeof *type_names; k++) {
    if (strcmp(name, type_names[k].name) == 0) return &type_names[k];
  }
  return NULL;
}

static void take_apart(PtxOp *o) {
  const char *p = o->i->op;
  if (strlen(p) >= sizeof o->text) ptx_fail(o->b, "opcode '%s'", p);
  strcpy(o->text, p);
  for (char *c = o->text; *c; c++) {
    if (*c != '.') continue;
    *c = 0;
    if (o->n == PTX_MODS) ptx_fail(o->b, "opcode '%s'", p);
    o->mod[o->n++] = c + 1;
  }
  for (int k = 0; k < o->n && o->types < 4; k++) {
    const TypeName *t = type_named(o->mod[k]);
    if (!t) continue;
    o->type[o->types] = (PtxType){t->kind, 1, t->bits};
    o->elem[o->types] = (DType)t->elem;
    o->pair[o->types++] = t->bits == 2 * dtype_bits((DType)t->elem);
    o->used |= 1u << k;
  }
}

static Ref guard_of(PtxBuild *b, const PtxIns *i) {
  PtxOp o = {.b = b, .i = i};
  PtxArg a = {.kind = PTX_A_REG, .value = i->guard, .negated = i->guard_not};
  return op_pred(&o, &a);
}

static void line_of(PtxBuild *b, const PtxIns *i, const char *file) {
  if (i->loc && !(b->flags & PTX_LINES)) {
    const PtxLoc *l = ptx_loc(b->m, i->loc);
    const PtxFile *f = ptx_file(b->m, l);
    if (f) {
      char name[512];
      snprintf(name, sizeof name, "@%s", f->name);
      ir_at(b->cx, b->fn, name, l->line);
      return;
    }
  }
  ir_at(b->cx, b->fn, file, i->line);
}

// Handles an instruction of PTX with .sc or .volatile. Records that the IR
// instructions from `from` on, into which it was translated, order memory more
// weakly.
static void note_order(PtxBuild *b, const PtxRow *row, const char *op,
                       Ref from) {
  if (row->fidelity != FI_WEAKER) return;
  bool fence = row->emit == row_fence;
  if (!fence && !strstr(op, ".volatile")) return;
  for (Ref r = from; r < b->fn->ins.n; r++) {
    Op made = (Op)ir_get(b->fn, r)->op;
    bool access = op_rows[made].point == POINT_ORDERED || made == OP_COPY;
    if (made == OP_FENCE || (!fence && access))
      ir_note_fidelity(b->cx, b->fn, r, FI_WEAKER);
  }
}

// Rejects instruction i if the module's target lacks it. The IR instructions
// from `from` on, into which i was translated, determine what it needs.
static void check_target(PtxBuild *b, const PtxIns *i, Ref from) {
  int sm = atoi(b->m->target + strlen("sm_"));
  for (Ref r = from; r < b->fn->ins.n; r++) {
    Need n = target_need(b->fn, ir_get(b->fn, r));
    const char *why = target_lacks(b->cx, &n, sm, b->m->target);
    if (why) ptx_fail(b, "'%s' %s", i->op, why);
  }
}

static void instruction(PtxBuild *b, const PtxIns *i, const char *file) {
  if (i->label) return;  // .callprototype
  b->at = i;
  line_of(b, i, file);
  const PtxRow *row = ptx_row(b, i);
  if (!row) ptx_fail(b, "'%s' is not modelled", i->op);
  PtxOp o = {.b = b, .i = i, .arg = &b->m->args.p[i->arg]};
  take_apart(&o);
  ptxrow_check(&o, row);
  if (i->guard >= 0) {
    Ref p = guard_of(b, i);
    ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {p}});
  }
  Ref from = (Ref)b->fn->ins.n;
  row->emit(&o, row->k);
  note_order(b, row, i->op, from);
  check_target(b, i, from);
  if (i->guard >= 0) close_region(b, false);
  for (int k = 0; k < o.n; k++) {
    if (!(o.used >> k & 1)) {
      ptx_fail(b, "'%s' is not modelled: modifier .%s", i->op, o.mod[k]);
    }
  }
}

// ---- regions ----

static Ref condition(Frame *fr, const ShapeItem *it) {
  PtxBuild *b = fr->b;
  const Block *x = &fr->block[it->b];
  if (it->when == SHAPE_ALWAYS) return ir_int(b->cx, b->fn, DT_BOOL, 1);
  PtxOp o = {.b = b};
  bool negated = (it->when == SHAPE_FALSE) != x->cond_not;
  PtxArg a = {.kind = PTX_A_REG, .value = x->cond, .negated = negated};
  return op_pred(&o, &a);
}

// Opens the region of an item. `next` is the variable that holds the next block
// of a dispatch loop.
static void open_region(Frame *fr, const ShapeItem *it, Ref next) {
  Ctx *cx = fr->b->cx;
  Fn *fn = fr->b->fn;
  Ins i = {.op = it->kind == SHAPE_ONCE ? OP_ONCE
               : it->kind == SHAPE_LOOP ? OP_LOOP : OP_IF};
  if (it->kind == SHAPE_IF) {
    i.a[0] = condition(fr, it);
  } else if (it->kind == SHAPE_CASE) {
    Ref now = ir_emit(cx, fn, (Ins){.op = OP_VGET, .type = DT_I32,
                                    .a = {next}});
    i.a[0] = ir_op2(cx, fn, OP_EQ, now, ir_int(cx, fn, DT_I32, it->b));
  }
  ir_open(cx, fn, i);
  // Forget the last wait for tcgen05.ld: in a loop, a load of the next
  // iteration may follow the wait.
  if (it->kind == SHAPE_LOOP) fr->b->waited = 0;
}

// Emits a BREAK. The levels of an OP_BREAKIF include IFs, but those of a BREAK
// do not.
static void break_out(Frame *fr, const ShapeItem *it) {
  Fn *fn = fr->b->fn;
  uint32_t left = it->levels;
  int64_t all = 0;
  for (size_t q = fn->region.n; q-- > 0 && left; all++) {
    if (ir_get(fn, fn->region.p[q])->op != OP_IF) left--;
  }
  Ref p = condition(fr, it);
  ir_emit(fr->b->cx, fn, (Ins){.op = OP_BREAKIF, .a = {p}, .imm = all});
}

// Sets `next`, the variable that holds the next block of a dispatch loop.
static void set_next(Frame *fr, const ShapeItem *it, Ref next) {
  Ctx *cx = fr->b->cx;
  Fn *fn = fr->b->fn;
  Ref to = ir_int(cx, fn, DT_I32, it->to);
  if (it->when != SHAPE_ALWAYS) {
    Ref was = ir_emit(cx, fn, (Ins){.op = OP_VGET, .type = DT_I32,
                                    .a = {next}});
    to = ir_op3(cx, fn, OP_SEL, condition(fr, it), to, was);
  }
  ir_emit(cx, fn, (Ins){.op = OP_VSET, .a = {next, to}});
}

static void emit_block(Frame *fr, const Block *x, const char *file) {
  for (uint32_t i = 0; i < x->n; i++) {
    instruction(fr->b, &fr->b->m->ins.p[x->first + i], file);
  }
}

static void emit(Frame *fr, const char *file) {
  Ctx *cx = fr->b->cx;
  Fn *fn = fr->b->fn;
  Ref next = 0;
  size_t depth = 0;
  bool *has_else = NEW(cx, bool, fr->shape.n + 1);
  memset(has_else, 0, fr->shape.n + 1);
  if (fr->shape.dispatch) {
    next = ir_emit(cx, fn, (Ins){.op = OP_VAR, .type = DT_I32,
                                 .a = {ir_int(cx, fn, DT_I32, 0)}});
  }
  for (size_t k = 0; k < fr->shape.n; k++) {
    const ShapeItem *it = &fr->shape.item[k];
    switch ((ShapeKind)it->kind) {
    case SHAPE_BLOCK: emit_block(fr, &fr->block[it->b], file); break;
    case SHAPE_ONCE: case SHAPE_LOOP: case SHAPE_IF: case SHAPE_CASE:
      open_region(fr, it, next);
      depth++;
      break;
    case SHAPE_ELSE:
      ir_else(cx, fn);
      has_else[depth - 1] = true;
      break;
    case SHAPE_END:
      close_region(fr->b, has_else[--depth]);
      has_else[depth] = false;
      break;
    case SHAPE_BREAK: break_out(fr, it); break;
    case SHAPE_EXIT:
      if (depth == 0) break;
      ir_emit(cx, fn, (Ins){.op = OP_EXITIF,
                            .a = {ir_int(cx, fn, DT_BOOL, 1)}});
      break;
    case SHAPE_NEXT: set_next(fr, it, next); break;
    }
  }
}

// Checks the launch's block and cluster against the directives of entry f.
static void check_launch(Ctx *cx, const Fn *fn, const PtxFunc *f) {
  const int32_t *b = fn->block, *c = fn->cluster;
  const uint32_t *most = f->maxntid, *own = f->reqnctapercluster;
  int64_t threads = (int64_t)b[0] * b[1] * b[2];
  if (most[0] && threads > (int64_t)most[0] * most[1] * most[2]) {
    ctx_fail(cx, ERR_LAUNCH, "entry %s has .maxntid %u, %u, %u: a block of %d "
             "x %d x %d threads is larger", f->name, most[0], most[1], most[2],
             b[0], b[1], b[2]);
  }
  if (!own[0] || !c[0]) return;
  for (int k = 0; k < 3; k++) {
    if (own[k] == (uint32_t)c[k]) continue;
    ctx_fail(cx, ERR_LAUNCH, "entry %s has .reqnctapercluster %u, %u, %u: "
             "launch it with cluster = {%u, %u, %u}, not %d x %d x %d",
             f->name, own[0], own[1], own[2], own[0], own[1], own[2], c[0],
             c[1], c[2]);
  }
}

void ptx_translate(Ctx *cx, Fn *fn, const PtxModule *m, const PtxFunc *f,
                   const PtxBound *bound, size_t n, int64_t smem,
                   const char *file, unsigned flags) {
  PtxBuild b = {.cx = cx, .fn = fn, .m = m, .f = f, .bound = bound,
                .nbound = n, .flags = flags};
  b.slot = NEW(cx, PtxSlot, f->regs + 1);
  for (uint32_t r = 0; r < f->regs; r++) b.slot[r] = (PtxSlot){.home = -1};
  check_launch(cx, fn, f);
  fn->setmaxnreg_alike = flags & PTX_SETMAXNREG_ALIKE;
  fn->registers = f->maxnreg ? (int32_t)f->maxnreg : -1;
  fn->min_blocks = (int32_t)f->minnctapersm;
  ir_at(cx, fn, file, f->line);  // line at which memory objects are created
  Frame fr = {.b = &b};
  split(&fr);
  waits(&fr);
  shape_of(cx, fr.graph, fr.n, &fr.shape);
  regions(&fr);
  find_rows(&b);
  homes(&b);
  scan(&fr);
  find_early(&fr);
  roots(&b);
  find_inside(&b);
  shared_memory(&b, smem);
  local_memory(&b);
  objects(&b);
  variables(&b);
  clear_reserved(&b);
  emit(&fr, file);
}

// Adds variable k to `used`, unless it was added before.
static void use_variable(Ctx *cx, const PtxModule *m, int64_t k, bool *seen,
                         PtxVars *used) {
  uint8_t space = m->vars.p[k].space;
  if (seen[k] || (space != PTX_GLOBAL && space != PTX_CONST)) return;
  seen[k] = true;
  vec_push(cx, *used, (uint32_t)k);
}

// Returns the index of the module's variable called `name`, or -1.
static int64_t variable_named(const PtxModule *m, const char *name) {
  for (size_t k = 0; k < m->vars.n; k++) {
    const PtxVar *v = &m->vars.p[k];
    bool global = v->space == PTX_GLOBAL || v->space == PTX_CONST;
    if (global && strcmp(v->name, name) == 0) return (int64_t)k;
  }
  return -1;
}

// Returns an address above the windows of shared and local memory (`windows` in
// local.c).
int64_t ptx_function(const PtxModule *m, const char *name) {
  for (size_t k = m->funcs.n; name && k-- > 0;) {
    const PtxFunc *f = &m->funcs.p[k];
    if (!f->entry && !f->whole && f->body && strcmp(f->name, name) == 0) {
      return ((int64_t)7 << 60) + 16 * ((int64_t)k + 1);
    }
  }
  return 0;
}

// Adds to `used` the variables whose addresses are in the initial value of v.
static void follow_addresses(Ctx *cx, const PtxModule *m, const PtxVar *v,
                             bool *seen, PtxVars *used) {
  for (uint32_t q = 0; q < v->inits; q++) {
    const PtxInit *e = &m->inits.p[v->init + q];
    if (!e->symbol) continue;
    int64_t k = variable_named(m, e->symbol);
    if (v->type.bits == 64 && ptx_function(m, e->symbol)) continue;
    if (k < 0 || v->type.bits != 64) {
      ctx_fail(cx, ERR_PTX, "line %u: the initial value of variable %s has the "
               "address of %s: such addresses are not modelled",
               (unsigned)v->line, v->name, e->symbol);
    }
    use_variable(cx, m, k, seen, used);
  }
}

void ptx_variables(Ctx *cx, const PtxModule *m, const PtxFunc *f,
                   PtxVars *used) {
  bool *seen = NEW(cx, bool, m->vars.n + 1);
  memset(seen, 0, m->vars.n + 1);
  for (uint32_t i = f->ins; i < f->ins + f->n_ins; i++) {
    const PtxIns *ins = &m->ins.p[i];
    for (uint32_t k = 0; k < ins->args; k++) {
      const PtxArg *a = &m->args.p[ins->arg + k];
      const PtxArg *x = a->kind == PTX_A_ADDRESS ? &m->args.p[a->part] : a;
      if (x->kind == PTX_A_VAR) use_variable(cx, m, x->value, seen, used);
    }
  }
  for (size_t k = 0; k < used->n; k++) {
    follow_addresses(cx, m, &m->vars.p[used->p[k]], seen, used);
  }
}

// Returns how `name` matches the name of entry f. 3: the names are equal. 2:
// `name` is the demangled name. 1: `name` is a suffix. 0: `name` does not
// match.
static int fits(Ctx *cx, const PtxFunc *f, const char *name) {
  if (strcmp(f->name, name) == 0) return 3;
  // In a mangled name, the length of each part precedes the part: at::rsum is
  // _ZN2at4rsumE...
  Buf mangled = {0};
  for (const char *at = name; *at;) {
    const char *end = strstr(at, "::");
    size_t n = end ? (size_t)(end - at) : strlen(at);
    buf_printf(cx, &mangled, "%zu%.*s", n, (int)n, at);
    at += end ? n + 2 : n;
  }
  const char *part = mangled.n ? strstr(f->name, mangled.p) : NULL;
  bool plain = part && part > f->name && (part[-1] < '0' || part[-1] > '9');
  buf_free(&mangled);
  size_t own = strlen(f->name), n = strlen(name);
  bool suffix = n && own >= n && strcmp(f->name + own - n, name) == 0;
  return plain ? 2 : suffix;
}

const PtxFunc *ptx_entry(Ctx *cx, const PtxModule *m, const char *name) {
  const PtxFunc *found = NULL;
  size_t several = 0;
  int best = 0;
  for (size_t k = 0; k < m->funcs.n; k++) {
    const PtxFunc *f = &m->funcs.p[k];
    int fit = f->entry && f->body ? fits(cx, f, name) : 0;
    if (!fit || fit < best) continue;
    several = fit > best ? 1 : several + 1;
    best = fit;
    found = f;
  }
  if (several == 1) return found;
  Buf all = {0};
  for (size_t k = 0; k < m->funcs.n; k++) {
    if (!m->funcs.p[k].entry) continue;
    buf_printf(cx, &all, "%s%s", all.n ? ", " : "", m->funcs.p[k].name);
  }
  const char *list = arena_printf(cx, &cx->scratch, "%s", all.n ? all.p : "");
  buf_free(&all);
  if (!*list) ctx_fail(cx, ERR_PTX, "no entry '%s': the module has none", name);
  ctx_fail(cx, ERR_PTX, "%s '%s'\n  entries: %s", several
           ? "several entries match" : "no entry", name, list);
}
// SPDX-License-Identifier: MIT
