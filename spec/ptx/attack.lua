--- Makes random PTX and random arguments, and passes them to cute.ptx and
-- launch.
local core = require "cute.core"
local cute = require "cute"
local calls = require "spec.calls"
local texts = require "spec.ptx.texts"

local attack = {}

local list
local LONGEST = 20  -- maximum seconds of one case

local function pick(t) return t[math.random(#t)] end

-- Returns a random one of the PTX texts of spec.ptx.texts, with up to three
-- random changes.
local function text_of()
  if not list then
    list = {}
    texts.each(function(_, text) list[#list + 1] = text end)
  end
  local text = pick(list)
  for _ = 1, math.random(0, 3) do text = texts.changed(text) end
  return text
end

--- Returns the PTX that a seed generates.
---@param seed integer
---@return string
function attack.text(seed)
  math.randomseed(seed)
  return text_of()
end

local function tensor()
  local t = cute.zeros({pick {1, 7, 64, 4096}}, pick {cute.u8, cute.i32,
                                                      cute.f32, cute.f64})
  if math.random(4) == 1 and cute.size(t) > 1 then
    return cute.make_tensor(t.iterator + 1, cute.make_layout {cute.size(t) - 1})
  end
  return t
end

local function map_bytes(t)
  local ok, words = pcall(core.encode_tensor_map, {type = math.random(0, 12),
    rank = 2, address = t.iterator.address, extent = {16, 16}, stride = {128},
    box = {16, 4}, swizzle = math.random(0, 3)})
  local bytes = ("\0"):rep(128)
  if ok then bytes = ("<" .. ("i8"):rep(16)):pack(table.unpack(words)) end
  if math.random(4) == 1 then
    local at = math.random(128)
    bytes = bytes:sub(1, at - 1) .. string.char(math.random(0, 255))
      .. bytes:sub(at + 1)
  end
  return bytes
end

-- Returns a random value of any type.
local function any()
  return pick {
    function() return nil end, function() return "" end,
    function() return math.random(-9, 1 << 40) end,
    function() return math.random() * 1e30 end,
    function() return ("x"):rep(math.random(0, 200)) end,
    function() return {} end, function() return {[math.random(0, 99)] = 1} end,
    function()
      return {[0] = {1, "f32"}, [8] = {2, pick {"i1", "f64", "u8"}}}
    end,
    function() return {map = map_bytes(tensor()), tensor = tensor()} end,
    function() return {map = {}, tensor = 1} end, function() return true end,
    function() return print end, tensor}()
end

-- Returns an argument for a parameter, usually one of a suitable type.
local function argument(p)
  if math.random(12) == 1 then return any() end
  local bytes = p.bits // 8 * p.count
  if p.array and bytes == 128 and math.random(4) > 1 then
    local t = cute.zeros({4096}, cute.u8)
    return {map = map_bytes(t), tensor = t}
  elseif p.array then
    return pick {("\0"):rep(bytes), {[0] = tensor(), [8] = 5}}
  elseif p.bits == 64 and p.kind ~= "f" then
    return math.random(10) > 1 and tensor() or math.random(-5, 5)
  end
  return math.random(-3, 70)
end

local function launch(text)
  local module = cute.ptx(text)
  local names = module:entries()
  local name = #names > 0 and math.random(20) > 1 and pick(names) or "k"
  local opts = {smem = math.random(4) == 1 and math.random(0, 70000) or 4096}
  local kernel = module:kernel(name, opts)
  local args, n = {}, 0
  for i, p in ipairs(core.ptx_entry(module.module, name).parameters) do
    args[i], n = argument(p), i
  end
  if math.random(15) == 1 then n = n + math.random(-1, 1) end
  kernel(table.unpack(args, 1, math.max(n, 0))):launch {
    grid = pick {1, 1, 2, {2, 2}}, block = pick {1, 32, 64, 128},
    cluster = pick {1, 1, 2}, device = pick {"sim", "sim:sm_80", "sim:sm_100a"},
    budget = 20000, seed = math.random(99)}
end

--- Runs the case of a seed. Returns "right", "rejected" or "wrong", and for
-- "wrong" the reason.
---@param seed integer
---@return string verdict, string? why
function attack.run(seed)
  math.randomseed(seed)
  local text = text_of()
  local start = core.clock()
  local ok, why = pcall(launch, text)
  local took = core.clock() - start
  if took > LONGEST then return "wrong", ("it took %.0f s"):format(took) end
  if ok then return "right" end
  local unclear = calls.unclear(why)
  if unclear then return "wrong", ("%s: %s"):format(unclear, why) end
  return "rejected"
end

return attack
-- SPDX-License-Identifier: MIT
