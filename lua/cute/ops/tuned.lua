--- For each new problem, looks up the configuration that was measured as the
-- fastest. There is one table of measurements per GPU model. The tuner writes
-- the tables (docs/tuning.md); cutelua.tune.tables describes their form.
--
-- The tables group problems by class. A class is a text that names the types of
-- A, B and D, then the contiguous modes of A and B in BLAS notation ("tn": K of
-- both), then "row" or "column" for D. "C:bf16" follows if the product adds a C
-- of that type, and "NAME:FINGERPRINT" if there is an epilogue (see
-- cute.ops.fingerprint), whose name is only informative. A class of attention
-- names the type and the mask: "bf16 causal" or "bf16 full".
local core = require "cute.core"
local sign = require "cute.lang.signature"

local tuned = {}

---------------------------------------------------------------------------
-- Names
---------------------------------------------------------------------------

-- Returns the letter for the contiguous mode of a matrix: `second` or `first`.
-- Returns nil if neither mode is contiguous.
local function contiguous(t, second, first)
  if t.stride[2] == 1 then return second end
  return t.stride[1] == 1 and first or nil
end

--- Returns the class of a problem, the key under which tables hold its measured
-- configurations. Returns nil for problems without such a key (batches, factors
-- of blocks, packed weights).
---@param p table
---@param name? string the epilogue's name; "epilogue" if absent
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

--- Returns the name of a class (see the top of this file) with "epilogue" in
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

-- Indexes the configurations of a table. Returns a table `out`. For products,
-- out[class][sizes] is the configuration, where sizes is "M N K". For attention
-- it is out.attention[class][sizes], where sizes is "B S T H G D".
local function index(t, place)
  local out = {place = place, attention = {}}
  local function add(to, rows, count)
    for _, r in ipairs(rows) do
      to[table.concat(r, " ", 1, count)] = r[count + 3]
    end
    return to
  end
  for class, rows in pairs(t.gemm) do
    local key = tuned.nameless(class)
    out[key] = add(out[key] or {}, rows, 3)
  end
  for class, rows in pairs(t.attention or {}) do
    out.attention[class] = add({}, rows, 6)
  end
  return out
end

-- Returns the reason why a table is not used on a GPU, or nil if it is used. A
-- table applies to one model of GPU only. Another model takes other times for
-- the same configurations, even with the same architecture and number of
-- multiprocessors.
local function refusal(t, device, place)
  local info = device.info
  if t.arch == device.arch and (not info or (info.name or t.card) == t.card
                                and info.sms == t.sms) then
    return nil
  end
  local function words(arch, sms)
    return sms and ("%s, %d multiprocessors"):format(arch, sms) or arch
  end
  return ("%s was measured on %s (%s) and is not used on %s (%s)"):format(place,
    t.card, words(t.arch, t.sms), info and info.name or device.name,
    words(device.arch, info and info.sms))
end

-- The tables that are part of cutelua: maps an architecture to the name of the
-- file in kernels/tuned.
local OURS = {sm_90a = "h200"}

-- Returns the tables for a device: first the user's, then those of cutelua. If
-- there are none, the field `unused` is the reason.
local function tables_of(device)
  local list = {}
  local read = device.info and sign.workshop.users_table
  if read then
    local own, path, why = read(device.info.name)
    why = why or own and refusal(own, device, path)
    if why then say(why) end
    if own and not why then list[1] = index(own, path) end
  end
  local module = OURS[device.arch] and "kernels.tuned." .. OURS[device.arch]
  local t = module and require(module)
  local why = t and refusal(t, device, module)
  if t and not why then list[#list + 1] = index(t, module) end
  if not list[1] then list.unused = why end
  return list
end

-- The tables that apply to a device, cached by the device's name.
local known = {}

local function known_of(device)
  known[device.name] = known[device.name] or tables_of(device)
  return known[device.name]
end

--- Returns the index in `list` of the candidate that a table names for a
-- problem. Returns nil if no table names one. If no table applies to the GPU,
-- also returns the reason.
---@param p table
---@param list table[] from choose.list
---@param name_of fun(c: table): string
---@return integer?
---@return string? unused
function tuned.find(p, list, name_of)
  local class = tuned.class(p)
  if not class or not p.device then return nil end
  local size = ("%d %d %d"):format(p.m, p.n, p.k)
  -- Products of f16 operands use the configurations for bf16 operands.
  local like = class:gsub("%f[%w]f16%f[%W]", "bf16")
  for _, t in ipairs(known_of(p.device)) do
    local name = t[class] and t[class][size] or t[like] and t[like][size]
    local family, here = name and name:match "%S+", false
    for i, c in ipairs(name and list or {}) do
      if name_of(c) == name then return i end
      here = here or c.base == family
    end
    -- A missing configuration is reported only without p.order. With p.order,
    -- it may be one of the candidates that were excluded for another
    -- accumulation order.
    if here and not p.order then
      say(("%s has configurations that no longer exist, such as '%s': run "
        .. "cutelua tune again"):format(t.place, name))
    end
  end
  return nil, known_of(p.device).unused
end

--- Returns the name of a tile of attention, such as "attention_sm90 128x80".
---@param tile integer[] rows and keys
function tuned.tile_name(tile)
  return ("attention_sm90 %dx%d"):format(tile[1], tile[2])
end

--- Returns the tile of `list` that has this name, or nil.
---@param name string
---@param list integer[][]
---@return integer[]?
function tuned.tile_of(name, list)
  for _, tile in ipairs(list) do
    if tuned.tile_name(tile) == name then return tile end
  end
end

--- Returns the tile that a table names for a problem of attention, or nil. `q`
-- has the fields B, S, T, H, G, D and dtype of the problem. candidates()
-- returns the possible tiles.
---@param q table
---@param device table
---@param causal boolean?
---@param candidates fun(): integer[][]
---@return integer[]?
function tuned.tile(q, device, causal, candidates)
  local class = causal and "causal" or "full"
  local size = ("%d %d %d %d %d %d"):format(q.B, q.S, q.T, q.H, q.G, q.D)
  for _, t in ipairs(known_of(device)) do
    -- Operands of f16 use the configurations for bf16 operands.
    for _, dtype in ipairs {q.dtype.name, "bf16"} do
      local rows = t.attention[dtype .. " " .. class]
      local name = rows and rows[size]
      local tile = name and tuned.tile_of(name, candidates())
      if tile then return tile end
      if name then
        say(("%s has configurations that no longer exist, such as '%s': run "
          .. "cutelua tune again"):format(t.place, name))
      end
    end
  end
end

return tuned
-- SPDX-License-Identifier: MIT
