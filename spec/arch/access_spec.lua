-- Tests every memory access (operation, type, memory space, order, hint) that a
-- trace accepts. An access must run on the simulator of a target if CUDA C can
-- be emitted for that target, and raise an error there otherwise. NVRTC must
-- compile that CUDA C.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch = cute.arch

local TYPES = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16",
               "bf16", "f32", "f64", "e4m3", "e5m2", "boolean", "tf32", "i4"}
local SPACES = {"global", "shared", "peer"}
local ATOMICS = {"add", "min", "max", "and", "or", "xor", "exch"}
local HINTS = {{}, {sem = "relaxed"}, {sem = "acquire", scope = "cta"},
               {sem = "release", scope = "cluster"}}
-- further options of accesses, tested only with f32
local MORE = {{sem = "acq_rel", scope = "sys"}, {scope = "sys"},
              {scope = "cta"}}
for key, values in pairs {
    cop = "ca cg cs lu cv wb wt",
    level1_eviction_priority = "evict_normal evict_first evict_last "
      .. "evict_no_allocate evict_unchanged",
    level2_eviction_priority = "evict_normal evict_first evict_last",
    level_prefetch_size = "size_64b size_128b size_256b"} do
  for value in values:gmatch "%S+" do
    MORE[#MORE + 1] = {[key] = value}
  end
end
local TARGETS = {"sm_75", "sm_80", "sm_90a"}

local function with(opts, more)
  for k, v in pairs(opts) do if more[k] == nil then more[k] = v end end
  return more
end

-- Kinds of accesses: {name, function(pointer, value, opts)}, ...
local ACCESSES = {
  {"load", function(p, _, o) return arch.load(p, nil, o) end},
  {"store", function(p, v, o) arch.store(p, v, o) end},
  {"cas", function(p, v, o)
    return arch.atomic_cas(p, with(o, {cmp = v, val = v}))
  end}}
for _, op in ipairs(ATOMICS) do
  ACCESSES[#ACCESSES + 1] = {op, function(p, v, o)
    return arch["atomic_" .. op](p, v, o)
  end}
  if op ~= "exch" then
    ACCESSES[#ACCESSES + 1] = {"red " .. op, function(p, v, o)
      arch.red(p, v, with(o, {op = op}))
    end}
  end
end

local function element(pointer)
  return cute.make_tensor(pointer, cute.make_layout(1))
end

-- Traces one access to elements of x.
local function access(x, one)
  local p = x.iterator
  if one.space ~= "global" then
    p = cute.undefined_ok(cute.make_smem_tensor(x.dtype, cute.make_layout(8),
                                                16)).iterator
  end
  if one.space == "peer" then p = arch.map_dsmem_ptr(p, 0) end
  local got = one.access(p, element(x.iterator + 4)[0], one.hints)
  if got then element(x.iterator + 5)[0] = got end
end

-- Calls f(one) for every access to one type. one.name describes the access;
-- one.program is its trace, or nil if the trace rejects it.
local function each(dtype, f)
  for _, space in ipairs(SPACES) do
    for _, a in ipairs(ACCESSES) do
      for k = 1, #HINTS + (dtype == cute.f32 and #MORE or 0) do
        local hints = HINTS[k] or MORE[k - #HINTS]
        local one = {space = space, access = a[2], hints = hints}
        local call = cute.kernel("one", function(x) access(x, one) end)(
          cute.zeros({8}, dtype))
        local ok, why = pcall(call.trace, call, {block = 1})
        one.name = ("%s of %s, %s, hints %d"):format(a[1], dtype, space, k)
        one.call, one.program, one.why = call, ok and why, tostring(why)
        f(one)
      end
    end
  end
end

describe("accesses", function()
  local taken = {}  -- accesses that can be emitted as CUDA C, by target
  for i, name in ipairs(TYPES) do
    it("of " .. name .. " run where they have CUDA C" .. support.long(i, 4),
       function()
      local dtype, some = cute[name], 0
      for _, target in ipairs(TARGETS) do taken[target] = {} end
      each(dtype, function(one)
        if not one.program then
          assert.is_nil(one.why:find("attempt to", 1, true), one.why)
          return
        end
        some = some + 1
        for _, target in ipairs(TARGETS) do
          local emitted, text = pcall(one.program.cuda, one.program, target)
          local ran, r, why = pcall(one.call.launch, one.call, {
            grid = 1, block = 1, device = "sim:" .. target,
            faults = "return"})
          assert.equal(emitted, ran and r ~= nil, ("%s on %s: %s, %s"):format(
            one.name, target, text, ran and why or r))
          if emitted then table.insert(taken[target], one) end
        end
      end)
      assert.is_true(some > 0)
      for _, target in ipairs(TARGETS) do
        local all = cute.kernel("all", function(x)
          for _, one in ipairs(taken[target]) do access(x, one) end
        end)(cute.zeros({8}, dtype)):trace {block = 1}
        if #taken[target] > 0 and not kernels.compiled(all, target) then
          return pending "needs NVRTC"
        end
      end
    end)
  end
end)

describe("the scope of an atomic", function()
  it("is emitted also if the order is absent, which is then relaxed", function()
    local function text(opts)
      return cute.kernel("k", function(x)
        arch.atomic_add(x.iterator, 1, opts)
      end)(cute.zeros({1}, cute.i32)):trace {block = 32}:cuda()
        :match '"(atom[%w.]+)'
    end
    assert.equal("atom.relaxed.sys.global.add.s32", text {scope = "sys"})
    assert.equal("atom.relaxed.cta.global.add.s32", text {scope = "cta"})
    assert.equal("atom.acquire.gpu.global.add.s32", text {sem = "acquire"})
    assert.equal("atom.global.add.s32", text {scope = "gpu"})
  end)

  it("rejects a scope of a load or a store without an order", function()
    local x = cute.zeros({8}, cute.f32)
    for what, f in pairs {
        load = function(p) return arch.load(p, nil, {scope = "gpu"}) end,
        store = function(p) arch.store(p, 1, {scope = "gpu"}) end} do
      support.raises(("%s: scope = \"gpu\" has no effect without an order; add "
        .. "sem = \"%s\", or leave out the scope"):format(what,
        what == "load" and "acquire" or "release"), function()
          cute.kernel("k", function(y) f(y.iterator) end)(x):trace {block = 1}
        end)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
