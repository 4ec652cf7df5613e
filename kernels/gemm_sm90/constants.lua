-- What kernels/gemm_sm90/model.lua knows of an H200.
return {
  clock = 1.85e9,       -- without a power limit
  fmas = 2048,          -- of 16 bits, a cycle and multiprocessor
  fill = 98.9,          -- bytes into shared memory, a cycle
  missing = 8.7,        -- cycles of 128 bytes that are not there,
  few_missing = 2.05,   -- and of those that blocks of one wave ask for,
  wait = 4,             -- of several: tiles that wait for one that lacks some
  memory = 4.43e12,     -- bytes a second
  far = 0.381,          -- of an operand that blocks far apart read, again
  together = 12,        -- blocks side by side that share a way to L2,
  group = 8.17e11,      -- bytes a second of it
  l2 = 2.42e13,         -- of what all tiles read,
  -- more of it where rows begin on multiples of so many bytes; from cut_fill on
  -- shared memory is filled as much slower
  cut = {[16] = 3.1, [32] = 1.7, [64] = 1.2},
  cut_fill = 2.1,
  launch = 9.44e-7,     -- begin and end of a kernel
  latency = 1844,       -- cycles from asking memory for a tile to having it,
  hit = 1498,           -- and L2
  uneven = 0.126,       -- of a wave, what blocks that end apart waste of memory
  first = 260,          -- cycles until the first tiles are there
  cluster = 1.08e-6,    -- clusters begin together
  near = 20,            -- waves: past them clusters share little, and lose
  apart = 1.02,         -- this (measured at 16384)
  second = 1.01,        -- the larger operand is asked for behind the other one
  exchange = 1345,      -- cycles until two halves of K have met
  leave = 7457,         -- to leave sums for others,
  part = 757,           -- to wait for a part
  -- Seconds of an operation at the power limit, and of each part of it by what
  -- a tile's step brings (elements by operation) to shared memory and through
  -- L2; by bits of an element.
  energy = {[8] = {0.64e-15, 0.38e-14, 0.1e-14},
            [16] = {9.83e-16, 9.32e-15, 1.13e-14},
            [32] = {1.81e-15, 6.4e-14, 1.0e-14}},
  drain = 19.4,         -- bytes of D a cycle, a third more with four buffers
  round = 234,          -- cycles to fill a buffer and hand it on
  -- What tiles of 16 bits take of all that: with turns, in equal parts, in
  -- halves of K, two blocks of a multiprocessor, in clusters.
  good = {
    ["64x8"] = 2.05, ["64x8 two"] = 1.84, ["64x16"] = 1.54,
    ["64x16 two"] = 1.53, ["64x16 halves"] = 1.12, ["64x32"] = 1.2,
    ["64x32 two"] = 1.24, ["64x32 halves"] = 1.06, ["64x64"] = 1.2,
    ["64x64 two"] = 1.23, ["64x64 halves"] = 1.09, ["64x64 parts"] = 0.808,
    ["64x128"] = 1.06, ["64x128 parts"] = 1.05, ["128x64"] = 1.12,
    ["128x96"] = 1.06, ["128x128"] = 1.02, ["128x128 turns"] = 1.04,
    ["128x128 halves"] = 1.26, ["128x128 parts"] = 1.08, ["128x160"] = 1.03,
    ["128x192"] = 1.03, ["128x192 cluster"] = 1.04, ["128x256"] = 1.01,
    ["128x256 cluster"] = 1.01, ["256x192"] = 1.03,
    ["256x192 cluster"] = 1.04, ["256x200 cluster"] = 1.02,
    ["256x208"] = 1.01, ["256x208 cluster"] = 1.02},
  -- Sums that are added to others: cycles while nobody multiplies, and energy.
  add = 146, by_adding = 0.066,
}
