-- Tests the page that `cutelua web` serves, in a Chromium. The page may use
-- threads, and its simulator must use them. Needs `make web` and a Chromium.
local browser = require "spec.browser"
local json = require "dkjson"
local support = require "spec.support"

local web = (os.getenv "CUTE_BUILD" or "build") .. "/web"

-- Calls f(address) while `cutelua web` serves at that address.
local function served(f)
  local dir = support.folder()
  os.execute(("%s web --port 0 --folder %s >%s/out 2>&1 & echo $! >%s/pid")
    :format(support.program, web, dir, dir))
  local address
  for _ = 1, 100 do
    address = (support.read(dir .. "/out") or ""):match "http://[%d.:]+/"
    if address then break end
    os.execute "sleep 0.05"
  end
  local ok, result = pcall(f, assert(address, "nothing is served"))
  os.execute(("kill %s"):format(support.read(dir .. "/pid")))
  support.remove(dir)
  return ok and result or error(result, 0)
end

local READY = [[
const engine = new Engine();
const hello = await engine.ready;
const ask = (name, text, words) => engine.ask("run", {name, text, words});
]]

describe("the page that cutelua web serves", function()
  if not browser.find() then return end

  it("has threads, with the results of one thread", function()
    local script = READY .. [[
      const found = {isolated: crossOriginIsolated, threads: hello.threads,
        cores: navigator.hardwareConcurrency};
      const lesson = SHELF.scripts.find(s => s.name == "gemm3stage");
      const a = await ask("gemm3stage.lua", lesson.text,
        ["--m", "256", "--n", "256", "--k", "256"]);
      found.ok = a.ok;
      found.counts = JSON.stringify(a.page.kernels[0].counts);
      return found;
    ]]
    local found = served(function(address)
      return browser.drive {{url = address .. "index.html", script = script}}
    end)[1]
    assert.same({}, found.errors)
    local v = found.value
    assert.is_true(v.isolated)
    assert.equal(math.min(v.cores, 8), v.threads)
    assert.is_true(v.ok)
    local alone = browser.drive {{url = "file://" .. support.exec(
      {"realpath", web}):gsub("\n", "") .. "/index.html", script = script}}[1]
    assert.same({}, alone.errors)
    assert.equal(1, alone.value.threads)
    assert.equal(alone.value.counts, v.counts)
    assert.truthy(next((json.decode(v.counts))))
    print(("        in Chromium: %s threads"):format(v.threads))
  end)
end)
-- SPDX-License-Identifier: MIT
