// video.c: instructions on the 2 halves or 4 bytes of a word: vadd2, vmax4 and
// similar ones.
#include <string.h>

#include "ptx/inside.h"

// Returns lane k of word a, whose lanes have `bits` bits, as an i32.
static Ref lane_of(PtxOp *o, Ref a, int bits, int k, bool sign) {
  Ref up = number(o, DT_U32, 32 - bits * (k + 1));
  Ref down = number(o, DT_U32, 32 - bits);
  Ref top = as(o, sign ? DT_I32 : DT_U32, op2(o, OP_SHL, a, up));
  return as(o, DT_I32, op2(o, OP_SHR, top, down));
}

// Returns v, limited to the numbers of `bits` bits.
static Ref limited(PtxOp *o, Ref v, int bits, bool sign) {
  int64_t least = sign ? -(1 << (bits - 1)) : 0;
  int64_t most = sign ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  v = op2(o, OP_MAX, v, number(o, DT_I32, least));
  return op2(o, OP_MIN, v, number(o, DT_I32, most));
}

static Ref lane_result(PtxOp *o, VideoOp v, Ref a, Ref b) {
  switch (v) {
  case VIDEO_ADD: return op2(o, OP_ADD, a, b);
  case VIDEO_SUB: return op2(o, OP_SUB, a, b);
  case VIDEO_MIN: return op2(o, OP_MIN, a, b);
  case VIDEO_MAX: return op2(o, OP_MAX, a, b);
  case VIDEO_ABSDIFF:
    return op2(o, OP_SUB, op2(o, OP_MAX, a, b), op2(o, OP_MIN, a, b));
  case VIDEO_SET:
    return op3(o, OP_SEL, op_compare(o, false, a, b), number(o, DT_I32, 1),
               number(o, DT_I32, 0));
  }
  return a;
}

// Translates v...2 and v...4, such as vadd2 and vadd4. k: VideoOp, and
// VIDEO_BYTES for four bytes.
void row_video(PtxOp *o, int k) {
  VideoOp v = (VideoOp)(k & ~VIDEO_BYTES);
  int lanes = k & VIDEO_BYTES ? 4 : 2, bits = 32 / lanes;
  bool sum = op_has(o, "add"), sat = op_has(o, "sat");
  // The first modifier is the type of the result, except for vset, which has no
  // modifier for its result.
  int first = v == VIDEO_SET ? 0 : 1;
  bool sign = first && op_type(o, 0).kind == PTX_S;
  bool sign_a = op_type(o, first).kind == PTX_S;
  bool sign_b = op_type(o, first + 1).kind == PTX_S;
  if (sum && sat) op_reject(o, "sums of saturated lanes");
  Ref a = op_operand(o, 1, DT_U32), b = op_operand(o, 2, DT_U32);
  Ref all = op_operand(o, 3, DT_U32);
  if (!sum) all = number(o, DT_U32, 0);
  for (int q = 0; q < lanes; q++) {
    Ref r = lane_result(o, v, lane_of(o, a, bits, q, sign_a),
                        lane_of(o, b, bits, q, sign_b));
    if (sat) r = limited(o, r, bits, sign);
    r = as(o, DT_U32, r);
    if (sum) {
      all = op2(o, OP_ADD, all, r);
      continue;
    }
    r = op2(o, OP_AND, r, number(o, DT_U32, (1 << bits) - 1));
    all = op2(o, OP_OR, all, op2(o, OP_SHL, r, number(o, DT_U32, q * bits)));
  }
  op_result(o, all);
}
// SPDX-License-Identifier: MIT
