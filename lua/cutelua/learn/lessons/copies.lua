--- Lesson: a copy that saturates memory.
local cute = require "cute"

-- Runs k(x, y) on bf16 matrices (m,n). Returns the report, or nil and the
-- error.
local function copied(k, m, n, launch)
  local x, y = cute.zeros({m, n}, cute.bf16), cute.zeros({m, n}, cute.bf16)
  for i = 0, m - 1 do
    for j = 0, n - 1 do x[{i, j}] = (7 * i + j) % 101 end
  end
  local report = k(x, y):profile(launch)
  for i = 0, m - 1 do
    for j = 0, n - 1 do
      if y(i, j) ~= x(i, j) then
        return nil, ("y(%d, %d) is %s, and should be %s"):format(i, j, y(i, j),
          x(i, j))
      end
    end
  end
  return report
end

return {
  title = "A copy that saturates memory",
  text = [==[
Most kernels wait for memory. Global memory moves *sectors* of 32 bytes, and
the 32 threads of a warp form one *request*. Two things matter: a request
should use all bytes of the sectors it touches, and each thread should load
many bytes at once, at best 16.

`k(...):profile {grid =, block =}` runs on the simulator and counts, by line,
the events that an H200 counts.

```lua
rows = cute.kernel("rows", function(x, y)
  local i, j = cute.arch.block_idx(), cute.arch.thread_idx()
  y[{i, j}] = x[{i, j}]
end)
columns = cute.kernel("columns", function(x, y)
  local i, j = cute.arch.thread_idx(), cute.arch.block_idx()
  y[{i, j}] = x[{i, j}]
end)
x, y = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
rows(x, y):profile({grid = 32, block = 32}).lines[1].sectors  --> 128
columns(x, y):profile({grid = 32, block = 32}).lines[1].sectors  --> 1024
```

The same copy, and eight times the traffic. In `columns` the threads of a warp
are a whole row apart. Each has its own sector, and uses 4 bytes of it.

For wide accesses, a *tiled copy* distributes the elements over threads. It has
an atom (the bytes that one thread moves at once), a layout of threads, and a
layout of each thread's values.

```lua
atom = cute.make_copy_atom("UniversalCopy", cute.bf16, 128)
threads, values = cute.make_layout({4, 8}, {8, 1}), cute.make_layout {1, 8}
copy = cute.make_tiled_copy(atom, threads, values)
wide = cute.kernel("wide", function(x, y)
  local thr = copy:get_slice(cute.arch.thread_idx())
  local gx = cute.local_tile(x, {4, 64}, {cute.arch.block_idx(), 0})
  local gy = cute.local_tile(y, {4, 64}, {cute.arch.block_idx(), 0})
  local from, to = thr:partition_S(gx), thr:partition_D(gy)
  local r = cute.make_fragment_like(from)
  cute.copy(copy, from, r)
  cute.copy(copy, r, to)
end)
```

8 threads copy a row of 64, each 8 elements, 128 bits. A warp copies 4 rows.
The drawing shows the thread of each element:

```draw
copy
```

```lua
x, y = cute.zeros({64, 64}, cute.bf16), cute.zeros({64, 64}, cute.bf16)
line = wide(x, y):profile({grid = 16, block = 32}).lines[1]
line.requests, line.sectors  --> 16, 256
```

A request is 512 bytes, 16 sectors. On an H200 such copies of 1 GiB reach 0.97
of the driver's own copy; copies of one element a thread reach 0.80
(docs/ladders.md).

Exercise: this kernel copies 32x256 bf16, one block a row. It needs the fewest
possible sectors, but moves one element at a time. Let each request move 512
bytes: 32 threads, 16 bytes each.

```exercise vectors
copy = cute.make_tiled_copy(
  cute.make_copy_atom("UniversalCopy", cute.bf16, 16),
  cute.make_layout({1, 32}, {32, 1}), cute.make_layout {1, 1})
k = cute.kernel("row", function(x, y)
  local thr = copy:get_slice(cute.arch.thread_idx())
  local at = {cute.arch.block_idx(), 0}
  local from = thr:partition_S(cute.local_tile(x, {1, 256}, at))
  local to = thr:partition_D(cute.local_tile(y, {1, 256}, at))
  local r = cute.make_fragment_like(from)
  cute.copy(copy, from, r)
  cute.copy(copy, r, to)
end)
```

Exercise: this kernel causes eight times too much traffic. It copies 64x32 with
blocks of 32 threads. Keep grid and block, and let a request touch 2 sectors
(64 bytes).

```exercise coalesce
k = cute.kernel("copy", function(x, y)
  local block, tid = cute.arch.block_idx(), cute.arch.thread_idx()
  for j = 0, 31 do
    y[{block * 32 + tid, j}] = x[{block * 32 + tid, j}]
  end
end)
```
]==],
  exercises = {
    vectors = {
      makes = "k",
      hints = {"128 bits are 16 bytes: 8 elements of bf16.",
        "The atom's 128 bits, and a value layout of {1, 8}."},
      solution = [[
copy = cute.make_tiled_copy(
  cute.make_copy_atom("UniversalCopy", cute.bf16, 128),
  cute.make_layout({1, 32}, {32, 1}), cute.make_layout {1, 8})
k = cute.kernel("row", function(x, y)
  local thr = copy:get_slice(cute.arch.thread_idx())
  local at = {cute.arch.block_idx(), 0}
  local from = thr:partition_S(cute.local_tile(x, {1, 256}, at))
  local to = thr:partition_D(cute.local_tile(y, {1, 256}, at))
  local r = cute.make_fragment_like(from)
  cute.copy(copy, from, r)
  cute.copy(copy, r, to)
end)]],
      check = function(env)
        local report, why = copied(env.k, 32, 256, {grid = 32, block = 32})
        if not report then return nil, why end
        for _, l in ipairs(report.lines) do
          if l.requests ~= 32 then
            return nil, ("%s takes %d requests, and 32 are enough"):format(l.op,
              l.requests)
          end
        end
        return true
      end,
    },
    coalesce = {
      makes = "k",
      hints = {"Threads of a warp should be neighbours in memory: along a row.",
        "Let tid be the column, and let the loop go over the block's rows."},
      solution = [[
k = cute.kernel("copy", function(x, y)
  local block, tid = cute.arch.block_idx(), cute.arch.thread_idx()
  for i = 0, 31 do
    y[{block * 32 + i, tid}] = x[{block * 32 + i, tid}]
  end
end)]],
      check = function(env)
        local report, why = copied(env.k, 64, 32, {grid = 2, block = 32})
        if not report then return nil, why end
        for _, l in ipairs(report.lines) do
          if l.sectors ~= l.least_sectors or l.sectors ~= 2 * l.requests then
            return nil, ("%s touches %d sectors in %d requests; 2 each suffice")
              :format(l.op, l.sectors, l.requests)
          end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
