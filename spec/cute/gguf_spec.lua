-- Tests the reader of GGUF files: with files that this spec writes by the
-- format's description, and with files of the package gguf, if the Python
-- CUTELUA_PYTHON (python3 when absent) has it.
local cute = require "cute"
local support = require "spec.support"

local dir

local function path(name) return dir .. "/" .. name end

local function text(s) return ("<s8"):pack(s) end

local function field(key, type_, bytes)
  return text(key) .. ("<I4"):pack(type_) .. bytes
end

-- Returns the bytes of a GGUF file that describe one tensor. `extents` begins
-- with the extent of the contiguous mode.
local function info(name, extents, type_, offset)
  return text(name) .. ("<I4"):pack(#extents)
    .. ("<I8"):rep(#extents):pack(table.unpack(extents))
    .. ("<I4I8"):pack(type_, offset)
end

-- Writes a GGUF file, and returns its path. `fields` and `infos` are lists of
-- byte strings: the entries of the metadata, and the descriptions of the
-- tensors. The data of the tensors, `data`, begin at a multiple of `align`
-- bytes.
local function file(fields, infos, data, align, version)
  local head = "GGUF" .. ("<I4I8I8"):pack(version or 3, #infos, #fields)
    .. table.concat(fields) .. table.concat(infos)
  return support.write(path "x.gguf", head .. ("\0"):rep(-#head % (align or 32))
    .. data)
end

local function rejects(what, ...)
  local ok, message = pcall(cute.gguf.open, {file(...)})
  assert.is_false(ok, what)
  assert.truthy(message:find(what, 1, true),
                ("%s\ndoes not say\n%s"):format(message, what))
end

before_each(function() dir = support.folder() end)
after_each(function() support.remove(dir) end)

describe("gguf", function()
  it("reads tensors with the fastest extent last", function()
    for version = 2, 3 do
      for _, align in ipairs {32, 64} do
        local f = cute.gguf.open {file({
          field("general.alignment", 4, ("<I4"):pack(align)),
          field("name", 8, text "a\0b"), field("yes", 7, "\1"),
          field("list", 9, ("<I4I8"):pack(8, 2) .. text "x" .. text ""),
          field("deep", 9, ("<I4I8I4I8i2I4I8"):pack(9, 2, 3, 1, -7, 5, 0)),
          field("big", 10, ("<I8"):pack(1 << 62)),
          field("real", 12, ("<d"):pack(0.1)), field("byte", 1, "\255")},
          {info("W", {3, 2}, 0, 0), info("h", {2}, 30, align),
           info("i", {1, 1, 1, 2}, 24, 2 * align)},
          ("<ffffff"):pack(1, 2, 3, 4, 5, 6) .. ("\0"):rep(align - 24)
          .. "\x80\x3f\0\x40" .. ("\0"):rep(align - 4) .. "\5\255", align,
          version)}
        assert.same({["general.alignment"] = align, name = "a\0b", yes = true,
          list = {"x", ""}, deep = {{-7}, {}}, big = 1 << 62, real = 0.1,
          byte = -1}, f.metadata)
        local W = f:tensor "W"
        assert.equal("(2,3):(3,1)", tostring(W.layout))
        assert.same({1, 3, 4}, {W(0, 0), W(0, 2), W(1, 0)})
        assert.same({1, 2}, {f:tensor "h"(0), f:values "h"(1)})
        assert.equal("(2,1,1,1):(1,0,0,0)", tostring(f:tensor "i".layout))
        assert.equal(-1, f:tensor "i"(1, 0, 0, 0))
        assert.equal("F32", f.entries.W.type)
      end
    end
  end)

  it("takes blocks of NVFP4 by sixteens and of MXFP4 by halves", function()
    -- The low half of byte i is the code i, from 0 to 7. The high half is the
    -- code i + 8, which is the negative value: bit 3 is the sign.
    local codes = ""
    for i = 0, 7 do codes = codes .. string.char(i | (i | 8) << 4) end
    local nv = "\x38\x40\x30\x01" .. codes:rep(4)
    local mx = "\127" .. codes .. codes .. "\0" .. codes .. codes
      .. "\255" .. codes .. codes
    local f = cute.gguf.open {file({}, {info("n", {64}, 40, 0),
      info("m", {32, 3}, 39, 64)}, nv .. ("\0"):rep(28) .. mx)}
    local values = {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6}
    local n, m = f:values "n", f:values "m"
    for i = 0, 63 do
      local d = ({1, 2, 0.5, 2.0 ^ -9})[i // 16 + 1]
      local sign = i % 16 < 8 and 1 or -1
      assert.equal(sign * d * values[i % 8], n(i), i)
    end
    for i = 0, 31 do
      local want = (i < 16 and 1 or -1) * values[i % 8]
      assert.equal(want, m(0, i), i)
      assert.equal(want * 2.0 ^ -127, m(1, i), i)
      assert.truthy(m(2, i) ~= m(2, i))   -- a scale of 255 is a NaN
    end
    assert.equal("(36):(1)", tostring(f:blocks "n".layout))
    assert.equal("(3,17):(17,1)", tostring(f:blocks "m".layout))
    assert.equal(255, f:blocks "m"(2, 0))
    local ok, why = pcall(f.tensor, f, "m")
    assert.is_false(ok)
    assert.truthy(why:find("m (byte 57) has the type MXFP4, blocks of 32 "
      .. "elements; f:blocks returns their bytes", 1, true), why)
  end)

  it("rejects what the format forbids, with the byte", function()
    local one = {info("a", {2}, 24, 0)}
    rejects("is big-endian", {}, {}, "", 32, 3 << 24)
    rejects("version 1; 2 and 3", {}, {}, "", 32, 1)
    rejects("type 13; types 0 to 12", {field("k", 13, "")}, {}, "")
    rejects("byte 38: a boolean has the value 2; 0 or 1 is needed",
            {field("k", 7, "\2")}, {}, "")
    rejects("k occurs twice", {field("k", 7, "\1"), field("k", 7, "\1")}, {},
            "")
    rejects("byte 37: the file claims to have 99 bytes of a text, but has only",
            {field("k", 8, ("<I8"):pack(99))}, {}, "xx")
    rejects("18446744073709551615 elements", {field("k", 9,
      ("<I4i8"):pack(0, -1))}, {}, "xx")
    rejects("arrays have more than 8 levels of nesting", {field("k", 9,
      ("<I4I8"):pack(9, 1):rep(9) .. ("<I4I8"):pack(0, 0))}, {}, "")
    rejects("general.alignment is 24",
            {field("general.alignment", 4, ("<I4"):pack(24))}, one, "xx")
    rejects("a (byte 24) has the type 99", {}, {info("a", {2}, 99, 0)}, "xx")
    rejects("has 5 extents", {}, {info("a", {1, 1, 1, 1, 1}, 24, 0)}, "x")
    rejects("rows of 31 elements are not a whole number of blocks of Q8_0", {},
            {info("a", {31}, 8, 0)}, "x")
    rejects("has 2 bytes at offset 4 of the data; the offset must be a "
      .. "multiple of 32", {}, {info("a", {2}, 24, 4)}, ("x"):rep(64))
    rejects("the file's 1 bytes of data", {}, one, "x")
    rejects("extent 1 is 4611686018427387904", {},
            {info("a", {2, 1 << 62}, 24, 0)}, "xx")
    rejects("b (byte 57) overlaps a (byte 24)", {},
            {info("a", {33}, 24, 0), info("b", {1}, 24, 32)}, ("x"):rep(64))
    rejects("a (byte 57) occurs twice", {}, {one[1], one[1]}, "xx")
  end)

  it("answers any damage with tensors or a sentence", function()
    local good = support.read(file({field("k", 9, ("<I4I8"):pack(8, 2)
      .. text "x" .. text "y"), field("n", 5, ("<i4"):pack(3))},
      {info("a", {2, 3}, 0, 0), info("b", {32}, 8, 32)}, ("x"):rep(66)))
    for i = 1, 600 do
      local at = math.random(#good)
      local bad = i > 300 and good:sub(1, at - 1) or good:sub(1, at - 1)
        .. string.char(math.random(0, 255)) .. good:sub(at + 1)
      support.write(path "bad", bad)
      local ok, f = pcall(cute.gguf.open, {path "bad"})
      if ok then
        for name in pairs(f.entries) do
          local fine, why = pcall(f.values, f, name)
          assert.truthy(fine or why:find "f:blocks returns", why)
          f:blocks(name)
        end
      else
        assert.truthy(f:find "gguf.open: [^\n]+%[io%]$", f)
      end
    end
  end)
end)

local PYTHON = os.getenv "CUTELUA_PYTHON" or "python3"

describe("files of the Python package gguf", function()
  it("have the same metadata, elements and values", function()
    if select(3, support.exec {PYTHON, "-c", "import gguf, numpy"}) ~= 0 then
      return pending "needs the Python package gguf (CUTELUA_PYTHON)"
    end
    local out, err, code = support.exec {PYTHON, "-c", [[
import sys, numpy as np, gguf
from gguf import GGMLQuantizationType as Q
w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_array("words", ["a", "", "ü"])
w.add_uint64("many", 2**40)
rng = np.random.default_rng(1)
for t in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32,
          np.int64):
    x = (rng.standard_normal((3, 4)) * 50).astype(t)
    w.add_tensor(np.dtype(t).name, x)
    print(np.dtype(t).name, *[float(v) for v in x.flatten()])
for q in (Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.MXFP4):
    b = gguf.quantize(rng.standard_normal((2, 64)).astype(np.float32), q)
    w.add_tensor(q.name, b, raw_dtype=q)
    print(q.name, *[float(v) for v in gguf.dequantize(b, q).flatten()])
b = rng.integers(0, 127, (2, 36), dtype=np.uint8)
w.add_tensor("NVFP4", b, raw_dtype=Q.NVFP4)
print("NVFP4", *[float(v) for v in gguf.dequantize(b, Q.NVFP4).flatten()])
for q, (n, size) in gguf.GGML_QUANT_SIZES.items():
    if q.name + "" not in ("BF16", "NVFP4") and n > 1:
        b = np.zeros((1, size), np.uint8)
        w.add_tensor("size." + q.name, b, raw_dtype=q)
        print("size." + q.name, n, size)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
]], path "p.gguf"}
    assert.equal(0, code, err)
    local f = cute.gguf.open {path "p.gguf"}
    assert.same({"a", "", "ü"}, f.metadata.words)
    assert.equal(1 << 40, f.metadata.many)
    assert.equal("llama", f.metadata["general.architecture"])
    local seen = 0
    for name, rest in out:gmatch "(%S+) ([^\n]*)" do
      seen = seen + 1
      local of = name:match "^size%.(.*)$"
      if of then
        local e = f.entries[name]
        assert.same({of, ("%d %d"):format(e.block, e.bytes)}, {e.type, rest})
      else
        local t, i = f:values(name), 0
        for want in rest:gmatch "%S+" do
          local at = cute.size(t, 1)
          assert.equal(tonumber(want), t(i // at, i % at) + 0.0, name)
          i = i + 1
        end
        assert.equal(cute.size(t), i)
      end
    end
    assert.truthy(seen > 30)
  end)
end)
-- Changes a text at random: cuts it, or overwrites a byte or a number.
local function damaged(s)
  local numbers = {0, 1, 3, 31, 255, 1 << 31, 1 << 32, 1 << 61, 1 << 62,
                   math.mininteger, -1, -32, #s, #s // 2}
  for _ = 1, math.random(3) do
    local kind, at = math.random(4), math.random(#s)
    local n = numbers[math.random(#numbers)]
    local new = kind == 2 and string.char(math.random(0, 255))
      or kind == 3 and ("<i8"):pack(n) or ("<I4"):pack(n & 0xffffffff)
    if kind == 1 then s = s:sub(1, at)
    else s = s:sub(1, at - 1) .. new .. s:sub(at + #new) end
  end
  return s
end

describe("a damaged file", function()
  local function valid()
    return file({field("general.alignment", 4, ("<I4"):pack(32)),
      field("name", 8, text "a\0b"), field("yes", 7, "\1"),
      field("deep", 9, ("<I4I8I4I8i2I4I8"):pack(9, 2, 3, 1, -7, 5, 0))},
      {info("W", {3, 2}, 0, 0), info("q", {32, 2}, 2, 32),
       info("s", {}, 0, 96), info("e", {0, 4}, 1, 128),
       info("m", {64}, 40, 128), info("k", {256}, 12, 192)},
      ("\1\2\3\4"):rep(100))
  end

  -- Reads all tensors of a file, and their elements.
  local function read()
    local f = cute.gguf.open {path "x.gguf"}
    for name in pairs(f.entries) do
      for _, how in ipairs {"tensor", "blocks", "values"} do
        local ok, t = pcall(f[how], f, name)
        if ok then
          local n = 0
          for _ in t:elements() do n = n + 1 end
          assert.equal(cute.size(t), n)
        else
          assert.matches(" %[[%l-]+%]$", t)
        end
      end
    end
  end

  it("is read, or its error says what is wrong", function()
    math.randomseed(5)
    valid()
    local whole = assert(support.read(path "x.gguf"))
    read()
    local rejected = 0
    for _ = 1, 300 do
      support.write(path "x.gguf", damaged(whole))
      local ok, message = pcall(read)
      if not ok then
        rejected = rejected + 1
        assert.matches("gguf_spec%.lua:%d+: gguf%.open: .* %[io%]$", message)
      end
    end
    assert.is_true(rejected > 50 and rejected < 300, tostring(rejected))
  end)

  it("does not fill the memory with the zeros of a sparse file", function()
    for what, rest in pairs {
      ["more than 16777216 elements"] = ("<I4I4I8"):pack(9, 0, 1 << 30),
      ["a text has 1073741824 bytes"] = ("<I4I8"):pack(8, 1 << 30)} do
      local f = assert(io.open(path "x.gguf", "wb"))
      f:write("GGUF", ("<I4I8I8"):pack(3, 0, 1), text "a", rest)
      f:seek("set", 1 << 32)
      f:write "x"
      f:close()
      local ok, message = pcall(cute.gguf.open, {path "x.gguf"})
      assert.is_false(ok)
      assert.truthy(message:find(what, 1, true), message)
    end
  end)

  it("is not confused with wrong calls", function()
    local f = cute.gguf.open {valid()}
    support.raises("bad argument #1 to 'gguf:tensor' (string expected, got "
      .. "no value)", function() f:tensor() end)
    support.raises("'gguf:values' is a method, but was called with a dot",
      function() f.values "W" end)
    support.raises("has no 'tensors' (did you mean tensor?)",
      function() f:tensors() end)
  end)
end)
-- SPDX-License-Identifier: MIT
