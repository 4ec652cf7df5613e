-- Tests that the text of a kernel is the same in every process. It must not
-- depend on the order of a Lua table, which differs between processes.
local support = require "spec.support"

local PROCESSES = 3

-- Returns the output of a command. Fails unless it is the same in all
-- processes.
local function same(words)
  local first
  for _ = 1, PROCESSES do
    local out, err, code = support.exec(words)
    assert.equal(0, code, err)
    first = first or out
    assert.equal(first, out)
  end
  return first
end

local KERNELS = [[
local cute = require "cute"
local L = cute.make_layout
local Inner = cute.struct {v = {cute.f32, 4}, w = cute.i32}
local S = cute.struct {{"sV", cute.f32, 64, align = 128},
  {"sA", cute.f32, 64}, {"inner", Inner, 2}, {"n", cute.i32}}
local P = cute.struct {z = {cute.f32, 32}, b = cute.i32, a = {cute.u8, 3},
  c = {cute.bf16, 8, align = 64}}
local U = cute.union {f = {cute.f32, 32}, i = {cute.i32, 32}, b = cute.u8}
local function show(f)
  local text = cute.kernel("k", f)(cute.zeros({64}, cute.f32))
    :trace {block = 32}:cuda()
  io.write(text)
end
show(function(x)
  local tid = cute.arch.thread_idx()
  local alloc = cute.utils.SmemAllocator()
  local storage, plain = alloc:allocate(S), alloc:allocate(P)
  local either = alloc:allocate(U)
  cute.make_tensor(storage.sA, L {64})[tid] = x[tid]
  cute.make_tensor(storage.sV, L {64})[tid] = x[tid]
  cute.make_tensor(storage.inner[2].v, L {4})[0] = 1
  cute.make_tensor(storage.n, L {1})[0] = 2
  cute.make_tensor(plain.z, L {32})[tid] = x[tid]
  cute.make_tensor(plain.b, L {1})[0] = 3
  cute.make_tensor(plain.c, L {8})[0] = 4
  cute.make_tensor(either.f, L {32})[tid] = x[tid]
  cute.arch.sync_threads()
  x[tid] = cute.make_tensor(either.i, L {32})[tid]:to(cute.f32)
end)
show(function(x)
  local t = {q = cute.make_rmem_tensor({2}, cute.f32),
             r = cute.make_rmem_tensor({2}, cute.f32), m = cute.var(x[0]),
             s = cute.make_smem_tensor(cute.f32, L {8})}
  t.again = t.s
  local state = {at = x[1], by = x[2], up = x[3]}
  t.q:fill(1)
  t.r:fill(2)
  t.s[0] = t.q[0]
  for k in cute.range(10) do
    state.at, state.by = state.at + state.by, state.up * 2
    t.q[0] = t.q[0] + t.r[1]
    t.m.value = t.m.value + state.up
  end
  x[0] = state.at + t.q[0] + t.m.value + t.again[0]
end)
-- what functions in a table share, and fields of objects in one
local function counters()
  local a, b, c, d = 0, 0, 0, 0
  return {up = function() a, b = a + 1, b + 2 end,
          down = function() c, d = c - 1, d - 2 end,
          sum = function() return a + b * 2 + c * 3 + d * 5 end}
end
show(function(x)
  local count = counters()
  local o = {left = {n = 0, m = 1}, right = {n = 2, m = 3}, both = {4, 5}}
  for k in cute.range(10) do
    count.up()
    count.down()
    table.insert(o.both, table.remove(o.both, 1) + k)
    o.left.n, o.left.m = o.left.n + 1, o.left.m + o.right.n
    o.right.n, o.right.m = o.right.m, o.right.n + k
  end
  x[0] = (count.sum() + o.left.m + o.right.m + o.both[1]):to(cute.f32)
end)
]]

describe(("in %d processes #noasan"):format(PROCESSES), function()
  it("kernels with structures and tables have one text", function()
    local text = same {support.program, "-e", KERNELS}
    for _, name in ipairs {"storage_sA", "storage_sV", "storage_n", "plain_z",
                           "plain_b", "plain_c", "either_b"} do
      assert.is_truthy(text:find(" " .. name .. "[_ ]"), name .. "\n" .. text)
    end
  end)

  it("scripts have one text #long", function()
    local list <close> = io.popen "ls scripts/*.lua"
    local words = {"sh", "-c", [[
      program=$0
      for s; do $program "$s" --emit cu 2>&1; done; :]], support.program}
    for path in list:lines() do words[#words + 1] = path end
    assert.is_truthy(same(words):find "__global__")
  end)
end)

describe("fields of a structure", function()
  local cute = require "cute"

  it("come in the order of the list, or of their names", function()
    local list = cute.struct {{"z", cute.f32, 3}, {"a", cute.u8}}
    assert.equal("struct of 16 bytes {z at 0: f32[3]; a at 12: u8[1]}",
      tostring(list))
    local plain = cute.struct {z = {cute.f32, 3}, a = cute.u8,
                               m = {cute.i32, align = 16}}
    assert.equal("struct of 32 bytes {a at 0: u8[1]; m at 16: i32[1]; "
      .. "z at 20: f32[3]}", tostring(plain))
    support.raises("not both", cute.struct, {{"a", cute.u8}, b = cute.u8})
  end)

  it("are memory of their own, by their names and elements", function()
    local S = cute.struct {{"sK", cute.f32, 32}, {"sV", cute.i32, 8}}
    local why = support.message(function() cute.kernel("k", function(x)
      local storage = cute.utils.SmemAllocator():allocate(S)
      local tid = cute.arch.thread_idx()
      cute.make_tensor(storage.sK, cute.make_layout {32})[tid] = x[tid]
      cute.make_tensor(storage.sV, cute.make_layout {32})[tid] = 1
    end)(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32,
      device = "sim"} end)
    assert.is_truthy(why:find(
      "write outside shared tensor 'storage_sV': element 8 of 8", 1, true), why)
  end)
end)
-- SPDX-License-Identifier: MIT
