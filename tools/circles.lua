-- circles.lua BUILD: checks the dependencies between files of core/, using the
-- object files in a build folder. In the graph, file A depends on file B of the
-- same room (folder of core/) if A uses a symbol that B defines. A circle is a
-- strongly connected component of this graph. Prints the circles that exceed
-- their room's limit, with the symbols that form them, and the files that
-- export more than 40 names.
local build = arg[1]

-- The maximum number of files in a circle. The room `layout` is exempt: layouts
-- contain layouts, so composition, division and tuples call each other.
local MOST = 3
local EXEMPT = {layout = true}

-- The maximum number of names that a file may export. layout.c exports more,
-- because it has all functions that build layouts and take them apart.
local EXPORTS = 40
local MORE_EXPORTS = {["core/layout/layout.c"] = 58}

local function lines(command)
  local p <close> = assert(io.popen(command))
  local out = {}
  for line in p:lines() do out[#out + 1] = line end
  return out
end

-- Returns rooms[room][file] = {defines = {symbol = true}, uses = {...}}.
local function read_rooms()
  local rooms, objects, missing = {}, {}, {}
  for _, path in ipairs(lines "ls core/*/*.c") do
    local room, file = path:match "^core/([^/]+)/(.+)%.c$"
    local object = ("%s/%s/%s.o"):format(build, room, file)
    local f = io.open(object)
    if f then
      f:close()
      objects[#objects + 1] = object
      rooms[room] = rooms[room] or {}
      rooms[room][file] = {defines = {}, uses = {}}
    -- weblib.c belongs to the web build only.
    elseif path ~= "core/program/weblib.c" then
      missing[#missing + 1] = object
    end
  end
  for _, line in ipairs(lines("nm -A " .. table.concat(objects, " "))) do
    local room, file, kind, symbol =
      line:match "([^/]+)/([^/]+)%.o:%s*%x*%s+(%a) (%S+)$"
    if kind == "U" then
      rooms[room][file].uses[symbol] = true
    elseif kind and kind:find "[TDBRC]" then
      rooms[room][file].defines[symbol] = true
    end
  end
  return rooms, missing
end

local function sorted(set)
  local out = {}
  for key in pairs(set) do out[#out + 1] = key end
  table.sort(out)
  return out
end

-- Returns edges: edges[A][B] = the symbols of B that A uses.
local function edges_of(files)
  local home, edges = {}, {}
  for file, names in pairs(files) do
    for symbol in pairs(names.defines) do home[symbol] = file end
  end
  for file, names in pairs(files) do
    edges[file] = {}
    for _, symbol in ipairs(sorted(names.uses)) do
      local other = home[symbol]
      if other and other ~= file then
        local list = edges[file][other] or {}
        list[#list + 1] = symbol
        edges[file][other] = list
      end
    end
  end
  return edges
end

-- Returns the strongly connected components of more than one file, by Tarjan's
-- algorithm.
local function circles_of(edges)
  local number, low, stack, on, count, out = {}, {}, {}, {}, 0, {}
  local function visit(v)
    count = count + 1
    number[v], low[v], stack[#stack + 1], on[v] = count, count, v, true
    for w in pairs(edges[v]) do
      if not number[w] then
        visit(w)
        low[v] = math.min(low[v], low[w])
      elseif on[w] then
        low[v] = math.min(low[v], number[w])
      end
    end
    if low[v] ~= number[v] then return end
    local circle = {}
    repeat
      local w = table.remove(stack)
      on[w] = nil
      circle[#circle + 1] = w
    until w == v
    table.sort(circle)
    if #circle > 1 then out[#out + 1] = circle end
  end
  for _, v in ipairs(sorted(edges)) do
    if not number[v] then visit(v) end
  end
  return out
end

local function print_circle(room, circle, edges, most)
  print(("core/%s: a circle of %d files, at most %d may be: %s"):format(room,
    #circle, most, table.concat(circle, " ")))
  for _, a in ipairs(circle) do
    for _, b in ipairs(circle) do
      local symbols = edges[a][b]
      if symbols then
        print(("  %s -> %s: %s"):format(a, b, table.concat(symbols, " ")))
      end
    end
  end
end

local failed = false
local rooms, missing = read_rooms()
for _, object in ipairs(missing) do
  failed = true
  print(object .. " is not there")
end
for _, room in ipairs(sorted(rooms)) do
  local edges = edges_of(rooms[room])
  local most = EXEMPT[room] and math.huge or MOST
  for _, circle in ipairs(circles_of(edges)) do
    if #circle > most then
      failed = true
      print_circle(room, circle, edges, most)
    end
  end
  for _, file in ipairs(sorted(rooms[room])) do
    local path = ("core/%s/%s.c"):format(room, file)
    local n = #sorted(rooms[room][file].defines)
    if n > (MORE_EXPORTS[path] or EXPORTS) then
      failed = true
      print(("%s exports %d names, at most %d may be"):format(path, n,
        MORE_EXPORTS[path] or EXPORTS))
    end
  end
end
os.exit(not failed)
-- SPDX-License-Identifier: MIT
