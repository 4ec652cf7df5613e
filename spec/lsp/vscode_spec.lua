-- Tests the extension of VS Code: its manifest, and its behaviour in a mock of
-- VS Code, with cutelua as its server.
local dkjson = require "dkjson"
local support = require "spec.support"

local FOLDER = "editors/vscode/"

describe("the extension of VS Code", function()
  local manifest = dkjson.decode(support.read(FOLDER .. "package.json"))

  it("has a manifest that fits the program and its files", function()
    assert.equal(support.read "VERSION":match "%S+", manifest.version)
    assert.is_nil(manifest.dependencies)
    assert.truthy(support.read(FOLDER .. manifest.main))
    local code = support.read(FOLDER .. "extension.js")
    for name in pairs(manifest.contributes.configuration.properties) do
      local key = name:match "^cutelua%.(%w+)$"
      assert.truthy(code:find(("get(\"%s\")"):format(key), 1, true), name)
    end
    for _, one in ipairs(manifest.contributes.commands) do
      assert.truthy(code:find(("registerCommand(\"%s\""):format(one.command), 1,
                              true))
    end
    -- The extension may only require modules of Node, of VS Code, and of its
    -- own folder.
    for name in (code .. support.read(FOLDER .. "client.js")):gmatch
      'require%("([^"]+)"%)' do
      assert.truthy(name == "vscode" or name:find "^node:"
        or support.read(FOLDER .. name), name)
    end
  end)

  it("shows findings, repairs and layouts, and survives its server #long",
     function()
    if select(3, support.exec {"node", "--version"}) ~= 0 then
      return pending "needs node"
    end
    local path = os.tmpname()
    support.write(path, [[
-- Prüfung 😀 of a race
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local k = cute.kernel("faulty", function(x, y)
  local t, w = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(2), 128)
]], (support.read "spec/faults/race/second_reduction.lua"
  :match "  local v = x%[t%].*":gsub("%-%- mend: [^\n]*",
                                     "--[=[ mend 😀 ]=]")))
    local out, err, code = support.exec {"node", "spec/lsp/vscode.js",
      support.absolute(support.program), path}
    os.remove(path)
    assert.same({"passed\n", "", 0}, {out, err, code})
  end)
end)
-- SPDX-License-Identifier: MIT
