--- Lesson: pipelines.
local cute = require "cute"

-- Compares k(A, B, C) with cute.ops.gemm. Returns its report, or nil and the
-- error.
local function multiplied(k, depth)
  local A, B = cute.randint(-3, 4, {128, depth}, cute.bf16),
    cute.randint(-3, 4, {128, depth}, cute.bf16)
  local C = cute.zeros({128, 128}, cute.f32)
  local report = k(A, B, C):launch {grid = 1, block = 128, device = "sim:sm_80"}
  local D = cute.ops.gemm(A, B, {device = "sim:sm_80", dtype = cute.f32})
  for i = 0, 127 do
    for j = 0, 127 do
      if C(i, j) ~= D(i, j) then
        return nil, ("K = %d: C(%d, %d) is %s, and should be %s"):format(depth,
          i, j, C(i, j), D(i, j))
      end
    end
  end
  return report
end

-- Returns how many tiles are being copied while a warp executes an MMA. To find
-- out, it steps through k(A, B, C) in the debugger. At each MMA it counts the
-- pending copies of the warp. It drops the largest counts, a fraction 1/`tiles`
-- of all, and converts the largest remaining count from copies to tiles.
local function tiles_under_way(k, A, B, C, tiles)
  local flying, copies = {}, 0
  cute.debug(k, A, B, C, {grid = 1, block = 128, device = "sim:sm_80"},
    function(s)
      repeat
        if s.at.op == "cp.async" then copies = copies + 1 end
        for _, w in ipairs(s.at.op == "mma" and s.stop:warps() or {}) do
          if w.warp == s.at.warp then flying[#flying + 1] = w.copies end
        end
      until not s:stepi()
    end)
  table.sort(flying, function(a, b) return a > b end)
  local n = flying[#flying // tiles + 1]
  return n and copies > 0 and n * tiles // copies or 0
end

-- Reports whether k is a pipeline of three stages; if not, returns nil and the
-- error.
local function is_three_deep(k)
  local TILES = 5
  local A = cute.zeros({128, 32 * TILES}, cute.bf16)
  local B, C = A:clone(), cute.zeros({128, 128}, cute.f32)
  -- The bytes of shared memory for three stages of (128 + 128) x 32 bf16
  -- elements.
  local want = 3 * 256 * 32 * 2
  local has = k(A, B, C):trace({block = 128, arch = "sm_80"}).info.smem
  if has < want then
    return nil, ("%d bytes of shared memory are no three stages, which take %d")
      :format(has, want)
  end
  local n = tiles_under_way(k, A, B, C, TILES)
  if n >= 2 then return true end
  return nil, ("while a tile is multiplied %s in flight, and two should be: "
    .. "which group does each wait wait for?"):format(n == 1 and "one more is"
    or "no other is")
end

local HEAD = [[
tiles = require "cute.tiles"
mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})
]]

local TWO = [[
k = cute.kernel("two", function(mA, mB, mC)
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {128, 32},
                               at = 0, stages = 2})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {128, 32},
                               at = 0, stages = 2})
  local C = tiles.result(mC, mma, {128, 128}, {0, 0})
  C.acc:fill(0)
  A.load(0, 0)
  B.load(0, 0)
  cute.arch.cp_async_commit_group()
  for k_tile in cute.range(A.k_tiles) do
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.when(cute.lt(k_tile + 1, A.k_tiles), function()
      A.load(k_tile + 1, (k_tile + 1) % 2)
      B.load(k_tile + 1, (k_tile + 1) % 2)
    end)
    cute.arch.cp_async_commit_group()
    for kb = 0, A.k_blocks - 1 do
      A.fetch(k_tile % 2, kb)
      B.fetch(k_tile % 2, kb)
      cute.gemm(mma, C.acc, A.frag(_, _, kb), B.frag(_, _, kb), C.acc)
    end
  end
  C.store(1, 0)
end)
]]

return {
  title = "Pipelines",
  text = [==[
A block that loads a tile, waits, multiplies, and only then loads the next tile
leaves the tensor cores idle most of the time. A *pipeline* requests tiles
ahead of time. `cp.async` makes that possible: a thread starts a copy into
shared memory, and continues. `cp_async_commit_group` closes a group of copies.
`cp_async_wait_group(n)` waits until at most n groups are in flight. The wait
covers only the thread's own copies; after `sync_threads` all threads see them.

`cute.tiles` has the common parts of a GEMM. `A.load(k_tile, stage)` requests a
tile. `A.fetch(stage, kb)` loads a block of it into registers, `A.frag`. With
two stages, the next tile is copied while this one is multiplied:

```lua
]==] .. HEAD .. TWO .. [==[
A, B = cute.full({128, 96}, 2, cute.bf16), cute.full({128, 96}, 1, cute.bf16)
C = cute.zeros({128, 128}, cute.f32)
k(A, B, C):launch {grid = 1, block = 128, device = "sim:sm_80"}
C(127, 127)  --> 192.0
```

One barrier a tile is enough. After it, all threads see the tile, and all have
read the previous one, whose stage the next copies overwrite. Does that hold in
every order of warps and copies? `check` tries them:

```lua
k(A, B, C):check({grid = 1, block = 128}).verdict  --> ok
```

More stages hide more latency. On an H200, at 8192^3, the second stage gains 11
% and the third 5 % (docs/ladders.md).

Exercise: make the pipeline three stages deep. Two tiles are in flight while
one is multiplied: which group does the wait wait for? Empty groups are valid:
commit one in each iteration.

```exercise three
]==] .. HEAD .. TWO .. [==[
```
]==],
  exercises = {
    three = {
      makes = "k",
      hints = {"Before the loop load tiles 0 and 1, each with its own "
        .. "commit; K may have a single tile: cute.lt(1, A.k_tiles).",
        "wait_group(1): all but the newest group have landed. That is tile "
        .. "k_tile.", "In the loop load tile k_tile + 2 into stage "
        .. "(k_tile + 2) % 3."},
      solution = HEAD .. [[
k = cute.kernel("three", function(mA, mB, mC)
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {128, 32},
                               at = 0, stages = 3})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {128, 32},
                               at = 0, stages = 3})
  local C = tiles.result(mC, mma, {128, 128}, {0, 0})
  C.acc:fill(0)
  local function load(k_tile)
    cute.when(cute.lt(k_tile, A.k_tiles), function()
      A.load(k_tile, k_tile % 3)
      B.load(k_tile, k_tile % 3)
    end)
    cute.arch.cp_async_commit_group()
  end
  load(0)
  load(1)
  for k_tile in cute.range(A.k_tiles) do
    cute.arch.cp_async_wait_group(1)
    cute.arch.sync_threads()
    load(k_tile + 2)
    for kb = 0, A.k_blocks - 1 do
      A.fetch(k_tile % 3, kb)
      B.fetch(k_tile % 3, kb)
      cute.gemm(mma, C.acc, A.frag(_, _, kb), B.frag(_, _, kb), C.acc)
    end
  end
  C.store(1, 0)
end)
]],
      check = function(env)
        for _, depth in ipairs {32, 64, 160} do
          local report, why = multiplied(env.k, depth)
          if not report then return nil, why end
        end
        local deep, why = is_three_deep(env.k)
        if not deep then return nil, why end
        local A, B = cute.zeros({128, 160}, cute.bf16),
          cute.zeros({128, 160}, cute.bf16)
        local launch = env.k(A, B, cute.zeros({128, 128}, cute.f32))
        local verdict = launch:check {grid = 1, block = 128}
        return verdict.verdict == "ok", tostring(verdict)
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
