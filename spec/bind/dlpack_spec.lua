-- Tests the exchange of tensors by DLPack with a library in C
-- (dlpackpeer.c): layouts, types, devices, ownership, memory for reading only.
local cute = require "cute"
local support = require "spec.support"

if not support.lua_headers then
  describe("DLPack", function() pending "needs the headers of Lua" end)
  return
end

local peer, dir

-- Returns how many deleters are called while f runs.
local function deletions(f)
  collectgarbage() collectgarbage()
  local before = peer.deleted()
  f()
  collectgarbage() collectgarbage()
  return peer.deleted() - before
end

local function floats(...)
  return ("<" .. ("f"):rep(select("#", ...))):pack(...)
end

local SIX = floats(1, 2, 3, 4, 5, 6)

-- Asserts that importing a tensor with these fields raises the message, and
-- that the exporter keeps the tensor.
local function rejected(what, fields)
  local p = peer.make(fields)
  local n = deletions(function()
    local ok, message = pcall(cute.from_dlpack, p,
                              {versioned = fields.versioned ~= false})
    assert.is_false(ok)
    assert.truthy(message:find(what, 1, true),
                  ("%s\ndoes not say\n%s"):format(message, what))
  end)
  assert.equal(0, n)
  peer.release(p, fields.versioned ~= false)
end

-- Returns the elements of a tensor of rank 2, by rows.
local function elements(t, rows, columns)
  local out = {}
  for i = 0, rows - 1 do
    for j = 0, columns - 1 do out[#out + 1] = t(i, j) end
  end
  return out
end

setup(function()
  dir = support.folder()
  local file = dir .. "/dlpackpeer.so"
  local _, err, code = support.exec {os.getenv "CC" or "cc", "-shared",
    "-fPIC", "-g", "-Icore", "-I/usr/include/lua5.4", "-o", file,
    "spec/bind/dlpackpeer.c",
    "-lpthread"}
  assert(code == 0, err)
  peer = assert(package.loadlib(file, "luaopen_dlpackpeer"))()
end)
teardown(function() support.remove(dir) end)

describe("import by DLPack", function()
  it("imports both forms, and calls the deleter once, after the last view",
      function()
    for _, versioned in ipairs {true, false} do
      local p = peer.make {bytes = SIX, shape = {2, 3}, versioned = versioned}
      local t = cute.from_dlpack(p, {versioned = versioned})
      local view
      assert.equal(0, deletions(function()
        assert.equal("(2,3):(3,1)", tostring(t.layout))
        assert.equal(cute.f32, t.dtype)
        assert.equal("host", t.device)
        assert.same({1, 2, 3, 4, 5, 6}, elements(t, 2, 3))
        t:set(1, 1, 50)
        view = cute.make_tensor(t.iterator + 4, cute.make_layout(1))
        t = nil
      end))
      assert.equal(50, view(0))
      assert.equal(1, deletions(function() view = nil end))
      assert.equal(p, select(2, peer.deleted()))
    end
  end)

  it("calls the deleter when a tensor is closed, and not again", function()
    local t = cute.from_dlpack(peer.make {bytes = SIX, shape = {6}})
    assert.equal(1, deletions(function() t:close() end))
    assert.has_error(function() return t(0) end)
    assert.equal(0, deletions(function() t:close() t = nil end))
  end)

  it("reads strides, offsets and shapes as DLPack defines them", function()
    local function import(fields)
      fields.bytes = SIX
      return cute.from_dlpack(peer.make(fields))
    end
    local t = import {shape = {2, 2}, offset = 8}
    assert.same({3, 4, 5, 6}, elements(t, 2, 2))
    t = import {shape = {3, 2}, strides = {1, 3}}
    assert.same({1, 4, 2, 5, 3, 6}, elements(t, 3, 2))
    t = import {shape = {2, 3}, strides = {-3, -1}, at = 20}
    assert.same({6, 5, 4, 3, 2, 1}, elements(t, 2, 3))
    t = import {shape = {2, 3}, strides = {0, 2}}
    assert.same({1, 3, 5, 1, 3, 5}, elements(t, 2, 3))
    t = import {shape = {}}
    assert.equal("(1):(1)", tostring(t.layout))
    assert.equal(1, t(0))
    for _, strides in ipairs {{3, 1}, {1 << 62, 1 << 62}} do
      t = import {shape = {0, 3}, strides = strides, null = true}
      assert.equal(0, cute.size(t))
      assert.equal(0, cute.size(t:clone()))
    end
    assert.equal(0, cute.size(import {shape = {2, 0}}))
  end)

  it("runs kernels on imported memory at any aligned address", function()
    local twice = cute.kernel("twice", function(x, y)
      local i = cute.arch.thread_idx()
      y[i] = x[i] * 2
    end)
    for _, shift in ipairs {0, 4, 8, 16, 100} do
      local x = cute.from_dlpack(peer.make {bytes = SIX, shift = shift,
                                            shape = {6}})
      local y = cute.from_dlpack(peer.make {bytes = SIX, shift = 4,
                                            shape = {6}})
      twice(x, y):launch {grid = 1, block = 6, device = "sim"}
      for i = 0, 5 do assert.equal(2 * (i + 1), y(i)) end
      assert.same({1, 4, 9, 16, 25, 36}, (function()
        local out = cute.ops.elementwise(function(v) return v * v end, x,
                                         {device = "sim"})
        local list = {}
        for i = 0, 5 do list[i + 1] = out(i) end
        return list
      end)())
    end
  end)

  it("reports accesses beyond imported memory", function()
    local beyond = cute.kernel("beyond", function(x)
      x[cute.arch.thread_idx()] = 0
    end)
    local x = cute.from_dlpack(peer.make {bytes = SIX, shape = {5}})
    local ok, message = pcall(function()
      beyond(x):launch {grid = 1, block = 6, device = "sim"}
    end)
    assert.is_false(ok)
    assert.truthy(message:find("out-of-bounds", 1, true), message)
    beyond(x):launch {grid = 1, block = 5, device = "sim"}
  end)
end)

describe("memory that DLPack shares for reading only", function()
  it("rejects writes to memory that may only be read", function()
    local p = peer.make {bytes = SIX, shape = {6}, flags = 1}
    local t = cute.from_dlpack(p)
    local other = cute.zeros({6}, cute.f32)
    local add = cute.kernel("add", function(x, y)
      local i = cute.arch.thread_idx()
      y[i] = y[i] + x[i]
    end)
    local launch = {grid = 1, block = 6, device = "sim"}
    for what, f in pairs {
      set = function() t:set(0, 1) end, fill = function() t:fill(0) end,
      copy = function() t:copy_from(other) end,
      ["kernel add writes argument 2"] =
        function() add(other, t):launch(launch) end,
      ["another library"] = function()
        cute.ops.elementwise(function(x) return x end, other,
                             {out = t, device = "sim"})
      end} do
      local ok, message = pcall(f)
      assert.is_false(ok, what)
      assert.truthy(message:find("for reading only", 1, true), message)
      assert.truthy(what:find " " == nil or message:find(what, 1, true),
                    message)
    end
    assert.equal(1, t(0))
    add(t, other):launch(launch)
    assert.equal(6, other(5))
    local copy = t:clone()
    copy:fill(3)
    assert.equal(3, copy(2))
    -- The consumer of an exported tensor also sees the read-only flag.
    local out = t:to_dlpack()
    assert.equal(1, peer.read(out, true).flags)
    t:close()
    assert.equal(1, deletions(function() peer.release(out, true) end))
  end)
end)

describe("types and devices of DLPack", function()
  -- For each type: its type code and number of bits in DLPack 1.3.
  local TYPES = {
    i8 = {0, 8}, i16 = {0, 16}, i32 = {0, 32}, i64 = {0, 64}, u8 = {1, 8},
    u16 = {1, 16}, u32 = {1, 32}, u64 = {1, 64}, f16 = {2, 16}, f32 = {2, 32},
    f64 = {2, 64}, bf16 = {4, 16}, boolean = {6, 8}, e4m3 = {10, 8},
    e5m2 = {12, 8}, ue8m0 = {14, 8}, e2m3 = {15, 6}, e3m2 = {16, 6},
    e2m1 = {17, 4}, i4 = {0, 4}, u4 = {1, 4}}

  it("exchanges elements of every type with their bits", function()
    for name, row in pairs(TYPES) do
      local code, bits = row[1], row[2]
      local count = 8
      local bytes = {}
      for i = 1, count * bits // 8 do bytes[i] = string.char(i * 17 % 120) end
      bytes = table.concat(bytes)
      local t = cute.from_dlpack(peer.make {bytes = bytes, shape = {count},
                                            code = code, bits = bits})
      assert.equal(cute[name], t.dtype)
      local own = cute.make_tensor(cute.buffer_from(name, bytes),
                                   cute.make_layout({count}))
      for i = 0, count - 1 do
        local x, y = own(i), t(i)
        assert.truthy(x == y or x ~= x and y ~= y, name)
      end
      local p = own:to_dlpack()
      local got = peer.read(p, true, #bytes)
      assert.same({code, bits, 1, bytes},
                  {got.code, got.bits, got.lanes, got.memory})
      peer.release(p, true)
    end
  end)

  it("reads pairs of 4-bit floats as single elements", function()
    local t = cute.from_dlpack(peer.make {bytes = "\x21\x43\x65\x07",
      shape = {2, 2}, code = 17, bits = 4, lanes = 2})
    assert.equal("(2,4):(4,1)", tostring(t.layout))
    assert.same({0.5, 1, 1.5, 2, 3, 4, 6, 0}, elements(t, 2, 4))
    t = cute.from_dlpack(peer.make {bytes = "\x21\x43\x65\x07",
      shape = {2, 2}, strides = {1, 2}, code = 17, bits = 4, lanes = 2})
    assert.equal("(4,2):(1,4)", tostring(t.layout))
    assert.equal(4, t(1, 1))
  end)

  it("rejects other types by their names", function()
    for what, fields in pairs {
      ["complex64"] = {code = 5, bits = 64},
      ["complex128"] = {code = 5, bits = 128},
      ["float8_e4m3fnuz"] = {code = 11, bits = 8},
      ["float8_e5m2fnuz"] = {code = 13, bits = 8},
      ["float8_e4m3b11fnuz"] = {code = 9, bits = 8},
      ["float8_e4m3 "] = {code = 8, bits = 8},
      ["float8_e3m4"] = {code = 7, bits = 8},
      ["handle64"] = {code = 3, bits = 64}, ["bool1"] = {code = 6, bits = 1},
      ["float128"] = {code = 2, bits = 128}, ["int2"] = {code = 0, bits = 2},
      ["float32 x4"] = {lanes = 4},
      ["float4_e2m1fn x4"] = {code = 17, bits = 4, lanes = 4},
      ["pairs of float4_e2m1fn need"] = {code = 17, bits = 4, lanes = 2,
                                         strides = {2}},
      ["e2m1 that are padded"] = {code = 17, bits = 4, flags = 4},
      ["unknown type code 99"] = {code = 99}} do
      fields.bytes, fields.shape = SIX, {2}
      rejected(what, fields)
    end
    local ok, message = pcall(function()
      return cute.make_tensor(cute.buffer("b1", 8),
                              cute.make_layout {8}):to_dlpack()
    end)
    assert.is_false(ok)
    assert.truthy(message:find("no type for elements of b1", 1, true))
  end)

  it("rejects other devices, versions and broken tensors", function()
    for what, fields in pairs {
      ["memory of ROCm (device type 10)"] = {device = 10},
      ["memory of Metal (device type 8)"] = {device = 8},
      ["memory of an unknown device (device type 77)"] = {device = 77},
      ["has 65 dimensions; 0 to 64"] = {ndim = 65},
      ["has -1 dimensions"] = {ndim = -1},
      ["extent 1 is -3"] = {shape = {-3}},
      ["extent 4611686018427387904"] = {shape = {1 << 62, 8}},
      ["stride 4611686018427387904"] = {strides = {1 << 62}},
      ["data pointer is NULL"] = {null = true},
      ["multiple of only 1 bytes"] = {at = 1},
      ["has DLPack version 2.3; version 1"] = {major = 2}} do
      fields.bytes, fields.shape = SIX, fields.shape or {2}
      rejected(what, fields)
    end
    rejected("multiple of only 2 bytes", {bytes = SIX, shape = {2}, offset = 2,
                                          versioned = false})
    for _, x in ipairs {false, "x", 0, 4096} do
      local ok, message = pcall(cute.from_dlpack, x)
      assert.is_false(ok)
      assert.truthy(message:find("bad argument #1", 1, true), message)
    end
    local made = peer.make {shape = {0}}
    local ok, message = pcall(cute.from_dlpack, made, {version = 1})
    assert.is_false(ok)
    assert.truthy(message:find("versioned", 1, true), message)
    peer.release(made, true)  -- a failed import does not take ownership
  end)
end)

describe("export by DLPack", function()
  it("exports tensors and views, which outlive the script's tensors",
      function()
    local t = cute.tensor({{1, 2, 3}, {4, 5, 6}}, cute.f32)
    local whole = t:to_dlpack()
    local column = cute.make_tensor(t.iterator + 1, cute.make_layout({2}, {3}))
      :to_dlpack {versioned = false}
    local got = peer.read(whole, true, 24)
    assert.same({1, 3, 0, 1, 0, {2, 3}, {3, 1}, SIX},
                {got.major, got.minor, got.flags, got.device, got.id,
                 got.shape, got.strides, got.memory})
    -- JAX shares memory by DLPack only at addresses that are multiples of 64.
    assert.equal(0, got.address % 64)
    t:set(0, 0, 10)
    t:close()
    collectgarbage()
    assert.equal(floats(10), peer.read(whole, true, 4).memory)
    peer.release(whole, true, true)
    got = peer.read(column, false, 16)
    assert.same({{2}, {3}, floats(2, 3, 4, 5)},
                {got.shape, got.strides, got.memory})
    peer.release(column, false, true)
  end)

  it("returns imported memory to its owner through an export", function()
    local t = cute.from_dlpack(peer.make {bytes = SIX, shape = {6}})
    local out
    assert.equal(0, deletions(function()
      out = t:to_dlpack()
      t:close()
      t = nil
    end))
    assert.equal(1, deletions(function() peer.release(out, true, true) end))
  end)

  it("accepts streams of other libraries on the simulator", function()
    local s = cute.external_stream(4096, "sim")
    local one = cute.kernel("one", function(x) x[0] = 1 end)
    local x = cute.zeros({1}, cute.f32)
    one(x):launch {grid = 1, block = 1, device = "sim", stream = s}
    assert.equal(1, x(0))
    s:close()
    assert.is_nil(cute.external_stream(0, "sim"))
    local ok, message = pcall(cute.external_stream, "x", "sim")
    assert.is_false(ok)
    assert.truthy(message:find("bad argument #1", 1, true), message)
  end)

  it("rejects the export of layouts without strides", function()
    local sw = cute.make_composed_layout(cute.make_swizzle(1, 0, 2), 0,
                                         cute.make_layout({4, 2}, {2, 1}))
    local t = cute.make_tensor(cute.buffer("f32", 16), sw)
    local ok, message = pcall(function() return t:to_dlpack() end)
    assert.is_false(ok)
    assert.truthy(message:find("describes tensors by strides", 1, true),
                  message)
    t = cute.zeros({4}, cute.f32)
    t:close()
    ok, message = pcall(function() return t:to_dlpack() end)
    assert.is_false(ok)
    assert.truthy(message:find("closed", 1, true), message)
  end)
end)
-- SPDX-License-Identifier: MIT
