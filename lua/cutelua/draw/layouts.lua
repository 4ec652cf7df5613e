--- Pictures of layouts, swizzles, tensors, thread-value layouts, atoms and
-- tiled operations.
local core = require "cute.core"
local palette = require "cutelua.draw.palette"
local picture = require "cutelua.draw.picture"
local sign = require "cute.lang.signature"

local layouts = {}

---------------------------------------------------------------------------
-- Options for cells
---------------------------------------------------------------------------

local function one_of(what, name, list)
  for _, known in ipairs(list) do
    if name == known then return name end
  end
  local near = type(name) == "string"
    and (sign.nearest(name, list) or sign.nearest(name, picture.IDS))
  core.fail("bad-argument", ("draw: %s = %s; possible are %s%s"):format(what,
    core.show(name), table.concat(list, " "),
    near and " (did you mean " .. near .. "?)" or ""))
end

-- Returns the words that an option accepts: the other arguments, then the ids
-- (thread, value, ...) that the cells of a panel have.
local function known(panel, ...)
  local list = {...}
  for _, name in ipairs(picture.IDS) do
    if panel.ids[name] then list[#list + 1] = name end
  end
  return list
end

-- Colours the cells of a panel by an id, such as the thread. Returns the name
-- of the palette.
local function colour(panel, by)
  if by == "none" then return "hues" end
  local list, count = panel.ids[by], 0
  for i = 1, panel.rows * panel.columns do
    local v = list[i]
    if math.type(v) == "integer" then count = math.max(count, v + 1) end
  end
  local name = by == "offset" and "hues" or by == "bank" and "shades"
    or palette.of(count)
  local n = #palette.colours(name)
  for i, v in pairs(list) do
    if math.type(v) == "integer" then panel.class[i] = v % n end
  end
  return name
end

-- Labels the cells of a panel with the ids in `names`, such as thread and
-- value. A single id is written as a plain number, several ids with letters,
-- such as "T5 V0".
local function write(panel, names)
  local lists = {}
  for k, name in ipairs(names) do
    lists[k] = {panel.ids[name], #names > 1 and picture.LETTERS[name] or ""}
  end
  for i = 1, panel.rows * panel.columns do
    local label
    for _, list in ipairs(lists) do
      local v = list[1][i]
      if v ~= nil then
        v = list[2] .. tostring(v)
        label = label and label .. " " .. v or v
      end
    end
    panel.label[i] = label
  end
end

local function coordinates(panel)
  for i = 0, panel.rows * panel.columns - 1 do
    panel.label[i + 1] = ("(%d,%d)"):format(i // panel.columns,
                                            i % panel.columns)
  end
end

--- Sets the colours and labels of all panels of a picture according to the
-- options.
---@param p table
---@param opts table
---@param by string the id for colours, unless an option sets it
---@param names string[] the ids for labels, unless an option sets them
function layouts.finish(p, opts, by, names)
  if opts.by ~= nil then by = opts.by end
  local labels = opts.labels
  for _, panel in ipairs(p.panels) do
    one_of("by", by, known(panel, "none"))
    local name = colour(panel, by)
    if p.palette ~= "shades" then p.palette = name end
    panel.by, panel.labels = by, names
    if labels == nil or labels == true then
      write(panel, names)
    elseif labels == "coord" then
      coordinates(panel)
      panel.labels = {labels}
    elseif labels then
      local list = type(labels) == "table" and labels or {labels}
      for i = 1, math.max(#list, 1) do
        one_of("labels", list[i], known(panel, "coord"))
      end
      write(panel, list)
      panel.labels = list
    else
      p.unlabelled = true
    end
  end
  if by ~= "none" then
    local n = #palette.colours(p.palette)
    p.captions[#p.captions + 1] = ("colours: %s modulo %d"):format(by, n)
  end
  return p
end

---------------------------------------------------------------------------
-- Layouts: the offset of each coordinate
---------------------------------------------------------------------------

local function check_static(x, layout)
  if not core.is_static(layout) then
    core.fail("needs-static", "only static shapes can be drawn, got "
      .. tostring(x))
  end
end

-- Returns all coordinates of modes 2 and higher (modes count from 0), each as a
-- list.
local function slices(layout)
  local list = {{}}
  for mode = 2, core.rank(layout) - 1 do
    local longer = {}
    for k = 0, core.size(layout, mode) - 1 do
      for _, c in ipairs(list) do
        longer[#longer + 1] = table.move(c, 1, #c, 1, {})
        table.insert(longer[#longer], k)
      end
    end
    list = longer
  end
  return list
end

-- Returns the numbers of rows, columns and panels for a layout. They are the
-- extent of mode 0, the extent of mode 1, and the size of all further modes.
local function extents(layout, column)
  local rank = core.rank(layout)
  local rows, columns, panels = core.size(layout, 0), 1, 1
  if rank > 1 then columns = core.size(layout, 1) end
  for mode = 2, rank - 1 do panels = panels * core.size(layout, mode) end
  if rank == 1 and not column then rows, columns = 1, rows end
  return rows, columns, panels
end

-- Returns the width of an element in bits, from the type opts.dtype or else
-- from the tensor's type.
local function bits_of(opts, tensor)
  local dtype = opts.dtype or tensor and tensor.dtype
  if dtype == nil then return nil end
  if type(dtype) == "string" then dtype = core.find_dtype(dtype) end
  if core.typename(dtype) ~= "dtype" then
    core.fail("bad-argument", ("draw: dtype = %s; an element type is needed")
      :format(core.show(opts.dtype)))
  end
  return dtype.bits
end

local function fill_offsets(panel, layout, c, vector, bits)
  local offset, at = {}, 0
  local bank = bits and {} or nil
  panel.ids.offset, panel.ids.bank = offset, bank
  local rest = #c > 0
  for m = 0, panel.rows - 1 do
    for n = 0, panel.columns - 1 do
      at = at + 1
      local v
      if vector then v = layout(m + n)
      elseif rest then v = layout(m, n, table.unpack(c))
      else v = layout(m, n) end
      offset[at] = v
      if bank and math.type(v) == "integer" then
        bank[at] = v * bits // 32 % 32
      end
    end
  end
end

local function offset_panels(x, layout, opts, tensor)
  check_static(x, layout)
  local rank = core.rank(layout)
  if rank < 1 then
    core.fail("shape-mismatch", "draw needs a layout of rank 1 or more, got "
      .. tostring(x))
  end
  local rows, columns, panels = extents(layout, opts.column)
  picture.check_cells(opts.what or "draw", x,
    panels > 1 and {rows, columns, panels} or {rows, columns},
    picture.limit(opts))
  local list, bits = {}, bits_of(opts, tensor)
  if opts.by == "bank" and not bits then
    core.fail("bad-argument", "draw: by = \"bank\": the width of an element is "
      .. "unknown: pass dtype = cute.f16, or draw a tensor")
  end
  for i, c in ipairs(slices(layout)) do
    list[i] = picture.grid {rows = rows, columns = columns, name = #c > 0
      and ("(_,_,%s)"):format(table.concat(c, ",")) or nil}
    fill_offsets(list[i], layout, c, rank == 1, bits)
  end
  return list
end

--- Draws a layout, which may be composed: the offset of each coordinate. Each
-- coordinate of the modes after the second has a separate panel.
---@param layout table
---@param opts table
---@return table picture
function layouts.layout(layout, opts)
  local p = {title = tostring(layout), captions = {},
             panels = offset_panels(layout, layout, opts)}
  if #p.panels == 1 then
    p.panels[1].edit = {text = tostring(layout), bits = bits_of(opts)}
  end
  return layouts.finish(p, opts, "offset", {"offset"})
end

--- Draws a swizzle: the position to which it moves each chunk of each row. A
-- chunk has 2^M elements and is one cell.
---@param swizzle table
---@param opts table
---@return table picture
function layouts.swizzle(swizzle, opts)
  local b, m, s = swizzle.num_bits, swizzle.num_base, swizzle.num_shift
  local columns = 1 << math.max(math.abs(s), b)
  local rows = 1 << b
  picture.check_cells("draw", swizzle, {rows, columns}, picture.limit(opts))
  local layout = core.composition(swizzle, core.make_layout({rows, columns},
    {columns << m, 1 << m}))
  local p = layouts.layout(layout, opts)
  local panel = p.panels[1]
  p.title = tostring(swizzle)
  table.insert(p.captions, 1, ("%s: a cell is %d element%s, its number where "
    .. "it begins"):format(tostring(layout), 1 << m, m > 0 and "s" or ""))
  -- By default, a cell has the colour of the chunk of 2^M elements that it
  -- shows.
  if opts.by == nil then
    panel.by = nil
    for i, v in ipairs(panel.ids.offset) do
      panel.class[i] = (v >> m) % columns % 8
    end
    p.captions[#p.captions] = "colours: chunk of a row modulo 8"
  end
  return p
end

---------------------------------------------------------------------------
-- Elements of tensors
---------------------------------------------------------------------------

--- Returns a number as text of a few characters.
local function short(v)
  if v ~= v then return "nan" end
  if math.type(v) == "float" then
    return v == math.floor(v) and math.abs(v) < 1e5 and ("%.0f"):format(v)
      or ("%.4g"):format(v)
  end
  return tostring(v)
end

-- Sets the colour classes of the cells for the palette "heat": zeros get class
-- 8, the largest magnitude gets class 16 or, if negative, class 0. Returns the
-- largest magnitude.
local function warmth(panels)
  local most = 0
  for _, panel in ipairs(panels) do
    for _, v in ipairs(panel.values) do
      local size = type(v) == "number" and math.abs(v) or 0
      if size < math.huge then most = math.max(most, size) end
    end
  end
  for _, panel in ipairs(panels) do
    for i, v in ipairs(panel.values) do
      if type(v) == "number" and v == v then
        local part = most > 0 and v / most or 0
        part = math.max(-1, math.min(1, part)) * 8
        -- Rounding away from zero gives even the smallest numbers a visible
        -- sign.
        panel.class[i] = 8 + (part > 0 and math.ceil(part)
                              or math.floor(part))
      end
    end
  end
  return most
end

--- Draws the elements of a tensor that the host can read, with the offset of
-- each element.
---@param t table
---@param opts table
---@return table picture
function layouts.tensor(t, opts)
  local traced = t.memspace ~= "host" and t.memspace ~= "coord"
    and t.memspace ~= "device"
  if traced then return layouts.layout(t.layout, opts) end
  local p = {title = tostring(t), captions = {},
             panels = offset_panels(t, t.layout, opts,
                                    t.memspace ~= "coord" and t or nil)}
  local host = t.memspace == "device" and t:to "host" or t
  local rank = core.rank(t)
  for i, c in ipairs(slices(t.layout)) do
    local panel, at = p.panels[i], 0
    local values = {}
    panel.values = values
    for m = 0, panel.rows - 1 do
      for n = 0, panel.columns - 1 do
        at = at + 1
        if rank == 1 then values[at] = host(m + n)
        else values[at] = host(m, n, table.unpack(c)) end
      end
    end
  end
  if opts.by ~= nil or opts.labels and opts.labels ~= true then
    layouts.finish(p, opts, "offset", {"offset"})
  else
    p.palette = "heat"
    p.captions[1] = ("colours: negative, zero, positive, up to %s"):format(
      short(warmth(p.panels) + 0.0))
  end
  p.unlabelled = opts.labels == false
  if opts.labels == nil or opts.labels == true then
    for _, panel in ipairs(p.panels) do
      for i, v in ipairs(panel.values) do panel.label[i] = short(v) end
    end
  end
  return p
end

---------------------------------------------------------------------------
-- Threads and values of a tile's elements
---------------------------------------------------------------------------

-- The largest number of further threads and values that a cell lists after the
-- first.
local HOLDERS = 16

-- Returns begin[t], the first element of thread t, and step[v], the distance of
-- value v from the first element. In a layout that is not composed, an element
-- is the sum of both; this saves a call for each element. For a composed
-- layout, returns only `begin`.
local function starts(tv, threads, values)
  local begin, step = {}, {}
  for t = 0, threads - 1 do begin[t] = tv(t, 0) end
  if tv.is_composed then return begin end
  for v = 0, values - 1 do step[v] = tv(0, v) end
  return begin, step
end

-- Groups the threads that hold the same elements. Groups are ordered by their
-- first threads.
local function alike(begin, step, threads)
  local groups, by = {}, {}
  for t = 0, threads - 1 do
    local group = step and by[begin[t]]
    if group then
      group[#group + 1] = t
    else
      groups[#groups + 1] = {t}
      by[begin[t]] = groups[#groups]
    end
  end
  return groups
end

-- Returns the panel of an M by N tile. It shows, for each element, the first
-- thread and value that hold it. If fields.turned is true, rows and columns are
-- exchanged; if fields.across is true, elements are numbered along rows.
local function holder_panel(x, tv, fields, opts)
  check_static(x, tv)
  if core.rank(tv) ~= 2 then
    core.fail("shape-mismatch", "draw: with tile, a layout of rank 2, (thread, "
      .. "value), is needed, got " .. tostring(tv))
  end
  local M, N = fields.M, fields.N
  local threads, values = core.size(tv, 0), core.size(tv, 1)
  local what, limit = opts.what or "draw", not opts.what
    and picture.limit(opts) or nil
  picture.check_cells(what, x, {M, N}, limit)
  picture.check_cells(what, x, {threads, values})
  local thread, value, offset, more = {}, {}, {}, {}
  local count, most, cells, order = {}, 1, M * N, {}
  local begin, step = starts(tv, threads, values)
  for _, group in ipairs(alike(begin, step, threads)) do
    local t, n = group[1], #group
    for v = 0, values - 1 do
      local i = step and begin[t] + step[v] or tv(t, v)
      if math.type(i) ~= "integer" or i < 0 or i >= cells then
        core.fail("shape-mismatch", ("draw: thread %d, value %d is element %s, "
          .. "outside the tile of %d x %d = %d\n  %s"):format(t, v, tostring(i),
          M, N, cells, tostring(tv)))
      end
      local r, c = i % M, i // M
      if fields.across then r, c = i // N, i % N end
      local at = fields.turned and c * M + r + 1 or r * N + c + 1
      local first = 1
      if not thread[at] then
        thread[at], value[at], offset[at], first = t, v, i, 2
        order[#order + 1] = at
      end
      count[at] = (count[at] or 0) + n
      most = math.max(most, count[at])
      if first <= n then
        local list = more[at] or {}
        more[at] = list
        for k = first, math.min(n, first + HOLDERS - #list // 2 - 1) do
          list[#list + 1], list[#list + 2] = group[k], v
        end
      end
    end
  end
  fields.rows, fields.columns, fields.order = M, N, order
  if fields.turned then fields.rows, fields.columns = N, M end
  fields.ids = {thread = thread, value = value, offset = offset}
  if most > 1 then fields.more = more end
  fields.caption = tostring(tv)
  fields.note = most > 1 and ("an element is held by up to %d, the first is "
    .. "written%s"):format(most, most > HOLDERS + 1 and (", %d more are known")
    :format(HOLDERS) or "") or nil
  fields.edit = {text = tostring(tv), tile = {M, N}, turned = fields.turned,
                 across = fields.across}
  fields.M, fields.N, fields.turned, fields.across = nil, nil, nil, nil
  return picture.grid(fields)
end

local function tile_of(tile)
  local ok, M, N = pcall(function()
    if math.type(tile) == "integer" then return 1, tile end
    if core.typename(tile) == "layout" then
      return core.size(tile, 0), core.size(tile, 1)
    end
    return core.size(tile[1]), core.size(tile[2])
  end)
  if not ok or math.type(M) ~= "integer" or math.type(N) ~= "integer"
      or M < 1 or N < 1 then
    core.fail("bad-argument", ("draw: tile = %s; {M, N}, or a layout of it, is "
      .. "needed"):format(core.show(tile)))
  end
  return M, N
end

--- Draws a thread-value layout: the threads and values that hold each element
-- of an M by N tile.
---@param tv table (thread, value) -> element, along columns
---@param opts table with tile = {M, N}, or a layout with these extents
---@return table picture
function layouts.tv(tv, opts)
  local M, N = tile_of(opts.tile)
  local p = {title = ("%s of a tile of %d x %d"):format(tostring(tv), M, N),
    captions = {}, panels = {holder_panel(tv, tv,
      {M = M, N = N, row_name = "m", column_name = "n"}, opts)}}
  return layouts.finish(p, opts, "thread", {"thread", "value"})
end

local function check_all(x, opts, ...)
  local cells, limit = 0, picture.limit(opts)
  for _, tile in ipairs {...} do
    cells = cells + picture.check_cells(opts.what or "draw", x, tile, limit)
  end
  if cells > limit then
    picture.check_cells(opts.what or "draw", x, {cells}, limit)
  end
end

local function mma(x, opts, title, M, N, K, tv)
  check_all(x, opts, {M, N}, {M, K}, {N, K})
  local p = {title = title, captions = {}, meet = true, panels = {
    holder_panel(x, tv.C, {name = "C", M = M, N = N, place = {2, 2},
      row_name = "m", column_name = "n"}, opts),
    holder_panel(x, tv.A, {name = "A", M = M, N = K, place = {2, 1},
      row_name = "m", column_name = "k"}, opts),
    holder_panel(x, tv.B, {name = "B", M = N, N = K, place = {1, 2},
      turned = true, row_name = "k", column_name = "n"}, opts)}}
  return layouts.finish(p, opts, "thread", {"thread", "value"})
end

local function copy(x, opts, title, M, N, source, target, across)
  check_all(x, opts, {M, N}, {M, N})
  local function panel(name, tv, place)
    return holder_panel(x, tv, {name = name, M = M, N = N, place = place,
      across = across, row_name = "m", column_name = "n"}, opts)
  end
  local p = {title = title, captions = {}, panels = {
    panel("source", source, {1, 1}), panel("destination", target, {1, 2})}}
  return layouts.finish(p, opts, "thread", {"thread", "value"})
end

local function field(x, name)
  local ok, v = pcall(function() return x[name] end)
  return ok and v or nil
end

-- Returns the title of a picture in one line: the name of an atom or a tiled
-- operation.
local function title_of(x, what, ...)
  local name = field(x, "name")
  return ("%s%s, %s"):format(what, name and " " .. tostring(name) or "",
    table.concat({...}, " x "))
end

--- Reports whether an atom, or a tiled operation, is an MMA.
---@param x userdata
---@return boolean
function layouts.is_mma(x) return field(x, "shape_mnk") ~= nil end

--- Draws a TiledMMA: C, with A to its left and B above it.
function layouts.tiled_mma(x, opts)
  local tile = x.tile_size_mnk
  local M, N, K = core.size(tile[1]), core.size(tile[2]), core.size(tile[3])
  return mma(x, opts, title_of(x, "TiledMMA", M, N, K), M, N, K,
    {A = x.tv_layout_A_tiled, B = x.tv_layout_B_tiled,
     C = x.tv_layout_C_tiled})
end

--- Draws an MMA atom: C, with A to its left and B above it.
function layouts.mma_atom(x, opts)
  local M, N, K = table.unpack(x.shape_mnk)
  return mma(x, opts, title_of(x, "MMA_Atom", M, N, K), M, N, K,
    {A = x.tv_layout_A, B = x.tv_layout_B, C = x.tv_layout_C})
end

--- Draws a TiledCopy: its source and its destination.
function layouts.tiled_copy(x, opts)
  local tiler = x.tiler_mn
  local M, N = core.size(tiler[1]), tiler[2] and core.size(tiler[2]) or 1
  return copy(x, opts, title_of(x, "TiledCopy", M, N), M, N,
    x.layout_src_tv_tiled, x.layout_dst_tv_tiled)
end

--- Draws a copy atom: its elements in the order of the source layout. A row of
-- the picture has the elements that one thread reads from its source address.
function layouts.copy_atom(x, opts)
  local source, target = x.layout_src_tv, x.layout_dst_tv
  check_static(x, source)
  local columns = core.size(source, 1)
  local rows = math.max(core.cosize(source), core.cosize(target))
  rows = (rows + columns - 1) // columns
  return copy(x, opts, title_of(x, "Copy_Atom", rows, columns), rows, columns,
    source, target, true)
end

return layouts
-- SPDX-License-Identifier: MIT
