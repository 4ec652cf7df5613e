--- Writes pictures as text for terminals, in colour or in CuTe's format. The
-- text is wrapped at the terminal's width.
local core = require "cute.core"
local palette = require "cutelua.draw.palette"
local picture = require "cutelua.draw.picture"

local text = {}

local OFF = "\27[0m"
-- The largest panel, in cells, that has lines between its cells.
local RULED = 256

--- Reports whether output goes to a terminal that shows colours. Returns "all"
-- if the terminal has more than 256 colours.
---@return boolean|string
function text.coloured()
  if io.output() ~= io.stdout or not core.isatty(1)
      or (os.getenv "NO_COLOR" or "") ~= "" or os.getenv "TERM" == "dumb" then
    return false
  end
  local said = os.getenv "COLORTERM"
  return (said == "truecolor" or said == "24bit") and "all" or true
end

--- Returns the number of columns of the terminal that receives the output.
-- Returns nil if the number is unknown, or if the output goes to a file or a
-- pipe.
---@return integer?
function text.width()
  return io.output() == io.stdout and core.terminal_columns(1) or nil
end

-- Returns the escape sequence for each colour class of cells; an empty list if
-- `colour` is not set.
local function paints(p, colour)
  if not colour then return {} end
  local list = {}
  for i, c in ipairs(palette.colours(p.palette)) do
    list[i - 1] = "\27[30;" .. palette.background(c, colour == "all") .. "m"
  end
  return list
end

-- Returns the names of a panel's rows or columns, and the width of the widest.
local function sides(panel, side, n)
  local list, width = {}, 0
  for i = 0, n - 1 do
    list[i] = picture.side(panel, side, i)
    width = math.max(width, #list[i])
  end
  return list, width
end

-- Returns the texts of a panel's cells, and their width. If neither labels nor
-- colours would be visible, the texts are the numbers of the colour classes.
local function cells_of(p, panel, paint)
  local width = picture.widest(panel)
  local labels = panel.label
  if p.unlabelled and not paint[0] then
    labels = panel.class
    for _, class in pairs(panel.class) do
      width = math.max(width, #tostring(class))
    end
  end
  return labels, width
end

local function grid(out, p, panel, opts, paint)
  local labels, width = cells_of(p, panel, paint)
  local names, across = sides(panel, "column", panel.columns)
  local rows, left = sides(panel, "row", panel.rows)
  left = math.max(left, 2)
  width = math.max(width, paint[0] and p.unlabelled and 1 or 0,
                   math.min(across, 12))
  if p.cute then width, left = p.cute.width, 2 end
  -- Draw lines between the cells of a small panel without colours.
  local rules = opts.rules or not paint[0]
    and panel.rows * panel.columns <= RULED
  local each = width + (rules and 3 or 2)
  local band = panel.columns
  if opts.width then
    band = math.max(1, (opts.width - left - 3) // each)
  end
  local side, number = "%" .. left .. "s  ", "%" .. width .. "s"
  local indent = (" "):rep(left + 2)
  for first = 0, panel.columns - 1, band do
    local last = math.min(first + band, panel.columns) - 1
    if band < panel.columns then
      out[#out + 1] = ("columns %s to %s of %d\n"):format(names[first],
        names[last], panel.columns)
    end
    out[#out + 1] = indent
    for n = first, last do
      out[#out + 1] = (rules and "  " or " ") .. number:format(names[n]) .. " "
    end
    out[#out + 1] = "\n"
    local rule = indent .. ("+" .. ("-"):rep(width + 2)):rep(last - first + 1)
      .. "+\n"
    if rules then out[#out + 1] = rule end
    for m = 0, panel.rows - 1 do
      out[#out + 1] = side:format(rows[m])
      local at = m * panel.columns + 1
      for n = first, last do
        local label = labels[at + n] or not rules and not paint[0] and "."
        local cell = " " .. number:format(label or "") .. " "
        local escape = paint[panel.class[at + n]]
        if rules then
          cell = "|" .. (escape and escape .. cell .. OFF or cell)
        elseif escape then
          cell = escape .. cell .. OFF
        end
        out[#out + 1] = cell
      end
      out[#out + 1] = rules and "|\n" .. rule or "\n"
    end
  end
end

-- Letters that stand for the names of a timeline's bars, in the order of the
-- legend.
local MARKS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

local function bars(out, _, panel, opts, paint)
  local _, left = sides(panel, "row", #panel.row_labels)
  local room = math.max((opts.width or 100) - left - 3, 8)
  local marks, rows = {}, {}
  for i, entry in ipairs(panel.legend) do
    marks[entry.name] = MARKS:sub((i - 1) % #MARKS + 1, (i - 1) % #MARKS + 1)
    local escape = paint[entry.class]
    out[#out + 1] = ("  %s %s: %d times, %.3f %s\n"):format(
      escape and escape .. marks[entry.name] .. OFF or marks[entry.name],
      entry.name, entry.count, entry.sum, panel.unit)
  end
  for i = 1, #panel.row_labels do rows[i] = {} end
  for _, bar in ipairs(panel.bars) do
    local row, scale = rows[bar.row], room / panel.last
    local from = math.min(bar.from * scale // 1, room - 1)
    local to = math.max(math.ceil(bar.to * scale) - 1, from)
    local mark = bar.class and marks[bar.label] or "-"
    local escape = bar.class and paint[bar.class]
    for x = from // 1 | 0, to // 1 | 0 do
      row[x] = escape and escape .. mark .. OFF or mark
    end
  end
  local side = "%" .. left .. "s |"
  for i, row in ipairs(rows) do
    out[#out + 1] = side:format(panel.row_labels[i])
    for x = 0, room - 1 do out[#out + 1] = row[x] or " " end
    out[#out + 1] = "|\n"
  end
  local last = ("%.3g %s"):format(panel.last, panel.unit)
  out[#out + 1] = (" "):rep(left + 2) .. "0"
    .. (" "):rep(math.max(room - 1 - #last, 1)) .. last .. "\n"
end

--- Returns the text of a picture.
---@param p table see cutelua.draw.picture
---@param opts? {colour: boolean|"all"|nil, width: integer?, rules: boolean?}
-- width: columns that it may take; rules: lines between cells in colour, too
---@return string
function text.of(p, opts)
  opts = opts or {}
  local paint, out = paints(p, opts.colour), {}
  if p.title then out[1] = core.visible(p.title, true) .. "\n" end
  for _, line in ipairs(p.captions) do
    out[#out + 1] = core.visible(line) .. "\n"
  end
  for _, panel in ipairs(p.panels) do
    local caption = picture.caption(panel)
    if caption then out[#out + 1] = core.visible(caption) .. "\n" end
    if panel.row_name then
      out[#out + 1] = ("rows: %s, columns: %s\n"):format(panel.row_name,
                                                         panel.column_name)
    end
    (panel.bars and bars or grid)(out, p, panel, opts, paint)
  end
  return table.concat(out)
end

return text
-- SPDX-License-Identifier: MIT
