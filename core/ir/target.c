// Targets and their features (target.h).
#include "ir/target.h"

#include <string.h>

#include "atoms/atom.h"
#include "ir/intrin.h"
#include "ir/operands.h"

static const Target targets[] = {
#define TG(sm, kb, specific) {sm, kb, specific},
  TARGETS(TG)
#undef TG
};
enum { NTARGETS = sizeof targets / sizeof *targets };

const Target *target_row(int i) { return i < NTARGETS ? &targets[i] : NULL; }

int64_t target_smem(int sm) {
  int kb = 227;
  for (int i = 0; sm && i < NTARGETS; i++)
    if (targets[i].sm <= sm) kb = targets[i].kb;
  return (int64_t)kb * 1024;
}

static const Need features[] = {
#define FT(id, name, least, most, specific, instead) \
  {name, least, most, specific, instead, 0, false},
  FEATURES(FT)
#undef FT
};

static bool meets(int sm, const Need *n) {
  return sm >= n->least && (!n->most || sm <= n->most) && sm != n->lacks;
}

Need target_feature(Feature f) { return features[f]; }

bool target_has(int sm, Feature f) { return meets(sm, &features[f]); }

Feature target_find(const char *name) {
  int k = 0;
  while (k < FT_COUNT && strcmp(features[k].name, name) != 0) k++;
  return (Feature)k;
}

// Returns the feature that instruction i needs. The instruction's row in
// another table determines it, else its operands or flags, else its operation.
Need target_need(const Fn *fn, const Ins *i) {
  if (op_rows[i->op].imm == IMM_MMA) {
    const AtomMma *r = atom_mma((int)i->imm);
    Need n = {.name = r->name, .least = r->sm_min, .most = r->sm_max,
              .specific = r->arch_specific};
    if (r->kind == MK_TCGEN05 && dtype_is_int(r->d_type)) {
      n.lacks = 103;
      n.chip = true;
      n.instead = "an MMA of e4m3 or e5m2";
    }
    if (r->flags & AMF_SPARSE && r->flags & AMF_SCALE &&
        !(r->flags & AMF_BYTE)) {
      n.chip = true;
      n.instead = "a dense MMA of packed e2m1";
    }
    return n;
  } else if (i->op == OP_MATRIX) {
    const AtomCopy *r = atom_copy((int)i->imm);
    return (Need){.name = r->name, .least = r->sm_min};
  } else if (i->op == OP_INTRIN || i->op == OP_ASK) {
    const Intrin *r = intrin_row(intrin_id(i->imm));
    return (Need){.name = r->name, .least = r->sm,
                  .instead = strstr(r->name, "x2")
                    ? "an operation for each element" : NULL};
  } else if (i->op == OP_FENCE) {
    const FenceRow *r = fence_row((FenceKind)i->imm);
    return (Need){.name = r->sm ? "this fence" : NULL, .least = r->sm};
  }
  if (i->op == OP_TCSHIFT) {
    Need n = features[FT_TCGEN05];
    n.name = op_name((Op)i->op);
    n.chip = true;
    return n;
  }
  if (i->op == OP_COPY && i->imm > 128) return features[FT_COPY256];
  if (op_flag_kind((Op)i->op) == FLAGS_BULK && i->flags & BKF_ROWS) {
    bool own = i->op == OP_TMALOAD && !(i->flags & BKF_PAIR) &&
               !operand_ref(fn, i, ROLE_MASK);
    return features[own ? FT_TMAROWS : FT_TMAROWSFAR];
  }
  if (i->op == OP_TMALOAD && i->flags & BKF_PAIR) return features[FT_TMAPAIR];
  if (i->op == OP_ATOMIC && i->imm == AT_ADD && i->type == DT_BF16)
    return features[FT_ATOMIC_BF16];
  bool access = op_flag_kind((Op)i->op) == FLAGS_HINTS;
  bool mbar = op_flag_kind((Op)i->op) == FLAGS_MBAR;
  bool sem = hint_get(i->flags, HINT_SEM) != 0;
  if (mbar && operand_ref(fn, i, ROLE_TIME)) return features[FT_MBARLIMIT];
  if (mbar && operand_ref(fn, i, ROLE_RANK)) return features[FT_MBARFAR];
  if ((mbar || (access && sem)) &&
      hint_get(i->flags, HINT_SCOPE) == SCOPE_CLUSTER)
    return features[FT_SCOPE];
  if (i->op == OP_SREG && i->imm >= SR_CLUSTERID_X)
    return features[FT_CLUSTER];
  unsigned need = op_rows[i->op].need;
  return need < FT_COUNT ? features[need] : (Need){0};
}

bool target_atomic(AtomicKind k, DType t) {
  int bits = dtype_bits(t);
  bool words = dtype_is_int(t) && (bits == 32 || bits == 64);
  switch (k) {
    case AT_ADD:
      return words || t == DT_F16 || t == DT_BF16 || t == DT_F32 ||
             t == DT_F64;
    case AT_MIN: case AT_MAX: return words || t == DT_F32;
    case AT_AND: case AT_OR: case AT_XOR: return words;
    case AT_EXCH: return words || t == DT_F32;
    case AT_CAS: return words || t == DT_U16;
    case AT_INC: case AT_DEC: return t == DT_U32;
    case AT_COUNT: break;
  }
  return false;
}

static bool has_family(int sm) {
  for (int i = 0; i < NTARGETS; i++)
    if (targets[i].sm == sm) return strchr(targets[i].specific, 'f') != NULL;
  return false;
}

const char *target_lacks(Ctx *cx, const Need *n, int sm, const char *arch) {
  if (!n->name) return NULL;
  char suffix = arch ? arch[strlen(arch) - 1] : 'a';
  if (!meets(sm, n))
    return arena_printf(cx, &cx->scratch, "needs sm_%d%s or %s, the target is "
                        "sm_%d", n->least, n->specific ? "a" : "",
                        n->most ? "its own family" : "newer", sm);
  if (n->chip && suffix == 'f')
    return arena_printf(cx, &cx->scratch, "is a feature of one chip: it needs "
                        "sm_%da, the target is %s", sm, arch);
  if (!n->specific || suffix == 'a' || suffix == 'f') return NULL;
  bool family = has_family(sm);
  return arena_printf(cx, &cx->scratch, "is a feature of one %s: it needs "
                      "sm_%da%s, the target is %s",
                      family ? "family of chips" : "chip", sm,
                      family ? arena_printf(cx, &cx->scratch, " or sm_%df", sm)
                             : "", arch);
}

// Returns the cta_group of a tcgen05 instruction, or 0 if i has none.
static int group_of(const Ins *i) {
  bool none = i->op == OP_TCFENCE || i->op == OP_TCWAITLD;
  if (none || op_flag_kind((Op)i->op) != FLAGS_TCGEN05) return 0;
  return i->flags & TCF_PAIR ? 2 : 1;
}

static uint32_t line_of(const Fn *fn, const Ins *i) {
  return fn->src.p[i->src].line;
}

// Checks that all tcgen05 instructions have the same cta_group, and that a
// kernel with instructions of pairs has clusters of whole pairs.
static void check_pairs(Ctx *cx, const Fn *fn) {
  const int32_t *c = fn->cluster;
  int ctas = c[0] ? c[0] * c[1] * c[2] : 1;
  const Ins *first = NULL;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    int group = group_of(i);
    if ((group == 2 || (i->op == OP_TMALOAD && i->flags & BKF_PAIR)) &&
        ctas % 2)
      ctx_fail(cx, ERR_LAUNCH, "%s (line %u) needs a pair of CTAs "
               "(CtaGroup.TWO), but a cluster has %d block%s: launch with "
               "clusters of an even number of blocks, such as cluster = 2",
               op_name((Op)i->op), line_of(fn, i), ctas, ctas > 1 ? "s" : "");
    if (group && !first) first = i;
    if (!group || group == group_of(first)) continue;
    bool pair = group == 2;
    ctx_fail(cx, ERR_ARG, "%s (line %u) works on a pair of CTAs, but %s (line "
             "%u) on one CTA: all tcgen05 instructions of a kernel have the "
             "same cta_group\n  pass CtaGroup.TWO, or is_two_cta = true, to "
             "all of them, or to none", op_name((Op)(pair ? i : first)->op),
             line_of(fn, pair ? i : first), op_name((Op)(pair ? first : i)->op),
             line_of(fn, pair ? first : i));
  }
}

void target_check(Ctx *cx, const Fn *fn, int sm, const char *arch) {
  const int32_t *c = fn->cluster;
  if (c[0] * c[1] * c[2] > 1 && !target_has(sm, FT_CLUSTER))
    ctx_fail(cx, ERR_ARCH, "a cluster of %d blocks needs sm_%d or newer, the "
             "target is sm_%d", c[0] * c[1] * c[2], features[FT_CLUSTER].least,
             sm);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    Need n = target_need(fn, i);
    const char *why = target_lacks(cx, &n, sm, arch);
    if (why)
      ctx_fail(cx, ERR_ARCH, "%s (line %u) %s%s%s", n.name,
               line_of(fn, i), why,
               n.instead ? "\n  for that target, write " : "",
               n.instead ? n.instead : "");
  }
  check_pairs(cx, fn);
}
// SPDX-License-Identifier: MIT
