-- What kernels/gemm_sm90/model.lua knows of an H200.
return {
  clock = 1.85e9,       -- without a power limit
  fmas = 2048,          -- of 16 bits, a cycle and multiprocessor
  fill = 91.4,          -- bytes into shared memory, a cycle
  missing = 0.757,      -- cycles of 128 bytes that are not there, of one block
  crowd = 0.5,          -- that asks for such, and how these grow with others
  sent = 1.49,          -- more where clusters share them,
  wait = 1.18,          -- tiles of a block that lack some, of its share
  memory = 4.43e12,     -- bytes a second
  far = 0.249,          -- of an operand that blocks far apart read, again
  together = 12,        -- blocks side by side that share a way to L2,
  group = 8.13e11,      -- bytes a second of it
  steady = 5.89e11,     -- and of many waves
  l2 = 2.12e13,         -- of what all tiles read,
  -- more of it where rows begin on multiples of so many bytes; from cut_fill on
  -- shared memory is filled as much slower
  cut = {[16] = 3.1, [32] = 1.7, [64] = 1.2},
  cut_fill = 1.79,
  launch = 9.47e-7,     -- begin and end of a kernel
  latency = 1844,       -- cycles from asking memory for a tile to having it,
  hit = 1586,           -- and L2
  uneven = 0.1,         -- of a wave, what blocks that end apart waste of memory
  first = 219,          -- cycles until the first tiles are there
  cluster = 1.07e-6,    -- clusters begin together
  near = 20,            -- waves: past them clusters share little, and lose
  apart = 1.02,         -- this (measured at 16384)
  second = 1.01,        -- the larger operand is asked for behind the other one
  exchange = 1679,      -- cycles until two halves of K have met
  leave = 8467,         -- to leave sums for others,
  part = 652,           -- to wait for a part
  -- Seconds of an operation at the power limit, and of each part of it by what
  -- a tile's step brings (elements by operation) to shared memory and through
  -- L2; by bits of an element.
  energy = {[8] = {0.64e-15, 0.38e-14, 0.1e-14},
            [16] = {8.07e-16, 9.43e-15, 7e-15},
            [32] = {1.81e-15, 6.4e-14, 1.0e-14}},
  drain = 11.9,         -- bytes of D a cycle, a third more with four buffers
  alone = 1.14,         -- turns that nobody takes
  round = 108,          -- cycles to fill a buffer and hand it on
  -- What tiles of 16 and 32 bits take of all that: with turns, in equal parts,
  -- in halves of K, two blocks of a multiprocessor, in clusters.
  good = {
    ["64x8"] = 2.03, ["64x8 two"] = 1.68, ["64x16"] = 1.37,
    ["64x16 two"] = 1.86, ["64x16 halves"] = 1.12, ["64x32"] = 1.31,
    ["64x32 two"] = 1.56, ["64x32 halves"] = 1.13, ["64x64"] = 1.19,
    ["64x64 two"] = 1.57, ["64x64 halves"] = 1.17, ["64x64 parts"] = 0.901,
    ["64x96"] = 1.1, ["64x96 parts"] = 1.16,
    ["64x128"] = 1.06, ["64x128 parts"] = 1.19, ["128x32"] = 1.29,
    ["128x64"] = 1.22, ["128x64 turns"] = 1.2, ["128x64 halves"] = 1.66,
    ["128x96"] = 1.06, ["128x96 turns"] = 1.12, ["128x96 halves"] = 1.5,
    ["128x96 parts"] = 1.43, ["128x96 cluster"] = 0.949,
    ["128x128"] = 1.03, ["128x128 turns"] = 1.04,
    ["128x128 halves"] = 1.38, ["128x128 parts"] = 1.15,
    ["128x128 cluster"] = 1.1, ["128x160"] = 1.02,
    ["128x160 cluster"] = 1.18,
    ["128x192"] = 1.03, ["128x192 cluster"] = 1.08, ["128x208"] = 1.01,
    ["128x208 cluster"] = 1.04, ["128x256"] = 1.02,
    ["128x256 cluster"] = 1.01, ["256x96"] = 1.05, ["256x96 cluster"] = 1.07,
    ["256x128"] = 1.04, ["256x128 cluster"] = 1.09, ["256x160"] = 1.28,
    ["256x160 cluster"] = 1.14, ["256x192"] = 1.04,
    ["256x192 cluster"] = 1.08,
    ["256x208"] = 1.08, ["256x208 cluster"] = 1.02},
  -- Sums that are added to others: cycles while nobody multiplies, and energy.
  add = 146, by_adding = 0.066,
}
