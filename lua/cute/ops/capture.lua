--- Captures the values that a user's function reads from its environment, so
-- that they can be passed as kernel arguments.
--
-- An epilogue is a function that may use numbers and tensors from outside:
-- upvalues, globals, fields of tables. Each call passes their current values.
-- If they were constants, every call would use the first call's bias, for
-- example. Everything else that the function reads (functions, strings, whole
-- tables) is part of the kernel.
--
--     local c = capture.of(f)      -- c.values: the current numbers and tensors
--     local g, bind = c:clone()    -- in a kernel: bind(traced), g(...), bind()
--
-- The method `clone` makes a copy of the function with new upvalues for the
-- captured values. The upvalues of the original stay unchanged. Functions that
-- the original calls are cloned with it.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local dependencies = require "cute.lang.dependencies"

local capture = {}

local Capture = {}
Capture.__index = Capture

local function fail(f, text, ...)
  local i = debug.getinfo(f, "S")
  core.fail("bad-argument", ("the function at %s:%d %s"):format(i.short_src,
    i.linedefined, text:format(...)))
end

local function is_value(v)
  local t = core.typename(v)
  return math.type(v) ~= nil or t == "tensor" or t == "constexpr"
end

--- Reports whether v is a function of the user, whose upvalues are captured.
function capture.is_users(v)
  if type(v) ~= "function" then return false end
  local i = debug.getinfo(v, "S")
  return i.what ~= "C" and not core.own_source(i.source)
end
local is_users = capture.is_users

local codes = 0

--- Returns a list that describes the values that f captures: {[0] = the list's
-- number, upvalue, n, key 1 .. key n, ...}. If n > 0, the fields of the upvalue
-- with these n keys are captured; if n = 0, the whole upvalue. Returns false if
-- f is not a user's function, if its code cannot be read, or if it keeps state.
-- Functions with the same code have the same list. core.calls calls this
-- function.
---@param f function
---@return table|false form
---@return string? wrong the operation of f that is not allowed
function capture.form(f)
  local uses = is_users(f) and bytecode.upvalues(f)
  if not uses then return false end
  codes = codes + 1
  local form = {[0] = codes}
  for i = 1, math.huge do
    local name = debug.getupvalue(f, i)
    if not name then return form end
    local use = uses[i]
    if use and use.set then
      return false, ("assigns '%s', which is defined outside of it; a "
        .. "function that cute.ops traces cannot keep state")
        :format(name)
    end
    local keys = {}
    for k, only_read in pairs(use and use.keys or {}) do
      if not only_read then
        return false, ("assigns '%s' of '%s'; a function that cute.ops "
          .. "traces cannot keep state"):format(
          tostring(k), name)
      end
      keys[#keys + 1] = k
    end
    if use then
      table.sort(keys, function(x, y) return tostring(x) < tostring(y) end)
      local n = use.whole and 0 or #keys
      table.insert(form, i)
      table.insert(form, n)
      table.move(keys, 1, n, #form + 1, form)
    end
  end
end

---------------------------------------------------------------------------
-- Walking the functions
---------------------------------------------------------------------------

-- Records v. Without k, v is the value of upvalue i of f; with k, of field k of
-- this upvalue. Adds numbers and tensors to self.values, other values to
-- self.parts.
local function look(self, f, i, k, v)
  if is_value(v) then
    self.slots[#self.slots + 1] = {f, i, k}
    self.values[#self.values + 1] = v
  else
    self.parts[#self.parts + 1] = {f, i, k, v}
  end
end

-- Visits the values that f captures, in the same order as core.calls
-- (core/bind/plan_cache.c).
local function walk(self, f, root)
  if self.number[f] then return end
  self.functions[#self.functions + 1] = f
  self.number[f] = #self.functions
  local form, wrong = capture.form(f)
  if wrong then fail(root, "%s", wrong) end
  local at = 1
  while form and at < #form do
    local i, n = form[at], form[at + 1]
    local _, v = debug.getupvalue(f, i)
    if n > 0 and type(v) == "table" then
      for k = at + 2, at + 1 + n do look(self, f, i, form[k], v[form[k]]) end
    elseif is_users(v) then
      self.children[#self.children + 1] = {f, i, v}
      walk(self, v, root)
    else
      look(self, f, i, nil, v)
    end
    at = at + 2 + n
  end
end

--- Returns an object with the values that f captures now. Its fields are values
-- (the numbers and tensors), parts (everything else, as {function, upvalue,
-- field, value}) and the method clone().
---@param f function
---@return table
function capture.of(f)
  if debug.getinfo(f, "S").what == "C" and not core.signature(f) then
    core.fail("bad-argument", ("%s: this is a built-in Lua function; a "
      .. "function of the script or of cute is needed"):format(core.show(f)))
  end
  local c = setmetatable({functions = {}, number = {}, slots = {}, parts = {},
                          children = {}, values = {}}, Capture)
  walk(c, f, f)
  return c
end

---------------------------------------------------------------------------
-- Clones
---------------------------------------------------------------------------

-- Returns a function with f's code and new upvalues, which are nil. Returns f
-- itself if it is not a function of the user.
local function bare(f)
  if not is_users(f) then return f end
  local g = assert(load(string.dump(f), "clone", "b"))
  for i = 1, math.huge do
    if not debug.setupvalue(g, i, nil) then return g end
  end
end

--- Returns a copy of the captured function, and a function bind that sets the
-- copy's captured values: bind(list) sets them in the order of `values`,
-- bind() removes them.
---@return function
---@return function bind
function Capture:clone()
  local to = {}
  for _, f in ipairs(self.functions) do to[f] = bare(f) end
  -- own[clone][upvalue] is true if the clone does not share this upvalue with
  -- the original function.
  local own = {}
  for _, g in pairs(to) do own[g] = {} end
  -- views[clone][upvalue] is the table that the clone reads in place of an
  -- original table, some of whose fields are captured.
  local views = {}
  local set = {}
  for n, s in ipairs(self.slots) do
    local g, i, k = to[s[1]], s[2], s[3]
    if k == nil then
      set[n] = function(v) debug.setupvalue(g, i, v) end
    else
      views[g] = views[g] or {}
      local view = views[g][i] or {}
      views[g][i] = view
      set[n] = function(v) view[k] = v end
      debug.setupvalue(g, i, view)
    end
    own[g][i] = true
  end
  -- Copies fields that the function reads, but that are not captured, from each
  -- original table to its view.
  for _, p in ipairs(self.parts) do
    local view = p[3] ~= nil and views[to[p[1]]] and views[to[p[1]]][p[2]]
    if view then view[p[3]] = p[4] end
  end
  for _, p in ipairs(self.children) do
    debug.setupvalue(to[p[1]], p[2], to[p[3]])
    own[to[p[1]]][p[2]] = true
  end
  for f, g in pairs(to) do
    for i = 1, math.huge do
      if f == g or not debug.getupvalue(f, i) then break end
      if not own[g][i] then debug.upvaluejoin(g, i, f, i) end
    end
  end
  return to[self.functions[1]], function(list)
    for n, f in ipairs(set) do
      local v = list and list[n]
      -- A function may read only some elements of a captured tensor. This is no
      -- error.
      if core.typename(v) == "tensor" and core.tracing() then
        core.partial_ok(v)
      end
      f(v)
    end
  end
end

--- Compiles the text of a function of this library, and returns the function.
-- capture treats it like a function of the user, so that its upvalues are
-- captured.
---@param text string
---@param name string for error messages
---@return function
function capture.compile(text, name)
  return assert(load(text, "=" .. name, "t", {}))
end

local pair = capture.compile("local f, g = ... return function() return f, g "
  .. "end", "two functions")

--- Returns a function that returns f and g, either of which may be nil. The
-- values that f and g capture count as captured by this function.
---@param f function?
---@param g function?
---@return fun(): function?, function?
function capture.pair(f, g) return pair(f, g) end

---------------------------------------------------------------------------
-- State
---------------------------------------------------------------------------

--- Returns the state that a trace of the function read in addition to the
-- captured values. The result has the state's current contents, in the form
-- that core.unchanged accepts. Returns nil if the trace read no such state.
---@param program table the program of that trace
---@return table?
function Capture:reads(program)
  local roots = {}
  for _, part in ipairs(self.parts) do roots[#roots + 1] = part[4] end
  return dependencies.within(roots, program.read)
end

--- Raises an error if a function stored to a captured tensor while it was
-- traced separately. Such a store would be state, which is not supported.
---@param program table the program of that trace
function Capture:check_stores(program)
  for _, a in ipairs(program.info.args) do
    if a.written then
      fail(self.functions[1], "stores to a tensor that is defined outside of "
        .. "it; a function that cute.ops traces cannot keep state")
    end
  end
end

--- Wraps the clone g in a function that raises an error if g changes state that
-- an earlier trace read.
---@param g function
---@param read? table the state that the trace read
---@return function
function capture.steady(g, read)
  return not read and g or function(...)
    local same = core.unchanged(read)
    local out = table.pack(g(...))
    if same and not core.unchanged(read) then
      fail(g, "changes values outside of it; a function that cute.ops traces "
        .. "cannot keep state")
    end
    return table.unpack(out, 1, out.n)
  end
end

return capture
-- SPDX-License-Identifier: MIT
