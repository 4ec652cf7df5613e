--- Writes pictures as LaTeX (TikZ). For layouts, TiledMMAs, TiledCopies and
-- thread-value layouts, the text equals the output of CuTe's print_latex.
local palette = require "cutelua.draw.palette"
local picture = require "cutelua.draw.picture"

local latex = {}

local HEAD = "\\usepackage{tikz}\n\n\\begin{document}\n"
  .. "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={"
  .. "minimum size=1cm, outer sep=0pt}]\n\n"
local TAIL = "\\end{tikzpicture}\n\\end{document}\n"

local SPECIAL = {["\\"] = "\\textbackslash{}", ["{"] = "\\{", ["}"] = "\\}",
  ["_"] = "\\_", ["%"] = "\\%", ["#"] = "\\#", ["$"] = "\\$", ["&"] = "\\&",
  ["^"] = "\\^{}", ["~"] = "\\~{}", ["<"] = "\\textless{}",
  [">"] = "\\textgreater{}"}

local function escape(s)
  return (tostring(s):gsub("[\\{}_%%#$&^~<>]", SPECIAL))
end

local function fills(p)
  local list = {}
  for i, c in ipairs(palette.colours(p.palette)) do
    list[i - 1] = palette.tikz(c)
  end
  return list
end

local function grid(out, m0, n0, m1, n1)
  out[#out + 1] = ("\\draw[color=black,thick,shift={(-0.5,-0.5)}] (%d,%d) "
    .. "grid (%d,%d);\n\n"):format(m0, n0, m1, n1)
end

-- Returns the position of a panel's first cell: panel.corner if it is set, as
-- in CuTe's pictures and in grids of panels; else row `at`, below the previous
-- panel.
local function corner(panel, at)
  if panel.corner then return panel.corner[1], panel.corner[2] end
  return at, 0
end

local function node(m, n, label, fill)
  label = picture.lines(label or "")
  for i, line in ipairs(label) do label[i] = escape(line) end
  if #label > 1 then
    label = {("\\shortstack{%s}"):format(table.concat(label, " \\\\ "))}
  end
  return ("\\node%s at (%d,%d) {%s};\n"):format(
    fill and "[fill=" .. fill .. "]" or "", m, n, label[1] or "")
end

-- Draws the cells of a panel that have a label or a colour. They are ordered by
-- thread and value, as in CuTe's text, if the panel has an order.
local function cells(out, panel, m0, n0, fill)
  local order, columns = panel.order, panel.columns
  for i = 1, order and #order or panel.rows * columns do
    local at = order and order[i] or i
    local label, class = panel.label[at], panel.class[at]
    if label or class then
      out[#out + 1] = node(m0 + (at - 1) // columns, n0 + (at - 1) % columns,
        label, panel.fill and panel.fill[at] or fill[class])
    end
  end
end

local function number(out, m, n, s)
  out[#out + 1] = ("\\node at (%d,%d) {\\Large{\\texttt{%s}}};\n"):format(m, n,
    escape(s))
end

-- Draws the names of rows and columns along the sides of a panel whose first
-- cell is at row m0 and column n0 of the picture.
local function sides(out, panel, m0, n0)
  local right = panel.numbers == "right"
  local function rows()
    for r = 0, panel.rows - 1 do
      number(out, m0 + r, right and n0 + panel.columns or n0 - 1,
             picture.side(panel, "row", r))
    end
  end
  local turned = panel.edit and panel.edit.turned
  if not turned then rows() end
  for c = 0, panel.columns - 1 do
    number(out, m0 - 1, n0 + c, picture.side(panel, "column", c))
  end
  if turned then rows() end
end

-- Draws a timeline that is 16 cm long, with half a centimetre for each row.
local function bars(out, panel, m0, fill)
  if panel.name then
    out[#out + 1] = ("\\node[anchor=west,minimum size=0] at (%.1f,0) "
      .. "{\\small %s};\n"):format(m0, escape(panel.name))
  end
  for i, name in ipairs(panel.row_labels) do
    out[#out + 1] = ("\\node[anchor=east,minimum size=0] at (%.1f,-0.1) "
      .. "{\\small\\texttt{%s}};\n"):format(m0 + i / 2, escape(name))
  end
  for _, bar in ipairs(panel.bars) do
    local a, b = bar.from / panel.last * 16, bar.to / panel.last * 16
    local half = bar.class and 0.15 or 0.22
    local middle = m0 + bar.row / 2
    out[#out + 1] = ("\\fill[fill=%s] (%.3f,%.4f) rectangle (%.3f,%.4f); "
      .. "%% %s: %.3f to %.3f %s\n"):format(
      bar.class and fill[bar.class] or "black!15", middle - half, a,
      middle + half, math.max(b, a + 1e-3), (bar.label:gsub("%c", " ")),
      bar.from, bar.to, panel.unit)
  end
  local below = m0 + #panel.row_labels / 2 + 0.6
  out[#out + 1] = ("\\node[minimum size=0] at (%.1f,0) {0};\n\\node[minimum "
    .. "size=0] at (%.1f,16) {%.3g %s};\n"):format(below, below, panel.last,
    escape(panel.unit))
  for i, entry in ipairs(panel.legend) do
    out[#out + 1] = ("\\node[fill=%s,minimum size=0.3cm] at (%.1f,1) {};\n"
      .. "\\node[anchor=west,minimum size=0] at (%.1f,1.3) {%s: %d times, "
      .. "%.3f %s};\n"):format(fill[entry.class], below + i / 2, below + i / 2,
      escape(entry.name), entry.count, entry.sum, escape(panel.unit))
  end
  return below + #panel.legend / 2
end

-- If the panels of a picture are arranged as a grid, sets the position of each
-- panel.
local function places(p)
  local rows, columns = {}, {}
  for _, panel in ipairs(p.panels) do
    local place = panel.place
    if not place or panel.corner or panel.bars then return end
    rows[place[1]] = math.max(rows[place[1]] or 0, panel.rows)
    columns[place[2]] = math.max(columns[place[2]] or 0, panel.columns)
  end
  for _, panel in ipairs(p.panels) do
    local m, n = 0, 0
    for i = 1, panel.place[1] - 1 do m = m + (rows[i] or 0) + 3 end
    for i = 1, panel.place[2] - 1 do n = n + (columns[i] or 0) + 3 end
    panel.corner = {m, n}
  end
end

local function comment(out, s)
  for line in s:gmatch "[^\n]+" do
    out[#out + 1] = "% " .. line:gsub("%c", " ") .. "\n"
  end
end

-- Appends the title, the captions and the panels' captions as LaTeX comments.
-- Returns the LaTeX that shows the same lines above the picture.
local function head(out, p)
  local lines = {p.title}
  table.move(p.captions, 1, #p.captions, #lines + 1, lines)
  for _, panel in ipairs(p.panels) do
    lines[#lines + 1] = picture.caption(panel)
  end
  local shown = {}
  for _, line in ipairs(lines) do
    for part in line:gmatch "[^\n]+" do shown[#shown + 1] = part end
  end
  for i, line in ipairs(shown) do
    comment(out, line)
    shown[i] = ("\\node[anchor=west,minimum size=0] at (%.1f,-1) "
      .. "{\\texttt{%s}};\n"):format(-3 - 0.6 * (#shown - i), escape(line))
  end
  return table.concat(shown)
end

--- Returns the LaTeX of a picture.
---@param p table see cutelua.draw.picture
---@return string
function latex.of(p)
  local out, fill, at, above = {}, fills(p), 0, ""
  if p.cute then
    for _, line in ipairs(p.cute.comments) do comment(out, line) end
  else
    above = head(out, p)
  end
  -- The option `convert` makes the class `standalone` convert the result to an
  -- image file. CuTe's LaTeX has this option, too.
  out[#out + 1] = p.cute and "\\documentclass[convert]{standalone}\n"
    or "\\documentclass[border=4pt]{standalone}\n"
  out[#out + 1] = HEAD
  out[#out + 1] = above
  places(p)
  for _, panel in ipairs(p.panels) do
    if panel.bars then
      at = bars(out, panel, at, fill) + 2
    else
      local m, n = corner(panel, at)
      if panel.name and not p.cute then
        out[#out + 1] = ("\\node[anchor=west] at (%d,%d) {\\Large{%s}};\n")
          :format(m - 2, n, escape(panel.name))
      end
      cells(out, panel, m, n, fill)
      grid(out, m, n, m + panel.rows, n + panel.columns)
      if panel.numbers ~= "none" then sides(out, panel, m, n) end
      at = at + panel.rows + 3
    end
  end
  out[#out + 1] = TAIL
  return table.concat(out)
end

return latex
-- SPDX-License-Identifier: MIT
