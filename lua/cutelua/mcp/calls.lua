--- Runs the calls of `cutelua mcp` in workers (cutelua.mcp.worker), one process
-- for each call. A script that crashes, exhausts memory or never ends thus
-- cannot harm the server. A worker for the next call is started in advance.
--
-- A call is a table:
--   request     the request for the worker
--   seconds     time limit of the command
--   grace       seconds beyond the limit in which the command ends by itself
--   output      largest number of bytes of output
--   done        function that gets the outcome
--   progress    optional: function that gets a sentence
--   early       optional: function that gets a record with the findings of a
--               bug whose repair is not known yet
--   background  true if other calls are more urgent
-- An outcome is a table:
--   code, record
--   reads       {list =, opaque =} of cutelua.mcp.reads, if the request asks
--               for it
--   text        the command's output
--   cut         true if a part of the output is missing
--   failed      a sentence if the worker did not end by itself
--   late        true if the time limit was exceeded
local core = require "cute.core"
local json = require "cutelua.text.json"
local sys = require "cute.sys"

local calls = {}

-- The largest frame that a worker may send, in bytes.
local LARGEST = 64 << 20

local Calls = {}
Calls.__index = Calls

--- Returns a random word that a script cannot guess.
---@return string
function calls.nonce()
  local f <close> = assert(io.open("/dev/urandom", "rb"))
  return ("%016x%016x"):format(string.unpack("<i8i8", f:read(16)))
end

-- Standard output and its functions. Copies are kept here, because a script may
-- replace the originals.
local out, write, flush = io.stdout, io.stdout.write, io.stdout.flush

--- Writes a frame to the worker's standard output: a zero byte, the nonce, a
-- blank, the number of bytes, a newline, and JSON.
---@param nonce string the nonce of the request
---@param t table {kind =, ...}
function calls.frame(nonce, t)
  local text = json.encode(t)
  write(out, "\0", nonce, " ", #text, "\n", text)
  flush(out)
end

local function spawn(self)
  return sys.spawn {sys.program(), self.command, "--worker"}
end

--- Returns an empty set of calls.
---@param jobs integer largest number of calls that run at a time
---@param command? string command of cutelua that, with --worker, starts a
-- worker: "mcp" when absent
---@return table
function calls.new(jobs, command)
  return setmetatable({jobs = jobs, command = command or "mcp", running = {},
                       waiting = {}}, Calls)
end

--- Starts a worker in advance for the next call. It does not start one while
-- the client waits for a running call, which would become slower.
function Calls:prepare()
  if self.spare then return end
  for _, call in ipairs(self.running) do
    if not call.background then return end
  end
  self.spare = spawn(self)
end

-- Starts waiting calls while fewer than `jobs` calls run.
function Calls:start()
  while #self.running < self.jobs and self.waiting[1] do
    local call = table.remove(self.waiting, 1)
    local process, why = self.spare, nil
    self.spare = nil
    if not process then process, why = spawn(self) end
    if process then
      call.process, call.bytes, call.text, call.size = process, "", {}, 0
      call.nonce = calls.nonce()
      call.deadline = core.clock() + call.seconds + call.grace
      call.request.nonce = call.nonce
      process:send(json.encode(call.request) .. "\n")
      process:finish()
      table.insert(self.running, call)
    else
      call.done {code = 1, text = "", failed = "no process can be started: "
        .. why}
    end
  end
end

--- Adds a call.
---@param call table
function Calls:add(call)
  table.insert(self.waiting, call)
  self:start()
end

-- Appends text to a call's output. Omits bytes beyond the limit `output`, and
-- sets call.cut if there are any.
local function keep(call, text)
  local room = call.output - call.size
  if #text > room then text, call.cut = text:sub(1, math.max(room, 0)), true end
  call.size = call.size + #text
  call.text[#call.text + 1] = text
end

local function take_frame(call, frame)
  if frame.kind == "record" then call.record = frame.record
  elseif frame.kind == "reads" then call.reads = frame
  elseif frame.kind == "exit" then call.code = frame.code
  elseif frame.kind == "early" then
    if call.early then call.early(frame.record) end
  elseif call.progress then call.progress(frame.message) end
end

-- Divides the bytes that a worker sent into output and frames.
local function take(call)
  while true do
    local mark = "\0" .. call.nonce .. " "
    local from, to = call.bytes:find(mark, 1, true)
    if not from then
      -- The last bytes may be the beginning of a frame's mark.
      local zero = call.bytes:find("%z[%x ]*$")
      keep(call, call.bytes:sub(1, (zero or #call.bytes + 1) - 1))
      call.bytes = zero and call.bytes:sub(zero) or ""
      return
    end
    keep(call, call.bytes:sub(1, from - 1))
    local digits, start = call.bytes:match("^(%d+)\n()", to + 1)
    local size = math.tointeger(tonumber(digits or ""))
    if not size or size > LARGEST or #call.bytes < start + size - 1 then
      call.bytes = call.bytes:sub(from)
      return
    end
    local frame = json.marked(call.bytes:sub(start, start + size - 1))
    call.bytes = call.bytes:sub(start + size)
    if frame then take_frame(call, frame) end
  end
end

local function remove(list, x)
  for i, one in ipairs(list) do
    if one == x then return table.remove(list, i) end
  end
end

-- Ends a running call, and reports its outcome unless the call was cancelled.
function Calls:finish(call, failed)
  remove(self.running, call)
  local how, number = nil, nil
  if failed then
    call.process:close()
  else
    how, number = call.process:wait()
    call.process:close()
  end
  for _, path in ipairs(call.temporary or {}) do os.remove(path) end
  if not failed and not call.code then
    failed = how == "signal" and ("its process ended by signal %d"):format(
      number) or "its process ended early"
  end
  if not call.cancelled then
    call.done {code = call.code or 1, record = call.record, cut = call.cut,
               reads = call.reads, late = call.late,
               text = table.concat(call.text), failed = failed}
  end
  self:start()
end

--- Ends a call and reports no outcome.
---@param call table
function Calls:cancel(call)
  call.cancelled = true
  if call.process then self:finish(call, "cancelled")
  else remove(self.waiting, call) end
end

--- Receives bytes that a running call sent.
---@param call table
function Calls:receive(call)
  local more = call.process:receive()
  if not more then return self:finish(call) end
  call.bytes = call.bytes .. more
  take(call)
  -- The command has ended. Do not wait for the socket to close, because a
  -- process that the script started may hold it open.
  if call.code then self:finish(call) end
end

--- Waits at most `most` seconds until a running call or `input` has sent
-- something. Handles what a call sent. Reports whether `input` has sent
-- something.
---@param most number
---@param input? table of cute.sys
---@return boolean
function Calls:wait(most, input)
  local list = {}
  for i, call in ipairs(self.running) do list[i] = call.process end
  list[#list + 1] = input
  local i = sys.poll(list, most)
  local call = i and self.running[i]
  if call then self:receive(call) end
  return i ~= nil and not call
end

--- Returns the seconds until the first time limit of a running call, at most
-- `most`.
---@param most number
---@return number
function Calls:patience(most)
  for _, call in ipairs(self.running) do
    most = math.min(most, call.deadline - core.clock())
  end
  return math.max(most, 0)
end

--- Ends the calls whose time limit is exceeded.
function Calls:expire()
  local now = core.clock()
  for i = #self.running, 1, -1 do
    local call = self.running[i]
    if call and now > call.deadline then
      call.late = true
      self:finish(call, ("the call was stopped: its limit is %g s"):format(
        call.seconds))
    end
  end
end

--- Cancels all running and waiting calls, and ends their processes.
function Calls:close()
  for i = #self.running, 1, -1 do self:cancel(self.running[i]) end
  self.waiting = {}
  if self.spare then self.spare:close() end
end

return calls
-- SPDX-License-Identifier: MIT
