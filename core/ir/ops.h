// Every IR operation once: OP(NAME, "name", operands, rule, flags, who,
// "C").
//
// operands: how many of Ins.a[] are used (an optional last one may be 0).
// rule: type of the result and demands on operands, checked by verify.c:
//   NONE  no result                      SAME  operands and result one type
//   INT   SAME, integers (or pred)       FLT   SAME, floats
//   CMP   operands one type, result pred SHF   a: integer, b: i32; type of a
//   SEL   a pred, b and c of the type    ANY   stated by the op's comment
// flags: P pure (hash-consed, folded)    E has an effect on memory or order
//   B begins a region   M ends and begins one (ELSE)   X ends a region
// who: the threads of a warp that must do it together; where others come, or
//   not all of them, the simulator says `divergent`:
//   LANE  each for itself           MASK  those that its last operand names
//   WARP  all that the warp has     FULL  all 32
//   ROW   as its row of intrin.h or of the MMA atoms says
//   TEXT  what the script's own text asks for: nobody looks
// "C": CUDA spelling with $0 $1 $2 for operands where the op is plainly an
// expression; NULL where emit/emit.c has a case of its own.
//
// leaves
OP(NOP, "nop", 0, NONE, 0, LANE, NULL)    // index 0 and rolled-back places
OP(CONST, "const", 0, ANY, P, LANE, NULL) // imm: raw bits of the type
OP(ARG, "arg", 0, ANY, P, LANE, NULL)     // imm: index into Fn.arg; a scalar
OP(SREG, "sreg", 0, ANY, P, LANE, NULL)   // imm: SReg; i32
// memory objects; imm: index into Fn.mem; type: element type
OP(GMEM, "gmem", 0, ANY, P, LANE, NULL)   // a pointer argument
OP(SMEM, "smem", 0, ANY, E, LANE, NULL)   // shared memory of the CTA
OP(RMEM, "rmem", 0, ANY, E, LANE, NULL)   // registers of the thread
// arithmetic
OP(ADD, "add", 2, SAME, P, LANE, "$0 + $1")
OP(SUB, "sub", 2, SAME, P, LANE, "$0 - $1")
OP(MUL, "mul", 2, SAME, P, LANE, "$0 * $1")
OP(DIV, "div", 2, SAME, P, LANE, NULL)    // integers: floor, as in Lua
OP(MOD, "mod", 2, SAME, P, LANE, NULL)    // integers: floor; floats: Lua's %
OP(MIN, "min", 2, SAME, P, LANE, NULL)
OP(MAX, "max", 2, SAME, P, LANE, NULL)
OP(NEG, "neg", 1, SAME, P, LANE, "-$0")
OP(ABS, "abs", 1, SAME, P, LANE, NULL)
OP(FMA, "fma", 3, FLT, P, LANE, NULL)     // one rounding
OP(AND, "and", 2, INT, P, LANE, "$0 & $1")
OP(OR, "or", 2, INT, P, LANE, "$0 | $1")
OP(XOR, "xor", 2, INT, P, LANE, "$0 ^ $1")
OP(NOT, "not", 1, INT, P, LANE, NULL)     // pred: !, integers: ~
OP(SHL, "shl", 2, SHF, P, LANE, "$0 << $1")
OP(SHR, "shr", 2, SHF, P, LANE, "$0 >> $1")  // arithmetic on signed types
OP(LT, "lt", 2, CMP, P, LANE, "$0 < $1")
OP(LE, "le", 2, CMP, P, LANE, "$0 <= $1")
OP(EQ, "eq", 2, CMP, P, LANE, "$0 == $1")
OP(NE, "ne", 2, CMP, P, LANE, "$0 != $1")
OP(SEL, "sel", 3, SEL, P, LANE, "$0 ? $1 : $2")
OP(CVT, "cvt", 1, ANY, P, LANE, NULL)     // any type to any, see base/dtype.h
OP(BITCAST, "bitcast", 1, ANY, P, LANE, NULL)  // same width
OP(MATH, "math", 2, FLT, P, LANE, NULL)   // imm: MathFn; b for binary ones
// rows of intrin.h; imm: IntrinId | immediate << 16
OP(INTRIN, "intrin", 3, ANY, P, LANE, NULL)  // of its operands alone
OP(ASK, "ask", 3, ANY, E, ROW, NULL)      // of the machine, other lanes
// elements of memory objects; offsets in elements, i32 or i64; in RMEM const
OP(LD, "ld", 2, ANY, E, LANE, NULL)       // mem off -> element
OP(ST, "st", 3, NONE, E, LANE, NULL)      // mem off value
OP(FILL, "fill", 3, NONE, E, LANE, NULL)  // rmem off value; imm: elements
// vector moves; imm: bits moved per thread (8..128), contiguous on both
// sides; ext: dst, dst off, src, src off, pred (0: always)
OP(COPY, "copy", 0, NONE, E, LANE, NULL)
OP(CPASYNC, "cp.async", 0, NONE, E, LANE, NULL)  // smem <- gmem; flags: CPF_*
OP(CPCOMMIT, "cp.async.commit", 0, NONE, E, LANE, NULL)
OP(CPWAIT, "cp.async.wait", 0, NONE, E, LANE, NULL)  // imm: groups left pending
// atoms of the tables; imm: atom id; ext: per operand a memory object, then
// one element offset per register (RMEM), or one offset Ref (SMEM)
OP(MMA, "mma", 0, NONE, E, ROW, NULL)     // operands D A B C
OP(MATRIX, "matrix", 0, NONE, E, FULL, NULL)  // ldmatrix/stmatrix: dst, src
// order among threads
OP(BAR, "bar.sync", 1, NONE, E, WARP, NULL)  // imm: id; a: threads (0: all)
OP(BARARRIVE, "bar.arrive", 1, NONE, E, WARP, NULL)  // imm: id; a: threads
OP(SYNCWARP, "syncwarp", 1, NONE, E, MASK, NULL)  // a: mask
OP(FENCE, "fence", 0, NONE, E, LANE, NULL)  // imm: FenceKind
OP(ATOMIC, "atomic", 3, ANY, E, LANE, NULL)  // mem off value -> old; imm: kind
OP(PRINTF, "printf", 0, NONE, E, LANE, NULL)  // imm: Fn.text; ext: values
// inline PTX; imm: Fn.text; ext: `flags` VARs that it writes, then values
OP(ASM, "asm", 0, NONE, E, TEXT, NULL)
OP(TRAP, "trap", 1, NONE, E, LANE, NULL)  // if pred is false; imm: Fn.text
// structure; VAR is a mutable scalar
OP(VAR, "var", 1, ANY, E, LANE, NULL)     // a: initial value
OP(VGET, "get", 1, ANY, E, LANE, NULL)
OP(VSET, "set", 2, NONE, E, LANE, NULL)   // var value
OP(FOR, "for", 3, ANY, E | B, LANE, NULL) // lo hi step -> i32/i64 counter
OP(LOOP, "loop", 0, NONE, E | B, LANE, NULL)  // for ever, until BREAKIF
OP(BREAKIF, "break.if", 1, NONE, E, LANE, NULL)  // only directly inside LOOP
OP(IF, "if", 1, NONE, E | B, LANE, NULL)
OP(ELSE, "else", 0, NONE, E | M, LANE, NULL)
OP(END, "end", 0, NONE, E | X, LANE, NULL)
