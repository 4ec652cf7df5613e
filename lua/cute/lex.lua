--- The names beside `==` and `~=`, and before `=`, in a Lua text.
--
-- Values are named by the locals that they are assigned to. And Lua compares
-- a traced value with a number without asking anybody: the answer is false,
-- whatever the kernel would find. So the lines that hold `==` or `~=` are
-- known before they run, with the names of their operands, and the tracer
-- looks what those hold.
local source = require "cute.source"

local lex = {}

local STOPS = {}
for word in ([[if then and or not return while until do end local else elseif
  function repeat for in = , ; ]]):gmatch "%S+" do STOPS[word] = true end

local function skip_long(s, i)
  local eq = s:match("^%[(=*)%[", i)
  if not eq then return nil end
  local _, e = s:find("]" .. eq .. "]", i + #eq + 2, true)
  return (e or #s) + 1
end

local function newlines(s, i, j)
  local n, at = 0, s:find("\n", i, true)
  while at and at < j do
    n, at = n + 1, s:find("\n", at + 1, true)
  end
  return n
end

-- Where the string or comment that starts at i ends; nil when none does.
local function skip_text(s, i)
  local first = s:byte(i)
  if first == 45 and s:byte(i + 1) == 45 then  -- two dashes
    return s:find("^%[=*%[", i + 2) and skip_long(s, i + 2)
      or s:find("\n", i, true) or #s + 1
  elseif first == 91 then  -- [
    return skip_long(s, i)
  elseif first == 34 or first == 39 then  -- quotes
    local q, j = string.char(first), i + 1
    while j <= #s and s:sub(j, j) ~= q do
      j = j + (s:sub(j, j) == "\\" and 2 or 1)
    end
    return j + 1
  end
end

-- Tokens of a Lua text: {text, line, name = true}; strings become '""'.
local function tokens(s)
  local out, i, line = {}, s:find "%S" or #s + 1, 1
  line = line + newlines(s, 1, i)
  while i <= #s do
    local to, text, name = skip_text(s, i), '""', nil
    if not to then
      name = s:match("^[%a_][%w_]*", i)
      text = name or s:match("^%.?%d[%w%.]*", i) or s:match("^[=~<>]=", i)
        or s:match("^%.%.%.?", i) or s:sub(i, i)
      to = i + #text
    end
    if to > #s + 1 or s:byte(i) ~= 45 or text ~= '""' then
      out[#out + 1] = {text = text, line = line,
                       name = name and not STOPS[name]}
    end
    local next_i = s:find("%S", to) or #s + 1
    if next_i > to or not name then line = line + newlines(s, i, next_i) end
    i = next_i
  end
  return out
end

local OPEN = {["("] = ")", ["["] = "]", ["{"] = "}"}
local CLOSE = {[")"] = "(", ["]"] = "[", ["}"] = "{"}

local function used_as_base(t, i)  -- t[i] is followed by . : [ ( or a string
  local after = t[i + 1] and t[i + 1].text
  return after == "." or after == ":" or after == "[" or after == "("
    or after == "{" or after == '""'
end

-- Collects the names of the operand that starts beside token i.
local function operand(t, i, step, names)
  local depth, call = 0, {}
  while t[i] do
    local text = t[i].text
    local opens = step > 0 and OPEN[text] or step < 0 and CLOSE[text]
    local closes = step > 0 and CLOSE[text] or step < 0 and OPEN[text]
    if opens then
      depth = depth + 1
      -- a group behind a name or another group is a call or an index
      local j = i
      if step < 0 then
        local d = 0
        repeat
          if CLOSE[t[j].text] then d = d + 1 end
          if OPEN[t[j].text] then d = d - 1 end
          j = j - 1
        until d == 0 or not t[j]
      else
        j = i - 1
      end
      local before = t[j]
      call[depth] = call[depth - 1] or text == "{" or text == "}"
        or before and (before.name or CLOSE[before.text] ~= nil
                       or before.text == '""')
    elseif closes then
      if depth == 0 then return end
      depth = depth - 1
    elseif depth == 0 and (STOPS[text] or text == "==" or text == "~=") then
      return
    elseif t[i].name and not (depth > 0 and call[depth]) then
      local prev = t[i - 1] and t[i - 1].text
      if prev ~= "." and prev ~= ":" and not used_as_base(t, i) then
        names[#names + 1] = text
      end
    end
    i = i + step
  end
end

-- Names before the `=` at t[i]: the variables that a statement assigns.
local function assigned(t, i, names)
  repeat
    i = i - 1
    if not (t[i] and t[i].name) then return end
    names[#names + 1] = t[i].text
    i = i - 1
  until not t[i] or t[i].text ~= ","
end

local function line_of(lines, n)
  lines[n] = lines[n] or {set = {}}
  return lines[n]
end

--- What the tracer wants to know of a chunk's lines: {[line] = {name, ...,
-- set = {name, ...}}}, the names beside `==` and `~=`, and in `set` those that
-- are assigned. Lines with neither are absent.
---@param chunk string chunk source as in lua_Debug
function lex.names(chunk)
  local text = source.text(chunk)
  local lines = {}
  if not text then return lines end
  local t = tokens(text)
  for i, tok in ipairs(t) do
    if tok.text == "==" or tok.text == "~=" then
      local names = line_of(lines, tok.line)
      operand(t, i - 1, -1, names)
      operand(t, i + 1, 1, names)
    elseif tok.text == "=" then
      assigned(t, i, line_of(lines, tok.line).set)
    end
  end
  return lines
end

return lex
