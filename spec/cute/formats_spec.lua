-- Tests files and numbers for which readers, writers and libraries of other
-- projects deviate from the format or from each other. The differences were
-- measured with safetensors 0.8.0, ml_dtypes 0.6.0, torch 2.15, JAX 0.12. GGUF
-- has a spec of its own, gguf_spec; the exchange with Python is in
-- spec/python/.
local cute = require "cute"
local core = require "cute.core"
local npy = require "cute.npy"
local support = require "spec.support"

local dir

local function path(name) return dir .. "/" .. name end

-- Returns a safetensors file with this header, followed by `bytes`.
local function file(header, bytes)
  return support.write(path "x.safetensors",
                       ("<I8"):pack(#header) .. header .. (bytes or ""))
end

local function rejects(what, header, bytes)
  local ok, message = pcall(cute.safetensors.open, {file(header, bytes)})
  assert.is_false(ok, what)
  assert.truthy(message:find(what, 1, true),
                ("%s\ndoes not say\n%s"):format(message, what))
end

local function tensor(dtype, bytes, shape)
  return cute.make_tensor(cute.buffer_from(dtype, bytes),
                          cute.make_layout(shape, cute.LayoutRight))
end

-- Runs a kernel that computes f(x, y), where x has the type tx and y the type
-- ty. Returns the result converted to f32, and the type of the result.
local function computed(f, tx, x, ty, y)
  local out, dtype = cute.zeros({32}, cute.f32), nil
  local k = cute.kernel(function(a, b, z)
    local i = cute.arch.thread_idx()
    local v = f(a[i], b[i])
    dtype = tostring(v.dtype)
    z[i] = v:to(cute.f32)
  end)
  k(cute.full({32}, x, cute[tx]), cute.full({32}, y, cute[ty]), out)
    :launch {grid = 1, block = 32, device = "sim"}
  return out(0), dtype
end

-- Returns the number that a buffer of type t holds after x was stored in it.
local function rounded(t, x)
  local b = cute.buffer(t, 1)
  b:set(0, x)
  return b[0]
end

before_each(function() dir = support.folder() end)
after_each(function() support.remove(dir) end)

describe("safetensors", function()
  it("stores strided and Fortran-order tensors in row-major order", function()
    local all = cute.zeros({4, 6}, cute.f32)
    for i = 0, 3 do
      for j = 0, 5 do all:set(i, j, 10 * i + j) end
    end
    local views = {
      plain = all, fortran = cute.make_tensor(all.iterator,
        cute.make_layout({6, 4}, {1, 6})),
      steps = cute.make_tensor(all.iterator + 1,
        cute.make_layout({2, 3}, {12, 2})),
      column = cute.make_tensor(all.iterator + 2, cute.make_layout({4}, {6})),
      same = cute.make_tensor(all.iterator, cute.make_layout({2, 3}, {0, 1}))}
    assert(cute.safetensors.write(path "v", views, {made = "here"}))
    local f = cute.safetensors.open {path "v"}
    assert.same({made = "here"}, f.metadata)
    for name, t in pairs(views) do
      local got, shape = f:tensor(name), cute.shape(t)
      assert.same(shape, cute.shape(got))
      for i = 0, cute.size(t) - 1 do
        assert.equal(t(i), got(i), name)
      end
    end
    -- The expected bytes follow from the format's description.
    local text = support.read(path "v")
    local n = ("<I8"):unpack(text)
    local from = tonumber(text:sub(9, 8 + n)
      :match '"steps":{[^}]*"data_offsets":%[(%d+),')
    assert.equal(("<ffffff"):pack(1, 3, 5, 21, 23, 25),
                 text:sub(9 + n + from, 32 + n + from))
  end)

  it("reads back every type that it writes", function()
    local tensors = {}
    for _, t in ipairs {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "ue8m0",
                        "e2m3", "e3m2", "e2m1", "i64", "i32", "i16", "i8",
                        "u64", "u32", "u16", "u8", "boolean"} do
      local bytes = {}
      for i = 1, cute[t].bits do bytes[i] = string.char(i * 7 % 64) end
      tensors[t] = tensor(t, table.concat(bytes), {2, 4})
    end
    assert(cute.safetensors.write(path "t", tensors))
    local f = cute.safetensors.open {path "t"}
    for t, x in pairs(tensors) do
      assert.equal(t, f.entries[t].dtype)
      for i = 0, 7 do assert.equal(x(i), f:tensor(t)(i), t) end
    end
    for _, t in ipairs {"i4", "tf32"} do
      local ok, message = pcall(cute.safetensors.write, path "no",
                                {a = cute.zeros({8}, cute[t])})
      assert.is_false(ok)
      assert.truthy(message:find("no type for elements of " .. t, 1, true))
    end
  end)

  it("reads headers with padding and metadata", function()
    local f = cute.safetensors.open {file('{"__metadata__":{"format":"pt",'
      .. '"a\\u00e9":"x"},\n "e":{"shape":[0,4],"dtype":"BF16",'
      .. '"data_offsets":[0,0]}, "s":{"dtype":"F32","shape":[],'
      .. '"data_offsets":[0,4]}}   ', ("<f"):pack(7))}
    assert.same({format = "pt", ["a\u{e9}"] = "x"}, f.metadata)
    assert.equal(7, f:tensor "s"(0))
    assert.equal("(0,4):(4,1)", tostring(f:tensor "e".layout))
    assert.same({}, cute.safetensors.open {file "{}"}.entries)
  end)

  it("rejects what the format forbids, with the byte", function()
    local a = '"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    local function at(n, m)
      return ('"b":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}')
        :format(m - n, n, m)
    end
    rejects("its header begins with \" \" at byte 8", " {}")
    rejects("its header is not JSON: byte 9: a name expected", "{x}")
    rejects("its header is not JSON: byte 61: a name that was there before",
            "{" .. a .. "," .. a .. "}", "xx")
    rejects("b begins at byte 122; byte 121 is needed",
            "{" .. a .. "," .. at(3, 4) .. "}" .. (" "):rep(6), "xxxx")
    rejects("b begins at byte 114; byte 115 is needed",
            "{" .. a .. "," .. at(1, 4) .. "}", "xxxx")
    rejects("no tensor covers the data from byte 63 on", "{" .. a .. "}", "xxx")
    rejects('b (byte 10) has the type "F9"',
            '{ "b":{"dtype":"F9","shape":[],"data_offsets":[0,4]}}', "xxxx")
    rejects("4 bits are not a whole number of bytes",
            '{"b":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}}', "x")
    rejects("__metadata__ (byte 9) must be an object of strings",
            '{"__metadata__":{"n":3}}')
  end)
end)

local W = {dtype = "f32", shape = {2, 3},
           bytes = ("<ffffff"):pack(1, 2, 3, 4, 5, 6)}

-- Runs Python, whose zipfile module is the oracle; returns its output.
local function python(code, ...)
  local out, err, status = support.exec {"python3", "-c", code, ...}
  assert(status == 0, err)
  return out
end

describe("npz", function()
  it("writes archives that Python's zipfile reads #long", function()
    local big = {dtype = "u8", shape = {70000}, bytes = ("abc"):rep(70000)
      :sub(1, 70000)}
    for _, compress in ipairs {false, true} do
      assert(cute.npz.write(path "a.npz", {W = W, ["\u{e9} x"] = big,
        none = {dtype = "i8", shape = {0}, bytes = ""}},
        {compress = compress}))
      local out = python([[
import sys, zipfile, hashlib
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
for i in z.infolist():
    digest = hashlib.sha256(z.read(i)).hexdigest()
    print(ascii(i.filename), i.compress_type, digest)
]], path "a.npz")
      local want = {}
      for _, m in ipairs {{"W.npy", "'W.npy'", W},
                          {"none", "'none.npy'", {dtype = "i8", shape = {0},
                                                  bytes = ""}},
                          {"x", "'\\xe9 x.npy'", big}} do
        npy.write(path "one", m[3])
        want[#want + 1] = m[2] .. (compress and " 8 " or " 0 ") .. python(
          "import sys, hashlib; print(hashlib.sha256(open(sys.argv[1],"
          .. "'rb').read()).hexdigest())", path "one")
      end
      assert.equal(table.concat(want), out)
      local back = assert(cute.npz.read(path "a.npz"))
      assert.same(W.bytes, back.W.bytes)
      assert.same(W.shape, back.W.shape)
      assert.equal(big.bytes, back["\u{e9} x"].bytes)
      assert.same({0}, back.none.shape)
      assert.is_nil(next(assert(cute.npz.read(path "a.npz",
        {names = {"W"}})), "W"))
    end
  end)

  it("reads archives that Python's zipfile writes", function()
    npy.write(path "w.npy", W)
    for _, force in ipairs {"False", "True"} do
      for _, method in ipairs {"0", "8"} do
        python([[
import sys, zipfile
z = zipfile.ZipFile(sys.argv[2], "w", int(sys.argv[3]), True)
with z.open("W.npy", "w", force_zip64=eval(sys.argv[4])) as f:
    f.write(open(sys.argv[1], "rb").read())
z.writestr("note.txt", "x" * 100)
z.comment = b"PK\5\6 comment"
z.close()
open(sys.argv[5], "wb").write(b"#!/bin/sh\n" + open(sys.argv[2], "rb").read())
]], path "w.npy", path "p.npz", method, force, path "prefixed")
        local got = assert(cute.npz.read(path "p.npz"))
        assert.equal(W.bytes, got.W.bytes)
        assert.is_nil(got.note)
      end
    end
    local _, why = cute.npz.read(path "prefixed")
    assert.truthy(why:find("broken record at byte", 1, true), why)
  end)

  it("reads types that the descr does not name", function()
    assert(cute.npz.write(path "b.npz", {x = {dtype = "bf16", shape = {2},
                                              bytes = "\x80\x3f\0\x40"}}))
    local got = assert(cute.npz.read(path "b.npz", {dtype = "bf16"}))
    assert.equal(2, npy.tensor(got.x)(1))
    assert.equal("bf16", cute.npz.read(path "b.npz",
      {dtype = {x = "bf16"}}).x.dtype)
    local _, why = cute.npz.read(path "b.npz")
    assert.truthy(why:find("member x.npy element type '<V2'", 1, true), why)
  end)

  it("rejects damaged archives, in one sentence", function()
    assert(cute.npz.write(path "a.npz", {W = W}, {compress = true}))
    local good = support.read(path "a.npz")
    local function says(what, text, opts)
      support.write(path "bad.npz", text)
      local arrays, why = cute.npz.read(path "bad.npz", opts)
      assert.is_nil(arrays)
      assert.truthy(why:find(what, 1, true), why)
    end
    says("has no end record", "")
    says("has no end record", good:sub(1, -2))
    says("has no array V", good, {names = {"V"}})
    local directory = good:find("PK\1\2", 1, true)
    local function patched(at, text)
      return good:sub(1, at - 1) .. text .. good:sub(at + #text)
    end
    says("method 12; stored and deflated", patched(directory + 10, "\12"))
    says("is encrypted", patched(directory + 8, "\1"))
    says("has a wrong checksum", patched(directory + 16, "\0\0\0\0"))
    says("cannot expand to its size", patched(directory + 24, "\255\255\255"))
    says("has no header at byte 7", patched(directory + 42, "\7"))
    says("is cut off", patched(directory + 20, "\0\0\255"))
    says("broken record", patched(directory, "XX"))
    -- Damaged files must not crash the reader, nor change an array silently.
    for _ = 1, 300 do
      local at = math.random(#good)
      support.write(path "bad.npz",
                    patched(at, string.char(math.random(0, 255))))
      local arrays = cute.npz.read(path "bad.npz")
      if arrays and arrays.W then
        assert.equal(W.bytes, arrays.W.bytes)
      end
    end
  end)

  it("inflates what deflate made, of any size", function()
    for _, n in ipairs {0, 1, 255, 65536, 300001} do
      local text = {}
      for i = 1, n do text[i] = string.char(i * i // 7 % 251) end
      text = table.concat(text)
      assert.equal(text, core.inflate(core.deflate(text), n))
      if n > 0 then
        assert.is_nil((core.inflate(core.deflate(text), n - 1)))
        assert.is_nil((core.inflate(core.deflate(text), n + 1)))
      end
    end
  end)
end)

describe("numbers", function()
  it("multiply narrow floats in the same type in either order", function()
    local function product(a, b) return a * b end
    for _, y in ipairs {100, 96, 7, 0.25} do
      local x, t = computed(product, "e2m1", 1.5, "e4m3", y)
      local z, u = computed(product, "e4m3", y, "e2m1", 1.5)
      assert.same({x, t}, {z, u})
      assert.equal("e4m3", t)
    end
    local _, t = computed(function(a) return a * 0.5 end, "bf16", 3, "f32", 0)
    assert.equal("bf16", t)
  end)

  it("round f64 to 8 bits and less once", function()
    for _, t in ipairs {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"} do
      local values = {}
      local bits = cute[t].bits
      for code = 0, (1 << bits - 1) - 1 do
        local x = cute.buffer_from(t, ("<I3"):pack(code))[0]
        if x == x and x < math.huge then values[#values + 1] = x end
      end
      for i = 1, #values - 1 do
        local low, high = values[i], values[i + 1]
        local middle = (low + high) / 2
        local tiny = middle * 2.0 ^ -40
        assert.equal(high, rounded(t, middle + tiny))
        assert.equal(low, rounded(t, middle - tiny))
        -- A tie goes to the even code. Codes increase with their values.
        assert.equal(i % 2 == 1 and low or high, rounded(t, middle))
      end
    end
  end)

  it("wrap 4-bit integers within the type", function()
    local function minus(a) return -a end
    assert.equal(-8, (computed(minus, "i4", -8, "f32", 0)))
    assert.equal(13, (computed(minus, "u4", 3, "f32", 0)))
    assert.equal(-3, (computed(minus, "i4", 3, "f32", 0)))
  end)

  it("keep all elements when a NaN is sorted #long", function()
    local nan = 0 / 0
    for _, t in ipairs {"bf16", "f16", "f32"} do
      local x = cute.tensor({1, nan, 3, 2, nan, 5, 4, 0}, cute[t])
      local v, i = cute.ops.topk(x, 8, {device = "sim"})
      local seen = {}
      for k = 0, 7 do
        local from = i(k)
        assert.is_nil(seen[from])
        seen[from] = true
        assert.truthy(v(k) == x(from) or v(k) ~= v(k) and x(from) ~= x(from))
        assert.truthy(k < 2 and v(k) ~= v(k) or k >= 2 and v(k) == 7 - k)
      end
    end
    -- Elements of 8-bit floats are rejected, not sorted wrongly.
    for _, t in ipairs {"e4m3", "e5m2"} do
      local ok, why = pcall(cute.ops.topk, cute.tensor({1, nan}, cute[t]), 1,
                            {device = "sim"})
      assert.is_false(ok)
      assert.truthy(why:find("type " .. t .. "; bf16, f16 or f32 is needed", 1,
                             true), why)
    end
  end)

  it("convert to types without infinities by one rule", function()
    -- The result is the nearest power of two, on a tie the larger one (as in
    -- PyTorch, ml_dtypes and ONNX). Beyond the range it is the least or the
    -- largest one.
    for x, want in pairs {[0] = 2.0 ^ -127, [-1] = 1, [1.1] = 1, [1.5] = 2,
                          [3] = 4, [0.75] = 1,
                          [2.0 ^ -130] = 2.0 ^ -127, [3e38] = 2.0 ^ 127,
                          [2.0 ^ 127] = 2.0 ^ 127} do
      assert.equal(want, rounded("ue8m0", x), x)
    end
    assert.truthy(rounded("ue8m0", 0 / 0) ~= rounded("ue8m0", 0 / 0))
    local all = cute.buffer_from("ue8m0", "\255\254\0")
    assert.truthy(all[0] ~= all[0])
    assert.same({2.0 ^ 127, 2.0 ^ -127}, {all[1], all[2]})
    assert.equal(6, rounded("e2m1", 0 / 0))
    for _, x in ipairs {500, math.huge} do
      assert.equal(448, rounded("e4m3", x))
      assert.equal(-448, rounded("e4m3", -x))
    end
    assert.equal(57344, rounded("e5m2", math.huge))
  end)

  it("pack 4-bit elements in order, the low half of a byte first", function()
    local b = cute.buffer_from("e2m1", "\x21\x43")
    assert.same({0.5, 1, 1.5, 2}, {b[0], b[1], b[2], b[3]})
    local p = cute.make_tensor(b, cute.make_layout {4}):to_dlpack()
    local t = cute.from_dlpack(p)
    assert.same({0.5, 1, 1.5, 2}, {t(0), t(1), t(2), t(3)})
  end)

  it("share memory through DLPack at any alignment, and keep it writable",
  function()
    local x = cute.zeros({64}, cute.f32)
    for at = 0, 33 do
      local view = cute.make_tensor(x.iterator + at, cute.make_layout {8})
      local u = cute.from_dlpack(view:to_dlpack())
      u:set(3, at + 1)
      assert.equal(at + 1, x(at + 3))
      x:set(at + 3, -1)
      assert.equal(-1, u(3))
    end
  end)

  it("keep 64-bit integers through DLPack", function()
    local t = cute.tensor({(1 << 40) + 5, -1}, cute.i64)
    local u = cute.from_dlpack(t:to_dlpack())
    assert.equal(cute.i64, u.dtype)
    assert.same({(1 << 40) + 5, -1}, {u(0), u(1)})
  end)
end)
-- SPDX-License-Identifier: MIT
