--- Checks the options and operands of kernels: an error names the kernel, the
-- value and the requirement.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local rules = {}

--- GEMM: the names of the options of kernels/gemm_sm80. Kernels that are based
-- on gemm_sm80 accept these options, too. SIMT: these names, and the names of
-- the options of kernels/gemm_simt.
rules.GEMM = "name tile stages group mma atoms permutation rows epilogue "
  .. "columns gated piece fetch blocks as lead slots plain halves min_blocks "
  .. "pdl renamed"
rules.SIMT = rules.GEMM .. " sums a_dtype b_dtype warps"

--- Raises the error "what: text", with the arguments formatted into the text,
-- unless ok is true.
---@param ok any
---@param what string the kernel
---@param text string a format, with arguments ...
function rules.need(ok, what, text, ...)
  if not ok then core.fail("bad-argument", what .. ": " .. text:format(...)) end
end

--- Raises an error for an option that a kernel does not have.
---@param what string the kernel
---@param o any the given options
---@param names string the valid options
function rules.options(what, o, names)
  rules.need(type(o) == "table", what, "%s; a table of options is needed",
             core.show(o))
  local known = {}
  for name in names:gmatch "[%w_]+" do known[name] = true end
  for name in pairs(o) do
    if not known[name] then
      core.fail("unknown-name", sign.no_such("option", name, known, what))
    end
  end
end

--- Copies the options of a kernel that is based on another one, with defaults
-- filled in. Also returns a table of those options that belong to the other
-- kernel.
---@param what string
---@param o? table
---@param defaults table
---@param own string names of the kernel's own options
---@param others string names of the other kernel's options, such as rules.GEMM
---@return table all, table rest
function rules.shared(what, o, defaults, own, others)
  rules.options(what, o or {}, own .. " " .. others)
  local all, rest = {}, {}
  for _, t in ipairs {defaults, o or {}} do
    for name, v in pairs(t) do all[name] = v end
  end
  for name in others:gmatch "[%w_]+" do rest[name] = all[name] end
  return all, rest
end

--- Checks that given options are integers from `least` to `most`; with kind =
-- "power", also checks that they are powers of two.
---@param what string
---@param o table
---@param names string[]
---@param least integer
---@param most integer
---@param kind? string
function rules.integers(what, o, names, least, most, kind)
  for _, name in ipairs(names) do
    local x = o[name]
    rules.need(x == nil or math.type(x) == "integer" and x >= least
      and x <= most and (kind ~= "power" or x & (x - 1) == 0), what,
      "%s = %s; %s from %d to %d is needed", name, core.show(x),
      kind == "power" and "a power of two" or "an integer", least, most)
  end
end

--- Raises an error unless list `name` has n integers of 1 or more.
---@param what string
---@param name string
---@param list any
---@param n integer
function rules.list_of_integers(what, name, list, n)
  local ok = type(list) == "table" and #list == n
  for i = 1, ok and n or 0 do
    ok = ok and math.type(list[i]) == "integer" and list[i] >= 1
  end
  rules.need(ok, what, "%s = %s; %d integers of 1 or more are needed", name,
             core.show(list), n)
end

--- Raises an error unless option `name` has one of the values `...`.
---@param what string
---@param o table
---@param name string
function rules.one_of(what, o, name, ...)
  local words = {...}
  for i, word in ipairs(words) do
    if o[name] == word then return end
    words[i] = core.show(word)
  end
  rules.need(false, what, "%s = %s; %s is needed", name, core.show(o[name]),
             table.concat(words, " or "))
end

--- Returns side i of the option `window`: the number of visible keys before (i
-- = 1) or after (i = 2) a row's own key. Returns nil if there is no limit.
---@param what string
---@param o table
---@param i integer
---@return integer?
function rules.window(what, o, i)
  local w = o.window and o.window[i] or nil
  rules.need(not w or math.type(w) == "integer" and w >= 0, what,
    "a window of %s keys; an integer of 0 or more, or false, is needed",
    core.show(w))
  return w
end

--- Returns the reason why TMA cannot access the rows of t (B,S,H,D); nil if
-- TMA can access them.
---@param t any
---@return string?
function rules.tma_obstacle(t)
  for i = 1, 3 do
    if t.shape[i] < 1 then return "no rows" end
    if t.shape[i] > 1 and t.stride[i] * t.element_type.bits % 128 ~= 0 then
      return "rows that do not begin at multiples of 16 bytes"
    end
  end
end

--- Checks the required options with the given names: `dtype` must be a type,
-- all others must be extents.
---@param what string
---@param o table
function rules.given(what, o, ...)
  for _, name in ipairs {...} do
    local x = o[name]
    if name == "dtype" then
      rules.need(core.typename(x) == "dtype", what,
        "dtype = %s; a type is needed, such as cute.bf16", core.show(x))
    else
      rules.need(math.type(x) == "integer" and x >= 1, what,
        "%s = %s; an integer of 1 or more is needed", name, core.show(x))
    end
  end
end

--- Checks that operand i has n contiguous elements, the last mode fastest.
-- Extents that are known only at run time are not checked.
---@param what string
---@param i any a number, or a name
---@param t any
---@param n integer
function rules.dense(what, i, t, n)
  rules.need(core.typename(t) == "tensor", what,
    "operand %s is %s; a tensor is needed", i, core.show(t))
  local d = 1
  local shape, stride = core.flatten(t.shape), core.flatten(t.stride)
  if type(shape) ~= "table" then shape, stride = {shape}, {stride} end
  for k = #shape, 1, -1 do
    if not (math.type(shape[k]) and math.type(stride[k])) then return end
    if shape[k] ~= 1 and stride[k] ~= d then d = -1 end
    d = d * shape[k]
  end
  rules.need(d == n, what, "operand %s is %s; %d contiguous elements are "
    .. "needed", i, tostring(t.layout), n)
end

--- Raises an error if two extents, given with their names, are known and
-- differ.
function rules.same(what, name, a, other, b)
  if not (math.type(a) and math.type(b)) then return end
  rules.need(a == b, what, "%s is %d, and %s %d; they must be equal", name, a,
             other, b)
end

--- Returns the largest number of elements of `bits` bits that one access (of at
-- most 16 bytes) can have. This number must divide n, the number of elements of
-- a row.
---@param bits integer
---@param n integer
---@return integer
function rules.widest(bits, n) return core.gcd(128 // bits, n) end

return sign.module("kernels.operand_rules", rules)
-- SPDX-License-Identifier: MIT
