--- Transposed scores of kernels/attention_bwd_sm90 in registers: a thread's
-- accumulators have keys as rows, and rows of Q as columns.
local cute = require "cute"
local flash = require "kernels.flash"
local kept = require "kernels.kept"

local _ = cute._

local weights = {}

--- Makes 16-bit registers for transposed scores. Returns them as accumulators,
-- and as the left operand of a product.
function weights.narrowed(o, mma)
  local M, N = o.tile[1], o.tile[2]
  local all = cute.make_rmem_tensor(mma:partition_shape_C {N, M}, o.dtype)
  return all, cute.make_tensor(all.iterator, cute.make_layout
    {{2, 2, 2}, 1, M // 16})
end

--- Converts the accumulators of the kth 16 rows of Q to a part of a left
-- operand.
function weights.narrow(acc, to, k, dtype)
  local from = cute.make_tensor(acc.iterator, to.layout)(_, _, k)
  to(_, _, k):store(from:load():to(dtype))
end

--- Returns a function (stage) that stores dS^T, the registers ds, to shared
-- memory.
function weights.saver(o, x, ds)
  local atom = cute.make_copy_atom("SM90_U16x8_STSM_T", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.scores):get_slice(x.tid)
  local from, to = r2s:retile(ds), r2s:partition_D(x.ds.turned)
  return function(stage) cute.copy(atom, from, to(_, _, _, stage)) end
end

--- Returns a function (stage, i) that loads two row values from `near` (LSEs or
-- deltas in shared memory). The two values belong to columns 2i and 2i + 1 of
-- this thread's scores, whose columns are rows of Q.
function weights.numbers(o, near)
  local quad, n = cute.arch.lane_idx() % 4, o.tile[1] // 8
  local all = cute.make_tensor(near.iterator, cute.make_layout(
    {2, 4, n, cute.size(near, 1)}, {1, 2, 8, o.tile[1]}))
  return function(stage, i)
    local both = all(_, quad, i, stage):load()
    return both[0], both[1]
  end
end

--- Returns a function hide(s, row, value), which replaces hidden elements of
-- scores s by `value`. The columns of s are the rows of Q from `row` on.
function weights.hider(o, x)
  local off = x.T - x.S
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor {o.tile[2], o.tile[1]}))
  return function(s, row, value)
    local all = flash.by_rows(s)
    for i = 0, cute.size(all, 0) - 1 do
      local key = x.n * o.tile[2] + places(i, 0)[1]
      local from = o.right and key - (off + o.right) - row
      local to = o.left and key - (off - o.left) - row
      local inside = cute.lt(key, x.T)
      for j = 0, cute.size(all, 1) - 1 do
        local at, seen = places(i, j)[2], inside
        if from then seen = seen & cute.ge(at, from) end
        if to then seen = seen & cute.le(at, to) end
        all[{i, j}] = cute.where(seen, all(i, j), value)
      end
    end
  end
end

--- Returns a function f(s, row, r) for kernels with score_mod or mask_mod. s:
-- the scores of a tile; r: the index of the head of Q among the heads that
-- share a head of K. f returns a function change(k), which replaces the scores
-- in block k of s. A block has the scores of 8 rows of Q. change(k) returns the
-- derivatives of the new scores, or nil if there is no score_mod.
function weights.changer(o, x)
  local M, N = o.tile[1], o.tile[2]
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor {N, M}))
  return function(s, row, r)
    local given = {score = x.score, mask = x.mask, scale = x.score and x.scale,
      b = x.b, h = x.at.g * x.heads + r, tile = {N, M}, rows = x.T,
      columns = x.S, turned = true}
    local first = 0  -- the first column of the block of scores to change
    local draw = kept.turned(given, places, x.n * N, row)
    function given.draw(i, j, p, seed) return draw(i, first + j, p, seed) end
    local change = flash.change(given)
    return function(k)
      first = 2 * k
      return change(cute.make_tensor(s.iterator + 4 * k, cute.make_layout
        {{2, 2, 1}, 1, 1}), function(i, j) return places(i, first + j) end,
        x.n * N, row, true)
    end
  end
end

--- Returns a function (s, row, masked, r) that replaces scores s by the weights
-- P^T. `row` is the first of their rows of Q. p16, left: 16-bit registers from
-- weights.narrowed. With o.rounded, score_mod or mask_mod, these registers also
-- receive P^T. With score_mod or mask_mod, P^T in s is then multiplied by the
-- derivatives of the scores. hidden, masked, r: see transposed.lua.
function weights.weigher(o, x, hidden, p16, left)
  local c, logs = x.scale * flash.LOG2E, weights.numbers(o, x.q.near)
  local hide = hidden and weights.hider(o, x)
  local change = o.modify and weights.changer(o, x)

  -- Replaces scores by P = 2^(c s - LSE).
  local function powers(s, row, masked)
    if hide then
      cute.when(masked, function() hide(s, row, -math.huge) end)
    end
    -- Each pass handles the accumulators of 8 rows of Q.
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = logs(x.q.state.index, k)
      for e = 4 * k, 4 * k + 3 do
        local power = cute.fma(s(e), c, -(e % 2 == 0 and a or b))
        s[e] = flash.exp2(x.bounded and cute.min(power, 1.0) or power)
      end
      if o.rounded and k % 2 == 1 then
        weights.narrow(s, left, k // 2, o.dtype)
      end
    end
  end

  -- Applies score_mod and mask_mod, replaces scores s by P, and sets the left
  -- operand P^T. Then multiplies P in s by the derivatives of the scores.
  local function changed_powers(s, row, masked, r)
    local p = cute.make_fragment_like(s)
    local base = x.score and flash.LOG2E or c
    local change_block = change(s, row, r)
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = logs(x.q.state.index, k)
      local slope = change_block(k)
      for e = 4 * k, 4 * k + 3 do
        local power = flash.exp2(cute.fma(s(e), base, -(e % 2 == 0 and a or b)))
        p[e] = power
        -- The derivative of a score that the mask hides may be NaN. Its weight
        -- is 0, so the product is set to 0.
        s[e] = slope and cute.where(cute.eq(power, 0), 0.0,
                                    power * slope(e - 4 * k)) or power
      end
      if k % 2 == 1 then weights.narrow(p, left, k // 2, o.dtype) end
    end
    if hide then
      cute.when(masked, function()
        hide(s, row, 0.0)
        hide(p16, row, 0.0)
      end)
    end
  end

  return change and changed_powers or powers
end

return weights
-- SPDX-License-Identifier: MIT
