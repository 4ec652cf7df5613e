// Copy atoms: plain and asynchronous copies, shuffles, ldmatrix, stmatrix, and
// copies of Blackwell's tensor memory.
#include "atoms/inside.h"

#define ONE(n) "(1," n "):(0,1)"
#define SAME3(l) .src = l, .dst = l, .ref = l
#define CPA(n, f) \
  {.name = n "<{T}>", .op = CO_CPASYNC, .thr = "1:0", SAME3(ONE("[T]")), \
   .bits = "[T]", .flags = f, .sm_min = 80}

// Layouts (thread,bit) -> bit of the matrices of ldmatrix and stmatrix.
// - R1, R2, R4: the rows of 1, 2 or 4 matrices in shared memory, whose
//   addresses come from 8, 16 or 32 lanes.
// - N1, N2, N4: the registers; each lane has 32 bits of every matrix.
// - T1, T2, T4: the registers if the matrices are transposed.
#define R1 "((8,4),128):((128,0),1)"
#define R2 "((16,2),128):((128,0),1)"
#define R4 "(32,128):(128,1)"
#define N1 "(32,32):(32,1)"
#define N2 "(32,(32,2)):(32,(1,1024))"
#define N4 "(32,(32,4)):(32,(1,1024))"
#define T1 "((4,8),(16,2)):((256,16),(1,128))"
#define T2 "((4,8),(16,2,2)):((256,16),(1,128,1024))"
#define T4 "((4,8),(16,2,4)):((256,16),(1,128,1024))"
#define LDSM(n, k, rows, frag, tr, sm) \
  {.name = n, .op = CO_LDSM, .thr = "32:1", .src = rows, .dst = frag, \
   .ref = frag, .bits = #k "*32", .num = k, .trans = tr, \
   .ptx = tr ? "ldmatrix.sync.aligned.m8n8.x" #k ".trans.shared.b16" \
             : "ldmatrix.sync.aligned.m8n8.x" #k ".shared.b16", .sm_min = sm}
#define STSM(n, k, rows, frag, tr, sm) \
  {.name = n, .op = CO_STSM, .thr = "32:1", .src = frag, .dst = rows, \
   .ref = frag, .bits = #k "*32", .num = k, .trans = tr, \
   .ptx = tr ? "stmatrix.sync.aligned.m8n8.x" #k ".trans.shared.b16" \
             : "stmatrix.sync.aligned.m8n8.x" #k ".shared.b16", .sm_min = sm}
#define BULK(n) \
  {.name = n ",{B=128|256|512|1024|2048|4096|8192|16384|32768|65536|131072}", \
   .op = CO_BULK, .thr = "1:0", \
   SAME3(ONE("[B]")), .bits = "[B]", .sm_min = 90}

const AtomCopyFam atom_copies[] = {
  {.name = "UniversalCopy<{T}>", .op = CO_UNIVERSAL, .thr = "1:0",
   SAME3(ONE("[T]")), .bits = "[T]"},
  {.name = "AutoVectorizingCopyWithAssumedAlignment<{B=8|16|32|64|128|256}>",
   .op = CO_AUTOVEC, .thr = "1:0", SAME3("(1,1):(0,0)"), .bits = "[B]",
   .flags = CPF_PROMISED},
  {.name = "DefaultCopy", .op = CO_AUTOVEC, .thr = "1:0",
   SAME3("(1,1):(0,0)"), .bits = "128"},
  {.name = "AutoVectorizingCopy", .op = CO_AUTOVEC, .thr = "1:0",
   SAME3("(1,1):(0,0)"), .bits = "128", .flags = CPF_PROMISED},
  CPA("SM80_CP_ASYNC_CACHEALWAYS", 0),
  CPA("SM80_CP_ASYNC_CACHEGLOBAL", CPF_GLOBAL),
  CPA("SM80_CP_ASYNC_CACHEALWAYS_ZFILL", CPF_ZFILL),
  CPA("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", CPF_GLOBAL | CPF_ZFILL),
  {.name = "SM50_Shuffle_U32_2x2Trans_XOR1", .op = CO_SHUFFLE, .thr = "32:1",
   .src = "(32,64):(64,1)", .dst = "((2,16),(32,2)):((32,128),(1,64))",
   .ref = "(32,64):(64,1)", .bits = "64", .num = 1, .sm_min = 50},
  {.name = "SM50_Shuffle_U32_2x2Trans_XOR4", .op = CO_SHUFFLE, .thr = "32:1",
   .src = "(32,64):(64,1)",
   .dst = "((4,2,4),(32,2)):((64,32,512),(1,256))", .ref = "(32,64):(64,1)",
   .bits = "64", .num = 4, .sm_min = 50},
  LDSM("SM75_U32x1_LDSM_N", 1, R1, N1, false, 75),
  LDSM("SM75_U32x2_LDSM_N", 2, R2, N2, false, 75),
  LDSM("SM75_U32x4_LDSM_N", 4, R4, N4, false, 75),
  LDSM("SM75_U16x2_LDSM_T", 1, R1, T1, true, 75),
  LDSM("SM75_U16x4_LDSM_T", 2, R2, T2, true, 75),
  LDSM("SM75_U16x8_LDSM_T", 4, R4, T4, true, 75),
  {.name = "SM75_U32x1_MOVM_T", .op = CO_MOVM, .thr = "32:1", SAME3(N1),
   .bits = "32", .num = 1, .trans = true,
   .ptx = "movmatrix.sync.aligned.m8n8.trans.b16", .sm_min = 75},
  STSM("SM90_U32x1_STSM_N", 1, R1, N1, false, 90),
  STSM("SM90_U32x2_STSM_N", 2, R2, N2, false, 90),
  STSM("SM90_U32x4_STSM_N", 4, R4, N4, false, 90),
  STSM("SM90_U16x2_STSM_T", 1, R1, T1, true, 90),
  STSM("SM90_U16x4_STSM_T", 2, R2, T2, true, 90),
  STSM("SM90_U16x8_STSM_T", 4, R4, T4, true, 90),
  BULK("SM90_TMA_LOAD{|_OP|_MULTICAST|_MULTICAST_OP}"),
  BULK("SM90_TMA_{STORE|REDUCE_ADD}"),
  BULK("SM90_BULK_COPY_{G2S|S2G}"),
  {.name = "SM90_BULK_COPY_AUTO", .op = CO_BULK, .thr = "1:0",
   SAME3("(1,1):(0,0)"), .bits = "1", .sm_min = 90},
  {0}};

// Layouts of the ldmatrix and stmatrix forms that transpose matrices of 8-bit
// elements. L8: the rows in shared memory, with addresses from all 32 lanes.
// T8, T8x: the registers.
#define L8(n) "((2,2,4,2),128):((128,1024,256," n "),1)"
#define T8 "((4,8),(8,2,2)):((256,8),(1,128,64))"
#define T8x(n) "((4,8),(8,2,2," n ")):((256,8),(1,128,64,1024))"
#define TABLE(n, ops, s, d, r, b) \
  {.name = n, .op = CO_TABLE, .thr = ops, .src = s, .dst = d, .ref = r, \
   .bits = b, .sm_min = 100}
#define WARP(n, s, d, r, b) TABLE(n, "32:1", s, d, r, b)
// Copies between tensor memory and registers. Each thread loads a part of the
// matrix to its registers, or stores a part from them.
#define TMEM_ROW(n, do, s, d, r, b, text, how) \
  {.name = n, .op = do, .thr = "32:1", .src = s, .dst = d, .ref = r, \
   .bits = b, .sm_min = 100, .ptx = text, .flags = how}
#define TMEM_PAIR(n, all, part, b, shape, how) \
  TMEM_ROW("SM100_TMEM_LOAD_" n, CO_TMEM_LOAD, "(32," all "):(0,1)", part, \
           "(32," all "):(0,1)", b, "tcgen05.ld.sync.aligned." shape, how), \
  TMEM_ROW("SM100_TMEM_STORE_" n, CO_TMEM_STORE, part, "(32," all "):(0,1)", \
           "(32," all "):(0,1)", b, "tcgen05.st.sync.aligned." shape, how)
#define TMEM(n, all, part, b, shape) \
  TMEM_PAIR(n, all, part, b, shape, 0), \
  TMEM_PAIR(n "_16b", all, part, b, shape, CPF_PACK)
#define P2 "{R=2|4|8|16|32"
// Copies from shared to tensor memory. One thread of each CTA issues them.
#define UTCCP(n, shape, s, d, place) \
  {.name = "SM100_UTCCP_" n "_{C=1|2}cta", .op = CO_TMEM_CP, \
   .thr = "[C]:[C-1]", .src = s, .dst = d, .ref = d, .tmem = place, \
   .bits = "1", .sm_min = 100, .ptx = "tcgen05.cp.cta_group::[C]." shape}
#define WHOLE(n) "([C]," n "):(0,1)"

const AtomCopyFam atom_copies_sm100[] = {
  {.name = "SM100_LOAD_256bit_CACHE_NOALLOCATION",
   .op = CO_LOAD, .thr = "1:0", SAME3(ONE("256")), .bits = "256",
   .ptx = "ld.global.L1::no_allocate.v8.b32", .sm_min = 100},
  {.name = "SM100_STORE_256bit_CACHE_NOALLOCATION",
   .op = CO_STORE, .thr = "1:0", SAME3(ONE("256")), .bits = "256",
   .ptx = "st.global.L1::no_allocate.v8.b32", .sm_min = 100},
  WARP("SM100_{SU4|SU6}_DU8x16_x1_LDSM_N", R1, N1, N1, "32"),
  WARP("SM100_{SU4|SU6}_DU8x16_x2_LDSM_N", R2, N2, N2, "64"),
  WARP("SM100_{SU4|SU6}_DU8x16_x4_LDSM_N", R4, N4, N4, "128"),
  WARP("SM100_U8x8_LDSM_T", L8("0"), T8x("2"), T8x("2"), "64"),
  WARP("SM100_U8x16_LDSM_T", L8("2048"), T8x("4"), T8x("4"), "128"),
  WARP("SM100_U8x4_STSM_T", T8, R1, T8, "32"),
  WARP("SM100_U8x8_STSM_T", T8x("2"), R2, T8x("2"), "64"),
  WARP("SM100_U8x16_STSM_T", T8x("4"), R4, T8x("4"), "128"),
  TMEM("16dp256b1x", "4096", "((4,8),(64,2)):((64,256),(1,2048))", "128",
       "16x256b"),
  TMEM("16dp256b" P2 "}x", "[4096R]",
       "((4,8),(64,2,[R])):((64,[256R]),(1,[2048R],256))", "[128R]",
       "16x256b"),
  TMEM("16dp128b1x", "2048", "((4,8),(32,2)):((32,128),(1,1024))", "64",
       "16x128b"),
  TMEM("16dp128b" P2 "|64}x", "[2048R]",
       "((4,8),(32,2,[R])):((32,[128R]),(1,[1024R],128))", "[64R]",
       "16x128b"),
  TMEM("16dp64b1x", "1024", "((2,2,8),32):((512,32,64),1)", "32", "16x64b"),
  TMEM("16dp64b" P2 "|64|128}x", "[1024R]",
       "((2,2,8),(32,[R])):(([512R],32,[64R]),(1,64))", "[32R]", "16x64b"),
  TMEM("16dp32b" P2 "|64|128|1}x", "[1024R]",
       "((16,2),[32R]):(([64R],[32R]),1)", "[32R]", "16x32bx2"),
  TMEM("32dp32b" P2 "|64|128|1}x", "[1024R]", "(32,[32R]):([32R],1)",
       "[32R]", "32x32b"),
  // Loads that also return the maximum of each thread's values.
  {.name = "SM100_TMEM_LOAD_STAT_32dp32b{R=32|128}x", .op = CO_TABLE,
   .thr = "32:1", .src = "(32,[1024R]):(0,1)", .dst = "(32,[32R]):([32R],1)",
   .ref = "(32,[1024R]):(0,1)", .bits = "[32R]", .sm_min = 103},
  UTCCP("128dp256bit", "128x256b", WHOLE("32768"), WHOLE("32768"),
        "(128,256):(2097152,1)"),
  UTCCP("128dp128bit", "128x128b", WHOLE("16384"), WHOLE("16384"),
        "(128,128):(2097152,1)"),
  UTCCP("4dp256bit", "4x256b", "([C],(4,256)):(0,(32,128))",
        "([C],(4,256)):(0,(32,128))", "(128,256):(2097152,1)"),
  UTCCP("4x32dp128bit", "32x128b.warpx4", "([C],(32,128,4)):(0,(1,32,0))",
        WHOLE("16384"), "(32,128,4):(2097152,1,67108864)"),
  UTCCP("2x64dp128bitlw0213", "64x128b.warpx2::02_13",
        "([C],(64,128,2)):(0,(1,64,0))", WHOLE("16384"),
        "(64,128,2):(2097152,1,134217728)"),
  UTCCP("2x64dp128bitlw0123", "64x128b.warpx2::01_23",
        "([C],(32,128,2,2)):(0,(1,32,4096,0))", WHOLE("16384"),
        "(32,128,2,2):(2097152,1,134217728,67108864)"),
  {0}};
// SPDX-License-Identifier: MIT
