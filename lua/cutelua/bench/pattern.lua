--- Describes how two tensors differ: where the wrong elements are, and how
-- their values depend on the right values.
--
--     all elements of columns 64 to 127 differ, and no others
--     got(i,j) = want(j,i); are two coordinates exchanged?
--
-- A sentence is returned only if it holds for all wrong elements. Values are
-- equal if the comparison's tolerance accepts them.
local core = require "cute.core"

local pattern = {}

local MOST = 1 << 22  -- larger tensors are not searched for patterns

--- Returns the coordinate of an element of a row-major shape.
---@param shape integer[]
---@param at integer
---@return integer[]
function pattern.coordinate(shape, at)
  local c = {}
  for i = #shape, 1, -1 do c[i], at = at % shape[i], at // shape[i] end
  return c
end

-- Returns the row-major number of an element, or nil if the shape has no such
-- element.
local function number_of(shape, coord)
  local at = 0
  for k, n in ipairs(shape) do
    if coord[k] < 0 or coord[k] >= n then return nil end
    at = at * n + coord[k]
  end
  return at
end

---------------------------------------------------------------------------
-- Positions of the wrong elements
---------------------------------------------------------------------------

-- Returns, for each mode, the ordered coordinates that wrong elements have.
local function spread(d)
  local lists = {}
  for k in ipairs(d.shape) do lists[k] = {} end
  for _, at in ipairs(d.wrong) do
    for k = #d.shape, 1, -1 do
      lists[k][at % d.shape[k]], at = true, at // d.shape[k]
    end
  end
  for k, n in ipairs(d.shape) do
    local set = lists[k]
    lists[k] = {}
    for x = 0, n - 1 do
      if set[x] then table.insert(lists[k], x) end
    end
  end
  return lists
end

-- Returns the ranges of consecutive numbers in an ordered list.
local function ranges(list)
  local out = {}
  for _, x in ipairs(list) do
    local r = out[#out]
    if r and r[2] == x - 1 then r[2] = x else out[#out + 1] = {x, x} end
  end
  return out
end

-- Returns the period of a list of ranges if all ranges have equal lengths and
-- distances, else nil. `extent` may cut the last range short.
local function period(list, extent)
  local first, step = list[1], list[2][1] - list[1][1]
  for i, r in ipairs(list) do
    local last = math.min(first[2] + (i - 1) * step, extent - 1)
    if r[1] ~= first[1] + (i - 1) * step or r[2] ~= last then return nil end
  end
  return first[1] < step and #list > 2 and step
end

local NOUNS = {{"element"}, {"row", "column"}}

-- Returns a noun for the coordinates of mode k, and a phrase that follows the
-- coordinates. k counts from 1; messages count modes from 0.
local function noun(d, k)
  local names = NOUNS[#d.shape]
  if names then return names[k], "" end
  return "coordinate", (" of mode %d"):format(k - 1)
end

local function interval(word, r)
  return r[1] == r[2] and ("%s %d"):format(word, r[1])
    or ("%ss %d to %d"):format(word, r[1], r[2])
end

-- Returns a text for a list of coordinates of mode k, such as "columns 64 to
-- 127". Also returns whether the text determines all of them.
local function place(d, k, list)
  local word, of = noun(d, k)
  local all, n = ranges(list), d.shape[k]
  local step = all[2] and period(all, n)
  if step then
    return ("%s of every %d%s"):format(interval(word, all[1]), step, of), true
  elseif #all == 1 and all[1][2] == n - 1 and #list > 1 then
    return ("the last %d %ss%s (%d to %d)"):format(#list, word, of, all[1][1],
                                                   n - 1), true
  elseif #all == 1 then
    return interval(word, all[1]) .. of, true
  elseif #list == 2 then
    return ("%ss %d and %d%s"):format(word, list[1], list[2], of), true
  end
  return ("%d of %d %ss%s (the first are %d, %d and %d)"):format(#list, n, word,
    of, list[1], list[2], list[3])
end

-- Regions relative to the diagonal of the last two modes: {name, function that
-- reports whether the element at a row and column is in the region}.
local SIDES = {
  {"above the diagonal (column > row)", function(r, c) return c > r end},
  {"below the diagonal (column < row)", function(r, c) return c < r end},
  {"on the diagonal", function(r, c) return r == c end},
}

-- Returns the number of pairs (r,c) of a shape for which a relation holds.
local function pairs_in(rows, columns, holds)
  local n = 0
  for r = 0, rows - 1 do
    for c = 0, columns - 1 do n = n + (holds(r, c) and 1 or 0) end
  end
  return n
end

local LEAST = 8  -- fewest wrong elements for which a pattern is reported

-- Reports whether a relation holds for all pairs of two lists.
local function implied(rows, columns, holds)
  for _, r in ipairs(rows) do
    for _, c in ipairs(columns) do
      if not holds(r, c) then return false end
    end
  end
  return true
end

-- If all wrong elements are on one side of the diagonal, returns a sentence
-- that says so, and whether all elements on that side are wrong. Returns nil if
-- the coordinates of each mode (`lists`) already imply the side.
local function side(d, lists)
  local n = #d.shape
  if n < 2 or #d.wrong < LEAST then return nil end
  local rows, columns = d.shape[n - 1], d.shape[n]
  for _, s in ipairs(SIDES) do
    local all = true
    for _, at in ipairs(d.wrong) do
      all = all and s[2](at // columns % rows, at % columns)
      if not all then break end
    end
    if all and not implied(lists[n - 1], lists[n], s[2]) then
      local each = d.n // (rows * columns) * pairs_in(rows, columns, s[2])
      if each == #d.wrong then
        return ("all elements %s differ, and no others"):format(s[1]), true
      end
      return "all differing elements are " .. s[1]
    end
  end
end

local SIGNS = {{"below 0", function(x) return x < 0 end},
               {"above 0", function(x) return x > 0 end},
               {"0", function(x) return x == 0 end}}

-- If exactly the elements of one sign are wrong, returns a sentence that says
-- so.
local function sign(d)
  if #d.wrong < LEAST or #d.wrong == d.n then return nil end
  for _, name in ipairs {"want", "got"} do
    for _, s in ipairs(SIGNS) do
      local next_wrong, exact, at = 1, true, 0
      while exact and at < d.n do
        local wrong = at == d.wrong[next_wrong]
        if wrong then next_wrong = next_wrong + 1 end
        exact = s[2](d[name](at)) == wrong
        at = at + 1
      end
      if exact then
        return ("exactly the elements in which %s is %s differ"):format(
          d.names[name], s[1])
      end
    end
  end
end

-- Returns a sentence about the positions of the wrong elements, or nil.
local function where(d)
  if #d.wrong == d.n or #d.wrong == 1 then return nil end
  local lists, product, parts, rule = spread(d), 1, {}, true
  for k, list in ipairs(lists) do
    product = product * #list
    if #list < d.shape[k] then
      local text, exact = place(d, k, list)
      parts[#parts + 1], rule = text, rule and exact
    end
  end
  local text = table.concat(parts, " and ")
  local full = ("%s%s differ, and no others"):format(
    #d.shape == 1 and "" or "all elements of ", text)
  if product == #d.wrong and rule then return full end
  local beside, exact = side(d, lists)
  if exact then return beside end
  local signed = sign(d)
  if signed then return signed end
  if product == #d.wrong then return full end
  return beside or parts[1] and "all differing elements are in " .. text or nil
end

---------------------------------------------------------------------------
-- Values
---------------------------------------------------------------------------

-- Reports whether got is close to f(want, index) in the elements of a list. An
-- element for which f returns nil is not compared; `least` elements must be
-- compared.
local function close_in(d, list, least, f)
  local left = #list
  for _, at in ipairs(list) do
    local want = f(d.want(at), at)
    if want == nil then
      left = left - 1
      if left < least then return false end
    elseif not d.close(d.got(at), want) then
      return false
    end
  end
  return true
end

-- Reports whether got is close to f(want, index) in all wrong elements. At
-- least half of them must be compared. To save time, first tests a sample of
-- the elements, which rejects most functions.
local function holds(d, f)
  return close_in(d, d.samples, 1, f)
    and close_in(d, d.wrong, (#d.wrong + 1) // 2, f)
end

-- Returns how many different numbers f returns for the wrong elements. Counting
-- stops at `most`.
local function distinct(d, f, most)
  local seen, n = {}, 0
  for _, at in ipairs(d.wrong) do
    local x = f(at)
    if x == x and not seen[x] then
      seen[x], n = true, n + 1
      if n == most then break end
    end
  end
  return n
end

local function number(x)
  return x == math.floor(x) and math.abs(x) < 1e15 and ("%.0f"):format(x)
    or ("%.5g"):format(x)
end

local KNOWN = {{"log2(e)", 1 / math.log(2)}, {"ln(2)", math.log(2)},
               {"pi", math.pi}}
local ROOTS = {{"1/%d", -1}, {"sqrt(%d)", 0.5}, {"1/sqrt(%d)", -0.5}}
local MOST_ROOT = 256  -- largest n for which a factor is shown as 1/n, sqrt(n)

-- Returns factor `a` as text. A nearby known number, such as pi or sqrt(2), is
-- used if the wrong elements agree with it, too.
local function factor(d, a)
  local x, minus = math.abs(a), a < 0 and "-" or ""
  local function is(y)
    return math.abs(x / y - 1) < 1e-2
      and holds(d, function(w) return (a < 0 and -y or y) * w end)
  end
  local whole = math.max(math.floor(x + 0.5), 1)
  if is(whole) then return minus .. number(whole) end
  for _, k in ipairs(KNOWN) do
    if is(k[2]) then return minus .. k[1] end
  end
  for _, form in ipairs(ROOTS) do
    local n = math.floor(x ^ (1 / form[2]) + 0.5)
    if n > 1 and n <= MOST_ROOT and is(n ^ form[2]) then
      return minus .. form[1]:format(n)
    end
  end
  return number(a)
end

-- If all wrong elements have the same value, returns a sentence that says so.
local function same(d)
  local first = d.got(d.wrong[1])
  for _, at in ipairs(d.wrong) do
    local x = d.got(at)
    if x ~= first and (x == x or first == first) then return nil end
  end
  if first == first and #d.wrong < 3 then return nil end
  return ("{got} is %s in each of them"):format(
    first ~= first and "NaN" or number(first))
end

-- Returns sums over the elements of a list, from which the numbers a and b of
-- got = a * want + b are computed.
local function moments(d, list)
  local m = {n = 0, g = 0, w = 0, gw = 0, ww = 0}
  for _, at in ipairs(list) do
    local g, w = d.got(at), d.want(at)
    if g - g == 0 and w - w == 0 then
      m.n, m.g, m.w = m.n + 1, m.g + g, m.w + w
      m.gw, m.ww = m.gw + g * w, m.ww + w * w
    end
  end
  return m
end

-- Reports whether got is close to f(want, index) in all wrong elements, and f
-- explains the differences: the root mean square of got - f(want) is at most a
-- tenth of that of got - want. A wide tolerance alone would accept many f.
local function explains(d, f)
  if not holds(d, f) then return false end
  local rest, all = 0.0, 0.0
  for _, at in ipairs(d.wrong) do
    local g, w = d.got(at), d.want(at)
    if g - g == 0 and w - w == 0 then
      rest, all = rest + (g - f(w, at)) ^ 2, all + (g - w) ^ 2
    end
  end
  return rest <= all / 100
end

local ALMOST_0 = 1e-6  -- smaller factors are not named

-- If got = a * want + b for numbers a and b, returns a sentence that says so.
local function linear(d)
  local m = moments(d, d.wrong)
  local many = distinct(d, d.want, 5)
  -- With few distinct right values, the numbers a and b may fit by chance.
  if many < (#d.wrong == d.n and 3 or 5) then return nil end
  local a, b = m.gw / m.ww, (m.g - m.w) / m.n
  if explains(d, function(w) return a * w end) then
    if math.abs(a) < ALMOST_0 then
      return "{got} is almost 0 in each of them"
    end
    local text = factor(d, a)
    if text == "-1" then return "{got} = -{want}" end
    return ("{got} = %s * {want}; is a factor missing, or applied twice?")
      :format(text)
  elseif explains(d, function(w) return w + b end) then
    return ("{got} = {want} %s %s; is a term missing, or added twice?"):format(
      b < 0 and "-" or "+", number(math.abs(b)))
  elseif many == 5 then
    a = (m.n * m.gw - m.g * m.w) / (m.n * m.ww - m.w * m.w)
    b = (m.g - a * m.w) / m.n
    if explains(d, function(w) return a * w + b end) then
      return ("{got} = %s * {want} %s %s"):format(number(a),
        b < 0 and "-" or "+", number(math.abs(b)))
    end
  end
end

-- Functions of the right value that mistakes often compute.
local FUNCTIONS = {
  {"|{want}|", math.abs}, {"-|{want}|", function(x) return -math.abs(x) end},
  {"floor({want})", function(x) return x // 1 end},
  {"ceil({want})", function(x) return -(-x // 1) end},
  {"1 / {want}", function(x) return 1 / x end},
  {"{want}^2", function(x) return x * x end},
  {"sqrt({want})", function(x) return x ^ 0.5 end},
  {"1 / sqrt({want})", function(x) return x ^ -0.5 end},
  {"exp({want})", math.exp}, {"log({want})", math.log},
  {"log2({want})", function(x) return math.log(x, 2) end},
  {"2^{want}", function(x) return 2.0 ^ x end},
}

-- If got is one of FUNCTIONS of want, returns a sentence that names it.
local function computed(d)
  if distinct(d, d.want, 3) < 3 then return nil end
  for _, f in ipairs(FUNCTIONS) do
    if holds(d, f[2]) then return "{got} = " .. f[1] end
  end
end

local NARROW = {"bf16", "f16", "e5m2", "e4m3"}

-- If the values were rounded to a narrow type, returns a sentence that names
-- it.
local function rounded(d)
  if distinct(d, d.want, 3) < 3 then return nil end
  for _, name in ipairs(NARROW) do
    local one = core.buffer(core[name], 1)
    local ok = holds(d, function(w)
      one[0] = w
      return one[0]
    end)
    if ok then return ("{got} is {want} rounded to %s"):format(name) end
  end
end

local SAMPLES = 16  -- wrong elements that are compared first

local LETTERS = {"i", "j", "k", "l", "m", "n"}

-- Returns a text such as "i,j" for a coordinate, with mode k replaced by
-- `text`.
local function indices(d, k, text)
  local out = {table.unpack(LETTERS, 1, #d.shape)}
  if k then out[k] = text end
  return table.concat(out, ",")
end

-- Reports whether each wrong element has the value that `want` has at the
-- coordinate moved(c), where c is the element's own coordinate.
local function moves(d, moved)
  return holds(d, function(_, at)
    local from = number_of(d.shape, moved(pattern.coordinate(d.shape, at)))
    return from and d.want(from)
  end)
end

-- If the coordinates of two modes are exchanged, returns a sentence that says
-- so.
local function exchanged(d)
  for a = 1, #d.shape do
    for b = a + 1, #d.shape do
      if d.shape[a] > 1 and d.shape[b] > 1 and moves(d, function(c)
        c[a], c[b] = c[b], c[a]
        return c
      end) then
        local turned = {table.unpack(LETTERS, 1, #d.shape)}
        turned[a], turned[b] = turned[b], turned[a]
        return ("{got}(%s) = {want}(%s); are two coordinates exchanged?")
          :format(indices(d), table.concat(turned, ","))
      end
    end
  end
end

-- If got has the elements of want in column-major order, returns a sentence
-- that says so.
local function reordered(d)
  local rows, columns = d.shape[1], d.shape[2]
  local ok = #d.shape == 2 and rows > 1 and columns > 1 and holds(d,
    function(_, at) return d.want(at % rows * columns + at // rows) end)
  return ok and "{got} has the elements of {want} in column-major order; are "
    .. "two strides exchanged?"
end

-- If the elements are reversed or shifted along a mode, returns a sentence that
-- says so.
local function moved(d)
  for k, n in ipairs(d.shape) do
    local function shifted(by)
      return moves(d, function(c)
        c[k] = c[k] + by
        return c
      end)
    end
    if n > 2 and moves(d, function(c)
      c[k] = n - 1 - c[k]
      return c
    end) then
      return ("{got}(%s) = {want}(%s): the order is reversed"):format(
        indices(d), indices(d, k, ("%d - %s"):format(n - 1, LETTERS[k])))
    end
    for by = 1, n - 1 do
      for _, to in ipairs {by, -by} do
        if shifted(to) then
          return ("{got}(%s) = {want}(%s); is an index off by %d?"):format(
            indices(d), indices(d, k, ("%s %s %d"):format(LETTERS[k],
              to < 0 and "-" or "+", by)), by)
        end
      end
    end
  end
end

-- Returns the wrong elements grouped by their coordinate in mode k, and whether
-- the groups are large enough to be compared.
local function groups(d, k)
  local by, n = {}, 0
  for _, at in ipairs(d.wrong) do
    local x = pattern.coordinate(d.shape, at)[k]
    if not by[x] then by[x], n = {}, n + 1 end
    table.insert(by[x], at)
  end
  return by, n > 1 and #d.wrong >= 3 * n
end

-- If got - want, or got / want, depends only on the coordinate of one mode,
-- returns a sentence that says so.
local function along(d)
  for k, extent in ipairs(#d.shape > 1 and d.shape or {}) do
    local by, enough = groups(d, k)
    local terms, factors = {}, {}
    for x, list in pairs(enough and by or {}) do
      local m = moments(d, list)
      terms[x], factors[x] = (m.g - m.w) / m.n, m.gw / m.ww
    end
    local word = noun(d, k)
    local each = NOUNS[#d.shape] and "each " .. word
      or ("mode %d"):format(k - 1)
    local function by_mode(f)
      return enough and explains(d, function(w, at)
        return f(w, pattern.coordinate(d.shape, at)[k])
      end)
    end
    if by_mode(function(w, x) return w + terms[x] end) then
      return ("{got} - {want} has one value in %s; is a vector of %d elements, "
        .. "such as a bias, missing or indexed wrongly?"):format(each, extent)
    elseif by_mode(function(w, x) return w * factors[x] end) then
      return ("{got} / {want} has one value in %s; is a vector of %d factors "
        .. "missing or indexed wrongly?"):format(each, extent)
    end
  end
end

-- Returns a sentence about the values of the wrong elements, or nil.
local function how(d)
  local text = same(d)
  if text or #d.wrong < 3 then return text end
  text = linear(d) or rounded(d) or computed(d)
  if text or distinct(d, d.got, 5) < 5 then return text end
  return exchanged(d) or reordered(d) or moved(d) or along(d)
end

--- Returns sentences on how two tensors differ; none if no pattern was found.
---@param d table {shape = the extents; got =, want = functions from a row-major
-- index to an element; differs = function(got, want): reports whether an
-- element is wrong; close = function(a, b): reports whether two numbers are
-- equal up to rounding; names = {got =, want =}: names for the two tensors}
---@return string[]
function pattern.told(d)
  local list, wrong = {}, {}
  d = setmetatable({n = 1, wrong = wrong}, {__index = d})
  for _, extent in ipairs(d.shape) do d.n = d.n * extent end
  if d.n > MOST or #d.shape > #LETTERS then return list end
  for at = 0, d.n - 1 do
    if d.differs(d.got(at), d.want(at)) then wrong[#wrong + 1] = at end
  end
  if not wrong[1] then return list end
  d.samples = {}
  for i = 0, SAMPLES - 1 do
    d.samples[i + 1] = wrong[i * #wrong // SAMPLES + 1]
  end
  list[1] = where(d)
  local text = how(d)
  if text then list[#list + 1] = (text:gsub("{(%w+)}", d.names)) end
  return list
end

return pattern
-- SPDX-License-Identifier: MIT
