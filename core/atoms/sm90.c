// MMA atoms of Hopper: warp-wide MMAs in double precision, and warpgroup MMAs.
#include "atoms/inside.h"

#define C16 "((4,8),(2,2)):((32,1),(16,8))"
#define F64(k, A, B) \
  {.name = "SM90_16x8x" #k "_F64F64F64F64_TN", .shape = "16,8," #k, \
   .types = "F64F64F64F64", .thr = "32:1", .a = A, .b = B, .c = C16, \
   .ptx = "mma.sync.aligned.$S.row.col.$D.$A.$B.$C", .kind = MK_MMA, \
   .sm_min = 90}, \
  {.name = "SM90_16x8x" #k "_C64C64C64C64_TN", .shape = "16,8," #k, \
   .types = "C64C64C64C64", .thr = "32:1", .a = A, .b = B, .c = C16, \
   .ptx = "mma.sync.aligned.$S.row.col.f64.f64.f64.f64", \
   .kind = MK_MMA, .sm_min = 90}, \
  {.name = "SM90_16x8x" #k "_GC64C64C64GC64_TN", .shape = "16,8," #k, \
   .types = "GC64C64C64GC64", .thr = "32:1", .a = A, .b = B, .c = C16, \
   .ptx = "mma.sync.aligned.$S.row.col.f64.f64.f64.f64", \
   .kind = MK_MMA, .sm_min = 90, .flags = AMF_TABLE}

// Warpgroup MMAs: 128 threads execute one MMA. B is in shared memory. A is in
// shared memory if the name contains SS. N is a multiple of 8.
#define N8 "{N=8..256+8}"
#define NINT "{N=8|16|24|32|48|64|80|96|112|128|144|160|176|192|208|" \
  "224|240|256}"
#define MAJOR "{K|MN}"
#define ASS(k) "(128,(64," #k ")):(0,(1,64))"
#define BSS(k) "(128,([N]," #k ")):(0,(1,[N]))"
#define CWG "((4,8,4),(2,2,[N/8])):((128,1,16),(64,8,512))"
#define ARS16 "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"
#define ARS32 "((4,8,4),(2,2)):((64,1,16),(8,256))"
#define ARS8 "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"
#define WG(n, k_, types_, A, flags_) \
  {.name = n, .shape = "64,[N]," #k_, .types = types_, .thr = "128:1", \
   .a = A, .b = BSS(k_), .c = CWG, \
   .ptx = "wgmma.mma_async.sync.aligned.$S$s.$D.$A.$B", .kind = MK_WGMMA, \
   .sm_min = 90, .sm_max = 90, .specific = true, .flags = flags_}
// Sparse MMAs. A stores two of four elements (tf32: one of two), so an
// instruction covers twice the K of a dense MMA.
#define SPARSE(n, k_, types_, A, stored_, meta_, group_, flags_) \
  {.name = "SM90::GMMA::SPARSE::GMMA_64x" n, .shape = "64,[N]," #k_, \
   .types = types_, .thr = "128:1", .a = A, .stored = stored_, \
   .meta = meta_, .group = group_, .b = BSS(k_), .c = CWG, \
   .ptx = "wgmma.mma_async.sp.sync.aligned.$S$s.$D.$A.$B", \
   .kind = MK_WGMMA, .sm_min = 90, .sm_max = 90, .specific = true, \
   .flags = AMF_SPARSE | flags_}
#define META16 "((2,2,8,4),2):((64,0,1,16),8)"
#define META8 "((2,2,8,4),2):((8,128,1,16),64)"
#define ARS64 "((4,8,4),(8,2,2)):((512,1,16),(64,8,2048))"
#define SS AMF_SMEM_A
#define RS 0
#define T16 "{F16F16F16|F32F16F16|F32BF16BF16}"
#define T8 "{F16|F32}{E4M3E4M3|E4M3E5M2|E5M2E4M3|E5M2E5M2}"
#define TINT "S32{S8S8|S8U8|U8S8|U8U8}"

const AtomMmaFam atom_sm90[] = {
  F64(4, "((4,8),2):((16,1),8)", "((4,8),1):((8,1),0)"),
  F64(8, "((4,8),(2,2)):((16,1),(8,64))", "((4,8),2):((8,1),32)"),
  F64(16, "((4,8),(2,4)):((16,1),(8,64))", "((4,8),4):((8,1),32)"),
  WG("SM90_64x" N8 "x16_" T16 "_SS<" MAJOR "," MAJOR ">", 16, "$1", ASS(16),
     SS),
  WG("SM90_64x" N8 "x16_" T16 "_RS<K," MAJOR ">", 16, "$1", ARS16, RS),
  WG("SM90_64x" N8 "x8_F32TF32TF32_SS_TN", 8, "F32TF32TF32", ASS(8), SS),
  WG("SM90_64x" N8 "x8_F32TF32TF32_RS_TN", 8, "F32TF32TF32", ARS32, RS),
  WG("SM90_64x" N8 "x32_" T8 "_SS_TN", 32, "$1$2", ASS(32), SS),
  WG("SM90_64x" N8 "x32_" T8 "_RS_TN", 32, "$1$2", ARS8, RS),
  WG("SM90_64x" NINT "x32_" TINT "_SS_TN", 32, "S32$1", ASS(32), SS),
  WG("SM90_64x" NINT "x32_" TINT "_SS_TN_SATURATE", 32, "S32$1", ASS(32),
     SS | AMF_SAT),
  WG("SM90_64x" NINT "x32_" TINT "_RS_TN", 32, "S32$1", ARS8, RS),
  WG("SM90_64x" NINT "x32_" TINT "_RS_TN_SATURATE", 32, "S32$1", ARS8,
     RS | AMF_SAT),
  SPARSE(N8 "x32_" T16 "_SS<" MAJOR "," MAJOR "{|,One}>", 32, "$1", ASS(32),
         ASS(16), META16, 4, SS),
  SPARSE(N8 "x32_" T16 "_RS<K," MAJOR "{|,One}>", 32, "$1", ARS8, ARS16,
         META16, 4, RS),
  SPARSE(N8 "x16_F32TF32TF32_SS_TN{|<One>}", 16, "F32TF32TF32", ASS(16),
         ASS(8), META16, 2, SS),
  SPARSE(N8 "x16_F32TF32TF32_RS_TN{|<One>}", 16, "F32TF32TF32", ARS16, ARS32,
         META16, 2, RS),
  SPARSE(N8 "x64_" T8 "_SS_TN", 64, "$1$2", ASS(64), ASS(32), META8, 4, SS),
  SPARSE(N8 "x64_" T8 "_RS_TN", 64, "$1$2", ARS64, ARS8, META8, 4, RS),
  SPARSE(NINT "x64_" TINT "_SS_TN", 64, "S32$1", ASS(64), ASS(32), META8, 4,
         SS),
  SPARSE(NINT "x64_" TINT "_SS_TN_SATURATE", 64, "S32$1", ASS(64), ASS(32),
         META8, 4, SS | AMF_SAT),
  SPARSE(NINT "x64_" TINT "_RS_TN", 64, "S32$1", ARS64, ARS8, META8, 4, RS),
  SPARSE(NINT "x64_" TINT "_RS_TN_SATURATE", 64, "S32$1", ARS64, ARS8, META8,
         4, RS | AMF_SAT),
  {0}};
// SPDX-License-Identifier: MIT
