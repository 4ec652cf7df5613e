-- Tests that a terminal shows the progress of a simulator run once the run
-- takes long. Loops that never end must be reported within seconds, while long
-- correct loops continue.
local cute = require "cute"
local progress = require "cutelua.program.progress"
local arch = cute.arch

describe("the progress of a run", function()
  -- Returns the progress texts shown at these clock times, in seconds.
  local function shown(seconds)
    local text, k = {}, 1
    local show, line = progress.progress("gemm",
      function(s) text[#text + 1] = s end, function() return seconds[k] end)
    for i = 2, #seconds do
      k = i
      show((i - 1) / 10)
    end
    getmetatable(line).__close()
    return text
  end

  it("is shown after two seconds, twice a second, and taken away", function()
    assert.are.same({}, shown {0, 0.5, 1.9})
    assert.are.same({"\r\27[Ksimulating gemm: 20 %, 2 s (Ctrl-C stops it)",
                     "\r\27[Ksimulating gemm: 40 %, 3 s (Ctrl-C stops it)",
                     "\r\27[K"}, shown {10, 11, 12.1, 12.4, 12.7})
  end)

  it("is not shown for the runs of a longer search", function()
    local text, now = {}, 0
    local show, line = progress.progress("gemm",
      function(s) text[#text + 1] = s end, function() return now end)
    for t = 1, 4 do
      now = t
      show(t / 10, "searching for a repair of")
      now = t + 0.6
      show(0.5)
    end
    show(1, "searching for a repair of")
    getmetatable(line).__close()
    local row = "\r\27[Ksearching for a repair of gemm: %d0 %%, %d s "
      .. "(Ctrl-C stops it)"
    assert.are.same({row:format(2, 2), row:format(3, 3), row:format(4, 4),
                     "\r\27[K"}, text)
  end)
end)

describe("a loop", function()
  local function run(body, opts)
    opts = opts or {}
    local k = cute.kernel("k", function(y)
      local i = cute.var(0)
      body(y, i, arch.thread_idx())
      y[arch.thread_idx()] = i:get():to(cute.f32)
    end)
    opts.grid, opts.block, opts.faults = 1, opts.block or 64, "return"
    opts.device = "sim:sm_90a"
    return select(3, k(cute.zeros({64}, cute.f32)):launch(opts))
  end

  it("that changes nothing is stopped soon #long", function()
    local start = os.clock()
    local r = run(function(_, i)
      cute.loop(function() return i:get():ne(7) end, function()
        i:set(i:get() + 2)
      end)
    end, {block = 32})
    assert.is_true(os.clock() - start < 10)
    assert.equal("runaway", r.reports[1].kind)
    assert.matches("^a loop makes no progress: %d+ instructions since any "
      .. "memory changed$", r.reports[1].message)
  end)

  it("that stores the same values changes nothing #long", function()
    -- A loop that changes no memory is reported after a fixed number of
    -- instructions. No smaller budget may end the run first.
    local r = run(function(y, i, tid)
      cute.loop(function() return i:get():lt(7) end, function()
        y[tid] = 1.0
      end)
    end, {block = 1})
    assert.matches("^a loop makes no progress", r.reports[1].message)
  end)

  it("that a budget is named for has that", function()
    local r = run(function(_, i)
      cute.loop(function() return i:get():lt(7) end, function()
        i:set(i:get() & 3)
      end)
    end, {budget = 1000})
    assert.matches("^a warp executed 100%d instructions without "
      .. "finishing$", r.reports[1].message)
  end)

  it("that is long, but ends, continues #long", function()
    local r = run(function(_, i)
      cute.loop(function() return i:get():lt(2000000) end, function()
        i:set(i:get() + 1)
      end)
    end)
    assert.is_nil(r)
  end)
end)
-- SPDX-License-Identifier: MIT
