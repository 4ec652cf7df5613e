--- Formats the output of the debugger at a stop: positions, values, and tensor
-- elements by coordinate.
local core = require "cute.core"
local report = require "cute.lang.report"
local source = require "cute.lang.source"

local show = {}

-- The largest number of rows or columns of a tensor that are shown.
local MOST = 16

---------------------------------------------------------------------------
-- Expressions: NAME, NAME.field, NAME(coordinate)
---------------------------------------------------------------------------

-- Parses a coordinate: "(3,(0,1))" becomes {3, {0, 1}}; nil for other text.
local function coordinate(text)
  if not text:find "^%([%d%s,()]*%)$" then return nil end
  local body = text:gsub("[()]", {["("] = "{", [")"] = "}"})
  local f = load("return " .. body, "=coordinate", "t", {})
  local c = f and f()
  if not c or #c == 0 then return nil end
  return #c == 1 and c[1] or c
end

-- Parses an expression such as NAME.field(coordinate). Returns the value that
-- NAME.field has, and the coordinate, if there is one.
local function find(session, what)
  local name, rest = what:match "^%s*([%a_][%w_]*)(.-)%s*$"
  local seen = session:names()
  if not name then
    core.fail("bad-argument", ("'%s'; a name, a field or an element is needed: "
      .. "k, smem.A, sA(3,5)"):format(what))
  end
  local value = seen[name]
  if value == nil then
    local names = {}
    for n in pairs(seen) do names[#names + 1] = n end
    local near = require "cute.lang.signature".nearest(name, names)
    core.fail("unknown-name", ("no local '%s' is visible here%s"):format(name,
      near and " (did you mean " .. near .. "?)" or ""))
  end
  while rest ~= "" do
    local field, more = rest:match "^%.([%a_][%w_]*)(.*)$"
    if not field then break end
    if type(value) ~= "table" or rawget(value, field) == nil then
      core.fail("unknown-name", ("'%s' has no field '%s'"):format(name, field))
    end
    value, name, rest = rawget(value, field), name .. "." .. field, more
  end
  if rest == "" then return value, name end
  local c = coordinate(rest)
  if not c then
    core.fail("bad-argument", ("'%s'; a coordinate of integers is needed, such "
      .. "as (3,5) or ((0,1),2)"):format(rest))
  end
  if core.typename(value) ~= "tensor" then
    core.fail("bad-argument", ("'%s' is not a tensor: it has no element %s")
      :format(name, rest))
  end
  return value, name, c, rest
end

local function eye(session)
  local f = session.focus
  return f.cta, f.warp, f.lane
end

local function check_running(session)
  if session:is_over() then
    core.fail("bad-argument", "the run is over: step back to inspect values")
  end
end

--- Returns the element that an expression such as "sA(3,5)" names, in the form
-- of `changes` in a goal, the debugger's stop condition (Session:goals).
---@return table {mem: integer, element: integer, cta: integer, warp: integer,
-- lane: integer}
function show.element(session, what)
  check_running(session)
  local value, _, c = find(session, what)
  if not c then
    core.fail("bad-argument", ("'%s'; an element is needed, such as sA(3,5)")
      :format(what))
  end
  local mem, element = session.stop:element(value, c, eye(session))
  local cta, warp, lane = eye(session)
  return {mem = mem, element = element, cta = cta, warp = warp, lane = lane}
end

---------------------------------------------------------------------------
-- Values
---------------------------------------------------------------------------

local function number(x)
  if math.type(x) == "float" then return ("%.6g"):format(x) end
  return tostring(x)
end

-- Formats an element of memory. `?` stands for an element that was never
-- written; `~` marks an element to which an asynchronous copy is writing.
local function element_text(stop, mem, element, ...)
  local x, there = stop:read(mem, element, ...)
  if there == "defined" then return number(x) end
  if there == "flying" then return "~" .. number(x) end
  return there == "undefined" and "?" or "outside"
end

-- Formats rows of cells as lines of text. All columns have the same width.
local function grid(rows, left)
  local width = 0
  for _, row in ipairs(rows) do
    for _, cell in ipairs(row) do width = math.max(width, #cell) end
  end
  local out = {}
  for i, row in ipairs(rows) do
    local cells = {}
    for k, cell in ipairs(row) do
      cells[k] = (" "):rep(width - #cell) .. cell
    end
    out[i] = (left and left(i) or "  ") .. table.concat(cells, " ")
  end
  return table.concat(out, "\n")
end

-- Formats the values of a name in the 32 lanes of a warp; a single number if
-- all active lanes agree.
local function lanes(session, name, at)
  local cells, one, same = {}, nil, true
  local active = session:seat().lanes or session:seat().active or 0xffffffff
  for l = 0, 31 do
    local x = at(l)
    if x == nil then return name .. ": nothing computes it" end
    cells[l + 1] = number(x)
    if active >> l & 1 == 1 then
      if one and one ~= cells[l + 1] then same = false end
      one = one or cells[l + 1]
    else
      cells[l + 1] = "(" .. cells[l + 1] .. ")"
    end
  end
  if same and one then return ("%s = %s in all lanes"):format(name, one) end
  local rows = {}
  for r = 0, 3 do
    rows[r + 1] = table.move(cells, r * 8 + 1, r * 8 + 8, 1, {})
  end
  return ("%s, by lanes:\n%s"):format(name, grid(rows, function(i)
    return ("  %2d: "):format(i * 8 - 8)
  end))
end

local function size(shape)
  if math.type(shape) then return shape end
  local n = 1
  for i = 1, #shape do n = n * size(shape[i]) end
  return n
end

-- Formats up to n elements of a list, eight per line.
local function list(n, cell)
  local rows = {}
  for i = 0, math.min(n, 4 * MOST) - 1 do
    if i % 8 == 0 then rows[#rows + 1] = {} end
    table.insert(rows[#rows], cell(i))
  end
  return grid(rows)
    .. (n > 4 * MOST and ("\n  ... %d more"):format(n - 4 * MOST) or "")
end

local function matrix(rows, columns, cell)
  local lines = {}
  for r = 0, math.min(rows, MOST) - 1 do
    local cells = {}
    for c = 0, math.min(columns, MOST) - 1 do cells[c + 1] = cell(r, c) end
    if columns > MOST then cells[#cells + 1] = "..." end
    lines[r + 1] = cells
  end
  return grid(lines)
    .. (rows > MOST and "\n  ... " .. report.plural(rows - MOST, "more row")
    or "")
end

-- Formats a tensor's elements as a list, as a matrix, or as several matrices.
local function tensor(session, name, t)
  local stop, MATRICES = session.stop, 4
  local cta, warp, lane = eye(session)
  local shape, dtype, layout = stop:view(t, cta, warp, lane)
  local modes = math.type(shape) and {shape} or shape
  local n, rest = {}, {}
  for i = 1, #modes do n[i] = size(modes[i]) end
  for i = 3, #n do rest[i - 2] = n[i] end
  local function cell(c)
    local ok, mem, e = pcall(stop.element, stop, t, c, cta, warp, lane)
    return ok and element_text(stop, mem, e, cta, warp, lane) or "?"
  end
  local out = {("%s: %s %s, as thread %d of block %d sees it"):format(name,
    tostring(dtype), layout, warp * 32 + lane, cta)}
  if size(shape) == n[1] then
    out[2] = list(n[1], function(i)
      return cell(#n > 1 and {i, table.unpack({0, 0, 0, 0, 0, 0}, 1, #n - 1)}
        or i)
    end)
    return table.concat(out, "\n")
  end
  local count = size(rest)
  for k = 0, math.min(count, MATRICES) - 1 do
    local tail, left = {}, k
    for i = 1, #rest do
      tail[i], left = left % rest[i], left // rest[i]
    end
    if #rest > 0 then
      out[#out + 1] = ("  (_,_,%s):"):format(table.concat(tail, ","))
    end
    out[#out + 1] = matrix(n[1], n[2], function(r, c)
      return cell {r, c, table.unpack(tail)}
    end)
  end
  if count > MATRICES then
    out[#out + 1] = ("  ... %d more"):format(count - MATRICES)
  end
  return table.concat(out, "\n")
end

local function has_traced(t)
  for _, v in next, t do
    local kind = core.typename(v)
    if kind == "value" or kind == "tensor" or kind == "vector" then
      return true
    end
  end
end

local function fields(name, t)
  local names = {}
  for k in next, t do
    if type(k) == "string" then names[#names + 1] = k end
  end
  table.sort(names)
  return ("%s: a table with %s"):format(name, #names > 0
    and table.concat(names, ", ") or "no named fields")
end

--- Implements Session:print.
function show.print(session, what)
  check_running(session)
  local value, name, c, rest = find(session, what)
  local stop, kind = session.stop, core.typename(value)
  local cta, warp, lane = eye(session)
  if c then
    local mem, element = stop:element(value, c, cta, warp, lane)
    return ("%s%s = %s"):format(name, rest, element_text(stop, mem, element,
      cta, warp, lane))
  end
  local var = type(value) == "table" and rawget(value, 1)
  if core.typename(var) == "value" then value, kind = var, "value" end
  if kind == "value" then
    return lanes(session, name, function(l)
      return stop:value(value, cta, warp, l)
    end)
  elseif kind == "vector" then
    local all = stop:vector(value, cta, warp, lane)
    return ("%s: a vector of %d, of lane %d\n%s"):format(name, #all, lane,
      list(#all, function(i)
        return all[i + 1] and number(all[i + 1]) or "?"
      end))
  elseif kind == "tensor" and pcall(stop.view, stop, value, cta, warp, lane)
  then
    return tensor(session, name, value)
  elseif type(value) == "table" and (not getmetatable(value)
    or has_traced(value)) then
    return fields(name, value)
  end
  return ("%s = %s"):format(name, core.visible(tostring(value), true))
end

---------------------------------------------------------------------------
-- Positions
---------------------------------------------------------------------------

--- Returns "gemm.lua:31".
function show.place(at)
  return at.line and ("%s:%d"):format(source.short(at.file), at.line) or "?"
end

local place = show.place

--- Returns "block (1,0,0), warp 2".
function show.who(at)
  local b = at.block
  return ("block (%d,%d,%d), %s"):format(b[1], b[2], b[3],
    at.warp < 0 and at.op or "warp " .. at.warp)
end

--- Implements Session:where.
function show.where(session)
  local at = session.at
  if session:is_over() then
    -- n counts the faults that no other fault may have caused.
    local n = 0
    for _, r in ipairs(session.report.reports) do
      if not r.leads then n = n + 1 end
    end
    return "the run is over: " .. (n == 0 and "nothing to report"
      or report.plural(n, "fault"))
  end
  local out = {("step %d: %s, %s, %s"):format(at.step, place(at),
    show.who(at), at.op or "ended")}
  if at.lanes ~= 0xffffffff then
    out[1] = out[1] .. (", lanes %08x"):format(at.lanes)
  end
  if at.fault then out[#out + 1] = "  fault: " .. at.fault end
  if at.why == "change" then
    out[#out + 1] = ("  %s changed: %s, %s"):format(
      session.watched[at.which].text, place(at.met), show.who(at.met))
  end
  local text = at.line and source.line(at.file, at.line)
  if text then out[#out + 1] = ("%5d  %s"):format(at.line, text) end
  return core.visible(table.concat(out, "\n"), true)
end

local STATE = {
  barrier = function(w) return ("waits at barrier %d"):format(w.bar or 0) end,
  mbarrier = function(w, bars)
    local b = bars[w.mbar or 0]
    return b and ("waits at %s[%d], phase %d"):format(b.name, b.element,
      b.phase) or "waits at an mbarrier"
  end,
  cluster = function() return "waits at the cluster's barrier" end,
  registers = function() return "waits for registers" end,
  warpgroup = function() return "waits for its warpgroup" end,
}

-- Returns the mbarriers among a list of barriers, sorted by number.
local function mbarriers(bars)
  local out = {}
  for _, b in ipairs(bars) do
    if b.name then out[#out + 1] = b end
  end
  return out
end

--- Implements Session:warps.
function show.warps(session)
  check_running(session)
  local bars = mbarriers(session.stop:bars())
  local out, f = {}, session.focus
  for _, w in ipairs(session.stop:warps()) do
    local here = w.cta == f.cta and w.warp == f.warp
    local state = STATE[w.state] and STATE[w.state](w, bars) or w.state
    local extra = {}
    if w.copies > 0 then extra[1] = w.copies .. " cp.async in flight" end
    if w.agents > 0 then
      extra[#extra + 1] = w.agents .. " operations of agents in flight"
    end
    out[#out + 1] = ("%s block %d warp %-2d  %-24s %s%s"):format(
      here and ">" or " ", w.cta, w.warp, place(w), state,
      #extra > 0 and ", " .. table.concat(extra, ", ") or "")
  end
  return table.concat(out, "\n")
end

--- Implements Session:bars.
function show.bars(session)
  check_running(session)
  local out = {}
  for _, b in ipairs(session.stop:bars()) do
    if b.name then
      out[#out + 1] = ("block %d  %s[%d]: phase %d, %d of %d arrived%s")
        :format(b.cta, b.name, b.element, b.phase, b.arrived, b.expected,
        b.bytes ~= 0 and (", %d bytes to come"):format(b.bytes) or "")
    else
      out[#out + 1] = ("block %d  barrier %d: %d of %d threads arrived")
        :format(b.cta, b.element, b.arrived, b.expected)
    end
  end
  return #out > 0 and table.concat(out, "\n") or "no barriers are in use"
end

--- Implements Session:source.
function show.source(session, n)
  local at = session:seat()
  if not at.line then return "no line is known here" end
  local out = {}
  for line = math.max(1, at.line - (n or 5)), at.line + (n or 5) do
    local text = source.line(at.file, line)
    if not text then break end
    out[#out + 1] = ("%s%5d  %s"):format(line == at.line and ">" or " ", line,
      text)
  end
  return core.visible(table.concat(out, "\n"), true)
end

return show
-- SPDX-License-Identifier: MIT
