--- Explains common mistakes: wrong arguments, traced values where Lua needs
-- ordinary values, and undefined fields and names. The compiler loads this
-- module at the first such error (sign.workshop).
local core = require "cute.core"
local crossed = require "cutelua.text.crossed"
local report = require "cute.lang.report"
local source = require "cute.lang.source"
local tokens = require "cutelua.text.tokens"

local mistakes = {}

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- The kind of value that an operation needs. The keys are the words that Lua's
-- error messages use for the operation: "index" in "attempt to index a nil
-- value".
local EXPECTED = {
  index = "a table or an object", call = "a function",
  ["perform arithmetic on"] = "a number",
  ["perform bitwise operation on"] = "an integer",
  concatenate = "a string or a number", ["get length of"] = "a list",
}

-- Each entry has a pattern for Lua's error messages and a replacement that is
-- formatted with the captures. The third element is the kind of the error (by
-- default bad-argument).
local SENTENCES = {
  {"^attempt to compare two ([%a_.]+) values",
   "two values (%s) cannot be compared with <"},
  {"^attempt to compare ([%a_.]+) with ([%a_.]+)",
   "a %s is compared with a %s, where numbers are expected"},
  {"^attempt to perform 'n[/%%]+0'", "a number is divided by 0"},
  {"has no integer representation",
   "a number is not an integer, where one is expected"},
  {"^'for' (%a+) .*must be a number", "the %s of a loop is not a number"},
  {"^'for' step is zero", "a step is 0"},
  {"^table index is (%a+)", "a key of a table is %s"},
  {"^bad argument #%d+ to '[^']*' %((%a+) expected, got ([%a_. ]+)%)",
   "a %s is expected, got %s"},
  {"^invalid value %(at index %d+%) in table",
   "a list holds a value that is neither a string nor a number"},
  {"^string slice too long", "a string is too long", "limit"},
  {"too large$", "a string is too long", "limit"},
  {"^too many results to unpack", "a list is too long", "limit"},
  {"^attempt to yield", "a callback yields, but it cannot be resumed"},
}

--- Rewrites an error message of Lua as a message about an argument. For
-- example, "attempt to index a nil value (field 'tile')" becomes "'tile' is
-- nil, where a table is expected".
---@param sentence string
---@return string message
---@return string? kind of the error
function mistakes.argument(sentence)
  local what, type_, name =
    sentence:match "^attempt to ([%a ]-) an? ([%a_.]+) value(.*)"
  if EXPECTED[what] then
    local of = name:match "^ %(%a+ '([%a_][%w_]*)'%)"
    return ("%s is %s, where %s is expected"):format(
      of and "'" .. of .. "'" or "a value",
      type_ == "nil" and type_ or "a " .. type_:gsub("^cute%.", ""),
      EXPECTED[what])
  end
  for _, row in ipairs(SENTENCES) do
    if sentence:find(row[1]) then
      return row[2]:format(sentence:gsub("cute%.", ""):match(row[1])), row[3]
    end
  end
  return "an argument has the wrong type or value"
end

-- Returns the launch options as text: "{grid = 1, block = 64}".
local function options_text(options)
  local out, order = {}, {grid = 1, block = 2}
  for name, value in pairs(options) do
    out[#out + 1] = {name, type(name) ~= "string" and core.show(value)
      or ("%s = %s"):format(name, core.show(value))}
  end
  table.sort(out, function(a, b)
    local i, j = order[a[1]] or 3, order[b[1]] or 3
    if i ~= j then return i < j end
    return tostring(a[1]) < tostring(b[1])
  end)
  for i, row in ipairs(out) do out[i] = row[2] end
  return "{" .. table.concat(out, ", ") .. "}"
end

--- Returns a sentence that lists a kernel's parameters and states how many
-- arguments were passed.
---@param k table
---@param n integer
---@param options? table the last argument, if it contains launch options
---@return string
function mistakes.number_of_arguments(k, n, options)
  local names, u = {}, debug.getinfo(k.func, "u")
  for i = 1, u.nparams do names[i] = debug.getlocal(k.func, i) or "?" end
  if u.isvararg then names[#names + 1] = "..." end
  if options then
    local shown = options_text(options)
    return ("kernel %s got the options of a launch, %s, as an argument\n  "
      .. "write %s(%s):launch %s"):format(k.name, shown, k.name,
      table.concat(names, ", "), shown)
  end
  return ("kernel %s takes %d argument%s (%s), got %d"):format(k.name,
    u.nparams, u.nparams == 1 and "" or "s", table.concat(names, ", "), n)
end

--- Returns the error message for a launch that was called with a dot instead of
-- a colon, or with grid and block as two separate arguments.
---@param call any the receiver
---@param colon boolean was the launch called with a colon?
---@param grid any
---@param block any
---@return string
function mistakes.odd_launch(call, colon, grid, block)
  if not colon then
    return ("'call:launch' is a method, but was called with a dot, on %s\n  "
      .. "write k(arguments...):launch {grid = g, block = b} with a colon")
      :format(options_text(call))
  end
  local given = block ~= nil and "(%s, %s)" or "(%s)"
  given = given:format(core.show(grid), core.show(block))
  if type(grid) == "table" and grid[1] ~= nil and block == nil then
    given, grid, block = options_text(grid), grid[1], grid[2]
  end
  return ("call:launch takes a table of named options, but was given %s\n  "
    .. "write :launch {grid = %s, block = %s}"):format(given, core.show(grid),
    block == nil and "b" or core.show(block))
end

-- Reports whether a kernel belongs to the library, not to the user's script.
local function is_library(k)
  local from = debug.getinfo(k.func, "S").source
  return core.own_source(from) or from:find "kernels[/%.]" ~= nil
end

-- Returns a line that lists a kernel's arguments. Tensors are listed with type
-- and shape.
local function arguments_text(k, args)
  local list = {}
  for i = 1, args.n do
    local ok, shape = pcall(function()
      return args[i].element_type.name .. " " .. tostring(args[i].shape)
    end)
    local name = debug.getlocal(k.func, i)
    list[i] = (name and name .. " " or "") .. (ok and shape
      or core.show(args[i]))
  end
  return ("the arguments of kernel %s: %s"):format(k.name,
    table.concat(list, ", "))
end

--- Explains a missing argument. If too few were passed, returns a sentence
-- about their number. If the error is about nil, the sentence names the first
-- parameter whose argument is nil. For a kernel of the library, returns the
-- list of arguments, because the error does not show source lines of such
-- kernels.
---@param k table
---@param args table
---@param about_nil boolean
---@return string?
function mistakes.missing_argument(k, args, about_nil)
  if args.n < k.takes then
    return mistakes.number_of_arguments(k, args.n)
      .. ": the missing ones are nil"
  end
  for i = 1, about_nil and k.takes or 0 do
    if args[i] == nil then
      return ("kernel %s: argument %d (%s) is nil"):format(k.name, i,
        debug.getlocal(k.func, i) or "?")
    end
  end
  local from = debug.getinfo(k.func, "S").source
  return from:find "kernels[/%.]" and arguments_text(k, args) or nil
end

-- Returns the names of the unused parameters of kernel k as text, and the
-- number of these names. A parameter is unused if no instruction uses it. A
-- tensor counts as used if an instruction uses one of its dynamic extents, or
-- if cute.partial_ok was called for it. Returns "" and 0 if no argument is
-- used.
local function unused_parameters(k, info)
  local ok, list, names = {}, {}, {}
  for _, m in ipairs(info.mems) do
    if m.arg and m.partial_ok then ok[m.arg] = true end
  end
  for i = 1, k.takes do names[debug.getlocal(k.func, i) or ""] = true end
  local last, some
  for i, a in ipairs(info.args) do
    if names[a.name] then last = i end
    if last and a.used then ok[last] = true end
    some = some or a.used
  end
  if not some then return "", 0 end
  for i, a in ipairs(info.args) do
    if names[a.name] and not ok[i] then
      list[#list + 1] = ("'%s'"):format(a.name)
    end
  end
  return table.concat(list, ", "), #list
end

--- Emits a note if a kernel of the script has no effect, or if it does not use
-- all of its arguments.
---@param k table
---@param program table
function mistakes.note_traced(k, program)
  crossed.traced(k, program.info.args)
  local info = debug.getinfo(k.func, "S")
  if program.info.ptx or is_library(k) then return end
  local function note(text, ...)
    report.note(("%s:%d: kernel %s "):format(info.short_src, info.linedefined,
      k.name) .. text:format(...))
  end
  if program.info.idle then
    note("stores nothing to its arguments, so that a launch has no effect: "
      .. "write t[i] = x or t:store(x)")
  end
  local names, n = unused_parameters(k, program.info)
  if n > 0 and not program.info.idle then
    note("does not use %s %s; is a line missing, or does one name another "
      .. "argument by mistake? Leave out what is not needed, or call "
      .. "cute.partial_ok(tensor)", n == 1 and "argument" or "arguments", names)
  end
end

---------------------------------------------------------------------------
-- Traced values
---------------------------------------------------------------------------

-- Patterns for Lua's error messages about traced values, with the advice for
-- each.
local HINTS = {
  {"'for' initial", "a traced start needs `for k in cute.range(lo, hi, step) "
    .. "do`"},
  {"'for' limit", "a traced limit needs `for k in cute.range(n) do`"},
  {"'for' step", "a traced step needs `for k in cute.range(lo, hi, step) do`"},
  {"bad argument .- to 'format' .-got cute.value", "the value exists only on "
    .. "the device: use cute.printf(...)"},
  {"got cute%.value", "a traced value exists only on the device"},
  {"a cute%.value value", "a traced value exists only on the device"},
  {"arithmetic on a nil value %(field '%?'%)", "a traced value cannot be the "
    .. "key of a plain table: use a tensor, or cute.where"},
  {"attempt to index a nil value %(field '%?'%)", "a traced value cannot be "
    .. "the key of a plain table: use a tensor, or cute.where"},
}

--- Appends advice to an error message of Lua if the message is about a traced
-- value.
---@param message string
---@return string
function mistakes.traced(message)
  for _, h in ipairs(HINTS) do
    if message:find(h[1]) then
      local name = message:match "bad argument .- to '([%w_]+)'"
      if name and math[name] and require "cute"[name] then
        return ("%s [traced-in-lua]\n  use cute.%s(...)"):format(message, name)
      end
      return ("%s [traced-in-lua]\n  %s"):format(message, h[2])
    end
  end
  return message
end

local STOPS, TESTED = {}, {}
for word in ([[if elseif while until not and or then do return end local else
  repeat = , ;]]):gmatch "%S+" do STOPS[word] = true end
for word in ("and or then do"):gmatch "%S+" do TESTED[word] = -1 end
for word in ("if elseif while until not"):gmatch "%S+" do TESTED[word] = 1 end
local OPENS, CLOSES = {["("] = 1, ["["] = 1, ["{"] = 1},
  {[")"] = 1, ["]"] = 1, ["}"] = 1}

-- Returns the text of an operand of the operator at token i: the left operand
-- if step is -1, the right operand if step is 1.
local function operand(line, list, i, step)
  local depth, j = 0, i + step
  while list[j] do
    local text = list[j].text
    local l, r = list[math.min(j, j - step)], list[math.max(j, j - step)]
    if j ~= i + step and depth == 0 and r.name
      and (l.name or CLOSES[l.text]) then
      -- No operator separates these tokens, so a new statement begins here.
      break
    end
    local opens = (step > 0 and OPENS or CLOSES)[text] or 0
    local closes = (step > 0 and CLOSES or OPENS)[text] or 0
    if depth == 0 and (STOPS[text] or closes > 0) then break end
    depth, j = depth + opens - closes, j + step
  end
  local first = math.min(i + step, j - step)
  local last = math.max(i + step, j - step)
  if not list[first] or not list[last] or (j - i) * step < 2 then return end
  local stop = list[last + 1] and list[last + 1].from - 1 or #line
  return (line:sub(list[first].from, stop):gsub("%s+$", ""))
end

--- Returns the condition of the `if` or `while` in a line. Returns nil if the
-- line has several conditions, or if the condition is a name or a number.
---@param info table of debug.getinfo: source and currentline
---@return string?
function mistakes.tested_expression(info)
  local line = source.line(info.source, info.currentline)
  if not line then return end
  local list, found = tokens.of(line), nil
  for i, token in ipairs(list) do
    local step = TESTED[token.text]
    local text = step and operand(line, list, i, step)
    local bare = text and text:gsub("%b()", "")
    if text and not text:find "^[%a_][%w_]*$" and not text:find "^%d"
      and not bare:find "[<>~=]" then
      if found and found ~= text then return end
      found = text
    end
  end
  if found and found:gsub("%b()", ""):gsub("%b[]", ""):find "[^%w_.:]" then
    return "(" .. found .. ")"
  end
  return found
end

--- Returns the error message for a traced value that Lua tests as a condition.
---@param name? string the value's name, or the condition as text
---@param argument boolean is it an argument of the kernel?
---@return string
function mistakes.always_true(name, argument)
  return ("%s is always true in Lua's if, and, or, not, while, even when it is "
    .. "0\n  write %s:ne(0), and cute.when(...) to branch on it, cute.where(c, "
    .. "x, y) to choose%s"):format(name
      and "the traced value '" .. name .. "'" or "a traced value",
    name or "value", argument
      and ("; '%s ~= nil' asks whether it was given"):format(name or "value")
      or "")
end

--- Returns the error message for an iterator that is not used in a `for` loop,
-- such as the statement cute.when(c).
---@param what string "cute.when(c)"
---@param line? string the script's line with the call
---@return string
function mistakes.idle_iterator(what, line)
  local call = line and what:find "^cute%.when"
    and line:match "when%s*(%b())"
  local f = call and call:match ",%s*([%a_][%w_.:]*)%s*%b()%s*%)$"
  if f then
    return ("cute.when got no function: %s() returns nothing, and its result "
      .. "was passed [bad-argument]\n  write cute.when(c, %s) for the "
      .. "function itself"):format(f, f)
  elseif what:find "^cute%.when" then
    return "cute.when got no function, and no `for` runs over it "
      .. "[bad-argument]\n  write cute.when(c, function() ... end), or for _ "
      .. "in cute.when(c) do ... end"
  end
  return ("%s is an iterator that no `for` loop uses [bad-argument]\n  write "
    .. "for ... in %s do ... end"):format(what, what)
end

---------------------------------------------------------------------------
-- Names
---------------------------------------------------------------------------

--- Returns the error message for a read of an undefined field of a function,
-- such as cute.size.x. Lua's own message does not name the function.
---@param f function
---@param key any
---@param members table<string, any> the fields that the function has
---@return string
function mistakes.no_field(f, key, members)
  local names = {}
  for name in pairs(members) do names[#names + 1] = name end
  local near = core.nearest(tostring(key), names)
  local info, what = debug.getinfo(f, "S"), core.signature(f)
  what = what and what:match "^[^(]+" or info.what == "C" and "this"
    or info.source:match "^=%[(.*)%]$"
    or core.own_source(info.source) and "this"
    or ("what %s:%d makes"):format(info.short_src, info.linedefined)
  local three = what:find "_idx$" or what:find "_dim$"
  return ("%s is a function, which has no field %s%s"):format(what,
    type(key) == "string" and "'" .. key .. "'" or core.show(key),
    three and "\n  call it: local x, y, z = " .. what .. "()"
      or near and " (did you mean " .. near .. "?)" or "")
end

return mistakes
-- SPDX-License-Identifier: MIT
