-- Tests which names of the Python DSL exist here.
local cute = require "cute"
local names = require "spec.program.names"

describe("names", function()
  it("are read from a list, counted, and left out with a reason", function()
    local path = os.tmpname()
    local f <close> = io.open(path, "w")
    f:write("# a comment\ncore cute.arch popc\n",
            "core cute.testing CuptiProfiler\ncore cute no_such\n",
            "hopper cute.arch elect_one\n",
            "core pipeline PipelineState\n")
    f:flush()
    local list = names.read(path)
    os.remove(path)
    assert.equal(5, #list)
    local by, all = names.count(list, "core")
    assert.equal(4, all.total)
    assert.equal(2, all.have)
    assert.same({"cute.testing.CuptiProfiler", "cute.no_such"}, all.missing)
    assert.equal(1, by["cute.arch"].have)
    assert.is_truthy(names.LEFT_OUT["cute.testing.CuptiProfiler"])
    assert.is_nil(names.LEFT_OUT["cute.no_such"])
    assert.is_nil((names.read "/nowhere"))
  end)

  it("exist unless a reason is listed", function()
    local path = os.getenv "CUTELUA_NAMES_FILE" or "../shared/dsl-names.txt"
    local list = names.read(path)
    if not list then return pending "needs the list of names" end
    for when, least in pairs {core = 0.95, hopper = 0.94} do
      local _, all = names.count(list, when)
      for _, full in ipairs(all.missing) do
        assert.is_truthy(names.LEFT_OUT[full], full .. " is missing")
      end
      assert.is_true(all.have >= least * all.total, when)
    end
    assert.is_true(select(2, names.count(list, "blackwell")).have >= 44)
    for full in pairs(names.LEFT_OUT) do
      local space, name = full:match "^(.*)%.([^.]+)$"
      assert.is_nil(names.find(space, name), full .. " exists now")
    end
  end)

  it("of atoms: a row or a reason each, no stale reason #long", function()
    local list = assert(names.read_atoms "tools/atom-names.txt")
    assert.equal(2483, #list)
    local have, missing = names.count_atoms(list)
    local lacking = 0
    for why, of in pairs(missing) do
      assert.is_true(why ~= "", of[1])
      lacking = lacking + #of
    end
    assert.equal(#list, have + lacking)
    for _, family in ipairs(names.NO_ATOM) do
      assert.is_truthy(missing[family[2]], family[1] .. " has rows now")
    end
    for _, n in ipairs {32, 128} do
      local text = tostring(cute.make_copy_atom(
        ("SM100_TMEM_LOAD_STAT_32dp32b%dx"):format(n), cute.f32))
      assert.truthy(text:find(("ValLayoutSrc: (32,%d):(0,1)\n"):format(32 * n),
                              1, true), text)
      assert.truthy(text:find(("ValLayoutDst: (32,%d):(%d,1)\n"):format(n, n),
                              1, true), text)
    end
    local one, none = names.count_atoms {"SM80_16x8x8_F32F16F16F32_TN",
                                         "SM80_16x8x9_F32F16F16F32_TN"}
    assert.equal(1, one)
    assert.same({"SM80_16x8x9_F32F16F16F32_TN"}, none[""])
  end)
end)
-- SPDX-License-Identifier: MIT
