--- Reads a task's folder, and makes the cases of a judgement: sizes, inputs,
-- and expected outputs with error bounds. docs/tasks.md describes the task
-- file.
local bounded = require "cutelua.task.bounded"
local core = require "cute.core"
local errors = require "cutelua.text.errors"
local files = require "cutelua.text.output"
local limit = require "cutelua.task.limit"
local random = require "cutelua.task.random"
local script = require "cutelua.program.script"
local sign = require "cute.lang.signature"

local folder = {}

-- LARGEST: the largest size in bytes of a file of a task. MOST_ELEMENTS: the
-- largest number of elements of one argument.
local LARGEST, MOST_ELEMENTS = 4 << 20, 1 << 22

local FIELDS = {}
for name in ([[name text args sizes held fits seeds speed flops units bytes
    target compute reference]]):gmatch "%S+" do
  FIELDS[name] = true
end

local Task = {}
Task.__index = Task

-- Raises an error about the task file. The message begins with "the task".
local function wrong(text, ...)
  core.fail("bad-argument", "the task " .. text:format(...))
end

--- Reads a plain file of a task or a candidate. Errors have the kind [io].
---@param path string
---@return string
function folder.text(path)
  local text, why = files.read_plain(path, LARGEST)
  if not text then core.fail("io", (why:gsub(" %[io%]$", ""))) end
  return text
end

--- Returns the message of an error, preceded by its position if it is Lua's own
-- error.
---@param told table of cutelua.text.errors.told
---@return string
function folder.sentence(told)
  if told.kind ~= "lua" or not told.line then return told.message end
  return ("%s:%d: %s"):format(told.file, told.line, told.message)
end

---------------------------------------------------------------------------
-- The task file
---------------------------------------------------------------------------

local function is_size(v) return math.type(v) == "integer" and v >= 1 end

-- Raises an error if an argument of the task is not a valid table {name, type,
-- shape, "out"?, fill =, kinds =}. Adds its name to the set `known`.
local function check_arg(t, i, arg, known)
  if type(arg) ~= "table" or type(arg[1]) ~= "string"
    or not arg[1]:find "^%a%w*$" then
    wrong("needs a name, a type and a shape as argument %d, not %s", i,
          core.show(arg))
  end
  local name = arg[1]
  if known[name] then wrong("has two arguments %s", name) end
  known[name] = true
  if not pcall(core.buffer, arg[2], 1) then
    wrong("gives argument %s the type %s, which is none", name,
          core.show(arg[2]))
  end
  if type(arg[3]) ~= "table" and type(arg[3]) ~= "function" then
    wrong("needs a shape of argument %s: a list of sizes, or a function", name)
  end
  if arg[4] ~= nil and arg[4] ~= "out" then
    wrong("marks argument %s as %s, where only \"out\" is known", name,
          core.show(arg[4]))
  end
  t.out[#t.out + 1] = arg[4] and arg or nil
end

local function check_sizes(t)
  if type(t.sizes) ~= "table" or type(t.sizes[1]) ~= "table" then
    wrong "needs `sizes`, a list of tables such as {M = 64, N = 33}"
  end
  for _, s in ipairs(t.sizes) do
    for name in pairs(t.sizes[1]) do
      if not is_size(s[name]) then
        wrong("needs a whole number above 0 as size %s, not %s", name,
              core.show(s[name]))
      end
    end
  end
  for name, range in pairs(t.held or {}) do
    if not t.sizes[1][name] then
      wrong("draws the size held.%s, which `sizes` lacks", tostring(name))
    end
    if type(range) ~= "table" or not (is_size(range[1]) and is_size(range[2])
        and range[1] <= range[2]) then
      wrong("needs held.%s = {least, most}, not %s", name, core.show(range))
    end
  end
end

-- The Lua type that the value of each optional field of a task must have.
local TYPES = {held = "table", fits = "function", seeds = "table",
  speed = "table", flops = "function", bytes = "function", target = "number"}

local function check_types(t)
  for name, want in pairs(TYPES) do
    if t[name] ~= nil and type(t[name]) ~= want then
      wrong("needs a %s as field %s, not %s", want, name, core.show(t[name]))
    end
  end
  if t.target and not (t.target > 0 and t.target <= 1) then
    wrong("needs a target above 0 and at most 1, not %s", core.show(t.target))
  end
  for i = 1, 2 do
    if math.type(t.seeds[i]) ~= "integer" then
      wrong("needs two integers as seeds, not %s", core.show(t.seeds[i]))
    end
  end
end

local function check(t, path)
  if type(t) ~= "table" then
    wrong("file %s returns %s, where a table is needed", path, core.show(t))
  end
  for k in pairs(t) do
    if not FIELDS[k] then sign.unknown("field", tostring(k), FIELDS, "task") end
  end
  if type(t.reference) ~= "function" then
    wrong("%s has no reference: a function that returns the expected outputs "
      .. "is needed", core.show(t.name or path))
  end
  if type(t.name) ~= "string" or type(t.text) ~= "string" then
    wrong "needs a name and a text"
  end
  if type(t.args) ~= "table" or not t.args[1] then wrong "needs `args`" end
  t.out = {}
  local known = {}
  for i, arg in ipairs(t.args) do check_arg(t, i, arg, known) end
  if not t.out[1] then wrong "has no output: no argument is marked \"out\"" end
  t.seeds = t.seeds or {1, 2}
  check_types(t)
  check_sizes(t)
  t.compute = t.compute or "f32"
  if not bounded.U[t.compute] then
    wrong("computes in %s, which is no float type", core.show(t.compute))
  end
  if t.units ~= nil and t.units ~= "tensor" then
    wrong("has units = %s, where only \"tensor\" is known", core.show(t.units))
  end
  return t
end

--- Reads the task in a folder. An error has a message of one sentence.
---@param path string
---@param limits table of cutelua.task.limit, for each call of the task file's
-- functions
---@return table
function folder.read(path, limits)
  if core.file_kind(path) ~= "folder" then
    core.fail("io", ("cannot read the task %s: it is not a folder"):format(
      core.visible(path)))
  end
  local file = path .. "/task.lua"
  local text = folder.text(file)
  local t = check(limit.call(limits, script.load(text, "@" .. file)), file)
  t.path, t.limits = path, limits
  return setmetatable(t, Task)
end

---------------------------------------------------------------------------
-- Shapes and inputs
---------------------------------------------------------------------------

--- Returns the shape of an argument, and the number of its elements, if the
-- task's sizes have the values s.
---@param arg table
---@param s table<string, integer>
---@return integer[]
function folder.shape(arg, s)
  local list = arg[3]
  if type(list) == "function" then list = list(s) end
  local out, n = {}, 1
  for i, e in ipairs(list) do
    out[i] = s[e] or e
    if math.type(out[i]) ~= "integer" or out[i] < 1 then
      wrong("has no size %s, which argument %s needs", core.show(e), arg[1])
    end
    n = n * out[i]
  end
  if n > MOST_ELEMENTS then
    wrong("makes argument %s with %d elements: at most %d", arg[1], n,
          MOST_ELEMENTS)
  end
  return out, n
end

-- The named ways to fill an input. Each function returns one random element; r
-- is the source of random numbers.
local FILLS = {
  normal = function(r) return r:normal() end,
  uniform = function(r) return r:float() end,
  positive = function(r) return 0.5 + 1.5 * r:float() end,
}

-- The kinds of masks. Each function reports whether row i of the mask sees
-- column j. r is a source of random numbers.
local MASKS = {
  all = function() return true end,
  causal = function(_, i, j) return j <= i end,
  random = function(r, i, j) return i == j or r:float() < 0.5 end,
}

local function filler(arg, s, mask)
  local fill = arg.fill or "normal"
  if fill == "mask" then
    return function(r, c) return MASKS[mask](r, c[#c - 1], c[#c]) and 1 or 0 end
  end
  if type(fill) == "function" then
    return function(r, c) return fill(r, s, table.unpack(c)) end
  elseif type(fill) == "table" then
    local lo, hi = s[fill[1]] or fill[1], s[fill[2]] or fill[2]
    return function(r) return r:integer(lo, hi) end
  end
  return FILLS[fill] or wrong("fills argument %s by %s, an unknown way",
                              arg[1], core.show(fill))
end

-- Calls f with each coordinate of a shape; the last index changes fastest.
local function each(shape, f)
  local c, rank = {}, #shape
  for k = 1, rank do c[k] = 0 end
  while true do
    f(c)
    local k = rank
    while k >= 1 do
      c[k] = c[k] + 1
      if c[k] < shape[k] then break end
      c[k] = 0
      k = k - 1
    end
    if k < 1 then return end
  end
end

--- Returns the inputs of a case as a table of buffers by argument name. Their
-- elements are random, but determined by the seed.
---@param case table
---@param seed integer
---@param integers? boolean true: only the inputs of integer types
---@return table<string, any>
function Task:inputs(case, seed, integers)
  local out = {}
  for i, arg in ipairs(self.args) do
    if not (arg[4] or integers and bounded.U[arg[2]]) then
      local r = random.new(seed * 1009 + i)
      local values, value = {}, filler(arg, case.sizes, case.mask)
      each(folder.shape(arg, case.sizes), function(c)
        values[#values + 1] = value(r, c)
      end)
      out[arg[1]] = core.buffer_from(arg[2], values)
    end
  end
  return out
end

--- Returns the table that the reference function receives: the sizes, and for
-- each input a function from a coordinate to the element there. Elements of
-- float types are Numbers (cutelua.task.bounded).
local function view(self, case, inputs)
  local a = setmetatable({}, {__index = case.sizes})
  for _, arg in ipairs(self.args) do
    local b = inputs[arg[1]]
    if b then
      local shape = folder.shape(arg, case.sizes)
      local float = bounded.U[arg[2]]
      local memo = {}
      a[arg[1]] = function(...)
        local at = 0
        for k = 1, #shape do
          local x = select(k, ...)
          if math.type(x) ~= "integer" or x < 0 or x >= shape[k] then
            wrong("reads element %s of mode %d of %s, which has %d",
                  core.show(x), k - 1, arg[1], shape[k])
          end
          at = at * shape[k] + x
        end
        if not float then return b[at] end
        local x = memo[at] or bounded.input(b[at])
        memo[at] = x
        return x
      end
    end
  end
  return a
end

--- Returns the expected outputs of a case: {name = {value =, bound =}}, where
-- both are lists in the order of memory. If the reference fails, raises an
-- error with a message of one sentence.
---@param case table
---@param inputs table of Task:inputs
---@param lowest string? if given, every type is assumed to be at least as
-- coarse as this one
---@return table
function Task:expected(case, inputs, lowest)
  local found = {}
  local ok, why = xpcall(bounded.with, errors.capture, self.compute, lowest,
    function()
      local f = self.reference(view(self, case, inputs), bounded)
      for _, arg in ipairs(self.out) do
        local one = f[arg[1]]
        if type(one) ~= "function" then
          wrong("has a reference that returns no function for output %s",
                arg[1])
        end
        local value, bound, single = {}, {}, core.buffer(arg[2], 1)
        each(folder.shape(arg, case.sizes), function(c)
          local n = #value + 1
          value[n], bound[n] = bounded.output(one(table.unpack(c)), single)
        end)
        found[arg[1]] = {value = value, bound = bound}
      end
    end)
  if not ok then
    core.fail("lua", ("the reference of task %s failed: %s"):format(self.name,
      folder.sentence(errors.told(why))))
  end
  return found
end

---------------------------------------------------------------------------
-- Cases
---------------------------------------------------------------------------

local function sizes_text(s)
  local names, out = {}, {}
  for name in pairs(s) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do out[i] = ("%s = %d"):format(name, s[name]) end
  return table.concat(out, ", ")
end

local function masked(self)
  for _, arg in ipairs(self.args) do
    if arg.fill == "mask" then return arg.kinds or {"causal"} end
  end
end

--- Returns the public cases, one for each entry of the task's list `sizes`.
---@return table[]
function Task:public()
  local list, kinds = {}, masked(self)
  for i, s in ipairs(self.sizes) do
    list[i] = {sizes = s, seeds = self.seeds,
               mask = kinds and kinds[(i - 1) % #kinds + 1],
               name = sizes_text(s)}
  end
  return list
end

-- Returns random sizes from the ranges of the task's field `held`. They differ
-- from all public sizes, and the task's function `fits` allows them.
local function drawn(self, r)
  for _ = 1, 200 do
    local s, new = {}, true
    for name, v in pairs(self.sizes[1]) do
      local range = self.held[name]
      s[name] = range and r:integer(range[1], range[2]) or v
    end
    for _, one in ipairs(self.sizes) do
      local same = true
      for name, v in pairs(one) do same = same and s[name] == v end
      new = new and not same
    end
    if new and (not self.fits or self.fits(s)) then return s end
  end
  wrong "has no sizes in `held` that differ from `sizes` and that `fits` allows"
end

--- Returns the held-back cases. Their sizes and seeds are random, but
-- determined by the secret.
---@param secret integer
---@param count integer
---@return table[]
function Task:held_back(secret, count)
  local list, r, kinds = {}, random.new(secret), masked(self)
  local function add(sizes, mask)
    list[#list + 1] = {sizes = sizes, held = true, mask = mask,
      seeds = {r:integer(1 << 20, 1 << 40), r:integer(1 << 20, 1 << 40)},
      name = sizes_text(sizes)}
  end
  if kinds then
    add(self.sizes[1], "all")
    list[1].unmasked = true
  end
  for i = 1, self.held and count or 0 do
    add(drawn(self, r), kinds and (i % 2 == 1 and "all"
      or kinds[(i // 2 - 1) % #kinds + 1]))
  end
  if not self.held then add(self.sizes[1], kinds and kinds[1]) end
  return list
end

--- Returns the least number of seconds that a card needs for the sizes s. The
-- card reads the inputs from memory once, and writes as much of the outputs as
-- exceeds L2. Its arithmetic runs at the card's rate of f32 multiply-adds or,
-- with units = "tensor", of 16-bit multiply-adds on tensor cores.
---@param s table sizes
---@param card table of cutelua.profile.cards
---@return number
function Task:limit(s, card)
  local read, written = 0, 0
  for _, arg in ipairs(self.args) do
    local _, n = folder.shape(arg, s)
    local size = n * core.buffer(arg[2], 1).nbytes
    if arg[4] then written = written + size else read = read + size end
  end
  local bytes = self.bytes and self.bytes(s)
    or read + math.max(written - card.l2_bytes, 0)
  local flops = self.flops and self.flops(s) or 0
  local unit = self.units == "tensor" and 4 * card.wgmma or 128
  local rate = 2 * unit * card.sms * card.clock
  return math.max(bytes / card.dram, flops / rate)
end

-- These methods call functions of the task file, so they run within the limits.
for _, name in ipairs {"inputs", "expected", "held_back", "limit"} do
  local method = Task[name]
  Task[name] = function(self, ...)
    return limit.call(self.limits, method, self, ...)
  end
end

return folder
-- SPDX-License-Identifier: MIT
