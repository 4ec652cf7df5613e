-- Sends random and malformed requests to `cutelua lsp` and `cutelua mcp`.
-- Checks that both still answer, that their memory does not grow, and that they
-- keep no descriptors open. Usage: `servers.lua SECONDS [FILE [REQUESTS]]`. The
-- next run continues at the batch whose number is in FILE. The runs stop after
-- REQUESTS requests in all (default 1,000,000). The environment variable
-- CUTELUA names another program to test, such as one with sanitizers.
package.path = "./?.lua;" .. package.path
local core = require "cute.core"
local json = require "cutelua.text.json"
local sys = require "cute.sys"

local seconds = tonumber(arg[1]) or 60
local file, total = arg[2], tonumber(arg[3]) or 1000000

-- BATCH is the number of requests of a batch. PATIENCE is the most seconds that
-- a server may take to answer. GROWTH is the most KiB by which the resident
-- memory may grow after the first batches.
local BATCH, PATIENCE, GROWTH = 100, 60, 65536
-- Number of batches before the first measurement of memory.
local SETTLED = 20
-- On average, one document or tool call in RARE starts a worker.
local RARE = 4000

local random = math.random

local function one_of(list) return list[random(#list)] end

---------------------------------------------------------------------------
-- Random values
---------------------------------------------------------------------------

local SCRIPT = [[
local cute = require "cute"
local k = cute.kernel("k", function(x) x[cute.arch.thread_idx()] = 1 end)
k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32}
]]
local TEXTS = {"", "local x = y.z\nfunction f(a, b) return a end\n", "x.x.x.x",
  "é😀\r\n\tlocal t = {a = 1}\r", ("a."):rep(300), "\0\1\2", "\xff\xfe",
  "local s = [==[\n", "-- require 'cut'", ("("):rep(2000), "1e999", "'\\'"}

local function bytes(n)
  local out = {}
  for i = 1, random(0, n) do out[i] = string.char(random(0, 255)) end
  return table.concat(out)
end

local function number()
  return one_of {0, 1, -1, 3, 7.5, 1e308, -2 ^ 53, math.maxinteger,
                 math.mininteger, random(0, 40)}
end

local value

local function list_of(depth)
  local out = {}
  for i = 1, random(0, 4) do out[i] = value(depth) end
  return out
end

local function object_of(depth)
  local out = json.object {}
  for _ = 1, random(0, 4) do
    out[one_of {"uri", "line", "text", "name", "arguments", "range", "", "x",
                "start", "cursor"}] = value(depth)
  end
  return out
end

function value(depth)
  local kind = random(depth > 0 and 8 or 6)
  if kind == 1 then return json.null
  elseif kind == 2 then return number()
  elseif kind == 3 then return random(2) == 1
  elseif kind < 6 then return one_of(TEXTS)
  elseif kind == 6 then return bytes(20):gsub("[\128-\255]", "?")
  elseif kind == 7 then return list_of(depth - 1) end
  return object_of(depth - 1)
end

-- Returns a copy of a value in which some parts are replaced by random values.
local function mutated(v, chance)
  if random(chance) == 1 then return value(3) end
  if type(v) ~= "table" or v == json.null then return v end
  local out = v[1] == nil and json.object {} or {}
  for k, x in pairs(v) do
    if random(4 * chance) > 1 or out[1] ~= nil then
      out[k] = mutated(x, chance)
    end
  end
  return out
end

---------------------------------------------------------------------------
-- Requests
---------------------------------------------------------------------------

local function place()
  return {line = random(0, 5), character = random(0, 9)}
end

local function document()
  return {uri = ("file:///tmp/%d%s"):format(random(0, 3),
    random(100) == 1 and one_of {".ptx", ".json"} or ".lua")}
end

local function range() return {start = place(), ["end"] = place()} end

local LSP = {
  {"textDocument/didOpen", function()
    local d = document()
    d.version, d.languageId = random(9), "lua"
    d.text = random(RARE) == 1 and SCRIPT or one_of(TEXTS)
    return {textDocument = d}
  end},
  {"textDocument/didChange", function()
    local changes = {}
    for i = 1, random(3) do
      changes[i] = {text = one_of(TEXTS), range = random(2) == 1 and range()
        or nil}
    end
    return {textDocument = document(), contentChanges = changes}
  end},
  {"textDocument/didClose", function()
    return {textDocument = document()}
  end},
  {"textDocument/codeAction", function()
    return {textDocument = document(), range = range(),
            context = {diagnostics = {}, only = {"quickfix"}}}
  end},
  {"textDocument/inlayHint", function()
    return {textDocument = document(), range = range()}
  end},
  {"initialize", function() return {capabilities = json.object {}} end},
  {"$/cancelRequest", function() return {id = random(9)} end},
}
for _, name in ipairs {"hover", "completion", "definition"} do
  LSP[#LSP + 1] = {"textDocument/" .. name, function()
    return {textDocument = document(), position = place()}
  end}
end

local MCP = {
  {"initialize", function()
    return {protocolVersion = one_of {"2025-06-18", "2024-11-05", "1"},
            capabilities = json.object {}, clientInfo = {name = "x"}}
  end},
  {"ping", function() return json.object {} end},
  {"tools/list", function() return {cursor = one_of {json.null, "x"}} end},
  {"resources/list", function() return json.object {} end},
  {"resources/templates/list", function() return json.object {} end},
  {"prompts/list", function() return json.object {} end},
  {"resources/read", function()
    return {uri = one_of {"cutelua://doc/x", "file:///etc/passwd", "", "x:"}}
  end},
  {"prompts/get", function()
    return {name = one_of {"repair", "x"}, arguments = {script = "x"}}
  end},
  {"notifications/cancelled", function() return {requestId = random(9)} end},
  {"notifications/initialized", function() return json.object {} end},
  {"tools/call", function()
    local known = random(RARE) == 1
    return {name = known and one_of {"check", "run", "doc"} or "no such",
            arguments = {script = SCRIPT, name = "cute.copy"}}
  end},
}

-- Returns a text that is no message, or an invalid message of the protocol.
local function malformed()
  local kind = random(9)
  if kind == 1 then return bytes(200)
  elseif kind == 2 then return ("["):rep(random(1, 3000))
  elseif kind == 3 then return ('{"a":'):rep(random(1, 3000))
  elseif kind == 4 then return '{"jsonrpc":"1.0","id":1,"method":"x"}'
  elseif kind == 5 then return '{"jsonrpc":"2.0","id":{},"method":"x"}'
  elseif kind == 6 then return '[{"jsonrpc":"2.0","id":1,"method":"x"}]'
  elseif kind == 7 then return '{"jsonrpc":"2.0","id":1,"result":{}}'
  elseif kind == 8 then return ""
  end
  return json.encode(value(4))
end

-- Returns the text of a request or a notification.
local function request(methods)
  if random(8) == 1 then return malformed() end
  local row = one_of(methods)
  local method = random(20) == 1 and one_of(TEXTS) or row[1]
  local params = mutated(row[2](), 12)
  local text = json.encode {jsonrpc = "2.0", method = method, params = params,
    id = random(4) > 1 and one_of {random(1, 9), "a", 1 << 40} or nil}
  if random(30) > 1 then return text end
  local at = random(#text)
  return text:sub(1, at - 1) .. bytes(3) .. text:sub(at + random(0, 3))
end

---------------------------------------------------------------------------
-- Servers
---------------------------------------------------------------------------

local FRAMES = {
  lsp = function(text)
    local size, extra = #text, ""
    if random(200) == 1 then size = random(0, 2 * #text) end
    if random(200) == 1 then extra = one_of {"X: y\r\n", bytes(9), "\r\n"} end
    return ("%sContent-Length: %d\r\n\r\n%s"):format(extra, size, text)
  end,
  mcp = function(text) return text:gsub("\n", " ") .. "\n" end,
}

local Server = {}
Server.__index = Server

-- Returns the id of the process that was started last.
local function newest()
  local f <close> = assert(io.open "/proc/thread-self/children")
  return f:read "a":match "(%d+)%s*$"
end

local function start(name)
  local program = os.getenv "CUTELUA" or sys.program()
  local process = assert(sys.spawn({program, name, "--seconds", "5", "--jobs",
                                    "1"}, true))
  return setmetatable({name = name, process = process, id = newest(),
                       got = "", asked = 0}, Server)
end

-- Waits at most `most` seconds for output of the server, and stores it.
function Server:receive(most)
  if not sys.poll({self.process}, most) then return end
  local bytes_ = self.process:receive()
  assert(bytes_, self.name .. " ended")
  self.got = (self.got .. bytes_):sub(-4096)
end

function Server:send(text)
  local at, stop = 1, core.clock() + PATIENCE
  while at <= #text do
    local before = at
    at = assert(self.process:offer(text, at), self.name .. " does not read")
    if at > before then stop = core.clock() + PATIENCE end
    assert(core.clock() < stop, self.name .. " does not read")
    self:receive(at == before and 0.01 or 0)
  end
end

-- Repeats a request until the server answers. One request is not enough, since
-- the server may read it as the rest of a malformed message.
function Server:settle()
  local stop = core.clock() + PATIENCE
  self.asked = self.asked + 1
  local mark = ("settled %d"):format(self.asked)
  local text = json.encode {jsonrpc = "2.0", id = mark, method = "none"}
  if self.name == "lsp" then
    text = ("Content-Length: %d\r\n\r\n%s"):format(#text, text)
  else
    text = "\n" .. text .. "\n"
  end
  repeat
    assert(core.clock() < stop, self.name .. " does not answer")
    self:send(text)
    local again = core.clock() + 0.05
    while not self.got:find(mark, 1, true) and core.clock() < again do
      self:receive(0.01)
    end
  until self.got:find(mark, 1, true)
end

-- Returns the resident memory in KiB and the number of open descriptors.
function Server:measure()
  local f <close> = assert(io.open(("/proc/%s/status"):format(self.id)))
  local size = tonumber(f:read "a":match "VmRSS:%s*(%d+)")
  local p <close> = io.popen(("ls /proc/%s/fd | wc -l"):format(self.id))
  return size, tonumber(p:read "a")
end

---------------------------------------------------------------------------

local METHODS = {lsp = LSP, mcp = MCP}
local batch = 0
do
  local f = file and io.open(file)
  if f then
    batch = tonumber(f:read "l") or 0
    f:close()
  end
end

local function save()
  if not file then return end
  local f <close> = assert(io.open(file, "w"))
  f:write(batch, "\n")
end

local stop, first = core.clock() + seconds, batch
local servers = {start "lsp", start "mcp"}
for _, s in ipairs(servers) do
  local client = {name = "x", version = "1"}
  s:send(FRAMES[s.name](json.encode {jsonrpc = "2.0", id = "begin",
    method = "initialize", params = {protocolVersion = "2025-06-18",
      capabilities = json.object {}, clientInfo = client}}))
  s:settle()
end
while core.clock() < stop and batch * BATCH < total do
  math.randomseed(batch)
  local s = servers[batch % 2 + 1]
  local list = {}
  for i = 1, BATCH do list[i] = FRAMES[s.name](request(METHODS[s.name])) end
  s:send(table.concat(list))
  s:settle()
  batch = batch + 1
  if batch % 100 < 2 and batch - first > SETTLED then
    s.size, s.open = s:measure()
    s.least = s.least or s.size
    s.few = s.few or s.open
    assert(s.size - s.least < GROWTH, ("%s grew from %d to %d KiB"):format(
      s.name, s.least, s.size))
    assert(s.open <= s.few + 8, ("%s has %d open files, before %d"):format(
      s.name, s.open, s.few))
    save()
  end
end
save()
for _, s in ipairs(servers) do
  print(("servers: %s: %d to %d KiB, %d files"):format(s.name, s.least or 0,
    s.size or 0, s.open or 0))
  s.process:finish()
  local how, code = s.process:wait()
  assert(how == "exit" and code == 0, ("%s ended by %s %d"):format(s.name, how,
    code))
end
print(("servers: %d requests, %d of them now"):format(batch * BATCH,
  (batch - first) * BATCH))
-- SPDX-License-Identifier: MIT
