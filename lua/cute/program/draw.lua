--- Drawing layouts and tensors as text, in the form that CuTe prints them.
local core = require "cute.core"

local draw = {}

-- Colours of a terminal: eight backgrounds by offset, as the greys of
-- CuTe's LaTeX pictures, so that a pattern of banks or a swizzle shows.
local BACK = {189, 193, 229, 223, 217, 183, 152, 187}
local DIM, RED, OFF = "\27[2m", "\27[31m", "\27[0m"

-- Is what io.write writes to a terminal that wants colour?
local function coloured()
  return io.output() == io.stdout and core.isatty(1)
    and (os.getenv "NO_COLOR" or "") == "" and os.getenv "TERM" ~= "dumb"
end

-- A drawing of more cells is none that anybody looks at, and grows without end.
local MAX_CELLS = 1 << 20

--- Raises unless that many cells can be drawn.
---@param what string the function that draws
---@param x any what it was asked to draw
---@param ... integer extents, whose product is the number of cells
function draw.check_cells(what, x, ...)
  local cells = 1
  for _, n in ipairs {...} do
    if n > 0 and cells > MAX_CELLS // n then
      core.fail("limit", ("%s: %s cells are too many, at most %d are drawn"
        .. "\n  %s\n  slice it, or draw a tile of it"):format(what,
        table.concat({...}, " x "), MAX_CELLS, tostring(x)))
    end
    cells = cells * n
  end
end

local function shade(text, v)
  if math.type(v) ~= "integer" then return text end
  return ("\27[30;48;5;%dm%s%s"):format(BACK[v % 8 + 1], text, OFF)
end

local function extent(x, mode)
  local n = core.size(x, mode)
  if math.type(n) ~= "integer" then
    core.fail("needs-static", "only static shapes can be drawn, got "
      .. tostring(x))
  end
  return n
end

--- The table of offsets of a layout of rank 1 or 2, as CuTe's print_layout
--- draws it: rows are mode 0, columns mode 1.
---@param layout table a layout, or a tensor (its layout is drawn)
---@param colour? boolean with a terminal's colours: cells by offset modulo 8
---@return string text with a newline at its end
function draw.layout_text(layout, colour)
  if core.typename(layout) == "tensor" then layout = layout.layout end
  local rank = core.rank(layout)
  if rank < 1 or rank > 2 then
    core.fail("shape-mismatch", "print_layout draws layouts of rank 1 or 2, "
      .. "got " .. tostring(layout))
  end
  local rows = extent(layout, 0)
  local columns = rank == 2 and extent(layout, 1) or 1
  draw.check_cells("print_layout", layout, rows, columns)
  local width = #tostring(core.cosize(layout))
  local rule = "    " .. ("+" .. ("-"):rep(width + 2)):rep(columns) .. "+\n"
  local out = {tostring(layout), "\n    "}
  local function add(...) out[#out + 1] = string.format(...) end
  local number = "%" .. width .. "s"
  for n = 0, columns - 1 do add("  " .. number .. " ", n) end
  add "\n"
  out[#out + 1] = rule
  for m = 0, rows - 1 do
    add("%2d  ", m)
    for n = 0, columns - 1 do
      local v = rank == 2 and layout(m, n) or layout(m)
      local text = (" " .. number .. " "):format(tostring(v))
      out[#out + 1] = "|" .. (colour and shade(text, v) or text)
    end
    add "|\n"
    out[#out + 1] = rule
  end
  return table.concat(out)
end

--- Prints the table of offsets of a layout of rank 1 or 2; in colour when
--- standard output is a terminal (unless NO_COLOR is set).
---@param layout table
function draw.print_layout(layout)
  io.write(draw.layout_text(layout, coloured()))
end

-- One element, as wide as all of its kind.
local function cell(v)
  if math.type(v) == "integer" then return (" %4d"):format(v) end
  if math.type(v) == "float" then return (" %10.2e"):format(v) end
  if type(v) == "table" then return (" %9s"):format(tostring(v)) end
  return (" %5s"):format(tostring(v))
end

-- Zeros recede, what is negative or no finite number stands out.
local function tint(text, v)
  if type(v) ~= "number" then return text end
  if v == 0 then return DIM .. text .. OFF end
  local odd = v < 0 or v ~= v or v == math.huge
  return odd and RED .. text .. OFF or text
end

-- Rows of t(m, n, rest...), shapes being the extents of its modes.
local function matrix(out, t, shapes, rest)
  local width
  for m = 0, shapes[1] - 1 do
    width = 0
    for n = 0, (shapes[2] or 1) - 1 do
      local v
      if shapes[2] then v = t(m, n, table.unpack(rest)) else v = t(m) end
      local text = cell(v)
      width = width + #text
      out[#out + 1] = out.colour and tint(text, v) or text
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

--- All elements of a tensor of rank 1 to 4, rows being mode 0; matrices of
--- higher modes follow each other, as in CuTe's print_tensor.
---@param t table a tensor on the host, or an identity tensor
---@param colour? boolean with a terminal's colours: zeros dim, negatives red
---@return string text with a newline at its end
function draw.tensor_text(t, colour)
  if core.typename(t) ~= "tensor" then
    core.fail("bad-argument", "print_tensor: tensor expected, got "
      .. core.typename(t))
  end
  if t.memspace ~= "host" and t.memspace ~= "coord" then
    core.fail("traced-in-lua", "print_tensor: the elements of a kernel's "
      .. "tensor exist only while it runs\n  " .. tostring(t))
  end
  local rank = core.rank(t)
  if rank < 1 or rank > 4 then
    core.fail("shape-mismatch", "print_tensor shows tensors of rank 1 to 4, "
      .. "got\n  " .. tostring(t))
  end
  local shapes = {}
  for i = 1, rank do shapes[i] = extent(t, i - 1) end
  draw.check_cells("print_tensor", t, table.unpack(shapes))
  local out = {tostring(t), ":\n", colour = colour}
  blocks(out, t, shapes, {}, rank)
  return table.concat(out)
end

--- Prints all elements of a tensor of rank 1 to 4; in colour when standard
--- output is a terminal (unless NO_COLOR is set).
---@param t table
function draw.print_tensor(t) io.write(draw.tensor_text(t, coloured())) end

return draw
