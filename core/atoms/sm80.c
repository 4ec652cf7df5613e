// Warp-wide MMA atoms of Turing, Ampere and Ada.
//
// All layouts follow one scheme. Lane 4i+j holds elements of row i (A, C) or of
// column i (B). Each 32-bit register holds 32/bits adjacent elements along K,
// and the four lanes of a row hold adjacent groups of them. Further registers
// of a lane hold row i+8 (if M is 16), then the second half of K.
#include "atoms/inside.h"

#define MMA(...) {.thr = "32:1", .kind = MK_MMA, __VA_ARGS__}
#define PTX(maj) "mma.sync.aligned.$S." maj "$s.$D.$A.$B.$C"
#define TN PTX("row.col")

// Layouts of C over (4,8) lanes. A lane holds two adjacent elements along N
// and, if M is 16, the two elements 8 rows below them.
#define C8 "((4,8),2):((16,1),8)"
#define C16 "((4,8),(2,2)):((32,1),(16,8))"
// Layouts of A with 16 rows and of B with 8 columns, named by the bits of an
// element and K: A16_K8 is for 16-bit elements and K = 8.
#define A16_K8 "((4,8),(2,2)):((32,1),(16,8))"
#define B16_K8 "((4,8),2):((16,1),8)"
#define A16_K16 "((4,8),(2,2,2)):((32,1),(16,8,128))"
#define B16_K16 "((4,8),(2,2)):((16,1),(8,64))"
#define A32_K4 "((4,8),2):((16,1),8)"
#define B32_K4 "((4,8),1):((8,1),0)"
#define A32_K8 "((4,8),(2,2)):((16,1),(8,64))"
#define B32_K8 "((4,8),2):((8,1),32)"
#define B8_K16 "((4,8),4):((32,1),8)"  // also the layout of A with 8 rows
#define A8_K16 "((4,8),(4,2)):((64,1),(16,8))"
#define A8_K32 "((4,8),(4,2,2)):((64,1),(16,8,256))"
#define B8_K32 "((4,8),(4,2)):((32,1),(8,128))"
#define B4_K32 "((4,8),(8)):((64,1),(8))"  // also the layout of A with 8 rows
#define A4_K32 "((4,8),(8,2)):((128,1),(16,8))"
#define A4_K64 "((4,8),(8,2,2)):((128,1),(16,8,512))"
#define B4_K64 "((4,8),(8,2)):((64,1),(8,256))"
#define B1_K128 "((4,8),32):((256,1),8)"  // also the layout of A with 8 rows
#define A1_K128 "((4,8),(32,2)):((512,1),(16,8))"
#define A1_K256 "((4,8),(32,2,2)):((512,1),(16,8,2048))"
#define B1_K256 "((4,8),(32,2)):((256,1),(8,1024))"

const AtomMmaFam atom_sm75[] = {
  MMA(.name = "SM75_16x8x8_{F32F16F16F32|F16F16F16F16}_TN",
      .shape = "16,8,8", .types = "$0", .a = A16_K8, .b = B16_K8, .c = C16,
      .ptx = TN, .sm_min = 75),
  MMA(.name = "SM75_8x8x16_S32S8S8S32_TN", .shape = "8,8,16",
      .types = "S32S8S8S32", .a = B8_K16, .b = B8_K16, .c = C8, .ptx = TN,
      .sm_min = 75),
  {0}};

#define HALF "{F32F16F16F32|F16F16F16F16|F32BF16BF16F32}"
#define INT8 "{S32S8S8S32|S32S8U8S32|S32U8S8S32|S32U8U8S32}"
#define INT4 "{S32S4S4S32|S32S4U4S32|S32U4S4S32|S32U4U4S32}"
#define INT(name_, m, k, A, B, C, flags_) \
  MMA(.name = name_, .shape = #m ",8," #k, .types = "$0", .a = A, .b = B, \
      .c = C, .ptx = TN, .sm_min = 80, .flags = flags_)
#define INTS(shape_, types_, m, k, A, B, C) \
  INT("SM80_" shape_ "_" types_ "_TN", m, k, A, B, C, 0), \
  INT("SM80_" shape_ "_" types_ "_TN_SATURATE", m, k, A, B, C, AMF_SAT)
#define BITS(shape_, m, k, A, B, C) \
  MMA(.name = "SM80_" shape_ "_S32U1U1S32_TN_XORPOPC", \
      .shape = #m ",8," #k, .types = "S32U1U1S32", .a = A, .b = B, .c = C, \
      .ptx = TN ".xor.popc", .sm_min = 80, .flags = AMF_XORPOPC), \
  MMA(.name = "SM80_" shape_ "_S32U1U1S32_TN_ANDPOPC", \
      .shape = #m ",8," #k, .types = "S32U1U1S32", .a = A, .b = B, .c = C, \
      .ptx = TN ".and.popc", .sm_min = 80, .flags = AMF_ANDPOPC)

const AtomMmaFam atom_sm80[] = {
  MMA(.name = "SM80_16x8x8_" HALF "_TN", .shape = "16,8,8", .types = "$0",
      .a = A16_K8, .b = B16_K8, .c = C16, .ptx = TN, .sm_min = 80),
  MMA(.name = "SM80_16x8x16_" HALF "_TN", .shape = "16,8,16", .types = "$0",
      .a = A16_K16, .b = B16_K16, .c = C16, .ptx = TN, .sm_min = 80),
  MMA(.name = "SM80_16x8x4_F32TF32TF32F32_TN", .shape = "16,8,4",
      .types = "F32TF32TF32F32", .a = A32_K4, .b = B32_K4, .c = C16,
      .ptx = TN, .sm_min = 80),
  MMA(.name = "SM80_16x8x8_F32TF32TF32F32_TN", .shape = "16,8,8",
      .types = "F32TF32TF32F32", .a = A32_K8, .b = B32_K8, .c = C16,
      .ptx = TN, .sm_min = 80),
  MMA(.name = "SM80_8x8x4_F64F64F64F64_TN", .shape = "8,8,4",
      .types = "F64F64F64F64", .a = B32_K4, .b = B32_K4, .c = C8, .ptx = TN,
      .sm_min = 80),
  // A complex MMA is four real MMAs on real and imaginary parts. (CuTe's GC64
  // uses three MMAs on sums of the parts. It is not supported, because no
  // element type here represents its accumulator of three doubles.)
  MMA(.name = "SM80_8x8x4_C64C64C64C64_TN", .shape = "8,8,4",
      .types = "C64C64C64C64", .a = B32_K4, .b = B32_K4, .c = C8,
      .ptx = "mma.sync.aligned.$S.row.col.f64.f64.f64.f64", .sm_min = 80),
  MMA(.name = "SM80_8x8x4_GC64C64C64GC64_TN", .shape = "8,8,4",
      .types = "GC64C64C64GC64", .a = B32_K4, .b = B32_K4, .c = C8,
      .ptx = "mma.sync.aligned.$S.row.col.f64.f64.f64.f64", .sm_min = 80,
      .flags = AMF_TABLE),
  INTS("8x8x16", INT8, 8, 16, B8_K16, B8_K16, C8),
  INTS("16x8x16", INT8, 16, 16, A8_K16, B8_K16, C16),
  INTS("16x8x32", INT8, 16, 32, A8_K32, B8_K32, C16),
  INTS("8x8x32", INT4, 8, 32, B4_K32, B4_K32, C8),
  INTS("16x8x32", INT4, 16, 32, A4_K32, B4_K32, C16),
  INTS("16x8x64", INT4, 16, 64, A4_K64, B4_K64, C16),
  BITS("8x8x128", 8, 128, B1_K128, B1_K128, C8),
  BITS("16x8x128", 16, 128, A1_K128, B1_K128, C16),
  BITS("16x8x256", 16, 256, A1_K256, B1_K256, C16),
  {0}};

const AtomMmaFam atom_sm89[] = {
  MMA(.name = "SM89_16x8x32_F32{E4M3E4M3|E4M3E5M2|E5M2E4M3|E5M2E5M2}F32_TN",
      .shape = "16,8,32", .types = "F32$0F32", .a = A8_K32, .b = B8_K32,
      .c = C16, .ptx = TN, .sm_min = 89),
  MMA(.name = "SM89_16x8x32_F16{E4M3E4M3|E4M3E5M2|E5M2E4M3|E5M2E5M2}F16_TN",
      .shape = "16,8,32", .types = "F16$0F16", .a = A8_K32, .b = B8_K32,
      .c = C16, .ptx = TN, .sm_min = 89),
  {0}};

// GeForce Blackwell (sm_120): MMAs that mix 8-, 6- and 4-bit types and take a
// byte for each element; sparse MMAs; block-scaled MMAs. The stored half of a
// sparse A has the layout of a dense A with half the K.
#define F8F6F4 \
  "{float_e4m3_t|float_e5m2_t|float_e3m2_t|float_e2m3_t|float_e2m1_t}"
#define KIND(k) "mma.sync.aligned.kind::" k ".$S.row.col.$D.$A.$B.$C"
#define SPKIND(k) \
  "mma.sync.aligned.kind::" k ".sp::ordered_metadata.$S.row.col.$D.$A.$B.$C"
#define META16 "((2,2,8),2):((8,32,1),16)"
#define A4_K128 "((4,8),(16,2,2)):((256,1),(16,8,1024))"
const AtomMmaFam atom_sm120[] = {
  MMA(.name = "SM120_16x8x32_TN<" F8F6F4 "," F8F6F4 ",{float|half_t}>",
      .shape = "16,8,32", .types = "$2 $0 $1", .a = A8_K32, .b = B8_K32,
      .c = C16, .ptx = KIND("f8f6f4"), .sm_min = 120, .specific = true,
      .flags = AMF_BYTE),
  MMA(.name = "SM120::SPARSE::SM120_SPARSE_16x8x64_TN<" F8F6F4 "," F8F6F4
              ",{float|half_t}>",
      .shape = "16,8,64", .types = "$2 $0 $1", .a = A4_K64,
      .stored = A8_K32, .meta = META16, .group = 4,
      .b = "((4,8),(4,4)):((32,1),(8,128))", .c = C16,
      .ptx = SPKIND("f8f6f4"), .sm_min = 120, .specific = true,
      .flags = AMF_SPARSE | AMF_BYTE),
  MMA(.name = "SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<" F8F6F4 "," F8F6F4
              ",float,float_ue8m0_t,32>",
      .shape = "16,8,32", .types = "float $0 $1", .a = A8_K32, .b = B8_K32,
      .c = C16, .sm_min = 120, .specific = true,
      .ptx = "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X"
             ".$S.row.col.$D.$A.$B.$C.ue8m0",
      .vs = 32, .sf_type = DT_UE8M0, .flags = AMF_BYTE | AMF_SCALE),
  MMA(.name = "SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,"
              "float_e2m1_t,float,float_ue8m0_t,32>",
      .shape = "16,8,64", .types = "F32E2M1E2M1", .a = A4_K64, .b = B4_K64,
      .c = C16, .sm_min = 120, .specific = true,
      .ptx = "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X"
             ".$S.row.col.$D.$A.$B.$C.ue8m0",
      .vs = 32, .sf_type = DT_UE8M0, .flags = AMF_SCALE),
  MMA(.name = "SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,"
              "float_e2m1_t,float,float_ue4m3_t,16>",
      .shape = "16,8,64", .types = "F32E2M1E2M1", .a = A4_K64, .b = B4_K64,
      .c = C16, .sm_min = 120, .specific = true,
      .ptx = "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X"
             ".$S.row.col.$D.$A.$B.$C.ue4m3",
      .vs = 16, .sf_type = DT_E4M3, .flags = AMF_SCALE),
  MMA(.name = "SM120::BLOCKSCALED::SPARSE::SM120_SPARSE_16x8x128_TN_VS<"
              "float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>",
      .shape = "16,8,128", .types = "F32E2M1E2M1", .a = A4_K128,
      .stored = A4_K64, .meta = META16, .group = 8,
      .b = "((4,8),(8,4)):((64,1),(8,256))", .c = C16,
      .ptx = "mma.sync.aligned.kind::mxf4nvf4.sp::ordered_metadata"
             ".block_scale.scale_vec::4X.$S.row.col.$D.$A.$B.$C.ue4m3",
      .sm_min = 120, .specific = true, .vs = 32, .sf_type = DT_E4M3,
      .flags = AMF_SPARSE | AMF_SCALE),
  {0}};
// SPDX-License-Identifier: MIT
