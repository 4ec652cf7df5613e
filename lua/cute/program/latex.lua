--- Layouts, tiled operations and thread-value layouts as LaTeX (TikZ): the
-- text that CuTe's print_latex writes.
local core = require "cute.core"
local draw = require "cute.program.draw"

local latex = {}

local HEAD = "\\documentclass[convert]{standalone}\n\\usepackage{tikz}\n\n"
  .. "\\begin{document}\n"
  .. "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={"
  .. "minimum size=1cm, outer sep=0pt}]\n\n"
local TAIL = "\\end{tikzpicture}\n\\end{document}\n"

-- Eight grays in percent, neighbours far apart.
local GRAYS = {0, 40, 20, 60, 10, 50, 30, 70}

local function gray(i) return ("black!%02d"):format(GRAYS[i % 8 + 1]) end

-- Eight pastels, by thread.
local PASTELS = {"175,175,255", "175,255,175", "255,255,175", "255,175,175",
                 "210,210,255", "210,255,210", "255,255,210", "255,210,210"}

local function pastel(tid)
  local r, g, b = PASTELS[tid % 8 + 1]:match "(%d+),(%d+),(%d+)"
  return ("{rgb,255:red,%s;green,%s;blue,%s}"):format(r, g, b)
end

local function grid(out, m0, n0, m1, n1)
  out[#out + 1] = ("\\draw[color=black,thick,shift={(-0.5,-0.5)}] (%d,%d) "
    .. "grid (%d,%d);\n\n"):format(m0, n0, m1, n1)
end

-- Numbers along one side: place(i) gives the node of number i.
local function labels(out, n, place)
  for i = 0, n - 1 do
    local a, b = place(i)
    out[#out + 1] = ("\\node at (%d,%d) {\\Large{\\texttt{%d}}};\n"):format(
      a, b, i)
  end
end

local function check_static(layout, rank)
  if not core.is_static(layout) then
    core.fail("needs-static", "only static layouts can be drawn, got "
      .. tostring(layout))
  end
  if rank and core.rank(layout) ~= rank then
    core.fail("shape-mismatch", ("a layout of rank %d is drawn, got %s")
      :format(rank, core.show(layout)))
  end
end

---------------------------------------------------------------------------
-- Layouts: the number of each coordinate
---------------------------------------------------------------------------

local function layout_latex(layout, color)
  check_static(layout)
  local rank = core.rank(layout)
  if rank < 1 or rank > 2 then check_static(layout, 2) end
  local rows = core.size(layout, 0)
  local columns = rank == 2 and core.size(layout, 1) or 1
  draw.check_cells("print_latex", layout, rows, columns)
  local out = {("%% Layout: %s\n"):format(tostring(layout)), HEAD}
  for m = 0, rows - 1 do
    for n = 0, columns - 1 do
      local i = rank == 2 and layout(m, n) or layout(m)
      out[#out + 1] = ("\\node[fill=%s] at (%d,%d) {%d};\n"):format(
        color(i), m, n, i)
    end
  end
  grid(out, 0, 0, rows, columns)
  labels(out, rows, function(m) return m, -1 end)
  labels(out, columns, function(n) return -1, n end)
  out[#out + 1] = TAIL
  return table.concat(out)
end

---------------------------------------------------------------------------
-- Thread-value layouts: who holds what of an M by N tile
---------------------------------------------------------------------------

-- A picture of the tile whose first column is n0, or first row where it is
-- `turned`: a cell per element, named by the first thread and value that hold
-- it.
local function cells(out, tv, rows, columns, color, n0, turned)
  draw.check_cells("print_latex", tv, rows, columns)
  draw.check_cells("print_latex", tv, core.size(tv, 0), core.size(tv, 1))
  local filled = {}
  for tid = 0, core.size(tv, 0) - 1 do
    for vid = 0, core.size(tv, 1) - 1 do
      local i = tv(tid, vid)
      local m, n = i % rows, i // rows % columns
      if not filled[n * rows + m] then
        filled[n * rows + m] = true
        local a, b = m, n + n0
        if turned then a, b = b, a end
        out[#out + 1] = ("\\node[fill=%s] at (%d,%d) {\\shortstack{T%d \\\\ "
          .. "V%d}};\n"):format(color(tid, vid), a, b, tid, vid)
      end
    end
  end
  if turned then grid(out, n0, 0, n0 + columns, rows)
  else grid(out, 0, n0, rows, n0 + columns) end
end

local function mma_latex(mma, color)
  local tile = mma.tile_size_mnk
  local M, N, K = core.size(tile[1]), core.size(tile[2]), core.size(tile[3])
  local tv = {A = mma.tv_layout_A_tiled, B = mma.tv_layout_B_tiled,
              C = mma.tv_layout_C_tiled}
  local out = {}
  for _, x in ipairs {"C", "A", "B"} do
    check_static(tv[x])
    out[#out + 1] = ("%% Layout%s: %s\n"):format(x, tostring(tv[x]))
  end
  out[#out + 1] = HEAD
  cells(out, tv.C, M, N, color, 0)
  cells(out, tv.A, M, K, color, -1 - K)
  labels(out, M, function(m) return m, -K - 2 end)
  labels(out, K, function(k) return -1, k - 1 - K end)
  cells(out, tv.B, N, K, color, -1 - K, true)
  labels(out, N, function(n) return -K - 2, n end)
  labels(out, K, function(k) return k - 1 - K, -1 end)
  out[#out + 1] = TAIL
  return table.concat(out)
end

local function copy_latex(copy, color)
  local tiler = copy.tiler_mn
  local M, N = core.size(tiler[1]), core.size(tiler[2])
  local S, D = copy.layout_src_tv_tiled, copy.layout_dst_tv_tiled
  local out = {("%% Layout S TV: %s\n%% Layout D TV: %s\n"):format(
    tostring(S), tostring(D)), HEAD}
  cells(out, S, M, N, color, 0)
  labels(out, M, function(m) return m, -1 end)
  labels(out, N, function(n) return -1, n end)
  cells(out, D, M, N, color, N + 3)
  labels(out, M, function(m) return m, N + 3 + N end)
  labels(out, N, function(n) return -1, n + N + 3 end)
  out[#out + 1] = TAIL
  return table.concat(out)
end

--- LaTeX of a layout of rank 1 or 2 (numbers), a TiledMMA (C, A and B by
-- thread and value) or a TiledCopy (source and destination).
---@param x table
---@param opts? {color: fun(...): string} TikZ fill, of an offset or (tid, vid)
---@return string
function latex.latex_text(x, opts)
  local color = opts and opts.color
  if core.typename(x) == "tensor" then x = x.layout end
  if core.typename(x) == "layout" then return layout_latex(x, color or gray) end
  if core.typename(x) ~= "tiled" then
    core.fail("bad-argument", "print_latex: a layout, TiledMMA or TiledCopy, "
      .. "got " .. core.show(x))
  end
  -- a TiledMMA has a tile, a TiledCopy a tiler
  local ok, tile = pcall(function() return x.tile_size_mnk end)
  return (ok and tile and mma_latex or copy_latex)(x, color or pastel)
end

--- Prints it.
function latex.print_latex(x, opts) io.write(latex.latex_text(x, opts)) end

--- LaTeX of a thread-value layout: threads and values of each element of an
-- M by N tile.
---@param layout_tv table (thread, value) -> element of the tile
---@param tile_mn table {M, N}, or a layout of it
---@param opts? {color: fun(tid, vid): string}
---@return string
function latex.latex_tv_text(layout_tv, tile_mn, opts)
  check_static(layout_tv, 2)
  local M, N
  if core.typename(tile_mn) == "layout" then
    check_static(tile_mn, 2)
    M, N = core.size(tile_mn, 0), core.size(tile_mn, 1)
  else
    M, N = core.size(tile_mn[1]), core.size(tile_mn[2])
  end
  local out = {("%% Layout TV: %s\n"):format(tostring(layout_tv)), HEAD}
  cells(out, layout_tv, M, N, opts and opts.color or pastel, 0)
  labels(out, M, function(m) return m, -1 end)
  labels(out, N, function(n) return -1, n end)
  out[#out + 1] = TAIL
  return table.concat(out)
end

--- Prints it.
function latex.print_latex_tv(layout_tv, tile_mn, opts)
  io.write(latex.latex_tv_text(layout_tv, tile_mn, opts))
end

return latex
