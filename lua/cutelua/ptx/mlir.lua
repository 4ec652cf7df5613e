--- Reads the IR that the CuTe DSL keeps beside its PTX (CUTE_DSL_KEEP=ir): the
-- host functions that launch kernels, and the kernels' parameters.
local core = require "cute.core"

local mlir = {}

--- Calls f, which reads IR, and returns its results. IR of an unknown form
-- causes errors of Lua in f. Such an error is replaced by one that names the
-- place which place() returns.
---@param f function
---@param place fun(): string
---@return any ...
function mlir.guard(f, place)
  local out = table.pack(pcall(f))
  if out[1] then return table.unpack(out, 2, out.n) end
  local why = out[2]
  local known = type(why) ~= "string" or why:find "^[^\n]* %[[%l-]+%]"
  if known then error(why, 0) end
  core.fail("bad-argument", core.visible(place()) .. ": this is not the form "
    .. "of version 4.8 of the CuTe DSL")
end

---------------------------------------------------------------------------
-- Types
---------------------------------------------------------------------------

-- Parses a tuple such as "(?,?{i64 div=8},(1,2@1))". Returns nested lists, and
-- the position after the tuple. Each leaf, also `_`, is a table with one of
-- these contents: n = an integer; dynamic = bits and div = divisor; basis =
-- text.
local function parse_tuple(text, at)
  at = text:match("^%s*()", at)
  if text:sub(at, at) == "(" then
    local list = {}
    at = text:match("^%(%s*()", at)
    while text:sub(at, at) ~= ")" do
      if at > #text then return nil, at end
      list[#list + 1], at = parse_tuple(text, at)
      if not list[#list] then return nil, at end
      at = text:match("^%s*,?%s*()", at)
    end
    return list, at + 1
  end
  local word, attributes, after = text:match("^(%?)(%b{})()", at)
  if not word then
    word, after = text:match("^([^,():%s]+)()", at)
    attributes = ""
  end
  if not word then return nil, at end
  if word == "?" then
    return {dynamic = attributes:find "i64" and 64
      or tonumber(attributes:match "i(%d+)") or 32,
      div = tonumber(attributes:match "div=(%d+)") or 1}, after
  end
  return {n = math.tointeger(tonumber(word)), basis = word}, after
end

local function is_leaf(t) return t.n or t.dynamic or t.basis end

--- Returns the leaves of a tuple, from left to right.
---@param t table
---@return table[]
function mlir.leaves(t, list)
  list = list or {}
  if is_leaf(t) then
    list[#list + 1] = t
  else
    for _, x in ipairs(t) do mlir.leaves(x, list) end
  end
  return list
end

--- Returns a copy of tuple t in which the elements of `list` replace the
-- leaves, from left to right.
---@param t table
---@param list table[]
---@return table
function mlir.with_leaves(t, list)
  local at = 0
  local function walk(x)
    if is_leaf(x) then
      at = at + 1
      return list[at]
    end
    local out = {}
    for i, y in ipairs(x) do out[i] = walk(y) end
    return out
  end
  return walk(t)
end

--- Parses "shape:stride" as {shape, stride}, and a single tuple as {shape}.
-- Returns nil if the text has another form.
---@param text string
---@return table?
function mlir.layout(text)
  local shape, at = parse_tuple(text, 1)
  if not shape then return nil end
  local stride
  if text:sub(at, at) == ":" then stride = parse_tuple(text, at + 1) end
  return {shape = shape, stride = stride}
end

--- Splits the parameters of a type at commas outside of brackets and strings.
---@param text string
---@return string[]
function mlir.split(text)
  local list, depth, from, quoted = {}, 0, 1, false
  for at, c in text:gmatch '()([<>(){}%[%],"])' do
    if c == '"' then quoted = not quoted
    elseif quoted then  -- luacheck: ignore 542
    elseif c:find "[<({%[]" then depth = depth + 1
    elseif c:find "[>)}%]]" then depth = depth - 1
    elseif depth == 0 then
      list[#list + 1], from = text:sub(from, at - 1), at + 1
    end
  end
  list[#list + 1] = text:sub(from)
  for i, x in ipairs(list) do list[i] = x:match "^%s*(.-)%s*$" end
  return list
end

--- Returns the number of bits of an IR element type, such as f8E4M3FN or ui8;
-- nil if its name does not state it.
---@param element string
---@return integer?
function mlir.bits(element)
  if element == "tf32" then return 32 end
  return math.tointeger(tonumber(element:match "^%a+(%d+)"))
end

local TUPLES = {int_tuple = true, shape = true, stride = true, coord = true}

--- Parses a type. Returns {name = the text before "<", text}. Tuples also have
-- `tuple`. Layouts and memory have `layout`. Memory has `element`, `space` and
-- `align`.
---@param text string
---@param aliases table<string, string>
---@return table
function mlir.type(text, aliases)
  text = aliases[text] or text
  local name, inside = text:match "^!?([%w_%.]+)<(.*)>$"
  local t = {name = name or text, text = text}
  local short = t.name:match "^cute%.(.*)"
  if TUPLES[short] then
    t.tuple = parse_tuple(inside:match '"(.-)"' or "", 1)
  elseif short == "tile" then
    local list = (inside:match '"(.-)"' or ""):gsub(":[^;%]]*", "")
      :gsub("%[", "("):gsub("%]", ")"):gsub(";", ",")
    t.tuple = parse_tuple(list, 1)
  elseif short == "layout" then
    t.layout = mlir.layout(inside:match '"(.-)"' or "")
  elseif short == "composed_layout" then
    t.layout = mlir.layout(inside:match '"(.-)"':match " o ([^o]*)$" or "")
    t.swizzle = inside:match "S<(%d+,%d+,%d+)>"
  elseif short == "coord_tensor" then
    local first, second = inside:match '"(.-)",%s*"(.-)"'
    t.tuple = parse_tuple(first or "", 1)
    t.layout = mlir.layout(second or "")
  elseif short == "memref" or short == "ptr" then
    local parts = mlir.split(inside)
    t.element, t.space = parts[1], parts[2]
    t.align = tonumber(inside:match "align<(%d+)>")
    local layout = inside:match '"(.-)"'
    t.layout = layout and mlir.layout(layout:match " o ([^o]*)$" or layout)
  end
  return t
end

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

-- Returns the parameters of "(%arg0: T, %arg1: U {attributes})" as a list
-- {name, type}.
local function parameters(text, aliases)
  local list = {}
  for _, part in ipairs(mlir.split(text)) do
    local name, type = part:match "^(%%[%w_]+):%s*(.*)$"
    if name then
      type = type:gsub("%s*%b{}$", "")
      list[#list + 1] = {name = name, type = mlir.type(type, aliases)}
    end
  end
  return list
end

-- Parses a line as an instruction: the names of its results, its operation, its
-- text.
local function instruction(line, number)
  local results, rest = line:match "^(%%[^=]-)%s*=%s*(.*)$"
  local op, text = (rest or line):match "^([%w_%.]+)%s*(.*)$"
  if not op then return nil end
  local i = {op = op, text = text, line = number, results = {}}
  for name, count in (results or ""):gmatch "(%%[%w_%-]+):?(%d*)" do
    if count ~= "" then
      for k = 0, count - 1 do i.results[#i.results + 1] = name .. "#" .. k end
    else
      i.results[#i.results + 1] = name
    end
  end
  return i
end

-- Reads the lines of a region up to its closing brace. Returns the region,
-- which is a list of instructions, and the number of the closing line. A region
-- belongs to the instruction before it. If the block of a region has
-- parameters, the field `takes` of the region lists their names.
local function region(lines, at)
  local body = {}
  while lines[at] do
    local line = lines[at]
    if line:find "^}" then return body, at end
    local i = instruction(line, at)
    for name in (line:match "^%^bb%d+(%b())" or ""):gmatch "(%%[%w_]+):" do
      body.takes = body.takes or {}
      table.insert(body.takes, name)
    end
    if line:find "{$" then
      i = i or {op = "?", text = line, line = at, results = {}}
      i.regions = {}
      repeat
        i.regions[#i.regions + 1], at = region(lines, at + 1)
      until not (lines[at] and lines[at]:find "^}.*{$")
    end
    if i then body[#body + 1] = i end
    at = at + 1
  end
  return body, at
end

-- Returns the lines of a text, trimmed and without locations.
local function lines_of(text)
  local list = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    line = line:gsub("%s+loc%b()", "")
    list[#list + 1] = line:match "^%s*(.-)%s*$"
  end
  return list
end

--- Reads the kept IR. Returns {aliases, kernels = functions by name, hosts =
-- list of functions}. A function is {name, parameters, body}.
---@param text string
---@return table
function mlir.read(text)
  local m = {aliases = {}, kernels = {}, hosts = {}}
  local lines = lines_of(text)
  for _, line in ipairs(lines) do
    local name, value = line:match "^(![%w_]+)%s*=%s*(.*)$"
    if name then m.aliases[name] = value end
  end
  local at = 1
  while lines[at] do
    local kind, name, list = lines[at]:match
      "^([%w%.]+)[%l%s]* @([%w_%.$]+)(%b()).*{$"
    if kind == "cuda.kernel" or kind == "func.func" then
      local f = {name = name,
                 parameters = parameters(list:sub(2, -2), m.aliases)}
      f.body, at = region(lines, at + 1)
      if kind == "cuda.kernel" then
        m.kernels[name] = f
      else
        m.hosts[#m.hosts + 1] = f
      end
    end
    at = at + 1
  end
  return m
end

--- Calls f for each instruction of a body, and of the regions in it.
---@param body table
---@param f fun(i: table)
function mlir.each(body, f)
  for _, i in ipairs(body) do
    f(i)
    for _, r in ipairs(i.regions or {}) do mlir.each(r, f) end
  end
end

-- Returns the shared memory that instruction i allocates, or nil if it
-- allocates none.
local function allocation_of(i, aliases)
  if i.op ~= "cute.memref.alloca" then return nil end
  local type = i.text:match "^[^:]*{.-}%s*:%s*(.*)$"
    or i.text:match "%)%s*:%s*(.*)$"
  local t = mlir.type(type or "", aliases)
  if t.space ~= "smem" then return nil end
  local cosize = 1
  local shape, stride = mlir.leaves(t.layout.shape),
    mlir.leaves(t.layout.stride)
  for k, s in ipairs(shape) do
    cosize = cosize + (s.n - 1) * (stride[k].n or 0)
  end
  local bits = mlir.bits(t.element) or 8
  return {bytes = (cosize * bits + 7) // 8, align = t.align or 1,
          part = tonumber(i.text:match "partition_id = (%d+)") or 0}
end

-- Returns the possible results of a body's allocations of shared memory, each
-- as a list of allocations. There are several if branches allocate.
local function allocations(body, aliases)
  local all = {{}}
  -- Concatenates each list of `all` with each list of `lists`.
  local function append(lists)
    local out = {}
    for _, first in ipairs(all) do
      for _, rest in ipairs(lists) do
        out[#out + 1] = table.move(rest, 1, #rest, #first + 1,
                                   table.move(first, 1, #first, 1, {}))
      end
    end
    all = out
  end
  for _, i in ipairs(body) do
    local own = allocation_of(i, aliases)
    if own then append {{own}} end
    local either = {}
    for _, r in ipairs(i.regions or {}) do
      local lists = allocations(r, aliases)
      local some = #lists > 1 or #lists[1] > 0
      if some and i.op == "scf.if" then
        table.move(lists, 1, #lists, #either + 1, either)
      elseif some then
        append(lists)
      end
    end
    if either[1] then append(either) end
  end
  return all
end

--- Returns the number of bytes of shared memory that a kernel allocates, with
--- each allocation at its alignment. The branches of an scf.if use the same
--- memory.
---@param kernel table
---@param aliases table
---@return integer
function mlir.shared_bytes(kernel, aliases)
  local most = 0
  for _, list in ipairs(allocations(kernel.body, aliases)) do
    for k, x in ipairs(list) do x.at = k end
    table.sort(list, function(a, b)
      if a.part ~= b.part then return a.part < b.part end
      return a.at < b.at
    end)
    local bytes = 0
    for _, x in ipairs(list) do
      bytes = (bytes + x.align - 1) // x.align * x.align + x.bytes
    end
    most = math.max(most, bytes)
  end
  return most
end

--- Returns cutelua's element type for an IR element type; nil if cutelua has no
-- such type.
---@param name string f32, i8, ui8, f8E4M3FN ...
---@return cute.DType?
function mlir.dtype(name)
  local known = {f8E4M3FN = "e4m3", f8E5M2 = "e5m2", f8E8M0FNU = "ue8m0",
    f6E2M3FN = "e2m3", f6E3M2FN = "e3m2", f4E2M1FN = "e2m1", tf32 = "f32",
    i1 = "u8"}
  return core.find_dtype(known[name] or name:gsub("^ui", "u"):gsub("^si", "i"))
end

return mlir
-- SPDX-License-Identifier: MIT
