--- Counts how often each value, or each class of values, occurs in a tensor.
--
--     local k = histogram {dtype = cute.u8, n = 1000000, bins = 256}
--     k.kernel(X, H):launch {grid = k.grid, block = k.block}
--
-- X has n contiguous elements. The counts are added to H, a vector of `bins`
-- elements of i32. `bin`, a Lua function of an element, returns the index of
-- its bin; elements with an index outside the bins are not counted.
--
-- Each block counts in `copies` tables in shared memory; neighbouring warps use
-- different tables. At the end the blocks add their tables to H.
local cute = require "cute"
local rules = require "kernels.operand_rules"

local WARP = 32

local function up(a, b) return (a + b - 1) // b end

-- Calls f(b) for each index b below `count` that this thread handles. A thread
-- handles the indices that are equal to its own index modulo the block's number
-- of threads.
local function each_bin(h, count, f)
  for first = 0, count - 1, h.block do
    local b = (cute.arch.thread_idx()) + first
    if first + h.block <= count then f(b)
    else cute.when(cute.lt(b, count), function() f(b) end) end
  end
end

-- Returns bin index b as a type of at least 32 bits, so that it can be compared
-- with the number of bins.
local function wide(b)
  if b.dtype.bits >= 32 then return b end
  return b:to(b.dtype.is_float and cute.f32 or cute.i32)
end

local function count(h, X, H)
  local tid = (cute.arch.thread_idx())
  local vectors = h.n // h.width
  local tables = cute.make_smem_tensor(cute.i32,
                                       cute.make_layout {h.bins, h.copies})
  each_bin(h, h.bins * h.copies, function(b) tables[b] = 0 end)
  cute.arch.sync_threads()
  local mine = tables.iterator + tid // WARP % h.copies * h.bins
  local atom = cute.make_copy_atom("UniversalCopy", X.element_type,
                                   h.width * X.element_type.bits)
  local v = cute.make_layout {h.width}
  for first in cute.range((cute.arch.block_idx()) * h.reach, vectors,
                          (cute.arch.grid_dim()) * h.reach) do
    -- Loads all elements of this round before it processes the first one.
    local held, there = {}, {}
    for s = 1, h.steps do
      local at = first + tid + (s - 1) * h.block
      held[s] = cute.make_rmem_tensor({h.width}, X.element_type)
      there[s] = cute.lt(at, vectors)
      cute.when(there[s], function()
        cute.copy(atom, cute.make_tensor(X.iterator + at * h.width, v), held[s])
      end)
    end
    for s = 1, h.steps do
      cute.when(there[s], function()
        for i = 0, h.width - 1 do
          local b = wide(h.bin(held[s][i]))
          cute.when(cute.ge(b, 0) & cute.lt(b, h.bins), function()
            cute.arch.red(mine + b:to(cute.i32), 1,
                          {op = "add", scope = "cta"})
          end)
        end
      end)
    end
  end
  cute.arch.sync_threads()
  each_bin(h, h.bins, function(b)
    local sum = tables[{b, 0}]
    for c = 1, h.copies - 1 do sum = sum + tables[{b, c}] end
    cute.when(cute.ne(sum, 0), function()
      cute.arch.red(H.iterator + b, sum, {op = "add"})
    end)
  end)
end

--- Returns a kernel with arguments (X, H), and its launch parameters.
---@param o table {n: integer, dtype: any, bins: integer, bin: function?,
-- copies: integer?, steps: integer?, block: integer?, grid: integer?}
-- bin: maps an element (a traced value) to the index of its bin (when absent,
-- the element's value is the index); copies: number of tables of a block (when
-- absent, as many as 32 KiB hold, but at most 8); steps: number of vectors that
-- a thread has in flight (4 when absent); grid: maximum number of blocks (528
-- when absent)
---@return {kernel: any, grid: integer, block: integer}
return function(o)
  rules.options("histogram", o, "n dtype bins bin copies steps block grid")
  rules.given("histogram", o, "n", "dtype", "bins")
  rules.integers("histogram", o, {"block"}, WARP, 1024)
  rules.integers("histogram", o, {"steps", "copies", "grid"}, 1, 1 << 20)
  local h = {n = o.n, bins = o.bins, block = o.block or 256,
    steps = o.steps or 4, width = rules.widest(o.dtype.bits, o.n),
    bin = o.bin or function(x) return x end,
    copies = o.copies or math.max(1, math.min(8, 8192 // o.bins))}
  h.reach = h.block * h.steps
  return {block = h.block,
    grid = math.min(o.grid or 528, up(h.n // h.width, h.reach)),
    kernel = cute.kernel("histogram", function(X, H)
      rules.dense("histogram", "X", X, h.n)
      rules.dense("histogram", "H", H, h.bins)
      rules.need(H.element_type == cute.i32, "histogram",
        "H has type %s; i32 is needed", H.element_type.name)
      count(h, X, H)
    end)}
end
-- SPDX-License-Identifier: MIT
