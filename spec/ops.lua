--- Helpers for specs of cute.ops: they make operands with any strides, and
-- compare products of these operands with sums in f64 on the host.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

local ops = {}

--- Returns a random generator `pick`: pick(n) returns a number from 0 to n - 1,
-- and pick(list) returns an element of the list.
function ops.random(seed)
  local state = seed * 0x9e3779b97f4a7c15 + 1
  return function(what)
    state = state * 6364136223846793005 + 1442695040888963407
    local x = state >> 33
    if type(what) == "table" then return what[x % #what + 1] end
    return x % what
  end
end

local function is_unsigned(dtype) return dtype:find "^u" end

--- Returns a tensor of small whole numbers or, without `seed`, of values that
-- no kernel should read. `pick` chooses the strides at random: which of the
-- last two modes is contiguous, the padding of rows, gaps between elements, the
-- order of batches, the first element. With a seed, batches may share one
-- matrix.
---@param kind? string the kind of strides: "k" dense rows, "m" dense columns,
-- else any
function ops.tensor(pick, shape, dtype, seed, kind)
  dtype = tostring(dtype)
  local rank, stride, at = #shape, {}, 1
  local order = {}
  for i = rank, 1, -1 do order[#order + 1] = i end
  kind = kind or pick {"k", "m", "k", "m", "any"}
  if kind ~= "k" then order[1], order[2] = order[2], order[1] end
  local any = kind == "any"
  if any then at = pick {1, 1, 2, 3} end
  for i, mode in ipairs(order) do
    stride[mode] = at
    at = at * shape[mode] + (any and i == 1 and pick {0, 1, 3, 8} or 0)
  end
  if seed then
    for mode = 1, rank - 2 do
      if pick(4) == 0 then stride[mode] = 0 end
    end
  end
  local first = any and pick {0, 0, 1, 3, 8} or 0
  local b = core.buffer(dtype, at + first)
  if seed then b:fill_int(seed, is_unsigned(dtype) and 0 or -2, 3)
  else b:fill(core.find_dtype(dtype).is_integer and 77 or 0 / 0) end
  local t = cute.make_tensor(b, cute.make_layout {1})
  return cute.make_tensor(t.iterator + first, cute.make_layout(shape, stride))
end

--- Calls f(coordinates, number) for all elements of a shape, row-major.
function ops.each_of(shape, f)
  local n = 1
  for _, e in ipairs(shape) do n = n * e end
  for at = 0, n - 1 do
    local c, rest = {}, at
    for m = #shape, 1, -1 do c[m], rest = rest % shape[m], rest // shape[m] end
    f(c, at)
  end
end

--- Returns the element that t, broadcast to a larger shape, has at coordinates
-- c of that shape.
function ops.element(t, c)
  local rank, own = cute.rank(t), {}
  for m = 1, rank do
    own[m] = cute.size(t.shape[m]) == 1 and 0 or c[#c - rank + m]
  end
  return t(table.unpack(own))
end

--- Returns a random shape of at most about `most` elements.
function ops.shape(pick, most)
  local all = {}
  for m = 1, pick {1, 2, 2, 3, 3, 4} do
    all[m] = pick {1, 2, 3, 8, 17, 32, 40}
  end
  while cute.product(all) > most do table.remove(all) end
  return all[1] and all or {pick {1, 7, most}}
end

--- Returns a random shape that broadcasts to `all`.
function ops.part(pick, all)
  local part = table.move(all, pick(#all) + 1, #all, 1, {})
  for m = 1, #part do if pick(3) == 0 then part[m] = 1 end end
  return part
end

--- Returns a tensor with random strides, whose modes have any order in
-- memory.
function ops.any(pick, shape, dtype, seed)
  if #shape < 2 or pick(2) == 0 then
    local wide = table.move(shape, 1, #shape, 3 - math.min(2, #shape), {1})
    local t = ops.tensor(pick, #shape < 2 and wide or shape, dtype, seed)
    if #shape > 1 then return t end
    return cute.make_tensor(t.iterator, cute.make_layout({shape[1]},
                                                         {t.stride[2]}))
  end
  local order = {}
  for m = 1, #shape do table.insert(order, pick(m) + 1, m - 1) end
  local l = cute.make_ordered_layout(shape, order)
  local b = core.buffer(dtype, cute.cosize(l) + 3)
  if seed then b:fill_int(seed, is_unsigned(dtype) and 0 or -2, 3)
  else b:fill(0) end
  return cute.make_tensor(cute.make_tensor(b, cute.make_layout {1}).iterator
                          + pick {0, 0, 1, 2}, l)
end

local CODES = {[8] = "u8", [16] = "u16", [32] = "u32", [64] = "u64"}

--- Returns a tensor with random strides. `what` chooses its values: "few",
-- numbers near 0; "all", any bits, including special floats; "none", zeros.
function ops.scattered(pick, shape, dtype, what)
  local t = ops.any(pick, shape, dtype, what ~= "none" and 1 or nil)
  if what ~= "all" then return t end
  local bits = cute.recast_tensor(t, CODES[t.element_type.bits])
  local mask = t.element_type.bits == 64 and -1
    or (1 << t.element_type.bits) - 1
  local narrow = t.element_type.is_float and t.element_type.bits >= 32
  ops.each_of(shape, function(c)
    local x = pick(1 << 31) << 33 ~ pick(1 << 31) << 11 ~ pick(1 << 20)
    if narrow and pick(4) > 0 then t[c] = (pick(2001) - 1000) / pick {8, 7, 3}
    else bits[c] = x & mask end
  end)
  return t
end

--- Returns element (..., i, j) of t; a batch mode of extent 1 broadcasts.
function ops.at(t, batch, i, j)
  local c, rank = {}, cute.rank(t)
  for mode = 1, rank - 2 do
    local b = batch[#batch - (rank - 2) + mode]
    c[mode] = t.shape[mode] == 1 and 0 or b
  end
  c[rank - 1], c[rank] = i, j
  return t(table.unpack(c))
end

-- Returns the matrix of a batch of t (..., n, k) as a row-major buffer of f64.
local function matrix(t, batch)
  local rank, buffer, offset = cute.rank(t), core.param_memory(t)
  local at = offset * 8 // t.element_type.bits
  for mode = 1, rank - 2 do
    local b = batch[#batch - (rank - 2) + mode]
    at = at + (t.shape[mode] == 1 and 0 or b) * t.stride[mode]
  end
  local n, row = t.shape[rank - 1], t.stride[rank - 1]
  local k, column = t.shape[rank], t.stride[rank]
  local list = {}
  for i = 0, n - 1 do
    local values = buffer:list(at + i * row, (k - 1) * column + 1)
    for e = 1, #values, column do list[#list + 1] = values[e] end
  end
  return core.buffer_from("f64", list)
end

--- Calls f(batch, i, j, sum) for all elements of D, where sum is the dot
-- product of A's row i and B's row j.
function ops.each(A, B, D, f)
  local rank = cute.rank(D)
  local M, N, K = D.shape[rank - 1], D.shape[rank], A.shape[cute.rank(A)]
  local batches = 1
  for mode = 1, rank - 2 do batches = batches * D.shape[mode] end
  for l = 0, batches - 1 do
    local batch, rest = {}, l
    for mode = rank - 2, 1, -1 do
      batch[mode], rest = rest % D.shape[mode], rest // D.shape[mode]
    end
    local sums = core.gemm_reference(matrix(A, batch), matrix(B, batch),
      core.buffer("f64", M * N), M, N, K):list()
    for i = 0, M - 1 do
      for j = 1, N do f(batch, i, j - 1, sums[i * N + j]) end
    end
  end
end

--- Returns a function that rounds x to a type.
function ops.rounded(dtype)
  local cell = core.buffer(tostring(dtype), 1)
  return function(x)
    cell[0] = x
    return cell[0]
  end
end

--- Describes the first element of D that differs from want(batch, i, j, sum).
-- Returns nil if no element differs.
function ops.differs(A, B, D, want)
  local wrong
  local rounded = ops.rounded(D.element_type)
  ops.each(A, B, D, function(batch, i, j, sum)
    local x, y = ops.at(D, batch, i, j), rounded(want(batch, i, j, sum))
    if x ~= y and not wrong then
      wrong = ("(%d,%d) is %s, not %s"):format(i, j, x, y)
      if #batch > 0 then wrong = table.concat(batch, ",") .. ": " .. wrong end
    end
  end)
  return wrong
end

--- Defines specs of random problems. random(number, device) raises an error if
-- a result is wrong. Each test runs ten problems; one more test runs other
-- problems on a GPU.
function ops.problems(it, random)
  local function all(from, to, device)
    for number = from, to do
      local ok, why = pcall(random, number, device)
      if not ok then error(("problem %d: %s"):format(number, why)) end
    end
  end
  for part = 0, 7 do
    it("gives Lua's results for random operands " .. part
       .. support.long(part + 1), function()
      all(part * 10 + 1, part * 10 + 10)
    end)
  end
  it("does so on a GPU #gpu", function() all(1000, 1150, "gpu") end)
end

return ops
-- SPDX-License-Identifier: MIT
