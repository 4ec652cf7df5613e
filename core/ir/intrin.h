// Intrinsics: PTX instructions without a C operator. One table serves the IR
// (types, facts, constants), the emitter (text), the verifier and the
// simulator.
//
// IN(ID, "name", "signature", class, fidelity, sm, "text"): an intrinsic. Rows
// with the same name differ in their types; the first row whose types fit the
// operands is used.
//
// signature: the result, a colon, the operands; one letter each: p boolean, s
// i16, w u16, i i32, u u32, I i64, U u64, f f32. A result `=` has the type of
// operand 0 before its conversion to the row's type. class: what the result
// depends on, and which lanes must take part:
//   P  pure: depends on its operands alone
//   K  pure: a constant of the GPU or the launch
//   L  pure, but differs between lanes even if its operands do not
//   A  reads the state of the thread, warp or GPU, each lane alone
//   M  lanes act together: the last operand is the mask of these lanes
// fidelity: a row of base/fidelity.h; ROW: as the row of base/soft.h says. sm:
// the first architecture with the intrinsic. text: a C expression with $0 $1 $2
// for the operands; or one PTX instruction
//   (or a block in braces) with %0 for the result and %1 .. for the operands;
//   or only the instruction's mnemonic if the operands follow in order.
//   $i is the immediate, the upper bits of Ins.imm; $m: modifiers such as
//   .rz.ftz that the immediate encodes (intrin_modifiers).
#ifndef CUTE_INTRIN_H
#define CUTE_INTRIN_H

#include "ir/ir.h"

#define INTRINS(IN) \
  IN(POPC, "popc", "i:u", P, EXACT, 0, "__popc($0)") \
  IN(POPC64, "popc", "i:U", P, EXACT, 0, "__popcll($0)") \
  IN(CLZ, "clz", "i:u", P, EXACT, 0, "__clz($0)") \
  IN(CLZ64, "clz", "i:U", P, EXACT, 0, "__clzll($0)") \
  IN(BREV, "brev", "=:u", P, EXACT, 0, "__brev($0)") \
  IN(BREV64, "brev", "=:U", P, EXACT, 0, "__brevll($0)") \
  IN(BFIND, "bfind", "i:u", P, EXACT, 0, "bfind.u32") \
  IN(BFINDS, "bfind", "i:i", P, EXACT, 0, "bfind.s32") \
  IN(BFIND64, "bfind", "i:U", P, EXACT, 0, "bfind.u64") \
  IN(BFINDS64, "bfind", "i:I", P, EXACT, 0, "bfind.s64") \
  IN(BFE, "bfe", "u:uuu", P, EXACT, 0, "bfe.u32") \
  IN(BFES, "bfe", "i:iuu", P, EXACT, 0, "bfe.s32") \
  IN(BFE64, "bfe", "U:Uuu", P, EXACT, 0, "bfe.u64") \
  IN(BFES64, "bfe", "I:Iuu", P, EXACT, 0, "bfe.s64") \
  /* operands: field to insert, base, start + 256 * length */ \
  IN(BFI, "bfi", "=:uuu", P, EXACT, 0, "{.reg .b32 p, n; and.b32 p, %3, 255; " \
     "shr.u32 n, %3, 8; bfi.b32 %0, %1, %2, p, n;}") \
  IN(BFI64, "bfi", "=:UUu", P, EXACT, 0, \
     "{.reg .b32 p, n; and.b32 p, %3, 255; " \
     "shr.u32 n, %3, 8; bfi.b64 %0, %1, %2, p, n;}") \
  IN(PRMT, "prmt", "=:uuu", P, EXACT, 0, "prmt.b32") \
  IN(LOP3, "lop3", "=:uuu", P, EXACT, 0, "lop3.b32 %0, %1, %2, %3, $i;") \
  IN(FUNNEL_L, "shf.l", "=:uuu", P, EXACT, 0, "shf.l.wrap.b32") \
  IN(FUNNEL_R, "shf.r", "=:uuu", P, EXACT, 0, "shf.r.wrap.b32") \
  IN(FUNNEL_LC, "shf.clamp_left", "=:uuu", P, EXACT, 0, "shf.l.clamp.b32") \
  IN(FUNNEL_RC, "shf.clamp_right", "=:uuu", P, EXACT, 0, "shf.r.clamp.b32") \
  IN(MULHI, "mul_hi", "i:ii", P, EXACT, 0, "__mulhi($0, $1)") \
  IN(MULHIU, "mul_hi", "u:uu", P, EXACT, 0, "__umulhi($0, $1)") \
  IN(MULHI64, "mul_hi", "I:II", P, EXACT, 0, "__mul64hi($0, $1)") \
  IN(MULHIU64, "mul_hi", "U:UU", P, EXACT, 0, "__umul64hi($0, $1)") \
  IN(MULWIDE, "mul_wide", "I:ii", P, EXACT, 0, "mul.wide.s32") \
  IN(MULWIDEU, "mul_wide", "U:uu", P, EXACT, 0, "mul.wide.u32") \
  IN(MULWIDE16, "mul_wide", "i:ss", P, EXACT, 0, "mul.wide.s16") \
  IN(MULWIDEU16, "mul_wide", "u:ww", P, EXACT, 0, "mul.wide.u16") \
  IN(MUL24, "mul24", "i:ii", P, EXACT, 0, "__mul24($0, $1)") \
  IN(MUL24U, "mul24", "u:uu", P, EXACT, 0, "__umul24($0, $1)") \
  IN(MUL24H, "mul24.hi", "i:ii", P, EXACT, 0, "mul24.hi.s32") \
  IN(MUL24HU, "mul24.hi", "u:uu", P, EXACT, 0, "mul24.hi.u32") \
  IN(MAD24, "mad24", "i:iii", P, EXACT, 0, "mad24.lo.s32") \
  IN(MAD24U, "mad24", "u:uuu", P, EXACT, 0, "mad24.lo.u32") \
  IN(MAD24H, "mad24.hi", "i:iii", P, EXACT, 0, "mad24.hi.s32") \
  IN(MAD24HU, "mad24.hi", "u:uuu", P, EXACT, 0, "mad24.hi.u32") \
  IN(ADDSAT, "add.sat", "i:ii", P, EXACT, 0, "add.sat.s32") \
  IN(SUBSAT, "sub.sat", "i:ii", P, EXACT, 0, "sub.sat.s32") \
  IN(FMAXN, "fmax.nan", "f:ff", P, EXACT, 80, "max.NaN.f32") \
  IN(FMINN, "fmin.nan", "f:ff", P, EXACT, 80, "min.NaN.f32") \
  IN(FMAXA, "fmax.abs", "f:ff", P, EXACT, 86, "max.xorsign.abs.f32") \
  IN(FMINA, "fmin.abs", "f:ff", P, EXACT, 86, "min.xorsign.abs.f32") \
  IN(FMAXNA, "fmax.nan.abs", "f:ff", P, EXACT, 86, "max.NaN.xorsign.abs.f32") \
  IN(FMINNA, "fmin.nan.abs", "f:ff", P, EXACT, 86, "min.NaN.xorsign.abs.f32") \
  /* operations that round toward zero, up or down */ \
  IN(ADDRZ, "add.rz", "f:ff", P, EXACT, 0, "__fadd_rz($0, $1)") \
  IN(MULRZ, "mul.rz", "f:ff", P, EXACT, 0, "__fmul_rz($0, $1)") \
  IN(DIVRZ, "div.rz", "f:ff", P, EXACT, 0, "__fdiv_rz($0, $1)") \
  IN(FMARZ, "fma.rz", "f:fff", P, EXACT, 0, "__fmaf_rz($0, $1, $2)") \
  IN(SQRTRZ, "sqrt.rz", "f:f", P, EXACT, 0, "__fsqrt_rz($0)") \
  IN(RCPRZ, "rcp.rz", "f:f", P, EXACT, 0, "__frcp_rz($0)") \
  IN(ADDRP, "add.rp", "f:ff", P, EXACT, 0, "__fadd_ru($0, $1)") \
  IN(MULRP, "mul.rp", "f:ff", P, EXACT, 0, "__fmul_ru($0, $1)") \
  IN(DIVRP, "div.rp", "f:ff", P, EXACT, 0, "__fdiv_ru($0, $1)") \
  IN(FMARP, "fma.rp", "f:fff", P, EXACT, 0, "__fmaf_ru($0, $1, $2)") \
  IN(SQRTRP, "sqrt.rp", "f:f", P, EXACT, 0, "__fsqrt_ru($0)") \
  IN(RCPRP, "rcp.rp", "f:f", P, EXACT, 0, "__frcp_ru($0)") \
  IN(ADDRM, "add.rm", "f:ff", P, EXACT, 0, "__fadd_rd($0, $1)") \
  IN(MULRM, "mul.rm", "f:ff", P, EXACT, 0, "__fmul_rd($0, $1)") \
  IN(DIVRM, "div.rm", "f:ff", P, EXACT, 0, "__fdiv_rd($0, $1)") \
  IN(FMARM, "fma.rm", "f:fff", P, EXACT, 0, "__fmaf_rd($0, $1, $2)") \
  IN(SQRTRM, "sqrt.rm", "f:f", P, EXACT, 0, "__fsqrt_rd($0)") \
  IN(RCPRM, "rcp.rm", "f:f", P, EXACT, 0, "__frcp_rd($0)") \
  IN(TF32RNA, "tf32.rna", "u:f", P, EXACT, 80, "cvt.rna.tf32.f32") \
  /* two 16-bit floats in a word, computed as by the ops of ops.h */ \
  IN(ADDBF2, "add.bf16x2", "=:uu", P, EXACT, 80, "add_bf16x2($0, $1)") \
  IN(SUBBF2, "sub.bf16x2", "=:uu", P, EXACT, 80, "sub_bf16x2($0, $1)") \
  IN(MULBF2, "mul.bf16x2", "=:uu", P, EXACT, 80, "mul_bf16x2($0, $1)") \
  IN(MINBF2, "min.bf16x2", "=:uu", P, EXACT, 80, "min.bf16x2") \
  IN(MAXBF2, "max.bf16x2", "=:uu", P, EXACT, 80, "max.bf16x2") \
  IN(FMABF2, "fma.bf16x2", "=:uuu", P, EXACT, 80, "fma.rn.bf16x2") \
  IN(ADDF162, "add.f16x2", "=:uu", P, EXACT, 0, "add.rn.f16x2") \
  IN(SUBF162, "sub.f16x2", "=:uu", P, EXACT, 0, "sub.rn.f16x2") \
  IN(MULF162, "mul.f16x2", "=:uu", P, EXACT, 0, "mul.rn.f16x2") \
  IN(MINF162, "min.f16x2", "=:uu", P, EXACT, 80, "min.f16x2") \
  IN(MAXF162, "max.f16x2", "=:uu", P, EXACT, 80, "max.f16x2") \
  IN(FMAF162, "fma.f16x2", "=:uuu", P, EXACT, 0, "fma.rn.f16x2") \
  IN(PACKBF2, "cvt.bf16x2", "u:ff", P, EXACT, 0, "pack_bf16($0, $1)") \
  IN(PACKF162, "cvt.f16x2", "u:ff", P, EXACT, 0, "pack_f16($0, $1)") \
  /* two 8-bit floats in the low half of a word */ \
  IN(E4M3F16, "cvt.f16x2.e4m3x2", "u:w", P, EXACT, 89, "cvt.rn.f16x2.e4m3x2") \
  IN(E5M2F16, "cvt.f16x2.e5m2x2", "u:w", P, EXACT, 89, "cvt.rn.f16x2.e5m2x2") \
  IN(F16E4M3, "cvt.e4m3x2.f16x2", "w:u", P, EXACT, 89, \
     "cvt.rn.satfinite.e4m3x2.f16x2") \
  IN(F16E5M2, "cvt.e5m2x2.f16x2", "w:u", P, EXACT, 89, \
     "cvt.rn.satfinite.e5m2x2.f16x2") \
  IN(PACKE4M3, "cvt.e4m3x2", "w:ff", P, EXACT, 89, \
     "cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;") \
  IN(PACKE5M2, "cvt.e5m2x2", "w:ff", P, EXACT, 89, \
     "cvt.rn.satfinite.e5m2x2.f32 %0, %2, %1;") \
  /* two 4-bit floats in the low byte of a word */ \
  IN(E2M1F16, "cvt.f16x2.e2m1x2", "=:u", P, EXACT, 0, \
     "e2m1x2_to_f16x2($0)") \
  /* scalar operations of kernels read from PTX; immediate: Soft (base/soft.h).
     They need no text: ptxas reads the source. */ \
  IN(SOFT, "ptx", "u:uuu", P, ROW, 0, "") \
  IN(SOFT64, "ptx64", "U:UUU", P, ROW, 0, "") \
  /* Two f32 in 64 bits; immediate: SoftRound, + INTRIN_FTZ. ptxas 13.0 \
     contracts a product (or an fma with -0) with the sum that reads it, in \
     spite of .rn (findings/ptxas_f32x2_contraction.sh). The `or` between \
     them prevents that, and costs no instruction. */ \
  IN(ADDF322, "add.f32x2", "=:UU", P, EXACT, 100, \
     "add$m.f32x2 %0, %1, %2;") \
  IN(SUBF322, "sub.f32x2", "=:UU", P, EXACT, 100, \
     "sub$m.f32x2 %0, %1, %2;") \
  IN(MULF322, "mul.f32x2", "=:UU", P, EXACT, 100, \
     "mul$m.f32x2 %0, %1, %2; or.b64 %0, %0, 0;") \
  IN(FMAF322, "fma.f32x2", "=:UUU", P, EXACT, 100, \
     "fma$m.f32x2 %0, %1, %2, %3; or.b64 %0, %0, 0;") \
  /* read CLCTRY's response (two halves): whether a cluster was canceled, and \
     the coordinates of its first CTA */ \
  IN(CLCVALID, "clc.is_canceled", "u:UU", P, EXACT, 100, \
     "{.reg .pred p; .reg .b128 h; mov.b128 h, {%1, %2}; " \
     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h; " \
     "selp.u32 %0, 1, 0, p;}") \
  IN(CLCX, "clc.first_ctaid.x", "i:UU", P, EXACT, 100, \
     "{.reg .b128 h; mov.b128 h, {%1, %2}; " \
     "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, h;}") \
  IN(CLCY, "clc.first_ctaid.y", "i:UU", P, EXACT, 100, \
     "{.reg .b128 h; mov.b128 h, {%1, %2}; " \
     "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %0, h;}") \
  IN(CLCZ, "clc.first_ctaid.z", "i:UU", P, EXACT, 100, \
     "{.reg .b128 h; mov.b128 h, {%1, %2}; " \
     "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %0, h;}") \
  /* approximate functions; those of f32 without .ftz are OP_MATH */ \
  IN(EX2FTZ, "ex2.approx.ftz.f32", "f:f", P, UNIT, 0, "ex2.approx.ftz.f32") \
  IN(LG2FTZ, "lg2.approx.ftz.f32", "f:f", P, UNIT, 0, "lg2.approx.ftz.f32") \
  IN(RCPFTZ, "rcp.approx.ftz.f32", "f:f", P, UNIT, 0, "rcp.approx.ftz.f32") \
  IN(SQRTFTZ, "sqrt.approx.ftz.f32", "f:f", P, UNIT, 0, "sqrt.approx.ftz.f32") \
  IN(RSQRTFTZ, "rsqrt.approx.ftz.f32", "f:f", P, UNIT, 0, \
     "rsqrt.approx.ftz.f32") \
  IN(SINFTZ, "sin.approx.ftz.f32", "f:f", P, UNIT, 0, "sin.approx.ftz.f32") \
  IN(COSFTZ, "cos.approx.ftz.f32", "f:f", P, UNIT, 0, "cos.approx.ftz.f32") \
  IN(EX2H2, "ex2.approx.f16x2", "u:u", P, UNIT, 75, "ex2.approx.f16x2") \
  IN(EX2B2, "ex2.approx.ftz.bf16x2", "u:u", P, UNIT, 90, \
     "ex2.approx.ftz.bf16x2") \
  IN(TANHH2, "tanh.approx.f16x2", "u:u", P, UNIT, 75, "tanh.approx.f16x2") \
  IN(TANHB2, "tanh.approx.bf16x2", "u:u", P, UNIT, 90, "tanh.approx.bf16x2") \
  IN(LMEQ, "lanemask_eq", "u:", L, EXACT, 0, "mov.u32 %0, %%lanemask_eq;") \
  IN(LMLE, "lanemask_le", "u:", L, EXACT, 0, "mov.u32 %0, %%lanemask_le;") \
  IN(LMLT, "lanemask_lt", "u:", L, EXACT, 0, "mov.u32 %0, %%lanemask_lt;") \
  IN(LMGE, "lanemask_ge", "u:", L, EXACT, 0, "mov.u32 %0, %%lanemask_ge;") \
  IN(LMGT, "lanemask_gt", "u:", L, EXACT, 0, "mov.u32 %0, %%lanemask_gt;") \
  IN(NSMID, "nsmid", "i:", K, EXACT, 0, "mov.u32 %0, %%nsmid;") \
  IN(NWARPID, "nwarpid", "i:", K, EXACT, 0, "mov.u32 %0, %%nwarpid;") \
  IN(GRIDID, "gridid", "i:", K, EXACT, 0, \
     "{.reg .b64 x; mov.u64 x, %%gridid; " \
     "cvt.u32.u64 %0, x;}") \
  IN(DYNSMEM, "dynamic_smem_size", "i:", K, EXACT, 0, \
     "mov.u32 %0, %%dynamic_smem_size;") \
  IN(TOTSMEM, "total_smem_size", "i:", K, EXACT, 0, \
     "mov.u32 %0, %%total_smem_size;") \
  IN(AGGSMEM, "aggr_smem_size", "i:", K, EXACT, 90, \
     "mov.u32 %0, %%aggr_smem_size;") \
  IN(WARPID, "physical_warp_id", "i:", A, EXACT, 0, "mov.u32 %0, %%warpid;") \
  IN(CLOCK, "clock", "i:", A, EXACT, 0, "mov.u32 %0, %%clock;") \
  IN(CLOCK64, "clock64", "I:", A, EXACT, 0, "mov.u64 %0, %%clock64;") \
  IN(TIMER, "globaltimer", "I:", A, EXACT, 0, "mov.u64 %0, %%globaltimer;") \
  IN(TIMERLO, "globaltimer_lo", "i:", A, EXACT, 0, \
     "mov.u32 %0, %%globaltimer_lo;") \
  IN(ACTIVE, "activemask", "u:", A, EXACT, 0, "__activemask()") \
  IN(NANOSLEEP, "nanosleep", "u:u", A, EXACT, 70, \
     "{nanosleep.u32 %1; mov.u32 %0, 0;}") \
  IN(MATCHANY, "match.any", "u:uu", M, EXACT, 70, "__match_any_sync($1, $0)") \
  IN(MATCHANY64, "match.any", "u:Uu", M, EXACT, 70, \
     "__match_any_sync($1, $0)") \
  IN(MATCHALL, "match.all", "u:uu", M, EXACT, 70, \
     "{.reg .pred p; match.all.sync.b32 %0|p, %1, %2;}") \
  IN(MATCHALL64, "match.all", "u:Uu", M, EXACT, 70, \
     "{.reg .pred p; match.all.sync.b64 %0|p, %1, %2;}") \
  IN(VOTEANY, "vote.any", "p:pu", M, EXACT, 0, "(__any_sync($1, $0) != 0)") \
  IN(VOTEALL, "vote.all", "p:pu", M, EXACT, 0, "(__all_sync($1, $0) != 0)") \
  IN(VOTEUNI, "vote.uni", "p:pu", M, EXACT, 0, "{.reg .pred p, q; " \
     "setp.ne.u32 p, %1, 0; vote.sync.uni.pred q, p, %2; " \
     "selp.u32 %0, 1, 0, q;}") \
  IN(VOTEBALLOT, "vote.ballot", "u:pu", M, EXACT, 0, "__ballot_sync($1, $0)") \
  IN(ELECT, "elect", "p:u", M, EXACT, 90, "{.reg .pred p; " \
     "elect.sync _|p, %1; selp.u32 %0, 1, 0, p;}") \
  IN(REDADD, "redux.add", "=:uu", M, EXACT, 80, "__reduce_add_sync($1, $0)") \
  IN(REDMIN, "redux.min", "i:iu", M, EXACT, 80, "__reduce_min_sync($1, $0)") \
  IN(REDMINU, "redux.min", "u:uu", M, EXACT, 80, "__reduce_min_sync($1, $0)") \
  IN(REDMAX, "redux.max", "i:iu", M, EXACT, 80, "__reduce_max_sync($1, $0)") \
  IN(REDMAXU, "redux.max", "u:uu", M, EXACT, 80, "__reduce_max_sync($1, $0)") \
  IN(REDAND, "redux.and", "=:uu", M, EXACT, 80, "__reduce_and_sync($1, $0)") \
  IN(REDOR, "redux.or", "=:uu", M, EXACT, 80, "__reduce_or_sync($1, $0)") \
  IN(REDXOR, "redux.xor", "=:uu", M, EXACT, 80, "__reduce_xor_sync($1, $0)") \
  /* operands: value, lane or distance, mask; $i: segment mask and clamp */ \
  IN(SHUFIDX, "shfl.idx", "u:uiu", M, EXACT, 0, \
     "shfl.sync.idx.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFIDXI, "shfl.idx", "i:iiu", M, EXACT, 0, \
     "shfl.sync.idx.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFIDXF, "shfl.idx", "f:fiu", M, EXACT, 0, \
     "shfl.sync.idx.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFUP, "shfl.up", "u:uiu", M, EXACT, 0, \
     "shfl.sync.up.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFUPI, "shfl.up", "i:iiu", M, EXACT, 0, \
     "shfl.sync.up.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFUPF, "shfl.up", "f:fiu", M, EXACT, 0, \
     "shfl.sync.up.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFDOWN, "shfl.down", "u:uiu", M, EXACT, 0, \
     "shfl.sync.down.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFDOWNI, "shfl.down", "i:iiu", M, EXACT, 0, \
     "shfl.sync.down.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFDOWNF, "shfl.down", "f:fiu", M, EXACT, 0, \
     "shfl.sync.down.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFBFLY, "shfl.bfly", "u:uiu", M, EXACT, 0, \
     "shfl.sync.bfly.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFBFLYI, "shfl.bfly", "i:iiu", M, EXACT, 0, \
     "shfl.sync.bfly.b32 %0, %1, %2, $i, %3;") \
  IN(SHUFBFLYF, "shfl.bfly", "f:fiu", M, EXACT, 0, \
     "shfl.sync.bfly.b32 %0, %1, %2, $i, %3;")

typedef enum IntrinId {
#define IN(id, name, sig, class, fidelity, sm, text) IN_##id,
  INTRINS(IN)
#undef IN
  IN_COUNT
} IntrinId;

typedef enum IntrinClass {
  INTRIN_P = 1, INTRIN_K, INTRIN_L, INTRIN_A, INTRIN_M
} IntrinClass;
typedef struct Intrin {
  const char *name, *sig, *text;
  uint8_t class, sm;
  uint8_t fidelity;  // the Fidelity
} Intrin;

const Intrin *intrin_row(IntrinId id);
int intrin_arity(IntrinId id);
static inline bool intrin_pure(IntrinId id) {
  return intrin_row(id)->class <= INTRIN_L;
}
// Returns the type of operand k.
DType intrin_operand(IntrinId id, int k);
// Returns the result's type. For `=`, this is the type of operand 0.
DType intrin_result(IntrinId id);
// Reports whether row `id` accepts n operands of types t. exact: types must be
// equal; otherwise registers of the same width suffice. DT_NONE stands for a
// Lua number, which fits any type.
bool intrin_fits(IntrinId id, const DType *t, int n, bool exact);

// Packs an intrinsic and its immediate (from bit 16) into an Ins.imm.
static inline int64_t intrin_pack(IntrinId id, int64_t imm) {
  return (int64_t)id | (int64_t)((uint64_t)imm << 16);
}
static inline IntrinId intrin_id(int64_t packed) {
  return (IntrinId)(packed & 0xffff);
}
static inline int64_t intrin_imm(int64_t packed) { return packed >> 16; }

// Immediates of operations on two f32: a SoftRound (base/soft.h), plus
// INTRIN_FTZ if subnormal operands and results become zeros.
enum { INTRIN_FTZ = 4 };
// Returns the modifiers in PTX, such as ".rz.ftz".
const char *intrin_modifiers(int64_t imm);

// Appends the intrinsic, or evaluates it if it is pure and its operands are
// constant. The operands must have the row's types.
Ref intrin_emit(Ctx *cx, Fn *fn, IntrinId id, int64_t imm, const Ref a[3]);

// Evaluates an intrinsic of class P for one lane, on raw bits (zero-extended).
uint64_t intrin_eval(IntrinId id, int64_t imm, const uint64_t x[3]);

CONSECUTIVE(4, IN_CLOCK, IN_TIMERLO);
static inline bool intrin_is_clock(IntrinId id) {
  return id >= IN_CLOCK && id <= IN_TIMERLO;
}

// Shuffles: four kinds for each of three types. The immediate is operand c of
// PTX's shfl. Bits 0-4 hold the last lane of a segment that may be read (for UP
// the first). Bits 8-12 hold the segment mask, which is 32 minus the segment's
// width.
enum { SHUFFLE_BITS = 0x1f1f };
typedef enum ShuffleKind { SH_IDX, SH_UP, SH_DOWN, SH_BFLY } ShuffleKind;
CONSECUTIVE(4, IN_VOTEANY, IN_VOTEBALLOT);
CONSECUTIVE(8, IN_REDADD, IN_REDXOR);
CONSECUTIVE(12, IN_SHUFIDX, IN_SHUFBFLYF);
CONSECUTIVE(4, IN_SHUFIDX, IN_SHUFUP);
CONSECUTIVE(10, IN_SHUFIDX, IN_SHUFBFLY);
static inline bool intrin_is_shuffle(IntrinId id) {
  return id >= IN_SHUFIDX && id <= IN_SHUFBFLYF;
}
// Reports whether instruction i is a shuffle.
static inline bool intrin_shuffles(const Ins *i) {
  return i->op == OP_ASK && intrin_is_shuffle(intrin_id(i->imm));
}
// If instruction i combines a value with a shuffle of that value, returns the
// operand that is the shuffle, and stores the value in *of. Otherwise returns
// 0.
Ref intrin_shuffled(const Fn *fn, const Ins *i, Ref *of);
static inline ShuffleKind intrin_shuffle(IntrinId id) {
  return (ShuffleKind)((id - IN_SHUFIDX) / (IN_SHUFUP - IN_SHUFIDX));
}
static inline int intrin_clamp(int64_t imm) { return (int)(imm & 31); }
static inline int intrin_segment(int64_t imm) { return (int)(imm >> 8 & 31); }
// Sets *from to the lane from which lane l reads in a shuffle. b is the
// shuffle's lane or distance. Returns false if l may not read that lane; the
// shuffle then returns l's own value.
bool intrin_source(ShuffleKind kind, int64_t imm, int l, int b, int *from);

#endif
// SPDX-License-Identifier: MIT
