--- Emits a note if a kernel's function assigns a variable outside the kernel,
-- where a local of the kernel was probably meant. Lua runs the function once,
-- to trace it, so such an assignment runs once, on the host.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local words = require "cute.lang.report"
local at = require "cute.lang.simreport".at

local strays = {}

-- A variable outside a kernel that the kernel's function assigns. It is a local
-- of the script that holds a number, or a global without a value.
--
-- func: the kernel's function. n: the index of func's upvalue, which is the
-- local or _ENV. name: the variable's name.
--
-- A local also has the following fields.
-- - use: how func uses it (see bytecode.upvalues).
-- - before: its value before the trace.
-- - changed: whether the trace assigned it.
--
-- A global also has the following fields. env: the table of globals. key: its
-- name.
local Stray = {}
Stray.__index = Stray

-- Returns a Stray for each variable outside func that func assigns: locals that
-- hold numbers and globals without a value.
local function candidates(func)
  local list = {}
  local function add(stray)
    stray.func = func
    list[#list + 1] = setmetatable(stray, Stray)
  end
  for n, use in pairs(bytecode.upvalues(func) or {}) do
    local name, value = debug.getupvalue(func, n)
    if use.set and use.whole and math.type(value) then
      add {n = n, name = name, use = use, before = value}
    elseif name == "_ENV" and type(value) == "table" then
      for key, only_read in pairs(use.keys) do
        if not only_read and rawget(value, key) == nil then
          add {n = n, name = key, key = key, env = value}
        end
      end
    end
  end
  return list
end

local SHARES = "the kernel assigns the global '%s', which it shares with the "
  .. "script and all kernels; write `local %s = ...`"
local TRACED = "the kernel assigns a traced value to '%s', a local of the "
  .. "script, where no later code can use it; declare the local in the kernel"
local ONCE = "'%s' is a local of the script: the kernel changed it once, on "
  .. "the host, when it was traced, not in each thread or launch; declare it "
  .. "in the kernel, or count in a tensor by cute.arch.atomic_add"
local UNSEEN = "'%s' is a local of the script, which keeps its value: what the "
  .. "threads assign to it does not reach the script; count in a tensor by "
  .. "cute.arch.atomic_add"

-- Returns the note on a global that the kernel assigned. Returns nil if its
-- value is a table, function or string, because such values may be shared on
-- purpose. The value may be nil, because traced branches restore the variables
-- that they assign.
function Stray:global()
  local kind = type(rawget(self.env, self.key))
  local shared = kind == "table" or kind == "function" or kind == "string"
  return not shared and SHARES or nil
end

-- Returns the note on a local of the script that the kernel assigned, or nil.
-- Traced loops and branches restore the locals that they assign, so the value
-- alone does not show the assignment. The field `changed` records the
-- assignment. There is no note if the kernel also reads the assigned number.
function Stray:outer()
  local _, now = debug.getupvalue(self.func, self.n)
  if core.typename(now) == "value" then return TRACED end
  if math.type(now) and now ~= self.before then return ONCE end
  return self.changed and self.use.balance <= 0 and UNSEEN or nil
end

function Stray:tell(kernel)
  local text = self.key and self:global() or not self.key and self:outer()
  if not text then return end
  local line = bytecode.assigned(self.func, self.n, self.key)
  local info = debug.getinfo(self.func, "S")
  words.note(core.visible(("kernel %s: %s: %s"):format(kernel,
    at(info.source, line or info.linedefined),
    text:format(self.name, self.name))))
end

local Strays = {}
Strays.__index = Strays

-- Sets the field `changed` of each local. Call it at the end of the trace,
-- before loops and branches restore the locals that they assign.
function Strays:look()
  for _, s in ipairs(self.list) do
    if not s.key then
      local _, now = debug.getupvalue(s.func, s.n)
      s.changed = not rawequal(now, s.before)
    end
  end
end

-- Emits the notes. Call it after the trace.
function Strays:tell()
  for _, s in ipairs(self.list) do s:tell(self.kernel) end
end

--- Returns an object that finds assignments of variables outside the kernel,
-- during the next trace of `func`. Returns nil if `func` assigns none.
---@param kernel string name of the kernel
---@param func function
---@return {look: fun(self), tell: fun(self)}?
function strays.strays(kernel, func)
  local list = candidates(func)
  if not list[1] then return nil end
  return setmetatable({kernel = kernel, list = list}, Strays)
end

return strays
-- SPDX-License-Identifier: MIT
