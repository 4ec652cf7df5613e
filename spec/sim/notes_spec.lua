-- What is no fault and hardly meant is told beside a run without any: work
-- that nobody sees the result of.
local cute = require "cute"
local support = require "spec.support"
local words = require "cute.lang.report"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

-- The report of a launch with 32 threads, and what it says on standard error.
local function run(f, ...)
  local said, tell = {}, words.tell
  words.tell = function(text) said[#said + 1] = text end
  local k <const> = cute.kernel("k", f)
  local arguments = {...}
  local ok, r = pcall(function()
    local launch = {grid = 1, block = 32, device = "sim:sm_90a",
      faults = "return"}
    local r = support.report(k(table.unpack(arguments)):launch(launch))
    support.report(k(table.unpack(arguments)):launch(launch))
    return r
  end)
  words.tell = tell
  if not ok then error(r, 0) end
  return r, said
end

-- A shared tensor of 128 values that cp.async, or plain stores, fill.
local function fill(how, after)
  return function(x, y)
    local t = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128), 128)
    if how == "async" then
      local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32)
      cute.copy(atom, cute.local_tile(x, {4}, {t}),
        cute.local_tile(s, {4}, {t}))
      arch.cp_async_commit_group()
      arch.cp_async_wait_group(0)
    else
      s[t] = x[t]
    end
    y[t] = 1
    if after then after(s, t, y) end
  end
end

local function filled(how, after)
  return run(fill(how, after), cute.ones({128}, cute.f32),
    cute.zeros({32}, cute.f32))
end

describe("a note tells of a shared tensor that", function()
  it("is filled and never read, once a program", function()
    for _, how in ipairs {"async", "plain"} do
      local r, said = filled(how)
      local line = debug.getinfo(fill, "S").linedefined
        + (how == "async" and 6 or 11)
      local text = ("notes_spec.lua:%d: shared tensor 's' is filled here and "
        .. "never read"):format(line)
      assert.same({"cutelua: note: kernel k: " .. text}, said)
      assert.is_true(r.ok)
      assert.equal("simulator: kernel k: nothing to report\nnote: "
        .. text, tostring(r))
      assert.same({text}, require "cute.json".decode(r:json())
        .notes)
    end
  end)

  it("is not read, or is only told where there is no fault", function()
    local function quiet(...)
      local r, said = filled(...)
      assert.same({}, said)
      return r
    end
    for _, how in ipairs {"async", "plain"} do
      assert.is_true(quiet(how, function(s, t, y) y[t] = s[t] end).ok
        == (how == "plain"))
      assert.is_true(quiet(how, function(s, t)
        cute.when(t:eq(0), function() arch.atomic_add(s.iterator, 1.0) end)
      end).reports ~= nil)
      assert.is_false(quiet(how, function(_, t, y) y[t + 1] = 1 end).ok)
    end
  end)
end)

describe("a note tells of a TMA store", function()
  -- Tiles of 16 rows of an output of 32: tile 1 and the one that n tells.
  local function store(one, n)
    local D = cute.zeros({32, 16}, cute.bf16)
    local smem = cute.make_layout({16, 16}, {16, 1})
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, smem, {16, 16})
    return run(function(a, c, tile)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.bf16, smem, 128)
      for i = 0, 15 do s[{i, t % 16}] = 1.0 end
      arch.fence_proxy("async.shared")
      arch.sync_threads()
      local g = cute.local_tile(c, {16, 16}, {cute._, cute._})
      local from, to = cpasync.tma_partition(a, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
      cute.when(t:eq(0), function()
        for i = one and 0 or 1, 1 do
          cute.copy(a, from, to[{cute._, tile + i, 0}])
        end
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)
      end)
    end, atom, coords, n)
  end

  it("whose boxes all lie outside, not of one that ends there", function()
    local r, said = store(false, 1)
    assert.is_true(r.ok, tostring(r))
    assert.equal(1, #said)
    assert.matches("^cutelua: note: kernel k: notes_spec.lua:%d+: no "
      .. "box that this TMA store writes has an element inside of tensor "
      .. "'[^']*': nothing is stored$", said[1])
    r, said = store(true, 1)
    assert.is_true(r.ok, tostring(r))
    assert.same({}, said)
  end)
end)
