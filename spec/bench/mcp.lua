-- Measures the time from a request to the answer of `cutelua mcp`: a check of a
-- GEMM of 128^3 after an edit, and a check of a small kernel.
local core = require "cute.core"
local json = require "cutelua.text.json"
local measure = require "spec.measure"
local sys = require "cute.sys"

local t = measure.table "cutelua mcp: check after an edit"

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

-- Sends a request to the server, and returns the result.
local function ask(server, method, params)
  server:send(json.encode {jsonrpc = "2.0", id = 1, method = method,
                           params = params} .. "\n")
  local text = ""
  repeat
    text = text .. assert(server:receive())
  until text:find "\n$"
  return assert(json.decode(text)).result
end

-- Returns a list of milliseconds, one for each check of a script. The script is
-- edited before each check.
local function times(server, path, arguments)
  local text, list = read(path), {}
  for i = 1, 15 do
    os.execute "sleep 0.2"
    local start = core.clock()
    local r = ask(server, "tools/call", {name = "check", arguments = {
      script = ("%s\n-- edit %d"):format(text, i), arguments = arguments}})
    list[i] = (core.clock() - start) * 1e3
    assert(r.structuredContent.verdict ~= "error")
  end
  return list
end

local server <close> = assert(sys.spawn({measure.program, "mcp"}, true))
ask(server, "initialize", {protocolVersion = "2025-11-25"})
t:add("scripts/gemm_base.lua, 128^3", times(server, "scripts/gemm_base.lua",
  {"--m", "128", "--n", "128", "--k", "128"}), "ms", 50)
t:add("spec/faults/repair/barrier.lua, with a repair",
  times(server, "spec/faults/repair/barrier.lua", {}), "ms", 50)
t:print()
-- SPDX-License-Identifier: MIT
