-- annotations.lua [ROOT]: reports, as lines "PATH:LINE: what", the faults that
-- an editor with the Lua language server would mark in this repository.
--
-- In lua/ it reports annotations that do not parse or that are inside a
-- sentence, and types that are not declared. It reports annotated parameters
-- that the function lacks or has in another order, and classes, fields and
-- aliases that are declared twice. In lua/, kernels/ and scripts/ it reports
-- names that a module or a class lacks, calls with too many or too few
-- arguments, and deprecated names.
--
-- It evaluates the top level of each file as far as it can without running the
-- file: tables and functions, require, loops over literal lists. It skips
-- unknown values.
local root = arg[1] or "."
package.path = package.path .. ";/usr/share/lua/5.1/?.lua;"
  .. "/usr/local/share/lua/5.1/?.lua"
local parser = require "luacheck.parser"
local decoder = require "luacheck.decoder"

local faults = {}
local function fault(path, line, what, ...)
  faults[#faults + 1] = {path, line, what:format(...)}
end

---------------------------------------------------------------------------
-- Types
---------------------------------------------------------------------------

local KNOWN = {}
for name in ([[any nil boolean string number integer function table thread
    userdata lightuserdata unknown self true false]]):gmatch "%S+" do
  KNOWN[name] = true
end

local parse_type

-- Returns a reader that begins at the start of a text. take(pattern) skips
-- blanks. If the pattern matches there, it returns the matching text and moves
-- past it, else it returns nil.
local function reader(text)
  local at = 1
  local r = {names = {}}
  function r.take(pattern)
    local from, to, got = text:find("^[ \t]*(" .. pattern .. ")", at)
    if from then at = to + 1 return got end
  end
  function r.need(pattern, what)
    return r.take(pattern) or error({what .. " expected at '"
      .. text:sub(at, at + 20) .. "'"}, 0)
  end
  function r.rest() return text:sub(at) end
  return r
end

local function parse_params(r)
  if r.take "%)" then return end
  repeat
    if not r.take "%.%.%." then r.need("[%a_][%w_]*", "a parameter") end
    r.take "%?"
    if r.take ":" then parse_type(r) end
  until not r.take ","
  r.need("%)", "')'")
end

local function parse_function(r)
  if r.take "%(" then parse_params(r) end
  if not r.take ":" then return end
  repeat
    if not r.take "%.%.%." or r.rest():find "^%s*[%a_]" then parse_type(r) end
  until not r.take ","
end

local function parse_fields(r)
  while not r.take "}" do
    if r.take "%[" then
      parse_type(r)
      r.need("%]", "']'")
    else
      r.need("[%a_][%w_]*", "a field")
    end
    r.take "%?"
    r.need(":", "':'")
    parse_type(r)
    if not r.take "[,;]" then
      r.need("}", "'}'")
      return
    end
  end
end

-- Parses one alternative of a type: a part that has no `|` outside of
-- parentheses. Sets the field `name` of the result if the alternative is a
-- plain name.
local function parse_part(r)
  local part = {}
  if r.take "fun%f[^%w_]" then
    parse_function(r)
  elseif r.take "{" then
    parse_fields(r)
  elseif r.take "%(" then
    parse_type(r)
    r.need("%)", "')'")
  elseif not (r.take '"[^"]*"' or r.take "'[^']*'" or r.take "%-?%d[%w.]*"
      or r.take "%.%.%.") then
    part.name = r.take "`[%a_][%w_.]*`"
      or r.need("[%a_][%w_.]*", "a type"):gsub("%.+$", "")
    table.insert(r.names, (part.name:gsub("`", "")))
    if r.take "<" then
      repeat parse_type(r) until not r.take ","
      r.need(">", "'>'")
      part.name = nil
    end
  end
  while true do
    if r.take "%[%]" then part.name = nil
    elseif r.take "%?" then part.optional = true
    else return part end
  end
end

-- Parses a type such as `integer|nil`. Returns a list of its alternatives.
function parse_type(r)
  local parts = {}
  repeat parts[#parts + 1] = parse_part(r) until not r.take "|"
  return parts
end

-- Reports whether a value of the type may be nil.
local function nullable(parts)
  for _, part in ipairs(parts) do
    if part.optional or part.name == "nil" or part.name == "any" then
      return true
    end
  end
end

---------------------------------------------------------------------------
-- Annotations
---------------------------------------------------------------------------

local classes, aliases = {}, {}  -- by name
local used = {}  -- uses of types: {path, line, name}

-- Functions by tag name. Each reads the text of its tag, such as @param, into
-- an annotation block.
local tags = {}

local function read_type(block, line, text)
  local r = reader(text)
  local parts = parse_type(r)
  local rest = r.rest()
  if not rest:find "^[%s,#]" and rest ~= "" then
    error({"a type ends in '" .. rest .. "'"}, 0)
  end
  for _, name in ipairs(r.names) do
    used[#used + 1] = {block.path, line, name, block}
  end
  return parts, rest
end

function tags.class(block, line, text)
  local name, rest = text:gsub("^%b()%s*", "")
    :match "^([%a_][%w_.]*)%s*(.*)$"
  if not name then error({"a class without a name"}, 0) end
  local class = classes[name] or {fields = {}, parents = {}, instance = name,
    told = {}}
  -- Only the class `cute` may be declared in several files.
  if classes[name] and name ~= "cute" then
    error({"class " .. name .. " twice"}, 0)
  end
  classes[name], block.class = class, class
  if rest:find "^:" then
    for parent in (rest:sub(2) .. ","):gmatch "%s*(.-)%s*," do
      local parts = read_type(block, line, parent)
      class.parents[#class.parents + 1] = parts[1].name
    end
  elseif rest:find "^[^%s@#<]" then
    error({"'" .. rest .. "' after the name of a class"}, 0)
  end
end

function tags.field(block, line, text)
  local name, rest = text:match "^([%a_][%w_]*)%??%s+(.*)$"
  if not name then name, rest = text:match "^(%[[^%]]*%])%??%s+(.*)$" end
  if not name then error({"a field without name and type"}, 0) end
  if not block.class then error({"a field of no class"}, 0) end
  if block.class.told[name] then error({"field " .. name .. " twice"}, 0) end
  block.class.told[name] = true
  local parts = read_type(block, line, rest)
  block.class.fields[name] = {type = parts}
end

function tags.alias(block, line, text)
  local name, rest = text:match "^([%a_][%w_.]*)%s*(.*)$"
  if not name then error({"an alias without a name"}, 0) end
  if aliases[name] then error({"alias " .. name .. " twice"}, 0) end
  aliases[name] = rest ~= "" and read_type(block, line, rest) or {}
end

function tags.param(block, line, text)
  local name, optional, rest = text:match "^([%a_][%w_]*)(%??)%s+(%S.*)$"
  if not name then
    name, optional, rest = text:match "^(%.%.%.)(%??)%s+(.*)$"
  end
  if not name then error({"a parameter without name and type"}, 0) end
  for _, other in ipairs(block.params) do
    if other.name == name then error({"parameter " .. name .. " twice"}, 0) end
  end
  local parts = read_type(block, line, rest)
  table.insert(block.params, {name = name, line = line, type = parts,
    optional = optional == "?" or nullable(parts)})
end

tags["return"] = function(block, line, text)
  repeat
    local parts, rest = read_type(block, line, text)
    table.insert(block.returns, parts)
    text = rest:match "^%s*,%s*(.*)$" or rest:match "^%s*[%a_]+,%s*(.*)$"
  until not text
end

function tags.generic(block, _, text)
  for name in text:gmatch "([%a_][%w_]*)%s*:?[^,]*" do
    block.generics[name] = true
  end
end

function tags.type(block, line, text)
  block.type = read_type(block, line, text)
end
function tags.vararg(block, line, text) read_type(block, line, text) end
function tags.overload(block, line, text)
  if not text:find "^fun" then error({"an overload is a fun()"}, 0) end
  block.overload = true
  read_type(block, line, text)
end
function tags.deprecated(block) block.deprecated = true end
function tags.operator(_, _, text)
  if not text:find "^%l+" then error({"an operator without a name"}, 0) end
end
for name in ([[meta see cast diagnostic async nodiscard enum private protected
    package public source version module as]]):gmatch "%S+" do
  tags[name] = function() end
end

-- Returns the comment blocks of a text, indexed by the number of the line that
-- follows them.
local function blocks(path, text)
  local list, block, number = {}, nil, 0
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    local tag, rest = line:match "^%s*%-%-%-%s?@(%w+)%s*(.-)%s*$"
    if tag then
      block = block or {path = path, params = {}, returns = {}, generics = {}}
      local ok, message = pcall(tags[tag] or function()
        error({"no annotation is called @" .. tag}, 0)
      end, block, number, rest)
      if not ok then
        fault(path, number, "%s", type(message) == "table" and message[1]
          or message)
      end
    elseif line:find "^%s*%-%-" then
      tag = line:match "%s@(param)%f[%W]" or line:match "%s@(return)%f[%W]"
      if tag then
        fault(path, number, "@%s is within a sentence, so no editor reads it: "
          .. "begin a line with ---@%s", tag, tag)
      end
    else
      list[number], block = block, nil
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

-- Values that the evaluator knows. A table: {fields =, open = true if it may
-- have other fields}. A function: {params =, min =, max =, returns =}. A
-- string: {text =}. An instance of a class: {instance = name}. One of several
-- instances: {union = instances}. nil: an unknown value.
local files, modules = {}, {}

local function find(folder)
  local pipe <close> = io.popen(("cd '%s' && find -L %s -name '*.lua' | sort")
    :format(root, folder))
  local list = {}
  for path in pipe:lines() do list[#list + 1] = path end
  return list
end

-- Collects a file's assignments: the names of the variables that it assigns,
-- and the fields that functions add to tables when they run. The fields are
-- {[variable] = {[key] = true, or any = true}}.
local function scan(node, found, inside)
  if node.tag == "Set" then
    for _, left in ipairs(node[1]) do
      if left.tag == "Id" then
        found.assigned[left[1]] = true
      elseif left.tag == "Index" and left[1].tag == "Id" and inside then
        local keys = found.late[left[1][1]] or {}
        found.late[left[1][1]] = keys
        if left[2].tag == "String" then keys[left[2][1]] = true
        else keys[1] = true end
      end
    end
  end
  for _, child in ipairs(node) do
    if type(child) == "table" then
      scan(child, found, inside or node.tag == "Function")
    end
  end
  return found
end

local function load_file(path)
  if files[path] ~= nil then return files[path] end
  local f <close> = io.open(root .. "/" .. path, "rb")
  if not f then files[path] = false return false end
  local text = f:read "a"
  local ok, ast = pcall(parser.parse, decoder.decode(text))
  if not ok then
    fault(path, ast.line or 1, "%s", ast.msg or tostring(ast))
    files[path] = false
    return false
  end
  files[path] = {path = path, ast = ast, blocks = blocks(path, text),
    found = scan(ast, {assigned = {}, late = {}}, false)}
  return files[path]
end

local function path_of(module)
  local name = module:gsub("%.", "/")
  for _, path in ipairs {"lua/" .. name .. ".lua", "lua/" .. name
      .. "/init.lua", name .. ".lua", name .. "/init.lua"} do
    if load_file(path) then return path end
  end
end

-- Returns field `key` of a class or of its base classes, or nil. The second
-- result is true if the field is not declared but may exist.
local function class_field(name, key, seen)
  local class = classes[name]
  if not class or not next(class.fields) and not next(class.parents) then
    return nil, true
  end
  if class.fields[key] then return class.fields[key] end
  if class.open then return nil, true end
  seen = seen or {}
  seen[name] = true
  for _, parent in ipairs(class.parents) do
    if not seen[parent] then
      local got, maybe = class_field(parent, key, seen)
      if got or maybe then return got, maybe end
    end
  end
end

-- Adds the classes in a type to `list`. Returns false if a value of the type
-- may be anything other than nil or an instance of these classes.
local function add_classes(list, parts, seen)
  for _, part in ipairs(parts) do
    local name = part.name
    if name and classes[name] then
      list[#list + 1] = {instance = name}
    elseif name and aliases[name] and not seen[name] then
      seen[name] = true
      if not add_classes(list, aliases[name], seen) then return false end
    elseif name ~= "nil" then
      return false
    end
  end
  return #parts > 0
end

-- Returns the evaluator's value for a type: an instance of a class, or a union
-- of several instances. Returns nil for other types.
local function of_type(parts)
  local list = {}
  if not parts or not add_classes(list, parts, {}) then return nil end
  return #list > 1 and {union = list} or list[1]
end

-- Combines the functions of a list, any of which a call may reach, into one
-- function. It accepts all arguments that any function of the list accepts.
local function any_of(list)
  local all = {params = {}, min = math.huge, max = 0, deprecated = true}
  for _, f in ipairs(list) do
    if not f.params or f.block and f.block.overload then return nil end
    all.min, all.max = math.min(all.min, f.min), math.max(all.max, f.max)
    all.deprecated = all.deprecated and f.deprecated
  end
  return all
end

local field_of

-- Returns field `key` of a value that is one of the instances in `list`. At
-- least one of the instances must have the field.
local function field_of_any(list, key)
  local found, instances = {}, {}
  for _, one in ipairs(list) do
    local got, there = field_of(one, key)
    -- the field exists, but its value can be anything
    if there and not got then return nil, true end
    if got and got ~= found[1] then found[#found + 1] = got end
  end
  if #found < 2 then return found[1], #found > 0 end
  for _, v in ipairs(found) do
    if not (v.instance or v.union) then return any_of(found), true end
    table.move(v.union or {v}, 1, #(v.union or {v}), #instances + 1, instances)
  end
  return {union = instances}, true
end

function field_of(value, key)
  if not value then return nil, true end
  if value.union then return field_of_any(value.union, key) end
  local got, maybe
  if value.instance then
    got, maybe = class_field(value.instance, key)
  elseif value.fields then
    got, maybe = value.fields[key], value.open
  else
    return nil, true
  end
  if got and got.type then return of_type(got.type), true end
  return got or nil, maybe or got ~= nil
end

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

local function function_value(path, node, block)
  local value = {params = {}, min = 0, max = 0, block = block}
  local by_name = {}
  for i, id in ipairs(node[1]) do
    local name = id[1]
    value.params[i], by_name[name] = name, i
    value.max = id.tag == "Dots" and math.huge or value.max + 1
  end
  local last = 0
  for _, p in ipairs(block and block.params or {}) do
    local i = by_name[p.name]
    if not i then
      fault(path, p.line, "@param %s: the function has no such parameter",
        p.name)
    elseif i < last then
      fault(path, p.line, "@param %s: out of order", p.name)
    else
      last = i
      if not p.optional and p.name ~= "..." then value.min = i end
    end
  end
  -- A method's parameters include the receiver `self`. The minimum number of
  -- arguments in its annotation does not count `self`.
  if value.params[1] == "self" and value.min == 0 then value.min = 1 end
  value.deprecated = block and block.deprecated
  value.returns = block and block.returns
  return value
end

-- Parses the signatures in `text`, which have the form that cute.lang.signature
-- takes. Adds their functions to the fields of the table `value`.
local function sign_fields(value, text)
  for name, inside in text:gmatch "([%w_]+)(%b())" do
    local min, max, n = 0, 0, 0
    for param in inside:sub(2, -2):gmatch "[^,]+" do
      n = n + 1
      max = param:find "%.%.%." and math.huge or max + 1
      if param:find "^%s*[%w_]+%s*:" then min = n end
    end
    local known = value.fields[name]
    if not known or known.params then
      known = known or {min = 0}
      value.fields[name] = {params = {}, min = math.max(known.min, min),
        max = max, returns = known.returns, deprecated = known.deprecated}
    end
  end
end

---------------------------------------------------------------------------
-- Evaluation
---------------------------------------------------------------------------

local require_module

local Scope = {}
Scope.__index = Scope
local function scope(parent)
  return setmetatable({vars = {}, parent = parent, path = parent.path,
    blocks = parent.blocks, found = parent.found, quiet = parent.quiet,
    inside = parent.inside}, Scope)
end
function Scope:get(name)
  local s = self
  while s do
    if s.vars[name] ~= nil then return s.vars[name] or nil end
    s = s.parent
  end
end
-- Sets a variable. A variable that is assigned again later is unknown.
function Scope:set(name, value)
  self.vars[name] = not self.found.assigned[name] and value or false
end

local later = {}  -- function bodies, which are evaluated after all files

local eval, run_block

local function tell(s, node, ...)
  if not s.quiet then fault(s.path, node.line, ...) end
end

-- Returns an expression as written, for messages.
local function written(node)
  if node.tag == "Id" then return node[1] end
  if node.tag == "Index" and node[2].tag == "String" then
    return written(node[1]) .. "." .. node[2][1]
  elseif node.tag == "Invoke" then
    return written(node[1]) .. ":" .. node[2][1]
  end
  return "(...)"
end

local function check_call(s, node, f, name, first, extra)
  if not f or not f.params then return end
  if f.deprecated then tell(s, node, "%s is deprecated", name) end
  if f.block and f.block.overload then return end
  local n = #node - first + 1
  local tail = n > 0 and node[#node].tag
  local many = tail == "Call" or tail == "Invoke" or tail == "Dots"
  local count = n + extra
  if count - (many and 1 or 0) > f.max then
    tell(s, node, "%s: %d arguments, it takes %d", name, count - extra,
      f.max - extra)
  elseif count < f.min and not many then
    tell(s, node, "%s: %d arguments, it needs %d", name, count - extra,
      f.min - extra)
  end
end

local function result_of(f, i)
  local type_ = f and f.returns and f.returns[i or 1]
  return type_ and of_type(type_)
end

local evals = {}

function evals.Id(s, node) return s:get(node[1]) end
function evals.String(_, node) return {text = node[1]} end
function evals.Paren(s, node) return eval(s, node[1]) end

function evals.Op(s, node)
  local a, b = eval(s, node[2]), node[3] and eval(s, node[3])
  if node[1] == "concat" and a and b and a.text and b.text then
    return {text = a.text .. b.text}
  end
end

function evals.Table(s, node)
  local value = {fields = {}}
  for _, item in ipairs(node) do
    if item.tag == "Pair" then
      local key = eval(s, item[1])
      local v = eval(s, item[2])
      if key and key.text then value.fields[key.text] = v or {} end
    else
      local v = eval(s, item)
      value.list = value.list or {}
      table.insert(value.list, v or {})
    end
  end
  return value
end

evals["Function"] = function(s, node, block)
  local value = function_value(s.path, node, block)
  if not s.quiet then
    later[#later + 1] = function()
      local inner = scope(s)
      inner.inside = true
      for _, id in ipairs(node[1]) do inner.vars[id[1]] = false end
      for _, p in ipairs(block and block.params or {}) do
        if not p.optional then inner:set(p.name, of_type(p.type)) end
      end
      run_block(inner, node[2])
    end
  end
  return value
end

function evals.Index(s, node)
  local of = eval(s, node[1])
  local key = eval(s, node[2])
  if not of or not key or not key.text then return nil end
  local v, there = field_of(of, key.text)
  if not v and not there and (of.instance or of.union or of.module
      and of.module ~= s.path) then
    tell(s, node, "%s: there is no such field", written(node))
  end
  if v and v.deprecated and not v.params then
    tell(s, node, "%s is deprecated", written(node))
  end
  return v
end

-- Functions that return one of their arguments, with the index of this
-- argument.
local GIVES = {["sign.public"] = 2, ["sign.class"] = 2, ["sign.strict"] = 2,
  ["sign.namespace"] = 1, setmetatable = 1}
local HARMLESS = {pairs = true, ipairs = true, next = true, type = true,
  assert = true, tostring = true, print = true, select = true}

function evals.Call(s, node)
  local name = written(node[1])
  local values = {}
  local f = eval(s, node[1])
  for i = 2, #node do
    values[i - 1] = eval(s, node[i])
    local v = values[i - 1]
    if v and v.fields and not GIVES[name] and not HARMLESS[name]
      and not v.instance then
      v.open = true
    end
  end
  if name == "require" and values[1] and values[1].text then
    return require_module(values[1].text)
  elseif name == "sign.public" and values[2] and values[2].fields then
    if values[3] and values[3].text then
      sign_fields(values[2], values[3].text)
    end
    return values[2]
  elseif name == "setmetatable" and values[1] and values[1].fields then
    values[1].open = true
  end
  if GIVES[name] then return values[GIVES[name]] end
  check_call(s, node, f, name, 2, 0)
  return result_of(f)
end

function evals.Invoke(s, node)
  local of = eval(s, node[1])
  for i = 3, #node do eval(s, node[i]) end
  local key = node[2][1]
  local f, there = field_of(of, key)
  local known = of and (of.instance or of.union)
  if known and not f and not there then
    tell(s, node, "%s: there is no such method", written(node))
  end
  if known then
    check_call(s, node, f, written(node), 3, 1)
  end
  return result_of(f)
end

function eval(s, node, block)
  local f = evals[node.tag]
  if f then return f(s, node, block) end
  for _, child in ipairs(node) do
    if type(child) == "table" and child.tag then eval(s, child) end
  end
end

local runs = {}

local function eval_list(s, nodes, block)
  local values = {}
  for i, node in ipairs(nodes or {}) do
    values[i] = eval(s, node, block) or false
  end
  return values
end

-- If the last expression of an assignment is a call, appends the call's second
-- and later results to `values`, until the list has n values.
local function spread(s, nodes, values, n)
  local last = nodes and nodes[#nodes]
  if not last or last.tag ~= "Call" and last.tag ~= "Invoke" or #nodes >= n then
    return
  end
  local quiet = s.quiet
  s.quiet = true
  local f
  if last.tag == "Call" then f = eval(s, last[1])
  else f = field_of(eval(s, last[1]), last[2][1]) end
  s.quiet = quiet
  for i = 2, n - #nodes + 1 do
    values[#nodes + i - 1] = result_of(f, i) or false
  end
end

runs["Local"] = function(s, node)
  local block = s.blocks[node.line]
  local values = eval_list(s, node[2], block)
  spread(s, node[2], values, #node[1])
  for i, id in ipairs(node[1]) do
    local v = values[i] or false
    if i == 1 and block and block.class and v and v.fields then
      for k, f in pairs(v.fields) do block.class.fields[k] = f end
      v = block.class
      v.open = false
    elseif i == 1 and block and block.type then
      v = of_type(block.type) or false
    end
    s:set(id[1], v)
    for key in pairs(v and v.fields and s.found.late[id[1]] or {}) do
      if key == 1 then v.open = true
      else v.fields[key] = v.fields[key] or {} end
    end
  end
end

function runs.Localrec(s, node)
  s.vars[node[1][1][1]] = false
  s:set(node[1][1][1], eval(s, node[2][1], s.blocks[node.line]))
end

function runs.Set(s, node)
  local block = s.blocks[node.line]
  local values = eval_list(s, node[2], block)
  for i, left in ipairs(node[1]) do
    local v = values[i] or nil
    if left.tag == "Index" then
      local of, key = eval(s, left[1]), eval(s, left[2])
      if block and block.type then v = of_type(block.type) end
      local fields = of and of.fields
      if fields and not s.inside then
        if not key or not key.text then of.open = true
        elseif v or not fields[key.text] then
          fields[key.text] = v or {deprecated = block and block.deprecated}
        end
      elseif fields then
        of.open = true
      end
    end
  end
end

function runs.Return(s, node)
  for i, v in ipairs(eval_list(s, node)) do
    if i == 1 then s.result = v end
  end
end

runs["Do"] = function(s, node) run_block(scope(s), node) end
runs["While"] = function(s, node)
  eval(s, node[1])
  run_block(scope(s), node[2])
end
runs["Repeat"] = function(s, node)
  local inner = scope(s)
  run_block(inner, node[1])
  eval(inner, node[2])
end
runs["If"] = function(s, node)
  for i = 1, #node - 1, 2 do
    eval(s, node[i])
    run_block(scope(s), node[i + 1])
  end
  if #node % 2 == 1 then run_block(scope(s), node[#node]) end
end
function runs.Fornum(s, node)
  for i = 2, #node - 1 do eval(s, node[i]) end
  local inner = scope(s)
  inner.vars[node[1][1]] = false
  run_block(inner, node[#node])
end

-- Returns the pairs {key, value} that a loop visits. The loop is over a literal
-- list or over the fields of a known table.
local function steps(s, node)
  local call = node[2][1]
  local name = call.tag == "Call" and written(call[1])
  local over = (name == "ipairs" or name == "pairs") and eval(s, call[2])
  if not over then return end
  local list = {}
  if name == "ipairs" then
    for _, v in ipairs(over.list or {}) do
      if not v.text then return end
      list[#list + 1] = {nil, v}
    end
  else
    for k, v in pairs(over.fields or {}) do
      list[#list + 1] = {{text = k}, v}
    end
  end
  return #list > 0 and list
end

function runs.Forin(s, node)
  local list = not s.inside and steps(s, node)
  if not list then
    for _, e in ipairs(node[2]) do eval(s, e) end
    list = {{}}
  end
  for i, step in ipairs(list) do
    local inner = scope(s)
    inner.quiet = s.quiet or i > 1
    for j, id in ipairs(node[1]) do inner:set(id[1], step[j]) end
    run_block(inner, node[3])
  end
end

function run_block(s, block)
  for _, node in ipairs(block) do
    if runs[node.tag] then runs[node.tag](s, node) else eval(s, node) end
  end
end

local function evaluate(path)
  local file = load_file(path)
  if not file or file.done then return file and file.result end
  file.done = true
  local s = scope(file)
  s.parent = nil
  run_block(s, file.ast)
  file.result = s.result or nil
  if file.result and file.result.fields then
    file.result.module = file.result.module or path
  end
  return file.result
end

function require_module(name)
  if modules[name] == nil then
    modules[name] = false
    local path = path_of(name)
    modules[name] = path and evaluate(path) or false
  end
  return modules[name] or nil
end

---------------------------------------------------------------------------
-- The whole check
---------------------------------------------------------------------------

local LIBRARY, USERS = find "lua", find "kernels scripts"
for _, list in ipairs {LIBRARY, USERS} do
  for _, path in ipairs(list) do load_file(path) end
end
for _, use in ipairs(used) do
  local path, line, name, block = table.unpack(use)
  if not (KNOWN[name] or classes[name] or aliases[name]
      or block.generics[name]) then
    fault(path, line, "no type is called %s", name)
  end
end
-- The files of lua/cute/meta declare cute's types for editors. They use each
-- other's functions, so each file is evaluated twice. Only the second
-- evaluation reports faults.
for pass = 1, 2 do
  for _, path in ipairs(LIBRARY) do
    if path:find "/meta/" and load_file(path) then
      files[path].done, files[path].quiet = false, pass == 1
      evaluate(path)
    end
  end
  modules.cute = classes.cute or false
end
for _, list in ipairs {LIBRARY, USERS} do
  for _, path in ipairs(list) do evaluate(path) end
end

local done = 0
while done < #later do
  done = done + 1
  later[done]()
end

table.sort(faults, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end)
local last
for _, f in ipairs(faults) do
  local line = ("%s:%d: %s"):format(f[1], f[2], f[3])
  if line ~= last then print(line) end
  last = line
end
os.exit(#faults == 0)
-- SPDX-License-Identifier: MIT
