--- Explains the bank conflicts of a source line by its worst access. For each
-- pass of this access, it shows the lanes whose data the pass moves.
--
--     local r = k(A, B):profile {grid = 8, block = 256}
--     for _, c in ipairs(r:conflicts()) do print(c) end
--
-- A conflict has file, line, op, tensor, layout, count (accesses of the line),
-- conflicts (passes, or shared-memory wavefronts, beyond the minimum), and its
-- worst access: kind, width (bytes per lane), passes, least (the fewest
-- possible passes), block, warp, lanes = {{lane =, at = byte of the tensor,
-- group =, pass =}, ...}. At best, one pass serves all lanes of a group. Lanes
-- with the same `pass` are served together. tostring(c) draws a conflict as
-- text, c:svg() as a picture.
local core = require "cute.core"
local layouts = require "cutelua.draw.layouts"
local picture = require "cutelua.draw.picture"
local plural = require "cute.lang.report".plural
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"

local conflict = {}

local Conflict = {__closed = true}  -- traces do not record its fields
Conflict.__index = Conflict

-- BANKS: number of banks. SHOWN: largest number of passes that are drawn as
-- text.
local BANKS, SHOWN = 32, 16

--- Words for each kind of access in messages.
local WORDS = {load = "a load", store = "a store",
               ["cp.async"] = "a cp.async", ["cp.async.cg"] = "a cp.async.cg"}

local function kind_words(c)
  return WORDS[c.kind] or c.op == "stmatrix" and "a stmatrix" or "an ldmatrix"
end

local function swizzle_of(text) return text:match "^Sw<[^>]*>" end

-- Returns the layout through which a kernel accesses a shared object, and
-- whether it accesses the object with several swizzles. If the object has no
-- layout of its own, this is the layout of the first tensor made of it.
local function layout_text(object)
  local flat = object.layout:match "^%(?%d+%)?:%(?1%)?$"
  local own, view = object.layout, object.view
  if view == "" then return own, false end
  return flat and view or own, object.views
    or not flat and swizzle_of(own) ~= swizzle_of(view)
end

-- Returns the coordinate of the element that a lane accesses, such as "(8,0)".
-- Returns the byte's number if the layout has no element there.
local function coordinate(c, lane)
  local bits = c.dtype.bits
  return core.layout_coord(c.layout, lane.at * 8 // bits)
    or ("byte %d"):format(lane.at)
end

-- Returns the first and the last bank that a lane accesses.
local function banks_of(c, lane)
  local first = (c.base + lane.at) // 4 % BANKS
  return first, first + math.max(c.width // 4, 1) - 1
end

-- Returns a table passes[p][bank] = {lane = the first lane that pass p serves
-- at this bank, first = true if the lane's data begins at this bank}.
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

-- Returns the worst collision: the lanes of one group that access the most
-- different words of one bank. The result is a list of one lane for each word,
-- with the fields `bank` and `group`.
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

-- Explains a cp.async that bypasses L1. Its passes depend on lines of memory,
-- not on banks.
local function lines_text(c)
  local lines, n = {}, 0
  for _, lane in ipairs(c.lanes) do
    if not lines[lane.group] then n = n + 1 end
    lines[lane.group] = true
  end
  local text = "a pass takes lanes of one line of 128 bytes in global memory "
    .. "and one in shared memory,\n  where source and destination are XOR-ed "
    .. "by the same chunk of 16 bytes"
  if n <= c.least then return text end
  return ("%s; the lanes read\n  from %d lines of global memory where %d would "
    .. "do: eight that follow each other copy a line of\n  a row where threads "
    .. "go along rows first, and rows of the tile have 128 bytes"):format(text,
    n, c.least)
end

local function collision_text(c, list)
  if c.kind == "cp.async.cg" then return lines_text(c) end
  local text = {}
  for i, lane in ipairs(list) do
    if i > 8 then
      text[i] = "..."
      break
    end
    text[i] = ("%d %s"):format(lane.lane, coordinate(c, lane))
  end
  return ("bank %d receives requests for %d words at once, from lanes "
    .. "%s"):format(
    list.bank, #list, table.concat(text, ", "))
end

-- Returns a map of passes (rows) by banks (columns) as lines of text. Each lane
-- is shown at its first bank. The map shows the passes of one group of lanes;
-- other groups are similar.
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
  return core.visible(("%s:%d: %s in %s of %s, %s%s\n"
    .. "  %s of %s a lane by warp %d of block (%d,%d,%d): %s where %d would "
    .. "do\n%s\n  %s"):format(source.short(c.file or "?"), c.line or 0,
    plural(c.conflicts, "conflict"), plural(c.count, "request"), c.tensor,
    c.dtype.name, c.layout == "" and "" or " " .. c.layout, kind_words(c),
    plural(c.width, "byte"), c.warp, c.block[1], c.block[2], c.block[3],
    plural(c.passes, "pass", "passes"), c.least, map_text(c, list.group),
    collision_text(c, list)), true)
end

---------------------------------------------------------------------------
-- Pictures
---------------------------------------------------------------------------

local function title_of(c)
  return ("%s:%d: %s of %s %s, %s where %d would do"):format(
    source.short(c.file or "?"), c.line or 0, kind_words(c), c.tensor,
    c.layout, plural(c.passes, "pass", "passes"), c.least)
end

-- Returns a panel of a picture, with a row for each pass and a column for each
-- bank.
local function bank_panel(c)
  local passes = grid(c)
  local panel = picture.grid {name = ("banks in each of %s"):format(
    plural(#passes, "pass", "passes")), row_name = "pass",
    column_name = "bank", rows = #passes, columns = BANKS, row_labels = {},
    ids = {lane = {}, pass = {}, bank = {}, offset = {}}}
  local ids = panel.ids
  for p, row in ipairs(passes) do
    panel.row_labels[p] = p
    for bank, cell in pairs(row) do
      local at = (p - 1) * BANKS + bank + 1
      local first = banks_of(c, cell.lane)
      ids.lane[at], ids.pass[at], ids.bank[at] = cell.lane.lane, p, bank
      ids.offset[at] = (cell.lane.at + (bank - first) * 4) * 8 // c.dtype.bits
    end
  end
  return panel
end

-- Returns places[offset] = {slice, row, column} for each offset of the tensor,
-- and the number of columns. Returns nil if the layout cannot be parsed, has no
-- modes, or has too many elements.
local function element_places(c, limit)
  local ok, layout = pcall(core.layout, c.layout)
  if not ok or core.rank(layout) < 1 or not core.is_static(layout)
      or core.size(layout) > limit then
    return
  end
  local rank, places = core.rank(layout), {}
  local columns = rank > 1 and core.size(layout, 1) or 1
  local rows = core.size(layout, 0)
  for i = 0, core.size(layout) - 1 do
    local v = layout(i)
    if math.type(v) ~= "integer" then return end
    local m, n = i % rows, i // rows % columns
    if rank == 1 then m, n = 0, m end
    places[v] = places[v] or {i // (rows * columns), m, n}
  end
  if rank == 1 then columns = rows end
  return places, columns
end

-- Returns the panel of a picture for one slice of the tensor: the rows between
-- the first and the last element that lanes access.
local function slice_panel(slice, columns)
  local first, last = math.maxinteger, 0
  for _, e in ipairs(slice) do
    first, last = math.min(first, e.row), math.max(last, e.row)
  end
  local panel = picture.grid {name = slice.name, row_name = "mode 0",
    column_name = "mode 1", rows = last - first + 1, columns = columns,
    row_labels = {}, more = {}, ids = {lane = {}, pass = {}, offset = {},
                                       bank = {}}}
  for row = first, last do panel.row_labels[row - first + 1] = row end
  local ids = panel.ids
  for _, e in ipairs(slice) do
    local at = (e.row - first) * columns + e.column + 1
    if ids.lane[at] then
      panel.more[at] = panel.more[at] or {}
      table.insert(panel.more[at], e.lane.lane)
    else
      ids.lane[at], ids.pass[at] = e.lane.lane, e.lane.pass
      ids.offset[at], ids.bank[at] = e.offset, e.bank
    end
  end
  return panel
end

local function tensor_panels(c, limit)
  local places, columns = element_places(c, limit)
  if not places then return {} end
  local slices, order, bits = {}, {}, c.dtype.bits
  for _, lane in ipairs(c.lanes) do
    local first = lane.at * 8 // bits
    for e = first, first + math.max(c.width * 8 // bits, 1) - 1 do
      local place = places[e]
      -- The byte lies in a gap between elements of the tensor.
      if not place then return {} end
      local slice = slices[place[1]]
      if not slice then
        slice = {number = place[1], name = place[1] > 0
          and ("%s, slice %d"):format(c.tensor, place[1]) or c.tensor}
        slices[place[1]], order[#order + 1] = slice, slice
      end
      slice[#slice + 1] = {lane = lane, row = place[2], column = place[3],
        offset = e, bank = (c.base + e * bits // 8) // 4 % BANKS}
    end
  end
  table.sort(order, function(a, b) return a.number < b.number end)
  for i, slice in ipairs(order) do
    order[i] = slice_panel(slice, columns)
  end
  return order
end

-- Returns the panels of a picture of one access: the accessed elements of the
-- tensor, and the banks.
local function panels_of(c, opts)
  local limit = picture.limit(opts)
  local banks, list = bank_panel(c), tensor_panels(c, limit)
  local what = ("%s:%d"):format(source.short(c.file or "?"), c.line or 0)
  local cells = banks.rows * BANKS
  for _, panel in ipairs(list) do cells = cells + panel.rows * panel.columns end
  picture.check_cells("draw", what, {cells}, limit)
  local p = {panels = list, captions = {}}
  layouts.finish(p, opts, "bank", {"lane", "pass"})
  local q = {panels = {banks}, captions = {}, unlabelled = p.unlabelled}
  layouts.finish(q, opts, "bank", {"lane"})
  q.panels = list
  list[#list + 1] = banks
  for _, panel in ipairs(list) do panel.name = what .. ": " .. panel.name end
  q.captions[#q.captions + 1] = collision_text(c, collision(c)):gsub("\n%s*",
                                                                     " ")
  return q
end

function Conflict.__draw(c, opts)
  local p = panels_of(c, opts)
  p.title = title_of(c)
  return p
end

--- Returns a picture of the conflict: the elements that lanes access, and a
-- table with a row for each pass and a column for each bank.
---@return string svg
function Conflict:svg()
  return require "cutelua.draw".draw(self, {as = "svg"})
end

---------------------------------------------------------------------------
-- Conflicts of a report
---------------------------------------------------------------------------

--- Returns the shared objects of a traced function by index. Each has `tensor`
-- (its name), `text` (its layout) and `several` (true if accesses use more than
-- one swizzle).
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

-- Makes a conflict from r, an access of source line s to shared object o.
local function new(s, r, o)
  return setmetatable({
    file = s.file, line = s.line, op = s.op, count = s.count,
    conflicts = s.conflicts, tensor = o.tensor, layout = o.text,
    dtype = o.dtype, kind = r.kind, width = r.width, base = r.base,
    passes = r.wavefronts, least = r.least, block = r.block,
    warp = r.warp, lanes = r.lanes}, Conflict)
end

--- Returns the lines with conflicts, the worst first, for a report with
-- recorded accesses.
---@param report table
---@return table[]
function conflict.list(report)
  local objects, list = conflict.objects(report.program.fn), {}
  for i, worst in ipairs(report.requests:worst(#report.lines)) do
    local r = worst and report.requests:get(worst)
    if r then
      list[#list + 1] = new(report.lines[i], r, objects[r.mem])
    end
  end
  table.sort(list, function(a, b)
    if a.conflicts ~= b.conflicts then return a.conflicts > b.conflicts end
    return (a.line or 0) < (b.line or 0)
  end)
  return list
end

-- Returns a list with one conflict for each line that uses shared memory. It
-- describes the line's worst access, or the first one if no access takes more
-- passes than necessary.
local function each_line(report)
  local objects, found = conflict.objects(report.program.fn), {}
  local requests, left = report.requests, 0
  for i, worst in ipairs(requests:worst(#report.lines)) do
    if worst then found[i] = requests:get(worst)
    elseif report.lines[i].wavefronts > 0 then left = left + 1 end
  end
  for k = 1, left > 0 and #requests or 0 do
    local r = requests:get(k)
    if not found[r.line] then
      found[r.line], left = r, left - 1
      if left == 0 then break end
    end
  end
  local list = {}
  for i, s in ipairs(report.lines) do
    local r = found[i]
    if r then list[#list + 1] = new(s, r, objects[r.mem]) end
  end
  return list
end

local function names_of(list, key)
  local names, seen = {}, {}
  for _, c in ipairs(list) do
    local name = c[key]
    if not seen[name] then names[#names + 1] = tostring(name) end
    seen[name] = true
  end
  return table.concat(names, " ")
end

-- Returns the conflicts in a list whose field `key` has the value `want`; the
-- whole list if `want` is nil.
local function only(list, key, want)
  if want == nil then return list end
  local out = {}
  for _, c in ipairs(list) do
    if c[key] == want then out[#out + 1] = c end
  end
  if #out == 0 then
    core.fail("unknown-name", ("draw: %s = %s; possible are %s"):format(key,
      core.show(want), names_of(list, key)))
  end
  return out
end

--- Returns a picture of a report's accesses to one shared tensor: opts.tensor,
-- or else the tensor with the most conflicts. It shows the worst access of each
-- line, or only that of opts.line.
---@param report table
---@param opts table
---@return table picture
function conflict.picture(report, opts)
  local list = each_line(report)
  if #list == 0 then
    core.fail("bad-argument", "draw: no line of this report accesses shared "
      .. "memory")
  end
  list = only(list, "tensor", opts.tensor)
  list = only(list, "line", opts.line)
  local sums, best = {}, list[1].tensor
  for _, c in ipairs(list) do
    sums[c.tensor] = (sums[c.tensor] or 0) + c.conflicts
  end
  for _, c in ipairs(list) do
    if sums[c.tensor] > sums[best] then best = c.tensor end
  end
  list = only(list, "tensor", best)
  local p = {title = ("accesses to %s, %s %s"):format(best,
    list[1].dtype.name, list[1].layout), captions = {}, panels = {}}
  for row, c in ipairs(list) do
    local q = panels_of(c, opts)
    p.palette, p.unlabelled = q.palette, q.unlabelled
    p.captions[1] = p.captions[1] or q.captions[1]
    p.captions[#p.captions + 1] = title_of(c)
    for i, panel in ipairs(q.panels) do
      panel.place = {row, i}
      p.panels[#p.panels + 1] = panel
    end
  end
  local cells = 0
  for _, panel in ipairs(p.panels) do
    cells = cells + panel.rows * panel.columns
  end
  picture.check_cells("draw", p.title, {cells}, picture.limit(opts))
  return p
end

sign.class("conflict", Conflict, "svg()")

-- The largest number of lines with conflicts that a printed report explains.
local EXPLAINED = 4

--- Returns the part of a printed report about recorded accesses: the memory
-- traffic, and the lines with the most bank conflicts.
---@param report table a report of k:profile without faults
---@return string
function conflict.profiled(report)
  local list, out = conflict.list(report), {report:traffic()}
  for i = 1, math.min(#list, EXPLAINED) do out[i + 1] = tostring(list[i]) end
  if #list > EXPLAINED then
    out[#out + 1] = ("... and %s with conflicts: report:conflicts() has all")
      :format(plural(#list - EXPLAINED, "more line"))
  end
  out[#out + 1] = list[1] and "report:find_swizzle() searches for layouts "
    .. "without these conflicts" or "no bank conflicts"
  return table.concat(out, "\n")
end

return conflict
-- SPDX-License-Identifier: MIT
