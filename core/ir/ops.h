// Every IR operation once:
//   OP(NAME, "name", "operands", imm, rule, effect, who)
//   LEAF(...)  the same, of what is there before the first instruction
//   DO(...)  the same, without a result
//   SCALAR(NAME, "name", "operands", rule)  one value of others, lane by lane,
//            and no more than that
// Whoever includes this defines OP, and the others where they are told apart:
// as `case OP_##id:` they are the cases that a switch has for all.
//
// operands: a letter each, in their order; blanks mean nothing.
//   v  a value         p  a boolean        l  a mask of lanes (u32)
//   x  a variable that it reads            X  ... that it sets
//   r  elements of a memory object that it reads, from an offset on (i32 or
//      i64; in registers a constant);  w  ... writes;  a  ... both.
//      .g .s .r behind it: of global, shared memory, registers only
//   b  an mbarrier: an element of 64 bits of shared memory
//   o  a memory object as a whole
//   d  a tensor map in memory, 1024 bits that it reads, D  ... writes
//   m  a tensor map through which it reads, M  ... writes
//   R  a run of registers that it reads: an object and, for each register,
//      the element where that begins, a plain number;  W  ... writes
//   ?  behind one: it may be missing
//   *  behind one, the last: any number of them; X*: as many as Ins.flags
//   =  as its row of intrin.h, or of the atoms, says
// Where they stand in an Ins, and who walks over them: operands.h.
// imm: what Ins.imm is:
//   NONE  nothing                     RAW  a constant's bits
//   ARG, MEM, TEXT, SREG, MATH  an index into Fn.arg, Fn.mem, Fn.text, of a
//         SReg, of a MathFn           INTRIN  IntrinId | immediate << 16
//   ELEMENTS, BITS  how many it moves, each lane; else it is one element
//   MMA, COPY  id of an atom          UNROLL  #pragma unroll, 0: none
//   BARRIER  its number               GROUPS  how many may be left pending
//   FENCE, ATOMIC  a FenceKind, an AtomicKind
//   REGISTERS  how many a thread may have from now on    MODE  of a tensor
//   LEVELS  how many regions it leaves, the innermost first
// rule: type of the result and demands on the values among the operands:
//   NONE  no result                      SAME  values and result one type
//   INT   SAME, integers (or pred)       FLT   SAME, floats
//   CMP   values one type, result pred   SHF   of the first, which is integer
//   SEL   as of the values               SET   no result, values and what is
//   ANY   stated by the op's comment           written one type
// effect: what it depends on and does:
//   NONE    nothing
//   KNOWN   a value that is known before the kernel starts
//   PURE    of its values alone: hash-consed, folded, left out when unused
//   OBJECT  declares a memory object
//   VAR     declares, reads or sets variables
//   REGS    reads and writes the registers that its operands say
//   MEMORY  reads and writes what its operands say, at once
//   MEET    the same, where lanes or threads meet: no access to memory moves
//           past it
//   ASYNC(OP)  the same, later: the thread starts it, OP waits until it is
//           done; nothing moves past either
//   ORDER   orders accesses to memory among threads: none moves past it
//   ASK     what depends on other lanes or the machine; nothing moves past it
//   ACT     what others see: text, a trap, whatever the script's PTX does
//   OPEN, TURN, CLOSE, LEAVE  begins a region, ends one and begins another,
//           ends one, may leave some
// who: the threads of a warp that must do it together; where others come, or
//   not all of them, the simulator says `divergent`:
//   LANE  each for itself           MASK  those that its last operand names
//   WARP  all that the warp has     FULL  all 32
//   ROW   as its row of intrin.h or of the MMA atoms says, or its flags
//   TEXT  what the script's own text asks for: nobody looks
#ifndef LEAF
#define LEAF(...) OP(__VA_ARGS__)
#endif
#ifndef DO
#define DO(...) OP(__VA_ARGS__)
#endif
#ifndef SCALAR
#define SCALAR(id, name, operands, rule) \
  OP(id, name, operands, NONE, rule, PURE, LANE)
#endif

// leaves
DO(NOP, "nop", "", NONE, NONE, NONE, LANE)  // index 0, rolled-back places
LEAF(CONST, "const", "", RAW, ANY, KNOWN, LANE)
LEAF(ARG, "arg", "", ARG, ANY, KNOWN, LANE)   // a scalar argument
LEAF(SREG, "sreg", "", SREG, ANY, KNOWN, LANE)  // i32
// memory objects; type: of an element
LEAF(GMEM, "gmem", "", MEM, ANY, OBJECT, LANE)  // a pointer argument
// the address of its first byte -> i64
LEAF(ADDRESS, "address", "o.g", NONE, ANY, KNOWN, LANE)
LEAF(SMEM, "smem", "", MEM, ANY, OBJECT, LANE)  // shared memory of the CTA
// the same of another CTA of the cluster: an object, the CTA's rank
OP(DSMEM, "dsmem", "o.s v", MEM, ANY, OBJECT, LANE)
OP(RMEM, "rmem", "", MEM, ANY, OBJECT, LANE)  // registers of the thread
// of a shared object: the 64 bits by which wgmma reads a matrix that begins
// there, imm those beyond the address; 16 bytes further on is one more
LEAF(DESC, "desc", "v", RAW, ANY, KNOWN, LANE)
LEAF(TMAP, "tmap", "", MEM, ANY, OBJECT, LANE)  // a tensor map, an argument
// one that stands in memory, 16 elements of 64 bits; it tells of boxes as the
// argument does
OP(TMAPAT, "tmap.at", "d m", MEM, ANY, OBJECT, LANE)
OP(PTR, "ptr", "v", MEM, ANY, OBJECT, LANE)  // global memory at an address, i64
// arithmetic; its meaning for every type is eval.c's
SCALAR(ADD, "add", "vv", SAME)
SCALAR(SUB, "sub", "vv", SAME)
SCALAR(MUL, "mul", "vv", SAME)
SCALAR(DIV, "div", "vv", SAME)  // integers: floor, as in Lua
SCALAR(MOD, "mod", "vv", SAME)  // integers: floor; floats: Lua's %
SCALAR(MIN, "min", "vv", SAME)
SCALAR(MAX, "max", "vv", SAME)
SCALAR(NEG, "neg", "v", SAME)
SCALAR(ABS, "abs", "v", SAME)
SCALAR(FMA, "fma", "vvv", FLT)  // one rounding
SCALAR(AND, "and", "vv", INT)
SCALAR(OR, "or", "vv", INT)
SCALAR(XOR, "xor", "vv", INT)
SCALAR(NOT, "not", "v", INT)    // pred: !, integers: ~
SCALAR(SHL, "shl", "vv", SHF)
SCALAR(SHR, "shr", "vv", SHF)   // arithmetic on signed types
SCALAR(LT, "lt", "vv", CMP)
SCALAR(LE, "le", "vv", CMP)
SCALAR(EQ, "eq", "vv", CMP)
SCALAR(NE, "ne", "vv", CMP)
OP(SEL, "sel", "pvv", NONE, SEL, PURE, LANE)
OP(CVT, "cvt", "v", NONE, ANY, PURE, LANE)  // any to any: base/dtype.h
OP(BITCAST, "bitcast", "v", NONE, ANY, PURE, LANE)  // same width
OP(MATH, "math", "vv?", MATH, FLT, PURE, LANE)
// rows of intrin.h, which say their types
OP(INTRIN, "intrin", "=", INTRIN, ANY, PURE, LANE)
OP(ASK, "ask", "=", INTRIN, ANY, ASK, ROW)
// elements of memory objects
OP(LD, "ld", "r", NONE, ANY, MEMORY, LANE)    // -> element; flags: HINT_*
DO(ST, "st", "wv", NONE, NONE, MEMORY, LANE)  // flags: HINT_*
DO(FILL, "fill", "w.r v", ELEMENTS, SET, REGS, LANE)
// one of so many elements of registers, which one is known only now; beyond
// them is a fault. PUT: the value, which
OP(PICK, "pick", "r.r v", ELEMENTS, ANY, REGS, LANE)
DO(PUT, "put", "a.r vv", ELEMENTS, NONE, REGS, LANE)
// vector moves of 8 to 256 bits, contiguous on both sides
DO(COPY, "copy", "wrp?", BITS, NONE, MEMORY, LANE)
// cp.async: whether it reads, and how many bytes where these are not all
DO(CPASYNC, "cp.async", "w.s r.g p?v?", BITS, NONE, ASYNC(CPWAIT), LANE)
DO(CPCOMMIT, "cp.async.commit", "", NONE, NONE, ORDER, LANE)
DO(CPWAIT, "cp.async.wait", "", GROUPS, NONE, ORDER, LANE)
// atoms of the tables: D A B C ..., and destination, source
DO(MMA, "mma", "=", MMA, NONE, REGS, ROW)
DO(MATRIX, "matrix", "=", COPY, NONE, MEET, FULL)  // ldmatrix, stmatrix
// a warpgroup's: D, A (registers or a DESC), B (a DESC), whether D comes in;
// the metadata of a sparse A
DO(WGMMA, "wgmma", "=", MMA, NONE, ASYNC(WGWAIT), FULL)
DO(WGFENCE, "wgmma.fence", "", NONE, NONE, ORDER, FULL)
DO(WGCOMMIT, "wgmma.commit_group", "", NONE, NONE, ORDER, FULL)
DO(WGWAIT, "wgmma.wait_group", "", GROUPS, NONE, ORDER, FULL)
// order among threads
// threads; the number, where it is traced
DO(BAR, "bar.sync", "v?v?", BARRIER, NONE, ORDER, WARP)
DO(BARARRIVE, "bar.arrive", "v?v?", BARRIER, NONE, ORDER, WARP)
DO(SYNCWARP, "syncwarp", "l", NONE, NONE, ORDER, MASK)
DO(FENCE, "fence", "", FENCE, NONE, ORDER, LANE)
// mbarriers count arrivals and bytes, phase by phase; a phase is named by its
// parity. flags: HINT_*, MBF_*; the CTA of the cluster whose barrier it is
// (missing: its own)
DO(MBARINIT, "mbarrier.init", "bv", NONE, NONE, MEET, LANE)  // arrivals
DO(MBARARRIVE, "mbarrier.arrive", "bvv?", NONE, NONE, MEET, LANE)  // so many
                                                    // at once; CTA
OP(MBARTOKEN, "mbarrier.arrive.token", "bv", NONE, ANY, MEET, LANE)  // so many
                                    // at once -> the phase they are of, a u64
DO(MBARTX, "mbarrier.expect_tx", "bvv?", NONE, NONE, MEET, LANE)  // bytes; CTA
// the phase, a parity or a MBARTOKEN; nanoseconds -> was it complete?
DO(MBARWAIT, "mbarrier.wait", "bv", NONE, NONE, MEET, LANE)
OP(MBARTRY, "mbarrier.try_wait", "bvv?", NONE, ANY, MEET, LANE)
DO(MBARINVAL, "mbarrier.inval", "b", NONE, NONE, MEET, LANE)
// arrives when what the thread's cp.async copied is there
DO(MBARCPASYNC, "cp.async.mbarrier.arrive", "b", NONE, NONE, MEET, LANE)
// 1, 2 or 4 values to shared memory of a CTA (the first value), at the place
// that is written; its mbarrier counts their bytes
DO(STASYNC, "st.async", "w.s bv vv?v?v?", BITS, NONE, ASYNC(MBARWAIT), LANE)
// threads of a cluster; flags: CLF_*
DO(CLUSTERARRIVE, "cluster.arrive", "", NONE, NONE, ORDER, ROW)
DO(CLUSTERWAIT, "cluster.wait", "", NONE, NONE, ORDER, ROW)
// registers that a warpgroup takes from its block or gives back; flags: RGF_*
DO(SETMAXNREG, "setmaxnreg", "", REGISTERS, NONE, ORDER, FULL)
// kernels that overlap: waits for those before; those behind may start
DO(GRIDWAIT, "griddepcontrol.wait", "", NONE, NONE, ORDER, LANE)
DO(GRIDLAUNCH, "griddepcontrol.launch_dependents", "", NONE, NONE, ORDER, LANE)
// bulk copies, carried out through the async proxy; flags: BKF_*. Boxes of a
// tensor map at coordinates, mode 0 first, behind them the offsets of im2col.
// Of loads: the mbarrier that is told of their bytes, the CTAs of the cluster
// that get them (a mask; missing: this one), a cache policy; of stores the
// latter
DO(TMALOAD, "tma.load", "w.s m b v?v? vv?v?v?v?v?v?v?", BITS, NONE,
   ASYNC(MBARWAIT), LANE)
DO(TMASTORE, "tma.store", "M r.s v? vv?v?v?v?v?v?v?", BITS, NONE,
   ASYNC(BULKWAIT), LANE)
// into L2; without coordinates the map itself
DO(TMAPREFETCH, "tma.prefetch", "m v?v?v?v?v?v?v?v?v?", NONE, NONE, ORDER,
   LANE)
DO(BULKLOAD, "bulk.load", "w.s r.g b v?v?", BITS, NONE, ASYNC(MBARWAIT), LANE)
DO(BULKSTORE, "bulk.store", "w.g r.s v?", BITS, NONE, ASYNC(BULKWAIT), LANE)
// into shared memory of a CTA of the cluster, whose mbarrier is told: its rank
DO(BULKSEND, "bulk.send", "w.s r.s b v", BITS, NONE, ASYNC(MBARWAIT), LANE)
// groups of a thread's stores; waits until at most so many are pending
DO(BULKCOMMIT, "bulk.commit", "", NONE, NONE, ORDER, LANE)
DO(BULKWAIT, "bulk.wait", "", GROUPS, NONE, ORDER, LANE)
// tensor maps in memory: an argument's is copied there, told of another
// tensor, which others may read and write then, and another extent or stride
// (in bytes) of mode imm (flag: TMF_STRIDE); agents see what a fence released
// and they acquire, or a warp copies out of shared memory
DO(MAPCOPY, "tmap.copy", "D m", NONE, NONE, MEMORY, LANE)
DO(MAPADDRESS, "tmap.address", "D a.g", NONE, NONE, MEMORY, LANE)
DO(MAPSET, "tmap.set", "D v", MODE, NONE, MEMORY, LANE)
DO(MAPACQUIRE, "tmap.acquire", "d", NONE, NONE, MEET, LANE)
DO(MAPPUBLISH, "tmap.publish", "D d", NONE, NONE, MEET, FULL)
OP(ATOMIC, "atomic", "avv?", ATOMIC, ANY, MEMORY, LANE)  // value, what CAS
                                                    // compares -> what was
DO(PRINTF, "printf", "v*", TEXT, NONE, ACT, LANE)
DO(ASM, "asm", "X*v*", TEXT, NONE, ACT, TEXT)  // inline PTX
DO(TRAP, "trap", "p", TEXT, NONE, ACT, LANE)   // if p is false
// structure; a variable is a mutable scalar
OP(VAR, "var", "v", NONE, SAME, VAR, LANE)     // v: initial value
OP(VGET, "get", "x", NONE, SAME, VAR, LANE)
DO(VSET, "set", "Xv", NONE, SET, VAR, LANE)
OP(FOR, "for", "vvv", UNROLL, SAME, OPEN, LANE)  // lo hi step -> i32 or i64
DO(LOOP, "loop", "", NONE, NONE, OPEN, LANE)   // for ever, until BREAKIF
DO(ONCE, "once", "", NONE, NONE, OPEN, LANE)   // what BREAKIF may leave
DO(BREAKIF, "break.if", "p", LEVELS, NONE, LEAVE, LANE)  // FOR, LOOP, ONCE
DO(EXITIF, "exit.if", "p", NONE, NONE, LEAVE, LANE)  // the thread ends
DO(IF, "if", "p", NONE, NONE, OPEN, LANE)
DO(ELSE, "else", "", NONE, NONE, TURN, LANE)
DO(END, "end", "", NONE, NONE, CLOSE, LANE)
#undef SCALAR
#undef DO
#undef LEAF
#undef OP
