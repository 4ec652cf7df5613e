--- Writes notes on kernel arguments in a wrong order. A script often has locals
-- with the names of the kernel's parameters. The order is probably wrong if
-- each of two arguments is the local with the name of the other's parameter.
-- Only the first call of a kernel is examined, because later calls may exchange
-- two tensors on purpose. For lessons, the names of operands are compared with
-- the parameters.
local core = require "cute.core"
local source = require "cute.lang.source"
local tokens = require "cutelua.text.tokens"
local words = require "cute.lang.report"
local at = require "cute.lang.simreport".at

local crossed = {}

-- The largest tensor, in elements, that is_zero compares with 0.
local MOST = 1 << 16

-- Returns the stack level of the script's function that calls the kernel,
-- relative to the caller of this function.
local function script_level()
  for level = 3, 13 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      return level - 1, info
    end
  end
end

-- Returns the locals and upvalues of the function at a stack level, by name.
local function names_at(level)
  local values = {}
  local func = debug.getinfo(level + 1, "f").func
  for n = 1, math.huge do
    local name, value = debug.getupvalue(func, n)
    if not name then break end
    values[name] = value
  end
  for n = 1, math.huge do
    local name, value = debug.getlocal(level + 1, n)
    if not name then break end
    values[name] = value
  end
  return values
end

-- Returns the positions i and j of two arguments that seem to be exchanged, or
-- nil. is(i, name) reports whether argument i is the script's variable `name`.
local function exchanged(params, is)
  for i = 1, #params do
    for j = i + 1, #params do
      if is(i, params[j]) and is(j, params[i]) and not is(i, params[i]) then
        return i, j
      end
    end
  end
end

-- Returns the source lines of a function, or "" if they are unknown.
local function lines(info)
  local text, from = source.text(info.source) or "", 1
  local to
  for n = 1, info.lastlinedefined do
    if n == info.linedefined then from = (to or 0) + 1 end
    to = text:find("\n", (to or 0) + 1, true) or #text
  end
  return text:sub(from, to)
end

-- Returns the names of the locals to which a function with the parameter `...`
-- assigns its arguments, as in local x, y = ...
local function unpacked(info)
  local text, names = lines(info), nil
  if not text:find "=%s*%.%.%." then return {} end
  local function is(token, word) return token and token.text == word end
  local list = tokens.of(text)
  for k, token in ipairs(list) do
    if is(token, "local") then names = {}
    elseif names and token.name then names[#names + 1] = token.text
    elseif names and is(token, "=") then
      local next = list[k + 2]
      local whole = is(list[k + 1], "...") and (not next
        or next.line > list[k + 1].line or next.text == ";")
      if whole then return names end
      names = nil
    elseif not is(token, ",") then names = nil
    end
  end
  return {}
end

-- Returns the names of a function's first n parameters. If it has the parameter
-- `...`, the last names may be of locals to which it assigns `...`.
local function parameters(func, n)
  local params, info = {}, debug.getinfo(func, "uS")
  for k = 1, n do
    params[k] = debug.getlocal(func, k)
    if not params[k] then break end
  end
  if info.isvararg and #params < n then
    table.move(unpacked(info), 1, n - #params, #params + 1, params)
  end
  return params
end

-- By kernel: a call {i, j, note, tensors} whose arguments i and j seem to be
-- exchanged. So far, only the names of the script's variables suggest this.
local doubtful = setmetatable({}, {__mode = "k"})

--- Writes a note if two arguments of a call seem to be exchanged. If no
-- argument has the name of its own parameter, crossed.traced decides later
-- whether to write the note.
---@param k table kernel
---@param call table the arguments
function crossed.crossed(k, call)
  local level, info = script_level()
  if not level or call.n < 2 then return end
  local params, values = parameters(k.func, call.n), names_at(level)
  local function is(i, name)
    return values[name] ~= nil and rawequal(call[i], values[name])
  end
  local i, j = exchanged(params, is)
  if not i then return end
  local text = ("kernel %s: %s: parameter '%s' gets the script's '%s', and "
    .. "parameter '%s' gets '%s'; is the order of the arguments right?")
    :format(k.name, at(info.source, info.currentline), params[i], params[j],
    params[j], params[i])
  for n, name in ipairs(params) do
    if is(n, name) then return words.note(text) end
  end
  doubtful[k] = {i, j, text, {[i] = call[i], [j] = call[j]}}
end

-- Reports whether the memory of a host tensor contains only zeros. It returns
-- false for a tensor of more than MOST elements, and nil if the host cannot
-- read the memory.
local function is_zero(t)
  local ok, b = pcall(core.param_memory, t)
  if not ok or core.typename(b) ~= "buffer" then return nil end
  for k = 0, math.min(#b, MOST) - 1 do
    if b[k] ~= 0 then return false end
  end
  return #b <= MOST
end

--- Emits the postponed note on arguments i and j of a kernel's first call, if
-- their contents confirm that they are exchanged. This is so if the kernel only
-- reads the one that contains only zeros, and only writes the other one.
---@param k table kernel
---@param args table[] the arguments as fn:info() returns them
function crossed.traced(k, args)
  local i, j, text, tensors = table.unpack(doubtful[k] or {})
  doubtful[k] = nil
  if not i then return end
  local named = {}
  for _, a in ipairs(args) do named[a.name] = a end
  local params = parameters(k.func, j)
  local function of(n) return named[params[n]] or named["arg" .. n] end
  for from, to in pairs {[i] = j, [j] = i} do
    local a, b = of(from), of(to)
    if a and b and a.read and not a.written and b.written and not b.read
      and is_zero(tensors[from]) and is_zero(tensors[to]) == false then
      return words.note(text)
    end
  end
end

--- Writes a note if two operands of a lesson have each other's parameter names.
-- Upper and lower case do not matter.
---@param k table kernel
---@param names any[] names of the operands by position; false for other
-- arguments
---@return boolean noted
function crossed.named(k, names)
  local params = parameters(k.func, names.n or #names)
  local i, j = exchanged(params, function(n, name)
    return type(names[n]) == "string" and names[n]:lower() == name:lower()
  end)
  if not i then return false end
  words.note(("kernel %s: parameter '%s' gets operand '%s', and parameter '%s' "
    .. "gets '%s'; is the order of the arguments right?"):format(k.name,
    params[i], names[i], params[j], names[j]))
  return true
end

return crossed
-- SPDX-License-Identifier: MIT
