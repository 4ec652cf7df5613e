--- Colours of pictures. Each cell has a colour class, which is a number. A
-- palette assigns a colour to each class, the same in all output formats.
local palette = {}

-- Eight light hues, on which black text is readable.
local HUES = {{166, 202, 240}, {255, 209, 158}, {178, 226, 178},
              {249, 184, 184}, {212, 196, 240}, {250, 232, 154},
              {164, 226, 222}, {246, 192, 226}}

-- A deeper shade of each hue.
local DEEP = {{104, 164, 232}, {250, 170, 88}, {118, 198, 118},
              {240, 126, 126}, {172, 144, 228}, {238, 206, 84},
              {98, 198, 192}, {230, 142, 202}}

-- Returns each hue in four shades, so that the four lanes of a quad, or four
-- adjacent banks, share a hue.
local function shades()
  local list = {}
  for i, hue in ipairs(HUES) do
    for level = 0, 3 do
      local c = {}
      for k = 1, 3 do
        c[k] = math.floor(hue[k] + (DEEP[i][k] - hue[k]) * level / 3)
      end
      list[#list + 1] = c
    end
  end
  return list
end

-- Returns the palette for signed values: 8 colours for negative values, one for
-- zero, 8 for positive values.
local function heat()
  local list, ends = {}, {{120, 164, 226}, {238, 132, 118}}
  for i = -8, 8 do
    local to, part = ends[i < 0 and 1 or 2], math.abs(i) / 8
    local c = {}
    for k = 1, 3 do c[k] = math.floor(246 + (to[k] - 246) * part) end
    list[#list + 1] = c
  end
  return list
end

-- Colours of CuTe's LaTeX. GRAYS are percentages of black, ordered so that
-- neighbours differ much.
local GRAYS = {0, 40, 20, 60, 10, 50, 30, 70}
local PASTELS = {{175, 175, 255}, {175, 255, 175}, {255, 255, 175},
                 {255, 175, 175}, {210, 210, 255}, {210, 255, 210},
                 {255, 255, 210}, {255, 210, 210}}

local function grays()
  local list = {}
  for i, percent in ipairs(GRAYS) do
    local v = math.floor(255 * (100 - percent) / 100)
    list[i] = {v, v, v, tikz = ("black!%02d"):format(percent)}
  end
  return list
end

local LISTS = {
  hues = HUES, shades = shades(), heat = heat(), gray = grays(),
  pastel = PASTELS,
  strong = {{76, 120, 168}, {245, 133, 24}, {84, 162, 75}, {178, 121, 162},
            {157, 117, 93}, {228, 87, 86}, {114, 183, 178}, {238, 202, 59}},
}

--- Returns the colours of a palette as a list of {red, green, blue}; class 0 is
-- first. If the list has n colours, class n + k has the colour of class k.
---@param name string
---@return integer[][]
function palette.colours(name) return LISTS[name] end

--- Returns the name of the palette for this many classes: "hues" for up to
-- eight, else "shades".
---@param count integer
---@return string name
function palette.of(count) return count > 8 and "shades" or "hues" end

--- Returns a colour in CSS notation.
---@param c integer[]
---@return string "#rrggbb"
function palette.hex(c) return ("#%02x%02x%02x"):format(c[1], c[2], c[3]) end

--- Returns a colour in TikZ notation.
---@param c integer[]
---@return string
function palette.tikz(c)
  return c.tikz
    or ("{rgb,255:red,%d;green,%d;blue,%d}"):format(c[1], c[2], c[3])
end

local STEPS = {0, 95, 135, 175, 215, 255}

local function nearest_step(v)
  local best = 1
  for i = 2, 6 do
    if math.abs(STEPS[i] - v) < math.abs(STEPS[best] - v) then best = i end
  end
  return best - 1
end

--- Returns the parameters of a terminal escape sequence that sets the
-- background colour. With `all`, it sets the exact colour; else the nearest of
-- 256 colours.
---@param c integer[]
---@param all? boolean
---@return string
function palette.background(c, all)
  if all then return ("48;2;%d;%d;%d"):format(c[1], c[2], c[3]) end
  local r, g, b = nearest_step(c[1]), nearest_step(c[2]), nearest_step(c[3])
  return ("48;5;%d"):format(16 + 36 * r + 6 * g + b)
end

return palette
-- SPDX-License-Identifier: MIT
