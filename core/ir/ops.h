// The table of IR operations:
//   OP(NAME, "name", "operands", imm, flags, rule, effect, who, fidelity, need,
//      class, point)
//   LEAF(NAME, "name", "operands", imm, effect, need)  an OP that precedes the
//         first instruction and has a result of any type
//   DO(...)  an OP without a result
//   SCALAR(NAME, "name", "operands", rule, fidelity, class)  a pure function of
//         scalar values, computed lane by lane
// A file that includes ops.h defines OP, and also the other macros if it treats
// their rows differently. Defined as `case OP_##id:`, the macros form the cases
// of a switch.
//
// operands: words separated by blanks, in order. A word consists of the
// operand's role and a colon, a letter, and suffixes. (Operands of scalar
// operations have no roles, and their letters need no blanks.)
//   v  a value         p  a boolean        l  a mask of lanes (u32)
//   x  a variable that is read             X  ... that is set
//   r  elements of a memory object that are read, from an offset (i32 or i64;
//      constant for registers);  w  ... written;  a  ... read and written.
//      A suffix .g .s .r .t restricts the object to global memory, shared
//      memory, registers, tensor memory.
//   b  an mbarrier: a 64-bit element of shared memory
//   o  a whole memory object
//   d  a tensor map in memory, 1024 bits that are read,  D  ... written
//   m  a tensor map through which the operation reads,  M  ... writes
//   R  a run of registers that is read: an object, and for each register the
//      constant index of its first element;  W  ... written
//   ?  suffix: the operand is optional;  ?7  up to 7 optional operands
//   *  suffix of the last operand: any number of operands. For variables that
//      are set (X*), Ins.flags is their number.
//   =  as the row of intrin.h or of the atoms specifies (operands.c)
// Roles are rows of ROLES (rows.h). operand_of finds the operand of a role.
// operands.h describes how an Ins encodes operands, and how to iterate over
// them.
// imm: the meaning of Ins.imm:
//   NONE  nothing                     RAW  a constant's bits
//   ARG, MEM, TEXT, SREG, MATH  an index into Fn.arg, Fn.mem, Fn.text, an
//         SReg, a MathFn              INTRIN  IntrinId | immediate << 16
//   ELEMENTS, BITS  amount that each lane moves; other kinds: one element
//   MMA, COPY  id of an atom          UNROLL  #pragma unroll, 0: none
//   BARRIER  number of a barrier      GROUPS  groups that may stay pending
//   FENCE, ATOMIC  a FenceKind, an AtomicKind
//   REGISTERS  new register limit of a thread      MODE  a mode of a tensor
//   LEVELS  number of regions to leave, the innermost first
// flags: the meaning of Ins.flags (kinds.h), besides INF_ASIDE:
//   NONE  nothing                     OUTPUTS  number of variables that are set
//   HINTS  all hints of an access     LEVEL2  hints from HINT_PREFETCH on
//   CPASYNC  CPF_*, HINT_PREFETCH     MBAR  MBF_*, hints from HINT_SEM on
//   CLUSTER  CLF_*                    BARRIER  BRF_*
//   BULK  BKF_* of bulk copies        READ  BKF_READ
//   FIELD  a TensorMapField           REGISTERS  RGF_*
//   TCGEN05  TCF_*
// rule: type of the result and constraints on the value operands:
//   NONE  no result                      SAME  values and result one type
//   INT   SAME, integers (or pred)       FLT   SAME, floats
//   CMP   values one type, result pred   SHF   type of the first, an integer
//   SEL   type of the values             SET   no result; values and target
//   ANY   see the op's comment                 one type
// effect: dependences and side effects:
//   NONE    nothing
//   KNOWN   a value that is known before the kernel starts
//   PURE    depends on its values alone: hash-consed, folded, removed if unused
//   OBJECT  declares a memory object
//   VAR     declares, reads or sets variables
//   REGS    reads and writes the registers among its operands
//   MEMORY  reads and writes its operands before the thread continues
//   MEET    MEMORY that also synchronizes lanes or threads: no memory access
//           moves past it
//   ASYNC(AGENT)  MEMORY that completes later: the thread starts it, and an
//           agent carries it out (AGENTS in rows.h); nothing moves past it
//   ORDER   orders memory accesses among threads: no access moves past it
//   ASK     depends on other lanes or the hardware; nothing moves past it
//   ACT     externally visible: text, a trap, or any effect of inline PTX
//   OPEN, TURN, CLOSE, LEAVE  begins a region; ends one and begins another;
//           ends one; may leave some
// who: the threads of a warp that must execute the operation together; the
// simulator reports any other set as `divergent`:
//   LANE  each lane alone           MASK  the lanes of its last operand
//   WARP  all lanes of the warp     FULL  all 32
//   ROW   as its row of intrin.h or of the MMA atoms, or its flags, specify
//   TEXT  unknown: it depends on the script's inline PTX
// fidelity: how its result compares with a GPU's, a row of base/fidelity.h;
// ROW: as its function, its row of intrin.h, its atom or its AtomicKind says
// need: what a target must have, a row of FEATURES (target.h), or NONE.
//   ROW: as its row of intrin.h, its atom, its FenceKind or SReg says. Flags
//   and optional operands may need more (target.c).
// class: the kind of work, by which the cost model (timing/work.c) finds the
// cost:
//   NONE      no instruction          SUM, PRODUCT, QUOTIENT, EXTREME, SIGN,
//                                     FUSED, LOGIC, SHIFT, COMPARE, SELECT,
//   CHOICE    among registers         CONVERT, FUNCTION, INTRIN  arithmetic
//   ASK       by its row of intrin.h  ACCESS  by the memory of its operands
//   SHARED    one access to shared memory   SEND  to that of another CTA
//   MATRIX    ldmatrix, stmatrix      MMA  by its atom
//   CPASYNC, CPCOMMIT, CPWAIT, CPARRIVE  cp.async
//   WGCOMMIT, WGWAIT  wgmma
//   BULKLOAD, BULKSTORE, BULKCOMMIT, BULKWAIT  bulk copies
//   BARRIER, SYNCWARP, FENCE, CLUSTER  synchronization of a CTA, a warp,
//             memory, a cluster       LOOP, END  start and end of an iteration
//   CONTROL   waits for earlier arithmetic and costs an issue slot
// point: whether the scheduler may run another warp before the operation,
// because the result depends on the order of warps:
//   NEVER                             ALWAYS
//   ORDERED   if it has a memory order      UNLINKED  if it is not linked to
//                                     a wait (decode/try_wait.c)
#ifndef LEAF
#define LEAF(id, name, operands, imm, effect, need) \
  OP(id, name, operands, imm, NONE, ANY, effect, LANE, EXACT, need, NONE, NEVER)
#endif
#ifndef DO
#define DO(...) OP(__VA_ARGS__)
#endif
#ifndef SCALAR
#define SCALAR(id, name, operands, rule, fidelity, class) \
  OP(id, name, operands, NONE, NONE, rule, PURE, LANE, fidelity, NONE, class, \
     NEVER)
#endif

// Does nothing: entry 0 of Fn.ins, and instructions that a rollback removed.
DO(NOP, "nop", "", NONE, NONE, NONE, NONE, LANE, EXACT, NONE, NONE, NEVER)
LEAF(CONST, "const", "", RAW, KNOWN, NONE)
// a scalar argument of the kernel
LEAF(ARG, "arg", "", ARG, KNOWN, NONE)
// a special register, as i32
LEAF(SREG, "sreg", "", SREG, KNOWN, ROW)
// memory objects, whose elements have type Ins.type
LEAF(GMEM, "gmem", "", MEM, OBJECT, NONE)  // a pointer argument
// The i64 address of the object's first byte.
LEAF(ADDRESS, "address", "object:o.g", NONE, KNOWN, NONE)
// The 64-bit word with number Ins.imm of a tensor map that is an argument.
LEAF(MAPWORD, "tmap.word", "map:m", RAW, KNOWN, NONE)
// shared memory of the CTA
LEAF(SMEM, "smem", "", MEM, OBJECT, NONE)
// An object in shared memory of another CTA of the cluster. Operands: this
// CTA's object, the rank of the other CTA.
OP(DSMEM, "dsmem", "object:o.s rank:v", MEM, NONE, ANY, OBJECT, LANE, EXACT,
   CLUSTER, NONE, NEVER)
// registers of the thread
OP(RMEM, "rmem", "", MEM, NONE, ANY, OBJECT, LANE, EXACT, NONE, NONE, NEVER)
// The matrix descriptor of wgmma for the start of a shared object; imm: the
// bits of the descriptor except the address. Adding 1 to the descriptor
// advances the address by 16 bytes.
LEAF(DESC, "desc", "object:v", RAW, KNOWN, NONE)
// a tensor map, an argument
LEAF(TMAP, "tmap", "", MEM, OBJECT, NONE)
// A tensor map in memory, 16 elements of 64 bits. If the operand `map` is
// present, it is an argument, and the tensor map in memory has the box of this
// argument. Otherwise the box is unknown, and the tensor map describes a tensor
// at a raw address.
OP(TMAPAT, "tmap.at", "tmap:d map:m?", MEM, NONE, ANY, OBJECT, LANE, EXACT,
   NONE, NONE, NEVER)
// global memory at an i64 address
OP(PTR, "ptr", "address:v", MEM, NONE, ANY, OBJECT, LANE, EXACT, NONE, NONE,
   NEVER)
// Arithmetic, which eval.c defines for every type.
SCALAR(ADD, "add", "vv", SAME, EXACT, SUM)
SCALAR(SUB, "sub", "vv", SAME, EXACT, SUM)
SCALAR(MUL, "mul", "vv", SAME, EXACT, PRODUCT)
// rounds down for integers, as in Lua
SCALAR(DIV, "div", "vv", SAME, EXACT, QUOTIENT)
// rounds down for integers, and works as Lua's % for floats
SCALAR(MOD, "mod", "vv", SAME, EXACT, QUOTIENT)
SCALAR(MIN, "min", "vv", SAME, EXACT, EXTREME)
SCALAR(MAX, "max", "vv", SAME, EXACT, EXTREME)
SCALAR(NEG, "neg", "v", SAME, EXACT, SIGN)
SCALAR(ABS, "abs", "v", SAME, EXACT, SIGN)
SCALAR(FMA, "fma", "vvv", FLT, EXACT, FUSED)  // rounds once
SCALAR(AND, "and", "vv", INT, EXACT, LOGIC)
SCALAR(OR, "or", "vv", INT, EXACT, LOGIC)
SCALAR(XOR, "xor", "vv", INT, EXACT, LOGIC)
SCALAR(NOT, "not", "v", INT, EXACT, LOGIC)  // pred: !a; integers: ~a
SCALAR(SHL, "shl", "vv", SHF, EXACT, SHIFT)
// arithmetic shift for signed types
SCALAR(SHR, "shr", "vv", SHF, EXACT, SHIFT)
SCALAR(LT, "lt", "vv", CMP, EXACT, COMPARE)
SCALAR(LE, "le", "vv", CMP, EXACT, COMPARE)
SCALAR(EQ, "eq", "vv", CMP, EXACT, COMPARE)
SCALAR(NE, "ne", "vv", CMP, EXACT, COMPARE)
OP(SEL, "sel", "pred:p vv", NONE, NONE, SEL, PURE, LANE, EXACT, NONE, SELECT,
   NEVER)
// converts any type to any type: base/dtype.h
OP(CVT, "cvt", "v", NONE, NONE, ANY, PURE, LANE, EXACT, NONE, CONVERT, NEVER)
// reinterprets bits as a type of the same width
OP(BITCAST, "bitcast", "v", NONE, NONE, ANY, PURE, LANE, EXACT, NONE, NONE,
   NEVER)
OP(MATH, "math", "vv?", MATH, NONE, FLT, PURE, LANE, ROW, NONE, FUNCTION, NEVER)
// Intrinsics: rows of intrin.h, which specify their types.
OP(INTRIN, "intrin", "=", INTRIN, NONE, ANY, PURE, LANE, ROW, ROW, INTRIN,
   NEVER)
OP(ASK, "ask", "=", INTRIN, NONE, ANY, ASK, ROW, ROW, ROW, ASK, NEVER)
// Accesses to elements of memory objects. LD returns the element. flags:
// HINT_*.
OP(LD, "ld", "src:r", NONE, HINTS, ANY, MEMORY, LANE, EXACT, NONE, ACCESS,
   ORDERED)
DO(ST, "st", "dst:w value:v", NONE, HINTS, NONE, MEMORY, LANE, EXACT, NONE,
   ACCESS, ORDERED)  // flags: HINT_*
DO(FILL, "fill", "dst:w.r value:v", ELEMENTS, NONE, SET, REGS, LANE, EXACT,
   NONE, NONE, NEVER)
// PICK reads and PUT writes one of several registers, by an index known only at
// run time. An index out of range is an error. Values of PUT: the new value,
// the index.
OP(PICK, "pick", "src:r.r index:v", ELEMENTS, NONE, ANY, REGS, LANE, EXACT,
   NONE, CHOICE, NEVER)
DO(PUT, "put", "dst:a.r value:v index:v", ELEMENTS, NONE, NONE, REGS, LANE,
   EXACT, NONE, CHOICE, NEVER)
// Vector copies of 8 to 256 bits, contiguous on both sides.
DO(COPY, "copy", "dst:w src:r pred:p?", BITS, LEVEL2, NONE, MEMORY, LANE,
   EXACT, NONE, ACCESS, NEVER)
// cp.async. pred: whether to read; part: number of bytes to read. Without these
// operands, the copy reads all bytes. It fills bytes that it does not read with
// zeros.
DO(CPASYNC, "cp.async", "dst:w.s src:r.g pred:p? part:v?", BITS, CPASYNC, NONE,
   ASYNC(CPASYNC), LANE, EXACT, CPASYNC, CPASYNC, NEVER)
DO(CPCOMMIT, "cp.async.commit", "", NONE, NONE, NONE, ORDER, LANE, EXACT, NONE,
   CPCOMMIT, NEVER)
DO(CPWAIT, "cp.async.wait", "", GROUPS, NONE, NONE, ORDER, LANE, EXACT, NONE,
   CPWAIT, NEVER)
// MMA and copy atoms: operands D A B C ..., or destination and source.
DO(MMA, "mma", "=", MMA, NONE, NONE, REGS, ROW, ROW, ROW, MMA, NEVER)
DO(MATRIX, "matrix", "=", COPY, NONE, NONE, MEET, FULL, EXACT, ROW, MATRIX,
   NEVER)  // ldmatrix, stmatrix
// MMA of a warpgroup: D, A (registers or a DESC), B (a DESC), a predicate that
// selects whether D is added, the metadata of a sparse A.
DO(WGMMA, "wgmma", "=", MMA, NONE, NONE, ASYNC(WGMMA), FULL, ROW, ROW, MMA,
   NEVER)
DO(WGFENCE, "wgmma.fence", "", NONE, NONE, NONE, ORDER, FULL, EXACT, WGMMA,
   CONTROL, NEVER)
DO(WGCOMMIT, "wgmma.commit_group", "", NONE, NONE, NONE, ORDER, FULL, EXACT,
   WGMMA, WGCOMMIT, NEVER)
DO(WGWAIT, "wgmma.wait_group", "", GROUPS, NONE, NONE, ORDER, FULL, EXACT,
   WGMMA, WGWAIT, NEVER)
// An object of tensor memory at an address. The CTA's tensor memory (TMEM) has
// 128 lanes of 512 columns of 32 bits. An address is a u32: lane << 16 |
// column. Element k of type T is at address + k * (bits of T) / 32. The tcgen05
// operations execute asynchronously, except allocation, fences and waits.
OP(TMEM, "tmem", "address:v", MEM, NONE, ANY, OBJECT, LANE, EXACT, TCGEN05,
   NONE, NEVER)
// Allocates columns for the CTA, and stores the address of the first column.
DO(TCALLOC, "tcgen05.alloc", "dst:w.s columns:v", NONE, TCGEN05, NONE, MEET,
   FULL, EXACT, TCGEN05, SHARED, ALWAYS)
// Values: the address of an allocation, and its number of columns.
DO(TCDEALLOC, "tcgen05.dealloc", "address:v columns:v", NONE, TCGEN05, NONE,
   ORDER, FULL, EXACT, TCGEN05, CONTROL, ALWAYS)
// Declares that the CTA allocates no more tensor memory.
DO(TCRELINQUISH, "tcgen05.relinquish_alloc_permit", "", NONE, TCGEN05, NONE,
   ORDER, FULL, EXACT, TCGEN05, CONTROL, NEVER)
// MMA with accumulators in tensor memory: D, A (tensor memory or a DESC), B (a
// DESC), a predicate that selects whether D is added, scale factors of A and B,
// metadata of a sparse A.
DO(TCMMA, "tcgen05.mma", "=", MMA, TCGEN05, NONE, ASYNC(TCMMA), LANE, ROW,
   ROW, MMA, NEVER)
// Copies the rows that a DESC describes from shared to tensor memory.
DO(TCCP, "tcgen05.cp", "dst:w.t src:v", COPY, TCGEN05, NONE, ASYNC(TCCP),
   LANE, EXACT, TCGEN05, CONTROL, NEVER)
// Shifts 8 columns of 32 lanes, from `address` on, down by one lane.
DO(TCSHIFT, "tcgen05.shift", "address:v", NONE, TCGEN05, NONE, ASYNC(TCMMA),
   LANE, EXACT, TCGEN05, CONTROL, NEVER)
// Arrives when the thread's earlier MMAs and copies have completed. mask: the
// CTAs of the cluster at whose mbarriers it arrives (default: this CTA).
DO(TCCOMMIT, "tcgen05.commit", "bar:b mask:v?", NONE, TCGEN05, NONE, MEET,
   LANE, EXACT, TCGEN05, SHARED, ALWAYS)
// Copies by a warp between registers and the warp's 32 lanes of tensor memory.
DO(TCLD, "tcgen05.ld", "=", COPY, NONE, NONE, ASYNC(TCLD), FULL, EXACT,
   TCGEN05, CONTROL, NEVER)
DO(TCST, "tcgen05.st", "=", COPY, NONE, NONE, ASYNC(TCST), FULL, EXACT,
   TCGEN05, CONTROL, NEVER)
// TCWAITLD waits for the warp's earlier TCLDs, TCWAITST for its earlier TCSTs.
DO(TCWAITLD, "tcgen05.wait::ld", "", NONE, TCGEN05, NONE, ORDER, ROW, EXACT,
   TCGEN05, CONTROL, NEVER)
DO(TCWAITST, "tcgen05.wait::st", "", NONE, NONE, NONE, ORDER, FULL, EXACT,
   TCGEN05, CONTROL, NEVER)
// Orders tcgen05 operations relative to the synchronization of threads.
DO(TCFENCE, "tcgen05.fence", "", NONE, TCGEN05, NONE, ORDER, LANE, EXACT,
   TCGEN05, CONTROL, NEVER)
// Barriers of a CTA. Operands: the number of threads, and the barrier's number
// if it is traced.
DO(BAR, "bar.sync", "threads:v? number:v?", BARRIER, BARRIER, NONE, ORDER, WARP,
   EXACT, NONE, BARRIER, NEVER)
DO(BARARRIVE, "bar.arrive", "threads:v? number:v?", BARRIER, BARRIER, NONE,
   ORDER, WARP, EXACT, NONE, BARRIER, NEVER)
DO(SYNCWARP, "syncwarp", "lanes:l", NONE, NONE, NONE, ORDER, MASK, EXACT, NONE,
   SYNCWARP, NEVER)
DO(FENCE, "fence", "", FENCE, NONE, NONE, ORDER, LANE, EXACT, ROW, FENCE, NEVER)
// Mbarriers count arrivals and bytes in phases. A parity names a phase. flags:
// HINT_*, MBF_*. MBARARRIVE and MBARTOKEN may make several arrivals at once.
// MBARTOKEN returns the phase of these arrivals. The operand `rank` is the rank
// of the CTA that has the mbarrier (default: this CTA). `arrivals` of MBARINIT
// is the number of arrivals that complete a phase.
DO(MBARINIT, "mbarrier.init", "bar:b arrivals:v", NONE, MBAR, NONE, MEET, LANE,
   EXACT, MBARRIER, SHARED, NEVER)
// Values: the number of arrivals, the rank of a CTA.
DO(MBARARRIVE, "mbarrier.arrive", "bar:b each:v rank:v?", NONE, MBAR, NONE,
   MEET, LANE, EXACT, MBARRIER, SHARED, ALWAYS)
// returns a u64
OP(MBARTOKEN, "mbarrier.arrive.token", "bar:b each:v", NONE, MBAR, ANY, MEET,
   LANE, EXACT, MBARRIER, SHARED, ALWAYS)
// Values: the number of bytes, the rank of a CTA.
DO(MBARTX, "mbarrier.expect_tx", "bar:b bytes:v rank:v?", NONE, MBAR, NONE,
   MEET, LANE, EXACT, MBARTX, SHARED, ALWAYS)
// First value: the phase, as a parity or an MBARTOKEN. Second value: a time
// limit in nanoseconds. MBARTRY returns whether the phase completed.
DO(MBARWAIT, "mbarrier.wait", "bar:b parity:v", NONE, MBAR, NONE, MEET, LANE,
   EXACT, MBARRIER, SHARED, ALWAYS)
OP(MBARTRY, "mbarrier.try_wait", "bar:b parity:v time:v?", NONE, MBAR, ANY,
   MEET, LANE, EXACT, MBARRIER, SHARED, UNLINKED)
DO(MBARINVAL, "mbarrier.inval", "bar:b", NONE, MBAR, NONE, MEET, LANE, EXACT,
   MBARRIER, SHARED, NEVER)
// Arrives when the thread's earlier cp.async copies have completed.
DO(MBARCPASYNC, "cp.async.mbarrier.arrive", "bar:b", NONE, MBAR, NONE, MEET,
   LANE, EXACT, MBARRIER, CPARRIVE, ALWAYS)
// Stores 1, 2 or 4 values to the shared memory of the cluster's CTA number
// `rank`, at the address that `dst` has in this CTA. An mbarrier of the other
// CTA counts the bytes.
DO(STASYNC, "st.async", "dst:w.s bar:b rank:v value:v value:v?3", BITS, NONE,
   NONE, ASYNC(STASYNC), LANE, EXACT, CLUSTER, SEND, NEVER)
// Cluster barriers; flags: CLF_*.
DO(CLUSTERARRIVE, "cluster.arrive", "", NONE, CLUSTER, NONE, ORDER, ROW, EXACT,
   CLUSTER, CLUSTER, NEVER)
DO(CLUSTERWAIT, "cluster.wait", "", NONE, CLUSTER, NONE, ORDER, ROW, EXACT,
   CLUSTER, CONTROL, NEVER)
// Takes registers from the block's pool for the warpgroup, or returns registers
// to the pool. flags: RGF_*.
DO(SETMAXNREG, "setmaxnreg", "", REGISTERS, REGISTERS, NONE, ORDER, FULL, EXACT,
   SETMAXNREG, CONTROL, NEVER)
// Overlapping launches (programmatic dependent launch): GRIDWAIT waits for the
// preceding launches, GRIDLAUNCH lets dependent launches start.
DO(GRIDWAIT, "griddepcontrol.wait", "", NONE, NONE, NONE, ORDER, LANE, EXACT,
   DEPENDENTS, CONTROL, NEVER)
DO(GRIDLAUNCH, "griddepcontrol.launch_dependents", "", NONE, NONE, NONE, ORDER,
   LANE, EXACT, DEPENDENTS, CONTROL, NEVER)
// Bulk copies, which the async proxy executes. flags: BKF_*. TMA copies boxes
// of a tensor map. The operands `at` are coordinates, mode 0 first, followed by
// the offsets of im2col. Loads have the mbarrier that counts their bytes, a
// mask of destination CTAs of the cluster (default: this CTA), and a cache
// policy. Stores have a cache policy.
DO(TMALOAD, "tma.load", "dst:w.s map:m bar:b mask:v? policy:v? at:v at:v?7",
   BITS, BULK, NONE, ASYNC(BULKLOAD), LANE, EXACT, TMA, BULKLOAD, NEVER)
DO(TMASTORE, "tma.store", "map:M src:r.s policy:v? at:v at:v?7", BITS, BULK,
   NONE, ASYNC(BULKSTORE), LANE, ROW, TMA, BULKSTORE, NEVER)
// Prefetches a box into L2. Without coordinates, prefetches the tensor map.
DO(TMAPREFETCH, "tma.prefetch", "map:m policy:v? at:v?8", NONE, BULK, NONE,
   ORDER, LANE, EXACT, TMA, CONTROL, NEVER)
DO(BULKLOAD, "bulk.load", "dst:w.s src:r.g bar:b mask:v? policy:v?", BITS, BULK,
   NONE, ASYNC(BULKLOAD), LANE, EXACT, TMA, BULKLOAD, NEVER)
DO(BULKSTORE, "bulk.store", "dst:w.g src:r.s policy:v?", BITS, BULK, NONE,
   ASYNC(BULKSTORE), LANE, ROW, TMA, BULKSTORE, NEVER)
// Copies from this CTA's shared memory to that of the cluster's CTA number
// `rank`. An mbarrier of the other CTA counts the bytes.
DO(BULKSEND, "bulk.send", "dst:w.s src:r.s bar:b rank:v", BITS, BULK, NONE,
   ASYNC(BULKLOAD), LANE, EXACT, TMA, BULKLOAD, NEVER)
// Requests the cancellation of a cluster that has not started. The requesting
// cluster may then do the canceled cluster's work. The response of 16 bytes
// arrives at the same address in each CTA of the requesting cluster, and each
// CTA's mbarrier counts the bytes. The intrinsics clc.* read a response.
DO(CLCTRY, "clc.try_cancel", "dst:w.s bar:b", BITS, BULK, NONE,
   ASYNC(BULKLOAD), LANE, EXACT, CLC, BULKLOAD, NEVER)
// BULKCOMMIT makes a group of the thread's earlier stores. BULKWAIT waits until
// at most imm groups are pending.
DO(BULKCOMMIT, "bulk.commit", "", NONE, NONE, NONE, ORDER, LANE, EXACT, TMA,
   BULKCOMMIT, NEVER)
DO(BULKWAIT, "bulk.wait", "", GROUPS, READ, NONE, ORDER, LANE, EXACT, TMA,
   BULKWAIT, NEVER)
// Tensor maps in memory. COPY copies an argument's map. ADDRESS sets the
// tensor's address. Other threads may then read and write the tensor. SET sets
// one field of the map: Ins.flags is the TensorMapField, Ins.imm the mode. The
// async proxy sees a changed map after a release fence and ACQUIRE. It also
// sees one after PUBLISH, by which a warp copies the map from shared memory.
DO(MAPCOPY, "tmap.copy", "tmap:D map:m", NONE, NONE, NONE, MEMORY, LANE, EXACT,
   TMA, CONTROL, NEVER)
DO(MAPADDRESS, "tmap.address", "tmap:D tensor:a.g", NONE, NONE, NONE, MEMORY,
   LANE, EXACT, TENSORMAP, CONTROL, NEVER)
DO(MAPSET, "tmap.set", "tmap:D value:v", MODE, FIELD, NONE, MEMORY, LANE, EXACT,
   TENSORMAP, CONTROL, NEVER)
DO(MAPACQUIRE, "tmap.acquire", "tmap:d", NONE, NONE, NONE, MEET, LANE, EXACT,
   TMA, CONTROL, NEVER)
DO(MAPPUBLISH, "tmap.publish", "tmap:D from:d", NONE, NONE, NONE, MEET, FULL,
   EXACT, TMA, CONTROL, NEVER)
// Values: the operand and, for CAS, the compared value. Returns the old value.
OP(ATOMIC, "atomic", "dst:a value:v compared:v?", ATOMIC, HINTS, ANY, MEMORY,
   LANE, ROW, NONE, ACCESS, ALWAYS)
DO(PRINTF, "printf", "value:v*", TEXT, NONE, NONE, ACT, LANE, EXACT, NONE,
   CONTROL, NEVER)
DO(ASM, "asm", "var:X* value:v*", TEXT, OUTPUTS, NONE, ACT, TEXT, TEXT, NONE,
   NONE, NEVER)  // inline PTX
DO(TRAP, "trap", "pred:p", TEXT, NONE, NONE, ACT, LANE, EXACT, NONE, NONE,
   NEVER)  // traps if p is false
// a variable is a mutable scalar
// value: the initial value
OP(VAR, "var", "value:v", NONE, NONE, SAME, VAR, LANE, EXACT, NONE, NONE, NEVER)
OP(VGET, "get", "var:x", NONE, NONE, SAME, VAR, LANE, EXACT, NONE, NONE, NEVER)
DO(VSET, "set", "var:X value:v", NONE, NONE, SET, VAR, LANE, EXACT, NONE, NONE,
   NEVER)
// Values: first, limit, step. The result is the counter, an i32 or i64.
OP(FOR, "for", "first:v limit:v step:v", UNROLL, NONE, SAME, OPEN, LANE, EXACT,
   NONE, LOOP, NEVER)
// repeats until a BREAKIF leaves it
DO(LOOP, "loop", "", NONE, NONE, NONE, OPEN, LANE, EXACT, NONE, LOOP, NEVER)
// executes once; a BREAKIF can leave it
DO(ONCE, "once", "", NONE, NONE, NONE, OPEN, LANE, EXACT, NONE, NONE, NEVER)
// if p is true, leaves Ins.imm regions
DO(BREAKIF, "break.if", "pred:p", LEVELS, NONE, NONE, LEAVE, LANE, EXACT, NONE,
   CONTROL, NEVER)
// ends the thread if p is true
DO(EXITIF, "exit.if", "pred:p", NONE, NONE, NONE, LEAVE, LANE, EXACT, NONE,
   CONTROL, NEVER)
DO(IF, "if", "pred:p", NONE, NONE, NONE, OPEN, LANE, EXACT, NONE, CONTROL,
   NEVER)
DO(ELSE, "else", "", NONE, NONE, NONE, TURN, LANE, EXACT, NONE, NONE, NEVER)
DO(END, "end", "", NONE, NONE, NONE, CLOSE, LANE, EXACT, NONE, END, NEVER)
#undef SCALAR
#undef DO
#undef LEAF
#undef OP
// SPDX-License-Identifier: MIT
