--- Lesson: shared memory, its banks, and swizzles.
local cute = require "cute"

-- Returns the total of a quantity, and the line with the most of it.
local function worst(report, of)
  local most, line, sum = 0, nil, 0
  for _, l in ipairs(report.lines) do
    local n = of(l)
    sum = sum + n
    if n > most then most, line = n, l.line end
  end
  return sum, line
end

-- Checks that k(x, y) transposes 32x32 f32 without conflicts.
local function transposed(k)
  local x, y = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
  for i = 0, 31 do
    for j = 0, 31 do x[{i, j}] = 32 * i + j end
  end
  local words = k(x, y):trace({block = 32}).info.smem // 4
  if words > 1024 then
    return nil, ("the kernel takes %d words of shared memory, and may take "
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
4 bytes wide: word w lies in bank w % 32. A request of a warp takes one pass if
its words lie in different banks, and a pass more for each further word of the
busiest one: these are *conflicts*.

A transposition writes rows and reads columns. In a row-major 32x32 tile of f32
all words of a column lie in one bank:

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

32 requests take 32 passes each. One cure is a gap: rows of 33 words.

```lua
padded = cute.make_layout({32, 32}, {33, 1})
report = transposing(padded)(x, y):profile {grid = 1, block = 32}
report:total "conflicts"  --> 0
```

The other needs no memory: a *swizzle*. `make_swizzle(B, M, S)` takes B bits of
an offset, above its lowest M + S, and XORs them onto those above the lowest M.
So each row is permuted in another way, and a column goes through all banks.
Small:

```draw
cute.composition(cute.make_swizzle(2, 0, 2), cute.make_layout({4, 4}, {4, 1}))
```

Vectors have to stay in one piece: M says how many low bits are left alone. For
16-byte pieces of bf16 (8 elements) M is 3, and `make_swizzle(3, 3, 3)` on rows
of 64 elements is what `ldmatrix`, TMA and tensor cores like.

```lua
sw = cute.composition(cute.make_swizzle(3, 3, 3),
                      cute.make_layout({8, 64}, {64, 1}))
sw(0, 8), sw(1, 8), sw(2, 8)  --> 8, 64, 152
```

Which one cures a kernel need not be guessed: `k(...):find_swizzle {...}` tries
them all on what the kernel really does.

Exercise: remove the bank conflicts with a swizzle; the kernel may take 1024
words of shared memory, no more.

```exercise conflicts
layout = cute.make_layout({32, 32}, {32, 1})
]==] .. KERNEL .. [==[

```
]==],
  exercises = {
    conflicts = {
      makes = "k",
      hints = {"All 5 bits of a row's number have to reach the column: B = 5.",
        "Words of 4 bytes move alone (M = 0), and the row's bits stand 5 "
        .. "places above the column's (S = 5)."},
      solution = [[
layout = cute.composition(cute.make_swizzle(5, 0, 5),
                          cute.make_layout({32, 32}, {32, 1}))
]] .. KERNEL,
      check = function(env) return transposed(env.k) end,
    },
  },
}
