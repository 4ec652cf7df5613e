--- Traces the kernels of cute.ops once for any size, such as a number of rows.
--
-- A function of tensors is called for several sizes. All calls use the kernels
-- that were chosen in the first call. The extents and strides that differ
-- between the calls become symbols (cute.symbolic), and the kernels are traced
-- with them. range.lua then finds formulas that compute the numbers of each
-- launch, such as its grid, from the size.
local calls = require "cute.ops.calls"
local choose = require "cute.ops.choose"
local core = require "cute.core"
local cute = require "cute"
local describe = require "cutelua.bundle.describe"
local families = require "cute.ops.families"
local range = require "cutelua.bundle.range"
local report = require "cute.lang.report"

-- The end of error messages about functions with sizes = {first, "any"}.
local any = {REMEDY = ': write the largest size in place of "any"'}

local fail = describe.fail

-- LARGEST is the largest size. SPAN is the largest number of elements that a
-- tensor may span. Kernels compute indices with 32 bits, and threads of the
-- last tile compute indices beyond the last element.
local LARGEST, SPAN = 1 << 30, (1 << 31) - (1 << 20)

-- A recorded size is the first size plus the step times one of these numbers:
-- small numbers, and the neighbours of powers of two. Size 1 is not recorded,
-- because strides of modes with one element are 0.
local TRIED = {1, 2, 3, 7, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 640}

--- Returns the sizes for which a function is called.
---@param from integer
---@param step integer
---@return integer[]
function any.sizes(from, step)
  local list = {}
  for i, n in ipairs(TRIED) do list[i] = from + n * step end
  return list
end

--- Returns the size for which kernels are chosen if the script gives no
-- example.
function any.main(sizes)
  for _, size in ipairs(sizes) do if size >= 128 then return size end end
  return sizes[#sizes]
end

local Any = {}
Any.__index = Any

--- Returns an object that records the calls of one function.
---@param name string
---@param from integer
---@param step integer
function any.new(name, from, step)
  return setmetatable({name = name, from = from, step = step, sizes = {},
                       chosen = {}, typical = {}, launches = {},
                       watching = true}, Any)
end

--- Begins to record a call of the function for one size.
function Any:begin() self.choice, self.rows, self.at = 0, 0, 0 end

-- Returns the number of rows for which an operation chooses its kernel. For
-- every size, this is the number m that the operation had for the first size.
function Any:rows_of(m)
  self.rows = self.rows + 1
  self.typical[self.rows] = self.typical[self.rows] or m
  return self.typical[self.rows]
end

-- Reports whether candidate c for product p has a kernel of its own family that
-- takes its extents at launch. If p has scale factors (p.format), c does not
-- qualify, because its launch copies them to tiles and so has fixed extents.
local function is_any(c, p)
  return c.family == c.base and families.of(c.base).any and not p.format
end

-- Returns the candidate for product p. The calls for all sizes use the
-- candidate that the first call chose.
function Any:choose(p)
  self.choice = self.choice + 1
  local kept = self.chosen[self.choice]
  if not kept then
    for _, c in ipairs((choose.list(p))) do
      if not kept and is_any(c, p) and not c.moved and not c.swap then
        kept = c
      end
    end
    if not kept then
      fail(self.name, "there is no kernel for all sizes of a product of %s and "
           .. "%s%s", p.a, p.b, any.REMEDY)
    end
    self.chosen[self.choice] = kept
  elseif p.order and p.order ~= kept.order then
    fail(self.name, "its order of additions depends on the size, so one "
         .. "kernel cannot serve all sizes%s",
         any.REMEDY)
  end
  local own, options = {}, {}
  for k, v in pairs(kept) do own[k] = v end
  for k, v in pairs(kept.options) do options[k] = v end
  own.options, own.how, own.others, own.refused = options, "by rule", {}, {}
  return own
end

---------------------------------------------------------------------------
-- Extents and strides
---------------------------------------------------------------------------

local function is_plain(t)
  return core.typename(t) == "tensor" and not t.layout.is_composed
    and t.memspace ~= "coord"
end

-- Returns all extents, then all strides of a tensor.
local function numbers_of(t)
  local list = cute.flatten_to_tuple(t.shape)
  list = table.move(list, 1, #list, 1, {})
  local stride = cute.flatten_to_tuple(t.stride)
  return table.move(stride, 1, #stride, #list + 1, list)
end

-- Records the extents and strides of a launch's tensors.
function Any:see(step, list)
  local l = self.launches[self.at]
  if not l then
    l = {kernel = step.kernel.name, args = {}, share = step.share, count = {}}
    self.launches[self.at] = l
  end
  local first = list.n - (step.extents or 0)
  l.count[#l.count + 1] = step.extents
    and cute.product {table.unpack(list, first + 1, list.n)}
  for i = 1, list.n do
    local numbers = is_plain(list[i]) and numbers_of(list[i])
      or i > first and {list[i]}
    if numbers then
      local a = l.args[i] or {values = {}, is_number = i > first}
      l.args[i] = a
      table.insert(a.values, numbers)
    end
  end
end

--- Ends the recorded call for a size.
function Any:finish(size)
  table.insert(self.sizes, size)
  self.count = self.count or self.at
  if self.count == 0 then fail(self.name, "the function launched no kernel") end
  if self.at ~= self.count then
    fail(self.name, "the function launches %d kernels for size %d and %d for "
      .. "size %d%s", self.count, self.sizes[1], self.at, size, any.REMEDY)
  end
end

-- Returns the largest number that divides a value at every size, if the value
-- is a linear function of the size; else 1. `values` has the value for each
-- recorded size.
function Any:divisor(values)
  local index = {}
  for i, size in ipairs(self.sizes) do
    index[i] = (size - self.from) // self.step
  end
  local rise, run = values[2] - values[1], index[2] - index[1]
  if rise % run ~= 0 then return 1 end
  local b = rise // run
  local a = values[1] - b * index[1]
  for i, v in ipairs(values) do
    if v ~= a + b * index[i] then return 1 end
  end
  return core.gcd(a, b)
end

--- Replaces each extent or stride that varies with the size by a symbol. All
-- sizes must have been called before. Two numbers share a symbol if they are
-- equal at every size.
function Any:fit()
  local symbols = {}
  for _, l in ipairs(self.launches) do
    for i, a in pairs(l.args) do
      local first = a.values[1]
      for at in ipairs(first) do
        local values, varies = {}, false
        for k, list in ipairs(a.values) do
          if #list ~= #first or #a.values ~= #self.sizes then
            fail(self.name, "the rank of argument %d of kernel %s depends on "
              .. "the size%s", i, l.kernel, any.REMEDY)
          end
          values[k] = list[at]
          varies = varies or list[at] ~= first[at]
        end
        if varies then
          local key = table.concat(values, " ")
          symbols[key] = symbols[key]
            or cute.sym_int(32, {divisibility = self:divisor(values)})
          a.symbol = a.symbol or {}
          a.symbol[at] = symbols[key]
        end
      end
    end
  end
  self.watching = false
end

--- Replaces the grid of each step (launch) of a variant by a formula of the
-- size. It does so only if a tensor's element count is a multiple of the size
-- and each block processes the same number of elements.
function Any:grids(variant)
  for at, l in ipairs(self.launches) do
    local step, count = variant.steps[at], l.count
    local c = l.share and count[1] // self.sizes[1]
    for i, size in ipairs(self.sizes) do
      if c and count[i] ~= c * size then c = nil end
    end
    if c then
      local g = core.gcd(c, l.share)
      step.grid[1] = range.restore {a = 0, b = 1, c = c ~= g and c // g or nil,
                                    d = l.share // g}
    end
  end
end

-- Returns a copy of the nested tables x whose leaves are replaced by symbols.
-- Leaf n stays if symbol[n] is nil. at[1] counts the leaves before x.
local function replaced(x, symbol, at)
  if type(x) ~= "table" then
    at[1] = at[1] + 1
    return symbol[at[1]] or x
  end
  local out = {}
  for i, v in ipairs(x) do out[i] = replaced(v, symbol, at) end
  return out
end

-- Returns the declaration of argument t of a launch. Modes with one element get
-- the strides that they have for other sizes.
local function declared(t, a)
  local at, first = {0}, a.values[1]
  local shape = replaced(t.shape, a.symbol, at)
  local fixed = {}
  for i, v in ipairs(first) do fixed[i] = a.symbol[i] or v end
  return cute.symbolic {dtype = t.element_type, shape = shape,
                        stride = replaced(t.stride, fixed, at),
                        align = math.min(t.alignment, 256)}
end

-- Returns the extents of a launch's arguments as text, with ? for each extent
-- that varies.
local function extents_text(l)
  local out = {}
  for i, a in pairs(l.args) do
    local own, first = {}, a.values[1]
    for k = 1, a.is_number and 1 or #first // 2 do
      own[k] = a.symbol and a.symbol[k] and "?" or tostring(first[k])
    end
    if a.symbol then
      out[#out + 1] = ("argument %d has the extents (%s)"):format(i,
        table.concat(own, ","))
    end
  end
  table.sort(out)
  return table.concat(out, ", ")
end

-- Launches a step of an operation as cute.ops.calls.launch does, but with
-- symbols in place of the numbers that vary with the size.
function Any:launch(step, list, o, check)
  self.at = self.at + 1
  if self.watching then return self:see(step, list) end
  if check then check() end
  local l = self.launches[self.at]
  local args, values = {}, table.move(list, 1, list.n, 1, {n = list.n})
  table.move(list, 1, list.n, 1, args)
  for i, a in pairs(l and l.args or {}) do
    if a.symbol then
      args[i] = a.is_number and a.symbol[1] or declared(list[i], a)
    elseif a.is_number then
      values[i] = cute.constexpr(list[i])
      args[i] = values[i]
    end
  end
  local ok, p, why = pcall(function()
    return step.kernel(table.unpack(args, 1, list.n)):compile {
      grid = step.grid, block = step.block, cluster = step.cluster,
      pdl = step.pdl, device = o.device}
  end)
  if not ok and l then
    fail(self.name, "kernel %s needs static extents, but %s%s\n  %s", l.kernel,
         extents_text(l), any.REMEDY, tostring(p))
  elseif not p then
    report.raise(why)
  end
  if p.kind.symbolic then p(table.unpack(values, 1, list.n))
  else p:launch() end
end

--- Makes session.any choose and launch the kernels of cute.ops. Returns a
-- function that restores the original functions.
function any.patch(session)
  local was_choose, was_launch = choose.choose, calls.launch
  local was_typical = calls.typical
  calls.forget()
  choose.choose = function(p) return session.any:choose(p) end
  calls.launch = function(...) return session.any:launch(...) end
  calls.typical = function(m) return session.any:rows_of(m) end
  calls.any = true
  return function()
    choose.choose, calls.launch = was_choose, was_launch
    calls.typical, calls.any = was_typical, false
    calls.forget()
  end
end

-- Returns the number of elements that tensor t of a variant spans for a size.
local function span(t, size)
  local n = 1.0
  for i, e in ipairs(t.shape) do
    n = n + (range.value(e, size) - 1.0) * range.value(t.stride[i], size)
  end
  return n
end

--- Returns the largest size for which each tensor spans at most SPAN elements.
-- Sizes are `step` apart and begin at `from`.
function any.last(v, from, step)
  local low, high = 0, (LARGEST - from) // step
  while low < high do
    local middle = (low + high + 1) // 2
    local fits = true
    for _, t in ipairs(v.tensors) do
      fits = fits and span(t, from + middle * step) <= SPAN
    end
    if fits then low = middle else high = middle - 1 end
  end
  return from + low * step
end

-- Raises an error unless a single variant without a workspace serves all sizes.
-- merged: the result of range.merge.
local function check(name, merged, list)
  if not merged then
    fail(name, "no extent of an argument grows with the size")
  end
  local first = merged[1]
  if merged[2] then
    local to = first.size and first.size.to or list[1][1]
    local other
    for i, row in ipairs(list) do
      if row[1] == to then other = list[i + 1][1] end
    end
    fail(name, "no formula gives the launches for both sizes, %d and %d%s, or "
      .. "use a larger step", to, other, any.REMEDY)
  end
  if first.regions[1] then
    fail(name, "the function needs a workspace, whose bytes would depend on "
      .. "the size of the call%s", any.REMEDY)
  end
end

-- Two large sizes, as multiples of the distance between sizes. They are tried
-- if a launch has the same grid for all smaller sizes: one block may handle all
-- rows of a small size.
local FAR = {2048, 16384}

-- Reports whether a launch of variant v has the same grid for all sizes.
local function is_constant(v)
  for _, s in ipairs(v.steps) do
    local g = s.grid
    if not (range.is_formula(g[1]) or range.is_formula(g[2])
      or range.is_formula(g[3])) then return true end
  end
  return false
end

--- Returns the variant for all sizes. If several formulas fit a number at the
-- recorded sizes, it records further sizes to select one.
---@param name string
---@param list table[] {{size, variant}, ...}
---@param from integer
---@param step integer
---@param at fun(size: integer): table records a size: returns an entry of
-- `list`
---@param source fun(step: table): string
function any.merged(name, list, from, step, at, source)
  local is_far = false
  while true do
    local merged, open = range.merge(list, step, source)
    check(name, merged, list)
    local more = {range.telling(open, from, step)}
    if not more[1] and not is_far and is_constant(merged[1]) then
      is_far = true
      for i, n in ipairs(FAR) do more[i] = from + n * step end
    end
    if not more[1] then return merged[1] end
    -- Records the first size again, because range.merge replaced its variant's
    -- numbers by formulas.
    list[1] = at(list[1][1])
    for _, size in ipairs(more) do list[#list + 1] = at(size) end
    table.sort(list, function(a, b) return a[1] < b[1] end)
  end
end

return any
-- SPDX-License-Identifier: MIT
