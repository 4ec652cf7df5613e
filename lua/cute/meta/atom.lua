---@meta cute
-- Documents atoms and tiled operations for editors. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Atoms
---------------------------------------------------------------------------

---One instruction with its layouts and PTX. An atom is made by its name in CuTe
---C++.
---@class cute.Atom
---@field name string the atom's name in CuTe C++
---@field ptx string? the PTX instruction; nil if the atom is plain C
---@field thr_id cute.Layout the threads of a warp that take part
local Atom = {}

---The atom of one MMA instruction, which computes D = A * B + C.
---@class cute.MmaAtom: cute.Atom
---@field shape_mnk integer[] M, N and K of one instruction
---@field tv_layout_A cute.Layout (thread,value) -> coordinate in (M,K)
---@field tv_layout_B cute.Layout (thread,value) -> coordinate in (N,K)
---@field tv_layout_C cute.Layout (thread,value) -> coordinate in (M,N)
---@field value_bits integer[] width of a value in bits, for D, A, B, C
---@field sf_vec_size? integer number of elements of K that share a scale
---factor; nil without scale factors
---@field instr_desc? integer for tcgen05.mma, the instruction descriptor, which
---kernels may use; nil for other instructions

---The atom of one copy instruction, which moves values of one or more threads.
---@class cute.CopyAtom: cute.Atom
---@field value_type cute.DType type of the values
---@field layout_src_tv cute.Layout (thread,value) -> offset in the source
---@field layout_dst_tv cute.Layout (thread,value) -> offset in the destination
---@field layout_ref_tv cute.Layout the layout by which copies are tiled: that
---of the source or that of the destination
---@field layout_tmem? cute.Layout for tcgen05.cp, the layout from the copied
---bits to bits of tensor memory, whose lanes are 2^21 bits apart; nil for other
---copies

---Makes registers for a thread's part of A, for use by mma_atom_call.
---@param part cute.Tensor|cute.Layout from partition_A: (V,M,K)
---@return cute.Tensor
function Atom:make_fragment_A(part) end

---Makes registers for a thread's part of B.
---@param part cute.Tensor|cute.Layout from partition_B: (V,N,K)
---@return cute.Tensor
function Atom:make_fragment_B(part) end

---Makes registers for a thread's part of C: the accumulators.
---@param part cute.Tensor|cute.Layout from partition_C: (V,M,N)
---@return cute.Tensor
function Atom:make_fragment_C(part) end

---Makes registers for a thread's part of E, the metadata of a sparse A.
---@param part cute.Tensor|cute.Layout from partition_E
---@return cute.Tensor
function Atom:make_fragment_E(part) end

---Returns an MMA atom by its C++ name. Raises [unknown-name], with the nearest
---names.
---
---     cute.make_mma_atom("SM80_16x8x16_F32BF16BF16F32_TN").shape_mnk
---     --> (16,8,16)
---@param name string
---@return cute.MmaAtom
function cute.make_mma_atom(name) end

---Returns a copy atom for values of a type. A name without its <type>
---("UniversalCopy", "SM80_CP_ASYNC_CACHEALWAYS") needs the argument bits, the
---width of one copy. "AutoVectorizingCopy" and
---"AutoVectorizingCopyWithAssumedAlignment<bits>" assume that traced pointers
---and strides are aligned to the copy's width; "DefaultCopy" uses only the
---alignment that is known. level_prefetch_size ("size_64b", "size_128b",
---"size_256b") sets how much memory a load of global memory or a cp.async
---prefetches into L2; level2_eviction_priority ("evict_first", "evict_last",
---"evict_normal") sets whether L2 evicts the lines of a load before or after
---others. A cp.async cannot have this option.
---
---     cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16).value_type  --> bf16
---@param name string|table a C++ name, or an operation of cute.nvgpu and
---cute.nvgpu.cpasync
---@param dtype? cute.DType type of the values; an operation may already have it
---@param bits? integer|table {num_bits_per_copy: integer?, level_prefetch_size:
---string?, level2_eviction_priority: string?} width of one copy
---@return cute.CopyAtom
function cute.make_copy_atom(name, dtype, bits) end

--- Returns the name of atom i of the table of MMA atoms or of copy atoms.
--- Counts from 0. Returns nil if i is past the last atom.
---
---     cute.atom_name("copy", 0) ~= nil, cute.atom_name("copy", 1 << 30)
---     --> true, nil
---@param table "mma"|"copy"
---@param i integer
---@return string?
function cute.atom_name(table, i) end

---------------------------------------------------------------------------
-- Tiled operations
---------------------------------------------------------------------------

---An MMA atom that is repeated over threads and values to cover a tile.
---`get_slice` returns one thread's view, which has the same methods and
---partitions tensors.
---@class cute.TiledMma: cute.MmaAtom
---@field thr_layout_vmnk cute.Layout (V,M,N,K) of atoms -> thread
---@field tile_size_mnk integer[] the tile that all threads cover once
---@field permutation_mnk table permutations of the tile's modes M, N and K
---@field tv_layout_A_tiled cute.Layout (thread,value) -> coordinate in (M,K)
---@field tv_layout_B_tiled cute.Layout (thread,value) -> coordinate in (N,K)
---@field tv_layout_C_tiled cute.Layout (thread,value) -> coordinate in (M,N)
local TiledMma = {}

---A copy atom that is repeated over threads and values to cover a tile.
---`get_slice` returns one thread's view, which has the same methods and
---partitions tensors.
---@class cute.TiledCopy: cute.CopyAtom
---@field tiler_mn table the tile that all threads cover once
---@field layout_tv_tiled cute.Layout (thread,value) -> coordinate in the tile
---@field layout_src_tv_tiled cute.Layout (thread,value) -> source coordinate
---@field layout_dst_tv_tiled cute.Layout (thread,value) -> destination
---coordinate
local TiledCopy = {}

---Repeats an MMA atom over threads by a layout of atoms, and over values by a
---permutation.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     cute.size(mma), mma.tile_size_mnk  --> 128, (32,16,16)
---@param atom cute.MmaAtom|string an atom, its name, or an operation of
---cute.nvgpu.warpgroup
---@param atom_layout? cute.Layout|cute.Tuple arrangement of atoms in (M,N,K);
---one atom when absent
---@param permutation? table extents, `_` or layouts for M, N, K of the tile
---@return cute.TiledMma
function cute.make_tiled_mma(atom, atom_layout, permutation) end

---Repeats a copy atom over threads and values. One layout arranges the threads,
---and another layout the values of each thread. Alternatively, takes a
---(thread,value) layout and a tile.
---
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---     c = cute.make_tiled_copy(atom, cute.layout "(32,8):(8,1)",
---       cute.layout "(1,4):(4,1)")
---     cute.size(c)       --> 256
---     c.layout_tv_tiled  --> ((8,32),4):((128,1),32)
---@param atom cute.CopyAtom
---@param thr_layout cute.Layout|cute.Tuple arrangement of threads in the tile;
---or (thread,value) -> coordinate
---@param val_layout cute.Layout|cute.Tuple arrangement of a thread's values; or
---the tile, a table
---@return cute.TiledCopy
function cute.make_tiled_copy(atom, thr_layout, val_layout) end

---Repeats a copy atom over threads and values, each given as a layout in the
---tile. The arguments are those of make_tiled_copy in CuTe C++.
---
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---     tv = cute.make_tiled_copy_tv(atom, cute.layout "(32,8):(8,1)",
---       cute.layout "(1,4):(4,1)")
---     tv.layout_tv_tiled  --> ((8,32),4):((128,1),32)
---@param atom cute.CopyAtom
---@param thr_layout cute.Layout|cute.Tuple arrangement of threads in the tile
---@param val_layout cute.Layout|cute.Tuple arrangement of a thread's values
---@return cute.TiledCopy
function cute.make_tiled_copy_tv(atom, thr_layout, val_layout) end

---Repeats a copy atom over threads and values that are given by their offsets
---in the data.
---
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---     cute.make_cotiled_copy(atom, cute.layout "(32,4):(4,1)",
---       cute.layout "(8,16):(16,1)").layout_tv_tiled
---     --> ((4,8),4):((8,1),32)
---@param atom cute.CopyAtom
---@param tv cute.Layout (thread,value) -> offset
---@param data cute.Layout the layout of the data
---@return cute.TiledCopy
function cute.make_cotiled_copy(atom, tv, data) end

---Makes a tiled copy whose threads have the values of A that an MMA needs. Use
---it to load fragments.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     atom = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
---     c = cute.make_tiled_copy_A(atom, mma)
---     cute.size(c)
---     c.tiler_mn[1], c.tiler_mn[2]  --> 32, 16
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_A(atom, mma) end

---Makes a tiled copy whose threads have the values of B that an MMA needs.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_B(atom, mma) end

---Makes a tiled copy whose threads have the values of C of an MMA. Use it to
---store accumulators.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 64)
---     cute.make_tiled_copy_C(atom, mma).layout_tv_tiled
---     --> ((4,8),((2,2),(1,1))):((32,1),((16,8),(0,0)))
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_C(atom, mma) end

---Makes the smallest tiled copy of an atom that stores the MMA's accumulators.
---Epilogues that store C in parts use it.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_C_atom(atom, mma) end

---Makes a tiled copy with another atom. Its threads and values are those of the
---source of the tiled copy `copy`.
---@param atom cute.CopyAtom
---@param copy cute.TiledCopy
---@return cute.TiledCopy
function cute.make_tiled_copy_S(atom, copy) end

---Makes a tiled copy with another atom. Its threads and values are those of the
---destination of the tiled copy `copy`.
---@param atom cute.CopyAtom
---@param copy cute.TiledCopy
---@return cute.TiledCopy
function cute.make_tiled_copy_D(atom, copy) end

---Returns the number of threads.
---@return integer
function TiledMma:size() end

---Returns one thread's view, which partitions tensors and has all fields and
---methods of the tiled operation.
---@param thread cute.Int the thread's index, or its x when y and z follow
---@param ... cute.Int y and z of a three-dimensional index
---@return cute.TiledMma
function TiledMma:get_slice(thread, ...) end

---Returns the extent of the tile's mode 0, 1 or 2 (M, N, K).
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     mma:get_tile_size(0), mma:get_tile_size(1), mma:get_tile_size(2)
---     --> 32, 16, 16
---@param mode integer
---@return integer
function TiledMma:get_tile_size(mode) end

---Sets how the next products use their accumulators: `set("ACCUMULATE", false)`
---overwrites them. Only kernels can call it.
---@param field string "ACCUMULATE", cute.nvgpu.warpgroup.Field.ACCUMULATE
---@param value boolean|cute.Value
function TiledMma:set(field, value) end

---Returns the value of a field that `set` sets. For "ACCUMULATE" it is true if
---products add to their accumulators.
---@param field string "ACCUMULATE"
---@return boolean|cute.Value
function TiledMma:get(field) end

---Returns this thread's part of a tile of A: (V,M,K,..) of an (M,K) tensor.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     t = cute.zeros({128, 32}, cute.bf16)
---     mma:get_slice(0):partition_A(t)
---     --> ptr[bf16,host] o ((2,2,2),4,2):((1,256,8),1024,16)
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledMma:partition_A(t) end

---Returns this thread's part of a tile of B: (V,N,K,..) of an (N,K) tensor.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledMma:partition_B(t) end

---Returns this thread's part of a tile of C: (V,M,N,..) of an (M,N) tensor.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     t = cute.zeros({128, 64}, cute.f32)
---     mma:get_slice(1):partition_C(t)
---     --> ptr[f32,host]+2 o ((2,2),4,4):((1,512),2048,16)
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledMma:partition_C(t) end

---Returns this thread's part of the metadata of a sparse A. partition_A then
---partitions the stored values; cute.nvgpu.sparse.compress makes the stored
---values and the metadata.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledMma:partition_E(t) end

---Returns the shape (V,M,K,..) of a thread's part of an (M,K,..) shape.
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_A(shape) end

---Returns the shape (V,N,K,..) of a thread's part of an (N,K,..) shape.
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_B(shape) end

---Returns the shape (V,M,N,..) of a thread's part of an (M,N,..) shape.
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
---       cute.layout "(2,2,1):(1,2,4)")
---     mma:partition_shape_C({128, 64})  --> ((2,2),4,4)
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_C(shape) end

---Returns the shape of a thread's part of a sparse A's metadata.
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_E(shape) end

---Makes registers for this thread's part of a tile of A: partition_A, then
---make_fragment_A.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:partition_fragment_A(t) end

---Makes registers for this thread's part of a tile of B.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:partition_fragment_B(t) end

---Makes registers for this thread's part of a tile of C, or of its shape.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:partition_fragment_C(t) end

---Makes registers for this thread's part of a sparse A's metadata.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:partition_fragment_E(t) end

---Makes registers for a partition of A. If wgmma reads A from shared memory,
---makes descriptors of that memory instead.
---@param part cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:make_fragment_A(part) end

---Makes registers for a partition of B. If wgmma reads B from shared memory,
---makes descriptors of that memory instead.
---@param part cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:make_fragment_B(part) end

---Makes registers for a partition of C: the accumulators.
---@param part cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:make_fragment_C(part) end

---Makes registers for a partition of a sparse A's metadata.
---@param part cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledMma:make_fragment_E(part) end

---Arranges a layout of A by threads and fragments:
---((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,..))).
---@param layout cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_A(layout) end

---Arranges a layout of B by threads and fragments:
---((ThrV,(ThrN,ThrK)),(FrgV,(RestN,RestK,..))).
---@param layout cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_B(layout) end

---Arranges a layout of C by threads and fragments:
---((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN,..))).
---
---     mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
---     mma:thrfrg_C(cute.layout "(32,16):(16,1)")
---     --> (((4,8),(1,1)),((2,2),(2,2))):(((2,16),(0,0)),((1,128),(256,8)))
---@param layout cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_C(layout) end

---Arranges a layout of a sparse A's metadata by threads and fragments.
---@param layout cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_E(layout) end

---Returns the number of threads.
---@return integer
function TiledCopy:size() end

---Returns one thread's view, which partitions tensors and has all fields and
---methods of the tiled copy.
---@param thread cute.Int the thread's index, or its x when y and z follow
---@param ... cute.Int y and z of a three-dimensional index
---@return cute.TiledCopy
function TiledCopy:get_slice(thread, ...) end

---Returns this thread's part of a source: (CPY,CPY_M,CPY_N,..).
---
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---     c = cute.make_tiled_copy(atom, cute.layout "(32,8):(8,1)",
---       cute.layout "(1,4):(4,1)")
---     c:get_slice(1):partition_S(cute.zeros({128, 64}, cute.f32))
---     --> ptr[f32,host]+4 o ((4,1),4,2):((1,0),2048,32)
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledCopy:partition_S(t) end

---Returns this thread's part of a destination: (CPY,CPY_M,CPY_N,..).
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor|cute.Layout
function TiledCopy:partition_D(t) end

---Reorders a fragment, such as an MMA's, by this copy's values:
---((FrgV,FrgX),M,N). If the first mode holds more values than the copy moves at
---once, FrgX counts the copies.
---
---     mma = cute.make_tiled_mma(cute.nvgpu.warpgroup.MmaF16BF16Op("bf16",
---       "f32", {64, 128, 16}, "SMEM", "K", "K"))
---     atom = cute.make_copy_atom("SM90_U32x4_STSM_N", cute.bf16)
---     c = cute.make_tiled_copy_C_atom(atom, mma)
---     acc = cute.make_layout({{2, 2, 16}, 2, 1})
---     cute.make_tiled_copy_S(atom, c):retile(acc)
---     --> ((8,8),2,1):((1,8),64,0), 0
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledCopy:retile(t) end

---Reorders a fragment by the values of this copy's source.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledCopy:retile_S(t) end

---Reorders a fragment by the values of this copy's destination.
---@param t cute.Tensor|cute.Layout
---@return cute.Tensor
function TiledCopy:retile_D(t) end

---Arranges a layout of the source by threads and fragments:
---(thr,(FrgV,FrgX),(RestM,RestN,..)).
---
---     atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---     c = cute.make_tiled_copy(atom, cute.layout "(32,8):(8,1)",
---       cute.layout "(1,4):(4,1)")
---     c:tidfrg_S(cute.layout "(128,64):(64,1)")
---     --> ((8,32),(4,1),(4,2)):((4,64),(1,0),(2048,32))
---@param layout cute.Layout
---@return cute.Layout
function TiledCopy:tidfrg_S(layout) end

---Arranges a layout of the destination by threads and fragments:
---(thr,(FrgV,FrgX),(RestM,RestN,..)).
---@param layout cute.Layout
---@return cute.Layout
function TiledCopy:tidfrg_D(layout) end

---------------------------------------------------------------------------
-- Copies and products
---------------------------------------------------------------------------

---Copies a tensor with an atom, which is repeated over all modes after the
---first. Raises [bad-argument] for a memory space that the atom cannot read or
---write, and [misaligned] where the required alignment is not known.
---
---     k = cute.kernel(function(x, y)
---       local atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
---       local c = cute.make_tiled_copy(atom, cute.layout "32:1",
---         cute.layout "4:1")
---       local thr = c:get_slice((cute.arch.thread_idx()))
---       cute.copy(c, thr:partition_S(x), thr:partition_D(y))
---     end)
---     x, y = cute.ones({256}, cute.f32), cute.zeros({256}, cute.f32)
---     k(x, y):launch {grid = 1, block = 32, device = "sim"}
---     y(255)  --> 1.0
---@param atom cute.CopyAtom|cute.TiledCopy the atom, a tiled copy, or an atom
---of cute.nvgpu
---@param src cute.Tensor a thread's part: (V,Rest..)
---@param dst cute.Tensor of the same shape
---@param pred? cute.Tensor|{pred: cute.Tensor} booleans for the rest modes,
---optionally with a first mode for the atoms in V; for TMA, a table with
---tma_bar_ptr and mcast_mask
---
---For TMA copies of rows (gather4, scatter4), the tensor in global memory is
---given as a list of two tensors: the coordinates and the row numbers.
function cute.copy(atom, src, dst, pred) end

cute.copy_atom_call = cute.copy

---Copies where a predicate is true. Uses the given atom or, without one, the
---widest accesses that layouts and alignment allow.
---
---     k = cute.kernel(function(x, y)
---       local tid = cute.arch.thread_idx()
---       local p = cute.make_rmem_tensor({1}, cute.boolean)
---       p[0] = cute.lt(tid, 5)
---       local one = cute.layout "1:1"
---       cute.copy_if(p, cute.make_tensor(x.iterator + tid, one),
---         cute.make_tensor(y.iterator + tid, one))
---     end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({8}, cute.f32)
---     k(x, y):launch {grid = 1, block = 8, device = "sim"}
---     y(4), y(5)  --> 1.0, 0.0
---@param atom? cute.CopyAtom|cute.TiledCopy
---@param pred cute.Tensor booleans for the rest modes
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.copy_if(atom, pred, src, dst) end

---Copies with the widest accesses that layouts and known alignment allow, up to
---128 bits.
---
---     k = cute.kernel(function(x, y)
---       local r = cute.make_fragment_like(x)
---       cute.autovec_copy(x, r)
---       cute.autovec_copy(r, y)
---     end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({8}, cute.f32)
---     k(x, y):launch {grid = 1, block = 1, device = "sim"}
---     y(7)  --> 1.0
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.autovec_copy(src, dst) end

---Copies element by element.
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.basic_copy(src, dst) end

---Copies element by element where a predicate is true.
---@param pred cute.Tensor
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.basic_copy_if(pred, src, dst) end

---Computes D = A * B + C with an MMA atom. The modes of the operands are
---(V,M,K) x (V,N,K) => (V,M,N), (V,M) x (V,N) => (V,M,N), (M,K) x (N,K) =>
---(M,N), (M) x (N) => (M,N) or (V) x (V) => (V).
---
---Block-scaled atoms take {A, scales} and {B, scales}; sparse ones take {A,
---metadata} or {A, scales, metadata}. Scales and metadata are fragments
---(V,M,K), (V,N,K) with one 32-bit register in V. Byte k of this register in
---lane 4r + j is the scale of block k of A's row r + 8 * (j % 2). For B, lane
---4r holds the scales of row r. V may also be a mode of values, as in the
---result of partition_fragment_SFA of cute.utils.blackwell_helpers, with one
---scale for each block of K. partition_E returns the metadata: 16 bits for four
---groups of a row, with two bits for each index.
---
---SM120 atoms that use one byte for each value take 6-bit and 4-bit values in
---fragments of u8. 6-bit values begin at bit 0 of the byte, 4-bit values at bit
---2.
---
---     k = cute.kernel(function(a, b, d)
---       local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
---       local thr = mma:get_slice((cute.arch.thread_idx()))
---       local ra = thr:partition_fragment_A(a)
---       local rb = thr:partition_fragment_B(b)
---       local acc = thr:partition_fragment_C(d)
---       cute.basic_copy(thr:partition_A(a), ra)
---       cute.basic_copy(thr:partition_B(b), rb)
---       acc:fill(0)
---       cute.gemm(mma, acc, ra, rb, acc)
---       cute.basic_copy(acc, thr:partition_C(d))
---     end)
---     a, b = cute.ones({16, 16}, cute.bf16), cute.ones({8, 16}, cute.bf16)
---     d = cute.zeros({16, 8}, cute.f32)
---     k(a, b, d):launch {grid = 1, block = 32, device = "sim"}
---     d(15, 7)  --> 16.0
---@param mma cute.MmaAtom|cute.TiledMma
---@param d cute.Tensor accumulators that are written
---@param a cute.Tensor|cute.Tensor[] fragments, or shared memory for wgmma
---@param b cute.Tensor|cute.Tensor[] fragments; shared memory for wgmma
---@param c cute.Tensor accumulators that are read, usually d
function cute.gemm(mma, d, a, b, c) end

cute.mma_atom_call = cute.gemm

return cute
-- SPDX-License-Identifier: MIT
