--- Records the script's state that a trace could read, so that a later launch
-- can tell whether the traced program is still valid for it.
--
-- A kernel reads upvalues, globals and fields of tables as constants. The
-- record holds the upvalues of each of the user's functions that ran. If the
-- functions index a table only by constant names (as is usual for _ENV), the
-- record holds the fields with these names. For any other reachable table it
-- holds all fields. Variables that the functions assign are not recorded. A
-- table's recorded contents are those at the end of the trace.
local bytecode = require "cute.lang.bytecode"
local sign = require "cute.lang.signature"

local dependencies = {}

local LIBRARIES = {_G = true, string = true, table = true, math = true,
                   io = true, os = true, debug = true, coroutine = true,
                   utf8 = true, package = true}

local fixed, modules = {}, 0

--- Returns the tables that no script changes: cute's tables and those of Lua's
-- libraries.
---@return table<table, true>
function dependencies.fixed()
  local n = 0
  for _ in next, package.loaded do n = n + 1 end
  if n == modules then return fixed end
  fixed, modules = {}, n
  local function add(t, depth)
    if type(t) ~= "table" or fixed[t] then return end
    fixed[t] = true
    if depth == 0 then return end
    for _, v in next, t do add(v, depth - 1) end
  end
  for name, module in next, package.loaded do
    if LIBRARIES[name] then add(module, 0) end
    if name:find "^cute%f[%W]" or name:find "^cutelua%f[%W]" then
      add(module, 2)
    elseif name:find "^kernels%.tuned%." then
      add(module, 3)
    end
  end
  for class in next, sign.classes do add(class, 0) end
  return fixed
end

local View = {}
View.__index = View

local function append(list, ...)
  local n = list.n
  for i = 1, select("#", ...) do list[n + i] = (select(i, ...)) end
  list.n = n + select("#", ...)
end

-- Queues a value that the trace could read; the walk examines its contents
-- later.
function View:see(v)
  local t = type(v)
  if t ~= "table" and t ~= "function" or self.seen[v] then return end
  if t == "function" and not self.ran[v] then return end
  self.seen[v] = true
  self.pending[#self.pending + 1] = v
end

-- Reports whether t is an object of cute, such as a kernel or a program, which
-- itself detects changes of its contents.
local function is_closed(t)
  local meta = debug.getmetatable(t)
  return meta and rawget(meta, "__closed")
end

function View:table(t)
  if self.fixed[t] or is_closed(t) then return end
  local copy, n = {}, 0
  for k, v in next, t do
    copy[k], n = v, n + 1
    self:see(k)
    self:see(v)
  end
  local meta = debug.getmetatable(t)
  append(self.tables, t, copy, n, meta)
  self:see(meta)
end

-- Reads t[k] as core.unchanged does: follows __index while it is a table, but
-- calls no function. If __index is a function, returns nil, that function and
-- the metatable that holds it.
local function field(t, k)
  for _ = 1, 8 do
    local v = rawget(t, k)
    local meta = v == nil and debug.getmetatable(t)
    local up = meta and rawget(meta, "__index")
    if type(up) == "function" then return nil, up, meta end
    if type(up) ~= "table" then return v end
    t = up
  end
end

function View:fields(t, keys)
  if self.fixed[t] and t ~= _G then return end
  for k, only_read in next, keys do
    if only_read then
      local v, asked, meta = field(t, k)
      append(self.keys, t, k, v)
      self:see(v)
      if asked then
        append(self.keys, meta, "__index", asked)
        self:see(asked)
        -- Also record t with its metatable, because the script may replace the
        -- metatable later.
        self:see(t)
      end
    end
  end
end

function View:upvalue(f, n, v, use)
  local id = debug.upvalueid(f, n)
  if use.set then self.assigned[id] = true end
  append(self.upvalues, f, n, v, id)
  if not use.whole and type(v) == "table" then
    self:fields(v, use.keys)
  else
    self:see(v)
  end
end

local WHOLE, NOTHING = {whole = true}, {keys = {}}

function View:func(f)
  local uses = bytecode.upvalues(f)
  for n = 1, math.huge do
    local name, v = debug.getupvalue(f, n)
    if not name then return end
    self:upvalue(f, n, v, uses and (uses[n] or NOTHING) or WHOLE)
  end
end

function View:go()
  while #self.pending > 0 do
    local v = table.remove(self.pending)
    if type(v) == "table" then self:table(v) else self:func(v) end
  end
end

-- Reports whether f is defined inside another function that the walk has
-- reached. The record of the outer function then includes what f reads.
local function is_inner(f, texts)
  local i = debug.getinfo(f, "S")
  for _, o in ipairs(texts[i.source] or {}) do
    if o.linedefined <= i.linedefined and i.lastlinedefined <= o.lastlinedefined
    then
      return true
    end
  end
end

-- Examines the functions that ran but that no recorded value reaches, such as
-- those of a module loaded by require.
function View:others()
  local texts = {}
  for f in next, self.ran do
    local i = debug.getinfo(f, "S")
    if self.seen[f] then
      texts[i.source] = texts[i.source] or {}
      table.insert(texts[i.source], i)
    end
  end
  for f in next, self.ran do
    if not is_inner(f, texts) then self:see(f) end
  end
  self:go()
end

-- Returns the upvalues that the walk recorded, each once, without the upvalues
-- that the functions assign.
function View:settle()
  local list, done = {n = 0}, {}
  for i = 1, self.upvalues.n, 4 do
    local f, n, v, id = table.unpack(self.upvalues, i, i + 3)
    if not self.assigned[id] and not done[id] then
      done[id] = true
      append(list, f, n, v)
    end
  end
  return {upvalues = list, keys = self.keys, tables = self.tables}
end

local function new_view(ran)
  return setmetatable({
    ran = ran, seen = {}, pending = {}, fixed = dependencies.fixed(),
    assigned = {}, upvalues = {n = 0}, keys = {n = 0}, tables = {n = 0}}, View)
end

--- Returns the state that a trace of func could read, as a list for
-- core.unchanged. The list has an additional field `ran`, the functions that
-- ran.
---@param func function
---@param held any[] arguments, or parts of arguments, that the kernel uses as
-- Lua values: functions, classes
---@param ran table<function, true> the user's functions that ran during the
-- trace
function dependencies.take(func, held, ran)
  local view = new_view(ran)
  ran[func] = true
  view:see(func)
  for _, v in ipairs(held) do view:see(v) end
  view:go()
  view:others()
  local read = view:settle()
  read.ran = ran
  return read
end

--- Returns the part of a record (see dependencies.take) that can be reached
-- from `values`. Includes all elements of tensors that the trace read. Returns
-- nil if this part is empty.
---@param values any[]
---@param read table a result of dependencies.take
function dependencies.within(values, read)
  local view = new_view(read.ran)
  for _, v in ipairs(values) do view:see(v) end
  view:go()
  local some = view:settle()
  some.elements = read.elements
  return some.upvalues.n + some.keys.n + some.tables.n + some.elements.n > 0
    and some or nil
end

return dependencies
-- SPDX-License-Identifier: MIT
