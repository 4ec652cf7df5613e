--- Lesson: finding a bug with the simulator.
local cute = require "cute"

-- Returns the text of a kernel that sums each row by a tree reduction in shared
-- memory.
local function tree(last)
  return [[
k = cute.kernel("sum", function(x, total)
  local row, tid = cute.arch.block_idx(), cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  s[tid] = x[{row, tid}]
  cute.arch.sync_threads()
  for _, half in ipairs {64, 32, 16, 8, 4, 2, 1} do
    cute.when(tid:lt(half), function() s[tid] = s[tid] + s[tid + half] end)
]] .. last .. [[
  end
  cute.when(tid:eq(0), function() total[row] = s[0] end)
end)
]]
end

-- Returns the text of a kernel that shifts each row by one element through
-- shared memory. `barrier` is code at the end of the loop over rows.
local function shift(barrier)
  return [[
k = cute.kernel("shift", function(x, y)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  for i in cute.range(cute.size(x, 0)) do
    s[tid] = x[{i, tid}]
    cute.arch.sync_threads()
    y[{i, tid}] = s[(tid + 1) % 128]
]] .. barrier .. [[
  end
end)
]]
end

return {
  title = "Finding a bug with the simulator",
  text = [==[
The worst bugs of kernels give right results nearly always. This sum by a tree
lacks its barrier:

```lua
]==] .. tree "" .. [==[
x, total = cute.full({2, 128}, 1, cute.f32), cute.zeros({2}, cute.f32)
ok, message = pcall(function()
  k(x, total):launch {grid = 2, block = 128, device = "sim"}
end)
ok  --> false
message:match "%[race%]"  --> [race]
```

The report names both lines, the tensor, the element and the threads. It does
not depend on luck. The simulator records the writer and the readers of each
element and the order of their accesses. One run therefore reports every race
that any schedule could cause at these lines.

Some results do depend on the order: flags, atomics, barriers of different
warps. `k(...):check {...}` tries all orders that matter. Its verdict is ok,
bug (with the schedule), or incomplete (with the parts that were not covered):

```lua
]==] .. tree "    cute.arch.sync_threads()\n" .. [==[
k(x, total):check({grid = 2, block = 128}).verdict  --> ok
```

`cutelua check SCRIPT` checks every kernel that a script launches. With
`--surgeon` it removes each barrier to see whether it is needed, and for a bug
it proposes the line that repairs it. `cutelua debug SCRIPT` steps through a
kernel, forward and back, and knows the last writer of an element
(docs/debugging.md). And `cutelua explain SCRIPT -o k.html` writes all of this
on a page.

Sizes hide bugs, too: 256^3 has no partial tile. Try 1, and one more and one
less than a tile.

Exercise: this kernel shifts rows, one after another, through the same shared
memory. Find the missing barrier.

```exercise barrier
]==] .. shift "" .. [==[
```
]==],
  exercises = {
    barrier = {
      makes = "k",
      hints = {"Run it: which two lines race?", "A fast warp reaches the next "
        .. "row while a slow one still reads this one."},
      solution = shift "    cute.arch.sync_threads()\n",
      check = function(env)
        local x = cute.zeros({3, 128}, cute.f32)
        local y = cute.zeros({3, 128}, cute.f32)
        for i = 0, 2 do
          for j = 0, 127 do x[{i, j}] = 128 * i + j end
        end
        env.k(x, y):launch {grid = 1, block = 128, device = "sim"}
        for i = 0, 2 do
          for j = 0, 127 do
            if y(i, j) ~= x(i, (j + 1) % 128) then
              return nil, ("y(%d, %d) is %s, and should be %s"):format(i, j,
                y(i, j), x(i, (j + 1) % 128))
            end
          end
        end
        if env.k(x, y):trace({block = 128}).info.smem == 0 then
          return nil, "rows do not go through shared memory any more; the "
            .. "exercise is about the synchronization there"
        end
        local verdict = env.k(x, y):check {grid = 1, block = 128}
        return verdict.verdict == "ok", tostring(verdict)
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
