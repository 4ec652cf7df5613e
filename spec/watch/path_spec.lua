-- Tests the position at which reports of races advise to insert a barrier. The
-- first reported line must not depend on the schedule, and a barrier at the
-- advised position must repair the kernel.
local assert = require "luassert"
local support = require "spec.support"

local HEAD = [[
local cute = require "cute"
local arch = cute.arch
local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx() cute.partial_ok(y)
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(%d))
]]
local TAIL = [[
end)
return function(seed)
  return k(cute.zeros({512}, cute.i32), cute.zeros({512}, cute.i32)):launch {
    grid = %d, block = %d, cluster = %d, device = "sim:sm_90a", seed = seed,
    faults = "return", output = false}
end
]]

local function lines_of(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n" do list[#list + 1] = line end
  return list
end

local function head_of(case) return HEAD:format(case.size or 64) end

-- Returns the report of a kernel body, with line numbers relative to the body.
local function run(case, lines, seed)
  local text = head_of(case) .. table.concat(lines, "\n") .. "\n"
    .. TAIL:format(case.grid or 1, case.block or 64, case.cluster or 1)
  local r = support.report(assert(load(text, "@k.lua"))()(seed))
  return r, select(2, head_of(case):gsub("\n", ""))
end

local function indent_of(line) return #line:match "^ *" end

-- Returns the line that ends the block beginning in line n.
local function end_of(lines, n)
  for k = n + 1, #lines do
    if indent_of(lines[k]) <= indent_of(lines[n]) then return k end
  end
end

-- Returns the line of the innermost branch around line n.
local function branch_of(lines, n)
  for k = n - 1, 1, -1 do
    if indent_of(lines[k]) < indent_of(lines[n]) then
      if lines[k]:find "cute.when" then return k end
      n = k
    end
  end
end

-- Returns a copy of the lines with barriers where a report's `advice` says to
-- insert them. `first` is the number of lines before the kernel's body.
local function follow(lines, r, first, advice)
  local at, out = {}, {}
  local barrier = advice:match "put ([%w_.]+%(%))" or advice:match
    "and one ([%w_.]+%(%))" or advice:match "([%w_.]+%(%))"
  if not barrier:find "^cute" then barrier = "cute.arch." .. barrier end
  if advice:find "cluster_arrive" then
    barrier = "arch.cluster_arrive() arch.cluster_wait()"
  end
  local line, line2 = r.line - first, r.line2 - first
  local split = advice:find "between the write and the read"
    or advice:find "read, [%w_.]+%(%), then write"
  if advice:find "between the two lines, outside" then
    local b = branch_of(lines, line2)
    if b and end_of(lines, b) < line then at[end_of(lines, b) + 1] = true
    else at[branch_of(lines, line)] = true end
  elseif advice:find "before it runs again, outside" then
    at[end_of(lines, branch_of(lines, line)) + 1] = true
  elseif advice:find "between the two lines" then
    at[line] = true
  elseif advice:find "again" then
    at[line2 + 1] = true
  end
  local loop = advice:match "at the end of the loop of k.lua:(%d+)"
  if loop then at[end_of(lines, tonumber(loop) - first)] = true end
  for k, text in ipairs(lines) do
    if at[k] then out[#out + 1] = barrier end
    out[#out + 1] = split and k == line
      and text:gsub(";", "; " .. barrier .. "; ", 1) or text
  end
  return out
end

-- Each case: {name, body, "line line2 kind path" with lines relative to the
-- body, the message up to the name of the element, options}. options.more is a
-- fault that the repaired kernel still has.
local RAW = "read of an element that another warp writes, with no barrier "
  .. "between the two lines"
local RAW_IN = "read of an element that another warp writes, with no barrier "
  .. "in between"
local WAR = "write after a read by another warp with no barrier in between"
local WAW = "write after a write by another warp with no barrier in between"

local CASES = {
  {"a write, a read", [[
  s[t] = t
  x[t] = s[63 - t]
]], "2 1 race straight", RAW},
  {"on one line", [[
  s[t] = 1; x[t] = s[(t + 32) % 64]
]], "1 1 race straight", RAW_IN},
  {"a read, a write", [[
  s[t] = t
  arch.sync_threads()
  local v = s[63 - t]
  s[t] = v + 1
]], "4 3 race straight", WAR},
  {"a read, a write, on one line", [[
  s[t] = t
  arch.sync_threads()
  local v = s[63 - t]; s[t] = v
]], "3 3 race straight", WAR},
  {"two writes", [[
  s[t] = t
  s[63 - t] = 1
  arch.sync_threads()
  x[t] = s[t]
]], "2 1 race straight", WAW},
  {"no barrier at the end of a loop", [[
  for i in cute.range(4) do
    s[t] = t + i
    arch.sync_threads()
    x[t] = s[63 - t]
  end
]], "2 4 race loop", WAR},
  {"no barrier at the end of a loop of one line", [[
  for i in cute.range(4) do
    s[t] = t + i arch.sync_threads() x[t] = s[63 - t]
  end
]], "2 2 race loop", WAR},
  {"no barrier at the end of a loop that reads first", [[
  s[t] = t
  arch.sync_threads()
  for i in cute.range(4) do
    local v = s[63 - t]
    arch.sync_threads()
    s[t] = v + 1
  end
]], "4 6 race loop", RAW_IN},
  {"no barrier in a loop", [[
  for i in cute.range(4) do
    s[t] = t + i
    x[t] = s[63 - t]
  end
]], "3 2 race straight", RAW},
  {"no barrier in a loop that turns one line about", [[
  s[t] = t
  arch.sync_threads()
  for i in cute.range(4) do
    local v = s[63 - t]; s[t] = v + i
  end
]], "4 4 race loop", RAW_IN, {more = "straight: " .. WAR}},
  {"a loop while something is true", [[
  local i = cute.var(0)
  cute.loop(function() return i.value:lt(4) end, function()
    s[t] = t + i.value
    arch.sync_threads()
    x[t] = s[63 - t]
    i.value = i.value + 1
  end)
]], "3 5 race loop", WAR},
  {"the end of an inner loop", [[
  for i in cute.range(3) do
    for j in cute.range(3) do
      s[t] = t + i
      arch.sync_threads()
      x[t] = s[63 - t]
    end
    arch.sync_threads()
  end
]], "3 5 race loop", WAR},
  {"the end of an outer loop", [[
  for i in cute.range(3) do
    s[t] = i
    for j in cute.range(3) do
      arch.sync_threads()
      x[t] = s[63 - t] + j
    end
  end
]], "2 5 race loop", WAR},
  {"a loop, then a read", [[
  for i in cute.range(3) do
    arch.sync_threads()
    s[t] = i
  end
  x[t] = s[63 - t]
]], "5 3 race straight", RAW},
  {"an unrolled loop", [[
  for i = 1, 3 do
    s[t] = t + i
    arch.sync_threads()
    x[t] = s[63 - t]
  end
]], "2 4 race again", WAR},
  {"a sum by halves, unrolled", [[
  s[t] = t
  arch.sync_threads()
  for _, n in ipairs {64, 32} do
    cute.when(t:lt(n), function()
      s[t] = s[t] + s[t + n]
    end)
  end
]], "5 5 race again", RAW_IN, {block = 128, size = 128}},
  {"a sum by halves, in a loop", [[
  s[t] = t
  arch.sync_threads()
  local n = cute.var(64)
  for i in cute.range(2) do
    cute.when(t:lt(n.value), function()
      s[t] = s[t] + s[t + n.value]
    end)
    n.value = n.value // 2
  end
]], "6 6 race loop", RAW_IN, {block = 128, size = 128}},
  {"a write in a branch", [[
  cute.when(t:eq(0), function()
    s[0] = 5
  end)
  x[t] = s[0]
]], "4 2 race straight", RAW},
  {"a read in a branch", [[
  s[t] = t
  cute.when(t:eq(0), function()
    x[0] = s[40]
  end)
]], "3 1 race straight", RAW},
  {"a barrier in the branch of a loop's first steps", [[
  for i in cute.range(4) do
    cute.when(t:eq(0), function()
      s[0] = i
    end)
    arch.sync_threads()
    x[t] = s[0] + x[t]
  end
]], "3 6 race loop", WAR},
  {"global memory", [[
  x[t] = t
  x[t + 64] = x[63 - t]
]], "2 1 race straight", RAW},
  {"global memory, in a loop", [[
  for i in cute.range(4) do
    x[t] = t + i
    arch.sync_threads()
    x[t + 64] = x[63 - t]
  end
]], "2 4 race loop", WAR},
  {"what cp.async brought", [[
  local to = cute.make_tensor(s.iterator + t * 4, cute.make_layout(4))
  cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.i32,
    {num_bits_per_copy = 128}), cute.make_tensor(x.iterator + t * 4,
    cute.make_layout(4)), to)
  arch.cp_async_commit_group()
  arch.cp_async_wait_group(0)
  y[t] = s[255 - t]
]], "7 2 race straight", RAW, {size = 256}},
  {"lanes of a warp", [[
  s[t] = t
  x[t] = s[31 - t]
]], "2 1 warp-race straight", "read of an element that another lane of the "
    .. "warp writes, with no __syncwarp between the two lines", {block = 32}},
  {"lanes of a warp, in a loop", [[
  for i in cute.range(4) do
    s[t] = t + i
    arch.sync_warp()
    x[t] = s[31 - t]
  end
]], "2 4 warp-race loop", "write after a read by another lane of the warp with "
    .. "no __syncwarp in between", {block = 32}},
  {"blocks of a cluster", [[
  local b = arch.block_idx()
  x[b * 32 + t] = t
  y[b * 32 + t] = x[(1 - b) * 32 + t]
]], "3 2 race straight", "read of an element that a thread of another block "
    .. "writes, with nothing that orders them at cluster scope",
    {block = 32, grid = 2,
    cluster = 2}},
}

local function advice_of(r)
  for line in tostring(r):gmatch "[^\n]+" do
    if line:find "sync_" or line:find "cluster_arrive" then return line end
  end
end

describe("a race's first line, and the barrier that it lacks", function()
  for _, c in ipairs(CASES) do
    local name, body, where, message, o = table.unpack(c)
    it(name, function()
      local lines, first = lines_of(body), nil
      for seed = 1, 8 do
        local r, before = run(o or {}, lines, seed)
        local f = r.reports[1]
        assert.equal(where, ("%d %d %s %s"):format(f.line - before,
          f.line2 - before, f.kind, f.way), tostring(r))
        assert.equal(message, (f.message:gsub(": element %d+ of .*", "")))
        local advice = advice_of(r)
        first = first or advice
        assert.equal(first, advice)
        local mended = follow(lines, f, before, advice)
        local again = run(o or {}, mended, seed)
        -- The repaired kernel still has a second fault, which must be reported.
        if o and o.more then
          assert.equal(o.more, ("%s: %s"):format(again.reports[1].way,
            (again.reports[1].message:gsub(": element %d+ of .*", ""))))
          again = run(o, follow(mended, again.reports[1], before,
                                advice_of(again)), seed)
        end
        assert.is_true(again.ok, advice .. "\n" .. tostring(again))
      end
    end)
  end

  it("are not swapped between threads with separate roles", function()
    local r = run({}, lines_of [[
  cute.when(t:lt(32), function()
    s[t] = t
  end, function()
    x[t] = s[63 - t]
  end)
]], 1)
    for _, f in ipairs(r.reports) do assert.is_nil(f.way) end
    assert.is_false(r.ok)
  end)
end)
-- SPDX-License-Identifier: MIT
