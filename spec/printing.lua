--- Kernels that print, run on the simulator, as emitted text and on a GPU. Each
-- kernel is one launch of a few threads whose output does not depend on the
-- order of warps.
local cute = require "cute"

local printing = {}

local arch = cute.arch

--- Returns a host tensor whose element i in memory is f(i).
function printing.tensor(dtype, layout, f)
  local n = cute.cosize(layout)
  local memory = cute.zeros({n}, dtype)
  for i = 0, n - 1 do memory[i] = (f or function(k) return k end)(i) end
  return cute.make_tensor(memory.iterator, layout)
end

local tensor = printing.tensor
local function third(i) return (i - 7) / 3 end

--- For each element type, values that it represents exactly.
printing.types = {
  f64 = third, f32 = third, f16 = third, bf16 = third, tf32 = third,
  e4m3 = third, e5m2 = third, i8 = function(i) return i - 6 end,
  u8 = function(i) return i * 20 end, i16 = function(i) return i * -2000 end,
  u16 = function(i) return i * 4000 end, i32 = function(i) return i - 6 end,
  u32 = function(i) return i * 300000000 end,
  i64 = function(i) return (i - 6) << 40 end,
  u64 = function(i) return i << 59 end,
  boolean = function(i) return i % 3 == 0 end,
}

local names = {}
for name in pairs(printing.types) do names[#names + 1] = name end
table.sort(names)

printing.cases = {}

local function case(name, c)
  c.name, c.block = name, c.block or 1
  printing.cases[#printing.cases + 1] = c
end

for _, name in ipairs(names) do
  case("elements of type " .. name, {
    args = {tensor(name, cute.make_layout({3, 4}, {4, 1}),
                   printing.types[name])},
    kernel = function(x)
      cute.print_tensor(x)
      cute.printf("{} {}\n", x, x[1])
      cute.printf("{}\n", x:load())
    end})
end

case("a tensor of a shape that is known when it runs", {
  args = {tensor("f32", cute.make_layout({5, 3}, {3, 1}))
    :mark_layout_dynamic(), tensor("i32", cute.make_layout({2, 70}, {70, 1}))
    :mark_layout_dynamic(), 11},
  kernel = function(x, y, n)
    cute.print_tensor(x)
    cute.print_tensor(y)
    cute.print_tensor(y, {limit = 8})
    cute.print_tensor(x, {limit = 7})
    cute.printf("{} of {}: {}\n", x, x.layout, x, {limit = 4})
    cute.printf("{} {} {}\n", x.iterator, x.iterator + n, x(n - 8, 0))
  end})

case("matrices of further modes", {
  args = {tensor("i32", cute.make_layout({2, 3, 2, 2})),
          tensor("f32", cute.make_layout({2, 3, 2})):mark_layout_dynamic(),
          tensor("i32", cute.make_layout {5})},
  kernel = function(x, y, z)
    cute.print_tensor(x)
    cute.print_tensor(y)
    cute.print_tensor(z)
    cute.printf("{}\n", x)
  end})

local swizzled = cute.tile_to_shape(cute.composition(cute.make_swizzle(2, 0, 3),
  cute.make_layout({8, 8}, {8, 1})), {8, 8})

case("shared memory, registers and coordinates", {
  args = {}, block = 32,
  kernel = function()
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, swizzled)
    s[tid], s[tid + 32] = tid:to(cute.f32), -tid:to(cute.f32)
    arch.sync_threads()
    local r = cute.make_rmem_tensor({2, {2, 2}}, cute.bf16)
    r:fill(0.125)
    r[{1, {0, 1}}] = tid:to(cute.bf16)
    cute.print_tensor(s, {thread = 5})
    cute.print_tensor(r, {thread = 31})
    cute.printf("{} {}\n", r, r:load() * 2, {thread = 2})
    local tile = cute.local_tile(s, {2, 4}, {tid % 4, 1})
    cute.print_tensor(tile, {thread = 3})
    local c = cute.make_identity_tensor({64, 64})
    cute.print_tensor(cute.local_tile(c, {2, 3}, {tid, 4}), {thread = 6})
    cute.printf("{} {}\n", cute.local_tile(c, {2, 2}, {1, tid}), c(tid, 7),
                {thread = 9})
  end})

case("what else there is", {
  args = {7}, block = 8,
  kernel = function(n)
    local tid = arch.thread_idx()
    cute.printf("{} {} {} {} {} %s|%5s|\n", "100% {}", nil, true, 0.5, 12,
                "text", tid:eq(1), {when = tid:lt(2)})
    cute.printf("{} {} {}\n", {1, {tid, {3}}}, {}, {n, true}, {thread = 4})
    cute.printf("{} {} {}\n", cute.make_layout({tid, 4}), cute.f32,
                cute.make_layout({{tid, 2}, n}, {{4, n}, 1}), {thread = 4})
    cute.printf("{} {}\n", swizzled, cute.composition(
      cute.make_swizzle(2, 0, 3), n, cute.make_layout({8, 8})), {thread = 4})
    local v = cute.make_rmem_tensor({4}, cute.f32)
    v:fill(2.5)
    cute.printf("%6.2f {}%% {\n", v:load(), 3, {thread = 0})
    cute.printf("none\n", {when = false})
    cute.printf("all {}\n", tid)
  end})

case("layouts through functions", {
  args = {tensor("i32", cute.make_layout {64})}, block = 4,
  kernel = function(x)
    local tid = arch.thread_idx()
    local g = cute.make_composed_layout(function(i, j) return i * 8 + j * 2 end,
      {tid, 1}, cute.make_identity_layout {2, 3})
    cute.printf("{} {}\n", g, cute.make_tensor(x.iterator, g),
                {when = tid:gt(1)})
  end})

case("more than a printf of the device takes", {
  args = {tensor("i32", cute.make_layout {40})}, block = 8,
  kernel = function(x)
    local tid = arch.thread_idx()
    local r = cute.make_rmem_tensor({3, 20}, cute.i32)
    for i = 0, 59 do r[i] = tid * 100 + i end
    cute.print_tensor(r, {when = tid:gt(5)})
    cute.printf("{} {}\n", tid, x:load(), {when = tid:lt(2)})
    cute.printf("{}\n", x, {thread = 3, limit = 1})
  end})

case("threads and blocks by their coordinates", {
  args = {}, block = {4, 2, 3}, grid = {2, 2},
  kernel = function()
    local bx, by = arch.block_idx()
    local x, y, z = arch.thread_idx()
    cute.printf("{} {}\n", {bx, by}, {x, y, z},
                {thread = {3, 1, 2}, block = {1, 0}})
    cute.printf("{} {}\n", {bx, by}, {x, y, z}, {thread = 2, block = 1})
    cute.printf("{}\n", {x, y, z}, {thread = {x, 1, 1}, block = 1})
  end})

--- Returns the call of a case's kernel with its arguments.
function printing.call(c)
  return cute.kernel("k", c.kernel)(table.unpack(c.args))
end

--- Returns the text that a case prints.
---@param c table
---@param device string
---@return string? nil on a GPU, which prints to standard output
function printing.run(c, device)
  local report = assert(printing.call(c):launch {grid = c.grid or 1,
    block = c.block, device = device, output = false})
  return device:find "^sim" and report.output or nil
end

return printing
-- SPDX-License-Identifier: MIT
