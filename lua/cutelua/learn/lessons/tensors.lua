--- Lesson: tensors and the first kernel.
local cute = require "cute"

return {
  title = "Tensors, and a first kernel",
  text = [==[
A *tensor* is memory with a layout. On the host it holds data:

```lua
t = cute.tensor({{1, 2, 3}, {4, 5, 6}}, cute.f32)
t.layout  --> (2,3):(3,1)
t(1, 2)  --> 6.0
t(cute._, 1)(1)  --> 5.0
```

`t(cute._, 1)` is column 1: a view, not a copy. Indices in brackets store:

```lua
t[{0, 0}] = 10
t(0, 0)  --> 10.0
```

A *kernel* is a Lua function that one thread runs. `cute.kernel` traces it: the
function is called once, and its recorded operations become CUDA C for a GPU,
or a program of the simulator. So `i` below is no number but a value that
differs between threads. `cute.when` is the `if` of such values.

```lua
double = cute.kernel("double", function(x, y)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  cute.when(i:lt(cute.size(x)), function() y[i] = x[i] * 2 end)
end)
x, y = cute.zeros({100}, cute.f32), cute.zeros({100}, cute.f32)
for i = 0, 99 do x[i] = i end
double(x, y):launch {grid = 4, block = 32, device = "sim"}
y(99)  --> 198.0
```

4 blocks of 32 threads are 128 threads. The last 28 have no element, and
without the `when` they would read past the end. A GPU may not report that. The
simulator does:

```lua
careless = cute.kernel("careless", function(x, y)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  y[i] = x[i] * 2
end)
ok, message = pcall(function()
  careless(x, y):launch {grid = 4, block = 32, device = "sim"}
end)
ok  --> false
message:match "element %d+ of %d+"  --> element 100 of 100
```

The CUDA C of a kernel can be read:

```lua
text = double(x, y):trace({block = 32, arch = "sm_80"}):cuda()
text:match "if %b() {"  --> if (i < 100) {
```

Exercise: `k(a, x, y)` computes y = a x + y, with one thread an element, for
vectors of any length; `a` is a number.

```exercise axpy
k = cute.kernel("axpy", function(a, x, y)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  y[i] = x[i]
end)
```

Exercise: divide each row of the matrix `x` (M,N) by its number in `d` (M). A
block processes a row, and has 32 threads for any N:
`cute.range(from, to, step)` is a loop.

```exercise rows
k = cute.kernel("divide", function(x, d)
  local row, tid = cute.arch.block_idx(), cute.arch.thread_idx()
  for j in cute.range(tid, cute.size(x, 1), 32) do
    -- x[{row, j}] is an element
  end
end)
```
]==],
  exercises = {
    axpy = {
      makes = "k",
      hints = {"cute.when(i:lt(cute.size(x)), function() ... end)",
        "Inside: y[i] = a * x[i] + y[i]"},
      solution = [[
k = cute.kernel("axpy", function(a, x, y)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  cute.when(i:lt(cute.size(x)), function() y[i] = a * x[i] + y[i] end)
end)]],
      check = function(env)
        for _, n in ipairs {64, 33, 1} do
          local x, y = cute.zeros({n}, cute.f32), cute.zeros({n}, cute.f32)
          for i = 0, n - 1 do x[i], y[i] = i, 1 end
          env.k(3, x, y):launch {grid = (n + 31) // 32, block = 32,
                                 device = "sim"}
          for i = 0, n - 1 do
            if y(i) ~= 3 * i + 1 then
              return nil, ("n = %d: y[%d] is %s, and should be %d")
                :format(n, i, y(i), 3 * i + 1)
            end
          end
        end
        return true
      end,
    },
    rows = {
      makes = "k",
      hints = {"d[row] is the same for all threads of the block.",
        "x[{row, j}] = x[{row, j}] / d[row]"},
      solution = [[
k = cute.kernel("divide", function(x, d)
  local row, tid = cute.arch.block_idx(), cute.arch.thread_idx()
  for j in cute.range(tid, cute.size(x, 1), 32) do
    x[{row, j}] = x[{row, j}] / d[row]
  end
end)]],
      check = function(env)
        local m, n = 3, 45
        local x, d = cute.zeros({m, n}, cute.f32), cute.zeros({m}, cute.f32)
        for i = 0, m - 1 do
          d[i] = i + 1
          for j = 0, n - 1 do x[{i, j}] = (i + 1) * j end
        end
        env.k(x, d):launch {grid = m, block = 32, device = "sim"}
        for i = 0, m - 1 do
          for j = 0, n - 1 do
            if x(i, j) ~= j then
              return nil, ("x(%d, %d) is %s, and should be %d"):format(i, j,
                x(i, j), j)
            end
          end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
