---@meta cute
-- Annotations of atoms and tiled operations for the Lua language server.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---One instruction: its layouts and PTX. Made from its CuTe C++ name.
---@class cute.Atom
---@field name string
---@field ptx string? the instruction; nil where it is plain C
---@field thr_id cute.Layout
local Atom = {}

---@class cute.MmaAtom: cute.Atom
---@field shape_mnk integer[]
---@field tv_layout_A cute.Layout (thread,value) -> coordinate in (M,K)
---@field tv_layout_B cute.Layout (thread,value) -> coordinate in (N,K)
---@field tv_layout_C cute.Layout (thread,value) -> coordinate in (M,N)
---@field value_bits integer[] of D, A, B, C

---@class cute.CopyAtom: cute.Atom
---@field value_type cute.DType
---@field layout_src_tv cute.Layout
---@field layout_dst_tv cute.Layout
---@field layout_ref_tv cute.Layout

---An MMA atom repeated over threads and a tile; a slice of it is one thread's.
---@class cute.TiledMma: cute.MmaAtom
---@field thr_layout_vmnk cute.Layout
---@field tile_size_mnk integer[]
---@field permutation_mnk table
---@field tv_layout_A_tiled cute.Layout
---@field tv_layout_B_tiled cute.Layout
---@field tv_layout_C_tiled cute.Layout
local TiledMma = {}

---A copy atom spread over a tile; a slice of it is one thread's.
---@class cute.TiledCopy: cute.CopyAtom
---@field tiler_mn table
---@field layout_tv_tiled cute.Layout
---@field layout_src_tv_tiled cute.Layout
---@field layout_dst_tv_tiled cute.Layout
local TiledCopy = {}

---An MMA atom by its C++ name; "unknown-name" with the nearest ones.
---@param name string
---@return cute.MmaAtom
function cute.make_mma_atom(name) end

---A copy atom for values of a type. A family given without <type>
---("UniversalCopy", "SM80_CP_ASYNC_CACHEALWAYS") takes the width in bits.
---"AutoVectorizingCopy" and "AutoVectorizingCopyWithAssumedAlignment<bits>"
---believe that what is traced of pointers and strides is so aligned;
---"DefaultCopy" goes by what is known.
---@param name string|table or an operation of cute.nvgpu, .cpasync
---@param dtype cute.DType
---level_prefetch_size ("size_64b", "size_128b", "size_256b"): what of memory
---comes to L2 with a load of global memory, or a cp.async.
---@param bits? integer|{num_bits_per_copy: integer?,
--- level_prefetch_size: string?}
---@return cute.CopyAtom
function cute.make_copy_atom(name, dtype, bits) end

---Name of atom i of the "mma" or "copy" table; nil past the last.
---@param table "mma"|"copy"
---@param i integer
---@return string?
function cute.atom_name(table, i) end

---@param atom cute.MmaAtom|string
---@param atom_layout? cute.Layout|cute.Tuple how atoms lie in (M,N,K)
---@param permutation? table extents, `_` or layouts for M, N, K
---@return cute.TiledMma
function cute.make_tiled_mma(atom, atom_layout, permutation) end

---@param atom cute.CopyAtom
---@param thr_layout cute.Layout|cute.Tuple or a (thread,value) layout
---@param val_layout cute.Layout|cute.Tuple or the tile, a table
---@return cute.TiledCopy
function cute.make_tiled_copy(atom, thr_layout, val_layout) end

---@param atom cute.CopyAtom
---@param thr_layout cute.Layout|cute.Tuple
---@param val_layout cute.Layout|cute.Tuple
---@return cute.TiledCopy
function cute.make_tiled_copy_tv(atom, thr_layout, val_layout) end

---Threads and values given by offsets into the data.
---@param atom cute.CopyAtom
---@param tv cute.Layout (thread,value) -> offset
---@param data cute.Layout
---@return cute.TiledCopy
function cute.make_cotiled_copy(atom, tv, data) end

---Copies what each thread of the MMA holds of A.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_A(atom, mma) end

---Copies what each thread of the MMA holds of B.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_B(atom, mma) end

---Copies what each thread of the MMA holds of C.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_C(atom, mma) end

---The smallest copy of C that the atom and the MMA share.
---@param atom cute.CopyAtom
---@param mma cute.TiledMma
---@return cute.TiledCopy
function cute.make_tiled_copy_C_atom(atom, mma) end

---With the threads and values of another copy's source.
---@param atom cute.CopyAtom
---@param copy cute.TiledCopy
---@return cute.TiledCopy
function cute.make_tiled_copy_S(atom, copy) end

---With the threads and values of another copy's destination.
---@param atom cute.CopyAtom
---@param copy cute.TiledCopy
---@return cute.TiledCopy
function cute.make_tiled_copy_D(atom, copy) end

---Copies tensors by an atom, over all modes behind the first.
---@param atom cute.CopyAtom|cute.TiledCopy
---@param src cute.Tensor
---@param dst cute.Tensor
---@param pred? cute.Tensor|{pred: cute.Tensor} booleans of the rest modes, or
---with a first mode of the atoms in V
function cute.copy(atom, src, dst, pred) end
cute.copy_atom_call = cute.copy

---copy_if([atom,] pred, src, dst)
function cute.copy_if(...) end

---As wide as layouts and known alignment allow.
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.autovec_copy(src, dst) end

---Element by element.
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.basic_copy(src, dst) end

---Element by element where the predicate is true.
---@param pred cute.Tensor
---@param src cute.Tensor
---@param dst cute.Tensor
function cute.basic_copy_if(pred, src, dst) end

---D = A * B + C over (V,M,K) x (V,N,K) => (V,M,N), (V,M) x (V,N) => (V,M,N),
---(M,K) x (N,K) => (M,N), (M) x (N) => (M,N) or (V) x (V) => (V).
---
---Block-scaled atoms take {A, scales} and {B, scales}; sparse ones {A,
---metadata}, or {A, scales, metadata}. These are fragments (V,M,K), (V,N,K)
---with one 32-bit register in V: byte k of lane 4r + j is the scale of block k
---of A's row r + 8 * (j % 2), of lane 4r of B's row r; the metadata are what
---partition_E gives, 16 bits for four groups of a row, two bits an index.
---
---Atoms with a byte a value (SM120) take values of 6 and 4 bits in fragments
---of u8: 6 bits at bit 0, 4 bits at bit 2.
---@param mma cute.MmaAtom|cute.TiledMma
---@param d cute.Tensor
---@param a cute.Tensor|cute.Tensor[]
---@param b cute.Tensor|cute.Tensor[]
---@param c cute.Tensor
function cute.gemm(mma, d, a, b, c) end
cute.mma_atom_call = cute.gemm

---Threads.
---@return integer
function TiledMma:size() end

---One thread's part: partition_A/B/C of tensors, and all that the tiled
---operation itself answers.
---@param thread cute.Int
---@return cute.TiledMma
function TiledMma:get_slice(thread) end

---Extent of the tile's mode 0, 1, 2 (M, N, K).
---@param mode integer
---@return integer
function TiledMma:get_tile_size(mode) end

---(V,M,K,...) of this thread.
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_A(t) end
---(V,N,K,...) of this thread.
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_B(t) end
---(V,M,N,...) of this thread.
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_C(t) end
---Of the metadata of a sparse A, whose partition_A is of the values that are
---there: cute.nvgpu.sparse.compress makes both.
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_E(t) end
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_A(shape) end
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_B(shape) end
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_C(shape) end
---@param shape cute.Tuple
---@return cute.Tuple
function TiledMma:partition_shape_E(shape) end
---Registers for this thread's part of t.
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_fragment_A(t) end
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_fragment_B(t) end
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_fragment_C(t) end
---@param t cute.Tensor|cute.Layout
function TiledMma:partition_fragment_E(t) end
---Registers for a partition.
---@param part cute.Tensor|cute.Layout
function TiledMma:make_fragment_A(part) end
---@param part cute.Tensor|cute.Layout
function TiledMma:make_fragment_B(part) end
---@param part cute.Tensor|cute.Layout
function TiledMma:make_fragment_C(part) end
---@param part cute.Tensor|cute.Layout
function TiledMma:make_fragment_E(part) end
---((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,...)))
---@param l cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_A(l) end
---@param l cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_B(l) end
---@param l cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_C(l) end
---@param l cute.Layout
---@return cute.Layout
function TiledMma:thrfrg_E(l) end

---Threads.
---@return integer
function TiledCopy:size() end
---@param thread cute.Int
---@return cute.TiledCopy
function TiledCopy:get_slice(thread) end
---This thread's part of a source, (CPY,CPY_M,CPY_N,...).
---@param t cute.Tensor|cute.Layout
function TiledCopy:partition_S(t) end
---This thread's part of a destination.
---@param t cute.Tensor|cute.Layout
function TiledCopy:partition_D(t) end
---A fragment (of an MMA) in the order of this copy's values.
---@param t cute.Tensor|cute.Layout
function TiledCopy:retile(t) end
---@param t cute.Tensor|cute.Layout
function TiledCopy:retile_S(t) end
---@param t cute.Tensor|cute.Layout
function TiledCopy:retile_D(t) end
---(thr,(FrgV,FrgX),(RestM,RestN,...))
---@param l cute.Layout
---@return cute.Layout
function TiledCopy:tidfrg_S(l) end
---@param l cute.Layout
---@return cute.Layout
function TiledCopy:tidfrg_D(l) end

return cute
