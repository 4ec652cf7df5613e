-- Tests printing in CuTe's formats against expected LaTeX: layouts and tiled
-- operations.
local cute = require "cute"
local raises = require "spec.support".raises
local _ = cute._

describe("LaTeX", function()
  local latex = require "cutelua.draw.print"
  local folder = (os.getenv "CUTELUA_GOLDEN_DIR" or "../shared/golden")
    .. "/latex/"

  local function golden(name)
    local f <close> = io.open(folder .. name)
    return f and f:read "a"
  end

  -- Returns the text without its comments, which may differ for some layouts.
  local function bare(text) return (text:gsub("%%[^\n]*\n", "")) end

  it("of layouts is CuTe's", function()
    local index = golden "index.json"
    if not index then return pending "needs the golden texts" end
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
      return pending "needs the golden texts"
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

  it("of threads and values names the holders of elements", function()
    local text = latex.latex_tv_text(cute.layout "(4,2):(2,1)", {2, 4})
    assert.is_truthy(text:find("at (0,1) {\\shortstack{T1 \\\\ V0}}", 1, true))
    assert.is_truthy(text:find("at (1,3) {\\shortstack{T3 \\\\ V1}}", 1, true))
    raises("rank 2", latex.latex_tv_text, cute.layout "4:1", {2, 2})
    raises("a layout, TiledMMA or TiledCopy", latex.latex_text, 5)
  end)
end)
-- SPDX-License-Identifier: MIT
