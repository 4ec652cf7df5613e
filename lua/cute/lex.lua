--- What the tracer wants to know of a Lua text before its lines run.
--
-- Lua compares a traced value with a number without asking anybody: the
-- answer is false, whatever the kernel would find; and as a key of a plain
-- table it finds nothing. So the lines with `==`, `~=` and `t[k]` are known
-- beforehand, with the names whose values the tracer has to look at. It also
-- learns which names a line assigns: values are named by them.
local source = require "cute.source"

local lex = {}

local STOPS = {}
for word in ([[if then and or not return while until do end local else elseif
  function repeat for in = , ; ]]):gmatch "%S+" do STOPS[word] = true end
local CONSTANTS = {["nil"] = true, ["true"] = true, ["false"] = true}

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
                       name = name and not STOPS[name]
                         and not CONSTANTS[name]}
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

-- The path that starts at the name t[i], "a.b.1", when fields and constant
-- indices are all that follows, and its last token's index; nil when its value
-- is a call's, or such.
local function path_at(t, i)
  local path = t[i].text
  while used_as_base(t, i) do
    local sign, key = t[i + 1].text, t[i + 2]
    if sign == "." and key and key.name then
      i = i + 2
    elseif sign == "[" and key and key.text:find "^%d+$"
      and t[i + 3] and t[i + 3].text == "]" then
      i = i + 3
    else
      return nil
    end
    path = path .. "." .. key.text
  end
  return path, i
end

-- How tokens first to last come to their value: nil for a constant or a
-- variable, "index" for a path, "call" for anything computed.
local function computed(t, first, last)
  if first >= last then return nil end
  if t[first].text == "-" and last == first + 1 then return nil end
  local _, to = path_at(t, first)
  return to == last and "index" or "call"
end

-- Is the group whose bracket is t[i] a call's or an index's, not a plain ()?
-- step < 0: t[i] closes it.
local function is_call(t, i, step)
  if t[i].text == "{" or t[i].text == "}" then return true end
  local depth = 0
  repeat
    if step < 0 and CLOSE[t[i].text] then depth = depth + 1 end
    if step < 0 and OPEN[t[i].text] then depth = depth - 1 end
    i = i - 1
  until depth == 0 or not t[i]
  local before = t[i]
  return before and (before.name or CLOSE[before.text] ~= nil
                     or before.text == '""')
end

-- Collects the paths of the operand that starts beside token i; returns the
-- index of its last token.
local function operand(t, i, step, paths)
  local depth, call = 0, {}
  while t[i] do
    local text = t[i].text
    local opens = step > 0 and OPEN[text] or step < 0 and CLOSE[text]
    local closes = step > 0 and CLOSE[text] or step < 0 and OPEN[text]
    if opens then
      depth = depth + 1
      call[depth] = call[depth - 1] or is_call(t, i, step)
    elseif closes then
      if depth == 0 then break end
      depth = depth - 1
    elseif depth == 0 and (STOPS[text] or text == "==" or text == "~=") then
      break
    elseif t[i].name and not (depth > 0 and call[depth]) then
      local prev = t[i - 1] and t[i - 1].text
      if prev ~= "." and prev ~= ":" then
        paths[#paths + 1] = (path_at(t, i))
      end
    end
    i = i + step
  end
  return i - step
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
  lines[n] = lines[n] or {set = {}, late = {}, keys = {}, late_keys = {}}
  return lines[n]
end

local function add_all(list, more)
  table.move(more, 1, #more, #list + 1, list)
end

-- Has the line assigned the path's variable already?
local function is_new(line, path)
  for _, name in ipairs(line.set) do
    if path:match "^[^.]+" == name then return true end
  end
end

-- The `==` or `~=` at t[i]. Lua gives the comparison the line of the sign or
-- of the right operand's end, whatever comes last.
local function compared(t, i, lines)
  local paths = {}
  local first = operand(t, i - 1, -1, paths)
  local last = operand(t, i + 1, 1, paths)
  local left, right = computed(t, first, i - 1), computed(t, i + 1, last)
  local how = (left == "call" or right == "call") and "call" or left or right
  for n = t[math.min(first, i)].line, t[math.max(last, i)].line do
    local line = line_of(lines, n)
    if line.eq ~= "call" then line.eq = how or line.eq end
    if n >= t[i].line then add_all(line, paths) end
  end
  local line = lines[t[i].line]
  for _, path in ipairs(paths) do
    if is_new(line, path) then line.late[#line.late + 1] = path end
  end
end

-- The `[` at t[i]: which names are keys of what?
local function indexed(t, i, lines)
  local first = i - 1
  if not (t[first] and t[first].name) then return end
  while t[first - 1] and t[first - 1].text == "." and t[first - 2]
    and t[first - 2].name do
    first = first - 2
  end
  local before, names = t[first - 1] and t[first - 1].text, {}
  if before == "." or before == ":" then return end
  operand(t, i + 1, 1, names)
  local base, line = {}, line_of(lines, t[i].line)
  for k = first, i - 1, 2 do base[#base + 1] = t[k].text end
  base = table.concat(base, ".")
  for _, name in ipairs(names) do
    local new = is_new(line, base) or is_new(line, name)
    add_all(new and line.late_keys or line.keys, {base, name})
  end
end

--- What the tracer wants to know of a chunk's lines: {[line] = {path, ...,
-- eq = how, keys = {base, path, ...}, late = {...}, late_keys = {...},
-- set = {name, ...}}}. A path such as "a.b.1" is a variable with fields. The
-- list holds those beside `==` and `~=`; `eq` says that these compare what the
-- line computes, "call", or reads from fields, "index"; `keys` are pairs, what
-- is indexed and by what; `late` and `late_keys` the same of variables that the
-- line itself assigns first; `set` what is assigned. Lines with none of it are
-- absent.
---@param chunk string chunk source as in lua_Debug
function lex.names(chunk)
  local text = source.text(chunk)
  local lines = {}
  if not text then return lines end
  local t = tokens(text)
  for i, tok in ipairs(t) do
    if tok.text == "==" or tok.text == "~=" then
      compared(t, i, lines)
    elseif tok.text == "=" then
      assigned(t, i, line_of(lines, tok.line).set)
    elseif tok.text == "[" then
      indexed(t, i, lines)
    end
  end
  return lines
end

return lex
