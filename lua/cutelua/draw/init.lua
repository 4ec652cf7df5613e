--- cute.draw: pictures of anything with a shape.
--
--     cute.draw(layout)                       in the terminal
--     cute.draw(mma, {file = "mma.svg"})      .svg .tex .html .txt
--     svg = cute.draw(tv, {as = "svg", tile = {16, 8}})
--
-- cute.draw draws layouts, including composed layouts and the text of a layout;
-- swizzles; thread-value layouts (with `tile`); atoms, TiledMMAs, TiledCopies;
-- tensors; a conflict or a report of k:profile; a timeline. An object of a
-- class with a function __draw(x, opts) is drawn as the picture that this
-- function returns. Every object is first converted to a picture (picture.lua).
-- text.lua, svg.lua, latex.lua and html.lua write pictures in the output
-- formats.
local core = require "cute.core"
local layouts = require "cutelua.draw.layouts"
local sign = require "cute.lang.signature"

local draw = {}

local FORMS = {text = "cutelua.draw.text", svg = "cutelua.draw.svg",
               latex = "cutelua.draw.latex", html = "cutelua.draw.html"}
local ENDS = {txt = "text", svg = "svg", tex = "latex", html = "html",
              htm = "html"}
-- Options of cute.draw. Some apply only to some kinds of objects.
local OPTIONS = {as = true, file = true, by = true, labels = true,
  limit = true, width = true, colour = true, title = true, tile = true,
  dtype = true, tensor = true, line = true, blocks = true}
draw.OPTIONS = OPTIONS

local function check_options(opts)
  if opts.as ~= nil and not FORMS[opts.as] then
    sign.unknown("form", opts.as, FORMS, "draw")
  end
  if opts.file ~= nil and (type(opts.file) ~= "string" or opts.file == "") then
    core.fail("bad-argument", "draw: file = " .. core.show(opts.file)
      .. ": a file's name is needed")
  end
  local width = opts.width
  if width ~= nil and (math.type(width) ~= "integer" or width < 1) then
    core.fail("bad-argument", ("draw: width = %s; 1 or more columns are "
      .. "needed"):format(
      core.show(width)))
  end
end

--- If set, a function f(picture) that shows a picture instead of printing it.
-- cutelua.workshop.run sets it, to show pictures in the browser.
draw.screen = nil

-- Returns the output format (text, svg, latex, html) that the options request;
-- nil if the picture is to be printed.
local function form_of(opts)
  if opts.as or not opts.file then return opts.as end
  local ending = opts.file:match "%.(%w+)$"
  local form = ending and ENDS[ending:lower()]
  if not form then
    core.fail("bad-argument", ("draw: file = %q: the name must end in .svg "
      .. ".tex .html or .txt, or `as` must name the format"):format(opts.file))
  end
  return form
end

-- Draws a layout or, with the option `tile`, a thread-value layout.
local function of_layout(x, opts)
  if opts.tile ~= nil then return layouts.tv(x, opts) end
  return layouts.layout(x, opts)
end

local function of_constant(x, opts)
  local ok, swizzle = pcall(function() return x.num_bits end)
  return ok and swizzle and layouts.swizzle(x, opts)
end

local function of_atom(x, opts)
  return (layouts.is_mma(x) and layouts.mma_atom or layouts.copy_atom)(x, opts)
end

local function of_tiled(x, opts)
  return (layouts.is_mma(x) and layouts.tiled_mma or layouts.tiled_copy)(x,
                                                                         opts)
end

local KINDS = {layout = of_layout, constant = of_constant, atom = of_atom,
               tiled = of_tiled, tensor = layouts.tensor}

-- Returns the function that draws the objects of a class; nil if there is none.
local function drawer(class)
  return rawget(class, "__draw")
    or class == require "cute.lang.simreport".Report
    and require "cutelua.analyses.report".__draw or nil
end

--- Returns the picture of x: see cutelua.draw.picture.
---@param x any
---@param opts table
---@return table picture
function draw.picture(x, opts)
  if type(x) == "string" then
    x = core.parse(x)
    local kind = core.typename(x)
    if kind ~= "layout" and kind ~= "constant" then x = core.make_layout(x) end
  end
  local class = type(x) == "table" and debug.getmetatable(x)
  local own = class and drawer(class)
  local kind = KINDS[core.typename(x)]
  local p = own and own(x, opts) or kind and kind(x, opts)
  if not p then
    core.fail("bad-argument", "draw: a layout, swizzle, tensor, atom, TiledMMA,"
      .. " TiledCopy, conflict, report of k:profile or timeline is needed, got "
      .. core.show(x))
  end
  if opts.title ~= nil then p.title = tostring(opts.title) end
  return p
end

--- Draws x. By default, prints the picture. With `as` ("text", "svg", "latex",
-- "html"), returns its text in that format. With `file`, writes a file; on
-- failure, no incomplete file remains.
--
--     svg = cute.draw("Sw<2,0,3> o 0 o (8,8):(8,1)", {as = "svg"})
--     cute.draw(cute.make_swizzle(3, 3, 3), {file = "swizzle.html"})
--
-- The option `by` selects what the colours show: "offset", "thread", "value",
-- "bank", "pass", "lane" or "none". `labels` is false, one or two of these
-- words, or "coord". Further options: tile = {M, N} for a thread-value layout;
-- dtype for banks; limit, the largest number of cells (32768 when absent);
-- title; width (columns) and colour for text; tensor and line for a report;
-- blocks for a timeline.
---@param x any
---@param opts? table
---@return string? text
function draw.draw(x, opts)
  opts = opts or {}
  check_options(opts)
  local form, text = form_of(opts), require "cutelua.draw.text"
  local p = draw.picture(x, opts)
  local how = {width = opts.width, colour = opts.colour}
  if not form and draw.screen then return draw.screen(p) end
  if not form then
    if how.colour == nil then how.colour = text.coloured() end
    how.width = how.width or text.width()
    io.write(text.of(p, how))
    return
  end
  local result = require(FORMS[form]).of(p, how)
  if not opts.file then return result end
  local ok, why = require "cutelua.program.cli".write_file(opts.file, result)
  if not ok then core.fail("io", "draw: " .. why:gsub(" %[io%]$", "")) end
end

return draw
-- SPDX-License-Identifier: MIT
