// The architectures and their features. All code that depends on what a target
// supports calls these functions.
#ifndef CUTE_TARGET_H
#define CUTE_TARGET_H

#include "ir/ir.h"

// TG(sm, maximum KiB of shared memory of a block, letters): architectures,
// oldest first. letters: the suffixes of the target's name that make features
// of one chip (sm_90a) or one family (sm_100f) available.
#define TARGETS(TG) \
  TG(70, 96, "") TG(72, 96, "") TG(75, 64, "") TG(80, 163, "") \
  TG(86, 99, "") TG(87, 163, "") TG(88, 163, "") TG(89, 99, "") \
  TG(90, 227, "a") TG(100, 227, "af") TG(103, 227, "af") TG(107, 327, "af") \
  TG(110, 227, "af") TG(120, 99, "af") TG(121, 99, "af")
typedef struct Target {
  int sm, kb;
  const char *specific;
} Target;
// Returns row i of the table of targets, or NULL past the last row.
const Target *target_row(int i);
// Returns how many bytes of shared memory a block may use on sm_<sm>. For sm 0,
// returns the maximum of all targets.
int64_t target_smem(int sm);

// FT(ID, "name", first sm, last sm or 0, chip- or family-specific, "what to
// write for targets without it" or NULL): features of targets. The tables of
// atoms, intrinsics and fences also state which targets support a row.
#define FEATURES(FT) \
  FT(LDMATRIX, "ldmatrix", 75, 0, false, NULL) \
  FT(CPASYNC, "cp.async", 80, 0, false, NULL) \
  FT(PREFETCH, "level_prefetch_size", 80, 0, false, NULL) \
  FT(ATOMIC_BF16, "an atomic sum of bf16", 90, 0, false, \
     "an atomic sum of f32") \
  FT(MBARRIER, "an mbarrier", 80, 0, false, NULL) \
  FT(MBARTRY, "mbarrier.try_wait", 90, 0, false, NULL) \
  FT(MBARTX, "a count of bytes at an mbarrier", 90, 0, false, NULL) \
  FT(MBARFAR, "an mbarrier of another block", 90, 0, false, NULL) \
  FT(MBARLIMIT, "a time limit at an mbarrier", 90, 0, false, NULL) \
  FT(TMA, "a bulk copy", 90, 0, false, "cp.async") \
  FT(TMAPAIR, "a bulk copy for a pair of CTAs", 100, 110, true, \
     "a bulk copy for each CTA: CtaGroup.ONE") \
  FT(TMAROWS, "a bulk copy that gathers rows", 100, 0, false, \
     "a bulk copy for each row") \
  FT(TMAROWSFAR, "a bulk copy that scatters rows, or gathers them for " \
     "several CTAs,", 100, 110, true, "a bulk copy for each row") \
  FT(TENSORMAP, "tensormap.replace", 90, 0, true, NULL) \
  FT(CLUSTER, "a cluster of blocks", 90, 0, false, NULL) \
  FT(SCOPE, "scope \"cluster\"", 90, 0, false, NULL) \
  FT(DEPENDENTS, "griddepcontrol", 90, 0, false, NULL) \
  FT(SETMAXNREG, "setmaxnreg", 90, 0, true, NULL) \
  FT(WGMMA, "wgmma", 90, 90, true, "mma.sync") \
  FT(TCGEN05, "tcgen05", 100, 110, true, \
     "wgmma (sm_90a) or mma.sync") \
  FT(CLC, "clusterlaunchcontrol", 100, 0, true, NULL) \
  FT(COPY256, "a 256-bit copy", 100, 0, false, "two copies of 128 bits")
typedef enum Feature {
#define FT(id, name, least, most, specific, instead) FT_##id,
  FEATURES(FT)
#undef FT
  FT_COUNT,
  // FT_NONE: no feature; FT_ROW: the row of another table names the feature
  FT_NONE = FT_COUNT, FT_ROW
} Feature;
bool target_has(int sm, Feature f);
// returns FT_COUNT if no feature has this name
Feature target_find(const char *name);

// The requirement of an instruction. If name is NULL, every target meets it. An
// mbarrier operation has a requirement only if older targets cannot replace it
// by other instructions. On older targets, a wait polls with test_wait, several
// arrivals are made one by one, and relaxed operations have a stronger order.
typedef struct Need {
  const char *name;
  // first and last sm that meet the requirement; most 0: no upper limit
  int least, most;
  // whether the instruction needs a chip- or family-specific target: sm_120a,
  // sm_120f
  bool specific;
  const char *instead;  // what to write for other targets, or NULL
  // an sm between the first and the last that lacks the feature, or 0
  int lacks;
  // whether only chip-specific targets have the feature, and family-specific
  // targets such as sm_100f lack it
  bool chip;
} Need;
Need target_need(const Fn *fn, const Ins *i);
Need target_feature(Feature f);
// Reports whether some target supports atomic operation k on elements of type
// t.
bool target_atomic(AtomicKind k, DType t);

// Returns why sm_<sm> does not meet requirement n, as the end of a sentence, or
// NULL if it does. arch: as for target_check.
const char *target_lacks(Ctx *cx, const Need *n, int sm, const char *arch);

// Fails with ERR_ARCH if fn uses a feature that sm_<sm> lacks. arch, such as
// "sm_120", tells whether chip- or family-specific features are available
// (NULL: yes).
void target_check(Ctx *cx, const Fn *fn, int sm, const char *arch);

#endif
// SPDX-License-Identifier: MIT
