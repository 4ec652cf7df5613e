-- A partial sum is written by a bulk store. Fault: the flag is stored once the
-- source was read, but the store may not be complete.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/block-race/flag_behind_wait_group_read.lua:57 in main
--   chunk
-- expect: flag_behind_wait_group_read.lua:54: read by block (1,0,0) and write
--   by block (0,0,0) with nothing to order them: element 0 of global tensor
--   'part' [block-race]
-- expect: second access: flag_behind_wait_group_read.lua:44, thread 0
-- expect: cp_async_bulk_wait_group(n, true) waits only until the source is
--   read: before you signal other threads, wait without `read`
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local when = cute.when
local STORE = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function await(flag)
  local how = {sem = "acquire", scope = "gpu"}
  cute.loop(function()
    return arch.load(flag.iterator, nil, how):eq(0)
  end, function() end)
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(part, y, flag)
  local t, s = arch.thread_idx(), smem(64)
  when(arch.block_idx():eq(0), function()
    s[t] = t:to(cute.f32)
    arch.fence_view_async_shared()
    arch.sync_threads()
    thread0(function()
      local from, to = run64(s, 0, part)
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0, true)  -- wrong
      -- mend: arch.cp_async_bulk_wait_group(0)
      arch.fence_proxy "async.global"
      arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
    end)
  end, function()
    thread0(function() await(flag) end)
    arch.sync_threads()
    y[t] = part[t]
  end)
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32),
  cute.zeros({1}, cute.i32)):launch {
  grid = 2, block = 64, device = "sim:sm_90a", seed = 1}
