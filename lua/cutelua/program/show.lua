--- Formats values for the prompt: as much of each value as fits in a few lines,
-- with a note about omitted parts.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"
local events = require "cutelua.program.events"
local sign = require "cute.lang.signature"
local topics = require "cutelua.program.topics"

local show = {}

-- The largest number of rows of a grid that are shown.
local MOST_ROWS = 16
-- The largest layout that is drawn, in cells.
local MOST_CELLS = 256
-- The largest GPU tensor that is copied to the host, in bytes.
local MOST_BROUGHT = 1 << 20
-- The largest number of threads that are shown for a thread-value layout.
local MOST_THREADS = 8
-- The longest string that is shown in full, in characters.
local MOST_TEXT = 1 << 16

---------------------------------------------------------------------------
-- Lua's own values
---------------------------------------------------------------------------

local function quoted(v)
  if type(v) ~= "string" then return tostring(v) end
  return (("%q"):format(v):gsub("\\\n", "\\n"))
end

local function sorted_keys(t, n)
  local keys = {}
  for k in next, t do
    local seq = math.type(k) == "integer" and k >= 1 and k <= n
    if not seq then keys[#keys + 1] = k end
  end
  table.sort(keys, function(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then return ta < tb end
    if ta == "number" or ta == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

-- Formats a table: a short one, such as {8, {8, 8}}, in full; a longer one with
-- some fields omitted.
local function show_table(t, depth)
  local parts, n = {}, #t
  local function item(v)
    if type(v) == "table" and not getmetatable(v) then
      return depth > 0 and show_table(v, depth - 1) or "{...}"
    end
    return (quoted(v))
  end
  for i = 1, math.min(n, 32) do parts[i] = item(rawget(t, i)) end
  if n > 32 then parts[33] = ("... %d more"):format(n - 32) end
  local keys = sorted_keys(t, n)
  for i = 1, math.min(#keys, 32) do
    local k = keys[i]
    local name = type(k) == "string" and k:find "^[%a_][%w_]*$" and k
      or "[" .. quoted(k) .. "]"
    parts[#parts + 1] = name .. " = " .. item(rawget(t, k))
  end
  if #keys > 32 then parts[#parts + 1] = ("... %d more"):format(#keys - 32) end
  local flat = "{" .. table.concat(parts, ", ") .. "}"
  if #flat <= 76 then return flat end
  if #keys == 0 and depth < 2 then return flat end
  return "{\n  " .. table.concat(parts, ",\n  ") .. "\n}"
end

-- Formats a string: text unchanged; other bytes as in "\x7fELF", with their
-- number.
local function show_string(s)
  if utf8.len(s) and not s:find "[%z\1-\8\11-\31\127]" then
    if #s <= MOST_TEXT then return s end
    return ("%s\n... %s"):format(s:sub(1, MOST_TEXT),
      report.plural(#s - MOST_TEXT, "more character"))
  end
  local head = core.visible(s:sub(1, 48))
  return ("%d bytes: %s%s"):format(#s, head, #s > 48 and " ..." or "")
end

local function show_function(f)
  local info = debug.getinfo(f, "S")
  local signature = core.signature(f)
  if signature then return "function " .. signature end
  if info.what == "C" then return "function of C" end
  local names = {}
  local u = debug.getinfo(f, "u")
  for i = 1, u.nparams do names[i] = debug.getlocal(f, i) or "?" end
  if u.isvararg then names[#names + 1] = "..." end
  return ("function(%s) of %s:%d"):format(table.concat(names, ", "),
    info.short_src, info.linedefined)
end

---------------------------------------------------------------------------
-- Grids of numbers
---------------------------------------------------------------------------

local function cell(v)
  if math.type(v) == "float" then return ("%.5g"):format(v) end
  return tostring(v)
end

-- Formats the cells at(i, j) of an m x n grid, as far as they fit in `rows`
-- rows and `columns` columns of text. Returns lines of text, and the numbers of
-- rows and columns of the grid that they show.
local function grid(m, n, at, rows, columns)
  rows = math.min(m, rows)
  local most = math.min(n, math.max(1, columns // 2))
  local text, width = {}, 0
  for i = 0, rows - 1 do
    text[i] = {}
    for j = 0, most - 1 do
      text[i][j] = cell(at(i, j))
      width = math.max(width, #text[i][j])
    end
  end
  local room = (columns - 2) // (width + 1)
  local across = math.max(1, math.min(n, room))
  if across < n then across = math.max(1, (columns - 6) // (width + 1)) end
  local lines = {}
  for i = 0, rows - 1 do
    local line = {}
    for j = 0, across - 1 do
      line[j + 1] = (" "):rep(width - #text[i][j]) .. text[i][j]
    end
    lines[i + 1] = "  " .. table.concat(line, " ")
      .. (across < n and " ..." or "")
  end
  return lines, rows, across
end

-- Formats n values at(i), in several lines if necessary. Returns the lines and
-- the number of values shown.
local function row(n, at, columns)
  local shown, width = math.min(n, MOST_CELLS), 1
  local text = {}
  for i = 0, shown - 1 do
    text[i] = cell(at(i))
    width = math.max(width, #text[i])
  end
  local across = math.max(1, (columns - 1) // (width + 1))
  if across > 8 and across < shown then across = across // 8 * 8 end
  shown = math.min(shown, MOST_ROWS * across)
  local lines = {}
  for from = 0, shown - 1, across do
    local line = {}
    for i = from, math.min(from + across, shown) - 1 do
      line[#line + 1] = (" "):rep(width - #text[i]) .. text[i]
    end
    lines[#lines + 1] = "  " .. table.concat(line, " ")
  end
  return lines, shown
end

local function append(out, lines)
  table.move(lines, 1, #lines, #out + 1, out)
end

---------------------------------------------------------------------------
-- Layouts, tensors, fragments
---------------------------------------------------------------------------

-- Returns the extents of the modes of a layout or tensor of rank 1 to 4; nil
-- for other ranks, or if an extent is unknown.
local function extents(x)
  local rank = core.rank(x)
  if rank < 1 or rank > 4 then return nil end
  local out = {}
  for i = 1, rank do
    out[i] = core.size(x, i - 1)
    if math.type(out[i]) ~= "integer" then return nil end
  end
  return out
end

local function show_layout(l, columns)
  local n = extents(l)
  local cells = n and #n <= 2 and (n[2] or 1) <= MOST_CELLS
    and n[1] <= MOST_CELLS and n[1] * (n[2] or 1)
  if not cells or cells > MOST_CELLS or cells < 1 then return tostring(l) end
  local lines, rows, across
  if n[2] then
    lines, rows, across = grid(n[1], n[2], l, MOST_ROWS, columns)
    if rows < n[1] or across < n[2] then return tostring(l) end
  else
    lines, rows = row(n[1], l, columns)
    if rows < n[1] then return tostring(l) end
  end
  return tostring(l) .. "\n" .. table.concat(lines, "\n")
end

-- Formats the matrices t(i, j, rest...) of a tensor, one after another, until
-- MOST_ROWS rows are shown.
local function matrices(t, n, columns)
  local out, cut = {}, false
  local left = MOST_ROWS
  for b = 0, (n[3] or 1) * (n[4] or 1) - 1 do
    local rest = n[3] and {b % n[3], n[4] and b // n[3] or nil} or {}
    if left < 1 then cut = true break end
    if n[3] then
      out[#out + 1] = ("  (_,_,%s):"):format(table.concat(rest, ","))
    end
    local lines, rows, across = grid(n[1], n[2], function(i, j)
      return t(i, j, table.unpack(rest))
    end, left, columns)
    cut = cut or rows < n[1] or across < n[2]
    append(out, lines)
    left = left - rows
  end
  return out, cut
end

-- Returns a tensor whose elements the host can read: t itself, or a copy of it.
-- Returns nil and the reason if the elements cannot be read.
local function readable(t, n)
  if t.memspace == "coord" then return t end
  if t.memspace ~= "host" then return nil, "exist only while a kernel runs" end
  local place = t.device
  if not place or place == "host" then return t end
  local size = 1.0
  for _, e in ipairs(n) do size = size * e end
  if size * t.element_type.bits > 8 * MOST_BROUGHT then
    return nil, ("are on %s; t:to \"host\" copies them"):format(place)
  end
  return t:to "host"
end

local function show_tensor(t, columns)
  local n, head = extents(t), tostring(t)
  if not n then return head end
  for _, e in ipairs(n) do if e < 1 then return head end end
  local from, why = readable(t, n)
  if not from then
    return t.memspace == "host" and head .. "\n  its elements " .. why or head
  end
  local lines, cut
  if n[2] then
    lines, cut = matrices(from, n, columns)
  else
    local shown
    lines, shown = row(n[1], from, columns)
    cut = shown < n[1]
  end
  if cut then
    lines[#lines + 1] = ("  ... cut: %s elements; cute.print_tensor(t) prints "
      .. "all"):format(table.concat(n, " x "))
  end
  return head .. "\n" .. table.concat(lines, "\n")
end

-- Returns lines that list the coordinates of each thread's elements, for
-- thread-value layout tv of a tile with m rows. `what` is the first line.
local function threads(what, tv, m, columns)
  local n = extents(tv)
  if not (n and #n == 2 and math.type(m) == "integer") then return {} end
  local out = {what}
  local label = #tostring(math.min(n[1], MOST_THREADS) - 1)
  for t = 0, math.min(n[1], MOST_THREADS) - 1 do
    local line = ("  T%-" .. label .. "d"):format(t)
    for v = 0, n[2] - 1 do
      local at = tv(t, v)
      if math.type(at) ~= "integer" then return {} end
      local text = (" (%d,%d)"):format(at % m, at // m)
      if #line + #text + 4 > columns then
        line = line .. " ..."
        break
      end
      line = line .. text
    end
    out[#out + 1] = line
  end
  if n[1] > MOST_THREADS then
    out[#out + 1] = "  ... " .. report.plural(n[1] - MOST_THREADS,
                                              "more thread")
  end
  return out
end

local function field(x, name)
  local ok, v = pcall(function() return x[name] end)
  return ok and v or nil
end

local function show_atom(x, columns)
  local out = {tostring(x)}
  local shape = field(x, "tile_size_mnk") or field(x, "shape_mnk")
  local tv = field(x, "tv_layout_C_tiled") or field(x, "tv_layout_C")
  local copy = field(x, "layout_tv_tiled")
  local tiler = copy and field(x, "tiler_mn")
  if out[1]:find "^Thr" then
    return out[1]
  elseif shape and tv then
    append(out, threads("C by thread, (m,n):", tv, core.get(shape, 0), columns))
  elseif tiler and #tiler == 2 then
    local m = core.size(tiler[1])
    append(out, threads("the tile by thread, (m,n):", copy, m, columns))
  end
  return (table.concat(out, "\n"):gsub("\n\n+", "\n"))
end

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

local function extent_text(e) return table.concat(e, " x "):gsub(" x 1", "") end

-- Returns the compiler's figures for a program as text, such as registers.
-- Compiles the program if NVRTC is installed.
local function resources_text(program)
  if not core.nvrtc_version() then return "registers: no NVRTC here" end
  local last = program.runs.last
  local arch = program.arch or last and last.arch or devices.ARCH
  local compiled, message = program:compile(arch)
  if not compiled then return message:match "^[^\n]*" end
  local r = compiled.resources
  local spilled = (r.spill_stores or 0) + (r.spill_loads or 0)
  return ("%s registers a thread on %s%s"):format(r.registers or "?",
    arch, spilled > 0 and (", %d bytes spilled"):format(spilled)
    or ", no spills")
end

local function seconds_text(s)
  if s >= 1 then return ("%.2f s"):format(s) end
  if s >= 1e-3 then return ("%.2f ms"):format(s * 1e3) end
  if s < 1e-6 then return ("%.0f ns"):format(s * 1e9) end
  return ("%.1f us"):format(s * 1e6)
end

show.seconds = seconds_text

local function show_program(program)
  local out = {("%s, a block of %s"):format(tostring(program),
    extent_text(program.block))}
  out[2] = "  " .. resources_text(program)
  local last = program.runs.last
  local seconds = last and events.seconds(last)
  if seconds then
    out[3] = ("  %s run: %s on %s"):format(last.first and "first" or "last",
      seconds_text(seconds), last.device)
  end
  return table.concat(out, "\n")
end

-- Returns the programs of a kernel, the last one first.
local function programs_of(k)
  local list = {}
  for _, known in pairs(k.programs) do
    for _, program in ipairs(known) do list[#list + 1] = program end
  end
  table.sort(list, function(a, b) return a.number > b.number end)
  return list
end

show.programs = programs_of

local function takes(k)
  local names, u = {}, debug.getinfo(k.func, "u")
  for i = 1, u.nparams do names[i] = debug.getlocal(k.func, i) or "?" end
  if u.isvararg then names[#names + 1] = "..." end
  return ("kernel %s(%s)"):format(k.name, table.concat(names, ", "))
end

local function add_programs(out, k, of)
  local list = programs_of(k)
  local head = ("its %d last programs:"):format(#list)
  if #list > 1 then out[#out + 1] = head end
  for i = 1, math.min(#list, 3) do out[#out + 1] = show_program(list[i]) end
  if #list == 0 then out[#out + 1] = of end
end

local function show_kernel(k)
  local out = {takes(k)}
  add_programs(out, k, "  not launched yet: k(...):launch {grid = , block = }")
  return table.concat(out, "\n")
end

local function show_call(call)
  local k, out = call.kernel, {}
  out[1] = takes(k) .. (call.n > 0 and " with" or "")
  for i = 1, call.n do
    local name = debug.getlocal(k.func, i) or "?"
    local text = show_string(tostring(call[i])):match "^[^\n]*"
    out[#out + 1] = ("  %s = %s"):format(name, text)
  end
  if k.block and #programs_of(k) == 0 then call:trace() end
  add_programs(out, k, "  not launched yet: :launch {grid = , block = }")
  return table.concat(out, "\n")
end

local function show_prepared(p)
  local out = {show_program(p.program)}
  out[#out + 1] = ("  ready for %s%s"):format(tostring(p.device), p.grid
    and ", a grid of " .. extent_text(p.grid) or "")
  return table.concat(out, "\n")
end

local CLASSES = {kernel = show_kernel, call = show_call,
                 program = show_program, prepared = show_prepared}

---------------------------------------------------------------------------
-- Modules
---------------------------------------------------------------------------

-- Appends a title and words to `out`, wrapped to lines of `columns` columns.
local function paragraph(out, title, words, columns)
  local line = ("  %-12s"):format(title)
  local indent = math.min(14, columns // 3)
  for _, word in ipairs(words) do
    if #line + 1 + #word > columns and line:find "%S" then
      out[#out + 1] = line
      line = (" "):rep(indent)
    end
    line = line .. " " .. word
  end
  out[#out + 1] = line
end

local function show_namespace(t, columns)
  local out = {sign.namespaces[t]}
  for _, topic in ipairs(topics.of(t)) do
    paragraph(out, topic.title, topic.names, columns)
  end
  return table.concat(out, "\n")
end

---------------------------------------------------------------------------

local TYPES = {layout = show_layout, tensor = show_tensor, atom = show_atom,
               tiled = show_atom}

--- Returns a value as the prompt prints it.
---@param v any
---@param columns? integer characters in a line; 80 when absent
---@return string
function show.text(v, columns)
  columns = math.max(columns or 80, 20)
  local mt, t = debug.getmetatable(v), type(v)
  if t == "string" then return show_string(v) end
  if t == "function" then return show_function(v) end
  if t == "table" and sign.namespaces[v] then
    return show_namespace(v, columns)
  elseif t == "table" and not mt then
    return show_table(v, 2)
  end
  local name = mt and rawget(mt, "__name")
  local own = t == "table" and sign.classes[mt] and CLASSES[name]
    or t == "userdata" and type(name) == "string"
    and TYPES[name:match "^cute%.(.*)"]
  return own and own(v, columns) or tostring(v)
end

return show
-- SPDX-License-Identifier: MIT
