-- Tests docs/programs.md and llms.txt. Both must be up to date. Each mistake
-- must be reported with its code, and its repair must cause no report.
local faults = require "spec.faults"
local programs = dofile "tools/programs.lua"
local support = require "spec.support"

describe("docs/programs.md", function()
  local page = support.read "docs/programs.md"

  it("and llms.txt are current (make docs) #long", function()
    assert.equal(page, programs.page(support.program))
    assert.equal(support.read "llms.txt", programs.index())
  end)

  it("has an API of at most 8000 tokens", function()
    local text = page:match "<!%-%- part: api %-%->\n(.-)<!%-%- end"
    assert.is_true(programs.tokens(text) <= 8000, programs.tokens(text))
    for name in ([[kernel range when make_smem_tensor copy gemm make_layout
        logical_divide arch.thread_idx arch.sync_threads ops.gemm zeros
        make_tiled_copy arch.mbarrier_init pipeline]]):gmatch "%S+" do
      assert.is_truthy(text:find(name, 1, true), name)
    end
  end)

  it("has twenty idioms and twenty mistakes", function()
    local _, all = page:gsub("\n### %d+%. ", "")
    local _, codes = page:gsub("\n### %d+%. `[%l-]+/[%l-]+/[%l-]+`", "")
    assert.same({40, 20}, {all, codes})
  end)

  -- For each mistake, the page must show the code of the wrong
  -- script.
  it("repairs each mistake #long", function()
    for _, name in ipairs(programs.MISTAKES) do
      local f = faults.read(("spec/faults/%s.lua"):format(name))
      assert.is_string(f.mended, name)
      local path = os.tmpname()
      support.write(path, f.mended)
      local found = programs.record(support.program, path)
      os.remove(path)
      assert.equal("ok", found.verdict, name)
    end
  end)

  -- An idiom may use the two functions at the head of the idioms.
  -- In a line `EXPR --> TEXT`, the value of EXPR must print as
  -- TEXT.
  local env = setmetatable({cute = require "cute"}, {__index = _G})
  local idioms = page:match "<!%-%- part: idioms %-%->\n(.-)<!%-%- end"
  local title, count = "the functions", 0
  for head, code in ("### 0. functions\n" .. idioms):gmatch
    "(#?#?#?[^`]-)```lua\n(.-)\n```" do
    title = head:match "### %d+%. ([^\n]*)" or title
    it("runs: " .. title, function()
      local got, want, lines = {}, {}, {}
      for line in (code .. "\n"):gmatch "([^\n]*)\n" do
        local value, text = line:match "^(.-)%s*%-%-> ?(.*)$"
        if value == "" then
          want[#want] = want[#want] .. (want[#want] ~= "" and "\n" or "")
            .. text
        elseif value then
          want[#want + 1] = text
          line = ("shown(%s)"):format(value)
        end
        lines[#lines + 1] = value == "" and "" or line
      end
      function env.shown(...)
        local list = table.pack(...)
        for i = 1, list.n do list[i] = tostring(list[i]) end
        got[#got + 1] = table.concat(list, ", ")
      end
      local text = table.concat(lines, "\n")
      require "cute.lang.source".add("=script.lua", text)
      assert(load(text, "=script.lua", "t", env))()
      assert.same(want, got)
    end)
    count = count + 1
  end
  it("has no idiom without a test", function() assert.equal(21, count) end)
end)
-- SPDX-License-Identifier: MIT
