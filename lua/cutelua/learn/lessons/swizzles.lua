--- Lesson: shared memory, its banks, and swizzles.
local cute = require "cute"

-- Returns the sum of of(line) over all lines of a report, and the line for
-- which of(line) is largest.
local function worst(report, of)
  local most, line, sum = 0, nil, 0
  for _, l in ipairs(report.lines) do
    local n = of(l)
    sum = sum + n
    if n > most then most, line = n, l.line end
  end
  return sum, line
end

-- Reports whether k(x, y) transposes a 32x32 f32 matrix without bank conflicts.
local function transposed(k)
  local x, y = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
  for i = 0, 31 do
    for j = 0, 31 do x[{i, j}] = 32 * i + j end
  end
  local words = k(x, y):trace({block = 32}).info.smem // 4
  if words > 1024 then
    return nil, ("the kernel uses %d words of shared memory, and may use "
      .. "1024"):format(words)
  end
  local report = k(x, y):profile {grid = 1, block = 32}
  for i = 0, 31 do
    for j = 0, 31 do
      if y(j, i) ~= x(i, j) then
        return nil, ("y(%d, %d) is %s, and should be %s"):format(j, i, y(j, i),
          x(i, j))
      end
    end
  end
  local sectors, line = worst(report, function(l)
    return l.sectors - l.least_sectors
  end)
  if sectors > 0 then
    return nil, ("line %d reads or writes global memory in columns now: %d "
      .. "sectors more than needed"):format(line, sectors)
  end
  local n
  n, line = worst(report, function(l) return l.conflicts end)
  return n == 0, line and ("there are %d conflicts, most of them at line %d; "
    .. "none are needed"):format(n, line)
end

local KERNEL = [[
k = cute.kernel("transpose", function(x, y)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, layout)
  for i = 0, 31 do s[{i, tid}] = x[{i, tid}] end
  cute.arch.sync_warp()
  for i = 0, 31 do y[{i, tid}] = s[{tid, i}] end
end)]]

return {
  title = "Shared memory: banks and swizzles",
  text = [==[
Threads of a block exchange data through shared memory. It has 32 *banks*, each
4 bytes wide: word w is in bank w % 32. A request of a warp takes one pass if
its words are in different banks. Each further word of the busiest bank takes
another pass: these passes are *conflicts*.

A transposition writes rows and reads columns. In a row-major 32x32 tile of f32
all words of a column are in one bank:

```lua
layout = cute.make_layout({32, 32}, {32, 1})
function transposing(layout)
  return cute.kernel("transpose", function(x, y)
    local tid = cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, layout)
    for i = 0, 31 do s[{i, tid}] = x[{i, tid}] end
    cute.arch.sync_warp()
    for i = 0, 31 do y[{i, tid}] = s[{tid, i}] end
  end)
end
x, y = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
report = transposing(layout)(x, y):profile {grid = 1, block = 32}
report:total "conflicts"  --> 992
```

32 requests take 32 passes each. One solution is a gap: rows of 33 words.

```lua
padded = cute.make_layout({32, 32}, {33, 1})
report = transposing(padded)(x, y):profile {grid = 1, block = 32}
report:total "conflicts"  --> 0
```

The other solution needs no memory: a *swizzle*. `make_swizzle(B, M, S)` takes
B bits of an offset, above its lowest M + S, and XORs them onto the bits above
the lowest M. Each row is permuted differently, and a column touches all banks.
A small example:

```draw
cute.composition(cute.make_swizzle(2, 0, 2), cute.make_layout({4, 4}, {4, 1}))
```

Vectors have to stay contiguous: the lowest M bits do not change. For 16-byte
vectors of bf16 (8 elements) M is 3. `make_swizzle(3, 3, 3)` on rows of 64
elements suits `ldmatrix`, TMA and tensor cores.

```lua
sw = cute.composition(cute.make_swizzle(3, 3, 3),
                      cute.make_layout({8, 64}, {64, 1}))
sw(0, 8), sw(1, 8), sw(2, 8)  --> 8, 64, 152
```

You need not guess the swizzle of a kernel: `k(...):find_swizzle {...}` tries
all of them on the kernel's actual accesses.

Exercise: remove the bank conflicts with a swizzle. The kernel may use at most
1024 words of shared memory.

```exercise conflicts
layout = cute.make_layout({32, 32}, {32, 1})
]==] .. KERNEL .. [==[

```
]==],
  exercises = {
    conflicts = {
      makes = "k",
      hints = {"All 5 bits of a row's number have to reach the column: B = 5.",
        "Words of 4 bytes move alone (M = 0), and the row's bits are 5 "
        .. "places above the column's (S = 5)."},
      solution = [[
layout = cute.composition(cute.make_swizzle(5, 0, 5),
                          cute.make_layout({32, 32}, {32, 1}))
]] .. KERNEL,
      check = function(env) return transposed(env.k) end,
    },
  },
}
-- SPDX-License-Identifier: MIT
