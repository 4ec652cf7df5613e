-- Runs each tool once through the program, as a user does. With `make asan`,
-- this covers C code that no other spec runs in the sanitized program.
local support = require "spec.support"

-- Requests that start a session with `cutelua mcp` and `cutelua lsp`.
local MCP = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": '
  .. '{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": '
  .. '{"name": "spec", "version": "1"}}}\n'
local LSP = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": '
  .. '{"processId": null, "rootUri": null, "capabilities": {}}}'

-- Cases: the tool, its arguments, standard input, a text that its output
-- contains, and its exit code (0 unless given).
local CASES = {
  {"a lesson", {"scripts/copy_swizzled.lua", "--device", "sim"}, "",
   "verified"},
  {"a GEMM with bulk copies", {"scripts/gemm_ws.lua", "--device", "sim",
    "--m", "128", "--n", "128", "--k", "128"}, "", "verified"},
  {"text", {"scripts/gemm3stage.lua", "--emit", "cu"}, "", "__global__"},
  {"operations", {"-e", [[
    local cute, ops = require "cute", require "cute.ops"
    local a, b = cute.ones({32, 64}, cute.bf16), cute.ones({16, 64}, cute.bf16)
    local c = ops.gemm(a, b, {device = "sim"})
    local s = ops.reduce(c, "sum", {device = "sim"})
    print(c[{3, 2}], s)]]}, "", "64"},
  {"arrays in files", {"-e", [[
    local cute, npy = require "cute", require "cute.npy"
    local path = os.tmpname()
    npy.write(path, npy.of_buffer(cute.buffer("f32", 15), {3, 5}))
    print(npy.tensor(npy.read(path)).layout)
    os.remove(path)]]}, "", "(3,5):(5,1)"},
  {"pictures", {"-e", [[
    local cute = require "cute"
    for _, form in ipairs {"text", "svg", "latex", "html"} do
      print(cute.draw("Sw<2,0,3> o 0 o (8,8):(8,1)", {as = form}))
    end]]}, "", "</svg>"},
  {"estimates", {"-e", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      x[cute.arch.thread_idx()] = 1
    end)
    print(k(cute.zeros({32}, cute.f32)):estimate {grid = 1, block = 32,
      registers = 32, card = "h100"})]]}, "", "us"},
  {"check", {"check", "scripts/copy_async.lua"}, "", "kernel copy_async: ok"},
  {"check as JSON", {"check", "--format", "json", "scripts/copy_async.lua"}, "",
   '"verdict":"ok"'},
  -- The memory limit of `cutelua ci` is too small for the sanitizers.
  {"ci #noasan", {"ci", "scripts/copy_async.lua"}, "", "1 script: 1 ok"},
  {"diff", {"diff", "scripts/copy_basic.lua", "scripts/copy_basic.lua"}, "",
   "the same CUDA C"},
  {"mcp", {"mcp"}, MCP, '"serverInfo"'},
  {"lsp", {"lsp"}, ("Content-Length: %d\r\n\r\n%s"):format(#LSP, LSP),
   '"capabilities"'},
  {"workshop", {"-e", [[
    local workshop = require "cutelua.workshop"
    print(workshop.answer '{"ask": "run", "text": "return 6 * 7"}')]]}, "",
   '"ok":true'},
  {"profile", {"profile", "scripts/transpose.lua", "--m", "64", "--n", "64"},
   "", "sectors/request"},
  {"estimate", {"estimate", "--card", "h100", "--registers", "32",
    "scripts/transpose.lua", "--m", "64", "--n", "64"}, "",
   "kernel transpose on H100 SXM: "},
  {"draw", {"draw", "(2,3):(3,1)"}, "", "| 3 | 4 | 5 |"},
  {"debug", {"debug", "scripts/copy_basic.lua"}, "next\nback\nquit\n", "copy"},
  {"explain", {"explain", "scripts/copy_basic.lua", "-o", "-"}, "", "</html>"},
  {"learn", {"learn", "1", "--print"}, "", "# "},
  {"doc", {"doc", "cute.make_layout"}, "", "make_layout"},
  {"task #noasan", {"task", "judge", "examples/tasks/axpy", "--no-gpu"}, "",
   "held back: N = "},
  {"tune", {"tune", "gemm", "--shapes", "64,64,64"}, "", "driver", 1},
  {"the prompt", {}, "1 + 1\ncute.layout '(4,2)'\n?copy\n", "(4,2):(1,4)"},
}

describe("the program runs", function()
  for _, case in ipairs(CASES) do
    local name, words, input, text, code = table.unpack(case)
    it(name, function()
      local out, err, got = support.run(words, {stdin = input,
        env = {CUTELUA_NO_CUDA = "1"}})
      assert.equal(code or 0, got, out .. err)
      assert.is_truthy((out .. err):find(text, 1, true), out .. err)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
