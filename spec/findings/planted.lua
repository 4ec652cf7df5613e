-- 90 faults that were drawn at random from the lines of scripts/ and kernels/.
-- Faults 1 to 30 were drawn before cutelua proposed edits, and 31 to 90 before
-- it checked its edits. The authors did not look at faults 61 to 90 during the
-- work. `planted.lua [FIRST [LAST]]` checks the script of each fault, and tries
-- the first three edits of the finding, each on the faulty text. The best edit
-- comes first. The script prints which faults are repaired.
package.path = "./?.lua;" .. package.path
local changes = require "cutelua.findings.changes"
local json = require "cutelua.text.json"
local support = require "spec.support"

local planted = {}

-- The faults. `#` precedes the kind of a fault. `@` precedes the file, a number
-- n, and the script that runs the file. The fault is in the nth line that
-- begins with the text after `-`. The text after `+` (or nothing) replaces it.
local FAULTS = [[
# missing advance
@ kernels/attention_sm90/consumer 1 attention_hopper
- v:advance()
# missing advance
@ kernels/attention_bwd_sm90/transposed 1 attention_backward_hopper
- g:advance()
# missing barrier
@ kernels/scan 2 scan
- cute.arch.sync_threads()
# missing barrier
@ kernels/selective_scan 1 selective_scan
- cute.arch.sync_threads()
# missing commit
@ scripts/gemm2stage 2 gemm2stage
- cute.arch.cp_async_commit_group()
# missing commit
@ kernels/attention_bwd_sm90/consumer 1 attention_backward_hopper
- cute.arch.cp_async_bulk_commit_group()
# missing fence
@ kernels/attention_bwd_sm90/consumer 2 attention_backward_hopper
- cute.arch.fence_view_async_shared()
# missing release/wait/acquire
@ kernels/gemm_sm90/mainloop 1 conv2d_hopper
- pipe:consumer_wait(read)
# missing release/wait/acquire
@ kernels/attention_sm90/consumer 2 attention_hopper
- x.k.pipe:consumer_wait(k)
# missing sync_warp
@ kernels/selective_scan 1 selective_scan
- cute.arch.sync_warp()
# missing sync_warp
@ kernels/attention_bwd_sm90/consumer 1 attention_backward_hopper
- cute.arch.sync_warp()
# missing wait_group
@ scripts/gemm3stage 1 gemm3stage
- cute.arch.cp_async_wait_group(STAGES - 2)
# missing wait_group
@ kernels/gemm_int4 1 gemm_int4
- cute.arch.cp_async_wait_group(pending)
# off by one
@ kernels/topk 1 topk
- local there = cute.lt(row, X.shape[1])
+ local there = cute.le(row, X.shape[1])
# off by one
@ kernels/conv2d 1 conv2d
- local there = cute.lt((x + t * step):to(cute.u32), extent)
+ local there = cute.le((x + t * step):to(cute.u32), extent)
# weaker wait
@ scripts/gemm_l2swizzle 1 gemm_l2swizzle
- cute.arch.cp_async_wait_group(0)
+ cute.arch.cp_async_wait_group(1)
# weaker wait
@ scripts/copy_swizzled 1 copy_swizzled
- cute.arch.cp_async_wait_group(0)
+ cute.arch.cp_async_wait_group(1)
# wrong count
@ scripts/gemm_ws 1 gemm_ws
- consumer_group = Group(Agent.Warp, 4 * WARPGROUPS)}
+ consumer_group = Group(Agent.Warp, 3 * WARPGROUPS)}
# wrong count
@ scripts/gemm_tma 1 gemm_tma
- consumer_group = Group(pipeline.Agent.Warp, 4)}
+ consumer_group = Group(pipeline.Agent.Warp, 5)}
# wrong expect_tx
@ kernels/attention_bwd_sm90/kernel 1 attention_backward_hopper
- tx_count = t.atom.tx_bytes + 4 * o.tile[1], producer_group = one,
+ tx_count = t.atom.tx_bytes * 2 + 4 * o.tile[1], producer_group = one,
# wrong expect_tx
@ scripts/gemm_tma 1 gemm_tma
- num_stages = STAGES, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
+ num_stages = STAGES, tx_count = tma_a.tx_bytes + 16 + tma_b.tx_bytes,
# wrong stage
@ scripts/gemm_tma 1 gemm_tma
- cute.gemm(mma, C.acc, tCrA(_, _, _, read.index), tCrB
+ cute.gemm(mma, C.acc, tCrA(_, _, _, 0), tCrB
# wrong stage
@ kernels/selective_scan 1 selective_scan
- local delta = read(g.delta.smem(_, _, stage), g.c, t)
+ local delta = read(g.delta.smem(_, _, 0), g.c, t)
# missing cluster op
@ scripts/copy_tma 1 copy_tma
- arch.cluster_arrive()
# missing fence
@ kernels/attention_bwd_sm90/parts 1 attention_backward_hopper
- warpgroup.fence()
# swapped coordinates
@ kernels/flash 1 attention_decode
- sr[{i, j}] = sr(i, j) - self.base[i]
+ sr[{j, i}] = sr(i, j) - self.base[i]
# swapped coordinates
@ kernels/attention_sm90/consumer 1 attention_hopper
- cute.gemm(times_v, acc, p, V(_, _, _, v.index), acc)
+ cute.gemm(times_v, acc, p, V(_, _, v.index, _), acc)
# wrong parity
@ scripts/copy_tma 1 copy_tma
- arch.mbarrier_wait(full, 0)
+ arch.mbarrier_wait(full, 1)
# missing wait_group
@ scripts/gemm_wgmma 1 gemm_wgmma
- cute.arch.cp_async_wait_group(STAGES - 2)
# weaker wait
@ scripts/copy_async 1 copy_async
- cute.arch.cp_async_wait_group(0)
+ cute.arch.cp_async_wait_group(1)
# coordinates
@ kernels/attention_bwd_sm90/transposed 1 attention_backward_hopper
- P.ds, P.left_ds = weights.narrowed(o, scores)
+ P.ds, P.left_ds = weights.narrowed(scores, o)
# grid
@ scripts/gemm_ws 1 gemm_ws
- tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
+ tiles.count(mC.shape[1], BM), (tiles.count(mC.shape[2], BN) - 1), 8)
# operand
@ scripts/gemm3stage 1 gemm3stage
- local tAgA, tBgB = thr:partition_S(gA), thr:partition_S(gB)
+ local tBgB, tBgB = thr:partition_S(gA), thr:partition_S(gB)
# wait
@ scripts/gemm_wgmma 1 gemm_wgmma
- cute.arch.cp_async_wait_group(STAGES - 2)
+ cute.arch.cp_async_wait_group(STAGES - 1)
# accumulator
@ kernels/attention_sm90/consumer 1 attention_hopper
- P.acc:fill(0)
# bounds
@ kernels/conv2d 1 conv2d_hopper
- local reach = o.dilation[i] * (w.shape[i + 1] - 1) + 1
+ local reach = o.dilation[i] * (w.shape[i + 1]) + 1
# phase
@ kernels/attention_bwd_sm90/producer 2 attention_backward_hopper
- full:advance()
# wait
@ kernels/attention_sm90/consumer 1 attention_hopper
- warpgroup.wait_group(0)
+ warpgroup.wait_group(1)
# wait
@ scripts/gemm_base 1 gemm_base
- cute.arch.cp_async_wait_group(0)
# stage
@ kernels/attention_bwd_sm90/consumer 1 attention_backward_hopper
- local to = runs(_, _, state.index)
+ local to = runs(_, _, stat0)
# rank
@ scripts/copy_tma 1 copy_tma
- local tAsA, tAgA = cpasync.tma_partition(load, rank, cute.make_layout(2),
+ local tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(2),
# rank
@ scripts/copy_tma 1 copy_tma
- local rank = arch.block_idx_in_cluster()
+ local rank = arch.block_idx()
# wait
@ scripts/gemm3stage 1 gemm3stage
- cute.arch.cp_async_wait_group(STAGES - 2)
# race
@ scripts/copy_basic 1 copy_basic
- cute.arch.sync_threads()
# operand
@ kernels/conv2d 1 conv2d_hopper
- local out = {x.shape[1], 0, 0, w.shape[1]}
+ local out = {x.shape[2], 0, 0, w.shape[1]}
# operand
@ scripts/gemm3stage 1 gemm3stage
- cute.copy(g2s, tAgA(_, _, _, stage), tAsA(_, _, _, stage))
+ cute.copy(g2s, tAgA(_, _, _, stage), tAsB(_, _, _, stage))
# bounds
@ kernels/attention_decode/part 1 attention_decode
- for i = 0, ahead - 1 do
+ for i = 0, ahead do
# race
@ kernels/selective_scan 1 selective_scan
- cute.arch.sync_warp()
# mask
@ kernels/attention_sm90/kernel 1 attention_hopper
- mask = mask, near = near, log2 = log2, rises = o.rises,
+ mask = 1, near = near, log2 = log2, rises = o.rises,
# layout
@ scripts/gemm_simt 1 gemm_simt
- local neighbours = cute.make_layout({16, 4}, {4, 1})
+ local neighbours = cute.make_layout({16, 4}, {1, 4})
# predicate
@ kernels/selective_scan 1 selective_scan
- if async then return cute.copy(copy, src(_, _, _, k), to, pred) end
+ if async then return cute.copy(copy, src(_, _, _, k), to) end
# operand
@ scripts/gemm_wgmma 1 gemm_wgmma
- local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
+ local sB = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
# stage
@ scripts/gemm_ws 1 gemm_ws
- cute.gemm(mma, acc, tCrA(_, _, _, read.index), tCrB(_, _, _, read.index),
+ cute.gemm(mma, acc, tCrA(_, _, _, re0), tCrB(_, _, _, read.index),
# rank
@ kernels/rows 1 rmsnorm
- local n, stride = t.shape[rank], t.stride[rank]
+ local n, stride = t.shape[0], t.stride[rank]
# phase
@ kernels/attention_bwd_sm90/transposed 1 attention_backward_hopper
- q:advance()
# coordinates
@ scripts/copy_async 1 copy_async
- local at = copytile.by_rows(mA, TILE)
+ local at = copytile.by_rows(TILE, mA)
# fence
@ scripts/copy_tma 2 copy_tma
- arch.mbarrier_init_fence()
# mask
@ kernels/reduce 1 rmsnorm_backward
- local warp, lane = tid // 32, tid % 32
+ local warp, lane = tid // 32, tid % 16
# mask
@ scripts/copy_tma 1 copy_tma
- cute.copy(load, tAgA, tAsA, {tma_bar_ptr = full, mcast_mask = 3})
+ cute.copy(load, tAgA, tAsA, {tma_bar_ptr = full, mcast_mask = 1})
# fence
@ kernels/attention_sm90/consumer 4 attention_hopper
- warpgroup.fence()
# layout
@ kernels/gemm_simt 1 sgemm
- cute.make_layout({2 * p.warps, 4}, {4, 1}), _}
+ cute.make_layout({2 * p.warps, 4}, {1, 4}), _}
# accumulator
@ kernels/attention_decode 1 attention_decode
- x:fill(0)
# bounds
@ kernels/attention_bwd_sm90/order 1 attention_backward_hopper
- first = cute.min(first, last)
+ first = cute.max(first, last)
# fence
@ scripts/copy_tma 1 copy_tma
- arch.mbarrier_init_fence()
# commit
@ kernels/attention_decode/part 2 attention_decode
- cute.arch.cp_async_commit_group()
# predicate
@ kernels/scan 1 scan
- cute.when(cute.ge(last, 0), function()
+ cute.when(cute.gt(last, 0), function()
# race
@ kernels/attention 3 attention
- arch.sync_threads()
# accumulator
@ kernels/flash 1 attention_hopper
- base:fill(0)
# accumulator
@ kernels/gemm_int4 1 gemm_int4
- b.part:fill(0)
# grid
@ scripts/attention_backward 1 attention_backward
- grid = k.grid(p.s, p.t, p.h, p.g, p.b),
+ grid = k.grid(p.s, p.t, p.h, p.g, p.b) - 1,
# commit
@ kernels/attention 3 attention
- arch.cp_async_commit_group()
# predicate
@ kernels/rows 1 rmsnorm_backward
- plan.width * t.bits), from, to, pred and {pred = pred})
+ plan.width * t.bits), from, to, pred and {})
# commit
@ scripts/gemm_wgmma 1 gemm_wgmma
- warpgroup.commit_group()
# race
@ kernels/attention_sm90/producer 1 attention_hopper
- x.pipe:producer_acquire(state)
# coordinates
@ kernels/attention_bwd 1 attention_backward
- local heads = flash.group(a.Q, a.K)
+ local heads = flash.group(a.K, a.Q)
# stage
@ kernels/attention_bwd_sm90/producer 1 attention_backward_hopper
- request(state.index, bar, m, 0, h, b)
+ request(0, bar, m, 0, h, b)
# layout
@ kernels/selective_scan 1 selective_scan
- width * dtype.bits), cute.make_layout({across, along}, {along, 1}),
+ width * dtype.bits), cute.make_layout({across, along}, {1, along}),
# mask
@ kernels/attention_sm90/consumer 1 attention_hopper
- local fetch, mask = nil, x.mask
+ local fetch, mask = 1, x.mask
# commit
@ scripts/copy_async 1 copy_async
- cute.arch.cp_async_commit_group()
# grid
@ kernels/attention_bwd_sm90/kernel 1 attention_backward_hopper
- local n, g, b = order.place(t, tiles.count(T, N), G, B, section)
+ local n, g, b = order.place(t, cute.floor_div(T, N), G, B, section)
# bounds
@ scripts/gemm_ws 2 gemm_ws
- for k_tile in cute.range(k_tiles) do
+ for k_tile in cute.range(k_tiles + 1) do
# coordinates
@ kernels/gemm_sm90/kernel 1 conv2d_hopper
- local acc = cute.make_rmem_tensor(mma:partition_shape_C {rows, bn}, o.acc)
+ local acc = cute.make_rmem_tensor(mma:partition_shape_C {bn, rows}, o.acc)
# fence
@ scripts/gemm_wgmma 1 gemm_wgmma
- warpgroup.fence()
# predicate
@ kernels/rows 1 rmsnorm_backward
- at.next.inside = at.next.inside or cute.lt(tile + grid, tiles)
+ at.next.inside = at.next.inside or cute.le(tile + grid, tiles)
# rank
@ kernels/flash 1 attention_decode
- local stride = t.stride[rank]
+ local stride = t.stride[0]
# phase
@ kernels/gemm_sm90/producer 1 conv2d_hopper
- write:advance()
# phase
@ scripts/copy_tma 1 copy_tma
- arch.mbarrier_wait(full, 0)
+ arch.mbarrier_wait(full, 1 - (0))
# grid
@ kernels/gemm_int4 1 gemm_int4
- local all = tiles.count(o.n, 16) * tiles.count(m, rows)
+ local all = tiles.count(o.n, 16) * (tiles.count(m, rows) - 1)
# layout
@ scripts/copy_swizzled 1 copy_swizzled
- local thr_in, thr_out = copy_in:get_slice(tid), copy_out:get_slice(tid)
+ local thr_in, thr_out = copy_in:get_slice(0), copy_out:get_slice(tid)
# stage
@ kernels/attention_sm90/producer 1 attention_hopper
- cute.copy(x.atom, box, into(_, state.index), {
+ cute.copy(x.atom, box, into(_, s0), {
]]

-- Returns the faults: {kind =, file =, nth =, by = a script, from =, to =}.
function planted.list()
  local list = {}
  for mark, text in FAULTS:gmatch "([#@+-]) ([^\n]*)\n" do
    local f = list[#list]
    if mark == "#" then
      list[#list + 1] = {kind = text, to = ""}
    elseif mark == "@" then
      f.file, f.nth, f.by = text:match "^(%S+) (%d+) (%S+)$"
      f.nth = tonumber(f.nth)
    else
      f[mark == "-" and "from" or "to"] = text
    end
  end
  return list
end

-- Returns the text of a fault's file with the fault in it.
local function faulty(f)
  local lines, left = {}, f.nth
  for line in (support.read(f.file .. ".lua")):gmatch "([^\n]*)\n" do
    local space, code = line:match "^(%s*)(.*)$"
    if code:sub(1, #f.from) == f.from then
      left = left - 1
      if left == 0 then line = space .. f.to .. code:sub(#f.from + 1) end
    end
    lines[#lines + 1] = line
  end
  assert(left <= 0, f.from)
  return table.concat(lines, "\n") .. "\n"
end

-- Runs a fault's script with `text` in place of its file. Returns the record of
-- `cutelua check`.
local function checked(f, text, folder)
  local script = ("scripts/%s.lua"):format(f.by)
  f.path = ("%s/%s"):format(folder, (f.file .. ".lua"):match "[^/]*$")
  local path = f.path
  support.write(path, text)
  if f.file .. ".lua" ~= script then
    path = folder .. "/run.lua"
    local run = ([[
package.preload[%q] = assert(loadfile(%q))
arg[0] = %q
dofile(%q)
]]):format(f.file:gsub("/", "."), f.path, script, script)
    -- Writes compiled code, because no edit can change it.
    support.write(path, string.dump(assert(load(run)), true))
  elseif f.by == "copy_tma" then
    support.write(folder .. "/copy_tile.lua",
                  support.read "scripts/copy_tile.lua")
  end
  return json.decode((support.exec {support.program, "check", "--no-gpu",
    "--format", "json", path}))
end

--- Checks a fault, and then its repairs. Returns the code of its first finding,
-- and the number of the edit that repairs it, or nil if none does.
---@param f table of planted.list
---@return string? code
---@return integer? nth
function planted.try(f)
  local folder = support.folder()
  local text, repaired = faulty(f), nil
  local list = checked(f, text, folder).findings
  local found = list[1] or {}
  for _, one in ipairs(list) do
    if not found.edits and one.edits then found = one end
  end
  for i, edit in ipairs(found.edits or {}) do
    if i > 3 or repaired then break end
    if edit.changes[1].file == f.path then
      local again = checked(f, changes.applied(text, edit), folder)
      if again.verdict == "ok" then repaired = i end
    end
  end
  support.remove(folder)
  return found.code, repaired
end

if arg and arg[0] and arg[0]:find "findings/planted%.lua$" then
  local list, n = planted.list(), 0
  for i = tonumber(arg[1]) or 1, tonumber(arg[2]) or #list do
    local code, repaired = planted.try(list[i])
    if repaired then n = n + 1 end
    print(("%2d %s: %s: %s: %s"):format(i, list[i].kind, list[i].file, code,
      repaired and "repaired by edit " .. repaired or "not repaired"))
  end
  print(("%d repaired"):format(n))
end

return planted
-- SPDX-License-Identifier: MIT
