-- What kernels/gemm_sm90/model.lua knows of an H200.
return {
  clock = 1.85e9,       -- without a power limit
  fmas = 2048,          -- of 16 bits, a cycle and multiprocessor
  fill = 64,            -- bytes into shared memory, a cycle
  missing = 8,          -- cycles of 128 bytes that are not there
  memory = 4.2e12,      -- bytes a second
  far = 0.289,          -- of an operand that blocks far apart read, again
  l2 = 20e12,           -- of what all tiles read
  launch = 2.2e-6,      -- begin and end of a kernel
  first = 1500,         -- cycles until the first tiles are there
  cluster = 0.5e-6,     -- clusters begin together
  near = 20,            -- waves: past them clusters share little, and lose
  apart = 1.02,         -- this (measured at 16384)
  exchange = 3000,      -- cycles until two halves of K have met
  leave = 1500,         -- to leave sums for others,
  part = 2000,          -- to wait for a part
  -- Seconds of an operation at the power limit, and of each part of it by what
  -- a tile's step brings (elements by operation) to shared memory and through
  -- L2; by bits of an element.
  energy = {[8] = {0.64e-15, 0.38e-14, 0.1e-14},
            [16] = {1.1e-15, 0.8e-14, 1.6e-14},
            [32] = {1.81e-15, 6.4e-14, 1.0e-14}},
  drain = 24,           -- bytes of D a cycle, a third more with four buffers
  round = 300,          -- cycles to fill a buffer and hand it on
  -- What tiles of 16 bits take of all that: with turns, in equal parts, in
  -- halves of K, two blocks of a multiprocessor, in clusters.
  good = {
    ["64x8"] = 1.1, ["64x8 two"] = 1.08, ["64x16"] = 1.02,
    ["64x16 two"] = 1.03, ["64x16 halves"] = 1, ["64x32"] = 1,
    ["64x32 two"] = 1.02, ["64x32 halves"] = 1, ["64x64"] = 0.93,
    ["64x64 two"] = 1, ["64x64 halves"] = 1, ["64x64 parts"] = 1,
    ["64x128"] = 0.95, ["64x128 parts"] = 0.96, ["128x64"] = 0.95,
    ["128x96"] = 1, ["128x128"] = 1, ["128x128 turns"] = 1,
    ["128x128 halves"] = 1.06, ["128x128 parts"] = 1.04, ["128x160"] = 1,
    ["128x192"] = 1, ["128x192 cluster"] = 1, ["128x256"] = 1,
    ["128x256 cluster"] = 1, ["256x192"] = 1,
    ["256x192 cluster"] = 1, ["256x200 cluster"] = 1,
    ["256x208"] = 1, ["256x208 cluster"] = 1},
  -- Sums that are added to others: cycles while nobody multiplies, and energy.
  add = 146, by_adding = 0.066,
}
