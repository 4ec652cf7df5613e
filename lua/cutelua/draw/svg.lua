--- Writes pictures as SVG, readable on light and dark backgrounds, for
-- browsers, papers and pages.
local html = require "cutelua.text.html"
local palette = require "cutelua.draw.palette"
local picture = require "cutelua.draw.picture"

local svg = {}

-- Sizes in pixels: width and height of a character of a label, space between
-- panels and around them, height of a panel's heading.
local CHAR, LINE, GAP, MARGIN, HEAD = 6.7, 14, 36, 20, 26
-- The largest width, in pixels, of panels that are placed side by side.
local WIDEST = 1500

-- Escapes text. Labels with only digits, letters and simple punctuation are
-- returned as they are.
local function escape(s)
  s = tostring(s)
  return s:find "^[%w .,:()-]*$" and s or html.escape(s)
end

--- Returns the size of a panel's cells in pixels: one size for all panels if
-- their rows and columns must align.
---@param p table
---@param panel table
---@return integer width, integer height
function svg.cell_size(p, panel)
  if p.unlabelled then return 14, 14 end
  local chars, lines = 1, 1
  for _, one in ipairs(p.meet and p.panels or {panel}) do
    local c, l = picture.widest(one, true)
    chars, lines = math.max(chars, c), math.max(lines, l)
  end
  return math.max(lines == 2 and 30 or 26, math.ceil(chars * CHAR) + 10),
    lines == 2 and 32 or 26
end

local function longest(panel, side, n)
  local most = 0
  for i = 0, n - 1 do
    most = math.max(most, #picture.side(panel, side, i))
  end
  return most
end

-- Size of a timeline in pixels: the length of its time axis, and the height of
-- a row.
local BAR_WIDTH, BAR_HEIGHT = 900, 16

-- Returns a table with the fields panel; left and top, the position of the grid
-- or of the time axis inside the panel; width and height, the size of the
-- panel. For grids it also has cw and ch, the width and height of a cell.
local function measure(p, panel)
  local m = {panel = panel}
  if panel.bars then
    m.left = 12 + 7 * longest(panel, "row", #panel.row_labels)
    m.top = HEAD + 22
    m.width = m.left + BAR_WIDTH + 30
    m.height = m.top + #panel.row_labels * BAR_HEIGHT + 24
    return m
  end
  m.cw, m.ch = svg.cell_size(p, panel)
  m.left = 14 + math.ceil(longest(panel, "row", panel.rows) * 6.2)
  m.top = (panel.name and HEAD or 6) + 18
  m.width = m.left + panel.columns * m.cw + 6
  m.height = m.top + panel.rows * m.ch + 6
  return m
end

-- Arranges the panels of `list`. A panel with a `place` is put there; other
-- panels are put side by side as long as they fit. Sets the fields x and y of
-- each. Returns the total width and height.
local function arrange(list, meet)
  local columns, rows, next_place = {}, {}, {1, 0}
  local x = 0
  for _, m in ipairs(list) do
    local place = m.panel.place
    if not place then
      x = x + m.width + GAP
      next_place[2] = next_place[2] + 1
      if next_place[2] > 1 and x > WIDEST then
        next_place, x = {next_place[1] + 1, 1}, m.width + GAP
      end
      place = {next_place[1], next_place[2]}
    end
    m.place = place
    rows[place[1]] = math.max(rows[place[1]] or 0, m.height)
    columns[place[2]] = math.max(columns[place[2]] or 0, m.width)
  end
  local function starts(sizes)
    local at, list_of = 0, {}
    for i, size in ipairs(sizes) do
      list_of[i] = at
      at = at + size + GAP
    end
    return list_of, at - GAP
  end
  local xs, width = starts(columns)
  local ys, height = starts(rows)
  for _, m in ipairs(list) do
    m.x, m.y = xs[m.place[2]], ys[m.place[1]]
    -- Move the panel next to the following panel, so that their grids align.
    if meet then
      m.x = m.x + columns[m.place[2]] - m.width
      m.y = m.y + rows[m.place[1]] - m.height
    end
  end
  return width, height
end

local function words(out, class, x, y, s)
  out[#out + 1] = ('<text class="%s" x="%g" y="%g">%s</text>'):format(class, x,
    y, escape(s))
end

local function labels(out, m, x, y)
  local panel = m.panel
  for n = 0, panel.columns - 1 do
    words(out, "s", x + (n + 0.5) * m.cw, y - 6,
          picture.side(panel, "column", n))
  end
  for i = 0, panel.rows - 1 do
    words(out, "e", x - 6, y + (i + 0.5) * m.ch + 4,
          picture.side(panel, "row", i))
  end
end

-- Draws the cells of a panel. Each cell is a group of a tooltip, a rectangle,
-- and a label of one or two lines. Numbers are formatted once per row and
-- column, because there may be many cells.
local function cells(out, m, x0, y0)
  local panel, cw, ch = m.panel, m.cw, m.ch
  local label, class, columns = panel.label, panel.class, panel.columns
  local said, n, at = picture.describer(panel, escape), #out, 0
  local left, middle, size = {}, {}, ('" width="%d" height="%d"/>'):format(cw,
                                                                           ch)
  for c = 0, columns - 1 do
    left[c] = ('" x="%g" y="'):format(x0 + c * cw)
    middle[c] = ('<text x="%g" y="'):format(x0 + (c + 0.5) * cw)
  end
  for r = 0, panel.rows - 1 do
    local y = y0 + r * ch
    local top = ("%g"):format(y) .. size
    local one, two = ('%g">'):format(y + ch / 2 + 4), ('%g">'):format(y + 26)
    local first = ('%g">'):format(y + 14)
    for c = 0, columns - 1 do
      at = at + 1
      local s, k = label[at], class[at]
      local rect = '<rect class="' .. (k and "k" .. k or "none") .. left[c]
        .. top
      n = n + 1
      if s then
        local blank, x = s:find(" ", 1, true), middle[c]
        local body = not blank and x .. one .. escape(s)
          or x .. first .. escape(s:sub(1, blank - 1)) .. "</text>" .. x .. two
            .. escape(s:sub(blank + 1))
        out[n] = "<g><title>" .. said(at) .. "</title>" .. rect .. body
          .. "</text></g>"
      elseif k then
        out[n] = "<g><title>" .. said(at) .. "</title>" .. rect
          .. "</g>"
      else
        out[n] = rect
      end
    end
  end
end

local function grid(out, m, x, y)
  local panel = m.panel
  if panel.name then
    words(out, "h", x, y + 14, panel.name)
    if panel.row_name then
      words(out, "n", x + 8 + 8.4 * #panel.name, y + 14,
            ("rows %s, columns %s"):format(panel.row_name, panel.column_name))
    end
  end
  x, y = x + m.left, y + m.top
  labels(out, m, x, y)
  out[#out + 1] = '<g class="cells">'
  cells(out, m, x, y)
  out[#out + 1] = "</g>"
  out[#out + 1] = ('<rect class="frame" x="%g" y="%g" width="%d" height="%d" '
    .. 'rx="2"/>'):format(x, y, panel.columns * m.cw, panel.rows * m.ch)
end

local function bars(out, m, x, y)
  local panel = m.panel
  if panel.name then words(out, "h", x, y + 14, panel.name) end
  local at = x + m.left
  for _, entry in ipairs(panel.legend) do
    out[#out + 1] = ('<rect class="k%d" x="%g" y="%g" width="10" height="10" '
      .. 'rx="2"/>'):format(entry.class, at, y + HEAD)
    local s = ("%s (%d, %.3f %s)"):format(entry.name, entry.count, entry.sum,
                                          panel.unit)
    words(out, "n", at + 14, y + HEAD + 9, s)
    at = at + 34 + 6.6 * #s
  end
  x, y = x + m.left, y + m.top
  for i, name in ipairs(panel.row_labels) do
    words(out, "e", x - 8, y + (i - 0.5) * BAR_HEIGHT + 4, name)
  end
  for _, bar in ipairs(panel.bars) do
    local inner = bar.class and 3 or 1
    out[#out + 1] = ('<rect class="%s" x="%.2f" y="%g" width="%.2f" '
      .. 'height="%d"><title>%s: %.3f to %.3f %s</title></rect>'):format(
      bar.class and "k" .. bar.class or "idle",
      x + bar.from / panel.last * BAR_WIDTH,
      y + (bar.row - 1) * BAR_HEIGHT + inner,
      math.max((bar.to - bar.from) / panel.last * BAR_WIDTH, 0.3),
      BAR_HEIGHT - 2 * inner, escape(bar.label), bar.from, bar.to, panel.unit)
  end
  for i = 0, 5 do
    words(out, "s", x + i / 5 * BAR_WIDTH, y + #panel.row_labels * BAR_HEIGHT
      + 14, ("%.3g %s"):format(panel.last * i / 5, panel.unit))
  end
end

local STYLE = [[
text{font:11px ui-monospace,"SF Mono","DejaVu Sans Mono",Menlo,monospace}
.bg{fill:#fff}.t{font:600 15px system-ui,sans-serif;fill:#1f2328}
.h{font:600 13px system-ui,sans-serif;fill:#1f2328}
.n,.s,.e{fill:#6e7781}.s{text-anchor:middle}.e{text-anchor:end}
.cells text{text-anchor:middle;fill:#1f2328}
.cells rect{stroke:#fff;stroke-width:1}
.frame{fill:none;stroke:#8c959f;stroke-width:1.2}
.none{fill:#f6f8fa}.idle{fill:#d8dee4}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.t,.h{fill:#e6edf3}
.n,.s,.e{fill:#9198a1}.none{fill:#161b22}.idle{fill:#30363d}
.cells rect{stroke:#0d1117}.frame{stroke:#6e7681}
.cells .none~text{fill:#9198a1}}
]]

--- Returns the CSS rules of a picture's colour classes: ".k0{fill:#...}".
---@param p table
---@return string
function svg.class_style(p)
  local out = {}
  for i, c in ipairs(palette.colours(p.palette)) do
    out[i] = (".k%d{fill:%s}"):format(i - 1, palette.hex(c))
  end
  return table.concat(out)
end

--- Returns the SVG of a picture.
---@param p table see cutelua.draw.picture
---@return string
function svg.of(p)
  local list, captions = {}, table.move(p.captions, 1, #p.captions, 1, {})
  for i, panel in ipairs(p.panels) do
    list[i] = measure(p, panel)
    if panel.caption then captions[#captions + 1] = picture.caption(panel) end
  end
  local width, height = arrange(list, p.meet)
  local out, y = {}, MARGIN + 14
  if p.title then
    for line in p.title:gmatch "[^\n]+" do
      words(out, "t", MARGIN, y, line)
      width = math.max(width, #line * 8.6)
      y = y + 20
    end
  end
  for _, line in ipairs(captions) do
    words(out, "n", MARGIN, y, line)
    width = math.max(width, #line * CHAR)
    y = y + LINE + 2
  end
  for _, m in ipairs(list) do
    (m.panel.bars and bars or grid)(out, m, MARGIN + m.x, y + m.y)
  end
  width, height = math.ceil(width + 2 * MARGIN), math.ceil(height + y + MARGIN)
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'viewBox="0 0 %d %d">\n<style>%s%s</style>\n<rect class="bg" '
    .. 'width="100%%" height="100%%"/>\n%s\n</svg>\n'):format(width, height,
    width, height, STYLE, svg.class_style(p), table.concat(out, "\n"))
end

return svg
-- SPDX-License-Identifier: MIT
