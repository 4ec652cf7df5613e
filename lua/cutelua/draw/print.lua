--- CuTe's printing functions: print_layout, print_tensor, print_latex,
-- print_latex_tv, in CuTe's format.
local core = require "cute.core"
local latex = require "cutelua.draw.latex"
local layouts = require "cutelua.draw.layouts"
local picture = require "cutelua.draw.picture"
local text = require "cutelua.draw.text"

local show = {}

local function check_static(x, rank)
  if not core.is_static(x) then
    core.fail("needs-static", "only static shapes can be drawn, got "
      .. tostring(x))
  end
  if core.rank(x) < 1 or core.rank(x) > (rank or 2) then
    return true
  end
end

-- Returns the picture of a layout of rank 1 or 2 as CuTe draws it: a layout of
-- rank 1 becomes a column.
local function layout_picture(what, x)
  if core.typename(x) == "tensor" then x = x.layout end
  if check_static(x) then
    core.fail("shape-mismatch", what .. " draws layouts of rank 1 or 2, got "
      .. tostring(x))
  end
  picture.check_cells(what, x, {core.size(x, 0),
    core.rank(x) == 2 and core.size(x, 1) or 1})
  local p = layouts.layout(x, {column = true, limit = picture.MOST})
  p.captions = {}
  p.cute = {width = #tostring(core.cosize(x)),
            comments = {"Layout: " .. tostring(x)}}
  return p
end

--- Returns the table of offsets of a layout of rank 1 or 2, as CuTe's
-- print_layout draws it: rows are mode 0, columns mode 1.
---@param layout table a layout, or a tensor (its layout is drawn)
---@param colour? boolean true to colour cells by offset modulo 8, for a
-- terminal
---@return string text with a newline at its end
function show.layout_text(layout, colour)
  return text.of(layout_picture("print_layout", layout), {colour = colour,
                                                          rules = true})
end

--- Prints the table of offsets of a layout of rank 1 or 2; in colour when
-- standard output is a terminal (unless NO_COLOR is set).
---@param layout table
function show.print_layout(layout)
  io.write(show.layout_text(layout, text.coloured()))
end

---------------------------------------------------------------------------
-- Elements
---------------------------------------------------------------------------

local DIM, RED, OFF = "\27[2m", "\27[31m", "\27[0m"

-- Formats one element, with the same width for all elements of a type.
local function cell(v)
  if math.type(v) == "integer" then return (" %4d"):format(v) end
  if math.type(v) == "float" then return (" %10.2e"):format(v) end
  if type(v) == "table" then return (" %9s"):format(tostring(v)) end
  return (" %5s"):format(tostring(v))
end

-- Colours the text s of a number v: dims zeros, and highlights negative and
-- non-finite numbers.
local function tint(s, v)
  if type(v) ~= "number" then return s end
  if v == 0 then return DIM .. s .. OFF end
  local odd = v < 0 or v ~= v or v == math.huge
  return odd and RED .. s .. OFF or s
end

-- Appends to `out` the elements t(m, n, rest...) as lines of text, one line for
-- each m. shapes: the extents of t's modes.
local function matrix(out, t, shapes, rest)
  local width
  for m = 0, shapes[1] - 1 do
    width = 0
    for n = 0, (shapes[2] or 1) - 1 do
      local v
      if shapes[2] then v = t(m, n, table.unpack(rest)) else v = t(m) end
      local s = cell(v)
      width = width + #s
      out[#out + 1] = out.colour and tint(s, v) or s
    end
    out[#out + 1] = "\n"
  end
  return width or 0
end

local function blocks(out, t, shapes, rest, mode)
  if mode < 3 then return matrix(out, t, shapes, rest) end
  local width = 0
  for i = 0, shapes[mode] - 1 do
    if i > 0 then
      out[#out + 1] = (mode == 3 and "-" or "="):rep(width) .. "\n"
    end
    width = blocks(out, t, shapes, {i, table.unpack(rest)}, mode - 1)
  end
  return width
end

--- Returns all elements of a tensor of rank 1 to 4 as text; rows are mode 0.
-- Matrices of higher modes follow each other, as in CuTe's print_tensor.
---@param t table a tensor on the host, or an identity tensor
---@param colour? boolean true for terminal colours: zeros are dim, negative
-- numbers red
---@return string text with a newline at its end
function show.tensor_text(t, colour)
  if core.typename(t) ~= "tensor" then
    core.fail("bad-argument", "print_tensor: tensor expected, got "
      .. core.typename(t))
  end
  if t.memspace ~= "host" and t.memspace ~= "coord" then
    core.fail("traced-in-lua", "print_tensor: the elements of a kernel's "
      .. "tensor exist only while it runs\n  " .. tostring(t))
  end
  if check_static(t, 4) then
    core.fail("shape-mismatch", "print_tensor prints tensors of rank 1 to 4, "
      .. "got\n  " .. tostring(t))
  end
  local shapes = {}
  for i = 1, core.rank(t) do shapes[i] = core.size(t, i - 1) end
  picture.check_cells("print_tensor", t, shapes)
  local out = {tostring(t), ":\n", colour = colour}
  blocks(out, t, shapes, {}, #shapes)
  return table.concat(out)
end

--- Prints all elements of a tensor of rank 1 to 4; in colour when standard
-- output is a terminal (unless NO_COLOR is set).
---@param t table
function show.print_tensor(t)
  io.write(show.tensor_text(t, text.coloured()))
end

---------------------------------------------------------------------------
-- LaTeX
---------------------------------------------------------------------------

-- Sets the colours of a panel's cells. The user's function `color` returns the
-- colour for an offset, or for a thread and value.
local function paint(panel, color)
  if not color then return end
  panel.fill = {}
  local ids = panel.ids
  for i, offset in pairs(ids.offset) do
    panel.fill[i] = ids.thread and color(ids.thread[i], ids.value[i])
      or not ids.thread and color(offset)
  end
end

local function holders(p, comments, color)
  p.palette, p.cute = "pastel", {comments = comments}
  for _, panel in ipairs(p.panels) do
    for i, thread in pairs(panel.ids.thread) do panel.class[i] = thread % 8 end
    paint(panel, color)
  end
  return latex.of(p)
end

local LIMITS = {limit = picture.MOST, what = "print_latex"}

local function mma_latex(x, color)
  local p, names = layouts.tiled_mma(x, LIMITS), {"C", "A", "B"}
  local K = p.panels[2].columns
  for i, corner in ipairs {{0, 0}, {0, -1 - K}, {-1 - K, 0}} do
    p.panels[i].corner = corner
    names[i] = ("Layout%s: %s"):format(names[i], p.panels[i].edit.text)
  end
  p.panels[1].numbers = "none"
  return holders(p, names, color)
end

local function copy_latex(x, color)
  local p = layouts.tiled_copy(x, LIMITS)
  p.panels[1].corner = {0, 0}
  p.panels[2].corner = {0, p.panels[1].columns + 3}
  p.panels[2].numbers = "right"
  return holders(p, {"Layout S TV: " .. p.panels[1].edit.text,
                        "Layout D TV: " .. p.panels[2].edit.text}, color)
end

--- Returns LaTeX for a layout of rank 1 or 2, a TiledMMA or a TiledCopy. The
-- picture of a layout has its offsets. That of a TiledMMA has C, A and B with
-- threads and values. That of a TiledCopy has source and destination.
---@param x table
---@param opts? {color: fun(...): string} color returns the TikZ fill for an
-- offset or for (tid, vid)
---@return string
function show.latex_text(x, opts)
  local color = opts and opts.color
  local kind = core.typename(x)
  if kind == "tensor" or kind == "layout" then
    local p = layout_picture("print_latex", x)
    p.palette = "gray"
    paint(p.panels[1], color)
    return latex.of(p)
  end
  if kind ~= "tiled" then
    core.fail("bad-argument", "print_latex: a layout, TiledMMA or TiledCopy is "
      .. "needed, got " .. core.show(x))
  end
  return (layouts.is_mma(x) and mma_latex or copy_latex)(x, color)
end

--- Prints a layout, TiledMma or TiledCopy as LaTeX (TikZ), as CuTe does. Raises
-- the error [limit] if there are too many cells for a picture.
---@param x any
---@param opts? {color: function} the TikZ fill of a cell
function show.print_latex(x, opts) io.write(show.latex_text(x, opts)) end

--- Returns LaTeX for a thread-value layout: thread and value of each element of
-- an M by N tile.
---@param layout_tv table (thread, value) -> element of the tile
---@param tile_mn table {M, N}, or a layout with these extents
---@param opts? {color: fun(tid, vid): string}
---@return string
function show.latex_tv_text(layout_tv, tile_mn, opts)
  local p = layouts.tv(layout_tv, {tile = tile_mn, limit = picture.MOST,
                                   what = "print_latex"})
  return holders(p, {"Layout TV: " .. tostring(layout_tv)},
                 opts and opts.color)
end

--- Prints a (thread,value) layout over a tile as LaTeX (TikZ): the thread and
-- value of each element.
---@param layout_tv cute.Layout
---@param tile_mn cute.Tuple
---@param opts? {color: function} the TikZ fill of a cell
function show.print_latex_tv(layout_tv, tile_mn, opts)
  io.write(show.latex_tv_text(layout_tv, tile_mn, opts))
end

return show
-- SPDX-License-Identifier: MIT
