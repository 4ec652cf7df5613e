--- Selects rows of a table by index. Also computes the gradient of the table.
--
--     local k = embedding {dtype = cute.bf16, rows = 32000, n = 4096}
--     k.kernel(I, W, Y):launch {grid = k.grid(m), block = k.block}
--
-- Forward: Y[m] = W[I[m]]. The table W is (rows,N). The M indices I are i32 or
-- i64, and the result Y is (M,N). An index outside 0 to rows - 1 gives a row of
-- NaNs.
--
-- Backward (backward = true): kernel(I, dY, dW) sums the rows of dY (M,N) that
-- have the same index, and writes the sum to the row of dW at that index. Rows
-- of dW whose index does not occur keep their values. There is a block for each
-- position of I. If an index occurs several times, the block of its first
-- position adds all rows of dY with that index, in ascending order. Therefore
-- results are reproducible. Sums are computed in f32.
local cute = require "cute"
local rules = require "kernels.operand_rules"

local BLOCK, WARP = 128, 32
local UNROLL = 8  -- number of indices that a thread compares at once

local function at(t, row, n, from, width)
  return cute.make_tensor(t.iterator + (row:to(cute.i64) * n + from),
                          cute.make_layout({width}))
end

local function copy_rows(o, width, I, W, Y)
  local along = o.n // width
  local i = (cute.arch.block_idx()) * BLOCK + (cute.arch.thread_idx())
  local m, from = i // along, i % along * width
  cute.when(cute.lt(m, I.shape[1]), function()
    local row = I[m]
    local held = cute.make_rmem_tensor({width}, W.element_type)
    held:fill(0 / 0)
    cute.when(cute.ge(row, 0) & cute.lt(row, o.rows), function()
      cute.autovec_copy(at(W, row, o.n, from, width), held)
    end)
    cute.autovec_copy(held, at(Y, m, o.n, from, width))
  end)
end

-- Reports whether `index` occurs in I before position m. All threads of the
-- block get the result.
local function is_repeated(I, m, index, tid)
  local found = cute.var(0, cute.i32)
  for k in cute.range(tid, m, BLOCK, {unroll = UNROLL}) do
    found.value = found.value | cute.where(cute.eq(I[k], index), 1, 0)
  end
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {BLOCK // WARP})
  local any = cute.arch.vote_any_sync(cute.ne(found.value, 0))
  cute.when(cute.eq(tid % WARP, 0), function()
    s[tid // WARP] = cute.where(any, 1, 0)
  end)
  cute.arch.sync_threads()
  local all = s[0]
  for w = 1, BLOCK // WARP - 1 do all = all | s[w] end
  return cute.ne(all, 0)
end

local function add_rows(o, width, I, dY, dW)
  local m, part = cute.arch.block_idx()
  local tid = (cute.arch.thread_idx())
  local from = (part * BLOCK + tid) * width
  local index = I[m]
  local repeated = is_repeated(I, m, index, tid)
  local valid = cute.ge(index, 0) & cute.lt(index, o.rows)
  valid = valid & cute.lt(from, o.n)
  cute.when(cute.where(repeated, false, valid), function()
    local sum = cute.make_rmem_tensor({width}, cute.f32)
    sum:fill(0)
    for k in cute.range(m, I.shape[1], 1, {unroll = UNROLL}) do
      cute.when(cute.eq(I[k], index), function()
        local held = cute.make_rmem_tensor({width}, dY.element_type)
        cute.autovec_copy(at(dY, k, o.n, from, width), held)
        sum:store(sum:load() + held:load():to(cute.f32))
      end)
    end
    local out = cute.make_rmem_tensor({width}, dW.element_type)
    out:store(sum:load():to(dW.element_type))
    cute.autovec_copy(out, at(dW, index, o.n, from, width))
  end)
end

--- Returns a kernel with arguments (I, W, Y) or (I, dY, dW), and its launch
-- parameters.
---@param o table {rows: integer, n: integer, dtype: any, backward: boolean?,
-- width: integer?}
-- dtype: the widest type of the rows; width: elements of a vector
---@return table {kernel: any, block: integer, grid: fun(m: integer): any}
return function(o)
  rules.options("embedding", o, "rows n dtype backward width")
  rules.given("embedding", o, "rows", "n", "dtype")
  local widest = rules.widest(o.dtype.bits, o.n)
  rules.integers("embedding", o, {"width"}, 1, widest, "power")
  local width = o.width or widest
  local name = o.backward and "embedding_backward" or "embedding"
  local function grid(m)
    if not o.backward then return (m * (o.n // width) + BLOCK - 1) // BLOCK end
    return {m, (o.n + BLOCK * width - 1) // (BLOCK * width)}
  end
  return {block = BLOCK, grid = grid, kernel = cute.kernel(name,
    function(I, ...)
      (o.backward and add_rows or copy_rows)(o, width, I, ...)
    end)}
end
-- SPDX-License-Identifier: MIT
