--- Bar and line charts as SVG text, for pages about measurements.
--
--     local svg = chart.bars {
--       title = "bf16 GEMM, H200", unit = "of cuBLAS",
--       series = {"2048", "4096"},
--       groups = {{label = "gemm_base", values = {0.52, 0.54}}},
--       mark = 1.0,  -- draws a line across at 1.0, labelled with `rival`
--     }
local html = require "cutelua.text.html"

local chart = {}

local COLORS = {"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d"}
local BAR, GAP, LEFT, PLOT, TOP = 14, 12, 150, 420, 56
local AXIS, HIGH = 56, 220  -- The left edge and the height of a line plot.

local function text(out, x, y, words, more)
  out[#out + 1] = ('<text x="%g" y="%g"%s>%s</text>'):format(x, y,
    more and " " .. more or "", html.escape(words))
end

-- Returns the end of an axis for values up to x: a round number, at least x.
local function round_up(x)
  if x <= 0 then return 1 end
  local unit = 10.0 ^ math.floor(math.log(x, 10))
  for _, m in ipairs {1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10} do
    if m * unit >= x * 0.999999 then return m * unit end
  end
end

local function scale_of(spec)
  local most = spec.mark or 0
  for _, g in ipairs(spec.groups) do
    for _, v in ipairs(g.values) do most = math.max(most, v or 0) end
  end
  return round_up(most)
end

local function legend(out, spec)
  local x = LEFT
  for i, name in ipairs(spec.series) do
    out[#out + 1] = ('<rect x="%g" y="34" width="10" height="10" fill="%s"/>')
      :format(x, COLORS[(i - 1) % #COLORS + 1])
    text(out, x + 14, 43, name)
    x = x + 30 + 7 * utf8.len(name)
  end
end

local function group(out, g, y, most)
  local n = #g.values
  text(out, LEFT - 8, y + n * BAR / 2 + 4, g.label, 'text-anchor="end"')
  for i, v in ipairs(g.values) do
    if v then
      local w = math.max(1, v / most * PLOT)
      out[#out + 1] = ('<rect x="%g" y="%g" width="%.1f" height="%g" '
        .. 'fill="%s"/>'):format(LEFT, y + (i - 1) * BAR, w, BAR - 2,
        COLORS[(i - 1) % #COLORS + 1])
      text(out, LEFT + w + 4, y + i * BAR - 4, ("%.3g"):format(v),
           'font-size="10"')
    end
  end
end

local function svg_of(out, width, height)
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'font-family="sans-serif" font-size="12">\n'
    .. '<rect width="100%%" height="100%%" fill="white"/>\n%s\n</svg>\n')
    :format(width, height, table.concat(out, "\n"))
end

--- Returns a chart of horizontal bars, one group of bars below another.
---@param spec table {title: string, unit: string?, series: string[],
-- groups: table[], mark: number?, rival: string?}
---@return string svg
function chart.bars(spec)
  local most, out = scale_of(spec), {}
  local height = TOP
  for _, g in ipairs(spec.groups) do height = height + #g.values * BAR + GAP end
  text(out, 8, 20, spec.title, 'font-size="14" font-weight="bold"')
  legend(out, spec)
  local y = TOP
  for _, g in ipairs(spec.groups) do
    group(out, g, y, most)
    y = y + #g.values * BAR + GAP
  end
  if spec.mark then
    local x = LEFT + spec.mark / most * PLOT
    out[#out + 1] = ('<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="#888" '
      .. 'stroke-dasharray="4 3"/>'):format(x, TOP - 4, x, y)
    text(out, x, y + 12, spec.rival or "", 'text-anchor="middle"')
  end
  text(out, LEFT, y + 12, spec.unit or "")
  return svg_of(out, LEFT + PLOT + 60, height + 24)
end

--- Returns a chart of one line through the values of steps 1, 2 and so on. The
-- vertical axis begins at 0.
---@param spec table {title: string, x: string, y: string, values: number[]}
---@return string svg
function chart.lines(spec)
  local out, most, n = {}, 0, #spec.values
  for _, v in ipairs(spec.values) do
    if v < math.huge then most = math.max(most, v) end
  end
  most = round_up(most)
  text(out, 8, 20, spec.title, 'font-size="14" font-weight="bold"')
  text(out, 8, TOP - 10, spec.y)
  for i = 0, 4 do
    local y = TOP + HIGH * (1 - i / 4)
    out[#out + 1] = ('<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="#ddd"/>')
      :format(AXIS, y, AXIS + PLOT, y)
    text(out, AXIS - 6, y + 4, ("%.4g"):format(most * i / 4),
         'text-anchor="end"')
  end
  local points = {}
  for i, v in ipairs(spec.values) do
    if v < math.huge then  -- skip values that are NaN or infinite
      points[#points + 1] = ("%.1f,%.1f"):format(
        AXIS + PLOT * (n > 1 and (i - 1) / (n - 1) or 0),
        TOP + HIGH * (1 - v / most))
    end
  end
  out[#out + 1] = ('<polyline points="%s" fill="none" stroke="%s" '
    .. 'stroke-width="1.5"/>'):format(table.concat(points, " "), COLORS[1])
  text(out, AXIS, TOP + HIGH + 16, "1")
  text(out, AXIS + PLOT, TOP + HIGH + 16, tostring(n), 'text-anchor="end"')
  text(out, AXIS + PLOT / 2, TOP + HIGH + 16, spec.x, 'text-anchor="middle"')
  return svg_of(out, AXIS + PLOT + 20, TOP + HIGH + 28)
end

-- Returns the powers of ten below and above all values of a list.
local function decades(list)
  local low, high = math.huge, -math.huge
  for _, v in ipairs(list) do
    low = math.min(low, math.floor(math.log(v, 10) + 1e-9))
    high = math.max(high, math.ceil(math.log(v, 10) - 1e-9))
  end
  return low, math.max(high, low + 1)
end

--- Returns a chart of lines with two logarithmic axes, on which proportional
-- growth is a line of slope 1. A dashed line from the first point of each
-- series shows this slope.
---@param spec table {title: string, x: string, y: string, series: {name:
-- string, points: number[][]}[]}: points are {x, y}, positive and in order of x
---@return string svg
function chart.growth(spec)
  local out, xs, ys = {}, {}, {}
  for _, s in ipairs(spec.series) do
    for _, p in ipairs(s.points) do xs[#xs + 1], ys[#ys + 1] = p[1], p[2] end
  end
  local x0, x1 = decades(xs)
  local y0, y1 = decades(ys)
  local function right(x)
    return AXIS + PLOT * (math.log(x, 10) - x0) / (x1 - x0)
  end
  local function down(y)
    return TOP + HIGH * (1 - (math.log(y, 10) - y0) / (y1 - y0))
  end
  local function line(color, dash, list)
    out[#out + 1] = ('<polyline points="%s" fill="none" stroke="%s"%s/>')
      :format(table.concat(list, " "), color,
              dash and ' stroke-dasharray="4 3"' or ' stroke-width="1.5"')
  end
  text(out, 8, 20, spec.title, 'font-size="14" font-weight="bold"')
  for d = y0, y1 do
    local y = down(10.0 ^ d)
    line("#ddd", false, {AXIS .. "," .. y, AXIS + PLOT .. "," .. y})
    text(out, AXIS - 6, y + 4, ("%g"):format(10.0 ^ d), 'text-anchor="end"')
  end
  for d = x0, x1 do
    local x = right(10.0 ^ d)
    line("#ddd", false, {x .. "," .. TOP, x .. "," .. TOP + HIGH})
    text(out, x, TOP + HIGH + 16, ("%g"):format(10.0 ^ d),
         'text-anchor="middle"')
  end
  text(out, AXIS, TOP + HIGH + 34, ("%s against %s"):format(spec.y, spec.x))
  local at = AXIS
  for i, s in ipairs(spec.series) do
    local color, list = COLORS[(i - 1) % #COLORS + 1], {}
    for k, p in ipairs(s.points) do
      list[k] = ("%.1f,%.1f"):format(right(p[1]), down(p[2]))
      out[#out + 1] = ('<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>')
        :format(right(p[1]), down(p[2]), color)
    end
    line(color, false, list)
    local p, most = s.points[1], 10.0 ^ y1
    local last = math.min(s.points[#s.points][1], p[1] * most / p[2])
    line(color, true, {list[1], ("%.1f,%.1f"):format(right(last),
      down(p[2] * last / p[1]))})
    out[#out + 1] = ('<rect x="%g" y="34" width="10" height="10" fill="%s"/>')
      :format(at, color)
    text(out, at + 14, 43, s.name)
    at = at + 30 + 7 * utf8.len(s.name)
  end
  return svg_of(out, math.max(AXIS + PLOT + 30, at), TOP + HIGH + 46)
end

--- Returns a chart of bars, given one by one as {label, series, value}. The
-- chart groups the bars by label, and orders labels and series as they first
-- appear.
---@param bars {[1]: string, [2]: string, [3]: number}[]
---@param spec table of chart.bars, without series and groups
---@return string svg
function chart.grouped(bars, spec)
  local series, groups, place, at = {}, {}, {}, {}
  for _, bar in ipairs(bars) do
    local label, name, value = table.unpack(bar)
    if not place[name] then
      series[#series + 1] = name
      place[name] = #series
    end
    if not at[label] then
      at[label] = {label = label, values = {}}
      groups[#groups + 1] = at[label]
    end
    at[label].values[place[name]] = value
  end
  local full = {series = series, groups = groups}
  for k, v in pairs(spec) do full[k] = v end
  return chart.bars(full)
end

return chart
-- SPDX-License-Identifier: MIT
