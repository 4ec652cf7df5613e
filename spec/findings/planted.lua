-- Faults drawn at random from the lines of scripts/ and kernels/ before the
-- edits that repair them were written. `planted.lua [FIRST [LAST]]` checks the
-- script of each, applies its first finding's edits, the best first, at most
-- three, each to the text as it was, and prints which fault is repaired.
package.path = "./?.lua;" .. package.path
local changes = require "cutelua.findings.changes"
local json = require "cutelua.text.json"
local support = require "spec.support"

local planted = {}

-- For each fault: its kind; the file, which of the lines that begin with the
-- text behind `-`, and the script that runs the file. The text behind `+`
-- replaces that text.
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

-- Returns the text of a fault's file with the fault.
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

-- Runs the script of a fault whose file has a text; returns the record of its
-- check.
local function checked(f, text, folder)
  local script = ("scripts/%s.lua"):format(f.by)
  f.path = ("%s/%s"):format(folder, (f.file .. ".lua"):match "[^/]*$")
  local path = f.path
  support.write(path, text)
  if f.file .. ".lua" ~= script then
    path = folder .. "/run.lua"
    support.write(path, ([[
package.preload[%q] = assert(loadfile(%q))
arg[0] = %q
dofile(%q)
]]):format(f.file:gsub("/", "."), f.path, script, script))
  elseif f.by == "copy_tma" then
    support.write(folder .. "/copy_tile.lua",
                  support.read "scripts/copy_tile.lua")
  end
  return json.decode((support.exec {support.program, "check", "--no-gpu",
    "--seconds", "300", "--format", "json", path}))
end

--- Checks a fault, and then its repairs. Returns the code of its first finding,
-- and which edit repairs it; the second is nil if none does.
---@param f table of planted.list
---@return string? code
---@return integer? nth
function planted.try(f)
  local folder = support.folder()
  local text, repaired = faulty(f), nil
  local found = checked(f, text, folder).findings[1] or {}
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
