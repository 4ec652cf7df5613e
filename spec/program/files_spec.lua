-- Tests files and texts that come from outside: how the program reads and
-- writes them, and which of their characters reach a terminal.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local support = require "spec.support"

local function sh(line)
  local out, err, code = support.exec({"sh", "-c", line})
  assert.equal(0, code, err)
  return out
end

describe("text from outside as printed", function()
  -- Decodes text by the definition of UTF-8, byte by byte.
  local function oracle(text, lines)
    local out, at = {}, 1
    while at <= #text do
      local code = utf8.len(text, at, at) and utf8.codepoint(text, at)
      local n = code and #utf8.char(code) or 1
      local piece = text:sub(at, at + n - 1)
      if not code then
        piece = ("\\x%02x"):format(text:byte(at))
      elseif lines and (piece == "\n" or piece == "\t") then
        piece = piece
      elseif piece == "\n" then piece = "\\n"
      elseif piece == "\t" then piece = "\\t"
      elseif piece == "\r" then piece = "\\r"
      elseif code < 32 or code == 127 then piece = ("\\x%02x"):format(code)
      elseif code >= 128 and code < 160 or code == 0x61c
          or code >= 0x200e and code <= 0x200f
          or code >= 0x2028 and code <= 0x202e
          or code >= 0x2066 and code <= 0x2069 then
        piece = ("\\u{%x}"):format(code)
      end
      out[#out + 1] = piece
      at = at + n
    end
    return table.concat(out)
  end

  it("has every character except control characters of terminals", function()
    local state, texts = 7, {"", "plain", "\27[2J\27]0;x\7", "a\0b", "é",
      "\xe9", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
      "\xf0\x9f\x98\x80", "\xf0\x9f\x98", "\u{202e}live",
      "\u{2066}x\u{2069}", "\u{9b}31m",
      "a\nb\tc\r\n"}
    for code = 0, 0x3000, 1 do
      if code % 61 == 0 or code < 0x180 or code >= 0x2000 and code < 0x2080
      then texts[#texts + 1] = utf8.char(code) end
    end
    for _ = 1, 2000 do
      local bytes = {}
      for i = 1, 12 do
        state = state * 6364136223846793005 + 1442695040888963407
        bytes[i] = string.char((state >> 40) & 255)
      end
      texts[#texts + 1] = table.concat(bytes)
    end
    for _, text in ipairs(texts) do
      assert.equal(oracle(text), core.visible(text))
      assert.equal(oracle(text, true), core.visible(text, true))
    end
  end)

  it("holds for errors, scripts' names and options", function()
    local dir = support.folder()
    local name = dir .. "/a\27[31m\u{202e}é.lua"
    support.write(name, "local x = nil\nx.y = 1 -- \27[5m\n")
    local _, err = support.run {name}
    assert.truthy(err:find("a\\x1b[31m\\u{202e}é.lua:2", 1, true), err)
    assert.truthy(err:find("-- \\x1b[5m", 1, true), err)
    assert.is_nil(err:find "\27", err)
    support.write(name, "require 'cute'.layout '\27]0;x\7'")
    _, err = support.run {name}
    assert.truthy(err:find("[bad-notation]", 1, true), err)
    assert.is_nil(err:find "[\27\7]", err)
    _, err = support.run {dir .. "/\27[2J"}
    assert.equal("cutelua: cannot open " .. dir .. "/\\x1b[2J: No such file "
      .. "or directory [io]\n", err)
    for _, words in ipairs {{"--m", "\27[2J"}, {"--\27[2J"}, {"\27[2J"},
        {"--a", dir .. "/\27[2J"}, {"--out", dir .. "/\27[2J/x"}} do
      local out
      out, err = support.run {"scripts/gemm_base.lua", "--device", "sim",
        table.unpack(words)}
      assert.truthy(err:find("\\x1b[2J", 1, true), err)
      assert.is_nil((out .. err):find "\27", err)
    end
    _, err = support.run({}, {stdin = "error '\27[2J'\n"})
    assert.truthy(err:find("\\x1b[2J", 1, true), err)
    support.remove(dir)
  end)

  it("holds for what --emit prints", function()
    local dir = support.folder()
    local path = dir .. "/a\27[31mb.lua"
    support.write(path, support.read "scripts/copy_basic.lua")
    support.write(dir .. "/\xff\27[5m.lua", support.read(path))
    local table_of, complaint = support.run {dir .. "/\xff\27[5m.lua",
      "--device", "sim", "--m", "64", "--n", "64"}
    assert.equal("", complaint)
    assert.truthy(table_of:find("\\xff\\x1b[5m.lua:", 1, true), table_of)
    for _, kind in ipairs {"ir", "cu"} do
      local out, err = support.run {path, "--emit", kind}
      assert.equal("", err)
      assert.is_nil(out:find "\27")
      assert.truthy(#out > 200)
    end
    support.remove(dir)
  end)

  it("has the start and end of a long line #long", function()
    local long = ("é"):rep(4000)
    for _, words in ipairs {{long}, {"doc", long}, {"-" .. long},
        {"-e", "error('" .. long .. "')"}, {"check", "--orders", long, "x"},
        {"-e", "require 'cute'.device('" .. long .. "')"},
        {"learn", long}, {"web", "--port", long}} do
      local _, err = support.run(words)
      assert.truthy(err:find("éé ... éé", 1, true), err)
      for line in err:gmatch "[^\n]+" do assert.is_true(#line <= 2000) end
      assert.equal(core.visible(err, true), err)
    end
    local short = ("x"):rep(1999) .. "\n" .. ("y"):rep(1999)
    assert.equal(short, core.message(short))
    assert.equal(("a"):rep(1500) .. " ... " .. ("b"):rep(400) .. "\nc",
      core.message(("a"):rep(2000) .. ("b"):rep(400) .. "\nc"))
  end)
end)

describe("text from outside as printed", function()
  it("holds for messages that are returned", function()
    local _, why = core.jit_compile("\27[2J", "sm_80\27[2J", {}, true)
    assert.is_nil(why:find "\27", why)
    local ok, raised = pcall(core.fail, "bad-argument", "x\27y\nz\t\u{9b}")
    assert.is_false(ok)
    assert.truthy(raised:find("x\\x1by [bad-argument]\nz\t\\u{9b}", 1, true),
      raised)
  end)
end)

describe("a file that is written", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function modes(path)
    return (sh("stat -c %a " .. path):gsub("\n", ""))
  end

  it("keeps its mode, and leaves no other file", function()
    local path = support.write(dir .. "/x", "old")
    for _, mode in ipairs {"600", "640", "755"} do
      sh("chmod " .. mode .. " " .. path)
      assert.is_true(cli.write_file(path, mode))
      assert.equal(mode, support.read(path))
      assert.equal(mode, modes(path))
    end
    assert.is_true(cli.write_private(path, "p"))
    assert.equal("600", modes(path))
    assert.equal("x\n", sh("ls -A " .. dir))
  end)

  it("is private only where it is a plain file: pipes and devices stay",
     function()
    sh(("mkfifo %s/p; ln -s p %s/history"):format(dir, dir))
    for _, name in ipairs {"p", "history"} do
      local path = dir .. "/" .. name
      local ok, why = cli.write_private(path, "x")
      assert.is_nil(ok)
      assert.equal("cannot write " .. path .. ": it is not a regular file "
        .. "[io]", why)
    end
    assert.equal("pipe", core.file_kind(dir .. "/p"))
  end)

  it("is the target of our own link, and the link stays", function()
    sh(("mkdir %s/data; echo old >%s/data/real; ln -s data/real %s/link; "
      .. "ln -s link %s/twice"):format(dir, dir, dir, dir))
    assert.is_true(cli.write_file(dir .. "/twice", "new"))
    assert.equal("new", support.read(dir .. "/data/real"))
    assert.equal("link\n", sh("readlink " .. dir .. "/twice"))
    assert.equal("real\n", sh("ls -A " .. dir .. "/data"))
    sh("ln -s nothing " .. dir .. "/broken")
    local ok, why = cli.write_file(dir .. "/broken", "new")
    assert.is_nil(ok)
    assert.equal("cannot write " .. dir .. "/broken: No such file or "
      .. "directory [io]", why)
  end)

  it("is not the target of another user's link", function()
    local _, _, code = support.exec {"sh", "-c", "test $(id -u) = 0"}
    if code ~= 0 then return pending "needs root" end
    sh(("echo mine >%s/mine; ln -s mine %s/link; chown -h nobody %s/link")
      :format(dir, dir, dir))
    local ok, why = cli.write_file(dir .. "/link", "new")
    assert.is_nil(ok)
    assert.equal("cannot write " .. dir .. "/link: Operation not permitted "
      .. "[io]", why)
    assert.equal("mine\n", support.read(dir .. "/mine"))
  end)

  it("may be a pipe or a device", function()
    sh("mkfifo " .. dir .. "/pipe")
    assert.is_true(cli.writable(dir .. "/pipe"))
    local reader <close> = io.popen("cat " .. dir .. "/pipe")
    assert.is_true(cli.write_file(dir .. "/pipe", "through ", "it"))
    assert.equal("through it", reader:read "a")
    assert.equal("pipe\n", sh("ls -A " .. dir))
    local long = ("0123456789abcdef"):rep(20000)
    local counter <close> = io.popen("wc -c <" .. dir .. "/pipe")
    assert.is_true(cli.write_file(dir .. "/pipe", long, "!"))
    assert.equal("320001\n", counter:read "a")
    assert.is_true(cli.write_file("/dev/null", "x"))
    assert.is_true(cli.writable "/dev/null")
    local ok, why = cli.write_file("/dev/full", "x")
    assert.is_nil(ok)
    assert.equal("cannot write /dev/full: No space left on device [io]", why)
    assert.is_nil(cli.writable "/dev/none/x")
    ok, why = cli.writable(dir)
    assert.is_nil(ok)
    assert.equal(("cannot write %s: Is a directory [io]"):format(dir), why)
  end)

  it("goes to /dev/stdout as a script's result", function()
    local npy = require "cute.npy"
    npy.write(dir .. "/a.npy", {dtype = "f32", shape = {64, 64},
      bytes = ("\0"):rep(64 * 64 * 4)})
    local out, err, code = support.exec {"sh", "-c", support.program
      .. " scripts/copy_basic.lua --device sim --a /dev/stdin --out "
      .. "/dev/stdout <" .. dir .. "/a.npy | cat"}
    assert.equal(0, code, err)
    assert.truthy(out:find("\x93NUMPY", 1, true))
    out, err, code = support.exec {"sh", "-c", "cat " .. dir .. "/a.npy | "
      .. support.program .. " scripts/copy_basic.lua --device sim --a "
      .. "/dev/stdin --out " .. dir .. "/out.npy"}
    assert.equal(0, code, err .. out)
    assert.equal(64 * 64 * 4 + 128, #support.read(dir .. "/out.npy"))
  end)
end)

describe("a write to a pipe", function()
  it("fails if nobody reads it, or if its reader stops", function()
    local output = require "cutelua.text.output"
    local dir, long = support.folder(), ("x"):rep(1 << 20)
    local pipe = dir .. "/pipe"
    support.must {"mkfifo", pipe}
    local patience = output.PATIENCE
    output.PATIENCE = 0.2
    local function reason(text)
      local ok, why = cli.write_file(pipe, text)
      assert.is_nil(ok)
      return why:match "^cannot write .*/pipe: (.*) %[io%]$"
    end
    assert.equal("no program read the pipe within 0.2 s", reason "x")
    do
      local reader <close> = io.popen("head -c 1 " .. pipe)
      assert.equal("Broken pipe", reason(long))
      assert.equal("x", reader:read "a")
    end
    local idle = io.popen("exec 3<" .. pipe .. "; exec sleep 1")
    assert.equal("Connection timed out", reason(long))
    idle:close()
    output.PATIENCE = patience
    support.remove(dir)
  end)
end)

describe("a script that is read", function()
  it("may be a pipe, which is read once", function()
    local out, err = support.exec {"sh", "-c", [[echo 'print(7)
local x = nil
x.y = 1' | ]] .. support.program .. " /dev/stdin"}
    assert.equal("7\n", out)
    assert.truthy(err:find("> 3 | x.y = 1", 1, true), err)
    local dir = support.folder()
    sh("mkfifo " .. dir .. "/s.lua")
    local _
    _, err = support.exec {"sh", "-c", ("(printf 'local y = 1\nerror(y)\n' "
      .. ">%s/s.lua) & %s %s/s.lua"):format(dir, support.program, dir)}
    support.remove(dir)
    assert.truthy(err:find("cutelua: 1", 1, true)
      or err:find("error object", 1, true), err)
  end)

  it("has an end", function()
    local _, err, code = support.run {"/dev/zero"}
    assert.equal("cutelua: cannot read /dev/zero: it is larger than 64 MiB "
      .. "[io]\n",
      err)
    assert.equal(1, code)
  end)

  it("has an end of its lines, too #long", function()
    local at = support.folder()
    for _, words in ipairs {"", "learn layouts"} do
      local _, err, code = support.exec {"sh", "-c", ("p=$(readlink -f '%s'); "
        .. "cd %s; timeout 20 $p %s </dev/zero"):format(support.program, at,
        words)}
      assert.equal("cutelua: a line of standard input is longer than 4 MiB "
        .. "[io]\n", err)
      assert.equal(1, code)
    end
    support.remove(at)
  end)

  it("is missing, which is reported before its options are checked", function()
    for _, name in ipairs {"none.ptx", "none.cu", "none.lua"} do
      local _, err, code = support.run {name}
      assert.equal(("cutelua: cannot open %s: No such file or directory [io]\n")
        :format(name), err)
      assert.equal(1, code)
    end
  end)

  it("has the command's options before it", function()
    local at = support.folder()
    local KERNEL = [[local cute = require "cute"
      cute.kernel("k", function() end)():launch {grid = 1, block = 32,
        device = "sim"} ]]
    local function notes(text)
      support.write(at .. "/s.lua", KERNEL .. text)
      local _, err = support.run {"check", at .. "/s.lua", "--seconds", "5",
                                  "--other"}
      return err:find("cutelua: note: --seconds follows the script, which "
        .. "reads no arguments: write --seconds before the script\n",
        1, true) ~= nil,
        err:find("--other", 1, true) ~= nil
    end
    assert.same({true, false}, {notes ""})
    assert.same({false, false}, {notes "print(#arg)"})
    assert.same({false, false}, {notes "print(...)"})
    -- A module of the user may read `arg`.
    support.write(at .. "/options.lua", "print(#arg)")
    local path = ("package.path = %q\n"):format(at .. "/?.lua")
    assert.same({false, false}, {notes(path .. "require 'options'")})
    support.remove(at)
  end)

  it("is no LUA_INIT", function()
    local out, err = support.run({"-e", "print(1)"}, {env = {
      LUA_INIT = "print 'init'", LUA_INIT_5_4 = "print 'init'"}})
    assert.equal("1\n", out .. err)
  end)
end)

describe("the history", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function talk(steps, home)
    table.insert(steps, 1, {"", "> "})
    steps[#steps + 1] = {"\4", ""}
    return support.terminal(steps, {TERM = "xterm", HOME = home,
      XDG_STATE_HOME = dir .. "/state"})
  end

  it("is private to this user", function()
    talk {{"x = 1\n", "> "}}
    local path = dir .. "/state/cutelua/history"
    assert.equal("600 700 700\n", (sh(("stat -c %%a %s %s/state/cutelua "
      .. "%s/state"):format(path, dir, dir)):gsub("\n(.)", " %1")))
    sh("chmod 644 " .. path)
    talk {{"\27[A\n", "\r\n> "}}
    assert.equal("600\n", sh("stat -c %a " .. path))
    assert.equal("x = 1\n", support.read(path))
  end)

  it("of another user is not read, nor the target of their link #long",
     function()
    local _, _, code = support.exec {"sh", "-c", "test $(id -u) = 0"}
    if code ~= 0 then return pending "needs root" end
    local path = dir .. "/state/cutelua/history"
    sh(("mkdir -p %s/state/cutelua; echo planted >%s; chown nobody %s")
      :format(dir, path, path))
    local f, why = core.open_input(path, "private")
    assert.is_nil(f)
    assert.equal("Operation not permitted", why)
    talk {{"x = 1\n", "> "}}
    assert.equal("x = 1\n", support.read(path))
    sh(("mv %s %s/mine; ln -s %s/mine %s; chown -h nobody %s"):format(path,
      dir, dir, path, path))
    f, why = core.open_input(path, "private")
    assert.is_nil(f)
    assert.equal("Operation not permitted", why)
    sh(("chown -h root %s"):format(path))
    talk {{"y = 2\n", "> "}}
    assert.equal("x = 1\ny = 2\n", support.read(dir .. "/mine"))
  end)

  it("does not block the program", function()
    sh(("mkdir -p %s/state/cutelua; mkfifo %s/state/cutelua/history "
      .. "%s/.editrc"):format(dir, dir, dir))
    local out, code = talk({{"6 * 7\n", "42\r\n> "}}, dir)
    assert.truthy(out:find("42\n", 1, true))
    assert.equal(0, code)
  end)

  it("leaves no file behind when a signal ends the program #long", function()
    local probe, aside = core.open_aside(dir .. "/probe")
    probe:close()
    local signals = aside and {"INT"} or {"INT", "TERM", "HUP", "KILL"}
    if aside then os.remove(aside) end
    for _, name in ipairs(signals) do
      local at = support.folder()
      support.exec({"timeout", "-s", name, "0.4", support.program, "-e", [[
        local cli = require "cutelua.program.cli"
        local piece = ("x"):rep(1 << 22)
        for i = 1, 1 << 30 do
          assert(cli.write_file("]] .. at .. [[/f", piece, piece, piece, piece))
        end]]})
      local p <close> = io.popen("ls -A " .. at)
      local left = p:read "a"
      assert.truthy(left == "" or left == "f\n", name .. ": " .. left)
      assert.equal(left == "f\n" and 1 << 24,
                   left == "f\n" and #support.read(at .. "/f"))
      support.remove(at)
    end
  end)

  it("fails at the limit on the size of files (ulimit -f)", function()
    local at = support.folder()
    local function limited(code)
      return support.exec({"sh", "-c", 'ulimit -f 8; exec "$@"', "sh",
        support.program, "-e", code}, {env = {CUTELUA_CACHE = "0"}})
    end
    local note = "cutelua: note: a file reached the limit of its size "
      .. "(ulimit -f)\n"
    local _, err, code = limited('local ok, why = require '
      .. '"cutelua.program.cli".write_file("' .. at .. '/f", ("x"):rep(1 << 20)'
      .. ') io.stderr:write(why, "\\n")')
    assert.equal(note .. "cannot write " .. at .. "/f: File too large [io]\n",
                 err)
    assert.equal(0, code)
    assert.is_nil(support.read(at .. "/f"))
    _, err, code = limited 'print(("x"):rep(1 << 20))'
    assert.equal(note .. "cutelua: standard output could not be written [io]\n",
                 err)
    assert.equal(1, code)
    support.remove(at)
  end)
end)
-- SPDX-License-Identifier: MIT
