-- ladders.lua: puts what scripts/ladder.lua recorded in docs/measured/ into
-- docs/ladders.md, between its marks, and draws docs/ladders_gemm.svg.
-- Run through cutelua (`make ladders`).
local chart = require "cute.chart"

local PAGE, FOLDER = "docs/ladders.md", "docs/measured/"

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  assert(f:write(text))
end

-- Rows of a record; the comment of its first line.
local function load_record(name)
  local rows, about = {}, nil
  for line in read(FOLDER .. name):gmatch "[^\n]+" do
    if line:sub(1, 1) == "#" then
      about = line:match "^# *(.*)$"
    else
      local row = {}
      for cell in line:gmatch "[^\t]+" do row[#row + 1] = cell end
      rows[#rows + 1] = row
    end
  end
  return rows, about
end

local function ratio(a, b)
  local x, y = tonumber(a), tonumber(b)
  return x and y and ("%.2f"):format(x / y) or "-"
end

local function tflops(x)
  x = tonumber(x)
  return x and (x < 99.5 and "%.1f" or "%.0f"):format(x) or "-"
end

-- name, layout, size, cold, hot, rival cold, rival hot, error, gain
local function gpu_table(out, name)
  local rows, about = load_record(name)
  out[#out + 1] = about .. ":\n"
  out[#out + 1] = "| script | size | cold | hot | cuBLAS cold | hot | cold | "
    .. "hot | gain hot | what it adds |"
  out[#out + 1] = "|---|---|---|---|---|---|---|---|---|---|"
  local before = {}  -- of the same size, while sizes come in turn
  for _, r in ipairs(rows) do
    local last = before[r[3]]
    local gain = last and ("%+.0f %%"):format(100 * (r[5] / last - 1)) or ""
    before = {[r[3]] = r[5]}
    out[#out + 1] = ("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s |")
      :format(r[1], r[3], tflops(r[4]), tflops(r[5]), tflops(r[6]),
      tflops(r[7]), ratio(r[4], r[6]), ratio(r[5], r[7]),
      name:find "bf16" and gain or "", r[9])
  end
  out[#out + 1] = ""
  return rows, about
end

local function sim_table(out, name)
  local rows, about = load_record(name)
  out[#out + 1] = ("What each asks of memory, as the %s counts it: accesses "
    .. "of warps, passes of shared memory and how many of them are "
    .. "conflicts, sectors of global memory, multiplications of a warp.\n")
    :format(about)
  out[#out + 1] = "| script | size | accesses | passes | conflicts | sectors "
    .. "| mma | shared memory |"
  out[#out + 1] = "|---|---|---|---|---|---|---|---|"
  for _, r in ipairs(rows) do
    out[#out + 1] = "| `" .. r[1] .. "` | "
      .. table.concat(r, " | ", 2, 8) .. " |"
  end
  out[#out + 1] = ""
end

local function draw(rows, about)
  local groups, at, sizes, place = {}, {}, {}, {}
  for _, r in ipairs(rows) do
    if not place[r[3]] then
      sizes[#sizes + 1] = r[3]
      place[r[3]] = #sizes
    end
    if not at[r[1]] then
      at[r[1]] = {label = r[1], values = {}}
      groups[#groups + 1] = at[r[1]]
    end
    at[r[1]].values[place[r[3]]] = r[5] / r[7]
  end
  write("docs/ladders_gemm.svg", chart.bars {
    title = "bf16 GEMM, " .. about, series = sizes, groups = groups,
    mark = 1, rival = "cuBLAS", unit = "of cuBLAS, hot"})
end

local out = {}
local rows, about = gpu_table(out, "gemm_bf16.tsv")
draw(rows, about)
out[#out + 1] = "![ratio to cuBLAS](ladders_gemm.svg)\n"
gpu_table(out, "gemm_other.tsv")
sim_table(out, "gemm_sim.tsv")
local page = read(PAGE)
local first, last = "<!-- gemm: made by make ladders -->\n", "<!-- gemm end -->"
local head, tail = page:find(first, 1, true), page:find(last, 1, true)
assert(head and tail, PAGE .. ": its marks are gone")
write(PAGE, page:sub(1, head - 1) .. first .. table.concat(out, "\n")
  .. page:sub(tail))
print("wrote " .. PAGE .. " and docs/ladders_gemm.svg")
