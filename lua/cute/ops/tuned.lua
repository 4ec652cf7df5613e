--- Looks up measured choices in tables, one per GPU model, for each new
-- problem. The tuner writes them (docs/tuning.md); cutelua.tune.tables
-- describes their form.
--
-- A class names the types of A, B and D, then the contiguous modes of A and B
-- in BLAS notation ("tn": K of both), then "row" or "column" for D. "C:bf16"
-- follows if the product adds a C of that type, and "NAME:FINGERPRINT" if there
-- is an epilogue (see cute.ops.fingerprint), whose name is only informative.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local tuned = {}

---------------------------------------------------------------------------
-- Names
---------------------------------------------------------------------------

-- Returns the letter for the contiguous mode of a matrix: `second` or `first`;
-- nil if neither mode is contiguous.
local function contiguous(t, second, first)
  if t.stride[2] == 1 then return second end
  return t.stride[1] == 1 and first or nil
end

--- Returns the class of a problem, the key under which tables hold its choices;
-- nil if tables have no such key (batches, factors per block, packed weights).
---@param p table
---@param name? string the epilogue's name; "epilogue" when absent
---@return string?
function tuned.class(p, name)
  if p.batches > 1 or p.group or p.zeros ~= nil then return nil end
  local a, b = contiguous(p.A, "t", "n"), contiguous(p.B, "n", "t")
  local d = contiguous(p.D, "row", "column")
  if not (a and b and d) then return nil end
  local function of(t) return p.tf32 and t.name == "f32" and "tf32" or t.name
  end
  return ("%s %s %s %s%s %s%s%s"):format(of(p.a), of(p.b), p.d.name, a, b, d,
    p.c and " C:" .. p.sources[1].element_type.name or "",
    p.fused and (" %s:%s"):format(name or "epilogue", p.fingerprint) or "")
end

--- Returns the name of a class (see the head of this file) with "epilogue" in
-- place of the epilogue's name.
---@param class string
---@return string
function tuned.nameless(class)
  return (class:gsub("[%w_]+:(%x+)$", function(digits)
    return #digits == 16 and "epilogue:" .. digits or nil
  end))
end

---------------------------------------------------------------------------
-- Looking up
---------------------------------------------------------------------------

local said = {}

-- Prints a sentence on standard error, once per process.
local function say(text)
  if said[text] then return end
  said[text] = true
  io.stderr:write("cutelua: warning: ", core.visible(text), "\n")
end

-- Returns the choices of a table as out[class][sizes], where sizes is "M N K".
local function index(t, place)
  local out = {place = place}
  for class, rows in pairs(t.gemm) do
    local key = tuned.nameless(class)
    out[key] = out[key] or {}
    for _, r in ipairs(rows) do
      out[key][("%d %d %d"):format(r[1], r[2], r[3])] = r[6]
    end
  end
  return out
end

-- Reports whether a table is valid for a GPU. On a GPU of another architecture
-- or with fewer multiprocessors, the candidates differ or fill the GPU
-- differently.
local function fits(t, device, place)
  local info = device.info
  if t.arch ~= device.arch then
    return say(("%s was measured on %s (%s) and is not used on "
      .. "%s"):format(place, t.card,
      t.arch, device.name))
  elseif info and info.name ~= t.card then
    if info.sms ~= t.sms then
      return say(("%s was measured on %s with %d multiprocessors and is not "
        .. "used on %s with "
        .. "%d"):format(place, t.card, t.sms, info.name, info.sms))
    end
    say(("%s was measured on %s; it is used on %s, which has the same number "
      .. "of multiprocessors"):format(place, t.card, info.name))
  end
  return true
end

-- The tables that come with cutelua: the file's name by architecture.
local OURS = {sm_90a = "h200"}

-- Returns the tables for a device, first the user's, then the repository's.
local function tables_of(device)
  local list = {}
  local read = device.info and sign.workshop.users_table
  if read then
    local own, path, why = read(device.info.name)
    if why then say(why) end
    if own and fits(own, device, path) then list[1] = index(own, path) end
  end
  local module = OURS[device.arch] and "kernels.tuned." .. OURS[device.arch]
  local t = module and require(module)
  if t and (not device.info or device.info.sms == t.sms)
    and fits(t, device, module) then
    list[#list + 1] = index(t, module)
  end
  return list
end

-- The tables that apply to a device, by the device's name.
local known = {}

--- Returns the index of the candidate that a table names for a problem, or nil
-- if no table names one.
---@param p table
---@param list table[] from choose.list
---@param name_of fun(c: table): string
---@return integer?
function tuned.find(p, list, name_of)
  local class = tuned.class(p)
  if not class or not p.device then return nil end
  local device = p.device.name
  known[device] = known[device] or tables_of(p.device)
  local size = ("%d %d %d"):format(p.m, p.n, p.k)
  -- A product of f16 operands uses the choices for bf16 operands.
  local like = class:gsub("%f[%w]f16%f[%W]", "bf16")
  for _, t in ipairs(known[device]) do
    local name = t[class] and t[class][size] or t[like] and t[like][size]
    local family, here = name and name:match "%S+", false
    for i, c in ipairs(name and list or {}) do
      if name_of(c) == name then return i end
      here = here or c.base == family
    end
    -- If p.order is set, candidates with another accumulation order were left
    -- out, so a missing configuration is no reason for this message.
    if here and not p.order then
      say(("%s has configurations that no longer exist, such as '%s': run "
        .. "cutelua tune again"):format(t.place, name))
    end
  end
end

return tuned
-- SPDX-License-Identifier: MIT
