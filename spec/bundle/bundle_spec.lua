-- Tests `cutelua bundle`. Its C code must compile without a warning, pass the
-- driver what a launch in Lua passes, and report wrong arguments. Oracles:
-- compilers, a driver that records launches, the lz4 and sha256sum programs.
local made = require "spec.bundle.made"
local cute = require "cute"
local support = require "spec.support"
local core = require "cute.core"

local there = made.has "cc" and core.nvrtc_version() ~= nil
local COMPILERS = {{"gcc", "-std=c11"}, {"clang", "-std=c11"},
  {"g++", "-std=c++17 -x c++"}, {"clang++", "-std=c++17 -x c++"}}
local WARNINGS = "-Wall -Wextra -Wconversion -Werror -fsyntax-only"
local FILES = {"unit.c", "unit_test.c", "-DUNIT_BENCH unit_test.c"}

-- Folders: the current bundle, the bundle of unit.lua, and the driver that all
-- tests share.
local folder, unit, driver

setup(function()
  if not there then return end
  driver, unit = made.driver(), support.folder()
  local out, err, code = made.bundle("-o " .. unit, "--test --cubin --ptx",
                                     "spec/bundle/unit.lua")
  assert(code == 0 and err == "", err)
  assert.truthy(out:find("6 functions, 7 specialisations", 1, true), out)
end)
teardown(function()
  if not there then return end
  support.remove(unit)
  support.remove(driver)
end)

local function at(name) return folder .. "/" .. name end

-- Compiles a C file of this folder with the bundle, once for all tests that use
-- the same flags. Returns the program.
local function program(name, flags)
  local path = at(((name .. (flags or "")):gsub("%W+", "_")))
  if not support.read(path) then
    made.must(("cc -g %s -I%s -o %s spec/bundle/%s.c %s -ldl -pthread"):format(
      flags or "", folder, path, name, at "unit.c"))
  end
  return path
end

local function lines_of(text)
  local out = {}
  for line in text:gmatch "[^\n]+" do out[#out + 1] = line end
  return out
end

describe("a bundle", function()
  if not there then
    pending "needs a C compiler and NVRTC"
    return
  end
  setup(function() folder = unit end)

  for i, row in ipairs(COMPILERS) do
    it("compiles without a warning: " .. table.concat(row, " ")
       .. support.long(i), function()
      if not made.has(row[1]) then pending("needs " .. row[1]) return end
      for _, file in ipairs(FILES) do
        local flag, name = file:match "^(%-%S+ )(.*)$"
        made.must(row[1], row[2], WARNINGS, flag or "", at(name or file))
      end
    end)
  end

  it("has at most 100 KB of text besides the cubins #long", function()
    if not made.has "size" then pending "needs size" return end
    made.must("cc -O2 -c -o", at "unit.o", at "unit.c")
    local text = made.must("size", at "unit.o"):match "\n%s*(%d+)"
    local packed = 0
    for words in support.read(at "unit.c"):gmatch
      "uint64_t image_%d+%[%] = {(.-)}" do
      packed = packed + 8 * select(2, words:gsub("0x", ""))
    end
    assert.truthy(packed > 10000)
    local rest = math.tointeger(text) - packed
    assert.truthy(rest > 1000 and rest < 100 * 1024, rest)
  end)

  it("passes the driver what launches in Lua pass", function()
    local lua_driver <close> = setmetatable({made.driver("", true)},
      {__close = function(t) support.remove(t[1]) end})
    made.must(("cc -g -o %s %s %s -ldl -lm -pthread"):format(at "test",
      at "unit_test.c", at "unit.c"))
    local out, _, code = made.run(driver, at "test " .. at "unit_test.bin",
                                  {FAKE_LOG = at "c.log"})
    -- The fake driver executes only `axpy`, so the other results are wrong.
    assert.equal(1, code)
    for _, wrong in ipairs {"linear .-: tensor 3", "hopper .-: tensor 2",
                            "scale .-: tensor 0"} do
      assert.truthy(out:find(wrong .. ": %d+ wrong bytes"), out)
    end
    assert.falsy(out:find "axpy", out)
    local _, err, ok = made.run(lua_driver[1], support.program
      .. " spec/bundle/unit.lua gpu", {FAKE_LOG = at "lua.log",
      FAKE_MEMORY = "100000000"})
    assert.equal(0, ok, err)
    local c, lua = support.read(at "c.log"), support.read(at "lua.log")
    assert.equal(9, #lines_of(lua))
    assert.same(lines_of(lua), lines_of(c))
    assert.truthy(c:find("cluster 2 1 1", 1, true))
    assert.truthy(c:find("attribute 6=1", 1, true))
  end)

  it("computes grids and extents as Lua does #long", function()
    local path = program "extents"
    local out, err, code = made.run(driver, path, {FAKE_LOG = at "e.log"})
    assert.equal(0, code, out .. err)
    local seen = 0
    for line in support.read(at "e.log"):gmatch "[^\n]+" do
      local name, grid, rest = line:match
        "^(%w+) grid (%d+) 1 1 .* parameters %x+ (.*)$"
      local n = tonumber(rest:match "^%x+", 16)
      if name == "axpy" then
        assert.equal((n + 127) // 128, tonumber(grid))
        assert.equal(0, n % 4)
      else
        local rows, pitch = rest:match "^(%x+) (%x+) "
        assert.equal(tonumber(grid), tonumber(rows, 16))
        -- The stride of a single row is 0, since it has no effect.
        assert.equal(tonumber(grid) == 1 and 0 or 32 + 4 * tonumber(grid),
                     tonumber(pitch, 16))
      end
      seen = seen + 1
    end
    assert.equal(40, seen)
  end)
end)

describe("a bundle on other GPUs", function()
  if not there then return end
  it("takes the newest code that a GPU runs, and checks its memory #long",
  function()
    local own <close> = setmetatable({support.folder()},
      {__close = function(t) support.remove(t[1]) end})
    local name = support.write(own[1] .. "/big.lua", [[
      local cute = require "cute"
      local n = cute.bundle.arch() == "sm_80" and 30000 or 20000
      local big = cute.kernel("big", function(x)
        local s = cute.make_smem_tensor(cute.f32, n)
        local i = cute.arch.thread_idx()
        s[i] = x[i]
        x[i] = s[i] + 1
      end)
      cute.bundle.add("big", big, {cute.zeros({32}, cute.f32), grid = 1,
                                   block = 32})]])
    local _, err, code = made.bundle("--test --arch sm_90a,sm_86,sm_80 -o "
      .. own[1], name)
    assert.equal(0, code, err)
    local test = own[1] .. "/test"
    made.must(("cc -o %s %s/big_test.c %s/big.c -ldl -lm -pthread"):format(test,
      own[1], own[1]))
    local log = own[1] .. "/log"
    for cc, want in pairs {["80"] = 120000, ["90"] = 80000, ["86"] = 80000,
                           ["87"] = 80000, ["89"] = 80000} do
      os.remove(log)
      made.run(driver, test .. " " .. own[1] .. "/big_test.bin",
               {FAKE_LOG = log, FAKE_CC = cc})
      assert.equal(want, tonumber(support.read(log):match "smem (%d+)"), cc)
    end
    _, err, code = made.bundle("--test --arch sm_80 -o " .. own[1], name)
    assert.equal(0, code, err)
    made.must(("cc -o %s %s/big_test.c %s/big.c -ldl -lm -pthread"):format(test,
      own[1], own[1]))
    local out = made.run(driver, test .. " " .. own[1] .. "/big_test.bin",
                         {FAKE_CC = "86"})
    assert.truthy(out:find("BIG_E_LIMIT: kernel big needs 120000 bytes of "
      .. "shared memory, and this GPU has 101376 for a block", 1, true), out)
  end)

  it("launches nothing if one of several kernels cannot be loaded #long",
     function()
    local own <close> = setmetatable({support.folder()},
      {__close = function(t) support.remove(t[1]) end})
    local name = support.write(own[1] .. "/sum.lua", [[
      local cute = require "cute"
      cute.bundle.add("sum", cute.ops.reduce, {cute.rand({100000}, cute.f32),
                                               "sum"})]])
    local _, err, code = made.bundle("--test --check 0 -o " .. own[1], name)
    assert.equal(0, code, err)
    made.must(("cc -o %s/test %s/sum_test.c %s/sum.c -ldl -lm -pthread")
      :format(own[1], own[1], own[1]))
    for loads, launches in pairs {["1"] = 0, ["2"] = 2} do
      local out, said = made.run(driver, own[1] .. "/test " .. own[1]
        .. "/sum_test.bin", {FAKE_LOADS = loads, FAKE_COUNT = "1"})
      assert.equal(launches == 0, out:find("SUM_E_MEMORY", 1, true) ~= nil)
      assert.equal(("loads %s, unloads %s, launches %d\n"):format(loads, loads,
        launches), said)
    end
  end)

  it("rejects grids whose blocks wait for blocks that have no room #long",
     function()
    local own <close> = setmetatable({support.folder()},
      {__close = function(t) support.remove(t[1]) end})
    local name = support.write(own[1] .. "/wait.lua", [[
      local cute = require "cute"
      local function kernel(name, waits)
        return cute.kernel(name, function(flag)
          local i = cute.arch.block_idx()
          cute.when(cute.eq(i, 0), function()
            cute.loop(function()
              return waits and cute.ne(cute.arch.load(flag.iterator, nil,
                {sem = "acquire", scope = "gpu"}), 1)
            end, function() end)
          end, function()
            cute.arch.store(flag.iterator, 1, {sem = "relaxed"})
          end)
        end)
      end
      for _, c in ipairs {1, 2} do
        local f = cute.zeros({1}, cute.i32)
        cute.bundle.add("wait" .. c, kernel("wait" .. c, true), {f, grid = 4,
          block = 32, cluster = c})
      end
      cute.bundle.add("free", kernel("free", false), {cute.zeros({1},
        cute.i32), grid = 4, block = 32})]])
    local _, err, code = made.bundle("--test --check 0 -o " .. own[1], name)
    assert.equal(0, code, err)
    local test = own[1] .. "/test"
    made.must(("cc -o %s %s/wait_test.c %s/wait.c -ldl -lm -pthread"):format(
      test, own[1], own[1]))
    for sms, most in pairs {["4"] = 4, ["3"] = 3, ["1"] = 1} do
      local out = made.run(driver, test .. " " .. own[1] .. "/wait_test.bin",
                           {FAKE_SMS = sms})
      local function rejects(f, n)
        return out:find(("WAIT_E_LIMIT: %s: the 4 blocks of kernel %s wait "
          .. "for each other, and this GPU runs %d of them at once"):format(f,
          f, n), 1, true) ~= nil
      end
      assert.equal(most < 4, rejects("wait1", most), out)
      assert.equal(most < 4, rejects("wait2", most // 2 * 2), out)
      assert.falsy(out:find("free: the 4", 1, true))
    end
  end)
end)

describe("a bundle of ranges of sizes", function()
  if not there then return end
  setup(function()
    folder = support.folder()
    local out, err, code = made.bundle("-o " .. folder, "--test",
                                       "spec/bundle/sizes.lua")
    assert(code == 0 and err == "", err)
    -- All sizes of `rows` share one kernel. `hopper` has a kernel for each
    -- number of boxes of its tensor map.
    assert.truthy(out:find("3 functions, 5 specialisations", 1, true), out)
  end)
  teardown(function() support.remove(folder) end)

  it("passes the driver what launches in Lua pass #long", function()
    local lua_driver <close> = setmetatable({made.driver("", true)},
      {__close = function(t) support.remove(t[1]) end})
    local flags = "-fsanitize=address,undefined"
    if not made.sanitizes(flags) then flags = "" end
    made.must(("cc -g %s -I%s -o %s spec/bundle/sizes.c %s -ldl -pthread")
      :format(flags, folder, at "sizes", at "sizes.c"))
    local out, err, code = made.run(driver, at "sizes", {FAKE_LOG = at "c.log"})
    assert.equal(0, code, out .. err)
    local said
    said, err, code = made.run(lua_driver[1], support.program
      .. " spec/bundle/sizes.lua gpu", {FAKE_LOG = at "lua.log",
      FAKE_MEMORY = "100000000"})
    assert.equal(0, code, said .. err)
    -- Addresses are ignored: the C program uses the same memory for all sizes,
    -- and parts of one workspace.
    local function logged(name)
      return lines_of((support.read(at(name)):gsub("<m%d*%+%d+>", "<memory>")))
    end
    local lua = logged "lua.log"
    assert.equal(16 + 16 + 2 * 2, #lua)
    assert.same(lua, logged "c.log")
    for _, row in ipairs {
      {"between", "EXTENT", "extent 0 is 4; 3 to 48 in steps of 3"},
      {"beyond", "EXTENT", "extent 0 is 51; 3 to 48 in steps of 3"},
      {"stride", "STRIDE", "stride 0 is 45; 44 is needed"},
      {"rank", "RANK", "0 modes"},
      {"unequal", "EXTENT", "tensor D: extent 0 is 80; 72 is needed"}} do
      local text = out:match(row[1] .. ": SIZES_E_" .. row[2] .. ": ([^\n]*)")
      assert.truthy(text and text:find(row[3], 1, true), out)
    end
  end)

  it("has C code without warnings #long", function()
    for _, row in ipairs(COMPILERS) do
      if made.has(row[1]) then
        made.must(row[1], row[2], WARNINGS, at "sizes.c")
      end
    end
  end)
end)

-- Returns a number `part` that explains all launches {elements, blocks}: each
-- has `each` blocks for each `part` elements, rounded up. Raises an error if
-- there is none.
local function part_of(list, each)
  local low, high = 0, math.huge
  for _, l in ipairs(list) do
    if l[2] == each then low = math.max(low, l[1])
    else high = math.min(high, l[1]) end
  end
  for part = low, high - 1 do
    local fits = true
    for _, l in ipairs(list) do
      fits = fits and (l[1] + part - 1) // part * each == l[2]
    end
    if fits then return part end
  end
  error(("no size between %d and %d"):format(low, high))
end

describe("a bundle for any size", function()
  if not there then return end
  setup(function() folder = support.folder() end)
  teardown(function() support.remove(folder) end)

  for _, row in ipairs {{90, "sm_90a", "10 functions, 12 specialisations"},
                        {80, "sm_80", "11 functions, 13 specialisations"}} do
    local cc, arch, made_of = table.unpack(row)
    it(("launches as many blocks as each size needs: %s #long"):format(arch),
       function()
      -- The script compares the results of its examples with sums in Lua.
      local out, err, code = made.bundle("-o " .. folder, "--check 0 --arch",
                                         arch, "spec/bundle/any.lua")
      assert(code == 0 and err == "", err)
      assert.truthy(out:find(made_of, 1, true), out)
      local flags = "-fsanitize=address,undefined"
      if not made.sanitizes(flags) then flags = "" end
      made.must(("cc -g %s -I%s -o %s spec/bundle/any.c %s -ldl -pthread")
        :format(flags, folder, at "any", at "any.c"))
      os.remove(at "c.log")
      out, err, code = made.run(driver, at "any", {FAKE_LOG = at "c.log",
        FAKE_CC = tostring(cc)})
      assert.equal(0, code, out .. err)
      local launches, m = {{}, {}, {}}, 0
      local lines = lines_of(support.read(at "c.log"))
      for i = 0, 2 do
        local name = cc == 90 and i == 1 and "^gemm_sm90 " or "^gemm_sm80 "
        assert.truthy(lines[#lines - 2 + i]:find(name))
      end
      for i, line in ipairs(table.move(lines, 1, #lines - 3, 1, {})) do
        local which = (i - 1) % 3 + 1
        if which == 1 then m = m < 400 and m + 1 or m + 997 end
        local size = ({m, 9 * m, 4 * m})[which]
        local blocks, rest = line:match
          "^[%w_]+ grid (%d+) 1 1 .* parameters (.*)$"
        table.insert(launches[which], {size, tonumber(blocks)})
        -- One of the kernel's parameters is the number of rows (or elements).
        local given = ("%x"):format(which == 3 and 4 * m or m)
        assert.truthy((" " .. rest .. " "):find(" " .. given .. " ", 1, true))
      end
      assert.equal(469, #launches[3])
      local tile = part_of(launches[1], launches[1][1][2])
      assert.truthy(tile == 16 or tile == 32 or tile == 64 or tile == 128, tile)
      assert.equal(0, part_of(launches[2], 1) % 128)
      assert.equal(0, part_of(launches[3], 1) % 128)
      for name, text in pairs {
        none = "extent 0 is 0; 1 to 22358698 in steps of 1 are possible",
        negative = "extent 0 is -1; 1 to 22358698 in steps of 1 are possible",
        unequal = "tensor D: extent 0 is 8; 7 is needed",
        large = "extent 0 is 1073741824; 1 to 22358698",
        step = "extent 0 is 6; 4 to 1073741824 in steps of 4"} do
        local said = out:match(name .. ": ANY_E_EXTENT: ([^\n]*)")
        assert.truthy(said and said:find(text, 1, true), out)
      end
      for _, c in ipairs(COMPILERS) do
        if made.has(c[1]) then made.must(c[1], c[2], WARNINGS, at "any.c") end
      end
    end)
  end
end)

describe("a bundle of operations", function()
  if not there then return end
  it("passes the driver what launches in Lua pass #long", function()
    local own <close> = setmetatable({support.folder(), made.driver(),
      made.driver("", true)}, {__close = function(t)
        for _, f in ipairs(t) do support.remove(f) end
      end})
    folder = own[1]
    local _, err, code = made.bundle("--test --check 0 -o " .. folder,
                                     "spec/bundle/ops.lua")
    assert.equal(0, code, err)
    made.must(("cc -o %s %s %s -ldl -lm -pthread"):format(at "test",
      at "ops_test.c", at "ops.c"))
    made.run(own[2], at "test " .. at "ops_test.bin", {FAKE_LOG = at "c.log"})
    _, err, code = made.run(own[3], support.program .. " spec/bundle/ops.lua "
      .. "gpu", {FAKE_LOG = at "lua.log", FAKE_MEMORY = "1000000000"})
    assert.equal(0, code, err)
    -- Returns the driver's log without the addresses of results and temporary
    -- memory, which may differ.
    local function logged(name)
      return lines_of((support.read(at(name)):gsub("<m%d*%+%d+>", "<memory>")))
    end
    local lua = logged "lua.log"
    assert.truthy(#lua > 20)
    assert.same(lua, logged "c.log")
  end)
end)

-- For each call of misuse.c: its name, the status, and texts that the error
-- message contains.
local MISUSE = {
  {"before a context", "NO_CONTEXT", "no CUDA context is current"},
  {"right", "OK"}, {"other size", "OK"},
  {"tensor NULL", "NULL", "tensor A is NULL"},
  {"address NULL", "NULL", "address of tensor bias is NULL"},
  {"dtype", "DTYPE", "tensor A has type f32; bf16 is needed"},
  {"no dtype", "DTYPE", "unknown"},
  {"rank", "RANK", "A has 1 modes; 2 are needed"},
  {"large rank", "RANK", "9 modes"}, {"negative rank", "RANK", "-1 modes"},
  {"extent", "EXTENT", "tensor D: extent 1 is 511; 512 is needed"},
  {"stride", "STRIDE", "tensor A: stride 0 is 136; 128 is needed"},
  {"align", "ALIGN", "is not aligned to 16 bytes"},
  {"overlap", "OVERLAP", "tensors A and D share memory"},
  {"shared operands", "OK"},
  {"version", "VERSION", "another version of this bundle"},
  {"axpy", "OK"}, {"unequal", "EXTENT", "x is 1000", "y is 1004"},
  {"divisor", "EXTENT", "1002; a multiple of 4 is needed"},
  {"negative", "EXTENT", "-4"}, {"huge", "EXTENT", "2^31 - 1"},
  {"empty", "OK"}, {"scale", "OK"},
  {"pitch", "STRIDE", "34; a multiple of 4 is needed"},
  {"columns", "EXTENT", "31; 32 is needed"}, {"reach", "EXTENT", "spans"},
  {"query", "OK"}, {"no workspace", "NULL", "workspace is NULL"},
  {"small workspace", "WORKSPACE", "8191 bytes; 8192 are needed"},
  {"odd workspace", "ALIGN", "256 bytes"}, {"workspace", "OK"},
  {"query of another size", "EXTENT", "99; 100000 is needed"},
  {"host memory", "DEVICE", "axpy: x: its address", "not memory of a GPU"},
  {"another GPU", "DEVICE", "x is in memory of GPU 1", "context is of GPU 0"},
  {"own memory", "OK"}, {"all memory", "OK"},
  {"little memory", "DEVICE", "x needs 4096 bytes", "ends after 4080"},
  {"a workspace of the host", "DEVICE", "the workspace"},
  {"stream", "OK"}, {"destroyed context", "NO_CONTEXT"},
  {"old stream", "STREAM", "destroyed"}, {"new context", "OK"},
  {"new stream", "OK"}, {"no context", "NO_CONTEXT"}, {"unload", "OK"},
  {"load", "OK"}, {"unload again", "OK"}}

-- Checks the output of misuse.c.
local function check_misuse(out)
  local status, text, count = {}, {}, 0
  for name, s, t in out:gmatch "([^\n:]+): UNIT_(%w[%w_]*): ([^\n]*)\n" do
    status[name], text[name], count = s, t, count + 1
  end
  for _, row in ipairs(MISUSE) do
    local name = row[1]
    assert.equal(row[2] == "OK" and "OK" or "E_" .. row[2], status[name], name
      .. ": " .. tostring(text[name]))
    for i = 3, #row do
      assert.truthy(text[name]:find(row[i], 1, true), text[name])
    end
  end
  assert.equal(#MISUSE, count)
  assert.truthy(out:find("same address: 1\nold stream", 1, true), out)
end

describe("a bundle in a program", function()
  if not there then return end
  setup(function() folder = unit end)

  for _, flags in ipairs {"", "-fsanitize=address,undefined "
      .. "-fno-sanitize-recover=undefined"} do
    it("names each wrong argument " .. flags
      .. support.long(flags == "" and 1 or 2), function()
      if not made.sanitizes(flags) then pending("needs " .. flags) return end
      local path = program("misuse", flags)
      local out, err, code = made.run(driver, path)
      assert.equal(0, code, err)
      assert.equal("", err)
      check_misuse(out)
    end)
  end

  it("is part of a C++ program #long", function()
    if not made.has "c++" then pending "needs c++" return end
    made.must(("c++ -std=c++17 -x c++ -Wall -Wextra -I%s -o %s "
      .. "spec/bundle/misuse.c %s -ldl -pthread"):format(folder, at "misuse_cc",
      at "unit.c"))
    local out, err, code = made.run(driver, at "misuse_cc")
    assert.equal(0, code, err)
    check_misuse(out)
  end)

  it("names the architectures that it has code for", function()
    local path = program "misuse"
    local out = made.run(driver, path, {FAKE_CC = "89", FAKE_ONE = "1"})
    assert.truthy(out:find("call: UNIT_E_NO_CUBIN: this GPU is an sm_89; the "
      .. "bundle has code for sm_90a\n", 1, true), out)
    out = made.run(driver, path, {FAKE_CC = "91", FAKE_ONE = "1"})
    assert.truthy(out:find("UNIT_E_NO_CUBIN: this GPU is an sm_91", 1, true))
  end)

  it("reports that there is no driver, or an old one #long", function()
    if cute.device "gpu" then return pending "needs a host without GPU" end
    local path = program "misuse"
    local out = made.run("/nowhere", path)
    assert.truthy(out:find("^no driver: UNIT_E_NO_DRIVER: .*libcuda%.so%.1"),
                  out)
    local old <close> = setmetatable({made.driver "-DFAKE_OLD"},
      {__close = function(t) support.remove(t[1]) end})
    out = made.run(old[1], path, {FAKE_ONE = "1"})
    assert.truthy(out:find("call: UNIT_E_NO_DRIVER: linear: this driver cannot "
      .. "launch clusters", 1, true), out)
  end)

  it("is safe in 8 threads with 1000 launches each #long", function()
    local flags = "-fsanitize=thread -O1"
    if not made.sanitizes(flags) then pending("needs " .. flags) return end
    local path = program("threads", flags)
    local own <close> = setmetatable({made.driver(flags)},
      {__close = function(t) support.remove(t[1]) end})
    local out, err, code = made.run(own[1], path, {FAKE_SLOW = "1",
                                                   FAKE_COUNT = "1"})
    assert.equal("8 threads, 0 failed\n", out)
    assert.equal(0, code)
    -- An axpy of no elements launches nothing. Each thread makes 4 such calls
    -- out of 1000. Each kernel is loaded once.
    assert.equal("loads 2, unloads 0, launches 15968\n", err)
  end)

  it("reports code that was changed #long", function()
    local text = support.read(at "unit.c")
    local own <close> = setmetatable({support.folder()},
      {__close = function(t) support.remove(t[1]) end})
    support.write(own[1] .. "/unit.h", support.read(at "unit.h"))
    local n = 0
    local changed = text:gsub("(static const uint64_t image_%d+%[%] = {\n"
      .. "[^\n]*\n[^\n]*\n  0x)(%x)", function(head, digit)
        n = n + 1
        return head .. ("%x"):format(tonumber(digit, 16) ~ 8)
      end)
    assert.truthy(n > 0)
    support.write(own[1] .. "/unit.c", changed)
    made.must(("cc -I%s -o %s/m "
      .. "spec/bundle/misuse.c %s/unit.c -ldl -pthread"):format(own[1], own[1],
      own[1]))
    local out = made.run(driver, own[1] .. "/m", {FAKE_ONE = "1"})
    assert.truthy(out:find("UNIT_E_CORRUPT", 1, true), out)
  end)
end)
-- SPDX-License-Identifier: MIT
