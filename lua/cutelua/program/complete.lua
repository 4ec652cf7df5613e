--- Finds completions of typed text: names, fields, methods and options and,
-- inside strings, modules, atoms, element types and files.
--
-- Completion runs no code of the user. It only inspects tables and metatables,
-- and reads fields of cute's own values, which has no side effects.
local core = require "cute.core"
local tokens = require "cutelua.text.tokens"
local sign = require "cute.lang.signature"

local has_sys, sys = pcall(require, "cute.sys")

local complete = {}

--- Fields of cute's values that their metatables do not list, by type of the
-- value.
complete.FIELDS = {
  layout = "shape stride layout offset swizzle inner outer is_composed",
  tensor = "shape stride layout element_type dtype memspace alignment device "
    .. "iterator address",
  vector = "shape dtype element_type",
  value = "dtype element_type",
  dtype = "bits width name is_float is_integer signed inf nan",
  constant = "value mode num_bits num_base num_shift b m s",
  buffer = "dtype count nbytes closed",
  devbuf = "device address",
  stream = "device",
  graph = "nodes device",
  atom = "name ptx thr_id tv_layout_A tv_layout_B tv_layout_C shape_mnk "
    .. "value_bits sf_vec_size instr_desc layout_src_tv layout_dst_tv "
    .. "layout_ref_tv value_type layout_tmem",
  tma = "tx_bytes values stores num_multicast swizzle box value_type",
  program = "source ir warnings resources",
}
complete.FIELDS.tiled = complete.FIELDS.atom .. " thr_layout_vmnk "
  .. "tv_layout_A_tiled tv_layout_B_tiled tv_layout_C_tiled tile_size_mnk "
  .. "permutation_mnk layout_tv_tiled layout_src_tv_tiled "
  .. "layout_dst_tv_tiled tiler_mn"
complete.FIELDS.slice = complete.FIELDS.tiled
complete.FIELDS.prepared = complete.FIELDS.program

-- Names of functions that take a table of options, each with the module and the
-- name of the table that lists these options.
local LAUNCH = "cute.lang.kernel OPTIONS "
local OPTIONS = {
  launch = LAUNCH, compile = LAUNCH, trace = LAUNCH, profile = LAUNCH,
  timeline = LAUNCH, preflight = LAUNCH,
  check = LAUNCH .. "cutelua.check OPTIONS",
  estimate = LAUNCH .. "cutelua.profile.estimate OPTIONS",
  kernel = "cute.lang.kernel OWN", gemm = "cute.ops.gemm OPTIONS",
  grouped_gemm = "cute.ops.grouped OPTIONS", draw = "cutelua.draw OPTIONS"}

local ATOMS = {make_mma_atom = {"mma"}, make_copy_atom = {"copy"},
               make_atom = {"mma", "copy"}}

-- Possible strings for the option `name`, as in `name = "..."`, or as an
-- argument of the function `name`.
local WORDS = {
  device = "auto sim gpu", to = "host gpu", on_device = "gpu",
  arch = "sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100a sm_103a sm_120a",
  faults = "raise return", as = "text svg latex html",
}
WORDS.preflight = WORDS.arch

---------------------------------------------------------------------------
-- Inspection without side effects
---------------------------------------------------------------------------

-- The longest chain of __index tables to follow.
local MOST_TABLES = 8

local function type_of(mt)
  local name = mt and rawget(mt, "__name")
  return type(name) == "string" and name:gsub("^cute%.", "") or nil
end

local function ask(v, key) return v[key] end

-- Returns field `key` of a value of cute by reading it; nil if complete.FIELDS
-- does not list the field.
local function own_field(v, key)
  local mt = debug.getmetatable(v)
  local known = complete.FIELDS[type_of(mt)]
  if not known or type(key) ~= "string"
    or not (" " .. known .. " "):find(" " .. key .. " ", 1, true) then
    return nil
  end
  local ok, found = pcall(ask, v, key)
  if ok then return found end
end

--- Returns v[key] if tables contain it; returns nil if finding it would run a
-- function. If v[key] is a name of cute whose module is not loaded yet, loads
-- the module.
function complete.field(v, key)
  if type(v) == "userdata" then
    local found = rawget(debug.getmetatable(v) or {}, key)
    if found == nil then found = own_field(v, key) end
    return found
  elseif type(v) == "string" then
    return string[key]
  end
  for _ = 1, MOST_TABLES do
    if type(v) ~= "table" then return nil end
    if sign.classes[v] then sign.add_all(rawget(v, "__name"), v) end
    local found = rawget(v, key)
    if found ~= nil then return found end
    if sign.namespaces[v] then
      local ok, loaded = pcall(function() return v[key] end)
      return ok and loaded or nil
    end
    local mt = debug.getmetatable(v)
    if not mt then return nil end
    if sign.classes[mt] then
      sign.add_all(rawget(mt, "__name"), mt)
      found = rawget(mt, key)
      if found == nil then found = own_field(v, key) end
      return found
    end
    v = rawget(mt, "__index")
  end
end

-- Adds the names of t's fields to a set, except those that begin with "__".
local function add_keys(set, t)
  for k in next, t do
    if type(k) == "string" and k:find "^[%a_][%w_]*$" and not k:find "^__" then
      set[k] = true
    end
  end
end

local function add_fields(set, v, mt)
  for k in (complete.FIELDS[type_of(mt)] or ""):gmatch "%S+" do
    local ok, found = pcall(ask, v, k)
    if ok and found ~= nil then set[k] = true end
  end
end

--- Returns the set of names of v's fields and methods.
---@return table<string, true>
function complete.names(v)
  local set, mt = {}, debug.getmetatable(v)
  if type(v) == "string" then add_keys(set, string) end
  if type(v) == "userdata" and mt then
    add_keys(set, mt)
    add_fields(set, v, mt)
  end
  for _ = 1, MOST_TABLES do
    if type(v) ~= "table" then break end
    if sign.classes[v] then sign.add_all(rawget(v, "__name"), v) end
    add_keys(set, v)
    mt = debug.getmetatable(v)
    if not mt then break end
    if sign.namespaces[v] then
      for _, lazy in ipairs {sign.lazy(v)} do add_keys(set, lazy) end
      break
    elseif sign.classes[mt] then
      sign.add_all(rawget(mt, "__name"), mt)
      add_keys(set, mt)
      local text = complete.FIELDS[type_of(mt)] or ""
      for k in text:gmatch "%S+" do set[k] = true end
      break
    end
    v = rawget(mt, "__index")
  end
  return set
end

---------------------------------------------------------------------------
-- The text before the cursor
---------------------------------------------------------------------------

-- Returns the value of a name, which is one of the prompt's globals.
local function global(env, name)
  local v = rawget(env, name)
  if v == nil then v = complete.field(env, name) end
  return v
end

-- Returns the key of an index such as "[1]" or "['a']", whose closing bracket
-- is token i; nil if the index is another expression.
local function key_at(list, i, text)
  local token = list[i - 1]
  if not (token and list[i - 2] and list[i - 2].text == "[") then return nil end
  if token.text ~= '""' then return math.tointeger(token.text) end
  local written = text:sub(token.from, list[i].from - 1)
  return written:match '^"([^"\\]*)"%s*$' or written:match "^'([^'\\]*)'%s*$"
end

local CLOSES = {[")"] = true, ["]"] = true, ["}"] = true}
local OPENS = {["("] = true, ["["] = true, ["{"] = true}

-- Returns the index of the innermost bracket that is still open after token i.
local function open_bracket(list, i)
  local depth = 0
  for k = i, 1, -1 do
    if CLOSES[list[k].text] then depth = depth + 1 end
    if OPENS[list[k].text] then
      if depth == 0 then return k end
      depth = depth - 1
    end
  end
end

local function walk(v, path)
  for _, key in ipairs(path) do v = complete.field(v, key) end
  return v
end

local value_at

-- Finds the value of an expression that ends with the parenthesis at token i:
-- "(value)", or a call of a kernel. Returns what value_at returns. For a call,
-- the value is the class of calls; no call is made.
local function closed_at(list, i, text, env)
  local open = open_bracket(list, i - 1)
  if not open then return false end
  local found, v, from = value_at(list, open - 1, text, env)
  if found and type_of(debug.getmetatable(v)) == "kernel" then
    return true, require "cute.lang.kernel".Call, from
  elseif list[open - 1] and (list[open - 1].name
      or CLOSES[list[open - 1].text]) then
    return false
  end
  found, v, from = value_at(list, i - 1, text, env)
  return found and from == open + 1, v, open
end

-- Finds the value of an expression such as "a.b[1].c" that ends at token i.
-- Returns whether the value was found, the value, and the index of the
-- expression's first token.
function value_at(list, i, text, env)
  local path = {}
  while list[i] do
    local token, before = list[i], list[i - 1] and list[i - 1].text
    if token.text == "]" then
      local key = key_at(list, i, text)
      if key == nil then return false end
      table.insert(path, 1, key)
      i = i - 3
    elseif token.text == '""' then
      return true, walk("", path), i
    elseif token.text == ")" then
      local found, v, from = closed_at(list, i, text, env)
      return found, found and walk(v, path), from
    elseif not token.name or before == ":" then
      return false
    elseif before == "." then
      table.insert(path, 1, token.text)
      i = i - 2
    else
      local v = walk(global(env, token.text), path)
      return v ~= nil, v, i
    end
  end
  return false
end

-- Returns the index of the name of the called function whose argument begins
-- after token i.
local function callee(list, i)
  if list[i] and list[i].name then return i end
  local k = open_bracket(list, i)
  while k and list[k].text == "{" do
    if list[k - 1] and list[k - 1].name then return k - 1 end
    k = open_bracket(list, k - 1)
  end
  if k and list[k].text == "(" and list[k - 1] and list[k - 1].name then
    return k - 1
  end
end

---------------------------------------------------------------------------
-- Candidates
---------------------------------------------------------------------------

-- Returns the sorted names in a set or list that begin with `word`. Names that
-- begin with an underscore are included only if `word` does.
local function fitting(set, word)
  local out = {}
  for k, v in pairs(set) do
    local name = type(k) == "string" and k or v
    if name:sub(1, #word) == word
      and (word ~= "" or name == "_" or name:sub(1, 1) ~= "_") then
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return out
end

local function words_of(text)
  local set = {}
  for w in text:gmatch "%S+" do set[w] = true end
  return set
end

-- Returns {option = its types} for the function with this name; nil if OPTIONS
-- does not have it.
local function options_of(name)
  local set, known = {}, OPTIONS[name]
  if not known then return nil end
  for module, field in known:gmatch "(%S+) (%S+)" do
    for option, of in pairs(require(module)[field]) do set[option] = of end
  end
  return set
end

local function members(head, word, env)
  local sep = head:match "([.:])%s*$"
  if not sep or head:find "%.%.%s*$" then return nil end
  local list = tokens.of((head:gsub("[.:]%s*$", "")))
  local found, v = value_at(list, #list, head, env)
  if not found then return {} end
  local set = complete.names(v)
  if sep == ":" then
    for name in pairs(set) do
      local member = complete.field(v, name)
      if type(member) ~= "function" then set[name] = nil end
    end
  end
  return fitting(set, word), function(name)
    return require "cutelua.program.meaning".of_member(v, name,
      complete.field(v, name))
  end
end

-- Returns the options that may be typed next in a table of options, each to be
-- followed by " = ".
local function options(head, word)
  if not head:find "[{,]%s*$" then return nil end
  local list = tokens.of(head)
  local k = open_bracket(list, #list)
  if not (k and list[k].text == "{") then return nil end
  local at = callee(list, k - 1)
  local set = at and options_of(list[at].text)
  if not set then return nil end
  return fitting(set, word), function(name)
    local of = set[name]
    return type(of) == "string" and of:gsub(" ", " or ") or nil
  end
end

local function globals(head, word, env)
  if word == "" or word:find "^%d" then return {} end
  local set = {}
  add_keys(set, tokens.KEYWORDS)
  for _, globals_ in ipairs {env, _G} do
    for name in pairs(complete.names(globals_)) do set[name] = true end
  end
  for _, token in ipairs(tokens.of(head)) do
    if token.name then set[token.text] = true end
  end
  return fitting(set, word), function(name)
    return require "cutelua.program.meaning".of_value(global(env, name))
  end
end

---------------------------------------------------------------------------
-- Strings
---------------------------------------------------------------------------

local function modules(word)
  local set = {}
  for _, name in ipairs(sys.modules()) do set[name] = true end
  local folder = word:match "^(.*%.)" or ""
  for _, file in ipairs(sys.files("./" .. folder:gsub("%.", "/"))) do
    local name = file:match "^([%w_]+)%.lua$" or file:match "^([%w_]+)/$"
    if name then set[folder .. name] = true end
  end
  return fitting(set, word), require "cutelua.program.meaning".of_module
end

local function atoms(kinds, word)
  local set = {}
  for _, kind in ipairs(kinds) do
    for _, name in ipairs(sys.atoms(kind, word)) do set[name] = true end
  end
  return fitting(set, word)
end

-- Returns the files that may complete a path in a string. Files whose names
-- need escapes in a string are omitted.
local function files(word)
  local folder, base = word:match "^(.*/)([^/]*)$"
  if not folder then folder, base = "", word end
  local out = {}
  for _, name in ipairs(fitting(sys.files(folder == "" and "." or folder),
                                base)) do
    if (base ~= "" or not name:find "^%.") and not name:find "[\\\"']"
      and core.visible(name) == name then
      out[#out + 1] = name
    end
  end
  return out, base
end

-- Reports whether the function that is called at token `at` takes the name of
-- an element type.
local function takes_type(list, at, text, env)
  local found, f = value_at(list, at, text, env)
  local signature = found and type(f) == "function" and core.signature(f)
  return signature and signature:find "%f[%w]dtype%f[%W]"
end

local function types(word)
  local set = {}
  for name, v in pairs(core) do
    if core.typename(v) == "dtype" then set[name] = true end
  end
  return fitting(set, word), require "cutelua.program.meaning".of_name
end

-- Completes a string that begins after `head` and whose text so far is `word`.
-- Returns the candidates, the part of `word` that they replace, and a function
-- that describes a candidate.
local function in_string(head, word, env)
  local list = tokens.of(head)
  local n = #list
  if n > 1 and list[n].text == "=" and list[n - 1].name then
    local words = WORDS[list[n - 1].text]
    if words then return fitting(words_of(words), word), word end
  end
  local at = callee(list, n)
  local name = at and list[at].text
  if name == "require" then
    local found, about = modules(word)
    return found, word, about
  end
  if ATOMS[name] then return atoms(ATOMS[name], word), word end
  if WORDS[name] then return fitting(words_of(WORDS[name]), word), word end
  if at and takes_type(list, at, head, env) then
    local found, about = types(word)
    if #found > 0 then return found, word, about end
  end
  return files(word)
end

--- Returns the value of "name", "a.b" or "a:b", if it can be found without
-- running functions.
---@param name string
---@param env table the prompt's globals
---@return any
function complete.value(name, env)
  local first, rest = name:match "^([^.:]*)(.*)$"
  local v = global(env, first)
  for key in rest:gmatch "[^.:]+" do v = complete.field(v, key) end
  return v
end

--- Returns completions for the end of a text: the candidates, as whole words;
-- the part already typed; its kind ("name", "option", "string", "comment");
-- and, if possible, a function that describes a candidate in one line.
---@param text string
---@param env table the prompt's globals
---@return string[] list, string word, string place
---@return (fun(name: string): string?)? about
function complete.find(text, env)
  local from, kind = tokens.unfinished(text)
  if kind == "string" and has_sys then
    local list, word, about = in_string(text:sub(1, from - 1),
                                        text:sub(from + 1), env)
    return list, word, "string", about
  elseif kind then
    return {}, "", kind
  end
  local word = text:reverse():match "^[%w_]*":reverse()
  local head = text:sub(1, #text - #word)
  local list, about = members(head, word, env)
  if list then return list, word, "name", about end
  list, about = options(head, word)
  if list and #list > 0 then return list, word, "option", about end
  list, about = globals(head, word, env)
  return list, word, "name", about
end

return complete
-- SPDX-License-Identifier: MIT
