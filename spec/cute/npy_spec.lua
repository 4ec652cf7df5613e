local npy = require "cute.npy"
local support = require "spec.support"

-- Returns a file of version `major`, built from the format's description.
local function file(dict, data, major)
  major = major or 1
  local size = major == 1 and "<I2" or "<I4"
  local fixed = 6 + 2 + size:packsize()
  local text = dict .. (" "):rep(-(fixed + #dict + 1) % 64) .. "\n"
  return "\x93NUMPY" .. string.char(major, 0) .. size:pack(#text) .. text
    .. data
end

local F4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
local SIX = ("<ffffff"):pack(1, 2, 3, 4, 5, 6)

local dir

local function read(bytes, opt)
  return npy.read(support.write(dir .. "/x.npy", bytes), opt)
end
local function refused(want, bytes, opt)
  local array, why = read(bytes, opt)
  assert.is_nil(array)
  assert.equal(("%s/x.npy %s [io]"):format(dir, want), why)
end

describe("npy", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("reads versions 1, 2 and 3", function()
    for major = 1, 3 do
      local a = assert(read(file(F4, SIX, major)))
      assert.equal("f32", a.dtype)
      assert.same({2, 3}, a.shape)
      assert.is_false(a.fortran)
      assert.equal(SIX, a.bytes)
    end
  end)

  it("reads every element type", function()
    local types = {["|b1"] = "boolean", ["|i1"] = "i8", ["|u1"] = "u8",
      ["<i2"] = "i16", ["<u2"] = "u16", ["<i4"] = "i32", ["<u4"] = "u32",
      ["<i8"] = "i64", ["<u8"] = "u64", ["<f2"] = "f16", ["=f4"] = "f32",
      ["<f8"] = "f64", ["<c16"] = "complex_f64"}
    for descr, name in pairs(types) do
      local size = math.tointeger(tonumber(descr:match "%d+$"))
      local data = ("x"):rep(size * 5)
      local a = assert(read(file(("{'descr': '%s', 'fortran_order': False, "
        .. "'shape': (5,), }"):format(descr), data)))
      assert.equal(name, a.dtype)
      assert.same({5}, a.shape)
      assert.equal(data, a.bytes)
    end
  end)

  it("reads Fortran order, scalars, empty arrays, other spellings",
      function()
    assert.is_true(assert(read(file(F4:gsub("False", "True"), SIX))).fortran)
    assert.same({}, assert(read(file(F4:gsub("2, 3", ""),
      SIX:sub(1, 4)))).shape)
    local a = assert(read(file(F4:gsub("2, 3", "0, 3"), "")))
    assert.same({0, 3}, a.shape)
    assert.equal("", a.bytes)
    a = assert(read(file('{"shape":(3,2),"descr":"<f4",'
      .. '"fortran_order":False}', SIX)))
    assert.same({3, 2}, a.shape)
  end)

  it("reads back its own files, which follow the format", function()
    local path = dir .. "/y.npy"
    assert.is_true(npy.write(path, {dtype = "f32", shape = {2, 3},
      bytes = SIX}))
    assert.equal(file("{'descr': '<f4', 'fortran_order': False, "
      .. "'shape': (2, 3), }", SIX), support.read(path))
    for _, shape in ipairs {{}, {7}, {2, 3, 4}} do
      local n = 1
      for _, x in ipairs(shape) do n = n * x end
      local array = {dtype = "u8", shape = shape, fortran = true,
        bytes = ("q"):rep(n)}
      assert.is_true(npy.write(path, array))
      local a = assert(npy.read(path))
      assert.same(shape, a.shape)
      assert.is_true(a.fortran)
      assert.equal(array.bytes, a.bytes)
      assert.equal(0, (#support.read(path) - n) % 64)
    end
  end)

  it("rejects other files", function()
    refused("is not a .npy file (it does not start with \\x93NUMPY)", "PK\3\4")
    refused("is empty", "")
    refused("has the unknown .npy version 9.0",
      "\x93NUMPY\9\0\10\0abcdefgh")
  end)

  it("rejects a file that is truncated anywhere", function()
    local whole = file(F4, SIX)
    for n = 6, #whole - 1 do
      local a, why = read(whole:sub(1, n))
      assert.is_nil(a)
      assert.truthy(why:find("ends within", 1, true)
        or why:find("is too short", 1, true), n .. ": " .. why)
    end
    refused("is too short: 24 bytes of elements expected for shape (2,3) of "
      .. "f32, got 23", whole:sub(1, -2))
    assert.truthy(read(whole .. "more"))
  end)

  it("rejects unsupported element types", function()
    local function with(descr)
      return file(F4:gsub("'<f4'", descr), SIX)
    end
    refused("big-endian elements ('>f4') are not supported: in Python, "
      .. "a.astype('<f4') converts them", with "'>f4'")
    refused("element type '<U8' is not supported", with "'<U8'")
    refused("element type '|V2' does not define its bytes: pass dtype = "
      .. "\"bf16\"", with "'|V2'")
    refused("element type '<V1' does not define its bytes: pass dtype = "
      .. "\"e4m3\" or \"ue8m0\"", with "'<V1'", {dtype = "f32"})
    refused("element type '|V3' is not supported", with "'|V3'")
    refused("element type '|O' is not supported", with "'|O'")
    refused("structured element types are not supported",
      with "[('a', '<f4')]")
  end)
end)

describe("npy", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("reads bf16 and 8-bit floats as the type that the caller names", function()
    -- the type strings with which NumPy 2.4.6 saves arrays of ml_dtypes 0.6.0
    local saved = {bf16 = {"<V2", 2}, e4m3 = {"<V1", 1}, e5m2 = {"<f1", 1},
                   ue8m0 = {"<V1", 1}}
    for name, t in pairs(saved) do
      local dict = F4:gsub("<f4", t[1])
      local data = ("abcdefghijkl"):sub(1, 6 * t[2])
      for _, dtype in ipairs {name, {"f32", name}} do
        local a = assert(read(file(dict, data), {dtype = dtype}))
        assert.equal(name, a.dtype)
        assert.equal(data, a.bytes)
        assert.equal(file(dict, ""), npy.make_header(name, {2, 3}))
      end
      local a = {dtype = name, shape = {2, 3}, bytes = data}
      assert.is_true(npy.write(dir .. "/y.npy", a))
      assert.equal(file(dict, data), support.read(dir .. "/y.npy"))
      assert.equal(name, tostring(npy.tensor(a).dtype))
    end
  end)

  it("rejects broken headers", function()
    refused("has a broken header: {'descr': '<f4', 'fortran_order': Maybe, "
      .. "'shape': (2, 3), }", file(F4:gsub("False", "Maybe"), SIX))
    refused("has a broken header: {'descr': '<f4', 'fortran_order': False, "
      .. "'shape': (-2, 3), }", file(F4:gsub("2, 3", "-2, 3"), SIX))
    refused("has a shape too large to count: "
      .. "(4611686018427387904,4611686018427387904)", file(F4:gsub("2, 3",
      "4611686018427387904, 4611686018427387904"), SIX))
    refused("ends within its header", "\x93NUMPY\1\0\255\255{'descr'")
  end)

  -- Returns the bytes of a .npy header whose text is exactly `text`, without
  -- padding.
  local function bare(text, major)
    return "\x93NUMPY" .. string.char(major or 1, 0)
      .. ((major or 1) == 1 and "<I2" or "<I4"):pack(#text) .. text
  end

  it("reports what is wrong with every malformed header", function()
    for major = 1, 3 do
      refused("has an empty header", bare("", major) .. SIX)
      refused("has an empty header", bare(" ", major) .. SIX)
      refused("has an empty header", bare("\n", major) .. SIX)
      refused("has a broken header: {", bare("{", major) .. SIX)
    end
    for dict, key in pairs {["{}"] = "descr",
        ["{'descr': '<f4'}"] = "fortran_order",
        ["{'descr': '<f4', 'fortran_order': False}"] = "shape",
        ["{'fortran_order': False, 'shape': (2, 3)}"] = "descr"} do
      refused(("has no '%s' in its header"):format(key), bare(dict, 1) .. SIX)
    end
    for _, dict in ipairs {"[]", "descr", "{'descr'}", "{'descr': }",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': 'False', 'shape': (2, 3)}",
        "{'descr': True, 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2.5, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0x2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ((2, 3))}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1" .. ("0"):rep(30)
          .. ",)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} + 1",
        "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, "
          .. "'shape': (2, 3)}"} do
      refused("has a broken header: " .. dict, bare(dict) .. SIX)
    end
    refused("has 65 dimensions; the limit is 64",
      file(F4:gsub("2, 3", ("1, "):rep(65)), SIX))
    refused("has a shape too large to count: (0,4611686018427387904,4)",
      file(F4:gsub("2, 3", "0, 4611686018427387904, 4"), ""))
    refused("has a header of 4294967295 bytes; the limit is 1048576",
      "\x93NUMPY\2\0\255\255\255\255{}")
    refused("is too short: 1099511627776 bytes of elements expected for shape "
      .. "(274877906944,) of f32, got 24", file(F4:gsub("2, 3",
      "274877906944,"), SIX))
    refused("element type '" .. ("f"):rep(40) .. "' is not supported",
      file(F4:gsub("<f4", ("f"):rep(400)), SIX))
    refused("has a broken header: " .. ("{"):rep(200) .. "...",
      file(("{"):rep(3000), SIX))
  end)

  it("reads headers shorter than twelve bytes' worth and unpadded ones",
      function()
    local dict = "{'descr':'|u1','fortran_order':False,'shape':()}"
    for major = 1, 3 do
      assert.equal("x", assert(read(bare(dict, major) .. "x")).bytes)
    end
  end)

  it("shows a header's text without control characters", function()
    refused("has a broken header: {\\x1b]0;owned\\x07\\x9b2J\\u{202e}é\\n}",
      bare "{\27]0;owned\7\x9b2J\u{202e}é\n}")
    refused("element type '\\x1b[2J' is not supported",
      file(F4:gsub("<f4", "\27[2J"), SIX))
    local _, why = npy.read(dir .. "/a\27[31m\nb")
    assert.equal(("cannot open %s/a\\x1b[31m\\nb: No such file or directory "
      .. "[io]"):format(dir), why)
  end)
end)

describe("npy", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("answers any damage with an array or a sentence", function()
    local state = 1
    -- Returns a pseudorandom integer from 0 to n - 1, the same in every run.
    local function random(n)
      state = (state * 6364136223846793005 + 1442695040888963407)
      return (state >> 33) % n
    end
    local words = {"(", ")", ",", "'", "{", "}", "0", "99999999999999999999",
      "True", "shape", "\0", "\255", ":", "<", "[", " ", "-", "L"}
    local seeds = {file(F4, SIX), file(F4, SIX, 2), file(F4, SIX, 3),
      file(F4:gsub("False", "True"):gsub("2, 3", "1, 3, 2, 1"), SIX)}
    local arrays, refusals = 0, 0
    for i = 1, 3000 do
      local bytes = seeds[i % #seeds + 1]
      for _ = 0, random(3) do
        local at = random(#bytes) + 1
        local how = random(4)
        local piece = how == 0 and string.char(random(256))
          or how == 1 and words[random(#words) + 1] or ""
        local cut = how == 3 and random(60) or how == 2 and 1 or #piece
        bytes = bytes:sub(1, at - 1) .. piece .. bytes:sub(at + cut)
      end
      local a, why = read(bytes)
      if a then
        arrays = arrays + 1
        local n = math.tointeger(a.dtype:match "%d+$" or 8) // 8
        if a.dtype == "complex_f64" then n = 16 end
        for _, extent in ipairs(a.shape) do n = n * extent end
        assert.equal(n, #a.bytes)
        assert.equal("boolean", type(a.fortran))
      else
        refusals = refusals + 1
        assert.equal(1, why:find(dir .. "/x.npy ", 1, true), why)
        assert.truthy(why:find(" %[io%]$"), why)
        assert.is_nil(why:find "%c", why)
        assert.truthy(#why < 500, why)
      end
    end
    assert.truthy(arrays > 100 and refusals > 1000)
  end)

  it("reads pipes, and does not trust their sizes", function()
    local path = dir .. "/pipe"
    local function through(bytes)
      support.write(dir .. "/bytes", bytes)
      support.exec {"sh", "-c", ("rm -f %s; mkfifo %s; cat %s/bytes >%s "
        .. "2>/dev/null &"):format(path, path, dir, path)}
      return npy.read(path)
    end
    assert.equal(SIX, assert(through(file(F4, SIX))).bytes)
    local _, why = through(file(F4:gsub("2, 3", "274877906944,"), SIX))
    assert.equal(path .. " is too short: 1099511627776 bytes of elements "
      .. "expected, got 24 [io]", why)
    _, why = npy.read(dir)
    assert.equal(("cannot open %s: Is a directory [io]"):format(dir), why)
    _, why = npy.read "/dev/zero"
    assert.truthy(why:find("is not a .npy file", 1, true))
    _, why = npy.read "/dev/null"
    assert.equal("/dev/null is empty [io]", why)
  end)

  it("rejects another type or shape than expected", function()
    local bytes = file(F4, SIX)
    assert.truthy(read(bytes, {dtype = {"f16", "f32"}, shape = {-1, 3}}))
    refused("holds f32, f16 expected", bytes, {dtype = "f16"})
    refused("holds f32, f16, bf16 or f64 expected", bytes,
      {dtype = {"f16", "bf16", "f64"}})
    refused("has shape (2,3), (3,2) expected", bytes, {shape = {3, 2}})
    refused("has shape (2,3), (?,4) expected", bytes, {shape = {-1, 4}})
    refused("has shape (2,3), (6,) expected", bytes, {shape = {6}})
    local empty = file(F4:gsub("2, 3", "0, 3"), "")
    assert.truthy(read(empty, {shape = {-1, -1}}))
    assert.truthy(read(empty, {shape = {0, 3}}))
    refused("has shape (0,3), (2,3) expected", empty, {shape = {2, 3}})
  end)

  it("reports that a file cannot be opened or written", function()
    local a, why = npy.read(dir .. "/none.npy")
    assert.is_nil(a)
    assert.equal(("cannot open %s/none.npy: No such file or directory [io]")
      :format(dir), why)
    a, why = npy.write(dir .. "/none/x.npy", {dtype = "f32", shape = {1},
      bytes = "abcd"})
    assert.is_nil(a)
    assert.equal(("cannot write %s/none/x.npy: No such file or directory "
      .. "[io]"):format(dir), why)
  end)

  it("gives tensors with NumPy's coordinates", function()
    local a = assert(read(file(F4, SIX)))
    local t = npy.tensor(a)
    assert.equal(6, t[{1, 2}])
    assert.equal(4, t[{1, 0}])
    a = assert(read(file(F4:gsub("False", "True"), SIX)))
    t = npy.tensor(a)
    assert.equal(2, t[{1, 0}])
    assert.equal(5, t[{0, 2}])
    a = assert(read(file(F4:gsub("2, 3", "1, 3, 2"), SIX)))
    assert.same({6, 2, 1}, npy.strides(a))
    assert.equal(3, npy.tensor(a)[{0, 1, 0}])
    a = assert(read(file(F4:gsub("2, 3", ""), SIX:sub(1, 4))))
    assert.equal(1, npy.tensor(a)[0])
  end)
end)

describe("npy", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("supports arrays without elements", function()
    for shape, want in pairs {
      ["0, 3"] = "(0,3):(3,1)", ["3, 0"] = "(3,0):(1,1)", ["0,"] = "(0):(1)",
      ["2, 0, 3"] = "(2,0,3):(3,3,1)"} do
      local bytes = file(F4:gsub("2, 3", shape), "")
      local a = assert(read(bytes))
      local t, buffer = npy.tensor(a)
      assert.equal(want, tostring(t.layout))
      assert.equal("", a.bytes)
      local path = dir .. "/empty.npy"
      assert.is_true(npy.write(path, npy.of_buffer(buffer, a.shape)))
      assert.equal(bytes, support.read(path))
    end
  end)

  it("writes the contents of buffers, bf16 as f32", function()
    local cute = require "cute"
    local a = assert(read(file(F4, SIX)))
    local _, buffer = npy.tensor(a)
    local path = dir .. "/z.npy"
    assert.is_true(npy.write(path, npy.of_buffer(buffer:to(cute.bf16),
      {2, 3})))
    assert.equal(file(F4, SIX), support.read(path))
    npy.write(path, npy.of_buffer(buffer:to(cute.f16), {6}, true))
    a = assert(npy.read(path))
    assert.equal("f16", a.dtype)
    assert.equal(("<I2I2I2I2I2I2"):pack(0x3c00, 0x4000, 0x4200, 0x4400,
      0x4500, 0x4600), a.bytes)
  end)

  it("rejects arrays whose parts do not agree", function()
    assert.error_matches(function()
      npy.write(dir .. "/z.npy", {dtype = "f32", shape = {2}, bytes = "abc"})
    end, "shape %(2,%) of f32 needs 8 bytes, got 3")
    assert.error_matches(function() npy.make_header("e2m1", {2}) end,
      'no element type for "e2m1"')
    assert.is_nil(support.read(dir .. "/z.npy"))
  end)
end)
-- SPDX-License-Identifier: MIT
