local cli = require "cutelua.program.cli"
local support = require "spec.support"

local SPEC = {
  name = "lesson", about = "A lesson with options.",
  options = {
    {"--m", "int", min = 1, default = 256, help = "rows"},
    {"--scale", "number", min = 0, max = 2.5, help = "a factor"},
    {"--plot", "flag", help = "draws"},
    {"--mode", "choice", choices = {"hot", "cold"}, help = "caches"},
    {"--tile-name", "string", help = "a name"},
  },
  common = true,
}

local function message(...)
  local opt, text = cli.try_parse({...}, SPEC)
  assert.is_nil(opt)
  return text
end

describe("cli", function()
  it("reads values after a blank or an equals sign", function()
    local opt = cli.try_parse({"--m", "512", "--scale=1.5", "--plot",
      "--mode", "hot", "--tile-name=a b=c", "--device", "sim", "--arch",
      "sm_90a", "--emit=cu", "-o", "x.cu", "--a", "-", "--seed", "7"}, SPEC)
    assert.same({args = {}, m = 512, scale = 1.5, plot = true, mode = "hot",
      tile_name = "a b=c", device = "sim", arch = "sm_90a", emit = "cu",
      output = "x.cu", a = "-", seed = 7}, opt)
  end)

  it("reads a target of the simulator", function()
    assert.equal("sim:sm_100a",
      cli.try_parse({"--device", "sim:sm_100a"}, SPEC).device)
  end)

  it("fills in defaults", function()
    assert.same({args = {}, m = 256, device = "auto", seed = 0},
      cli.try_parse({}, SPEC))
  end)

  it("rejects an unknown option and names the nearest", function()
    assert.equal("unknown option '--devise' (did you mean --device?); "
      .. "--help lists them all", message("--devise", "sim"))
    assert.truthy(message("--dev=gpu"):find("did you mean --device?", 1,
      true))
    assert.truthy(message("--sclae", "1"):find("did you mean --scale?", 1,
      true))
    assert.equal("unknown option '--quux'; --help lists them all",
      message("--quux"))
  end)

  it("rejects invalid numbers, with the value", function()
    assert.equal("--m: a whole number of at least 1 expected, got '0'",
      message("--m", "0"))
    assert.equal("--m: a whole number of at least 1 expected, got '-4'",
      message("--m", "-4"))
    for _, text in ipairs {"x", "1.5", "0x10", "", " 1", "1e3", "nan"} do
      assert.equal(("--m: a whole number expected, got '%s'"):format(text),
        message("--m", text))
    end
    assert.equal("--m: a whole number of at most 63 bits expected, got "
      .. "'9223372036854775808'", message("--m", "9223372036854775808"))
    assert.equal("--scale: a number from 0 to 2.5 expected, got '3'",
      message("--scale", "3"))
    assert.equal("--scale: a finite number expected, got '1e400'",
      message("--scale=1e400"))
    for _, text in ipairs {"nan", "0x10", " 1", "1 ", "1_0", "", "0x1p3",
        "1e", "..", "-"} do
      assert.equal(("--scale: a finite number expected, got '%s'"):format(text),
        message("--scale", text))
    end
  end)

  it("rejects other invalid values", function()
    for _, word in ipairs {"cuda", "sim:sm_101", "gpu:sm_100a", "sim:"} do
      assert.equal(("--device: one of auto, sim, gpu, sim:sm_100a expected, "
        .. "got '%s'"):format(word), message("--device", word))
    end
    assert.equal("--arch: a name such as sm_80 or sm_90a expected, got "
      .. "'hopper'", message("--arch", "hopper"))
    assert.equal("--arch: a supported architecture, such as sm_80 or sm_90a, "
      .. "expected, got 'sm_12'", message("--arch", "sm_12"))
    assert.equal("--m needs a value", message("--m"))
    assert.equal("--plot takes no value", message("--plot=yes"))
    assert.equal("-o needs --emit too", message("-o", "f"))
    assert.equal("unexpected argument 'x'", message("x"))
    assert.equal("--out: a file name expected, got ''", message("--out="))
  end)

  it("takes arguments if requested", function()
    local spec = {name = "ladder", args = {name = "rung", many = true}}
    assert.same({args = {"a", "b", "--c"}},
      cli.try_parse({"a", "b", "--", "--c"}, spec))
    spec.args.many = false
    assert.equal("unexpected argument 'b'",
      select(2, cli.try_parse({"a", "b"}, spec)))
    spec.args.required = true
    assert.equal("rung is needed", select(2, cli.try_parse({}, spec)))
  end)

  it("lists every option in --help, aligned, within 80 columns", function()
    local help = cli.help(SPEC)
    local column
    for line in help:gmatch "[^\n]+" do
      assert.is_true(#line <= 80, line)
      if line:find "^  %-" then
        local at = line:match "^  %-%-?%S+ ?%S*%s%s+()%S"
        column = column or at
        assert.equal(column, at, line)
      end
    end
    for _, name in ipairs {"--m N", "--scale X", "--plot", "--mode hot|cold",
        "--device auto|sim|gpu", "--arch NAME", "--emit ir|cu|ptx|sass|cubin",
        "-o FILE", "--seed N", "--a FILE", "--b FILE", "--out FILE",
        "--help"} do
      assert.truthy(help:find("\n  " .. name .. " ", 1, true), name)
    end
    assert.truthy(help:find("(default 256)", 1, true))
  end)

  it("leaves with 2 for a mistake, with 0 for --help", function()
    local dir = support.folder()
    local path = support.write(dir .. "/s.lua", [[
      local opt = require "cutelua.program.cli".parse(arg, {name = "s",
        options = {{"--n", "int", min = 1, help = "a size"}}})
      print(opt.n)]])
    local out, err, code = support.run {path, "--n", "0"}
    assert.equal("", out)
    assert.equal("s: --n: a whole number of at least 1 expected, got '0'\n",
      err)
    assert.equal(2, code)
    out, err, code = support.run {path, "--help"}
    assert.truthy(out:find("--n N", 1, true))
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("3\n", (support.run {path, "--n", "3"}))
    support.remove(dir)
  end)
end)

describe("cli.nearest", function()
  it("finds a name with a slip, and none that is far", function()
    local names = {"SM80_16x8x16_F32BF16BF16F32_TN", "SM75_U32x4_LDSM_N"}
    assert.equal(names[1], cli.nearest("SM80_16x8x16_F32BF16BF16F32_NT",
      names))
    assert.equal(names[2], cli.nearest("sm75_u32x4_ldsm_n", names))
    assert.is_nil(cli.nearest("UniversalFMA", names))
    assert.is_nil(cli.nearest("", names))
  end)
end)

describe("cli.write_file", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("writes the whole file, in pieces, and leaves nothing else", function()
    assert.is_true(cli.write_file(dir .. "/f", "ab", "\0c"))
    assert.equal("ab\0c", support.read(dir .. "/f"))
    assert.is_true(cli.write_file(dir .. "/f", "new"))
    assert.equal("new", support.read(dir .. "/f"))
    local p <close> = io.popen("ls -A " .. dir)
    assert.equal("f\n", p:read "a")
  end)

  it("reports failures, and leaves the old file unchanged", function()
    local ok, why = cli.write_file(dir .. "/none/f", "x")
    assert.is_nil(ok)
    assert.equal(("cannot write %s/none/f: No such file or directory [io]")
      :format(dir), why)
    os.execute("mkdir " .. dir .. "/d && touch " .. dir .. "/d/keep")
    ok, why = cli.write_file(dir .. "/d", "x")
    assert.is_nil(ok)
    assert.equal(("cannot write %s/d: Is a directory [io]"):format(dir), why)
    assert.equal("", support.read(dir .. "/d/keep"))
    local p <close> = io.popen("ls -A " .. dir)
    assert.equal("d\n", p:read "a")
  end)

  it("reports before long work whether it could write", function()
    assert.is_true(cli.writable(dir .. "/f"))
    assert.is_nil(support.read(dir .. "/f"))
    support.write(dir .. "/g", "kept")
    assert.is_true(cli.writable(dir .. "/g"))
    assert.equal("kept", support.read(dir .. "/g"))
    local ok, why = cli.writable(dir .. "/none/f")
    assert.is_nil(ok)
    assert.equal(("cannot write %s/none/f: No such file or directory [io]")
      :format(dir), why)
    local out, err, code = support.run {"scripts/gemm3stage.lua", "--device",
      "sim", "--m", "16", "--out", dir .. "/none/f"}
    assert.same({"", "gemm3stage: " .. why .. "\n", 1}, {out, err, code})
  end)

  it("notices a full disk", function()
    local ok, why = cli.write_file("/dev/full", ("x"):rep(100000))
    assert.is_nil(ok)
    assert.truthy(why:find("No space left on device", 1, true))
    local f <close> = io.open("/dev/full", "rb")
    -- /dev/full is still a device: no regular file replaced it
    assert.equal("\0", f:read(1))
  end)
end)
-- SPDX-License-Identifier: MIT
