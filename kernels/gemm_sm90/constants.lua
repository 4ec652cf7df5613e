-- The constants of kernels/gemm_sm90/model.lua for an H200.
return {
  clock = 1.85e9,       -- cycles per second, without a power limit
  fmas = 2048,          -- 16-bit multiply-adds per cycle and multiprocessor
  fill = 91.4,          -- bytes per cycle that fill shared memory
  missing = 0.757,      -- cycles per 128 bytes of a row outside the tensor, if
                        -- 1 block loads such rows
  crowd = 0.5,          -- factor on `missing`: (number of such blocks) ^ crowd
  -- The cost `missing` (rows outside the tensor) is multiplied by this factor
  -- if the blocks form clusters.
  sent = 1.49,
  wait = 1.18,          -- factor on the average number of a block's tiles that
                        -- extend past the tensor
  memory = 4.43e12,     -- bytes per second from memory
  far = 0.249,          -- fraction of an operand that distant blocks read a
                        -- second time
  together = 12,        -- number of neighbouring blocks that share a path to L2
  group = 8.13e11,      -- bytes per second through a path to L2 (`together`)
  steady = 5.89e11,     -- bytes per second through a path to L2, with many
                        -- waves
  l2 = 2.12e13,  -- bytes per second from L2 to all multiprocessors
  -- The slowdown of L2 if rows begin at multiples of only 16, 32 or 64 bytes.
  -- If the slowdown is at least cut_fill, shared memory is filled more slowly,
  -- too.
  cut = {[16] = 3.1, [32] = 1.7, [64] = 1.2},
  cut_fill = 1.79,
  launch = 9.47e-7,     -- seconds to start and finish a kernel
  latency = 1844,       -- cycles until a tile requested from memory arrives
  hit = 1586,           -- cycles until a tile requested from L2 arrives
  uneven = 0.1,         -- fraction of the last wave during which memory is idle
  first = 213,          -- cycles from a block's start to its first tiles
  cluster = 9.15e-7,    -- seconds until all blocks of a cluster have started
  -- The number of waves above which the blocks of a cluster share few transfers
  -- from L2.
  near = 20,
  apart = 1.02,         -- factor on the time of clusters above `near` waves
  second = 1.01,        -- factor on the time if B, loaded after A, is larger
  -- The cycles in which the blocks of a cluster reduce their partial sums of K,
  -- not counting the transfer of the bytes.
  exchange = 1128,
  dsmem = 10.8,         -- bytes per cycle that a block sends to others
  leave = 8467,         -- cycles to store partial sums for another block
  part = 1218,          -- cycles to wait for another block's partial sums
  -- The energy of an operation, expressed as seconds at the power limit, by the
  -- bits of an element: {the operation itself, its transfers to shared memory,
  -- its transfers through L2}. The model divides the transfers by the extents
  -- of a tile.
  energy = {[8] = {0.64e-15, 0.38e-14, 0.1e-14},
            [16] = {8.07e-16, 9.43e-15, 7e-15},
            [32] = {1.81e-15, 6.4e-14, 1.0e-14}},
  drain = 11.9,         -- bytes of D stored per cycle (4 buffers: 1 / 0.7
                        -- times)
  alone = 1.14,         -- factor on the time if a pingpong block has one tile
  round = 108,          -- cycles to fill an epilogue buffer and start its TMA
                        -- store
  -- Correction factors of the whole estimate, by tile ("BMxBN") for 16-bit or
  -- 32-bit elements, and by kind. "turns": schedule pingpong; "parts": equal
  -- parts of K; "halves": split = 2; "split": a larger split; "two": two blocks
  -- on a multiprocessor; "cluster": clusters; "runs": B's columns are
  -- contiguous, but their number is no multiple of 64. "promoted": factors for
  -- 8-bit floats; 1 if absent.
  good = {
    ["64x8"] = 2.03, ["64x8 two"] = 1.68, ["64x16"] = 1.37,
    ["64x16 halves"] = 1.23, ["64x16 two"] = 1.72, ["64x32"] = 1.31,
    ["64x32 halves"] = 1.2, ["64x32 split"] = 1.02, ["64x32 two"] = 1.33,
    ["64x64"] = 1.19, ["64x64 halves"] = 1.2, ["64x64 parts"] = 1.15,
    ["64x64 split"] = 0.977, ["64x64 two"] = 1.57, ["64x96"] = 1.1,
    ["64x96 halves"] = 1.25, ["64x96 parts"] = 1.29, ["64x96 split"] = 0.954,
    ["64x128"] = 1.06, ["64x128 parts"] = 1.19, ["64x128 split"] = 1.22,
    ["64x160 split"] = 1.56, ["64x192 split"] = 1.42, ["64x256 split"] = 1.63,
    ["128x16 two"] = 1.5, ["128x32"] = 1.29, ["128x32 split"] = 1.39,
    ["128x64"] = 1.22, ["128x64 halves"] = 1.68, ["128x64 split"] = 1.49,
    ["128x64 turns"] = 1.2, ["128x96"] = 1.06, ["128x96 cluster"] = 0.949,
    ["128x96 halves"] = 1.63, ["128x96 parts"] = 1.4, ["128x96 split"] = 1.62,
    ["128x96 turns"] = 1.12, ["128x128"] = 1.07, ["128x128 cluster"] = 1.1,
    ["128x128 halves"] = 1.39, ["128x128 parts"] = 1.15,
    ["128x128 split"] = 1.29, ["128x128 turns"] = 1.06, ["128x160"] = 1.05,
    ["128x160 cluster"] = 1.11, ["128x160 halves"] = 1.25,
    ["128x160 split"] = 1.2, ["128x192"] = 1.045, ["128x192 cluster"] = 1.05,
    ["128x192 halves"] = 1.2, ["128x192 split"] = 1.25, ["128x208"] = 1.01,
    ["128x208 cluster"] = 1.04, ["128x256"] = 1.04, ["128x256 cluster"] = 1.01,
    ["192x64"] = 1.05, ["192x96"] = 1.05, ["192x96 cluster"] = 1.05,
    ["192x128"] = 1.05, ["192x128 cluster"] = 1.14, ["192x160"] = 1.06,
    ["192x160 cluster"] = 1.01, ["192x192"] = 1.05,
    ["192x192 cluster"] = 1.05,
    ["256x96"] = 1.05, ["256x96 cluster"] = 1.07, ["256x128"] = 1.04,
    ["256x128 cluster"] = 1.07, ["256x160"] = 1.11, ["256x160 cluster"] = 1.06,
    ["256x192"] = 1.04, ["256x192 cluster"] = 1.035, ["256x208"] = 1.035,
    ["256x208 cluster"] = 1.02, ["128x96 runs"] = 1.5,
    ["128x160 runs"] = 1.18, ["192x160 runs"] = 1.03, ["256x208 runs"] = 1.09,
    ["256x208 cluster runs"] = 1.05, ["64x8 promoted"] = 1.08,
    ["64x16 promoted"] = 1.07, ["64x16 two promoted"] = 1.12,
    ["64x32 promoted"] = 1.05,
    ["64x64 promoted"] = 0.92, ["64x128 promoted"] = 0.97,
    ["128x64 promoted"] = 1.32, ["128x64 split promoted"] = 1.06,
    ["128x96 promoted"] = 1.12,
    ["128x128 promoted"] = 1.045, ["128x128 turns promoted"] = 1.34,
    ["128x160 promoted"] = 1.06},
  -- For promoted accumulators: the cycles per addition in which no products
  -- run, if a warpgroup has one set of accumulators or two; and the additional
  -- energy of the additions, as a fraction.
  add = 146, add_overlapped = 100, by_adding = 0.066,
  -- The cycles that the scale factors of a block of K take for 64 rows and 128
  -- columns, with a factor for each column or for several columns.
  scale_each = 350, scale = 100,
}
-- SPDX-License-Identifier: MIT
