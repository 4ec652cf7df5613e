--- A persistent GEMM for Hopper: D = A B^T by TMA and wgmma.
--
--     local gemm = gemm_sm90 {tile = {128, 256, 64}, stages = 4,
--                             cluster = {2, 1}}
--     local run = gemm.prepare(A, B, D, {device = "gpu"})
--     run:launch()
--
-- A (M,K) and B (N,K) have contiguous K. Operands of 16-bit types may instead
-- have contiguous M and N (a_major = "m", b_major = "n"). D (M,N) has
-- contiguous rows, or columns (d_major = "m"). Rows begin at multiples of 16
-- bytes, as TMA requires. M, N, K can have any size. dtype is the type of A, B
-- and D; a_dtype, b_dtype and d_dtype override it for one matrix. A and B both
-- have type bf16, f16 or f32 (multiplied as tf32), or any two 8-bit floats
-- (e4m3, e5m2), or any two 8-bit integers (i8, u8). Integers have accumulators
-- and D of i32. BK is a multiple of 64 bytes.
--
-- One thread, the producer, issues TMA loads of tiles of A and B along K, far
-- ahead of their use. The tiles arrive in a ring of `stages` buffers in shared
-- memory (cute.pipeline). Warpgroups, the consumers, multiply the tiles that
-- have arrived. The blocks of a cluster load shared tiles together: each loads
-- a part and multicasts it to all.
--
-- The option `schedule`:
-- "cooperative": the consumers share a tile. Its units of 64 rows are assigned
--   to them alternately.
-- "pingpong": each consumer has its own tile. While one multiplies, the other
--   one writes its result. Tiles are consecutive in the ring.
--
-- Tiles are ordered in bands of `swizzle` tiles along M: a band's tiles at one
-- index along N come before those at the next index. raster_along_m exchanges
-- the roles of M and N.
--
-- With persistent = false, each block computes one tile, whose index is the
-- block's index. Use it if the result has at most as many tiles as there are
-- multiprocessors, or twice as many with min_blocks = 2. Consecutive blocks
-- have tiles along M or, with raster_along_m and without clusters, along N.
-- They form runs, whose length (model.run) minimizes the number of rows of A
-- and B that concurrent blocks read.
--
-- ahead = "a" or "b" (together with pdl) states that no launch that may still
-- be running writes this operand. Before a block waits for the preceding
-- launch, it issues the operand's loads for its first tiles, and lets the next
-- launch do the same.
--
-- With split = 2, 3, ... 8, this number of blocks of a cluster compute a tile
-- together, each for a part of K. Use it for products with few tiles and a
-- large K. Each block sends accumulators to the other blocks, and stores its
-- part of the tile's columns.
--
-- With split = "stream", the last tiles are split along K so that all blocks
-- end at the same time (cute.utils.StreamKTileScheduler). The block with the
-- first step of such a tile stores the result. The other blocks store their
-- partial sums in a workspace. The first block loads them through the ring
-- after its own operands. The sums are added in the order of K, so results
-- depend on the grid but not on timing. Parts of less than `least` steps are
-- avoided. With equal = n, only the tiles that remain after the full waves are
-- split. Each of them is split into equal parts: as many as there are blocks
-- for it, but at most n.
--
-- With scheduler "static", tiles are assigned to the blocks round-robin. With
-- "dynamic", a block that becomes idle draws the next tile from a counter in
-- global memory (cute.utils.DynamicPersistentTileScheduler).
--
-- a_hint, b_hint and d_hint (values of cpasync.CacheHint) tell L2 which data is
-- read again; d_hint also applies to the sources. l2_promotion (64, 128, 256)
-- is the number of bytes that L2 reads from memory at once.
--
-- Tensor cores accumulate 8-bit floats with fewer bits than f32 has. With
-- promote = n, the accumulators are added to f32 sums after every n tiles along
-- K, 64 rows at a time. While one warpgroup adds, the other one multiplies.
-- With schedule "pingpong", the tensor cores wait for these additions. If a
-- warpgroup has 64 rows and promote is 1, its next products run while it adds.
--
-- With blocks = 1 or 128, for 8-bit floats, the accumulators of each tile along
-- K (128 elements) are scaled before they are added to the sums. The factors
-- are SA (M,K/128) and SB (N,K/128), the first arguments of the epilogue. Their
-- modes can be nested with strides of 0. A factor of SB covers `blocks`
-- columns. A second warp of the producer copies the factors to shared memory.
--
-- With batches = true, A (M,K,L), B (N,K,L) and D (M,N,L) hold the matrices of
-- L products. A matrix with stride 0 along L is the same for all products.
--
-- groups = "rows" or "masked": the device counts the rows of each group
-- (kernels.groups), and each group has its own B (N,K,G). With "rows", A is
-- (M,K) and D (M,N), and the kernel's last argument is {offsets = tensor}. With
-- "masked", A is (M,K,G) and D (M,N,G), and the last argument is {counts =
-- tensor}. With groups = "list", the groups are separate problems; one of them,
-- as an example, is passed to arguments(). The last argument is the result of
-- list(), and an epilogue gets only the accumulators. Tiles of the groups are
-- consecutive. The last tile of a group computes all its rows, even if only
-- some belong to the group. Therefore all blocks need the same time for a tile,
-- and read data that is still in L2.
--
-- With gated = true, the product of A and the first half of B's rows gives
-- gates. The product of A and the second half gives the values that they gate.
-- The epilogue gets both, (gate, up, part, ...). D (M,N) has half as many
-- columns as B (2N,K) has rows; N must be a multiple of 8.
--
-- sources = {{dtype =, major = "n" or "m"}, ...} describes matrices with the
-- extents of D that the epilogue reads. The function arguments() takes them
-- after beta (and SA, SB), before the epilogue's own arguments. part.source(i,
-- dtype) returns the values of source i (from 1) at the accumulators'
-- positions. TMA loads `source_stages` parts of each warpgroup's tile ahead to
-- shared memory.
--
-- Accumulators are stored through shared memory. stmatrix writes them to
-- buffers, of which each warpgroup has `epi_stages`. With epi = {64, EN}, a
-- buffer has 64 rows and EN columns, by default 128 bytes of a row. TMA stores
-- a buffer while the next one is converted. With epi_loop = true the buffers
-- are filled in a loop, so that the code contains the epilogue's function once.
-- This saves a third of the first call's time. The kernel is as fast as without
-- the loop if other warpgroups multiply for long enough meanwhile.
local choice = require "kernels.gemm_sm90.choice"
local cute = require "cute"
local host = require "kernels.gemm_sm90.host"
local make_kernel = require "kernels.gemm_sm90.kernel"
local options = require "kernels.gemm_sm90.options"
local sign = require "cute.lang.signature"

local gemm_sm90 = {candidates = choice.candidates, choose = choice.choose}

--- gemm_sm90(options): returns a GEMM with these options (see the top of this
-- file). Fields of the GEMM: kernel, block, cluster, atoms(A, B, D),
-- arguments(A, B, D), grid(m, n), prepare(A, B, D, opts).
setmetatable(gemm_sm90, {__call = function(_, given)
  local o = options.complete(given)
  local made = make_kernel(o)
  made.kernel = cute.kernel(given.name or "gemm_sm90",
    {block = o.block, min_blocks = o.min_blocks}, made.f)
  return host.new(o, made)
end})

return sign.module("kernels.gemm_sm90", gemm_sm90)
-- SPDX-License-Identifier: MIT
