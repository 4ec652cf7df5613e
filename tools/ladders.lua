-- ladders.lua: copies the records of scripts/ladder.lua from docs/measured/
-- into docs/ladders.md, between its marks, and draws the charts. `make ladders`
-- runs it with cutelua.
local chart = require "cutelua.bench.chart"

local PAGE, FOLDER = "docs/ladders.md", "docs/measured/"

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  assert(f:write(text))
end

-- Returns the rows of a record file, and the comment in its first line.
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

-- For each kernel: names of the fields in its record of results on a GPU.
local FIELDS = {
  gemm = {"name", "layout", "size", "cold", "hot", "rival_cold", "rival_hot",
          "error", "adds"},
  copy = {"name", "extents", "type", "size", "cold", "hot", "rival_cold",
          "rival_hot", "adds"},
}

local function results(kind, name)
  local rows, about = load_record(name)
  for i, row in ipairs(rows) do
    local r = {}
    for k, field in ipairs(FIELDS[kind]) do r[field] = row[k] end
    rows[i] = r
  end
  return rows, about
end

local function add_table(out, head, rows)
  out[#out + 1] = "| " .. table.concat(head, " | ") .. " |"
  out[#out + 1] = ("|---"):rep(#head) .. "|"
  for _, row in ipairs(rows) do
    out[#out + 1] = "| " .. table.concat(row, " | ") .. " |"
  end
  out[#out + 1] = ""
end

-- Returns the rows grouped by size. The sizes are in the order of their first
-- row. Each row gets its gain over the previous row if both belong to one
-- series.
local function by_size(rows)
  local order, place = {}, {}
  for i, r in ipairs(rows) do
    place[r.size] = place[r.size] or i
    order[i] = {r, place[r.size], i}
  end
  table.sort(order, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3]
  end)
  local list, before = {}, {}
  for i, o in ipairs(order) do
    list[i] = o[1]
    local last = before[o[1].size]
    o[1].gain = last and ("%+.0f %%"):format(100 * (o[1].hot / last - 1)) or ""
    before[o[1].size] = o[1].hot
  end
  return list
end

local function number(x)
  x = tonumber(x)
  return x and (x < 10 and "%.2f" or x < 99.5 and "%.1f" or "%.0f"):format(x)
    or "-"
end

local function gpu_table(out, rows, about, o)
  out[#out + 1] = about .. ":\n"
  local head = {"script", o.size, "cold", "hot", o.rival .. " cold", "hot",
                "cold", "hot"}
  if o.climb then table.move({"gain hot", "what it adds"}, 1, 2, 9, head) end
  local list = {}
  for i, r in ipairs(by_size(rows)) do
    list[i] = {"`" .. r.name .. "`", o.label and o.label(r) or r.size,
      number(r.cold), number(r.hot), number(r.rival_cold),
      number(r.rival_hot), ratio(r.cold, r.rival_cold),
      ratio(r.hot, r.rival_hot), o.climb and r.gain or nil}
    if o.climb then list[i][10] = r.adds end
  end
  add_table(out, head, list)
end

-- Draws a bar for each version of a kernel (rung) and each problem size. The
-- bar shows the version's time divided by the time of the rival library, with
-- launches back to back.
local function draw(path, rows, o)
  local bars = {}
  for i, r in ipairs(rows) do
    bars[i] = {r.name, r.size .. (o.unit or ""), r.hot / r.rival_hot}
  end
  write("docs/" .. path, chart.grouped(bars, {title = o.title, mark = 1,
    rival = o.rival, unit = "of " .. o.rival .. ", hot"}))
end

-- Appends to `out` a table of the simulator's counters from one record.
local function sim_table(out, name, words, head)
  local rows, about = load_record(name)
  out[#out + 1] = (words:gsub("@", about)) .. "\n"
  for _, r in ipairs(rows) do r[1] = "`" .. r[1] .. "`" end
  add_table(out, head, rows)
end

---------------------------------------------------------------------------

local page = read(PAGE)

-- Replaces the text between the marks of part `part` of docs/ladders.md by the
-- lines `out`.
local function put(part, out)
  local first = ("<!-- %s: made by make ladders -->\n"):format(part)
  local last = ("<!-- %s end -->"):format(part)
  local head, tail = page:find(first, 1, true), page:find(last, 1, true)
  assert(head and tail, PAGE .. ": the marks of " .. part .. " are gone")
  page = page:sub(1, head - 1) .. first .. table.concat(out, "\n")
    .. page:sub(tail)
end

local COUNTS = {"script", "size", "type", "requests", "sectors", "passes",
                "conflicts", "instructions"}

do
  local out = {}
  local rows, about = results("copy", "copy.tsv")
  local o = {rival = "driver", size = "MiB", climb = true}
  gpu_table(out, rows, about, o)
  draw("ladders_copy.svg", rows, {title = "bf16 copies, " .. about,
    rival = "the driver's copy", unit = " MiB"})
  out[#out + 1] = "![ratio to the driver's copy](ladders_copy.svg)\n"
  sim_table(out, "copy_sim.tsv", "Memory requests as the @ counts them. "
    .. "`requests` counts requests of warps to\nglobal memory, `sectors` "
    .. "their sectors of 32 bytes. `passes` counts passes of shared memory,\n"
    .. "`conflicts` those beyond the minimum. `instructions` counts "
    .. "instructions of warps.",
    COUNTS)
  put("copies", out)
end

do
  local out = {}
  local rows, about = results("copy", "transpose.tsv")
  gpu_table(out, rows, about, {rival = "driver", size = "size",
    label = function(r) return r.extents .. " " .. r.type end})
  sim_table(out, "transpose_sim.tsv",
    "Memory requests as the @ counts them:", COUNTS)
  put("transposition", out)
end

do
  local out = {}
  local rows, about = results("gemm", "gemm_bf16.tsv")
  local o = {rival = "cuBLAS", size = "size", climb = true}
  gpu_table(out, rows, about, o)
  draw("ladders_gemm.svg", rows, {title = "bf16 GEMM, " .. about,
                                  rival = "cuBLAS"})
  out[#out + 1] = "![ratio to cuBLAS](ladders_gemm.svg)\n"
  rows, about = results("gemm", "gemm_hopper.tsv")
  gpu_table(out, rows, "The Hopper rungs; " .. about, o)
  draw("ladders_hopper.svg", rows, {title = "bf16 GEMM on Hopper, " .. about,
                                    rival = "cuBLAS"})
  out[#out + 1] = "![ratio to cuBLAS](ladders_hopper.svg)\n"
  local others, same = results("gemm", "gemm_other.tsv")
  gpu_table(out, others, same, {rival = "cuBLAS", size = "size"})
  sim_table(out, "gemm_sim.tsv", "Memory requests as the @ counts them. "
    .. "`accesses` and `mma` count\ninstructions of warps. `passes` counts "
    .. "passes of shared memory, `conflicts` those beyond the minimum.\n"
    .. "`sectors` counts sectors of global memory. `shared memory` is in "
    .. "bytes.",
    {"script", "size", "accesses", "passes", "conflicts", "sectors", "mma",
     "shared memory"})
  put("gemm", out)
end

write(PAGE, page)
print("wrote " .. PAGE .. " and its charts")
-- SPDX-License-Identifier: MIT
