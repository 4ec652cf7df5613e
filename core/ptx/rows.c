// rows.c: the table of opcodes. For each opcode, it has the function that
// translates the opcode, the allowed modifiers, and notes on inexact results.
// The table in docs/ptx.md is generated from this table.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

#define INTS "u16 u32 u64 s16 s32 s64"
#define WORDS "u32 s32 u64 s64"
#define BITS "b16 b32 b64"
#define FLOATS "f16 f16x2 bf16 bf16x2 f32 f64"
#define ROUNDS "rn rz rm rp"
#define MEMORY "weak relaxed acquire release volatile cta cluster gpu sys " \
  "global shared shared::cta shared::cluster local " \
  "L1::evict_normal L1::evict_first L1::evict_last L1::no_allocate " \
  "L1::evict_unchanged L2::evict_normal L2::evict_first L2::evict_last " \
  "L2::cache_hint ca cg cs lu cv wb wt"
#define ANY_TYPE "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 " \
  "f64"
#define COMPARES "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu " \
  "num nan and or xor ftz"
#define REDUCES "popc and or aligned u32 pred"
#define REDUCED "uses three barriers and a word of shared memory"
#define VIDEO_NOTE "selectors of lanes are rejected"
#define GROUPS "cta_group::1 cta_group::2 sync aligned b32"
#define SHAPES "sync aligned 32x32b 16x64b 16x128b 16x256b 16x32bx2 x1 x2 " \
  "x4 x8 x16 x32 x64 x128 b32"
#define HALVES "the halves of 16x32bx2 must be adjacent"
#define EVERYTHING "*"  // PtxRow.emit checks the modifiers itself
#define LATER "a form for sm_100 and later"

// values of PtxRow.fidelity
enum { ROW = FI_ROW, CONTRACTED = FI_CONTRACTED, WEAKER = FI_WEAKER };

static const PtxRow rows[] = {
  // arithmetic
  {"add", CONTRACTED, 1, false, row_sum, OP_ADD, ROUNDS " ftz sat cc " INTS
   " s16x2 u16x2 f32x2 " FLOATS, ""},
  {"sub", CONTRACTED, 1, false, row_sum, OP_SUB, ROUNDS " ftz sat cc " INTS
   " s16x2 u16x2 f32x2 " FLOATS, ""},
  {"addc", ROW, 1, false, row_sum, OP_ADD, "cc " WORDS, ""},
  {"subc", ROW, 1, false, row_sum, OP_SUB, "cc " WORDS, ""},
  {"mul", CONTRACTED, 1, false, row_mul, 0,
    "lo hi wide " ROUNDS " ftz sat " INTS " f32x2 "
   FLOATS, ""},
  {"mad", ROW, 1, false, row_mul, 1, "lo hi wide " ROUNDS " ftz sat cc " INTS
   " f32 f64", ""},
  {"madc", ROW, 1, false, row_mul, 2, "lo hi cc " WORDS, ""},
  {"fma", ROW, 1, false, row_mul, 1, ROUNDS " ftz sat relu oob f32x2 "
   FLOATS, ""},
  {"mul24", ROW, 1, false, row_mul24, 0, "lo hi u32 s32", ""},
  {"mad24", ROW, 1, false, row_mul24, 1, "lo hi sat u32 s32", ""},
  {"sad", ROW, 1, false, row_sad, 0, INTS, ""},
  {"div", ROW, 1, false, row_divide, OP_DIV, "approx full " ROUNDS " ftz " INTS
   " f32 f64", ""},
  {"rem", ROW, 1, false, row_divide, OP_MOD, INTS, ""},
  {"min", ROW, 1, false, row_extreme, OP_MIN, "ftz NaN xorsign abs relu " INTS
   " s16x2 u16x2 " FLOATS, ""},
  {"max", ROW, 1, false, row_extreme, OP_MAX, "ftz NaN xorsign abs relu " INTS
   " s16x2 u16x2 " FLOATS, ""},
  {"neg", ROW, 1, false, row_sign, OP_NEG, "ftz s16 s32 s64 " FLOATS, ""},
  {"abs", ROW, 1, false, row_sign, OP_ABS, "ftz s16 s32 s64 " FLOATS, ""},
  {"dp4a", ROW, 1, false, row_dot, SOFT_DP4A, "u32 s32", ""},
  {"dp2a", ROW, 1, false, row_dot, SOFT_DP2A, "lo hi u32 s32", ""},
  {"rcp", ROW, 1, false, row_function, SOFT_A_RCP, "approx " ROUNDS
   " ftz f32 f64", ""},
  {"sqrt", ROW, 1, false, row_function, SOFT_A_SQRT, "approx " ROUNDS
   " ftz f32 f64", ""},
  {"rsqrt", ROW, 1, false, row_function, SOFT_RSQRT, "approx ftz f32 f64", ""},
  {"ex2", ROW, 1, false, row_function, SOFT_EX2,
    "approx ftz f32 f16 f16x2 bf16 "
   "bf16x2", ""},
  {"lg2", ROW, 1, false, row_function, SOFT_LG2, "approx ftz f32", ""},
  {"sin", ROW, 1, false, row_function, SOFT_SIN, "approx ftz f32", ""},
  {"cos", ROW, 1, false, row_function, SOFT_COS, "approx ftz f32", ""},
  {"tanh", ROW, 1, false, row_function, SOFT_TANH, "approx f32 f16 f16x2 bf16 "
   "bf16x2", ""},
  {"vadd2", ROW, 1, false, row_video, VIDEO_ADD, "sat u32 s32",
   VIDEO_NOTE},
  {"vadd4", ROW, 1, false, row_video, VIDEO_ADD | VIDEO_BYTES, "sat u32 s32",
   VIDEO_NOTE},
  {"vsub2", ROW, 1, false, row_video, VIDEO_SUB, "sat u32 s32",
   VIDEO_NOTE},
  {"vsub4", ROW, 1, false, row_video, VIDEO_SUB | VIDEO_BYTES, "sat u32 s32",
   VIDEO_NOTE},
  {"vmin2", ROW, 1, false, row_video, VIDEO_MIN, "sat add u32 s32",
   VIDEO_NOTE},
  {"vmin4", ROW, 1, false, row_video, VIDEO_MIN | VIDEO_BYTES,
    "sat add u32 s32",
   VIDEO_NOTE},
  {"vmax2", ROW, 1, false, row_video, VIDEO_MAX, "sat add u32 s32",
   VIDEO_NOTE},
  {"vmax4", ROW, 1, false, row_video, VIDEO_MAX | VIDEO_BYTES,
    "sat add u32 s32",
   VIDEO_NOTE},
  {"vabsdiff2", ROW, 1, false, row_video, VIDEO_ABSDIFF, "sat add u32 s32",
   VIDEO_NOTE},
  {"vabsdiff4", ROW, 1, false, row_video, VIDEO_ABSDIFF | VIDEO_BYTES,
   "sat add u32 s32", VIDEO_NOTE},
  {"vset2", ROW, 1, false, row_video, VIDEO_SET,
   "eq ne lt le gt ge add u32 s32", VIDEO_NOTE},
  {"vset4", ROW, 1, false, row_video, VIDEO_SET | VIDEO_BYTES,
   "eq ne lt le gt ge add u32 s32", VIDEO_NOTE},
  // bits
  {"and", ROW, 1, false, row_logic, OP_AND, "pred " BITS, ""},
  {"or", ROW, 1, false, row_logic, OP_OR, "pred " BITS, ""},
  {"xor", ROW, 1, false, row_logic, OP_XOR, "pred " BITS, ""},
  {"not", ROW, 1, false, row_not, 0, "pred " BITS, ""},
  {"cnot", ROW, 1, false, row_cnot, 0, BITS, ""},
  {"shl", ROW, 1, false, row_shift, OP_SHL, BITS, ""},
  {"shr", ROW, 1, false, row_shift, OP_SHR, BITS " " INTS, ""},
  {"shf", ROW, 1, false, row_funnel, 0, "l r clamp wrap b32", ""},
  {"lop3", ROW, 1, false, row_lop3, 0, "and or b32", ""},
  {"prmt", ROW, 1, false, row_prmt, 0, "b32 f4e b4e rc8 ecl ecr rc16", ""},
  {"popc", ROW, 1, false, row_count, IN_POPC, "b32 b64", ""},
  {"clz", ROW, 1, false, row_count, IN_CLZ, "b32 b64", ""},
  {"brev", ROW, 1, false, row_count, IN_BREV, "b32 b64", ""},
  {"bfind", ROW, 1, false, row_bfind, 0, "shiftamt " WORDS, ""},
  {"bfe", ROW, 1, false, row_bitfield, 0, WORDS, ""},
  {"bfi", ROW, 1, false, row_bitfield, 1, "b32 b64", ""},
  {"bmsk", ROW, 1, false, row_mask, SOFT_BMSK, "clamp wrap b32", ""},
  {"szext", ROW, 1, false, row_mask, SOFT_SZEXT, "clamp wrap u32 s32", ""},
  {"fns", ROW, 1, false, row_mask, SOFT_FNS, "b32", ""},
  // comparisons
  {"setp", ROW, 1, false, row_setp, 0, COMPARES " " BITS " " INTS " " FLOATS,
    ""},
  {"set", ROW, 1, false, row_set, 0, COMPARES " " BITS " " INTS " " FLOATS, ""},
  {"selp", ROW, 1, false, row_selp, 0, BITS " " INTS " f32 f64", ""},
  {"slct", ROW, 1, false, row_slct, 0, "ftz " BITS " " INTS " f32 f64", ""},
  {"testp", ROW, 1, false, row_testp, 0, "finite infinite number notanumber "
   "normal subnormal f32 f64", ""},
  {"copysign", ROW, 1, false, row_copysign, 0, "f32 f64", ""},
  // conversions
  {"cvt", ROW, 1, false, row_cvt, 0,
    "rni rzi rmi rpi " ROUNDS " rna ftz sat relu "
   "satfinite u8 s8 " INTS " " FLOATS " tf32 e4m3x2 e5m2x2", ""},
  {"cvt.pack", ROW, 1, false, row_cvt_pack, 0,
    "sat s16 u16 s8 u8 s4 u4 s2 u2 s32 "
   "b32", ""},
  // memory
  {"mov", ROW, 1, false, row_mov, 0, "pred b8 b128 " BITS " " INTS " f32 f64",
    ""},
  {"cvta", ROW, 1, false, row_cvta, 0, "to global param shared shared::cta "
   "shared::cluster local u64 u32", ""},
  {"isspacep", ROW, 1, false, row_isspacep, 0, "global shared shared::cta "
   "shared::cluster local", ""},
  {"ld", WEAKER, 1, false, row_load, 0,
    "param param::entry param::func const nc v2 "
   "v4 v8 " MEMORY " L2::64B L2::128B L2::256B " ANY_TYPE,
   ".volatile is .relaxed.sys"},
  {"ldu", ROW, 1, false, row_load, 0, "global v2 v4 " ANY_TYPE, ""},
  {"st", WEAKER, 0, false, row_store, 0,
    "param param::func v2 v4 v8 " MEMORY " "
   ANY_TYPE, ".volatile is .relaxed.sys"},
  {"st.async", ROW, 0, false, row_send, 0, "weak shared::cluster "
   "mbarrier::complete_tx::bytes v2 v4 b32 b64 " WORDS " f32 f64", ""},
  {"atom", ROW, 1, false, row_atomic, 0,
    "add min max and or xor exch cas inc dec "
   "noftz v2 v4 v8 " MEMORY " b128 " BITS " " WORDS " " FLOATS " acq_rel",
   ".b128 is rejected"},
  {"red", ROW, 0, false, row_atomic, 1,
    "add min max and or xor inc dec noftz v2 "
   "v4 v8 " MEMORY " " BITS " " WORDS " " FLOATS " acq_rel", ""},
  {"prefetch", ROW, 0, false, row_nothing, 0, EVERYTHING, "does nothing"},
  {"prefetchu", ROW, 0, false, row_nothing, 0, EVERYTHING, "does nothing"},
  {"applypriority", ROW, 0, false, row_nothing, 0, "global L2::evict_normal",
   "does nothing"},
  {"createpolicy", ROW, 1, false, row_policy, 0, EVERYTHING,
   "returns 0; cache policies have no effect"},
  {"prefetch.tensormap", ROW, 0, false, row_prefetch, 0, EVERYTHING, ""},
  {"tensormap.replace", ROW, 0, false, row_replace, 0,
    "tile global shared::cta "
   "b1024 b32 b64 global_address rank box_dim global_dim global_stride "
   "element_stride elemtype interleave_layout swizzle_mode fill_mode",
   "also updates the fields of the map that follow from the others"},
  {"tensormap.cp_fenceproxy", ROW, 0, false, row_publish, 0,
    "global shared::cta "
   "tensormap::generic release gpu sys sync aligned", ""},
  {"cp.async", ROW, 0, false, row_copy, 0, "ca cg shared shared::cta global "
   "L2::cache_hint L2::64B L2::128B L2::256B", ""},
  {"cp.async.commit_group", ROW, 0, false, row_copy_wait, 0, "", ""},
  {"cp.async.wait_group", ROW, 0, false, row_copy_wait, 0, "", ""},
  {"cp.async.wait_all", ROW, 0, false, row_copy_wait, 0, "", ""},
  {"cp.async.mbarrier.arrive", ROW, 0, false, row_copy_arrive, 0,
    "noinc shared "
   "shared::cta b64", ""},
  {"cp.async.bulk", ROW, 0, false, row_bulk, 0, EVERYTHING, ""},
  {"cp.reduce.async.bulk", ROW, 0, false, row_bulk, 0, EVERYTHING, ""},
  // threads
  {"bar", ROW, 0, false, row_barrier, 1, "cta sync arrive", ""},
  {"bar.red", ROW, 1, false, row_barrier, 1, REDUCES, REDUCED},
  {"bar.cta.red", ROW, 1, false, row_barrier, 1, REDUCES, REDUCED},
  {"bar.warp", ROW, 0, false, row_warp_barrier, 0, "sync", ""},
  {"barrier", ROW, 0, false, row_barrier, 0, "cta sync arrive aligned", ""},
  {"barrier.red", ROW, 1, false, row_barrier, 0, REDUCES, REDUCED},
  {"barrier.cta.red", ROW, 1, false, row_barrier, 0, REDUCES, REDUCED},
  {"barrier.cluster", ROW, 0, false, row_cluster, 0,
    "arrive wait release acquire "
   "relaxed aligned", ""},
  {"membar", WEAKER, 0, false, row_fence, 0, "cta gl sys",
    "orders as acq_rel, not sc"},
  {"fence", ROW, 0, false, row_fence, 0, "acq_rel cta cluster gpu sys", ""},
  {"fence.sc", WEAKER, 0, false, row_fence, 0, "cta cluster gpu sys",
   "orders as acq_rel"},
  {"fence.proxy", ROW, 0, false, row_proxy, 0, EVERYTHING, ""},
  {"fence.mbarrier_init", ROW, 0, false, row_proxy, 0, EVERYTHING, ""},
  {"shfl", ROW, 1, false, row_shuffle, 0, "sync idx up down bfly b32", ""},
  {"vote", ROW, 1, false, row_vote, 0, "sync any all uni ballot pred b32", ""},
  {"match", ROW, 1, false, row_match, 0, "sync any all b32 b64",
   "orders memory among its lanes in libcu++'s pipelines"},
  {"redux", ROW, 1, false, row_redux, 0,
    "sync add min max and or xor u32 s32 b32",
   ""},
  {"elect", ROW, 1, false, row_elect, 0, "sync",
   "elects a middle lane; the lowest if the lane's number is read"},
  {"activemask", ROW, 1, false, row_active, 0, "b32", ""},
  {"nanosleep", ROW, 0, false, row_sleep, 0, "u32", ""},
  {"pmevent", ROW, 0, false, row_nothing, 0, EVERYTHING, "does nothing"},
  {"trap", ROW, 0, false, row_trap, 0, "", ""},
  {"brkpt", ROW, 0, false, row_trap, 1, "", "ends the launch with a report"},
  {"call", ROW, 0, false, row_call, 0, "uni",
    "is inlined; recursion is rejected"},
  {"brx.idx", ROW, 0, false, row_call, 0, "uni",
    "becomes a tree of comparisons"},
  // matrices
  {"mma", ROW, 1, true, row_mma, 0, EVERYTHING, "only shapes that an atom has"},
  {"ldmatrix", ROW, 1, true, row_matrix, 0, EVERYTHING,
   "only shapes that an atom has"},
  {"stmatrix", ROW, 0, true, row_matrix, 1, EVERYTHING,
   "only shapes that an atom has"},
  {"wmma", ROW, 0, false, row_call, 0, EVERYTHING,
   "executed by mma, with the fragment layouts of mma"},
  {"movmatrix", ROW, 1, false, row_movmatrix, 0, "sync aligned m8n8 trans b16",
    ""},
  // Hopper
  {"mbarrier", ROW, 1, false, row_mbarrier, 0, EVERYTHING, ""},
  {"wgmma", ROW, 1, false, row_wgmma, 0, "sync aligned fence commit_group "
   "wait_group", ""},
  {"wgmma.mma_async", ROW, 1, true, row_wgmma, 0, EVERYTHING,
   "only imm-scale 1, and base offset 0"},
  {"mapa", ROW, 1, false, row_mapa, 0, "shared::cluster u32 u64", ""},
  {"setmaxnreg", ROW, 0, false, row_cluster, 0, "inc dec sync aligned u32", ""},
  {"griddepcontrol", ROW, 0, false, row_cluster, 0, "wait launch_dependents",
    ""},
  // Blackwell
  {"tcgen05.alloc", ROW, 0, false, row_tmem_alloc, 0,
   GROUPS " shared shared::cta", ""},
  {"tcgen05.dealloc", ROW, 0, false, row_tmem_dealloc,
   OP_TCDEALLOC, GROUPS, ""},
  {"tcgen05.relinquish_alloc_permit", ROW, 0, false, row_tmem_relinquish,
   OP_TCRELINQUISH, GROUPS, ""},
  {"tcgen05.ld", ROW, 1, true, row_tmem_copy, OP_TCLD,
   SHAPES " pack::16b", HALVES},
  {"tcgen05.st", ROW, 0, true, row_tmem_copy, OP_TCST,
   SHAPES " unpack::16b", HALVES},
  {"tcgen05.wait::ld", ROW, 0, false, row_tmem_wait, OP_TCWAITLD,
   "sync aligned", ""},
  {"tcgen05.wait::st", ROW, 0, false, row_tmem_wait, OP_TCWAITST,
   "sync aligned", ""},
  {"tcgen05.fence::before_thread_sync", ROW, 0, false, row_tmem_fence, 0, "",
   ""},
  {"tcgen05.fence::after_thread_sync", ROW, 0, false, row_tmem_fence,
   TCF_AFTER, "", ""},
  {"tcgen05.mma", ROW, 0, false, row_umma, 0,
   "ws sp cta_group::1 cta_group::2 "
   "kind::f16 kind::tf32 kind::f8f6f4 kind::i8 kind::mxf8f6f4 "
   "kind::mxf4 kind::mxf4nvf4 block_scale block16 block32 scale_vec::1X "
   "scale_vec::2X scale_vec::4X collector::a::fill collector::a::use "
   "collector::a::lastuse collector::a::discard "
   "collector::b0::fill collector::b0::use collector::b0::lastuse "
   "collector::b0::discard collector::b1::fill collector::b1::use "
   "collector::b1::lastuse collector::b1::discard collector::b2::fill "
   "collector::b2::use collector::b2::lastuse collector::b2::discard "
   "collector::b3::fill collector::b3::use collector::b3::lastuse "
   "collector::b3::discard",
   "instruction descriptors must be constants, or constants that conditions "
   "select; scale-input-d must be 0; no lanes may be disabled"},
  {"tcgen05.cp", ROW, 0, false, row_tmem_rows, 0, "cta_group::1 cta_group::2 "
   "128x256b 128x128b 4x256b 32x128b 64x128b warpx4 warpx2::02_13 "
   "warpx2::01_23", ""},
  {"tcgen05.shift", ROW, 0, false, row_tmem_shift, 0,
   "cta_group::1 cta_group::2 down", ""},
  {"tcgen05.commit", ROW, 0, false, row_commit, 0, "cta_group::1 cta_group::2 "
   "mbarrier::arrive::one shared::cluster multicast::cluster b64", ""},
  {"clusterlaunchcontrol.try_cancel", ROW, 0, false, row_cancel, 0, "async "
   "shared::cta mbarrier::complete_tx::bytes multicast::cluster::all b128",
   "in a cluster only with multicast::cluster::all"},
  {"clusterlaunchcontrol.query_cancel", ROW, 1, false, row_canceled, 0,
   "is_canceled get_first_ctaid get_first_ctaid::x get_first_ctaid::y "
   "get_first_ctaid::z pred v4 b32 b128", ""},
  // rejected
  {"tcgen05", ROW, 0, false, NULL, 0, "", "other operations of tensor memory"},
  {"tex", ROW, 0, false, NULL, 0, "", "textures are not modelled"},
  {"tld4", ROW, 0, false, NULL, 0, "", "textures are not modelled"},
  {"txq", ROW, 0, false, NULL, 0, "", "textures are not modelled"},
  {"suld", ROW, 0, false, NULL, 0, "", "surfaces are not modelled"},
  {"sust", ROW, 0, false, NULL, 0, "", "surfaces are not modelled"},
  {"sured", ROW, 0, false, NULL, 0, "", "surfaces are not modelled"},
  {"suq", ROW, 0, false, NULL, 0, "", "surfaces are not modelled"},
  {"alloca", ROW, 0, false, NULL, 0, "",
    "stacks of dynamic size are not modelled"},
  {"stacksave", ROW, 0, false, NULL, 0, "",
    "stacks of dynamic size are not modelled"},
  {"stackrestore", ROW, 0, false, NULL, 0, "",
   "stacks of dynamic size are not modelled"},
  {"multimem", ROW, 0, false, NULL, 0, "",
    "memory of several GPUs is not modelled"},
};

// Instructions that exist only in copies of functions (calls.c). They print a
// text, check whether a thread may continue, and copy parameters to local
// memory.
static const PtxRow made[] = {
  {".print", ROW, 0, false, row_print, 0, "", ""},
  {".check", ROW, 0, false, row_check, 0, "", ""},
  {".fetch", ROW, 0, false, row_fetch, 0, "", ""}};

// ---- lookup ----

const PtxRow *ptxrow_find(const char *op) {
  for (size_t k = 0; op[0] == '.' && k < sizeof made / sizeof *made; k++) {
    if (strcmp(made[k].name, op) == 0) return &made[k];
  }
  const PtxRow *best = NULL;
  size_t most = 0;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    size_t n = strlen(rows[k].name);
    if (n <= most || !ptx_is(op, rows[k].name)) continue;
    best = &rows[k];
    most = n;
  }
  return best;
}

// Reports whether a word is in a list separated by blanks.
static bool lists(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)) != NULL; p += n) {
    bool starts = p == list || p[-1] == ' ';
    if (starts && (p[n] == ' ' || p[n] == 0)) return true;
  }
  return false;
}

// Modifiers that only targets after sm_90a have. `row` is the only opcode for
// which the entry holds; NULL: all opcodes.
static const struct { const char *mod, *row; } later[] = {
  {"f32x2", NULL}, {"rs", NULL}, {"e2m1x2", NULL}, {"e2m3x2", NULL},
  {"e3m2x2", NULL}, {"ue8m0x2", NULL}, {"e4m3x4", NULL}, {"e5m2x4", NULL},
  {"e2m1x4", NULL}, {"e2m3x4", NULL}, {"e3m2x4", NULL}, {"f32", "redux"}};

// Returns the reason why the row does not allow a modifier, or NULL if the row
// allows it.
static const char *unlisted(Ctx *cx, const PtxRow *row, const char *mod) {
  bool all = strcmp(row->takes, EVERYTHING) == 0;
  if (all || lists(row->takes, mod)) return NULL;
  for (size_t q = 0; q < sizeof later / sizeof *later; q++) {
    bool own = !later[q].row || strcmp(later[q].row, row->name) == 0;
    if (own && strcmp(later[q].mod, mod) == 0) return LATER;
  }
  return arena_printf(cx, &cx->scratch, "modifier .%s", mod);
}

// Returns the number of modifiers that are part of the row's name.
static int named_mods(const PtxRow *row) {
  int words = 0;
  for (const char *p = row->name; *p; p++) words += *p == '.';
  return words;
}

void ptxrow_check(PtxOp *o, const PtxRow *row) {
  if (!row->emit) op_reject(o, row->note);
  int words = named_mods(row);
  for (int k = 0; k < o->n; k++) {
    const char *why = NULL;
    if (k < words) o->used |= 1u << k;
    else why = unlisted(o->b->cx, row, o->mod[k]);
    if (why) op_reject(o, why);
  }
}

const char *ptx_rejects(Ctx *cx, const char *op) {
  static const char *const flow[] = {"bra", "ret", "exit"};
  for (size_t k = 0; k < sizeof flow / sizeof *flow; k++) {
    if (ptx_is(op, flow[k])) return NULL;
  }
  if (op[0] == '.') return NULL;  // a prototype
  const PtxRow *row = ptxrow_find(op);
  if (!row) return "not modelled";
  if (!row->emit) return row->note;
  char *mod = arena_printf(cx, &cx->scratch, "%s", op), *next = NULL;
  mod = strchr(mod, '.');
  for (int k = 0; mod; mod = next, k++) {
    next = strchr(++mod, '.');
    if (next) *next = 0;
    const char *why = k < named_mods(row) ? NULL : unlisted(cx, row, mod);
    if (why) return why;
  }
  return NULL;
}
// SPDX-License-Identifier: MIT
