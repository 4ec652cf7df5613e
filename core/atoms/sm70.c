// MMA atoms of CUDA cores (plain and packed FMA, dp4a, dp2a) and of Volta.
#include "atoms/inside.h"

#define TYPE_D "{float|double|half_t|bfloat16_t|int32_t|int}"

const AtomMmaFam atom_sm61[] = {
  {.name = "UniversalFMA<" TYPE_D ">", .shape = "1,1,1", .types = "$0 $0 $0",
   .thr = "1:0", .a = "(1,1):(0,0)", .b = "(1,1):(0,0)", .c = "(1,1):(0,0)",
   .kind = MK_FMA},
  {.name = "UniversalFMA<" TYPE_D "," TYPE_D "," TYPE_D "," TYPE_D ">",
   .shape = "1,1,1", .types = "$0 $1 $2 $3",
   .thr = "1:0", .a = "(1,1):(0,0)", .b = "(1,1):(0,0)", .c = "(1,1):(0,0)",
   .kind = MK_FMA},
  {.name = "SM61_DP4A", .shape = "1,1,4", .types = "S32S8S8S32",
   .thr = "1:0", .a = "(1,4):(0,1)", .b = "(1,4):(0,1)", .c = "(1,1):(0,0)",
   .ptx = "dp4a.s32.s32", .kind = MK_DP4A, .sm_min = 61},
  // A dot product of two pairs of 16-bit values, by multiply-adds of CUDA
  // cores. (The instruction dp2a is not used, because it reads B as bytes.)
  {.name = "SM61_DP2A", .shape = "1,1,2", .types = "S32S16S16S32",
   .thr = "1:0", .a = "(1,2):(0,1)", .b = "(1,2):(0,1)", .c = "(1,1):(0,0)",
   .ptx = "mad.lo.s32", .kind = MK_DP2A, .sm_min = 61},
  {0}};

// The threads of a quad pair q: lanes 4q to 4q+3, and 16+4q to 16+4q+3.
#define QP "(4,2):(1,16)"
// Each thread holds all 4 elements along K of one row.
#define ROW "(8,4):(1,8)"
// Each thread holds 4 adjacent elements along M or N.
#define COL "((4,2),4):((8,4),1)"
#define C16 "(8,8):(1,8)"
#define C32 "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"
#define VOLTA(maj, l, A, B) \
  {.name = "SM70_8x8x4_F16F16F16F16_" maj, .shape = "8,8,4", \
   .types = "F16F16F16F16", .thr = QP, .a = A, .b = B, .c = C16, \
   .ptx = "mma.sync.aligned.m8n8k4." l ".f16.f16.f16.f16", \
   .kind = MK_MMA, .sm_min = 70}, \
  {.name = "SM70_8x8x4_F32F16F16F32_" maj, .shape = "8,8,4", \
   .types = "F32F16F16F32", .thr = QP, .a = A, .b = B, .c = C32, \
   .ptx = "mma.sync.aligned.m8n8k4." l ".f32.f16.f16.f32", \
   .kind = MK_MMA, .sm_min = 70}

const AtomMmaFam atom_sm70[] = {
  VOLTA("TN", "row.col", ROW, ROW),
  VOLTA("NT", "col.row", COL, COL),
  VOLTA("NN", "col.col", COL, ROW),
  VOLTA("TT", "row.row", ROW, COL),
  {0}};
// SPDX-License-Identifier: MIT
