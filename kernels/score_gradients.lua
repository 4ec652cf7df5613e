--- The gradients of tensors whose elements score_mod reads.
--
-- If score y depends on element e of a tensor, the gradient of e is the sum of
-- dL/dy dy/de over all scores that read e. cute.derivative derives dy/de from
-- the trace of score_mod. The kernel that computes dQ has dL/dy of each score.
--
-- A read is called shared if its index does not depend on the row and the key,
-- as in slopes[at.h]: all scores of a head read the same element. Each block
-- sums the gradients of its shared reads and stores one number for each read,
-- its "part". A second kernel adds the parts in a fixed order. The gradients of
-- all other reads are summed by atomic additions, in any order.
local core = require "cute.core"
local cute = require "cute"
local flash = require "kernels.flash"
local kept = require "kernels.kept"
local sequences = require "kernels.attention_bwd_sm90.sequences"
local tiles = require "cute.tiles"
local _ = cute._

local score_gradients = {}

--- Returns a list of the reads of `tensors` on which score y depends. Each is
-- {value = the element that was read, at = its offset, key = an identifier of
-- the offset, tensor = index of its tensor in `tensors`}. Equal offsets have
-- equal keys.
---@param y any
---@param tensors any[]
---@return table[]
function score_gradients.reads(y, tensors)
  local list = {}
  if core.typename(y) ~= "value" then return list end
  for i, t in ipairs(tensors) do
    local found = core.loads(y, t)
    for k = 1, #found, 3 do
      list[#list + 1] = {value = found[k], at = found[k + 1],
                         key = found[k + 2], tensor = i}
    end
  end
  return list
end

--- Returns a list that describes each read of a function score(s, at): {tensor
-- = index of the tensor in `tensors`, shared = whether the read is shared}. It
-- must be called while a kernel is traced.
---@param score function
---@param s any a score
---@param tensors any[]
---@return {tensor: integer, shared: boolean}[]
function score_gradients.kinds(score, s, tensors)
  local b, h = cute.arch.block_idx()
  local q, k = cute.arch.thread_idx()
  local one = score_gradients.reads(score(s, kept.at(b, h, q, k)), tensors)
  local two = score_gradients.reads(score(s, kept.at(b, h, k + 1, q + 2)),
                                    tensors)
  local kinds = {}
  for i, r in ipairs(one) do
    kinds[i] = {tensor = r.tensor, shared = r.key == two[i].key}
  end
  return kinds
end

--- Returns the number of shared reads of tensor i, or of all tensors if i is
-- absent.
---@param kinds {tensor: integer, shared: boolean}[]
---@param i? integer
function score_gradients.count(kinds, i)
  local n = 0
  for _, k in ipairs(kinds) do
    if k.shared and (not i or k.tensor == i) then n = n + 1 end
  end
  return n
end

---------------------------------------------------------------------------
-- In the kernel that computes dQ
---------------------------------------------------------------------------

local Adder = {}
Adder.__index = Adder

--- Makes an adder, an object that adds the gradients of a thread's scores.
---@param kinds {tensor: integer, shared: boolean}[] result of
-- score_gradients.kinds
---@param tensors any[] the tensors with requested gradients
---@param sums any[] an f32 vector for each tensor; its element i is the
-- gradient of the tensor's element at offset i
function score_gradients.adder(kinds, tensors, sums)
  local n = score_gradients.count(kinds)
  local held = n > 0 and cute.make_rmem_tensor({n}, cute.f32)
  if held then held:fill(0) end
  return setmetatable({kinds = kinds, tensors = tensors, sums = sums,
                       held = held, n = n}, Adder)
end

--- Returns the reads on which a score y depends (score_gradients.reads). Each
-- read also has the field slope, the derivative of y with respect to the
-- element.
function Adder:reads(y)
  local list = score_gradients.reads(y, self.tensors)
  for _, r in ipairs(list) do r.slope = cute.derivative(y, r.value) end
  return list
end

--- Adds the gradients of the elements that a score reads.
---@param list table[] from Adder:reads
---@param d any the gradient of the score
---@param live any whether the score exists and is visible
function Adder:add(list, d, live)
  local nth = 0
  for n, r in ipairs(list) do
    local x = d * r.slope:to(cute.f32)
    if self.kinds[n].shared then
      self.held[nth] = self.held[nth] + cute.where(live, x, 0.0)
      nth = nth + 1
    else
      cute.when(live, function()
        cute.arch.red(self.sums[r.tensor].iterator + r.at, x, {op = "add"})
      end)
    end
  end
end

--- Stores the block's sums of the shared reads to the vector `parts` (reads).
-- All threads of the block call this function.
---@param parts any
---@param warps integer
function Adder:store(parts, warps)
  if not self.held then return end
  local all = cute.make_smem_tensor(cute.f32, cute.make_layout {self.n, warps})
  local tid = cute.arch.thread_idx()
  for n = 0, self.n - 1 do
    local sum = cute.arch.warp_reduction_sum(self.held[n])
    cute.when(cute.eq(tid % 32, 0), function() all[{n, tid // 32}] = sum end)
  end
  cute.arch.sync_threads()
  cute.when(cute.lt(tid, self.n), function()
    local sum = all(tid, 0)
    for w = 1, warps - 1 do sum = sum + all(tid, w) end
    parts[tid] = sum
  end)
end

---------------------------------------------------------------------------
-- The other kernels
---------------------------------------------------------------------------

local THREADS = 256

--- Returns the kernel clear(x), which fills a vector with zeros, and its launch
-- parameters.
---@return {kernel: any, block: integer, grid: function}
function score_gradients.clearing()
  return {block = THREADS,
    grid = function(n) return {tiles.count(n, THREADS), 1, 1} end,
    kernel = cute.kernel("clear", {block = THREADS}, function(x)
      local at = cute.arch.block_idx() * THREADS + cute.arch.thread_idx()
      cute.when(cute.lt(at, cute.size(x)), function() x[at] = 0.0 end)
    end)}
end

--- Returns the kernel (parts, sums, ...) that adds the parts of tensor i to
-- sums, and its launch parameters. parts is (reads,tiles,H,B), sums is the
-- tensor's vector of gradients, and the other arguments are the captured values
-- for o.modify. There is a block of one warp for each shared read of each head
-- in each sequence. If several blocks read the same element, the first one adds
-- the parts of all of these blocks.
---@param o table {modify: function, kinds: table[], at: integer[]} at: the
-- positions of the tensors among the captured values
---@param i integer
---@return {kernel: any, block: integer, grid: function}
function score_gradients.adding(o, i)
  -- for each shared read of tensor i: its position among the tensor's reads,
  -- and its index among all shared reads
  local mine, at, index = {}, 0, 0
  for _, kind in ipairs(o.kinds) do
    if kind.tensor == i then
      at = at + 1
      if kind.shared then mine[#mine + 1] = {at = at, index = index} end
    end
    if kind.shared then index = index + 1 end
  end
  local function kernel(parts, sums, ...)
    local score, _, done = o.modify(...)
    local tensor = select(o.at[i], ...)
    local H, B = cute.size(parts, 2), cute.size(parts, 3)
    local s = cute.make_rmem_tensor({1}, cute.f32)
    s:fill(1)
    -- Returns four values: the offset of the element that block p reads, its
    -- index among all shared reads, its head, and its sequence.
    local function read(p)
      local h, b, n = p % H, p // H % B, p // H // B
      local list = score_gradients.reads(
        score(s[0], kept.at(b, h, p * 0, p * 0)), {tensor})
      local offset, nth = list[mine[1].at].at, mine[1].index
      for k = 2, #mine do
        local here = cute.eq(n, k - 1)
        offset = cute.where(here, list[mine[k].at].at, offset)
        nth = cute.where(here, mine[k].index, nth)
      end
      return offset, nth, h, b
    end
    local block, lane = cute.arch.block_idx(), cute.arch.lane_idx()
    local element = read(block)
    local sum, first = 0.0, true
    for p in cute.range((cute.arch.grid_dim())) do
      local offset, nth, h, b = read(p)
      local same = cute.eq(offset, element)
      first = first & ~(same & cute.lt(p, block))
      cute.when(same, function()
        for m in cute.range(lane, cute.size(parts, 1), 32) do
          sum = sum + parts[{nth, m, h, b}]
        end
      end)
    end
    sum = cute.arch.warp_reduction_sum(sum)
    cute.when(first & cute.eq(lane, 0), function()
      sums[element] = sums[element] + sum
    end)
    if done then done() end
  end
  return {kernel = cute.kernel("attention_sums", {block = 32}, kernel),
          block = 32, grid = function(H, B) return {#mine * H * B, 1, 1} end}
end

--- Returns the kernel (sinks, LSE, delta, dSinks[, cu_q]) that computes the
-- gradients of sinks, and its launch parameters. sinks and dSinks are (H); LSE
-- and delta, each row's sum of O dO, are (B,H,S), or (H,total) with the
-- positions cu_q (B + 1) of sequences. A sink has the weight P = exp(sink -
-- LSE) in each row of its head, and no value. Therefore its gradient is the sum
-- of -P delta over the rows, in a fixed order. padding: each sequence of delta
-- begins at a multiple of this number of rows, as in
-- kernels/attention_bwd_sm90/sequences.lua.
---@param padding? integer
---@return {kernel: any, block: integer, grid: function}
function score_gradients.sinks(padding)
  local warps = THREADS // 32
  local function kernel(sinks, LSE, delta, dSinks, cu_q)
    local tid, h = cute.arch.thread_idx(), cute.arch.block_idx()
    local sink, sum = sinks[h]:to(cute.f32), 0.0
    local function add(L, d, from, to)
      for s in cute.range(from + tid, to, THREADS) do
        -- If a row sees no key and its sink is -inf, its LSE is -inf, and
        -- exp(sink - LSE) would be NaN.
        local weight = cute.exp(sink - L[s])
        sum = sum - cute.where(cute.gt(sink, -math.huge), weight, 0.0) * d[s]
      end
    end
    if cu_q then
      for b in cute.range(cute.size(cu_q) - 1) do
        local part = sequences.part(cu_q, b, cute.size(LSE, 1), padding or 1)
        local from = padding and part.tile * padding or part.first
        add(flash.section(LSE(h, _), part.first, part.rows),
            flash.section(delta(h, _), from, part.rows), 0, part.rows)
      end
    else
      for b in cute.range(cute.size(LSE, 0)) do
        add(LSE(b, h, _), delta(b, h, _), 0, cute.size(LSE, 2))
      end
    end
    local all = cute.make_smem_tensor(cute.f32, cute.make_layout {warps})
    sum = cute.arch.warp_reduction_sum(sum)
    cute.when(cute.eq(tid % 32, 0), function() all[tid // 32] = sum end)
    cute.arch.sync_threads()
    cute.when(cute.eq(tid, 0), function()
      local total = all[0]
      for w = 1, warps - 1 do total = total + all[w] end
      dSinks[h] = total:to(dSinks.element_type)
    end)
  end
  return {kernel = cute.kernel("attention_sinks", {block = THREADS}, kernel),
          block = THREADS, grid = function(H) return {H, 1, 1} end}
end

return score_gradients
-- SPDX-License-Identifier: MIT
