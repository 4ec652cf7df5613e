local support = require "spec.support"

-- Runs steps of a shell while `cutelua --watch` runs. The step `run N` waits
-- until the program's Nth run is reported. At the end the program is
-- interrupted. Returns its output.
local function watched(dir, steps, command)
  local script = ([[
cd '%s' || exit 9
%s > out 2> err &
pid=$!
run() {
  for i in $(seq 100); do
    grep -q "^-- run $1 of" out && return
    sleep 0.05
  done
  echo "run $1 did not come" >> out
}
%s
kill -INT $pid
wait $pid
echo "exit $?" >> out
cat out
]]):format(dir, command or ("'%s' --watch s.lua one two"):format(
    support.program:find "^/" and support.program
    or os.getenv "PWD" .. "/" .. support.program), steps)
  local out = support.exec {"bash", "-mc", script}
  return out, support.read(dir .. "/err")
end

local SCRIPT = [[
local cute = require "cute"
local part = require "part"
local t = cute.zeros({64}, cute.i32)
local k = cute.kernel("fill", function(m)
  local i = cute.arch.thread_idx()
  m[i] = i * part.by
end)
k(t):launch {grid = 1, block = part.threads, device = "sim"}
print("t[3]", t[3], ...)
]]

describe("cutelua --watch", function()
  local dir
  before_each(function()
    dir = support.folder()
    support.write(dir .. "/s.lua", SCRIPT)
    support.write(dir .. "/part.lua", "return {by = 2, threads = 32}\n")
  end)
  after_each(function() support.remove(dir) end)

  it("runs at each save, shows differences, continues after errors", function()
    local out, err = watched(dir, [[
run 1
echo 'return {by = 5, threads = 32}' > part.lua; run 2
echo 'return {by = 5, threads = 64}' > new; mv new part.lua; run 3
cp s.lua keep; echo 'oops(' >> s.lua; run 4
mv keep s.lua; run 5
echo 'error "at run time"' > part.lua; run 6
echo 'return {by = 5, threads = 64}' > part.lua; run 7
]])
    assert.equal("", err)
    assert.truthy(out:find("^t%[3%]\t6\tone\ttwo\n%-%- run 1 of s.lua: [%d.]+"),
      out)
    assert.truthy(out:find("\n   - t[3]\t6\tone\ttwo\n   + t[3]\t15\tone\ttwo\n"
      .. "   kernel fill, ran for ", 1, true), out)
    assert.truthy(out:find("\n     %- [^\n]* %* 2;\n     %+ [^\n]* %* 5;\n"
      .. "     as before: bytes of memory 128"), out)
    assert.truthy(out:find("\n   the same output\n", 1, true))
    assert.truthy(out:find("     bytes of memory: 128 -> 256\n", 1, true), out)
    assert.truthy(out:find "\n%-%- run 4 of[^\n]*; exit code 1\n", out)
    assert.truthy(out:find("> 11 |", 1, true) or out:find("oops(", 1, true))
    assert.truthy(out:find("at run time", 1, true))
    assert.truthy(out:find "\n%-%- run 6 of[^\n]*; exit code 1\n", out)
    assert.truthy(out:find "\n%-%- run 7 of[^\n]*, before: [^\n;]*\n", out)
    assert.falsy(out:find("run 8", 1, true), out)
    assert.falsy(out:find("did not come", 1, true), out)
    assert.falsy(out:find "\27")
    assert.truthy(out:find "\nexit 130\n$", out)
  end)

  it("stops a run that a save overtakes, and waits for modules #long",
     function()
    local out = watched(dir, [[
run 1
echo 'print "on" io.stdout:flush() while true do end' > s.lua
until grep -q '^on' out; do sleep 0.05; done
echo 'print((require "other"))' > s.lua; run 2
echo 'return "is there"' > other.lua; run 3
echo 'print "left" os.exit(3)' > s.lua; run 4
rm s.lua; sleep 0.2; echo 'print "back"' > s.lua; run 5
]])
    assert.truthy(out:find("on\n-- file saved: the run was stopped\n", 1, true))
    assert.truthy(out:find("module 'other' not found", 1, true))
    assert.truthy(out:find("is there\n-- run 3", 1, true), out)
    assert.truthy(out:find "left\n%-%- run 4 of[^\n]*; exit code 3\n", out)
    assert.truthy(out:find("\nback\n-- run 5 of", 1, true), out)
    assert.falsy(out:find("did not come", 1, true), out)
  end)

  it("ends silently if nothing reads, rejects files that are no script",
     function()
    local _, err, code = support.run({"--watch"}, {stdin = ""})
    assert.equal("cutelua: --watch needs a script and cannot be combined with "
      .. "a prompt\n",
      err)
    assert.equal(2, code)
    local out = support.exec {"bash", "-c",
      ("cd %s; { timeout 5 '%s' --watch s.lua 2>err; echo $? >code; } | "
      .. "head -1; cat err code")
      :format(dir, support.program:find "^/" and support.program
      or os.getenv "PWD" .. "/" .. support.program)}
    assert.equal("t[3]\t6\n141\n", out)
  end)
end)
-- SPDX-License-Identifier: MIT
