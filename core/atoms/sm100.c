// MMA atoms of datacenter Blackwell that are only described: sparse MMAs in
// tensor memory, and 8-bit MMAs with A in tensor memory.
#include "atoms/inside.h"

#define UMMA1(n, types_, k, vs_, flags_) \
  {.name = "SM100_MMA_" n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "1:0", .a = "(1,([M]," #k ")):(0,(1,[M]))", \
   .b = "(1,([N]," #k ")):(0,(1,[N]))", .c = "(1,([M],[N])):(0,(1,[M]))", \
   .kind = MK_TCGEN05, .sm_min = 100, .sm_max = 110, .specific = true, \
   .vs = vs_, .flags = AMF_TABLE | flags_}
#define UMMA2(n, types_, k, vs_, flags_) \
  {.name = "SM100_MMA_" n, .shape = "[M],[N]," #k, .types = types_, \
   .thr = "2:1", .a = "(2,([M/2]," #k ")):([M/2],(1,[M]))", \
   .b = "(2,([N/2]," #k ")):([N/2],(1,[N]))", \
   .c = "(2,([M/2],[N])):([M/2],(1,[M]))", \
   .kind = MK_TCGEN05, .sm_min = 100, .sm_max = 110, .specific = true, \
   .vs = vs_, .flags = AMF_TABLE | flags_}
#define MN1 "{M=64|128},{N=8..256+8},{K|MN},{K|MN}>"
#define MN2 "{M=128|256},{N=16..256+16},{K|MN},{K|MN}>"
#define SCALED1(vs) "{M=128},{N=8..256+8}," #vs ",K,K>"
#define SCALED2(vs) "{M=128|256},{N=16..256+16}," #vs ",K,K>"
#define MAJOR1 "{M=128},{N=8..256+8},{K|MN},{K|MN}>"
#define MAJOR2 "{M=128|256},{N=16..256+16},{K|MN},{K|MN}>"
#define T16 "{half_t,half_t,float|bfloat16_t,bfloat16_t,float|" \
  "half_t,half_t,half_t},"
#define TTF "tfloat32_t,tfloat32_t,float,"
#define TINT "{int8_t|uint8_t},{int8_t|uint8_t},int32_t,"
#define U8 "{float_e4m3_t|float_e5m2_t|float_e3m2_t|float_e2m3_t|" \
  "float_e2m1_t}"
#define T8 U8 "," U8 ",{float|half_t},"
#define TMX U8 "," U8 ",float,float_ue8m0_t,"
#define TMX4 "float_e2m1_t,float_e2m1_t,float,float_ue8m0_t,"
#define BOTH4 "float_e2m1_t,float_e2m1_t,float,{float_ue8m0_t|float_ue4m3_t},"
#define E2M1 "F32E2M1E2M1"

const AtomMmaFam atom_sm100_table[] = {
  UMMA1("F8F6F4_TS<" T8 MN1, "$2 $0 $1", 32, 0, AMF_BYTE),
  UMMA2("F8F6F4_2x1SM_TS<" T8 MN2, "$2 $0 $1", 32, 0, AMF_BYTE),
  // In sparse MMAs, K is the K of B (A stores K / 2).
  UMMA1("TF32_SS_SPARSE<" TTF MN1, "F32TF32TF32", 16, 0, 0),
  UMMA2("TF32_2x1SM_SS_SPARSE<" TTF MN2, "F32TF32TF32", 16, 0, 0),
  UMMA1("F16BF16_SS_SPARSE<" T16 MN1, "~$0", 32, 0, 0),
  UMMA2("F16BF16_2x1SM_SS_SPARSE<" T16 MN2, "~$0", 32, 0, 0),
  UMMA1("S8_SS_SPARSE<" TINT MN1, "S32 $0 $1", 64, 0, 0),
  UMMA2("S8_2x1SM_SS_SPARSE<" TINT MN2, "S32 $0 $1", 64, 0, 0),
  UMMA1("F8F6F4_SS_SPARSE<" T8 MN1, "$2 $0 $1", 64, 0, AMF_BYTE),
  UMMA2("F8F6F4_2x1SM_SS_SPARSE<" T8 MN2, "$2 $0 $1", 64, 0, AMF_BYTE),
  UMMA1("MXF8F6F4_SS_SPARSE<" TMX MAJOR1, "F32 $0 $1", 64, 64,
        AMF_BYTE | AMF_SCALE),
  UMMA2("MXF8F6F4_2x1SM_SS_SPARSE<" TMX MAJOR2, "F32 $0 $1", 64, 64,
        AMF_BYTE | AMF_SCALE),
  UMMA1("MXF4NVF4_SS_SPARSE<" TMX4 SCALED1(64), E2M1, 128, 64, AMF_SCALE),
  UMMA2("MXF4NVF4_2x1SM_SS_SPARSE<" TMX4 SCALED2(64), E2M1, 128, 64,
        AMF_SCALE),
  UMMA1("MXF4NVF4_SS_SPARSE<" BOTH4 SCALED1(32), E2M1, 128, 32, AMF_SCALE),
  UMMA2("MXF4NVF4_2x1SM_SS_SPARSE<" BOTH4 SCALED2(32), E2M1, 128, 32,
        AMF_SCALE),
  {0}};
// SPDX-License-Identifier: MIT
