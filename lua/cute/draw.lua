--- Drawing layouts and tensors as text, in the form that CuTe prints them.
local core = require "cute.core"

local draw = {}

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
---@return string text with a newline at its end
function draw.layout_text(layout)
  if core.typename(layout) == "tensor" then layout = layout.layout end
  local rank = core.rank(layout)
  if rank < 1 or rank > 2 then
    core.fail("shape-mismatch", "print_layout draws layouts of rank 1 or 2, "
      .. "got " .. tostring(layout))
  end
  local rows = extent(layout, 0)
  local columns = rank == 2 and extent(layout, 1) or 1
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
      add("| " .. number .. " ", type(v) == "table" and core.tostring
        and core.tostring(v) or tostring(v))
    end
    add "|\n"
    out[#out + 1] = rule
  end
  return table.concat(out)
end

--- Prints the table of offsets of a layout of rank 1 or 2.
---@param layout table
function draw.print_layout(layout) io.write(draw.layout_text(layout)) end

local function tuple_text(v)
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = tuple_text(x) end
  return "(" .. table.concat(parts, ",") .. ")"
end

-- One element, as wide as all of its kind.
local function cell(v)
  if math.type(v) == "integer" then return ("%5d"):format(v) end
  if math.type(v) == "float" then return (" %10.2e"):format(v) end
  if type(v) == "table" then return (" %9s"):format(tuple_text(v)) end
  return (" %5s"):format(tostring(v))
end

-- Rows of t(m, n, rest...), shapes being the extents of its modes.
local function matrix(out, t, shapes, rest)
  local last
  for m = 0, shapes[1] - 1 do
    local row = {}
    for n = 0, (shapes[2] or 1) - 1 do
      row[#row + 1] = cell(shapes[2] and t(m, n, table.unpack(rest)) or t(m))
    end
    last = table.concat(row)
    out[#out + 1] = last .. "\n"
  end
  return last and #last or 0
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
---@return string text with a newline at its end
function draw.tensor_text(t)
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
  local out = {tostring(t), ":\n"}
  blocks(out, t, shapes, {}, rank)
  return table.concat(out)
end

--- Prints all elements of a tensor of rank 1 to 4.
---@param t table
function draw.print_tensor(t) io.write(draw.tensor_text(t)) end

return draw
