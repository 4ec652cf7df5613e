-- Tests web/shelf.js under node: how it splits the line of arguments, reads the
-- seed, finds scripts, and stores settings.
local dkjson = require "dkjson"
local support = require "spec.support"

-- Returns the value of a JavaScript expression, in which `s` is the module
-- web/shelf.js.
local function js(expression, before)
  local out, err, code = support.exec {"node", "-e", ([[
    globalThis.SHELF = {scripts: [{path: "scripts/scan.lua",
        text: 'require "kernels.norm"'}, {path: "scripts/norm.lua", text: ""}],
      kernels: [{path: "kernels/norm.lua", text: "2"}]};
    %s
    const s = require("./web/shelf.js");
    console.log(JSON.stringify(%s));]]):format(before or "", expression)}
  assert.equal(0, code, err)
  return assert(dkjson.decode(out))
end

describe("the shelf", function()
  it("cuts a line of arguments into words as a shell does", function()
    for line, words in pairs {
      ["  --m 256\t--check "] = {"--m", "256", "--check"},
      ["'a b' \"c 'd'\" e\"f g\"h"] = {"a b", "c 'd'", "ef gh"},
      ["'' \"\" x"] = {"", "", "x"}, [""] = {},
    } do
      assert.same({words = words}, js(("s.words(%s)"):format(
        dkjson.encode(line))))
    end
    assert.same({error = "arguments: ' is not closed"}, js [[s.words("a 'b")]])
  end)

  it("takes seeds that are integers of a double", function()
    assert.same({{}, {seed = 0}, {seed = 7}, {error =
      "seed: -1: an integer from 0 to 2^53 is needed"}, {error =
      "seed: 99999999999999999999: an integer from 0 to 2^53 is needed"}},
      js [[["", "0", " 7 ", "-1", "99999999999999999999"].map(s.seed)]])
  end)

  it("finds scripts by name, kernels by path, and their users", function()
    assert.same({"scripts/scan.lua", "scripts/norm.lua", "kernels/norm.lua",
      "none"}, js [[["scan.lua", "norm", "kernels/norm.lua", "scant"]
      .map(n => (s.shelved(n) || {path: "none"}).path)]])
    assert.same({{"scan.lua"}, {}},
                js [[["kernels/norm.lua", "scan.lua"].map(s.users)]])
  end)

  it("remembers, and works without storage", function()
    local KEEPS = [[const kept = {}; globalThis.localStorage = {
      getItem: k => k in kept ? kept[k] : null,
      setItem: (k, v) => { kept[k] = v; }};]]
    local REFUSES = [[globalThis.localStorage = {getItem: () => null,
      setItem: () => { throw new Error("no"); }};]]
    local ASK = [[(() => { const t = s.store(); t.set("a", [1]);
      return [t.get("a", 0), t.get("b", 2), !!t.broken,
        s.store().get("a", 0)]; })()]]
    assert.same({{1}, 2, false, {1}}, js(ASK, KEEPS))
    assert.same({{1}, 2, true, 0}, js(ASK, REFUSES))
    assert.same({{1}, 2, true, 0}, js(ASK))
  end)
end)
-- SPDX-License-Identifier: MIT
