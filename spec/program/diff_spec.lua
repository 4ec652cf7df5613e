local core = require "cute.core"
local cute = require "cute"
local lines = require "cutelua.program.lines"
local random = math.random
local support = require "spec.support"

-- Returns the longest common subsequence of two lists, by dynamic programming.
local function common(a, b)
  local n = {}
  for i = 0, #a do n[i] = {[0] = 0} end
  for j = 0, #b do n[0][j] = 0 end
  for i = 1, #a do
    for j = 1, #b do
      n[i][j] = a[i] == b[j] and n[i - 1][j - 1] + 1
        or math.max(n[i - 1][j], n[i][j - 1])
    end
  end
  return n[#a][#b]
end

local function check(a, b)
  local old, new, kept = {}, {}, 0
  for _, e in ipairs(lines.diff(a, b)) do
    if e[1] ~= "+" then old[#old + 1] = e[2] end
    if e[1] ~= "-" then new[#new + 1] = e[2] end
    if e[1] == " " then kept = kept + 1 end
  end
  assert.same(a, old)
  assert.same(b, new)
  return kept
end

describe("lines.diff", function()
  it("turns one into the other by the fewest edits", function()
    math.randomseed(7)
    for _ = 1, 300 do
      local a, b = {}, {}
      for i = 1, random(0, 12) do a[i] = ("abc"):sub(random(3)):sub(1, 1) end
      for i = 1, random(0, 12) do b[i] = ("abc"):sub(random(3)):sub(1, 1) end
      assert.equal(common(a, b), check(a, b))
    end
  end)

  it("gives up on texts that have nothing in common", function()
    local a, b = {"first"}, {"first"}
    for i = 1, 1500 do a[i + 1], b[i + 1] = "a" .. i, "b" .. i end
    assert.equal(1, check(a, b))
  end)

  it("lists changes, and counts omitted lines", function()
    assert.is_nil(lines.changes("a\nb\n", "a\nb\n", "", 5))
    assert.equal("  - b\n  + c", lines.changes("a\nb\n", "a\nc\n", "  ", 5))
    assert.equal("- 1\n- 2\n- 3\n... 1 more line differs",
                 lines.changes("1\n2\n3\n4", "", "", 3))
    assert.equal("- 1\n+ 3\n... 2 more lines differ",
      lines.changes("1\n2\n", "3\n4\n", "", 2))
    assert.equal("- 1\n- 2\n+ 3\n+ 4",
                 lines.changes("1\n2\n", "3\n4\n", "", 4))
    assert.equal("- 1\n+ 3\n- 2\n- 5\n... 3 more lines differ",
      lines.changes("1\n2\n0\n5", "3\n0\n6\n7\n8", "", 4))
    assert.same({"a", "", "b"}, lines.of "a\n\nb\n")
    assert.same({}, lines.of "")
  end)
end)

describe("cute.diff", function()
  local t = cute.zeros({512}, cute.f32)
  local function launched(f, n)
    local k = cute.kernel("k", f)
    k(t):launch {grid = 1, block = n or 32, device = "sim"}
    return k
  end
  local function once(m)
    local i = cute.arch.thread_idx()
    m[i] = i:to(cute.f32)
  end
  local function twice(m)
    local i = cute.arch.thread_idx()
    m[i] = i:to(cute.f32)
    m[i + 256] = m[i + 128]
  end

  it("shows changes of text, counters and time", function()
    local d = cute.diff(launched(once), launched(twice))
    local text = tostring(d)
    for _, part in ipairs {"kernel k, before and after\n",
        "\n  +   m[i + 256] = m[i + 128];\n", "\n  bytes of memory: 128 -> 384",
        "\n  sectors: 4 -> 12\n", "\n  requests: 1 -> 3\n"} do
      assert.truthy(text:find(part, 1, true), text)
    end
    assert.truthy(text:find "\n  time on simulator[^\n]*: [^\n]+ %-> ")
    -- The diff must contain no comments of the source (//).
    assert.falsy(text:find("//", 1, true))
    assert.truthy(d.cuda:find("\n+   m[i + 256] = m[i + 128];\n", 1, true))
    assert.truthy(d.cuda:find("\n    m[i] = (float)i;\n", 1, true), d.cuda)
  end)

  it("shows the compiler's results, if there is one", function()
    local d = cute.diff(launched(once), launched(twice))
    if not core.nvrtc_version() then
      assert.is_false(d.ptx)
      assert.is_false(d.sass)
      assert.falsy(tostring(d):find("PTX", 1, true))
      return
    end
    local text = tostring(d)
    assert.truthy(text:find("PTX: %d+ %-> %d+ instructions: "), text)
    assert.truthy(text:find("+1 ld.global.f32", 1, true), text)
    assert.truthy(text:find "\n  SASS: %d+ %a*%-?>? ?%d* ?instructions", text)
    assert.truthy(d.ptx:find "\n%+%s+ld%.global%.f32")
  end)

  it("takes programs, launches and calls; and nothing else", function()
    local a, b = launched(once), launched(once)
    assert.truthy(tostring(cute.diff(a, b)):find("the same CUDA C", 1, true))
    assert.truthy(tostring(cute.diff(a, b)):find("as before: bytes of memory "
      .. "128, sectors 4, requests 1, instructions run 2", 1, true))
    local p = b(t):compile {grid = 1, block = 64, device = "sim"}
    assert.truthy(tostring(cute.diff(a(t), p)):find(
      "__launch_bounds__(64)", 1, true))
    assert.truthy(tostring(cute.diff(p.program, a)):find("kernel k", 1, true))
    support.raises({"diff: kernel fresh was neither launched nor compiled",
      "[bad-argument]"}, cute.diff, a, cute.kernel("fresh", once))
    support.raises("diff: 1: a kernel, a call, a prepared launch or a program "
      .. "is needed", cute.diff, 1, a)
  end)

  it("shows at the prompt what redefining a kernel changed", function()
    local dir = support.folder()
    local out = support.terminal({{"", "> "},
      {"t = cute.zeros({64}, cute.i32)\n", "> "},
      {"function set(v) k = cute.kernel('k', function(m)\n", ">> "},
      {"m[cute.arch.thread_idx()] = v\n", ">> "}, {"end) end\n", "> "},
      {"on = {grid=1, block=32, device='sim'}\n", "> "},
      {"function go() return k(t):launch(on) end\n", "> "},
      {"set(1) r = go()\n", "> "}, {"r, k1 = go(), k\n", "> "},
      {"set(2) r = go()\n", "simulator"},
      {"t[3]\n", "2\r\n> "}, {"k2 = k\n", "> "},
      {"for _, x in ipairs {k1, k2, k1} do x(t):launch(on) end\n", "> "},
      {"for _, n in ipairs {8, 16} do cute.ops.copy(cute.zeros({n, n}, 'f32'), "
       .. "{device = 'sim'}) end\n", "> "}, {"t[3]\n", "1\r\n> "},
      {"\4", ""}},
      {TERM = "dumb", XDG_STATE_HOME = dir})
    support.remove(dir)
    local _, times = out:gsub("kernel k, before and after", "")
    assert.equal(1, times, out)
    assert.truthy(out:find("] = 1;\n  +   m[", 1, true), out)
    assert.falsy(out:find "\27%[%d*m")
  end)
end)
-- SPDX-License-Identifier: MIT
