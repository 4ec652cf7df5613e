--- What a function of the user's takes from around it, as a kernel's arguments.
--
-- An epilogue is written where it is used, and so it names numbers and tensors
-- of that place: upvalues, globals, fields of tables. These are not part of the
-- kernel but what each call hands over, or a bias would be that of the first
-- call. All else that it reads (functions, strings, tables as such) is part.
--
--     local c = capture.of(f)      -- c.key: its code, and what is part of it
--     local values = c:values()    -- numbers and tensors of now
--     local g, bind = c:clone()    -- in a kernel: bind(traced), g(...), bind()
--
-- The clone has upvalues of its own where values go; those of the function stay
-- as they are. Functions that it calls are cloned with it.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"

local capture = {}

local Capture = {}
Capture.__index = Capture

local function fail(f, text, ...)
  local i = debug.getinfo(f, "S")
  core.fail("bad-argument", ("the epilogue at %s:%d %s"):format(i.short_src,
    i.linedefined, text:format(...)))
end

local function is_value(v)
  local t = core.typename(v)
  return math.type(v) ~= nil or t == "tensor" or t == "constexpr"
end

-- A function whose upvalues are looked at, too: the user's own.
local function is_users(v)
  if type(v) ~= "function" then return false end
  local i = debug.getinfo(v, "S")
  return i.what ~= "C" and not core.own_source(i.source)
end

-- What a key says of a part that is no value.
local function text_of(v)
  local t = type(v)
  if t == "string" then return ("%q"):format(v) end
  if t == "boolean" or t == "nil" then return tostring(v) end
  return ("%s %p"):format(t, v)
end

-- Numbers of codes, which are long: by what string.dump gives.
local codes, count = {}, 0

local function code_of(f)
  local dump = string.dump(f)
  if not codes[dump] then
    count = count + 1
    codes[dump] = count
  end
  return codes[dump]
end

---------------------------------------------------------------------------
-- The walk
---------------------------------------------------------------------------

-- Field k of what upvalue i of f holds: a value, a part, or nothing.
local function look(self, f, i, k, v)
  if is_value(v) then
    self.slots[#self.slots + 1] = {f, i, k}
    self.key[#self.key + 1] = "v"
  else
    self.parts[#self.parts + 1] = {f, i, k, v}
    self.key[#self.key + 1] = text_of(v)
  end
end

local function sorted(keys)
  local list = {}
  for k in pairs(keys) do list[#list + 1] = k end
  table.sort(list, function(a, b) return tostring(a) < tostring(b) end)
  return list
end

local function walk(self, f, root)
  if self.number[f] then
    self.key[#self.key + 1] = "f" .. self.number[f]
    return
  end
  self.functions[#self.functions + 1] = f
  self.number[f] = #self.functions
  self.key[#self.key + 1] = code_of(f)
  local uses = bytecode.upvalues(f)
  for i = 1, uses and math.huge or 0 do
    local name, v = debug.getupvalue(f, i)
    if not name then break end
    local use = uses[i]
    if use and use.set then
      fail(root, "assigns '%s', which is outside of it: it keeps no state",
           name)
    end
    for k, only_read in pairs(use and use.keys or {}) do
      if not only_read then
        fail(root, "assigns '%s' of '%s': it keeps no state", tostring(k), name)
      end
    end
    if use and type(v) == "table" and not use.whole then
      for _, k in ipairs(sorted(use.keys)) do look(self, f, i, k, v[k]) end
    elseif use and is_users(v) then
      self.children[#self.children + 1] = {f, i, v}
      walk(self, v, root)
    elseif use then
      look(self, f, i, nil, v)
    end
  end
end

local known = setmetatable({}, {__mode = "k"})

-- Is all that is no value as it was, and are values still values?
local function holds(c)
  for _, p in ipairs(c.parts) do
    local _, v = debug.getupvalue(p[1], p[2])
    if p[3] ~= nil then v = v[p[3]] end
    if not rawequal(v, p[4]) then return false end
  end
  for _, p in ipairs(c.children) do
    local _, v = debug.getupvalue(p[1], p[2])
    if not rawequal(v, p[3]) then return false end
  end
  return true
end

-- The values of now; nil where one is none any more.
function Capture:values()
  local list = {}
  for n, s in ipairs(self.slots) do
    local _, v = debug.getupvalue(s[1], s[2])
    if s[3] ~= nil then v = v[s[3]] end
    if not is_value(v) then return nil end
    list[n] = v
  end
  return list
end

--- What f captures now. Fields: key, equal for functions of one code and with
-- the same parts; values, the list; clone().
---@param f function
---@return table
function capture.of(f)
  local c = known[f]
  local values = c and holds(c) and c:values()
  if not values then
    c = setmetatable({functions = {}, number = {}, slots = {}, parts = {},
                      children = {}, key = {}}, Capture)
    walk(c, f, f)
    c.key = table.concat(c.key, " ")
    known[f] = c
    values = c:values()
  end
  return c, values
end

---------------------------------------------------------------------------
-- Clones
---------------------------------------------------------------------------

-- f's code with upvalues of its own, which hold nothing yet.
local function bare(f)
  local g = assert(load(string.dump(f), "clone", "b"))
  for i = 1, math.huge do
    if not debug.setupvalue(g, i, nil) then return g end
  end
end

--- A function like the captured one, whose values are those that bind gives it:
-- bind(list), in the order of values(); bind() takes them away.
---@return function
---@return function bind
function Capture:clone()
  local to = {}
  for _, f in ipairs(self.functions) do to[f] = bare(f) end
  local own = {}  -- [clone] = {[upvalue] = true: not the original's}
  for _, g in pairs(to) do own[g] = {} end
  local views = {}  -- what stands for a table of which fields are values
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
  for _, p in ipairs(self.parts) do  -- other fields of such tables
    local view = p[3] ~= nil and views[to[p[1]]] and views[to[p[1]]][p[2]]
    if view then view[p[3]] = p[4] end
  end
  for _, p in ipairs(self.children) do
    debug.setupvalue(to[p[1]], p[2], to[p[3]])
    own[to[p[1]]][p[2]] = true
  end
  for f, g in pairs(to) do
    for i = 1, math.huge do
      if not debug.getupvalue(f, i) then break end
      if not own[g][i] then debug.upvaluejoin(g, i, f, i) end
    end
  end
  return to[self.functions[1]], function(list)
    for n, f in ipairs(set) do f(list and list[n]) end
  end
end

return capture
