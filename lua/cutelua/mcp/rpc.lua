--- JSON-RPC 2.0 on standard input and output, for the servers `cutelua mcp` and
-- `cutelua lsp`. Divides the input into messages, checks their form, and waits
-- for events.
--
-- A session is a table {name = the server's name, open = set of the ids of
-- requests in progress, line = function that writes a JSON text as a message,
-- notifications = functions of (session, params) by method, serve = function of
-- (session, request), patience, tick = see rpc.run}. A request is {id =, method
-- =, params = object}.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local errors = require "cutelua.text.errors"
local json = require "cutelua.text.json"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local rpc = {}

--- Error codes of JSON-RPC.
rpc.PARSE, rpc.REQUEST, rpc.METHOD = -32700, -32600, -32601
rpc.PARAMS, rpc.INTERNAL = -32602, -32603

-- - LARGEST: the largest message in bytes.
-- - HEADER: the largest header of a message.
-- - LONGEST: the longest wait for an event in seconds.
-- - LAST: after the client has closed standard input, calls in progress may
--   take this many seconds to end.
local LARGEST, HEADER, LONGEST, LAST = 16 << 20, 4096, 0.5, 1

--- Options of the command lines of servers.
rpc.OPTIONS = {
  allow = {"--allow", "choice", choices = {"io"}, help = "scripts may use io, "
    .. "os and all modules"},
  seconds = {"--seconds", "number", min = 0.1, max = 86400, default = 60,
    help = "the longest call"},
  memory = {"--memory", "int", min = 64, max = 1 << 20, default = 2048,
    place = "MIB", help = "the most memory of a call"},
  output = {"--output", "int", min = 1, max = 1 << 20, default = 1024,
    place = "KIB", help = "the most output of a call, and the largest record"},
  jobs = {"--jobs", "int", min = 1, max = 64, default = 2,
    help = "calls that run at the same time"},
}

--- Parses the options of a server. Returns its settings and its number of jobs.
---@param words string[]
---@param spec table of cutelua.program.cli
---@return table server {root =, io =, seconds =, memory =, output = bytes}
---@return integer jobs
function rpc.settings(words, spec)
  local opt = cli.parse(words, spec)
  return {root = opt.root, io = opt.allow == "io", seconds = opt.seconds,
          memory = opt.memory << 20, output = opt.output << 10}, opt.jobs
end

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

--- Sends a message.
---@param session table
---@param message table
function rpc.send(session, message)
  message.jsonrpc = "2.0"
  session.line(json.encode(message))
end

--- Answers a request with an error. An absent id is sent as null.
---@param session table
---@param id string|integer|nil
---@param code integer
---@param message string
---@param data any
function rpc.failed(session, id, code, message, data)
  rpc.send(session, {id = id == nil and json.null or id,
                     error = {code = code, message = message, data = data}})
end

--- Raises an error about something that the client sent. rpc.try returns the
-- error's message.
---@param format string
---@param ... any
function rpc.wrong(format, ...)
  error({wrong = format:format(...)}, 0)
end

--- Calls f(...). Returns its result, or nil and the message of an error that
-- rpc.wrong raised. Other errors are raised again.
---@param f function
---@param ... any
---@return any result
---@return string? wrong
function rpc.try(f, ...)
  local ok, result = pcall(f, ...)
  if ok then return result end
  if type(result) ~= "table" or not result.wrong then error(result, 0) end
  return nil, result.wrong
end

local function is_id(id)
  return type(id) == "string" or math.type(id) == "integer"
end

-- Returns a sentence about the first mistake in a message; nil if the message
-- is a valid request or notification.
local function wrong_form(m)
  if not json.is_object(m) then return "a message must be an object" end
  if m.jsonrpc ~= "2.0" then return "jsonrpc must be \"2.0\"" end
  if m.id ~= nil and not is_id(m.id) then
    return "id must be a string or an integer"
  end
  if type(m.method) ~= "string" then return "method must be a string" end
end

-- Calls f(session, ...). An error of f becomes the answer to the request, if
-- there is one.
local function guarded(session, id, f, ...)
  local ok, failure = xpcall(f, errors.capture, session, ...)
  if ok then return end
  report.tell(("cutelua: %s: %s"):format(session.name, errors.format(failure)))
  if id == nil then return end
  rpc.failed(session, id, rpc.INTERNAL,
             "an internal error; standard error has its text")
end

--- Parses and handles a message of the client.
---@param session table
---@param text string
function rpc.receive(session, text)
  local m, why = json.marked(text)
  if m == nil then return rpc.failed(session, nil, rpc.PARSE, why) end
  local is_answer = json.is_object(m) and m.method == nil
    and (m.result ~= nil or m.error ~= nil)
  if is_answer then return end
  why = wrong_form(m)
  local id = json.is_object(m) and is_id(m.id) and m.id or nil
  if why then return rpc.failed(session, id, rpc.REQUEST, why) end
  local params = m.params
  if params == nil then params = json.object {} end
  if not json.is_object(params) then
    if id == nil then return end
    return rpc.failed(session, id, rpc.PARAMS, "params must be an object")
  end
  if id == nil then
    local f = session.notifications[m.method]
    if f then guarded(session, nil, f, params) end
  elseif session.open[id] then
    rpc.failed(session, id, rpc.REQUEST,
               "a request with this id is in progress")
  else
    guarded(session, id, session.serve,
            {id = id, method = m.method, params = params})
  end
end

local function too_long(session)
  rpc.failed(session, nil, rpc.REQUEST,
             ("a message has more than %d bytes"):format(LARGEST))
end

---------------------------------------------------------------------------
-- Framing
---------------------------------------------------------------------------

--- Returns a function that takes arriving bytes and passes each line, as a
-- message, to the session. A line that exceeds the limit is skipped.
---@param session table
---@return fun(bytes: string)
function rpc.lines(session)
  local pieces, size, skip = {}, 0, false
  return function(bytes)
    local at = 1
    while true do
      local stop = bytes:find("\n", at, true)
      local piece = bytes:sub(at, (stop or 0) - 1)
      size = size + #piece
      if size > LARGEST then
        if not skip then too_long(session) end
        pieces, skip = {}, true
      else
        pieces[#pieces + 1] = piece
      end
      if not stop then return end
      local line = table.concat(pieces)
      if not skip and line:find "%S" then rpc.receive(session, line) end
      pieces, size, skip, at = {}, 0, false, stop + 1
    end
  end
end

local function wrong_header(session)
  rpc.failed(session, nil, rpc.PARSE, "a message begins with the header "
    .. "'Content-Length: BYTES' and an empty line")
end

local NAME = "[Cc]ontent%-[Ll]ength:"

-- Parses the header at the beginning of s.bytes; reports whether s.bytes has
-- changed, so that parsing may continue. After a header, s.want is the size of
-- the body, or s.skip the number of bytes to skip if the body is too large.
-- Other bytes are skipped up to the next Content-Length and reported once:
-- s.lost stays true until the next valid header.
local function take_header(s, session)
  local _, stop = s.bytes:find "\r?\n\r?\n"
  local large = not stop or stop > HEADER
  if large and #s.bytes <= HEADER then return false end
  local header = s.bytes:sub(1, large and 0 or stop)
  local size = header:match(".*" .. NAME .. "[ \t]*(%d+)[ \t]*\r?\n")
  size = math.tointeger(tonumber(size or ""))
  if not (size and header:find "^%a[%w-]*:") and not s.lost then
    wrong_header(session)
  end
  s.lost = not size
  if large then
    local mark = s.bytes:find(NAME, 2)
    s.bytes = s.bytes:sub(mark or -#NAME)
    return mark ~= nil
  end
  s.bytes = s.bytes:sub(stop + 1)
  if size and size > LARGEST then
    too_long(session)
    s.skip = size
  else
    s.want = size
  end
  return true
end

--- Returns a function that takes arriving bytes and passes each message to the
-- session, like rpc.lines. Each message has a header with its Content-Length,
-- as in the Language Server Protocol.
---@param session table
---@return fun(bytes: string)
function rpc.headed(session)
  local s = {bytes = "", skip = 0, want = nil}
  local pieces, size = {}, 0
  return function(bytes)
    pieces[#pieces + 1], size = bytes, size + #bytes
    -- A long body arrives in pieces. They are joined once all have arrived.
    if s.want and #s.bytes + size < s.want then return end
    s.bytes = s.bytes .. table.concat(pieces)
    pieces, size = {}, 0
    while true do
      local left_out = math.min(s.skip, #s.bytes)
      s.bytes, s.skip = s.bytes:sub(left_out + 1), s.skip - left_out
      if s.want and #s.bytes >= s.want then
        local body = s.bytes:sub(1, s.want)
        s.bytes, s.want = s.bytes:sub(s.want + 1), nil
        rpc.receive(session, body)
      elseif s.want or not take_header(s, session) then
        return
      end
    end
  end
end

---------------------------------------------------------------------------
-- Events
---------------------------------------------------------------------------

-- Waits for input of the client or of a worker, and handles it. Returns false
-- at the end of the input, or if the client no longer reads.
local function step(session, input, all, feed)
  local most = all:patience(LONGEST)
  if session.patience then most = session:patience(most) end
  if all:wait(most, input) then
    local bytes = input:receive()
    if not bytes then return false end
    feed(bytes)
  end
  all:expire()
  if session.tick then session:tick() end
  all:prepare()
  return not session.deaf
end

-- Waits at most LAST seconds for the calls in progress to end.
local function drain(all)
  local stop = core.clock() + LAST
  while all.running[1] and core.clock() < stop do
    all:wait(stop - core.clock())
  end
end

--- Serves a session until its input ends, its client no longer reads, or its
-- field `deaf` is set. session:patience(most), if present, returns the seconds
-- until session:tick() has something to do, at most `most`. Returns nil and a
-- reason if standard input cannot be read.
---@param session table its field `line` is set by this function
---@param all table of cutelua.mcp.calls
---@param frame "lines"|"headed"
---@return boolean? ok
---@return string? why
function rpc.run(session, all, frame)
  local input, why = sys.input()
  if not input then return nil, why end
  function session.line(text)
    if frame == "lines" then
      text = text .. "\n"
    else
      text = ("Content-Length: %d\r\n\r\n%s"):format(#text, text)
    end
    local ok = io.stdout:write(text)
    session.deaf = session.deaf or not (ok and io.stdout:flush())
  end
  all:prepare()
  local feed = rpc[frame](session)
  while step(session, input, all, feed) do end
  if not session.deaf then drain(all) end
  all:close()
  return true
end

--- Runs a server for a session; returns its exit code.
---@param session table
---@param all table of cutelua.mcp.calls
---@param frame "lines"|"headed"
---@return integer
function rpc.main(session, all, frame)
  local ok, why = rpc.run(session, all, frame)
  if ok then return 0 end
  report.tell(("cutelua: %s: cannot read standard input: %s [io]"):format(
    session.name, why))
  return 1
end

return rpc
-- SPDX-License-Identifier: MIT
