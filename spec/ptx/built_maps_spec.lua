-- Tests tensor maps that a PTX kernel builds in memory, field by field: the
-- words of the map, the box that a copy moves, and the reports of faults.
local core = require "cute.core"
local cute = require "cute"
local mapbuild = require "spec.ptx.mapbuild"

-- Runs the kernel. `first` is the first word of the memory in which the kernel
-- builds its tensor map. Returns the words of the copied box, and the words of
-- the map.
local function run(p, c, space, change, x, first)
  local out = cute.zeros({p.bytes // 4}, cute.u32)
  local maps = cute.zeros({32}, cute.i64)
  maps[0] = first or 0
  local text = mapbuild.text(p, space)
  if change then
    local n
    text, n = text:gsub(change[1], (change[2]:gsub("%%", "%%%%")))
    assert.is_true(n > 0)
  end
  cute.ptx(text):kernel "k"(x, maps, out, c[1], c[2] or 0):launch {
    grid = 1, block = 32, device = "sim:sm_90a"}
  return out, maps
end

-- PTX's number of each element type. The index is the driver's number.
local NUMBERS = {[0] = 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12}

describe("a tensor map that PTX builds", function()
  local x

  setup(function()
    x = cute.zeros({40 * 20}, cute.u32)
    for i = 0, 799 do x[i] = i + 1 end
  end)

  for _, space in ipairs(mapbuild.SPACES) do
    it("in " .. space .. " memory has the words of the driver's", function()
      math.randomseed(1024)
      for _ = 1, 12 do
        local rank = math.random(1, 5)
        local p = {type = math.random(0, 12), rank = rank, extent = {},
          stride = {}, box = {}, step = {}, swizzle = math.random(0, 3),
          fill = 0, bytes = 16}
        p.elemtype = NUMBERS[p.type]
        local size = ({[0] = 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4})[p.type]
        for i = 1, rank do
          p.extent[i], p.step[i] = math.random(1, 9), math.random(1, 8)
          p.box[i] = i == 1 and 32 // size or math.random(1, 4)
          if i > 1 then p.stride[i - 1] = 32 * math.random(1, 100) end
        end
        local _, maps = run(p, {0}, space, {"  mbarrier.arrive.*WAIT:\n",
                                            "  ret;\nWAIT: ret;"}, x)
        p.address = x.iterator.address
        local want = core.encode_tensor_map(p)
        for k = 0, 15 do assert.equal(want[k + 1], maps[k], "word " .. k) end
      end
    end)

    it("in " .. space .. " memory gives the box at the coordinates", function()
      for i, c in ipairs {{0, 0}, {4, 3}, {36, 18}, {-4, -1}, {100, 0}} do
        local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
          box = {8, 6}, step = {1, i % 2 + 1}, swizzle = i % 2,
          bytes = 32 * (6 // (i % 2 + 1))}
        local out = run(p, c, space, nil, x)
        for w = 0, p.bytes // 4 - 1 do
          -- a swizzle of 32 bytes XORs bit 4 of the address with bit 7
          local at = w ~ (p.swizzle * (w >> 5 & 1) << 2)
          local a = c[1] + at % 8
          local b = c[2] + at // 8 * p.step[2]
          local inside = a >= 0 and a < 38 and b >= 0 and b < 19
          assert.equal(inside and b * 40 + a + 1 or 0, out[w])
        end
      end
    end)
  end

  it("is found at an address that the kernel loads", function()
    local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
               box = {8, 4}, bytes = 128}
    local made = cute.zeros({32}, cute.i64)
    for _, space in ipairs {"global", "shared"} do
      local out = run(p, {4, 1}, space, {"ld.param.u64 %%rd1, %[maps%];",
        "ld.param.u64 %rd11, [maps]; ld.global.u64 %rd1, [%rd11];"}, x,
        made.iterator.address)
      for w = 0, 31 do
        assert.equal((w // 8 + 1) * 40 + 4 + w % 8 + 1, out[w])
      end
      assert.equal(x.iterator.address, made[0])
    end
  end)

  it("has no CUDA C; an estimate does without the registers", function()
    local text = mapbuild.text({rank = 1, extent = {32}, stride = {},
      elemtype = 2, box = {8}, bytes = 32}, "shared")
    local call = cute.ptx(text):kernel "k"(x, cute.zeros({32}, cute.i64),
      cute.zeros({8}, cute.u32), 0, 0)
    local ok, why = pcall(function() return call:trace({block = 32}).source end)
    assert.is_false(ok)
    assert.matches("of a kernel read from PTX has no CUDA C", tostring(why))
    local e = call:estimate {grid = 1, block = 32}
    assert.is_nil(e.registers)
    assert.matches("registers unknown: the PTX has no CUDA C", tostring(e))
  end)

  it("is reported if it is not acquired, released or valid", function()
    local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
               box = {8, 4}, bytes = 128}
    local function wrong(want, change, fields, space)
      local q = setmetatable(fields or {}, {__index = p})
      local ok, text = pcall(run, q, {0, 0}, space or "global", change, x)
      assert.is_false(ok)
      text = tostring(text)
      assert.matches(want .. ": byte 0 of global tensor 'maps'", text, 1, true)
    end
    wrong("changed but not released afterwards",
          {"  fence[%w.:]*release[^\n]*\n", ""})
    wrong("changed but not acquired afterwards",
          {"  fence[%w.:]*acquire[^\n]*\n", ""})
    wrong("changed but not acquired afterwards",
          {"  fence[%w.:]*acquire[^\n]*\n", ""}, nil, "shared")
    wrong("holds no valid tensor map", nil, {rank = 3, stride = {160, 160},
      extent = {38, 19, 1}, box = {8, 4, 1}, bytes = 128}, "shared")
  end)
end)
-- SPDX-License-Identifier: MIT
