// What architectures there are and what each has: who asks "does this target
// have that?" asks here.
#ifndef CUTE_TARGET_H
#define CUTE_TARGET_H

#include "ir/ir.h"

// TG(sm, KiB of shared memory that a block may have, specific): architectures,
// oldest first. sm_90a, sm_100f: with the features of one chip, of a family;
// `specific` are those letters.
#define TARGETS(TG) \
  TG(70, 96, "") TG(72, 96, "") TG(75, 64, "") TG(80, 163, "") \
  TG(86, 99, "") TG(87, 163, "") TG(88, 163, "") TG(89, 99, "") \
  TG(90, 227, "a") TG(100, 227, "af") TG(103, 227, "af") TG(110, 227, "af") \
  TG(120, 99, "af") TG(121, 99, "af")
typedef struct Target {
  int sm, kb;
  const char *specific;
} Target;
const Target *target_row(int i);  // NULL past the last
// Bytes of shared memory that a block may have on sm_<sm>; the most that any
// has for 0.
int64_t target_smem(int sm);

// FT(ID, "name", first sm, last sm or 0, of one chip or family): what is no row
// of its own. Atoms, intrinsics and fences say in their rows what they need.
#define FEATURES(FT) \
  FT(LDMATRIX, "ldmatrix", 75, 0, false) \
  FT(CPASYNC, "cp.async", 80, 0, false) \
  FT(PREFETCH, "level_prefetch_size", 80, 0, false) \
  FT(ATOMIC_BF16, "an atomic sum of bf16", 90, 0, false) \
  FT(MBARRIER, "an mbarrier", 80, 0, false) \
  FT(MBARTRY, "mbarrier.try_wait", 90, 0, false) \
  FT(MBARTX, "a count of bytes at an mbarrier", 90, 0, false) \
  FT(MBARFAR, "an mbarrier of another block", 90, 0, false) \
  FT(MBARLIMIT, "a time limit at an mbarrier", 90, 0, false) \
  FT(TMA, "a bulk copy", 90, 0, false) \
  FT(TENSORMAP, "tensormap.replace", 90, 90, true) \
  FT(CLUSTER, "a cluster of blocks", 90, 0, false) \
  FT(SCOPE, "scope \"cluster\"", 90, 0, false) \
  FT(DEPENDENTS, "griddepcontrol", 90, 0, false) \
  FT(SETMAXNREG, "setmaxnreg", 90, 0, true) \
  FT(WGMMA, "wgmma", 90, 90, true) FT(COPY256, "a 256-bit copy", 100, 0, false)
typedef enum Feature {
#define FT(id, name, least, most, specific) FT_##id,
  FEATURES(FT)
#undef FT
  FT_COUNT
} Feature;
bool target_has(int sm, Feature f);
Feature target_find(const char *name);  // FT_COUNT: no such feature

// What an instruction needs; name NULL: what all targets have. Of an mbarrier
// only what has no other text on older targets: there a wait asks again and
// again (test_wait), arrivals come one by one, and what is relaxed is not.
typedef struct Need {
  const char *name;
  int least, most;  // sm; most 0: no end
  bool specific;    // of one chip or family: sm_120a, sm_120f
} Need;
Need target_need(const Fn *fn, const Ins *i);
Need target_feature(Feature f);
// Is there an atomic of that kind on elements of that type, on any target?
bool target_atomic(AtomicKind k, DType t);

// Fails with ERR_ARCH when fn uses what sm_<sm> does not have. arch, "sm_120",
// also says whether features of one chip or family may be used; NULL: they
// may.
void target_check(Ctx *cx, const Fn *fn, int sm, const char *arch);

#endif
