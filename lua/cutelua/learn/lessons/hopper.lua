--- Lesson: Hopper: TMA and mbarriers.
local cute = require "cute"

local KERNEL = [[
cpasync = cute.nvgpu.cpasync
load_op = cpasync.CopyBulkTensorTileG2SOp()
layout = cute.make_layout({32, 64}, {64, 1})
k = cute.kernel("tma", function(load, mA, y)
  local s = cute.make_smem_tensor(cute.bf16, layout, 128)
  local full = cute.arch.alloc_smem(cute.i64, 1)
  local tid = cute.arch.thread_idx()
  local gA = cute.local_tile(mA, {32, 64}, {cute.arch.block_idx(), 0})
  local tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(gA, 0, 2))
  cute.when(tid:eq(0), function()
    cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
    cute.copy(load, tAgA, tAsA, {tma_bar_ptr = full})
  end)
  cute.arch.sync_threads()
  cute.arch.mbarrier_wait(full, 0)
  for i = 0, 31 do
    y[{cute.arch.block_idx() * 32 + i, tid}] = s[{i, tid}]
  end
end)
]]

-- Returns the text of the lesson's kernel, in which `text` replaces the wait
-- for the mbarrier.
local function waits(text)
  local from, to = KERNEL:find("cute.arch.mbarrier_wait(full, 0)", 1, true)
  return KERNEL:sub(1, from - 1) .. text .. KERNEL:sub(to + 1)
end

local RUN = [[
function run(k, m, n)
  local A, y = cute.zeros({m, n}, cute.bf16), cute.zeros({m, n}, cute.bf16)
  for i = 0, m - 1 do
    for j = 0, n - 1 do A[{i, j}] = (i + 3 * j) % 64 end
  end
  local load, mA = cpasync.make_tiled_tma_atom(load_op, A, layout, {32, 64})
  k(load, mA, y):launch {grid = m // 32, block = 64, device = "sim:sm_90a"}
  return A, y
end
]]

-- Returns the text of a kernel that loads two tiles one after the other. The
-- kernel waits for the second tile with parity `parity`.
local function twice(parity)
  local one = KERNEL:sub(1, KERNEL:find("\n  for i = 0, 31 do", 1, true))
  return one .. ([[
  for i = 0, 31 do y[{i, tid}] = s[{i, tid}] end
  cute.arch.fence_view_async_shared()  -- threads read, the engine writes next
  cute.arch.sync_threads()  -- all have read it
  local gB = cute.local_tile(mA, {32, 64}, {1, 0})
  local _, tBgA = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(gB, 0, 2))
  cute.when(tid:eq(0), function()
    cute.arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
    cute.copy(load, tBgA, tAsA, {tma_bar_ptr = full})
  end)
  cute.arch.mbarrier_wait(full, PARITY)
  for i = 0, 31 do y[{32 + i, tid}] = s[{i, tid}] end
end)
]]):gsub("PARITY", parity)
end

return {
  title = "Hopper: TMA and mbarriers",
  text = [==[
Hopper (sm_90a) has a copy engine, *TMA*. One thread names a box of a tensor.
The engine computes addresses, swizzles, skips elements outside of the tensor,
and copies. The host describes the tensor by a *tensor map*. Here
`make_tiled_tma_atom` returns the map and a tensor of coordinates to partition.

Threads wait for the engine at an *mbarrier*. It lies in shared memory and
counts arrivals and bytes, phase by phase. `arrive_and_expect_tx(bar, bytes)`
arrives and announces the number of bytes; the engine subtracts the bytes that
it has written. `mbarrier_wait(bar, parity)` returns when nothing is missing.
Phases count 0, 1, 0, 1 ...

```lua
]==] .. KERNEL .. RUN .. [==[
A, y = run(k, 64, 64)
y(63, 63), A(63, 63)  --> 60.0, 60.0
```

After `sync_threads` all threads may wait at the barrier that thread 0
initialised. Without a wait, the result depends on the speed of the engine. On
a GPU this may go well for a year. The simulator tracks the synchronization,
and reports:

```lua
]==] .. waits "-- no wait" .. [==[
ok, message = pcall(run, k, 64, 64)
ok, message:match "%[([%a-]+)%]\n    "  --> false, async-in-flight
```

The same barriers are the basis of `cute.pipeline` (full and empty, a ring of
stages) and of specialised warps. One warp loads, and others multiply with
`wgmma`, which reads shared memory directly. `scripts/gemm_tma.lua`,
`gemm_ws.lua` and `gemm_hopper.lua` continue from here, to 0.96 to 1.08 of
cuBLAS on an H200 (docs/ladders.md).

Exercise: the kernel loads a second tile through the same barrier, and then
hangs or reads too early. Which parity, and how many bytes? Copy 32 rows of A
and then the next 32, with a grid of 1.

```exercise parity
]==] .. twice(0) .. [==[
```
]==],
  exercises = {
    parity = {
      makes = "k",
      hints = {"The first phase of a barrier has parity 0; when it is over, "
        .. "the next has 1.", "A wait for a completed phase returns at "
        .. "once: that is why the second one comes too early."},
      solution = twice(1),
      check = function(env)
        local A, y = cute.zeros({64, 64}, cute.bf16),
          cute.zeros({64, 64}, cute.bf16)
        for i = 0, 63 do
          for j = 0, 63 do A[{i, j}] = (i + 3 * j) % 64 end
        end
        local map, mA = cute.nvgpu.cpasync.make_tiled_tma_atom(env.load_op, A,
          env.layout, {32, 64})
        for seed = 0, 3 do
          env.k(map, mA, y):launch {grid = 1, block = 64, seed = seed,
                                    device = "sim:sm_90a"}
        end
        for i = 0, 63 do
          for j = 0, 63 do
            if y(i, j) ~= A(i, j) then
              return nil, ("y(%d, %d) is %s, and should be %s"):format(i, j,
                y(i, j), A(i, j))
            end
          end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
