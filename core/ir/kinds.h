// The small enumerations of the IR as tables: special registers, atomics,
// fences, and hints of memory accesses. A row holds everything that Lua, the
// dump, the emitter and the simulator need to know about an enumerator.
#ifndef CUTE_KINDS_H
#define CUTE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/tensormap.h"

// SR(ID, "name", "CUDA", "name of a temporary", least, most): special registers
// and their ranges. "CUDA" is the C expression, or NULL if a helper function
// reads the register. The expression of WARP is valid only in one-dimensional
// blocks. The rows from CLUSTERID_X on describe clusters and need sm_90.
#define SREGS(SR) \
  SR(TID_X, "tid.x", "threadIdx.x", "tid", 0, 1023) \
  SR(TID_Y, "tid.y", "threadIdx.y", "tid_y", 0, 1023) \
  SR(TID_Z, "tid.z", "threadIdx.z", "tid_z", 0, 63) \
  SR(CTAID_X, "ctaid.x", "blockIdx.x", "block_x", 0, INT32_MAX) \
  SR(CTAID_Y, "ctaid.y", "blockIdx.y", "block_y", 0, INT32_MAX) \
  SR(CTAID_Z, "ctaid.z", "blockIdx.z", "block_z", 0, INT32_MAX) \
  SR(NTID_X, "ntid.x", "blockDim.x", "threads_x", 1, 1024) \
  SR(NTID_Y, "ntid.y", "blockDim.y", "threads_y", 1, 1024) \
  SR(NTID_Z, "ntid.z", "blockDim.z", "threads_z", 1, 64) \
  SR(NCTAID_X, "nctaid.x", "gridDim.x", "grid_x", 1, INT32_MAX) \
  SR(NCTAID_Y, "nctaid.y", "gridDim.y", "grid_y", 1, INT32_MAX) \
  SR(NCTAID_Z, "nctaid.z", "gridDim.z", "grid_z", 1, INT32_MAX) \
  SR(LANE, "laneid", NULL, "lane", 0, 31) \
  SR(WARP, "warpid", "threadIdx.x / 32", "warp", 0, 31) \
  SR(SMID, "smid", NULL, "sm", 0, INT32_MAX) \
  SR_XYZ(SR, CLUSTERID, "clusterid", "cluster", 0, INT32_MAX) \
  SR_XYZ(SR, NCLUSTERID, "nclusterid", "clusters", 1, INT32_MAX) \
  SR_XYZ(SR, CLUSTER_CTAID, "cluster_ctaid", "cta", 0, 15) \
  SR_XYZ(SR, CLUSTER_NCTAID, "cluster_nctaid", "ctas", 1, 16) \
  SR(CLUSTER_CTARANK, "cluster_ctarank", NULL, "rank", 0, 15) \
  SR(CLUSTER_NCTARANK, "cluster_nctarank", NULL, "ranks", 1, 16)
#define SR_XYZ(SR, id, name, temp, least, most) \
  SR(id##_X, name ".x", NULL, temp "_x", least, most) \
  SR(id##_Y, name ".y", NULL, temp "_y", least, most) \
  SR(id##_Z, name ".z", NULL, temp "_z", least, most)
typedef enum SReg {
#define SR(id, name, cuda, temp, least, most) SR_##id,
  SREGS(SR)
#undef SR
  SR_COUNT
} SReg;
CONSECUTIVE(3, SR_TID_X, SR_TID_Z);
CONSECUTIVE(3, SR_CTAID_X, SR_CTAID_Z);
CONSECUTIVE(3, SR_NTID_X, SR_NTID_Z);
CONSECUTIVE(3, SR_NCTAID_X, SR_NCTAID_Z);
CONSECUTIVE(3, SR_CLUSTERID_X, SR_CLUSTERID_Z);
CONSECUTIVE(3, SR_NCLUSTERID_X, SR_NCLUSTERID_Z);
CONSECUTIVE(3, SR_CLUSTER_CTAID_X, SR_CLUSTER_CTAID_Z);
CONSECUTIVE(3, SR_CLUSTER_NCTAID_X, SR_CLUSTER_NCTAID_Z);
// The rows that describe lanes and blocks come first, those that describe
// clusters last.
CONSECUTIVE(13, 0, SR_LANE);
CONSECUTIVE(14, SR_CLUSTERID_X, SR_COUNT - 1);
typedef struct SRegRow {
  const char *name, *cuda, *temp;
  int32_t least, most;
} SRegRow;
const SRegRow *sreg_row(SReg r);
// Reports whether a special register differs between blocks.
bool sreg_is_block(SReg r);

// AT(ID, "name in PTX", "CUDA", op, fidelity): atomic operations. op combines
// the old value with the operand. op is NOP if the new value depends on only
// one of the two. fidelity: a row of base/fidelity.h.
#define ATOMICS(AT) \
  AT(ADD, "add", "atomicAdd", ADD, ORDER) \
  AT(MIN, "min", "atomicMin", MIN, EXACT) \
  AT(MAX, "max", "atomicMax", MAX, EXACT) \
  AT(AND, "and", "atomicAnd", AND, EXACT) \
  AT(OR, "or", "atomicOr", OR, EXACT) \
  AT(XOR, "xor", "atomicXor", XOR, EXACT) \
  AT(EXCH, "exch", "atomicExch", NOP, EXACT) \
  AT(CAS, "cas", "atomicCAS", NOP, EXACT) \
  AT(INC, "inc", "atomicInc", NOP, EXACT) \
  AT(DEC, "dec", "atomicDec", NOP, EXACT)
typedef enum AtomicKind {
#define AT(id, name, cuda, op, fidelity) AT_##id,
  ATOMICS(AT)
#undef AT
  AT_COUNT
} AtomicKind;
CONSECUTIVE(3, AT_AND, AT_XOR);
// The rows of exchanges and counters come last, because they allow other types
// than the rows above.
CONSECUTIVE(4, AT_EXCH, AT_COUNT - 1);
typedef struct AtomicRow {
  const char *name, *cuda;
  uint8_t op;  // the Op
  uint8_t fidelity;  // the Fidelity
} AtomicRow;
const AtomicRow *atomic_row(AtomicKind k);

// FE(ID, "name", first sm, "CUDA or PTX"): memory fences. Fences CTA to SYS
// order memory among the threads of a scope, from the CTA to the system. The
// fences after SYS order other proxies, or only certain accesses.
#define FENCES(FE) \
  FE(CTA, "cta", 0, "__threadfence_block()") \
  FE(CLUSTER, "cluster", 90, "fence.acq_rel.cluster") \
  FE(GPU, "gpu", 0, "__threadfence()") \
  FE(SYS, "sys", 0, "__threadfence_system()") \
  FE(MBARINIT, "mbarrier_init", 80, "fence.mbarrier_init.release.cluster") \
  FE(TENSORMAP, "tensormap", 90, \
     "fence.proxy.tensormap::generic.release.gpu") \
  FE(ALIAS, "alias", 70, "fence.proxy.alias") \
  FE(ASYNC, "async", 90, "fence.proxy.async") \
  FE(ASYNC_GLOBAL, "async.global", 90, "fence.proxy.async.global") \
  FE(ASYNC_CTA, "async.shared::cta", 90, "fence.proxy.async.shared::cta") \
  FE(ASYNC_CLUSTER, "async.shared::cluster", 90, \
     "fence.proxy.async.shared::cluster")
typedef enum FenceKind {
#define FE(id, name, sm, text) FE_##id,
  FENCES(FE)
#undef FE
  FE_COUNT
} FenceKind;
// The rows of fences that order memory among threads come first, by increasing
// scope.
CONSECUTIVE(2, FE_CTA, FE_CLUSTER);
CONSECUTIVE(4, 0, FE_SYS);
typedef struct FenceRow {
  const char *name;
  int sm;
  const char *text;
} FenceRow;
const FenceRow *fence_row(FenceKind k);
// Reports whether a fence orders memory among threads, as opposed to proxies.
static inline bool fence_is_order(FenceKind k) { return k <= FE_SYS; }

// Return the enumerator whose row has this name, or the enumeration's COUNT if
// there is no such row.
SReg sreg_find(const char *name);
AtomicKind atomic_find(const char *name);
FenceKind fence_find(const char *name);

// Hints of a memory access. For LD, ST, ATOMIC and MBAR*, Ins.flags has a field
// for each kind of hint. COPY has only the fields of PREFETCH and LEVEL2, and
// CPASYNC that of PREFETCH. An access without hints has 0 in all fields. HV(ID,
// "name", "PTX"): a value of a hint, numbered from 1. HF(ID, shift, bits,
// "name", values): a hint and its field of Ins.flags.
#define HINT_COPS(HV) /* cache operator */ \
  HV(COP_CA, "ca", ".ca") HV(COP_CG, "cg", ".cg") HV(COP_CS, "cs", ".cs") \
  HV(COP_LU, "lu", ".lu") HV(COP_CV, "cv", ".cv") HV(COP_WB, "wb", ".wb") \
  HV(COP_WT, "wt", ".wt")
#define HINT_SEMS(HV) /* memory order */ \
  HV(SEM_RELAXED, "relaxed", ".relaxed") \
  HV(SEM_ACQUIRE, "acquire", ".acquire") \
  HV(SEM_RELEASE, "release", ".release") \
  HV(SEM_ACQ_REL, "acq_rel", ".acq_rel")
#define HINT_SCOPES(HV) /* observing threads */ \
  HV(SCOPE_CTA, "cta", ".cta") HV(SCOPE_CLUSTER, "cluster", ".cluster") \
  HV(SCOPE_GPU, "gpu", ".gpu") HV(SCOPE_SYS, "sys", ".sys")
#define HINT_EVICTS(HV) /* L1 eviction priority */ \
  HV(EVICT_NORMAL, "evict_normal", ".L1::evict_normal") \
  HV(EVICT_FIRST, "evict_first", ".L1::evict_first") \
  HV(EVICT_LAST, "evict_last", ".L1::evict_last") \
  HV(EVICT_NONE, "evict_no_allocate", ".L1::no_allocate") \
  HV(EVICT_UNCHANGED, "evict_unchanged", ".L1::evict_unchanged")
#define HINT_PREFETCHES(HV) /* L2 prefetch size */ \
  HV(PREFETCH_64, "size_64b", ".L2::64B") \
  HV(PREFETCH_128, "size_128b", ".L2::128B") \
  HV(PREFETCH_256, "size_256b", ".L2::256B")
#define HINT_LEVELS2(HV) /* L2 eviction priority */ \
  HV(LEVEL2_NORMAL, "evict_normal", ".L2::evict_normal") \
  HV(LEVEL2_FIRST, "evict_first", ".L2::evict_first") \
  HV(LEVEL2_LAST, "evict_last", ".L2::evict_last")
#define HINTS(HF) \
  HF(COP, 0, 3, "cop", HINT_COPS) HF(SEM, 3, 3, "sem", HINT_SEMS) \
  HF(SCOPE, 6, 3, "scope", HINT_SCOPES) \
  HF(EVICT, 9, 3, "level1_eviction_priority", HINT_EVICTS) \
  HF(PREFETCH, 12, 2, "level_prefetch_size", HINT_PREFETCHES) \
  HF(LEVEL2, 14, 2, "level2_eviction_priority", HINT_LEVELS2)
#define HV(id, name, ptx) id,
enum { COP_NONE, HINT_COPS(HV) };
enum { SEM_NONE, HINT_SEMS(HV) };
enum { SCOPE_NONE, HINT_SCOPES(HV) };
enum { EVICT_ANY, HINT_EVICTS(HV) };
enum { PREFETCH_NONE, HINT_PREFETCHES(HV) };
enum { LEVEL2_ANY, HINT_LEVELS2(HV) };
#undef HV
// Code relies on this order: memory orders from the weakest to the strongest,
// scopes from the narrowest to the widest.
CONSECUTIVE(2, SEM_RELEASE, SEM_ACQ_REL);
CONSECUTIVE(3, SEM_RELAXED, SEM_RELEASE);
CONSECUTIVE(2, SCOPE_CTA, SCOPE_CLUSTER);
CONSECUTIVE(2, SCOPE_GPU, SCOPE_SYS);
CONSECUTIVE(2, SCOPE_CLUSTER, SCOPE_GPU);
typedef enum HintId {
#define HF(id, shift, bits, name, values) HINT_##id,
  HINTS(HF)
#undef HF
  HINT_COUNT
} HintId;
typedef struct HintField {
  const char *name;
  unsigned shift, bits;
  // Texts of the values. Value 0 has empty texts. The entry after the last
  // value has a NULL name.
  struct { const char *name, *ptx; } value[8];
} HintField;
const HintField *hint_field(HintId f);
// Returns the bits of Ins.flags that are the field of hint f.
static inline unsigned hint_mask(HintId f) {
  return ((1u << hint_field(f)->bits) - 1) << hint_field(f)->shift;
}
static inline unsigned hint_get(unsigned flags, HintId f) {
  return (flags & hint_mask(f)) >> hint_field(f)->shift;
}
// Other bits of Ins.flags. For MBAR* they are in the COP field.
// - MBF_ARRIVE: MBARTX also arrives.
// - MBF_TEST: MBARTRY does not block.
// - MBF_NOINC: MBARCPASYNC does not increment the expected arrivals of the
//   phase, because the mbarrier's initial count includes its arrival.
// - CLF_RELAXED: CLUSTERARRIVE has no memory order.
// - CLF_UNALIGNED: CLUSTERARRIVE or CLUSTERWAIT need not be executed by the
//   whole warp.
// - BRF_UNALIGNED: the lanes of a warp may execute BAR or BARARRIVE one by one
//   (the simulator executes them at once).
// - RGF_INC: SETMAXNREG takes registers instead of releasing them.
enum { MBF_ARRIVE = 1, MBF_TEST = 2, MBF_NOINC = 4 };
enum { CLF_RELAXED = 1, CLF_UNALIGNED = 2 };
enum { BRF_UNALIGNED = 1 };
enum { RGF_INC = 1 };
// Flags of tcgen05.
// - TCF_PAIR: cta_group::2, the instruction belongs to a pair of CTAs.
// - TCF_AFTER: TCFENCE is fence::after_thread_sync, not before_thread_sync.
// - TCF_UNALIGNED: TCWAITLD need not be executed by the whole warp.
enum { TCF_PAIR = 1, TCF_AFTER = 2, TCF_UNALIGNED = 4 };
// INF_ASIDE: the instruction serves only assertions and has no effect.
enum { INF_ASIDE = 1 << 15 };
// Flags of bulk copies.
// - BKF_IM2COL: TMALOAD, TMASTORE or TMAPREFETCH uses an im2col map.
// - BKF_REDUCES: TMASTORE or BULKSTORE combines old and new values by the
//   AtomicKind in the bits BKF_ATOMIC.
// - BKF_READ: BULKWAIT waits only until the sources have been read.
// - BKF_PAIR: TMALOAD completes bytes at the mbarrier of the even CTA of the
//   destination's pair.
// - BKF_ROWS: TMALOAD or TMAPREFETCH gathers four rows of a tensor with two
//   modes (tile::gather4), TMASTORE scatters them (tile::scatter4). The
//   coordinates are a column and four rows. The box has one row.
enum { BKF_ATOMIC = 7, BKF_REDUCES = 8, BKF_IM2COL = 16, BKF_READ = 32,
       BKF_PAIR = 64, BKF_ROWS = 128 };
enum { BULK_ROWS = 4 };  // number of rows of a copy with BKF_ROWS
// Returns the value of hint f in the flags as PTX writes it: "", ".cg", ...
static inline const char *hint_text(unsigned flags, HintId f) {
  return hint_field(f)->value[hint_get(flags, f)].ptx;
}

#endif
// SPDX-License-Identifier: MIT
