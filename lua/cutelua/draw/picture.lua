--- Pictures that do not depend on an output format. text.lua, svg.lua,
-- latex.lua and html.lua write them.
--
-- A picture is {title =, captions = {line, ...}, palette = name (palette.lua),
--   panels = {panel, ...}, cute = settings for output like CuTe's own, meet =
--   whether rows and columns of adjacent panels align}.
-- A panel is a grid {name =, caption =, note =, rows =, columns =, row_name =,
--   column_name =, place = {i, j} in a grid of panels, row_labels =,
--   column_labels = (numbers from 0 on when absent), label = {}, class = {},
--   ids = {thread = {}, value = {}, offset = {}, bank = {}, pass = {},
--   lane = {}}, more =, edit =}.
--   label, class and each list of ids have an entry, perhaps nil, for each
--   cell, with the index row * columns + column + 1. label: the text; a blank
--   breaks it into two lines. class: the colour. more[cell]: further holders
--   of the cell: threads and values in alternation, or lanes. edit = {text =,
--   tile =, turned =}: the layout that the panel shows, for editing.
-- A panel can also be a timeline: {bars = {{row =, from =, to =, label =,
--   class =}, ...}, row_labels = {}, last =, unit =, legend = {{name, class},
--   ...}}.
local core = require "cute.core"

local picture = {}

--- Properties of cells that pictures can show, and their letters in labels.
picture.IDS = {"thread", "value", "lane", "pass", "offset", "bank"}
picture.LETTERS = {thread = "T", value = "V", lane = "L", pass = "P",
                   offset = "", bank = "B"}

-- The default limit of the number of cells, and the largest limit that options
-- may set.
local LIMIT, MOST = 1 << 15, 1 << 20
picture.MOST = MOST

local function product(list, most)
  local cells = 1
  for _, n in ipairs(list) do
    if n > 0 and cells > most // n then return nil end
    cells = cells * n
  end
  return cells
end

--- Raises an error if the number of cells, which is the product of the extents,
-- exceeds the limit. Returns the number.
---@param what string name of the drawing function
---@param x any the object to draw
---@param extents integer[]
---@param limit? integer the user's limit; 1048576 when absent
---@return integer cells
function picture.check_cells(what, x, extents, limit)
  local cells = product(extents, limit or MOST)
  if cells then return cells end
  local shown = product(extents, math.maxinteger)
  core.fail("limit", ("%s: %s%s cells are too many; the limit is %d\n  %s\n  "
    .. "slice it, or draw a tile of it%s"):format(what,
    table.concat(extents, " x "), #extents > 1 and shown and limit
    and (" = %d"):format(shown) or "", limit or MOST, tostring(x),
    limit and limit < MOST and (", or pass limit = N, up to %d"):format(MOST)
    or ""))
end

--- Returns the largest number of cells that the options allow.
---@param opts table
---@return integer
function picture.limit(opts)
  local limit = opts.limit or LIMIT
  if math.type(limit) ~= "integer" or limit < 1 or limit > MOST then
    core.fail("bad-argument", ("draw: limit = %s; 1 to %d cells are "
      .. "possible"):format(core.show(limit), MOST))
  end
  return limit
end

--- Makes a panel that is a grid of cells without labels and colours.
---@param fields table name, rows, columns and further fields
---@return table panel
function picture.grid(fields)
  fields.label, fields.class = {}, {}
  fields.ids = fields.ids or {}
  return fields
end

--- Returns the lines of a label, split at its blanks.
---@param label string
---@return string[]
function picture.lines(label)
  local list = {}
  for line in label:gmatch "%S+" do list[#list + 1] = line end
  return list
end

--- Returns the number of characters of a panel's longest label, and the largest
-- number of lines of a label. With `split`, labels are split at their blanks.
---@param panel table
---@param split? boolean
---@return integer width, integer lines
function picture.widest(panel, split)
  local width, lines = 1, 1
  for i = 1, panel.rows * panel.columns do
    local label = panel.label[i]
    if label then
      local blank = split and label:find(" ", 1, true)
      if blank then
        lines = math.max(lines, 2)
        width = math.max(width, blank - 1, #label - blank)
      else
        width = math.max(width, #label)
      end
    end
  end
  return width, lines
end

--- Returns the name of a panel's row i or, if `side` is "column", of its column
-- i. Rows and columns count from 0.
---@param panel table
---@param side string "row" or "column"
---@param i integer
---@return string
function picture.side(panel, side, i)
  local list = panel[side .. "_labels"]
  return tostring(list and list[i + 1] or i)
end

--- Returns a panel's caption: its name, its layout, and its note.
---@param panel table
---@return string? nil if the panel has no caption
function picture.caption(panel)
  local s = panel.caption
  if panel.note then s = (s and s .. "; " or "") .. panel.note end
  if panel.name then s = panel.name .. (s and ": " .. s or "") end
  return s
end

-- Returns text for the holders of a cell after the first one. `list` has
-- threads and values in alternation or, unless `pairs_of` is set, lanes.
local function others(list, pairs_of)
  local out = {}
  if pairs_of then
    for k = 1, #list, 2 do
      out[#out + 1] = (", T%d V%d"):format(list[k], list[k + 1])
    end
  else
    for k, lane in ipairs(list) do out[k] = (", L%d"):format(lane) end
  end
  return table.concat(out)
end

--- Returns a function that describes cell i of a panel, with its coordinate and
-- all its ids: "(1,3) T5 V0, T37 V0 offset 11".
---@param panel table
---@param escape fun(s: string): string applied to texts but not to numbers
---@return fun(i: integer): string
function picture.describer(panel, escape)
  local known, rows, columns = {}, {}, {}
  for _, name in ipairs(picture.IDS) do
    local list, letter = panel.ids[name], picture.LETTERS[name]
    if list then
      known[#known + 1] = {list = list,
        prefix = (letter == "" or name == "bank") and " " .. name .. " "
          or " " .. letter,
        last = name == (panel.ids.thread and "value" or "lane")}
    end
  end
  for m = 0, panel.rows - 1 do
    rows[m] = "(" .. escape(picture.side(panel, "row", m)) .. ","
  end
  for n = 0, panel.columns - 1 do
    columns[n] = escape(picture.side(panel, "column", n)) .. ")"
  end
  local more, across = panel.more, panel.columns
  return function(i)
    local s = rows[(i - 1) // across] .. columns[(i - 1) % across]
    for _, k in ipairs(known) do
      local v = k.list[i]
      if v then
        s = s .. k.prefix .. (type(v) == "number" and v or escape(tostring(v)))
        if k.last and more and more[i] then
          s = s .. others(more[i], panel.ids.thread)
        end
      end
    end
    return s
  end
end

return picture
-- SPDX-License-Identifier: MIT
