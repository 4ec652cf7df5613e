--- The subject of `cutelua tune attention`: the tiles of
-- kernels/attention_sm90. A problem is a text such as "attention bf16 causal 1
-- 4096 4096 32 8 128". It contains the type, the mask, and B, S, T, H, G and D.
local candidates = require "kernels.attention_sm90.options".candidates
local core = require "cute.core"
local cute = require "cute"
local kernel = require "kernels.attention_sm90"
local operands = require "cutelua.tune.operands"
local tuned = require "cute.ops.tuned"

local Attention = {}
Attention.__index = Attention

local attention = {section = "attention", form = "B,S,T,H,G,D", count = 6,
                   loops = {1, 2, 3, 4, 5, 6},
                   noun = "shape"}

-- The number of elements of the output O to check. The host needs up to one
-- second per element.
local SAMPLES = 4
-- Operands begin at multiples of this number of elements.
local ALIGN = 256

--- Returns the class of the problems that the command line requests, such as
-- "bf16 causal". Tuned tables have one list per class. Returns nil and a reason
-- if the options are not supported.
---@param opt table
---@return string? class
---@return string? why
function attention.class(opt)
  for name, given in pairs {layout = opt.layout ~= "tn", columns = opt.columns,
                            epilogue = opt.epilogue} do
    if given then
      return nil, ("--%s: an option of 'tune gemm'"):format(name)
    end
  end
  if opt.types ~= "bf16" and opt.types ~= "f16" then
    return nil, ("--types: '%s'; attention has operands of bf16 or "
      .. "f16"):format(core.visible(opt.types))
  end
  return ("attention %s %s"):format(opt.types, opt.causal and "causal"
    or "full")
end

--- Parses a problem's text.
---@param problem string
---@return table # the class in tuned tables, sizes {B, S, T, H, G, D}, title,
-- flops
function attention.parse(problem)
  local dtype, mask, rest = problem:match "^attention (%S+) (%S+) (.*)$"
  local sizes = {}
  for n in rest:gmatch "%d+" do sizes[#sizes + 1] = math.tointeger(n) end
  local o = setmetatable({problem = problem, class = dtype .. " " .. mask,
    sizes = sizes, dtype = cute[dtype], causal = mask == "causal" or nil,
    ready = {}}, Attention)
  o.B, o.S, o.T, o.H, o.G, o.D = table.unpack(sizes)
  o.title = table.concat(sizes, "x")
  o.flops = 4.0 * o.B * o.H * o.S * o.T * o.D * (o.causal and 0.5 or 1)
  return o
end

-- Returns the kernel's options for problem o. Without `tile`, the kernel
-- chooses its default tile.
local function options_of(o, tile)
  return {head = o.D, dtype = o.dtype, causal = o.causal, rows = o.S,
          tile = tile}
end

--- Returns the names of the tiles to measure on a GPU. The kernel's default
-- tile comes first. If the list is empty, also returns the reason.
---@param problem string
---@param card table {arch: string}
---@param job table {most: integer}
---@return string[]
---@return string? why
function attention.names(problem, card, job)
  local o, names = attention.parse(problem), {}
  if card.arch ~= "sm_90a" then
    return {}, ("the tiles are those of sm_90a, but the GPU is "
      .. "%s"):format(card.arch)
  elseif o.H % o.G ~= 0 then
    return {}, ("H = %d; a multiple of G = %d is needed"):format(o.H, o.G)
  end
  local ok, list = pcall(candidates, options_of(o))
  if not ok then
    return {}, (tostring(list):gsub("%s*%[[%l-]+%]$", "")
      :gsub("^[^\n]-:%d+: ", ""))
  end
  for i = 1, math.min(#list, job.most) do
    names[i] = tuned.tile_name(list[i])
  end
  return names
end

-- Returns a call of the kernel with the tile `name` for problem o, and the
-- launch options {grid, block}. new(name, shape, dtype) creates the tensors.
local function launch_of(o, name, device, new)
  local tile = tuned.tile_of(name, candidates(options_of(o)))
  if not tile then error(("no tile is called '%s'"):format(name), 0) end
  local k = kernel(options_of(o, tile))
  local B, S, T, H, G, D = table.unpack(o.sizes)
  local Q, K, V, O, LSE = new("Q", {B, S, H, D}, o.dtype),
    new("K", {B, T, G, D}, o.dtype), new("V", {B, T, G, D}, o.dtype),
    new("O", {B, S, H, D}, o.dtype), new("LSE", {B, H, S}, cute.f32)
  local a = k.arguments(Q, K, V, O, LSE, D ^ -0.5,
                        k.share(Q, K, new("turns", {1}, cute.i32)))
  return k.kernel(table.unpack(a, 1, a.n)),
    {grid = k.grid(S, H, B, device.info and device.info.sms),
     block = k.block}
end

local function compact(iterator, shape)
  return cute.make_tensor(iterator, cute.make_layout(shape, cute.LayoutRight))
end

--- Compiles the kernel of a tile for a problem. The cubin is stored in the
-- cache.
---@param problem string
---@param device table from worker.device
---@param name string
function attention.compile(problem, device, name)
  local call, o = launch_of(attention.parse(problem), name, device,
    function(_, shape, dtype)
      return compact(cute.empty({1}, dtype).iterator, shape)
    end)
  o.arch = device.arch
  local made, why = call:trace(o):compile()
  if not made then error(why, 0) end
end

-- The most recent problem, with its operands.
local kept

--- Returns a problem with operands on the GPU, or on the host for the
-- simulator.
---@param problem string
---@param place? string "gpu" (by default) or "host"
function attention.of(problem, place)
  if kept and kept.problem == problem then return kept end
  kept = nil
  local o = attention.parse(problem)
  local function room(x) return (x + ALIGN - 1) // ALIGN * ALIGN end
  local q, k = room(o.B * o.S * o.H * o.D), room(o.B * o.T * o.G * o.D)
  o.from, o.place = {Q = 0, K = q, V = q + k}, place or "gpu"
  o.numbers, o.list, o.period = operands.numbers(o.dtype, q + 2 * k, o.place)
  o.own = {}
  kept = o
  return o
end

-- Returns an operand or a result tensor of problem o. All tiles use the same
-- result tensors.
local function tensor(o, name, shape, dtype)
  if o.from[name] then
    return compact(o.numbers.iterator + o.from[name], shape)
  end
  o.own[name] = o.own[name] or cute.zeros(shape, dtype, {device = o.place})
  return o.own[name]
end

--- Returns an object that runs and times the kernel of a tile, for the
-- benchmark. Checks the kernel's results first.
---@param name string
function Attention:contestant(name)
  if self.ready[name] then return self.ready[name] end
  local device = assert(cute.device(self.place == "host" and "sim:sm_90a"
    or self.place))
  local call, o = launch_of(self, name, device, function(...)
    return tensor(self, ...)
  end)
  o.device = device
  local run, why = call:compile(o)
  if not run then error(why, 0) end
  self.own.O:fill(0 / 0)
  run:launch()
  if self.place ~= "host" then cute.synchronize(self.place) end
  why = self:wrong()
  if why then error(why, 0) end
  self.ready[name] = {name = name, launch = run}
  return self.ready[name]
end

-- Returns element i of an operand in double precision.
local function at(o, name, i)
  return o.list[(o.from[name] + i) % o.period]
end

-- Returns an element of O in double precision. Also returns the standard
-- deviation that the element would have if V were independent random numbers.
local function expected(o, b, s, h, d)
  local g = h // (o.H // o.G)
  local last = o.causal and math.min(o.T, o.T - o.S + s + 1) or o.T
  local scores, top = {}, -math.huge
  for t = 0, last - 1 do
    local sum, q, k = 0, ((b * o.S + s) * o.H + h) * o.D,
      ((b * o.T + t) * o.G + g) * o.D
    for e = 0, o.D - 1 do sum = sum + at(o, "Q", q + e) * at(o, "K", k + e) end
    scores[t] = sum * o.D ^ -0.5
    top = math.max(top, scores[t])
  end
  local sum, x, squares = 0, 0, 0
  for t = 0, last - 1 do
    local w = math.exp(scores[t] - top)
    sum, squares = sum + w, squares + w * w
    x = x + w * at(o, "V", ((b * o.T + t) * o.G + g) * o.D + d)
  end
  if sum == 0 then return 0, 0 end
  return x / sum, math.sqrt(squares) / sum
end

-- Returns {b, s, h, d, x, off} for some elements of O: coordinates, expected
-- value, tolerance.
local function samples(o)
  local list = {{0, 0, 0, 0}, {o.B - 1, o.S - 1, o.H - 1, o.D - 1}}
  for i = 3, SAMPLES do
    list[i] = {i % o.B, i * 0x9e3779b1 % o.S, i * 0x85ebca6b % o.H,
               i * 37 % o.D}
  end
  for _, s in ipairs(list) do
    local x, deviation = expected(o, table.unpack(s, 1, 4))
    s[5], s[6] = x, 0.05 * deviation + 0.01 * math.abs(x)
  end
  return list
end

--- Returns a message about the first wrong element of O. Returns nil if all
-- samples are correct.
function Attention:wrong()
  self.samples = self.samples or samples(self)
  local O = self.own.O
  for _, s in ipairs(self.samples) do
    local b, row, h, d, x, off = table.unpack(s)
    local got = compact(O.iterator + O.layout(b, row, h, d), {1}):to "host"(0)
    if got ~= got or math.abs(got - x) > off then
      return ("wrong: O(%d,%d,%d,%d) is %g, not %g"):format(b, row, h, d, got,
                                                           x)
    end
  end
end

return attention
-- SPDX-License-Identifier: MIT
