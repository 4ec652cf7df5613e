--- What specs of cute.ops share: operands of any strides, and products of them
-- in plain Lua.
local core = require "cute.core"
local cute = require "cute"

local ops = {}

--- A generator of its own: pick(n) is 0 to n - 1, pick(list) one of it.
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

--- A tensor of small whole numbers (`seed` nil: of what nobody should read) and
-- of strides that `pick` decides: either of the last two modes
-- fastest, rows padded or not, elements between them, batches in any place and,
-- unless it is written, one for all, from any element on.
---@param kind? string of strides: "k" dense rows, "m" dense columns, else any
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

--- Element (..., i, j) of t, or of the only batch that it has there.
function ops.at(t, batch, i, j)
  local c, rank = {}, cute.rank(t)
  for mode = 1, rank - 2 do
    local b = batch[#batch - (rank - 2) + mode]
    c[mode] = t.shape[mode] == 1 and 0 or b
  end
  c[rank - 1], c[rank] = i, j
  return t(table.unpack(c))
end

--- f(batch, i, j, sum of A's row i times B's row j) for all elements of D.
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
    local a, b = {}, {}
    for k = 0, K - 1 do
      for i = 0, M - 1 do a[i * K + k] = ops.at(A, batch, i, k) end
      for j = 0, N - 1 do b[j * K + k] = ops.at(B, batch, j, k) end
    end
    for i = 0, M - 1 do
      for j = 0, N - 1 do
        local sum = 0
        for k = 0, K - 1 do sum = sum + a[i * K + k] * b[j * K + k] end
        f(batch, i, j, sum)
      end
    end
  end
end

--- x as a type has it.
function ops.rounded(dtype)
  local cell = core.buffer(tostring(dtype), 1)
  return function(x)
    cell[0] = x
    return cell[0]
  end
end

--- The first element of D that is not what want(batch, i, j, sum) says, in
-- words; nil: none.
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

--- Specs of random problems: random(number, device) raises what is wrong.
-- They are busted's `it` in parts of ten, and one of others on a GPU.
function ops.problems(it, random)
  local function all(from, to, device)
    for number = from, to do
      local ok, why = pcall(random, number, device)
      if not ok then error(("problem %d: %s"):format(number, why)) end
    end
  end
  for part = 0, 7 do
    it("gives what Lua gives of random operands " .. part, function()
      all(part * 10 + 1, part * 10 + 10)
    end)
  end
  it("does so on a GPU #gpu", function() all(1000, 1150, "gpu") end)
end

return ops
