-- cute.pipeline, cute.testing, cute.utils, structures, LaTeX.
local core = require "cute.core"
local cute = require "cute"
local arch, utils, testing = cute.arch, cute.utils, cute.testing
local T = require "spec.names_support"
local raises = require "spec.support".raises
local launch = T.launch
local _ = cute._

---------------------------------------------------------------------------

local TILES, STAGES = 7, 3

-- Column sums of tiles of 32 x 4, each thread reading what others copied.
-- flaws: what is left out.
local function summing(flaw, device_loop)
  return function(A, O)
    local t = arch.thread_idx()
    local pipe = cute.pipeline.PipelineCpAsync {num_stages = STAGES}
    local s = cute.make_smem_tensor(cute.f32,
      cute.make_layout({128, STAGES}, {1, 128}), 16)    -- (element, stage)
    local g = cute.make_tensor(A.iterator,
      cute.make_layout({128, TILES}, {1, 128}))         -- (element, tile)
    local atom = cute.make_copy_atom(
      "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", cute.f32)
    local mode = {loop = device_loop}
    local write = pipe:make_producer_state(mode)
    local read = pipe:make_consumer_state(mode)
    local function fill(tile)
      cute.copy(atom, cute.local_tile(g(_, tile), {4}, {t}),
                cute.local_tile(s(_, write.index), {4}, {t}))
    end
    local function ahead(k, last)
      pipe:producer_acquire(write)
      if last then fill(k) else
        cute.when(cute.lt(k, TILES), function() fill(k) end)
      end
      if flaw ~= "commit" then pipe:producer_commit(write) end
      write:advance()
    end
    for k = 0, STAGES - 2 do ahead(k, true) end
    local sum = core.cvt(0.0, cute.f32)
    local function body(k)
      if flaw == "wait" then arch.sync_threads()
      elseif flaw == "barrier" then arch.cp_async_wait_group(STAGES - 2)
      else pipe:consumer_wait(read) end
      for i = 0, 3 do sum = sum + s[{(t + 9) % 32 * 4 + i, read.index}] end
      pipe:consumer_release(read)
      read:advance()
      ahead(k + STAGES - 1)
    end
    if device_loop then
      for k in cute.range(TILES) do body(k) end
    else
      for k = 0, TILES - 1 do body(k) end
    end
    pipe:producer_tail(write)
    O[t] = sum
  end
end

local function summed(flaw, device_loop, seed)
  local A, O = cute.zeros({128 * TILES}, "f32"), cute.zeros({32}, "f32")
  for i = 0, 128 * TILES - 1 do A[i] = i % 97 end
  local r = launch(summing(flaw, device_loop), {A, O}, {seed = seed})
  return r, A, O
end

describe("PipelineCpAsync", function()
  it("moves tiles through its stages, in any schedule", function()
    for seed = 1, 50 do
      local r, A, O = summed(nil, seed % 2 == 0, seed)
      assert.is_true(r.ok, tostring(r))
      for t = 0, 31 do
        local want = 0
        for k = 0, TILES - 1 do
          for i = 0, 3 do want = want + A[k * 128 + (t + 9) % 32 * 4 + i] end
        end
        assert.equal(want * 1.0, O[t])
      end
    end
  end)

  it("without a wait, a commit or a barrier is found out", function()
    for _, flaw in ipairs {"wait", "commit", "barrier"} do
      for _, device_loop in ipairs {false, true} do
        local r = summed(flaw, device_loop, 3)
        assert.is_false(r.ok, flaw)
        assert.is_truthy(r.reports[1].kind:find "race"
          or r.reports[1].kind == "async-in-flight", r.reports[1].kind)
      end
    end
  end)

  it("counts stages, rounds and phases", function()
    local s = cute.pipeline.make_pipeline_state("producer", 3)
    local seen = {}
    for i = 1, 7 do
      seen[i] = ("%d/%d/%d"):format(s.index, s.phase, s.count)
      s:advance()
    end
    assert.same({"0/1/0", "1/1/1", "2/1/2", "0/0/3", "1/0/4", "2/0/5",
                 "0/1/6"}, seen)
    local c = s:clone()
    s:reverse()
    s:reverse()
    assert.same({2, 0, 5}, {s.index, s.phase, s.count})
    assert.equal(1, c.index)
    c:reset_count()
    assert.equal(0, c.count)
    raises("no user 'writer'", cute.pipeline.make_pipeline_state, "writer", 2)
    raises("2 or more", cute.pipeline.PipelineCpAsync, {num_stages = 1})
  end)
end)

describe("NamedBarrier", function()
  it("lets some warps meet", function()
    local O = cute.zeros({64}, "i32")
    local r = launch(function(out)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
      local b = cute.pipeline.NamedBarrier {barrier_id = 2, num_threads = 64}
      s[t] = t * 3
      b:arrive_and_wait()
      out[t] = s[63 - t]
      cute.pipeline.arrive_and_wait(3, 64)
      s[t] = t
      cute.pipeline.sync()
      out[t] = out[t] + s[t]
    end, {O}, {block = 64})
    assert.is_true(r.ok, tostring(r))
    for t = 0, 63 do assert.equal((63 - t) * 3 + t, O[t]) end
    raises("no wait of its own", function()
      cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 32}:wait()
    end)
    raises("no wait of its own", cute.pipeline.wait)
    raises("no whole warps", cute.pipeline.NamedBarrier,
           {barrier_id = 1, num_threads = 40})
  end)

  it("tells one warp that the other arrived", function()
    local O = cute.zeros({64}, "i32")
    local r = launch(function(out)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32))
      cute.when(t:lt(32), function()
        s[t] = t * t
        cute.pipeline.arrive(1, 64)
      end, function()
        cute.pipeline.arrive_and_wait(1, 64)
        out[t] = s[t - 32]
      end)
    end, {O}, {block = 64})
    assert.is_true(r.ok, tostring(r))
    assert.equal(49, O[39])
  end)
end)

---------------------------------------------------------------------------

describe("structures", function()
  it("have offsets, alignments and sizes", function()
    local S = cute.struct {{"a", cute.f32, 5}, {"b", cute.bf16, 3},
                           {"c", cute.i64, 2, align = 64}, {"d", cute.u8}}
    assert.same({0, 20, 64, 80}, {S:offsetof "a", S:offsetof "b",
                                  S:offsetof "c", S:offsetof "d"})
    assert.equal(128, S:size_in_bytes())
    assert.equal(64, S:align_in_bytes())
    local U = cute.union {{"x", cute.u8, 3}, {"s", S, 2}}
    assert.equal(256, U:size_in_bytes())
    assert.equal(0, U:offsetof "s")
    raises("two fields 'a'", cute.struct, {{"a", cute.f32}, {"a", cute.f32}})
    raises("no field 'z'", S.offsetof, S, "z")
    raises("an element type or a structure", cute.struct, {{"a", 5}})
    raises("not a power of two", cute.struct, {{"a", cute.f32, 1, align = 3}})
  end)

  it("are given out by SmemAllocator, which the budget watches", function()
    local Inner = cute.struct {{"v", cute.f32, 4}}
    local S = cute.struct {{"x", cute.i32, 32}, {"in2", Inner, 2},
                           {"u", cute.union {{"f", cute.f32}, {"i", cute.u32}}}}
    local O = cute.zeros({32, 5}, "i32")
    local k = cute.kernel("k", function(out)
      local t = arch.thread_idx()
      local smem = utils.SmemAllocator()
      local s = smem:allocate(S)
      local x = cute.make_tensor(s.x, cute.make_layout(32))
      local y = smem:allocate_tensor(cute.f32, cute.make_layout({8, 4}), 128,
                                     cute.make_swizzle(1, 1, 1))
      local z = smem:allocate_array(cute.i32, 32)
      local one = smem:allocate(cute.i32)
      local raw = smem:allocate(64, 16)
      assert.equal(cute.u8, raw.element_type)
      x[t] = t * 2
      y[{t % 8, t // 8}] = t:to(cute.f32)
      arch.store(z + t, t * 5)
      cute.when(t:eq(0), function()
        arch.store(one, 11)
        arch.store(s.in2[2].v + 3, 2.5)
        arch.store(s.u.f, 1.0)
      end)
      arch.sync_threads()
      out[{t, 0}] = x[31 - t]
      out[{t, 1}] = y[{(t + 1) % 8, t // 8}]:to(cute.i32)
      out[{t, 2}] = arch.load(z + (t ~ 1))
      out[{t, 3}] = arch.load(one) + (arch.load(s.in2[2].v + 3) * 2)
        :to(cute.i32)
      out[{t, 4}] = arch.load(s.u.i):to(cute.i32)
    end)
    local call = k(O)
    local run = call:compile {grid = 1, block = 32, device = "sim"}
    local r = run:launch {faults = "return"}
    assert.is_true(r.ok, tostring(r))
    for t = 0, 31 do
      assert.same({(31 - t) * 2, t // 8 * 8 + (t + 1) % 8, (t ~ 1) * 5, 16,
                   0x3f800000}, {O(t, 0), O(t, 1), O(t, 2), O(t, 3), O(t, 4)})
    end
    assert.is_true(utils.get_kernel_smem_size(run) >= 164 + 128 + 128 + 4 + 64)
    assert.equal(utils.get_kernel_smem_size(run),
      utils.get_kernel_smem_size(call:trace {block = 32}))
    raises("[smem-budget]", launch, function(_)
      utils.SmemAllocator():allocate(300 * 1024)
    end, {O})
  end)

  it("fit the capacity of an architecture", function()
    assert.equal(163 * 1024, utils.get_smem_capacity_in_bytes "sm_80")
    assert.equal(227 * 1024, utils.get_smem_capacity_in_bytes())
    assert.equal(99 * 1024, utils.get_smem_capacity_in_bytes "sm_120")
    raises("no architecture", utils.get_smem_capacity_in_bytes, "sm_42")
  end)
end)

---------------------------------------------------------------------------

describe("testing", function()
  it("asserts, on the host and in kernels", function()
    local O = cute.zeros({32}, "i32")
    local function kernel(limit)
      return function(out)
        local t = arch.thread_idx()
        testing.assert_(t:lt(limit), "t is small")
        out[t] = t
      end
    end
    assert.is_true(launch(kernel(32), {O}).ok)
    local r = launch(kernel(9), {O})
    assert.equal("assertion", r.reports[1].kind)
    assert.equal(9, r.reports[1].thread[1])
    assert.is_truthy(r.reports[1].message:find("t is small", 1, true))
    testing.assert_(true)
    raises("assertion failed: no", testing.assert_, false, "no")
  end)

  it("converts tensors", function()
    local a, b = cute.zeros({4, 8}, "f32"), cute.zeros({4, 8}, "bf16")
    for i = 0, 31 do a[i] = i * 1.001 end
    assert.equal(b, testing.convert(a, b))
    for i = 0, 31 do assert.equal(core.bf16 and a[i]:to(cute.bf16), b[i]) end
    raises("[shape-mismatch]", testing.convert, a, cute.zeros({3}, "f32"))
  end)

  -- A prepared launch whose loop has n rounds.
  local function looping(n)
    local k = cute.kernel("k", function(out)
      local s = core.cvt(0, cute.i32)
      for i in cute.range(n) do s = s + i * arch.thread_idx() end
      out[arch.thread_idx()] = s
    end)
    return cute.compile(k, cute.zeros({32}, "i32"),
                        {grid = 1, block = 32, device = "sim"})
  end

  it("times and counts", function()
    local few, unit = testing.benchmark(looping(4))
    assert.equal("instructions", unit)
    assert.is_true(testing.benchmark(looping(40)) > 2 * few)
    local us, what = testing.benchmark(function() end, {iterations = 3})
    assert.is_true(us >= 0)
    assert.equal("us", what)
    assert.equal(4, testing.get_workspace_count(1 << 20, 5, 50, 1 << 20))
    assert.equal(15, testing.get_workspace_count(1, 5, 10, 1 << 20))
  end)

  it("finds the fastest, and keeps it", function()
    local tried = {}
    local best, value, made, unit = testing.tune(function(c)
      tried[#tried + 1] = c.n .. c.x
      if c.n == 9 then error "too odd" end
      return looping(c.n)
    end, {n = {9, 8, 2, 30}, x = {"a", "b"}})
    assert.equal(8, #tried)
    assert.equal(2, best.n)
    assert.equal("instructions", unit)
    assert.equal(value, made:launch().instructions)
    raises("too odd", testing.tune, function() error "too odd" end, {n = {1}})
    local calls = 0
    local run = testing.autotune_jit({n = {3, 5}}, function(c, extra)
      calls = calls + 1
      return looping(c.n + extra)
    end)
    local function instructions(n) return looping(n):launch().instructions end
    assert.equal(instructions(4), run(1).instructions)
    assert.equal(3, calls)  -- two to choose from, and the launch
    assert.equal(instructions(5), run(2).instructions)
    assert.equal(4, calls)  -- both integers: one kind of argument
  end)
end)

---------------------------------------------------------------------------

describe("shared layouts", function()
  it("have the widest swizzle that fits", function()
    local layout, kind = utils.get_smem_layout_atom_ab("K", cute.bf16,
                                                       {128, 64})
    assert.equal("SW128", kind)
    assert.equal("Sw<3,3,3> o 0 o (8,64):(64,1)", tostring(layout))
    for k, want in pairs {[32] = "SW64", [16] = "SW32", [8] = "INTER",
                          [24] = "INTER"} do
      assert.equal(want, (select(2, utils.get_smem_layout_atom_ab("K",
        cute.bf16, {64, k}))))
    end
    assert.equal("SW128", (select(2, utils.get_smem_layout_atom_ab("MN",
      cute.f32, {32, 8}))))
    assert.equal("SW64", (select(2, utils.get_smem_layout_atom_epi("row",
      cute.bf16, {64, 32}))))
    raises("no multiple of 128", utils.get_smem_layout_atom_ab, "K",
           cute.bf16, {64, 4})
    raises("no major 'M'", utils.get_smem_layout_atom_ab, "M", cute.bf16,
           {64, 64})
  end)

  it("cover a tile and its stages once", function()
    local function covers(l, m, n, stages)
      local seen, count = {}, 0
      for s = 0, stages - 1 do
        for j = 0, n - 1 do
          for i = 0, m - 1 do
            local at = l(i, j, s)
            assert.is_nil(seen[at])
            seen[at], count = true, count + 1
          end
        end
      end
      assert.equal(count, core.cosize(l))
    end
    covers(utils.make_smem_layout_a(nil, {64, 32, 64}, cute.bf16, 3), 64, 64,
           3)
    covers(utils.make_smem_layout_b(nil, {64, 32, 64}, cute.bf16, 2,
                                    {is_k_major = false}), 32, 64, 2)
    covers(utils.make_smem_layout_epi(cute.f32, "col", {32, 16}, 2), 32, 16,
           2)
    covers(utils.make_smem_layout("K", {16, 32}, cute.e4m3, 2), 16, 32, 2)
  end)
end)

describe("atoms by types", function()
  it("are named, and tiled", function()
    local mma = utils.make_trivial_tiled_mma(cute.bf16, cute.bf16, "K", "K",
      cute.f32, {2, 2, 1}, {128, 128}, {arch = "sm_80"})
    assert.equal(128, mma:size())
    assert.equal("SM80_16x8x16_F32BF16BF16F32_TN", mma.name)
    mma = utils.make_trivial_tiled_mma(cute.f16, cute.f16, "K", "MN",
      cute.f32, {1, 1, 1}, {64, 128})
    assert.equal("SM90_64x128x16_F32F16F16_SS<K,MN>", mma.name)
    mma = utils.make_trivial_tiled_mma(cute.e4m3, cute.e4m3, "K", "K",
      cute.f32, {2, 1, 1}, {128, 64}, {a_source = "rmem"})
    assert.equal("SM90_64x64x32_F32E4M3E4M3_RS_TN", mma.name)
    raises("K-major", utils.make_trivial_tiled_mma, cute.e4m3, cute.e4m3,
           "MN", "K", cute.f32, {1, 1, 1}, {64, 64})
    assert.equal("SM90_U32x4_STSM_N",
      utils.get_smem_store_op("row", cute.bf16, cute.f32).name)
    assert.equal("SM90_U16x8_STSM_T",
      utils.get_smem_store_op("col", cute.f16, cute.f32).name)
    assert.equal("UniversalCopy<uint32_t>",
      utils.get_smem_store_op("col", cute.f32).name)
    assert.same({128, 32}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.bf16, true))
    assert.same({64, 64}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.e4m3))
    assert.same({8, 8}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.e4m3, false, {8, 8}))
    assert.equal("SM80_16x8x16_F32F16F16F32_TN",
      cute.make_atom "SM80_16x8x16_F32F16F16F32_TN".name)
    assert.equal("UniversalCopy<uint16_t>",
      cute.make_atom("UniversalCopy", cute.f16).name)
  end)

  it("copy as a block", function()
    local a, b = cute.zeros({16, 8}, "f32"), cute.zeros({16, 8}, "f32")
    for i = 0, 127 do a[i] = i end
    local r = launch(function(x, y)
      utils.block_copy(cute.make_tiled_copy(cute.make_copy_atom(
        "UniversalCopy", cute.f32), cute.make_layout({8, 4}),
        cute.make_layout({2, 2})), x, y)
      local v = cute.empty_like(cute.make_rmem_tensor({4}, cute.f32))
      assert.equal(4, #v)
    end, {a, b})
    assert.is_true(r.ok, tostring(r))
    for i = 0, 127 do assert.equal(a[i], b[i]) end
  end)

  it("know the hardware, if there is one", function()
    local info, why = utils.HardwareInfo()
    if not info then
      assert.is_truthy(why:find "%[no%-gpu%]" or why:find "%[driver%-error%]")
      return
    end
    assert.is_true(info:get_device_multiprocessor_count() > 0)
    assert.is_true(info:get_l2_cache_size_in_bytes() > 0)
  end)
end)

---------------------------------------------------------------------------

describe("LaTeX", function()
  local latex = require "cute.program.latex"
  local folder = (os.getenv "CUTELUA_GOLDEN_DIR" or "../shared/golden")
    .. "/latex/"

  local function golden(name)
    local f <close> = io.open(folder .. name)
    return f and f:read "a"
  end

  -- Thread-value layouts may be printed in another form: without comments.
  local function bare(text) return (text:gsub("%%[^\n]*\n", "")) end

  it("of layouts is CuTe's", function()
    local index = golden "index.json"
    if not index then return pending "the golden texts are not here" end
    local n = 0
    for file, expr in index:gmatch
        '"file": "([^"]*)",%s*"expr": "print_latex%(([^"]*)%)"' do
      if not expr:find "^make" then
        assert.equal(golden(file), latex.latex_text(cute.layout(expr)))
        n = n + 1
      end
    end
    assert.is_true(n >= 8)
  end)

  it("of tiled operations is CuTe's, comments aside", function()
    if not golden "index.json" then
      return pending "the golden texts are not here"
    end
    local function mma(name, ...)
      return cute.make_tiled_mma(cute.make_mma_atom(name), ...)
    end
    local BF16 = "SM80_16x8x16_F32BF16BF16F32_TN"
    local tiled = mma(BF16, cute.make_layout({2, 2, 1}, {1, 2, 0}),
                      {32, 32, 16})
    for file, x in pairs {
      mma_00 = mma "SM70_8x8x4_F32F16F16F32_NT",
      mma_04 = mma "SM80_16x8x8_F32F16F16F32_TN",
      mma_05 = tiled,
      mma_07 = mma "SM75_8x8x16_S32S8S8S32_TN",
      copy_02 = cute.make_tiled_copy(cute.make_copy_atom("SM75_U32x4_LDSM_N",
        cute.f16), cute.layout "(32,1):(1,0)", cute.layout "(1,8):(0,1)"),
      copy_03 = cute.make_tiled_copy(cute.make_copy_atom(
        "UniversalCopy<uint32_t>", cute.f16), cute.layout "(4,8):(8,1)",
        cute.layout "(2,2):(1,2)"),
      copy_A_00 = cute.make_tiled_copy_A(cute.make_copy_atom(
        "SM75_U32x4_LDSM_N", cute.f16), tiled),
    } do
      local want = golden("print_latex_" .. file .. ".tex")
      assert.equal(bare(want), bare(latex.latex_text(x)), file)
    end
  end)

  it("of threads and values names who holds what", function()
    local text = latex.latex_tv_text(cute.layout "(4,2):(2,1)", {2, 4})
    assert.is_truthy(text:find("at (0,1) {\\shortstack{T1 \\\\ V0}}", 1, true))
    assert.is_truthy(text:find("at (1,3) {\\shortstack{T3 \\\\ V1}}", 1, true))
    raises("rank 2", latex.latex_tv_text, cute.layout "4:1", {2, 2})
    raises("a layout, TiledMMA or TiledCopy", latex.latex_text, 5)
  end)
end)
