// The IR: appends and hash-conses instructions, interns text, opens and closes
// regions, and rolls back. Simplification and facts are in fold.c.
#include "ir/ir.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/intrin.h"
#include "ir/fold.h"

// ---- names ----

const SpaceRow space_rows[] = {
#define SP(id, name, word, op, memory, lifetime, elements) \
  {name, word, OP_##op, MEMORY_##memory, LIFETIME_##lifetime},
  SPACES(SP)
#undef SP
};

const char *math_name(MathFn f) {
  static const char *const t[] = {
#define MF(id, name, n, how) name,
    MATHS(MF)
#undef MF
  };
  return t[f];
}

int math_arity(MathFn f) {
  static const unsigned char t[] = {
#define MF(id, name, n, how) n,
    MATHS(MF)
#undef MF
  };
  return t[f];
}

Fidelity math_fidelity(MathFn f) {
  static const unsigned char t[] = {
#define MF(id, name, n, how) FI_##how,
    MATHS(MF)
#undef MF
  };
  return (Fidelity)t[f];
}

// ---- creation ----

Fn *ir_init(Ctx *cx, Fn *fn, const char *name) {
  vec_push(cx, fn->text, 0);
  buf_add(cx, &fn->chars, "", 1);
  Src none = {0, 0};
  vec_push(cx, fn->src, none);
  vec_push(cx, fn->open, 0);
  Ins nop = {0};
  ir_append(cx, fn, nop, (Fact){INT64_MIN, INT64_MAX, 1});
  fn->name = ir_text(cx, fn, name, strlen(name));
  return fn;
}

void ir_clear(Fn *fn) {
  vec_free(fn->ins);
  vec_free(fn->fact);
  vec_free(fn->ext);
  vec_free(fn->reg);
  vec_free(fn->src);
  vec_free(fn->text);
  buf_free(&fn->chars);
  vec_free(fn->mem);
  vec_free(fn->arg);
  vec_free(fn->loose);
  vec_free(fn->region);
  vec_free(fn->scope);
  vec_free(fn->open);
  vec_free(fn->assumed);
  vec_free(fn->claim);
  vec_free(fn->hits);
  base_free(fn->cons);
  base_free(fn->text_at.slot);
  base_free(fn->src_at.slot);
  memset(fn, 0, sizeof *fn);
}

// ---- text and positions ----

const char *ir_str(const Fn *fn, uint32_t text) {
  return fn->chars.p + fn->text.p[text];
}

static uint64_t text_hash(const Fn *fn, uint32_t k) {
  const char *s = ir_str(fn, k);
  return base_hash(HASH_INIT, s, strlen(s));
}

static uint64_t src_hash(const Fn *fn, uint32_t k) {
  const Src *s = &fn->src.p[k];
  return ((uint64_t)s->file << 32 | s->line) * 0x9e3779b97f4a7c15ull >> 20;
}

static void index_put(Index *x, uint64_t hash, uint32_t k) {
  size_t at = (size_t)hash & (x->cap - 1);
  while (x->slot[at]) at = (at + 1) & (x->cap - 1);
  x->slot[at] = k;
  x->n++;
}

// Adds entry k, the newest entry, to an index. If the hash table grows, inserts
// all earlier entries again.
static void index_add(Ctx *cx, const Fn *fn, Index *x, uint32_t k,
                      uint64_t (*hash)(const Fn *fn, uint32_t k)) {
  if (x->n * 2 < x->cap) {
    index_put(x, hash(fn, k), k);
    return;
  }
  x->cap = x->cap ? x->cap * 2 : 64;
  x->slot = ctx_realloc(cx, x->slot, x->cap * sizeof *x->slot);
  memset(x->slot, 0, x->cap * sizeof *x->slot);
  x->n = 0;
  for (uint32_t q = 1; q <= k; q++) index_put(x, hash(fn, q), q);
}

uint32_t ir_text(Ctx *cx, Fn *fn, const char *s, size_t n) {
  if (n == 0) return 0;
  Index *x = &fn->text_at;
  size_t mask = x->cap - 1, at = (size_t)base_hash(HASH_INIT, s, n);
  for (at &= mask; x->cap && x->slot[at]; at = (at + 1) & mask) {
    const char *t = ir_str(fn, x->slot[at]);
    if (strncmp(t, s, n) == 0 && t[n] == '\0') return x->slot[at];
  }
  uint32_t from = (uint32_t)fn->chars.n;
  buf_add(cx, &fn->chars, s, n);
  buf_add(cx, &fn->chars, "", 1);
  vec_push(cx, fn->text, from);
  index_add(cx, fn, x, (uint32_t)fn->text.n - 1, text_hash);
  return (uint32_t)fn->text.n - 1;
}

void ir_at(Ctx *cx, Fn *fn, const char *file, uint32_t line) {
  const Src *cur = &fn->src.p[fn->at];
  if (cur->line == line && strcmp(ir_str(fn, cur->file), file) == 0) return;
  Src s = {ir_text(cx, fn, file, strlen(file)), line};
  vec_push(cx, fn->src, s);
  uint32_t new = (uint32_t)fn->src.n - 1;
  Index *x = &fn->src_at;
  size_t mask = x->cap - 1, at = (size_t)src_hash(fn, new);
  for (at &= mask; x->cap && x->slot[at]; at = (at + 1) & mask) {
    const Src *t = &fn->src.p[x->slot[at]];
    if (t->file != s.file || t->line != line) continue;
    fn->src.n--;
    fn->at = x->slot[at];
    return;
  }
  index_add(cx, fn, x, new, src_hash);
  fn->at = new;
}

void ir_name(Ctx *cx, Fn *fn, Ref r, const char *name) {
  Ins *i = &fn->ins.p[r];
  if (i->name || i->op == OP_CONST || i->op == OP_NOP) return;
  i->name = ir_text(cx, fn, name, strlen(name));
  if (ir_is_mem(fn, r) && !fn->mem.p[i->imm].name)
    fn->mem.p[i->imm].name = i->name;
}

// ---- appending ----

Ref ir_append(Ctx *cx, Fn *fn, Ins ins, Fact fact) {
  ins.src = ins.src ? ins.src : fn->at;
  ins.birth = ++fn->births;
  if (fn->ins.n >= UINT32_MAX / 2)
    ctx_fail(cx, ERR_LIMIT, "a kernel has at most 2^31 instructions");
  vec_reserve(cx, fn->fact, fn->ins.n + 1);
  vec_reserve(cx, fn->scope, fn->ins.n + 1);
  vec_push(cx, fn->ins, ins);
  fn->fact.p[fn->fact.n++] = fact;
  fn->scope.p[fn->scope.n++] = fn->open.p[fn->open.n - 1];
  return (Ref)fn->ins.n - 1;
}

bool ir_visible(const Fn *fn, Ref r) {
  if (r >= fn->ins.n) return false;
  uint32_t s = fn->scope.p[r];
  for (size_t i = fn->open.n; i-- > 0;)
    if (fn->open.p[i] == s) return true;
  return false;
}

void ir_use(Ctx *cx, const Fn *fn, Ref r) {
  if (r == 0 || ir_visible(fn, r)) return;
  if (r >= fn->ins.n)
    ctx_fail(cx, ERR_REGION,
             "a value was used that an earlier trace of a loop's body computed"
             "\n  keep it in a local of the loop, not in a table or a global");
  const Ins *i = ir_get(fn, r);
  const Src *s = &fn->src.p[i->src];
  const char *name = i->name ? ir_str(fn, i->name) : op_name((Op)i->op);
  ctx_fail(cx, ERR_REGION,
           "value '%s' of line %u was computed inside a loop or branch that "
           "has ended\n  carry it out in a local declared before the loop, "
           "or in cute.var(...)", name, s->line);
}

// ---- hash-consing ----

static uint64_t cons_hash(const Ins *i) {
  uint64_t h = (uint64_t)i->op * 0x9e3779b97f4a7c15ull + i->type;
  h = (h ^ i->a[0]) * 0xff51afd7ed558ccdull;
  h = (h ^ i->a[1] ^ ((uint64_t)i->a[2] << 32)) * 0xc4ceb9fe1a85ec53ull;
  h = (h ^ (uint64_t)i->imm) * 0xff51afd7ed558ccdull;
  return h ^ (h >> 29);
}

static bool cons_same(const Ins *a, const Ins *b) {
  return a->op == b->op && a->type == b->type && a->imm == b->imm &&
         a->a[0] == b->a[0] && a->a[1] == b->a[1] && a->a[2] == b->a[2] &&
         !(a->flags & ~b->flags & INF_ASIDE);
}

static void cons_put(Fn *fn, Ref r) {
  size_t mask = fn->conscap - 1;
  size_t i = cons_hash(ir_get(fn, r)) & mask;
  while (fn->cons[i]) i = (i + 1) & mask;
  fn->cons[i] = r;
  fn->ncons++;
}

// Rebuilds the hash table of pure instructions without those that are no longer
// visible. Enlarges the table if needed.
static void cons_rehash(Ctx *cx, Fn *fn) {
  size_t live = 0;
  for (size_t r = 1; r < fn->ins.n; r++)
    live += op_pure(fn->ins.p[r].op) && ir_visible(fn, (Ref)r);
  size_t cap = 256;
  while (cap < live * 4) cap *= 2;
  fn->cons = ctx_realloc(cx, fn->cons, cap * sizeof *fn->cons);
  memset(fn->cons, 0, cap * sizeof *fn->cons);
  fn->conscap = cap;
  fn->ncons = 0;
  for (size_t r = 1; r < fn->ins.n; r++)
    if (op_pure(fn->ins.p[r].op) && ir_visible(fn, (Ref)r))
      cons_put(fn, (Ref)r);
}

Ref ir_cons(Ctx *cx, Fn *fn, Ins ins, Fact fact) {
  if (fn->ncons * 2 >= fn->conscap) cons_rehash(cx, fn);
  size_t mask = fn->conscap - 1;
  if (fn->aside) ins.flags |= INF_ASIDE;
  for (size_t i = cons_hash(&ins) & mask; fn->cons[i]; i = (i + 1) & mask) {
    Ref r = fn->cons[i];
    if (r < fn->ins.n && cons_same(ir_get(fn, r), &ins) && ir_visible(fn, r))
      return r;
  }
  Ref r = ir_append(cx, fn, ins, fact);
  cons_put(fn, r);
  return r;
}

// ---- plain instructions ----

Ref ir_emit(Ctx *cx, Fn *fn, Ins ins) {
  for (int i = 0; i < 3; i++) ir_use(cx, fn, ins.a[i]);
  return ir_append(cx, fn, ins, fold_full((DType)ins.type));
}

void ir_note_fidelity(Ctx *cx, Fn *fn, Ref r, Fidelity how) {
  Loose l = {r, how};
  vec_push(cx, fn->loose, l);
}

Ref ir_mem(Ctx *cx, Fn *fn, Mem m) { return ir_mem_of(cx, fn, m, 0, 0); }

Ref ir_map_at(Ctx *cx, Fn *fn, Ref object, Ref offset, Ref map) {
  Mem m = {.space = SP_TMAP, .type = DT_U8, .count = -1, .align = 1,
           .arg = NO_ARG, .name = ir_memof(fn, object)->name};
  if (map) m = *ir_memof(fn, map);
  Ins ins = {.op = OP_TMAPAT, .type = (uint8_t)m.type, .name = m.name,
             .a = {object, offset, map}, .imm = (int64_t)fn->mem.n};
  for (int k = 0; k < 3; k++) ir_use(cx, fn, ins.a[k]);
  vec_reserve(cx, fn->mem, fn->mem.n + 1);
  m.ref = ir_append(cx, fn, ins, fold_full(m.type));
  fn->mem.p[fn->mem.n++] = m;
  return m.ref;
}

Ref ir_at_address(Ctx *cx, Fn *fn, Mem m, Ref address) {
  Ins ins = {.op = OP_PTR, .type = (uint8_t)m.type, .name = m.name,
             .a = {address}, .imm = (int64_t)fn->mem.n};
  m.space = SP_GMEM;
  m.arg = NO_ARG;
  ir_use(cx, fn, address);
  vec_reserve(cx, fn->mem, fn->mem.n + 1);
  m.ref = ir_append(cx, fn, ins, fold_full(m.type));
  fn->mem.p[fn->mem.n++] = m;
  return m.ref;
}

static int64_t end_of(const Mem *m) {
  return m->offset + (m->count * dtype_bits(m->type) + 7) / 8;
}

bool ir_overlaps(const Mem *a, const Mem *b) {
  return a->offset < end_of(b) && b->offset < end_of(a);
}

bool ir_has_addresses(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op == OP_PTR || ir_is_map_of_any(ir_get(fn, r)))
      return true;
  return false;
}

bool ir_is_idle(const Fn *fn) {
  for (size_t k = 0; k < fn->arg.n; k++)
    if (fn->arg.p[k].written) return false;
  // cute.assume has an effect, because the simulator checks the values.
  for (size_t k = 0; k < fn->claim.n; k++)
    if (!fn->claim.p[k].mem && !fn->claim.p[k].rule) return false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op_effect(op) & EF_VISIBLE || op == OP_GRIDLAUNCH || op == OP_PTR)
      return false;
  }
  return true;
}

Ref ir_region_end(const Fn *fn, Ref r) {
  int depth = 0;
  for (; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op_opens(op)) depth++;
    if (op == OP_END && --depth == 0) return r;
  }
  return (Ref)fn->ins.n;
}

Ref ir_region_around(const Fn *fn, Ref r) {
  int depth = 0;
  while (r && --r) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op == OP_END) depth++;
    else if (op_opens(op) && depth-- == 0) break;
  }
  return r;
}

Ref ir_loop_around(const Fn *fn, Ref r) {
  do r = ir_region_around(fn, r);
  while (r && !op_loops((Op)ir_get(fn, r)->op));
  return r;
}

int ir_barriers(const Fn *fn) {
  int most = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op != OP_BAR && i->op != OP_BARARRIVE) continue;
    int64_t id = i->imm;
    if (i->a[1] && !ir_const(fn, i->a[1], &id)) return MOST_BARRIERS;
    if (id >= most) most = (int)id + 1;
  }
  return most;
}

Ref ir_mem_of(Ctx *cx, Fn *fn, Mem m, Ref object, Ref rank) {
  Ins ins = {.op = space_rows[m.space].op, .type = (uint8_t)m.type,
             .name = m.name, .a = {object, rank, 0}, .imm = (int64_t)fn->mem.n};
  ir_use(cx, fn, object);
  ir_use(cx, fn, rank);
  vec_reserve(cx, fn->mem, fn->mem.n + 1);
  m.ref = ir_append(cx, fn, ins, fold_full(m.type));
  fn->mem.p[fn->mem.n++] = m;
  return m.ref;
}

bool ir_is_mem(const Fn *fn, Ref r) {
  return op_effect((Op)ir_get(fn, r)->op) & EF_OBJECT;
}

bool ir_is_aside(const Ins *i) {
  return op_pure(i->op) && i->flags & INF_ASIDE;
}

// ---- regions ----

Ref ir_open(Ctx *cx, Fn *fn, Ins ins) {
  Ref r = ir_emit(cx, fn, ins);
  vec_push(cx, fn->region, r);
  vec_push(cx, fn->open, ++fn->scopes);
  if (ins.op == OP_FOR) {  // the body can use the loop counter
    fn->scope.p[r] = fn->scopes;
    fn->fact.p[r] = fold_counter(fn, ins.a[0], ins.a[1], ins.a[2]);
  }
  return r;
}

void ir_narrow(Fn *fn, Ref r, Fact f) {
  Fact *g = &fn->fact.p[r];
  if (f.lo > g->lo) g->lo = f.lo;
  if (f.hi < g->hi) g->hi = f.hi;
  if (f.div == 0 || (g->div && f.div % g->div == 0)) g->div = f.div;
}

void ir_assume(Ctx *cx, Fn *fn, Ref r, Fact f) {
  Assumed a = {r, (uint32_t)fn->open.n, ir_fact(fn, r)};
  ir_narrow(fn, r, f);
  if (memcmp(&fn->fact.p[r], &a.was, sizeof f)) vec_push(cx, fn->assumed, a);
}

void ir_claim(Ctx *cx, Fn *fn, Claim c) {
  c.at = (Ref)fn->ins.n;
  c.src = fn->at;
  vec_push(cx, fn->claim, c);
}

// Removes all entries of `assumed` but the first n, newest first, and restores
// the old facts of those instructions that precede `end`.
static void take_back(Fn *fn, size_t n, Ref end) {
  while (fn->assumed.n > n) {
    const Assumed *a = &fn->assumed.p[--fn->assumed.n];
    if (a->r < end) fn->fact.p[a->r] = a->was;
  }
}

// Ends the innermost region, and undoes the facts that hold only in it.
static void end_region(Fn *fn) {
  size_t n = fn->assumed.n;
  while (n && fn->assumed.p[n - 1].depth >= fn->open.n) n--;
  take_back(fn, n, (Ref)fn->ins.n);
  fn->open.n--;
}

void ir_else(Ctx *cx, Fn *fn) {
  if (!fn->region.n ||
      ir_get(fn, fn->region.p[fn->region.n - 1])->op != OP_IF)
    ctx_fail(cx, ERR_ARG, "an else without an open branch");
  end_region(fn);
  ir_emit(cx, fn, (Ins){.op = OP_ELSE});
  vec_push(cx, fn->open, ++fn->scopes);
}

void ir_close(Ctx *cx, Fn *fn) {
  if (!fn->region.n)
    ctx_fail(cx, ERR_ARG, "an end without an open loop or branch");
  end_region(fn);
  fn->region.n--;
  ir_emit(cx, fn, (Ins){.op = OP_END});
}

IrMark ir_mark(const Fn *fn) {
  return (IrMark){
    .serial = fn->serial, .birth = ir_get(fn, (Ref)fn->ins.n - 1)->birth,
    .scope = fn->open.p[fn->open.n - 1], .ins = (uint32_t)fn->ins.n,
    .ext = (uint32_t)fn->ext.n, .reg = (uint32_t)fn->reg.n,
    .mem = (uint32_t)fn->mem.n, .region = (uint32_t)fn->region.n,
    .open = (uint32_t)fn->open.n, .assumed = (uint32_t)fn->assumed.n,
    .claim = (uint32_t)fn->claim.n,
    .smem = fn->smem_bytes};
}

// Reports whether fn still contains everything that it contained at mark m.
// Births and scopes are unique numbers, so if the last births and scopes are
// equal, all earlier instructions are equal, too.
static bool comes_from(const Fn *fn, const IrMark *m) {
  return fn->serial == m->serial && fn->ins.n >= m->ins &&
         ir_get(fn, m->ins - 1)->birth == m->birth &&
         fn->open.n >= m->open && fn->open.p[m->open - 1] == m->scope;
}

bool ir_rollback(Fn *fn, IrMark m) {
  if (!comes_from(fn, &m)) return false;
  take_back(fn, m.assumed, m.ins);
  fn->ins.n = fn->fact.n = fn->scope.n = m.ins;
  fn->ext.n = m.ext;
  fn->reg.n = m.reg;
  fn->mem.n = m.mem;
  fn->claim.n = m.claim;
  fn->region.n = m.region;
  fn->open.n = m.open;
  fn->smem_bytes = m.smem;
  return true;
}

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0xff51afd7ed558ccdull;
  return h ^ h >> 32;
}

static uint64_t digest_mem(uint64_t h, const Mem *m) {
  h = mix(h, (uint64_t)m->space << 8 | m->type);
  h = mix(h, (uint64_t)m->count);
  h = mix(h, (uint64_t)m->align);
  h = mix(h, (uint64_t)m->offset);
  return mix(h, (uint64_t)m->layout << 32 | (uint32_t)m->arg);
}

static uint64_t digest_claim(uint64_t h, const Claim *c) {
  h = mix(h, (uint64_t)c->at << 32 | c->v);
  h = mix(h, (uint64_t)c->limit << 32 | c->mem);
  h = mix(h, (uint64_t)c->when << 32 | c->note);
  h = mix(h, (uint64_t)c->lo);
  h = mix(h, (uint64_t)c->hi);
  return mix(h, (uint64_t)c->div << 2 | (uint64_t)c->write << 1 | c->more);
}

uint64_t ir_digest(const Fn *fn, IrMark m) {
  uint64_t h = fn->ins.n;
  for (size_t r = m.ins; r < fn->ins.n; r++) {
    const Ins *i = &fn->ins.p[r];
    h = mix(h, (uint64_t)i->op << 32 | (uint64_t)i->type << 16 | i->flags);
    h = mix(h, (uint64_t)i->a[0] << 32 | i->a[1]);
    h = mix(h, (uint64_t)i->a[2] << 32 | i->nx);
    h = mix(h, (uint64_t)i->imm);
  }
  for (size_t k = m.ext; k < fn->ext.n; k++) h = mix(h, fn->ext.p[k]);
  for (size_t k = m.reg; k < fn->reg.n; k++) h = mix(h, fn->reg.p[k]);
  for (size_t k = m.mem; k < fn->mem.n; k++)
    h = digest_mem(h, &fn->mem.p[k]);
  for (size_t k = m.claim; k < fn->claim.n; k++)
    h = digest_claim(h, &fn->claim.p[k]);
  return mix(h, (uint64_t)fn->smem_bytes);
}

bool ir_arg_shared(const Fn *fn, size_t k) {
  const Arg *a = &fn->arg.p[k];
  for (size_t j = 0; a->overlap && j < fn->arg.n; j++) {
    const Arg *b = &fn->arg.p[j];
    if (j != k && b->overlap == a->overlap && (a->written || b->written))
      return true;
  }
  return false;
}
// SPDX-License-Identifier: MIT
