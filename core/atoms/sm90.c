// MMA atoms of Hopper (double precision, warpgroup) and of datacenter
// Blackwell (packed FMA, tensor memory).
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

// Tensor memory MMAs: one thread issues an MMA for a CTA or a pair of CTAs. The
// thread mode of their layouts is the CTA.
#define N1SM "{N=8..256+8}"
#define N2SM "{N=32..256+16}"
#define MM "{K|MN},{K|MN}>"
#define UMMA1(n, kind_, types_, k, ...) \
  {.name = "SM100_MMA_" n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "1:0", .a = "(1,([M]," #k ")):(0,(1,[M]))", \
   .b = "(1,([N]," #k ")):(0,(1,[N]))", .c = "(1,([M],[N])):(0,(1,[M]))", \
   .ptx = "tcgen05.mma.cta_group::1.kind::" kind_, .kind = MK_TCGEN05, \
   .sm_min = 100, .sm_max = 110, .specific = true, .flags = __VA_ARGS__}
#define UMMA2(n, kind_, types_, k, ...) \
  {.name = "SM100_MMA_" n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "2:1", .a = "(2,([M/2]," #k ")):([M/2],(1,[M]))", \
   .b = "(2,([N/2]," #k ")):([N/2],(1,[N]))", \
   .c = "(2,([M/2],[N])):([M/2],(1,[M]))", \
   .ptx = "tcgen05.mma.cta_group::2.kind::" kind_, .kind = MK_TCGEN05, \
   .sm_min = 100, .sm_max = 110, .specific = true, .flags = __VA_ARGS__}
// MMAs with scale factors of type `sf`, one for each vs_ elements of a row.
// Family-specific targets (sm_100f) do not have .scale_vec::4X, but they have
// .block16.
#define SCALED(umma, n, kind_, types_, k, vs_, sf, flags_) \
  umma(n, kind_ ".block_scale.block" #vs_, types_, k, AMF_SCALE | flags_, \
       .vs = vs_, .sf_type = sf)
#define MX4(umma, pair, kind_, mn, vs_, name, sf) \
  SCALED(umma, "MXF4_" pair "SS<float_e2m1_t,float_e2m1_t,float," name "," mn \
         ",{|VS}" #vs_ ",K,K>", kind_, "F32E2M1E2M1", 64, vs_, sf, 0)
#define MN1 "{M=64|128}," N1SM ","
#define MN2 "{M=128|256}," N2SM ","
#define U16 "{half_t,half_t,float|bfloat16_t,bfloat16_t,float|" \
  "half_t,half_t,half_t}"
#define U8 "{float_e4m3_t|float_e5m2_t|float_e3m2_t|float_e2m3_t|" \
  "float_e2m1_t}"
#define UU8 U8 "," U8 ",{float|half_t},"
#define US8 "{int8_t|uint8_t},{int8_t|uint8_t},int32_t,"
#define UTF "tfloat32_t,tfloat32_t,float,"
#define UE8 "float_ue8m0_t"
#define UE4 "float_ue4m3_t"
#define MNS1 "{M=128}," N1SM
#define MNS2 "{M=128|256},{N=16..256+16}"
#define UMX U8 "," U8 ",float," UE8 ","

const AtomMmaFam atom_sm100[] = {
  {.name = "SM100_2x1x1_F32F32F32F32", .shape = "2,1,1",
   .types = "F32F32F32F32", .thr = "1:0", .a = "(1,2):(0,1)",
   .b = "(1,1):(0,0)", .c = "(1,2):(0,1)", .ptx = "fma.rn.f32x2",
   .kind = MK_FMA2, .sm_min = 100},
  {.name = "SM100_1x2x1_F32F32F32F32", .shape = "1,2,1",
   .types = "F32F32F32F32", .thr = "1:0", .a = "(1,1):(0,0)",
   .b = "(1,2):(0,1)", .c = "(1,2):(0,1)", .ptx = "fma.rn.f32x2",
   .kind = MK_FMA2, .sm_min = 100},
  UMMA1("F16BF16_{SS|TS}<" U16 "," MN1 MM, "f16", "~$1", 16, 0),
  UMMA2("F16BF16_2x1SM_{SS|TS}<" U16 "," MN2 MM, "f16", "~$1", 16, 0),
  UMMA1("TF32_{SS|TS}<" UTF MN1 MM, "tf32", "F32TF32TF32", 8, 0),
  UMMA2("TF32_2x1SM_{SS|TS}<" UTF MN2 MM, "tf32", "F32TF32TF32", 8, 0),
  UMMA1("S8_{SS|TS}<" US8 MN1 MM, "i8", "S32 $1 $2", 32, 0),
  UMMA2("S8_2x1SM_{SS|TS}<" US8 MN2 MM, "i8", "S32 $1 $2", 32, 0),
  UMMA1("F8F6F4_SS<" UU8 MN1 MM, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  UMMA2("F8F6F4_2x1SM_SS<" UU8 MN2 MM, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  SCALED(UMMA1, "MXF8F6F4_SS<" UMX MNS1 "," MM, "mxf8f6f4", "F32 $0 $1", 32,
         32, DT_UE8M0, AMF_BYTE),
  SCALED(UMMA2, "MXF8F6F4_2x1SM_SS<" UMX MNS2 "," MM, "mxf8f6f4", "F32 $0 $1",
         32, 32, DT_UE8M0, AMF_BYTE),
  MX4(UMMA1, "", "mxf4", MNS1, 32, UE8, DT_UE8M0),
  MX4(UMMA2, "2x1SM_", "mxf4", MNS2, 32, UE8, DT_UE8M0),
  MX4(UMMA1, "", "mxf4nvf4", MNS1, 16, UE8, DT_UE8M0),
  MX4(UMMA2, "2x1SM_", "mxf4nvf4", MNS2, 16, UE8, DT_UE8M0),
  MX4(UMMA1, "", "mxf4nvf4", MNS1, 16, UE4, DT_E4M3),
  MX4(UMMA2, "2x1SM_", "mxf4nvf4", MNS2, 16, UE4, DT_E4M3),
  {0}};
// SPDX-License-Identifier: MIT
