local npy = require "cute.npy"
local support = require "spec.support"

-- A file of version `major`, put together from the format's description.
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

describe("npy", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function read(bytes, opt)
    return npy.read(support.write(dir .. "/x.npy", bytes), opt)
  end
  local function refused(want, bytes, opt)
    local array, why = read(bytes, opt)
    assert.is_nil(array)
    assert.equal(("%s/x.npy %s [io]"):format(dir, want), why)
  end

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

  it("reads back what it wrote, and what it wrote is the format", function()
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

  it("refuses what is no .npy file", function()
    refused("is no .npy file (it does not start with \\x93NUMPY)", "PK\3\4")
    refused("is empty", "")
    refused("has .npy version 9.0, of which nothing is known",
      "\x93NUMPY\9\0\10\0abcdefgh")
  end)

  it("refuses a file that is cut off anywhere", function()
    local whole = file(F4, SIX)
    for n = 6, #whole - 1 do
      local a, why = read(whole:sub(1, n))
      assert.is_nil(a)
      assert.truthy(why:find("is cut off", 1, true), n .. ": " .. why)
    end
    refused("is cut off: 24 bytes of elements expected for shape (2,3) of "
      .. "f32, got 23", whole:sub(1, -2))
    assert.truthy(read(whole .. "more"))
  end)

  it("refuses element types that it has not", function()
    local function with(descr)
      return file(F4:gsub("'<f4'", descr), SIX)
    end
    refused("big-endian elements ('>f4') are not supported", with "'>f4'")
    refused("element type '<U8' is not supported", with "'<U8'")
    refused("element type '|V2' is not supported", with "'|V2'")
    refused("element type '|O' is not supported", with "'|O'")
    refused("structured element types are not supported",
      with "[('a', '<f4')]")
  end)

  it("refuses broken headers", function()
    refused("has a broken header: {'descr': '<f4', 'fortran_order': Maybe, "
      .. "'shape': (2, 3), }", file(F4:gsub("False", "Maybe"), SIX))
    refused("has a broken header: {'descr': '<f4', 'fortran_order': False, "
      .. "'shape': (-2, 3), }", file(F4:gsub("2, 3", "-2, 3"), SIX))
    refused("has a shape too large to count: "
      .. "(4611686018427387904,4611686018427387904)", file(F4:gsub("2, 3",
      "4611686018427387904, 4611686018427387904"), SIX))
    refused("is cut off in its header", "\x93NUMPY\1\0\255\255{'descr'")
  end)

  it("refuses another type or shape than is expected", function()
    local bytes = file(F4, SIX)
    assert.truthy(read(bytes, {dtype = {"f16", "f32"}, shape = {-1, 3}}))
    refused("holds f32, f16 expected", bytes, {dtype = "f16"})
    refused("holds f32, f16, bf16 or f64 expected", bytes,
      {dtype = {"f16", "bf16", "f64"}})
    refused("has shape (2,3), (3,2) expected", bytes, {shape = {3, 2}})
    refused("has shape (2,3), (?,4) expected", bytes, {shape = {-1, 4}})
    refused("has shape (2,3), (6,) expected", bytes, {shape = {6}})
    refused("has no elements: its shape is (0,3)",
      file(F4:gsub("2, 3", "0, 3"), ""), {shape = {-1, -1}})
  end)

  it("says that a file cannot be opened or written", function()
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

  it("writes what buffers hold, bf16 as f32", function()
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

  it("raises for arrays that make no sense", function()
    assert.error_matches(function()
      npy.write(dir .. "/z.npy", {dtype = "f32", shape = {2}, bytes = "abc"})
    end, "shape %(2,%) of f32 needs 8 bytes, got 3")
    assert.error_matches(function() npy.make_header("bf16", {2}) end,
      "no element type for bf16")
    assert.is_nil(support.read(dir .. "/z.npy"))
  end)
end)
