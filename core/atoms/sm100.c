// MMA atoms of datacenter Blackwell: packed FMA, and MMAs with accumulators in
// tensor memory.
#include "atoms/inside.h"

// Tensor memory MMAs: one thread issues an MMA for a CTA or a pair of CTAs.
// Therefore the thread mode of their layouts counts CTAs. `op` is ".sp" for a
// sparse A, ".ws" for weight-stationary MMAs, or "".
#define UMMA1(n, op, kind_, types_, k, ...) \
  {.name = n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "1:0", .a = "(1,([M]," #k ")):(0,(1,[M]))", \
   .b = "(1,([N]," #k ")):(0,(1,[N]))", .c = "(1,([M],[N])):(0,(1,[M]))", \
   .ptx = "tcgen05.mma" op ".cta_group::1.kind::" kind_, .kind = MK_TCGEN05, \
   .sm_min = 100, .sm_max = 110, .specific = true, .flags = __VA_ARGS__}
#define UMMA2(n, op, kind_, types_, k, ...) \
  {.name = n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "2:1", .a = "(2,([M/2]," #k ")):([M/2],(1,[M]))", \
   .b = "(2,([N/2]," #k ")):([N/2],(1,[N]))", \
   .c = "(2,([M/2],[N])):([M/2],(1,[M]))", \
   .ptx = "tcgen05.mma" op ".cta_group::2.kind::" kind_, .kind = MK_TCGEN05, \
   .sm_min = 100, .sm_max = 110, .specific = true, .flags = __VA_ARGS__}
#define DENSE1(n, ...) UMMA1("SM100_MMA_" n, "", __VA_ARGS__)
#define DENSE2(n, ...) UMMA2("SM100_MMA_" n, "", __VA_ARGS__)
// Weight-stationary MMAs of one CTA
#define WS(n, names, kind_, types_, k, flags_) \
  UMMA1("SM100_MMA_" n "<" names "{M=32|64|128}," NWS "," MM, \
        ".ws", kind_, types_, k, AMF_WS | flags_)
// Sparse MMAs. k is the K of B, and `depth` is the number of stored elements in
// each row of A.
#define SPARSE1(n, kind_, types_, k, depth, group_, ...) \
  STORED(n, ".sp", kind_, types_, k, depth, group_, __VA_ARGS__)
#define STORED(n, op, kind_, types_, k, depth, group_, ...) \
  UMMA1("SM100_MMA_" n, op, kind_, types_, k, AMF_SPARSE | __VA_ARGS__, \
        .stored = "(1,([M]," #depth ")):(0,(1,[M]))", .group = group_)
#define SPARSE2(n, kind_, types_, k, depth, group_, ...) \
  UMMA2("SM100_MMA_" n, ".sp", kind_, types_, k, AMF_SPARSE | __VA_ARGS__, \
        .stored = "(2,([M/2]," #depth ")):([M/2],(1,[M]))", .group = group_)
// The positions of metadata in tensor memory are known only for 128 rows of a
// CTA. Therefore MMAs with 64 rows of a CTA are neither emitted nor simulated.
#define SPARSE(n, src, names, kind_, types_, k, depth, group_, flags_) \
  SPARSE1(n "_" src "_SPARSE<" names "{M=128}," N1SM "," MM, kind_, types_, k, \
          depth, group_, flags_), \
  SPARSE2(n "_2x1SM_" src "_SPARSE<" names "{M=256}," N2SP "," MM, kind_, \
          types_, k, depth, group_, flags_), \
  SPARSE1(n "_" src "_SPARSE<" names "{M=64}," N1SM "," MM, kind_, types_, k, \
          depth, group_, AMF_TABLE | flags_), \
  SPARSE2(n "_2x1SM_" src "_SPARSE<" names "{M=128}," N2SP "," MM, kind_, \
          types_, k, depth, group_, AMF_TABLE | flags_), \
  STORED(n "_WS_" src "_SPARSE<" names "{M=128}," NWS "," MM, ".ws.sp", kind_, \
         types_, k, depth, group_, AMF_WS | flags_)
// MMAs with scale factors of type `sf`. Each factor scales vs_ elements along
// K. The PTX text uses .block16, because family-specific targets (sm_100f) do
// not have .scale_vec::4X.
#define SCALED(umma, n, kind_, types_, k, vs_, sf, flags_) \
  umma(n, kind_ ".block_scale.block" #vs_, types_, k, AMF_SCALE | flags_, \
       .vs = vs_, .sf_type = sf)
#define MX4(umma, pair, kind_, mn, vs_, name, sf) \
  SCALED(umma, "MXF4_" pair "{SS|TS}<" MX4_NAME(name) mn ",{|VS}" #vs_ \
         ",K,K>", kind_, "F32E2M1E2M1", 64, vs_, sf, 0)
#define SCALED_SPARSE(n, names1, names2, kind_, types_, k, depth, group_, \
                      vs_, block, sf, flags_) \
  SPARSE1(n "_SS_SPARSE<" names1, kind_ ".block_scale.block" #block, types_, \
          k, depth, group_, AMF_SCALE | flags_, .vs = vs_, .sf_type = sf), \
  SPARSE2(n "_2x1SM_SS_SPARSE<" names2, kind_ ".block_scale.block" #block, \
          types_, k, depth, group_, AMF_SCALE | flags_, .vs = vs_, \
          .sf_type = sf)
#define MX4_SPARSE(kind_, vs_, block, name, sf) \
  SCALED_SPARSE("MXF4NVF4", MX4_NAME(name) MNS1 "," #vs_ ",K,K>", \
                MX4_NAME(name) "{M=256},{N=16..256+16}," #vs_ ",K,K>", kind_, \
                "F32E2M1E2M1", 128, 64, 8, vs_, block, sf, 0)
#define ULTRA1(n, ...) UMMA1("SM103::SM103_MXF4_ULTRA_" n, "", __VA_ARGS__)
#define ULTRA2(n, ...) UMMA2("SM103::SM103_MXF4_ULTRA_" n, "", __VA_ARGS__)
#define ULTRA(kind_, vs_, name, sf) \
  SCALED(ULTRA1, "SS_VS<" MX4_NAME(name) MNS1 "," #vs_ ",K,K>", kind_, \
         "F32E2M1E2M1", 96, vs_, sf, AMF_TABLE), \
  SCALED(ULTRA2, "2x1SM_SS_VS<" MX4_NAME(name) MNS2 "," #vs_ ",K,K>", kind_, \
         "F32E2M1E2M1", 96, vs_, sf, AMF_TABLE)
#define MX4_NAME(name) "float_e2m1_t,float_e2m1_t,float," name ","
#define N1SM "{N=8..256+8}"
#define N2SM "{N=32..256+16}"
#define NWS "{N=64|128|256}"
#define N2SP "{N=16..256+16}"
#define MM "{K|MN},{K|MN}>"
#define SATURATE "{K|MN},{K|MN},One,One,True>"
#define MN1 "{M=64|128}," N1SM ","
#define MN2 "{M=128|256}," N2SM ","
#define U16 "{half_t,half_t,float|bfloat16_t,bfloat16_t,float|" \
  "half_t,half_t,half_t},"
#define U8 "{float_e4m3_t|float_e5m2_t|float_e3m2_t|float_e2m3_t|" \
  "float_e2m1_t}"
#define UU8 U8 "," U8 ",{float|half_t},"
#define FP8_A "{float_e4m3_t|float_e5m2_t}"
#define SMALL_A "{float_e3m2_t|float_e2m3_t|float_e2m1_t}"
#define TSU8 FP8_A "," U8 ",{float|half_t},"
#define US8 "{int8_t|uint8_t},{int8_t|uint8_t},int32_t,"
#define UTF "tfloat32_t,tfloat32_t,float,"
#define UE8 "float_ue8m0_t"
#define UE4 "float_ue4m3_t"
#define MNS1 "{M=128}," N1SM
#define MNS2 "{M=128|256},{N=16..256+16}"
#define TMX FP8_A "," U8 ",float," UE8 ","
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
  DENSE1("F16BF16_{SS|TS}<" U16 MN1 MM, "f16", "~$1", 16, 0),
  DENSE2("F16BF16_2x1SM_{SS|TS}<" U16 MN2 MM, "f16", "~$1", 16, 0),
  DENSE1("TF32_{SS|TS}<" UTF MN1 MM, "tf32", "F32TF32TF32", 8, 0),
  DENSE2("TF32_2x1SM_{SS|TS}<" UTF MN2 MM, "tf32", "F32TF32TF32", 8, 0),
  DENSE1("S8_{SS|TS}<" US8 MN1 MM, "i8", "S32 $1 $2", 32, 0),
  DENSE2("S8_2x1SM_{SS|TS}<" US8 MN2 MM, "i8", "S32 $1 $2", 32, 0),
  DENSE1("S8_{SS|TS}<" US8 MN1 SATURATE, "i8", "S32 $1 $2", 32, AMF_SAT),
  DENSE2("S8_2x1SM_{SS|TS}<" US8 MN2 SATURATE, "i8", "S32 $1 $2", 32, AMF_SAT),
  DENSE1("F8F6F4_SS<" UU8 MN1 MM, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  DENSE2("F8F6F4_2x1SM_SS<" UU8 MN2 MM, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  WS("F16BF16_WS_{SS|TS}", U16, "f16", "~$1", 16, 0),
  WS("TF32_WS_{SS|TS}", UTF, "tf32", "F32TF32TF32", 8, 0),
  WS("S8_WS_{SS|TS}", US8, "i8", "S32 $1 $2", 32, 0),
  WS("F8F6F4_WS_SS", UU8, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  WS("F8F6F4_WS_TS", TSU8, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  DENSE1("F8F6F4_TS<" TSU8 MN1 MM, "f8f6f4", "$2 $0 $1", 32, AMF_BYTE),
  DENSE2("F8F6F4_2x1SM_TS<" TSU8 "{M=128|256}," N2SP "," MM, "f8f6f4",
         "$2 $0 $1", 32, AMF_BYTE),
  // Only a figure of the PTX ISA shows which bits of a byte of tensor memory
  // hold a 6- or 4-bit element of A. Therefore MMAs with such an A are neither
  // emitted nor simulated.
  DENSE1("F8F6F4_TS<" SMALL_A "," U8 ",{float|half_t}," MN1 MM, "f8f6f4",
         "$2 $0 $1", 32, AMF_TABLE | AMF_BYTE),
  DENSE2("F8F6F4_2x1SM_TS<" SMALL_A "," U8 ",{float|half_t},{M=128|256}," N2SP
         "," MM, "f8f6f4", "$2 $0 $1", 32, AMF_TABLE | AMF_BYTE),
  SCALED(DENSE1, "MXF8F6F4_SS<" UMX MNS1 "," MM, "mxf8f6f4", "F32 $0 $1", 32,
         32, DT_UE8M0, AMF_BYTE),
  SCALED(DENSE2, "MXF8F6F4_2x1SM_SS<" UMX MNS2 "," MM, "mxf8f6f4",
         "F32 $0 $1", 32, 32, DT_UE8M0, AMF_BYTE),
  SCALED(DENSE1, "MXF8F6F4_TS<" TMX MNS1 "," MM, "mxf8f6f4", "F32 $0 $1", 32,
         32, DT_UE8M0, AMF_BYTE),
  SCALED(DENSE2, "MXF8F6F4_2x1SM_TS<" TMX MNS2 "," MM, "mxf8f6f4",
         "F32 $0 $1", 32, 32, DT_UE8M0, AMF_BYTE),
  MX4(DENSE1, "", "mxf4", MNS1, 32, UE8, DT_UE8M0),
  MX4(DENSE2, "2x1SM_", "mxf4", MNS2, 32, UE8, DT_UE8M0),
  MX4(DENSE1, "", "mxf4nvf4", MNS1, 16, UE8, DT_UE8M0),
  MX4(DENSE2, "2x1SM_", "mxf4nvf4", MNS2, 16, UE8, DT_UE8M0),
  MX4(DENSE1, "", "mxf4nvf4", MNS1, 16, UE4, DT_E4M3),
  MX4(DENSE2, "2x1SM_", "mxf4nvf4", MNS2, 16, UE4, DT_E4M3),
  // Blackwell Ultra's MMAs with K = 96 are neither emitted nor simulated.
  ULTRA("mxf4", 32, UE8, DT_UE8M0),
  ULTRA("mxf4nvf4", 16, UE8, DT_UE8M0),
  ULTRA("mxf4nvf4", 16, UE4, DT_E4M3),
  SPARSE("TF32", "{SS|TS}", UTF, "tf32", "F32TF32TF32", 16, 8, 2, 0),
  SPARSE("F16BF16", "{SS|TS}", U16, "f16", "~$1", 32, 16, 4, 0),
  SPARSE("S8", "{SS|TS}", US8, "i8", "S32 $1 $2", 64, 32, 4, 0),
  SPARSE("F8F6F4", "SS", UU8, "f8f6f4", "$2 $0 $1", 64, 32, 4, AMF_BYTE),
  SPARSE("F8F6F4", "TS", TSU8, "f8f6f4", "$2 $0 $1", 64, 32, 4, AMF_BYTE),
  SCALED_SPARSE("MXF8F6F4", UMX MNS1 "," MM, UMX "{M=256}," N2SP "," MM,
                "mxf8f6f4", "F32 $0 $1", 64, 32, 4, 64, 32, DT_UE8M0,
                AMF_BYTE),
  MX4_SPARSE("mxf4", 64, 32, UE8, DT_UE8M0),
  MX4_SPARSE("mxf4nvf4", 32, 16, UE8, DT_UE8M0),
  MX4_SPARSE("mxf4nvf4", 32, 16, UE4, DT_E4M3),
  {0}};
// SPDX-License-Identifier: MIT
