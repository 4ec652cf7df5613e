-- What kernels/gemm_sm90/model.lua knows of an H200.
return {
  clock = 1.85e9,       -- without a power limit
  fmas = 2048,          -- of 16 bits, a cycle and multiprocessor
  fill = 64,            -- bytes into shared memory, a cycle
  missing = 8,          -- cycles of 128 bytes that are not there
  memory = 4.2e12,      -- bytes a second
  far = 0.5,            -- of an operand that blocks far apart read, again
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
  -- Sums that are added to others: cycles while nobody multiplies, and energy.
  add = 146, by_adding = 0.066,
}
