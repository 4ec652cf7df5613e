-- Tests reports of mistakes with the stages of a ring, of waits by other lanes,
-- and of layouts that map two coordinates to one element. The advice of the
-- first report must name the mistake.
local blamed = require "spec.blamed"
local cute = require "cute"
local support = require "spec.support"

local arch = cute.arch

-- One warp copies columns by cp.async through a pipeline, and reads them.
blamed.KERNELS.columns = [[
local TILES, STAGES = 6, 3
local X = cute.zeros(cute.make_layout {128, TILES}, cute.f32)
local Y = cute.zeros({32}, cute.f32)
local k = cute.kernel("columns", function(x, y)
  local t = arch.thread_idx()
  local pipe = pipeline.PipelineCpAsync {num_stages = STAGES}
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout({128, STAGES}, {1, 128}), 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32)
  local write, read = pipe:make_producer_state(), pipe:make_consumer_state()
  local function start(tile)
    pipe:producer_acquire(write)
    cute.when(cute.lt(tile, TILES), function()
      cute.copy(atom, cute.local_tile(x(_, tile), {4}, {t}),
        cute.local_tile(s(_, write.index), {4}, {t}))
    end)
    pipe:producer_commit(write)
    write:advance()
  end
  for t = 0, STAGES - 2 do start(t) end
  local sum = cute.var(0.0, cute.f32)
  for tile in cute.range(TILES) do
      pipe:consumer_wait(read)
      for i = 0, 3 do
        sum.value = sum.value + s[{127 - 4 * t - i, read.index}]
      end
      pipe:consumer_release(read)
      read:advance()
      start(tile + STAGES - 1)
  end
  pipe:producer_tail(write)
  y[t] = sum.value
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 32, device = "sim",
    faults = "return", seed = seed, output = false}
end
]]

-- A block copies tiles by cp.async to two stages alternately, and reads them.
blamed.KERNELS.pairs = [[
local TILES = 7
local X = cute.zeros({128 * TILES}, cute.f32)
local Y = cute.zeros({128}, cute.f32)
local k = cute.kernel("pairs", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128, 2}, 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32,
    {num_bits_per_copy = 32})
  local tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(128),
    cute.make_layout(1))
  local thr = tiled:get_slice(tid)
  local tx = thr:partition_S(cute.local_tile(x, {128}, {_}))
  local ts = thr:partition_D(s)
  cute.copy(tiled, tx(_, _, 0), ts(_, _, 0))
  arch.cp_async_commit_group()
  local sum = cute.var(0.0, cute.f32)
  for t in cute.range(TILES) do
    cute.when(cute.lt(t + 1, TILES), function()
      cute.copy(tiled, tx(_, _, t + 1), ts(_, _, (t + 1) % 2))
    end)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(1)
    arch.sync_threads()
    sum.value = sum.value + s[{127 - tid, t % 2}]
    arch.sync_threads()
  end
  y[tid] = sum.value
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 128, device = "sim",
    faults = "return", seed = seed, output = false}
end
]]

-- Runs a changed kernel under several seeds. Returns the text of each first
-- report, without the consequences that it lists.
local function first(kernel, changes)
  local list = {}
  for seed = 1, 4 do
    local r = blamed.run(kernel, changes, seed)
    list[seed] = tostring(r):gsub("\n%s+%d+ more may follow.*$", "")
  end
  return list
end

-- Asserts that all first reports of a changed kernel end with this advice.
local function advises(kernel, changes, advice)
  for _, text in ipairs(first(kernel, changes)) do
    local last = text:match "[^\n]*$"
    assert.truthy(last:find(advice, 1, true), text)
  end
end

describe("the kernels of this spec", function()
  it("have no fault", function()
    for _, name in ipairs {"columns", "pairs"} do
      for seed = 1, 3 do
        local r = blamed.run(name, {}, seed)
        assert.is_true(r.ok, tostring(r))
      end
    end
  end)
end)

describe("a ring of groups", function()
  local READY = "which no thread has read: do the copy, the wait and this read "
    .. "use the same stage?"

  it("that is read or filled in another stage", function()
    for _, change in ipairs {
      {"ts(_, _, t % STAGES)", "ts(_, _, (t + 1) % STAGES)"},
      {"t % STAGES}]", "(t + 2) % STAGES}]"},
    } do
      advises("groups", {change}, "or does the read use another stage than the "
        .. "wait, which completed the copy to coordinate (")
    end
    advises("columns", {{"      read:advance()\n", ""}}, READY)
  end)

  it("whose first stage is not filled before the loop", function()
    advises("groups", {{"for t = 0, STAGES - 2 do fetch(t) end",
      "arch.cp_async_commit_group() fetch(1)"}}, "in another stage, but not "
      .. "this one: do the copies before the loop fill the first stages")
  end)

  it("whose group is not committed", function()
    advises("groups", {{"arch.cp_async_commit_group()\n", "\n"}, {
      "for t = 0, STAGES - 2 do fetch(t) end", "fetch(0) "
      .. "arch.cp_async_commit_group() fetch(1)"}}, "in another stage, is in "
      .. "no group, so that the wait counts one group less")
  end)

  it("whose group has the copies of two stages", function()
    advises("groups", {{"for t = 0, STAGES - 2 do fetch(t) end", "for t = 0, "
      .. "STAGES - 2 do cute.copy(tiled, tx(_, _, t), ts(_, _, t)) end "
      .. "arch.cp_async_commit_group()"}}, "in another stage: call "
      .. "cp_async_commit_group() after the copies of each stage")
  end)

  it("whose last iterations commit nothing", function()
    advises("groups", {{"arch.cp_async_commit_group()", "cute.when(cute.lt(t, "
      .. "TILES), arch.cp_async_commit_group)"}}, "no group was committed "
      .. "since the wait before this one")
  end)

  it("whose wait leaves a group too many pending, and is told so", function()
    advises("groups", {{"cp_async_wait_group(STAGES - 2)",
      "cp_async_wait_group(STAGES - 1)"}}, "the wait leaves its group pending: "
      .. "cp_async_wait_group(1) waits for that group too")
  end)

  it("whose stage is filled again before all have read it", function()
    local list = first("groups", {{"    fetch(t + STAGES - 1)\n", ""},
      {"arch.cp_async_wait_group(STAGES - 2)", "fetch(t + STAGES - 1) "
      .. "arch.cp_async_wait_group(STAGES - 1)"}})
    local ahead
    for _, text in ipairs(list) do
      assert.is_nil(text:find("no barrier after its wait", 1, true), text)
      ahead = ahead or text:find("iteration ahead started it", 1, true)
    end
    assert.truthy(ahead, list[1])
  end)

  it("whose stage is filled again before its data was read", function()
    advises("pairs", {{"cute.range(TILES)", "cute.range(1, TILES)"}},
            "the stage is filled again before its data was read")
  end)

  it("that has fewer stages than the kernel uses", function()
    for _, text in ipairs(first("pairs", {{"{128, 2}", "{128, 1}"}})) do
      assert.matches("^[^\n]*\n[^\n]*outside shared tensor 's': coordinate "
        .. "%(%d+,%d%) of %(128,1%)", text)
    end
  end)

  it("whose copies before the loop fill all stages", function()
    advises("columns", {{"for t = 0, STAGES - 2", "for t = 0, STAGES - 1"}},
            "fill one stage less before the loop")
  end)
end)

describe("a ring of mbarriers", function()
  it("that is read or filled in another stage", function()
    for _, change in ipairs {{"4 * warp\n", "4 * warp i = (i + 1) % STAGES\n"},
                             {"ts(_, i)", "ts(_, 0)"}} do
      advises("ring", {change}, "and this read use the same stage?")
    end
  end)

  it("whose reader or producer stays at one stage", function()
    for nth = 1, 2 do
      advises("roles", {{"local i, turn = r % STAGES, r // STAGES % 2",
        "local i, turn = 0, r % 2", nth}}, "so that the waits go around the "
        .. "ring")
    end
    advises("ring", {{"local i, turn = t % STAGES, t // STAGES % 2",
      "local i, turn = 0, 0", 2}}, "state:advance() of a pipeline, or the next "
      .. "index and parity")
  end)

  it("that shares an object with another ring", function()
    local one = {"(cute.i64, STAGES)", "(cute.i64, 2 * STAGES)"}
    local half = {"arch.alloc_smem(cute.i64, STAGES)", "full + STAGES"}
    -- One line initializes the mbarriers of both rings.
    local line = {"--@full\n      ", ""}
    local count = {"full + i, 32)", "full + i, 64)"}
    for _, changes in ipairs {{one, half, count}, {one, half, line, count}} do
      advises("roles", changes, "number of threads that arrive in a phase")
    end
    advises("roles", {one, half, {"local i, turn = r % STAGES, r // STAGES % 2",
      "local i, turn = 0, r % 2", 2}}, "waits go around the ring")
  end)
end)

describe("a ring of warp roles", function()
  local RELEASED = "the thread that read had released the stage before this "
    .. "read: does the read use the index of its wait"

  -- Asserts that some of the first reports of a changed kernel have this
  -- advice, and that none has the text `wrong`.
  local function some(changes, advice, wrong)
    local found
    for _, text in ipairs(first("roles", changes)) do
      assert.is_nil(text:find(wrong, 1, true), text)
      found = found or text:find(advice, 1, true)
    end
    assert.truthy(found, changes[1][1])
  end

  it("that is read in another stage, or after the release", function()
    some({{"s[{31 - lane, i}]", "s[{31 - lane, 0}]"}}, RELEASED, "index of the "
      .. "write")
    some({{"local v = s", "arch.mbarrier_arrive(empty + i) local v = s"},
          {"      arch.mbarrier_arrive(empty + i)  --@release\n", ""}},
         RELEASED, "for another stage")
  end)

  it("that is filled in another stage", function()
    some({{"s[{lane, i}] = ", "s[{lane, 0}] = "}}, "the last wait before the "
      .. "write was for another stage, that of coordinate (", "had released")
  end)

  it("whose producer does not wait, and is told so", function()
    some({{"      arch.mbarrier_wait(empty + i, 1 - turn)  --@ask\n", ""}},
         "before it is refilled, wait until all threads have read", "stage,")
  end)
end)

describe("a box", function()
  it("for which only one lane waits", function()
    advises("box", {{"arch.mbarrier_wait(full, 0)", "cute.when(tid:eq(0), "
      .. "function() arch.mbarrier_wait(full, 0) end)"}}, "let all threads "
      .. "that read wait there, outside of the branch")
  end)
end)

describe("a layout in shared memory", function()
  local function text_of(layout, fill)
    return tostring(support.report(cute.kernel("k", function(y)
      local s = cute.make_smem_tensor(cute.f32, layout, 128)
      local i, j = arch.thread_idx()
      fill(s, i, j)
      arch.sync_threads()
      y[{i, j}] = s[{i, j}]
    end)(cute.zeros({32, 8}, cute.f32)):launch {grid = 1, block = {32, 8},
      device = "sim", faults = "return"}))
  end
  local function store(s, i, j) s[{i, j}] = (8 * i + j):to(cute.f32) end

  it("maps two coordinates to one element", function()
    for layout, twins in pairs {
      ["(32,8):(1,31)"] = "%(%d+,%d%) and %(%d+,%d%)",
      ["(32,8):(8,0)"] = "%(%d+,0%) and %(%d+,1%)",
      ["Sw<2,0,3> o 0 o (32,8):(7,1)"] = "%(%d+,%d%) and %(%d+,%d%)",
    } do
      local text = text_of(cute.parse(layout), store)
      local a, b = text:match("layout %S.- maps (%(%d+,%d%)) and "
        .. "(%(%d+,%d%)) to one element: is a stride too small%?$")
      assert.truthy(a, text)
      assert.matches(twins, a .. " and " .. b)
      -- both coordinates in the message must have the reported offset
      local at = tonumber(text:match "element (%d+) of")
      for _, c in ipairs {a, b} do
        local i, j = c:match "(%d+),(%d+)"
        assert.equal(at, cute.crd2idx({tonumber(i), tonumber(j)},
                                      cute.parse(layout)))
      end
    end
  end)

  it("does not, and the missing barrier is named", function()
    local text = text_of(cute.make_layout {32, 8}, function(s, i, j)
      s[{0, 0}] = (8 * i + j):to(cute.f32)
    end)
    assert.is_nil(text:find("to one element", 1, true), text)
  end)
end)
-- SPDX-License-Identifier: MIT
