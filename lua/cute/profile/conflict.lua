--- Why a line has bank conflicts: one request of it, who is served when, and
-- whom that leaves waiting.
--
--     local r = k(A, B):profile {grid = 8, block = 256}
--     for _, c in ipairs(r:conflicts()) do print(c) end
--
-- A conflict has file, line, op, tensor, layout, count (requests of the line),
-- conflicts (their passes beyond the fewest), and one request that is worst:
-- kind, width (bytes a lane), passes, least, block, warp, lanes = {{lane =,
-- at = byte of the tensor, group =, pass =}, ...}: lanes of a group could be
-- served at once, those of a pass are. tostring(c) draws it, c:svg() is a
-- picture.
local core = require "cute.core"
local sign = require "cute.lang.sign"
local source = require "cute.lang.source"

local conflict = {}

local Conflict = {__closed = true}  -- to cute.lang.reach
Conflict.__index = Conflict

local BANKS, SHOWN = 32, 16  -- passes that are drawn as text, at most

--- What a kind of request is called.
local WORDS = {load = "a load", store = "a store",
               ["cp.async"] = "a cp.async", ["cp.async.cg"] = "a cp.async.cg"}

local function kind_words(c)
  return WORDS[c.kind] or c.op == "stmatrix" and "a stmatrix" or "an ldmatrix"
end

local function plural(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many)
end

local function swizzle_of(text) return text:match "^Sw<[^>]*>" end

-- The layout of a shared object as its accesses see it: what it was made with,
-- or where that is so many elements, the first that it is seen through. Are
-- there several swizzles?
local function layout_text(object)
  local flat = object.layout:match "^%(?%d+%)?:%(?1%)?$"
  local own, view = object.layout, object.view
  if view == "" then return own, false end
  return flat and view or own, object.views
    or not flat and swizzle_of(own) ~= swizzle_of(view)
end

-- The coordinate that a lane asks for, "(8,0)"; of a byte within an element
-- the element's.
local function coordinate(c, lane)
  local bits = c.dtype.bits
  return core.layout_coord(c.layout, lane.at * 8 // bits)
    or ("byte %d"):format(lane.at)
end

-- The first and the last bank of a lane.
local function banks_of(c, lane)
  local first = (c.base + lane.at) // 4 % BANKS
  return first, first + math.max(c.width // 4, 1) - 1
end

-- passes[p][bank] = the first lane that is served there in that pass.
local function grid(c)
  local passes = {}
  for _, lane in ipairs(c.lanes) do
    local row = passes[lane.pass] or {}
    passes[lane.pass] = row
    local first, last = banks_of(c, lane)
    for bank = first, last do
      row[bank] = row[bank] or {lane = lane, first = bank == first}
    end
  end
  return passes
end

-- The lanes of one group that want the most words of one bank: the bank, one
-- lane of each word.
local function collision(c)
  local best, at, words = 0, nil, {}
  for _, lane in ipairs(c.lanes) do
    local bank = banks_of(c, lane)
    local key = lane.group * BANKS + bank
    local list = words[key] or {bank = bank, group = lane.group}
    words[key] = list
    local new = true
    for _, other in ipairs(list) do
      new = new and other.pass ~= lane.pass
    end
    if new then list[#list + 1] = lane end
    if #list > best then best, at = #list, list end
  end
  return at
end

local function collision_text(c, list)
  if c.kind == "cp.async.cg" then  -- banks do not matter, lines do
    return "a pass takes lanes of one line of 128 bytes in global memory and "
      .. "one in shared memory,\n  where source and destination are XOR-ed by "
      .. "the same chunk of 16 bytes"
  end
  local text = {}
  for i, lane in ipairs(list) do
    if i > 8 then
      text[i] = "..."
      break
    end
    text[i] = ("%d %s"):format(lane.lane, coordinate(c, lane))
  end
  return ("bank %d is asked for %d words at once: by lanes %s"):format(
    list.bank, #list, table.concat(text, ", "))
end

-- Rows of the map: passes by banks; a lane stands in its first bank. Those of
-- the group that has the collision; others are alike.
local function map_text(c, group)
  local out, head = {}, {}
  for bank = 0, BANKS - 1, 4 do head[#head + 1] = ("%2d      "):format(bank) end
  out[1] = ("  bank    " .. table.concat(head)):gsub("%s+$", "")
  local passes, first, last = grid(c), nil, 0
  for _, lane in ipairs(c.lanes) do
    if lane.group == group then
      first = math.min(first or lane.pass, lane.pass)
      last = math.max(last, lane.pass)
    end
  end
  last = math.min(last, first + SHOWN - 1)
  for p = first, last do
    local row = {}
    for bank = 0, BANKS - 1 do
      local cell = passes[p][bank]
      row[#row + 1] = not cell and " ." or not cell.first and "=="
        or ("%2d"):format(cell.lane.lane)
    end
    out[#out + 1] = ("  pass %-2d %s"):format(p, table.concat(row))
  end
  local rest = #passes - (last - first + 1)
  if rest > 0 then
    out[#out + 1] = ("  ... and %s"):format(plural(rest, "more pass",
                                                   "more passes"))
  end
  return table.concat(out, "\n")
end

function Conflict.__tostring(c)
  local list = collision(c)
  return core.visible(("%s:%d: %s in %s of %s, %s %s\n"
    .. "  %s of %s a lane by warp %d of block (%d,%d,%d): %s where %d would "
    .. "do\n%s\n  %s"):format(source.short(c.file or "?"), c.line or 0,
    plural(c.conflicts, "conflict", "conflicts"),
    plural(c.count, "request", "requests"), c.tensor, c.dtype.name, c.layout,
    kind_words(c), plural(c.width, "byte", "bytes"), c.warp, c.block[1],
    c.block[2], c.block[3], plural(c.passes, "pass", "passes"), c.least,
    map_text(c, list.group), collision_text(c, list)), true)
end

---------------------------------------------------------------------------
-- As a picture
---------------------------------------------------------------------------

local CELL, LEFT, TOP = 22, 64, 58
local FILL = {"#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb", "#fcbba1", "#d9d9d9",
              "#fee391", "#b3cde3"}

local function escaped(text)
  return (text:gsub("[&<>]", {["&"] = "&amp;", ["<"] = "&lt;",
                              [">"] = "&gt;"}))
end

--- The same as a picture: a row for each pass, a column for each bank, a
-- colour for each group of lanes that could be served at once.
---@return string svg
function Conflict:svg()
  local passes = grid(self)
  local width, height = LEFT + BANKS * CELL + 12, TOP + #passes * CELL + 12
  local out = {}
  local function add(...) out[#out + 1] = string.format(...) end
  add('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'font-family="sans-serif" font-size="11">', width, height)
  add('<rect width="%d" height="%d" fill="white"/>', width, height)
  add('<text x="8" y="18" font-size="13">%s</text>', escaped(
    ("%s:%d: %s of %s %s, %d passes where %d would do"):format(
    source.short(self.file or "?"), self.line or 0, kind_words(self),
    self.tensor, self.layout, self.passes, self.least)))
  for bank = 0, BANKS - 1, 4 do
    add('<text x="%d" y="%d">bank %d</text>', LEFT + bank * CELL, TOP - 8,
        bank)
  end
  for p, row in ipairs(passes) do
    local y = TOP + (p - 1) * CELL
    add('<text x="8" y="%d">pass %d</text>', y + 15, p)
    for bank = 0, BANKS - 1 do
      local x, cell = LEFT + bank * CELL, row[bank]
      local lane = cell and cell.lane
      add('<rect x="%d" y="%d" width="%d" height="%d" fill="%s" '
        .. 'stroke="#888"/>', x, y, CELL, CELL,
        lane and FILL[(lane.group - 1) % #FILL + 1] or "white")
      if cell and cell.first then
        add('<text x="%d" y="%d">%d<title>%s</title></text>', x + 4, y + 15,
            lane.lane, escaped(coordinate(self, lane)))
      end
    end
  end
  add '</svg>\n'
  return table.concat(out, "\n")
end

---------------------------------------------------------------------------
-- Of a report
---------------------------------------------------------------------------

--- Shared objects of a traced function by their index, with `tensor`, what
-- they are called, `text`, their layout's, and `several`: accesses go through
-- more than one swizzle.
---@param fn userdata
---@return table<integer, table>
function conflict.objects(fn)
  local by = {}
  for place, o in ipairs(fn:shared()) do
    o.tensor = o.name ~= "" and o.name or "#" .. place
    o.text, o.several = layout_text(o)
    by[o.index] = o
  end
  return by
end

--- The lines of a report that has its requests that are in conflict, the worst
-- first.
---@param report table
---@return table[]
function conflict.list(report)
  local objects, list = conflict.objects(report.program.fn), {}
  for i, worst in ipairs(report.requests:worst(#report.lines)) do
    local s = report.lines[i]
    local r = worst and report.requests:get(worst)
    local o = r and objects[r.mem]
    if r then
      list[#list + 1] = setmetatable({
        file = s.file, line = s.line, op = s.op, count = s.count,
        conflicts = s.conflicts, tensor = o.tensor, layout = o.text,
        dtype = o.dtype, kind = r.kind, width = r.width, base = r.base,
        passes = r.wavefronts, least = r.least, block = r.block,
        warp = r.warp, lanes = r.lanes}, Conflict)
    end
  end
  table.sort(list, function(a, b)
    if a.conflicts ~= b.conflicts then return a.conflicts > b.conflicts end
    return (a.line or 0) < (b.line or 0)
  end)
  return list
end

sign.class("conflict", Conflict, "svg()")

return conflict
