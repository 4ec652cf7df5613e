--- `cutelua web`: serves the workshop's page on the loopback address, so only
-- to browsers on this computer. A page that is served by HTTP may use threads;
-- a page opened from file:// may not.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local files = require "cute.lang.files"
local http = require "cutelua.program.http"
local link = require "cutelua.page.link"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local web = {}

local SPEC = {
  name = "web", script = "web",
  about = "Serves the workshop, a page for writing and simulating kernels, "
    .. "on this machine's loopback address. Ctrl-C ends it.",
  options = {
    {"--port", "int", min = 0, max = 65535, default = link.PORT,
     help = "the port; 0: a free one"},
    {"--folder", "file", place = "NAME", help = "the output of make web "
      .. "(default web/ beside the program or in its share/cutelua)"},
  },
}

-- SECONDS: time limit for receiving a request. ANSWER: time limit for sending
-- its answer. CONNECTIONS: largest number of connections at a time.
local SECONDS, ANSWER, CONNECTIONS = 10, 30, 64

-- ---- the folder ----

local function is_folder(path)
  return core.file_kind(path .. "/index.html") == "file"
end

-- Returns the folder that has the page; nil and a sentence if there is none.
local function folder_of(given)
  local list = {given}
  if not given then
    local home = sys.home() or ""
    list = {home .. "web", home .. "../share/cutelua/web"}
  end
  for _, path in ipairs(list) do
    if is_folder(path) then return path end
  end
  return nil, ("the page is not in %s: build it with make web, or pass its "
    .. "location with --folder "
    .. "[io]"):format(core.visible(table.concat(list, " nor in ")))
end

-- Returns functions that read the folder's files, by file name. Only plain
-- files in the folder itself can be read: no links, and no names that begin
-- with a dot.
local function files_of(folder)
  return setmetatable({}, {__index = function(_, name)
    if name:find "^%." or name:find "[/%c]" then return nil end
    local f = core.open_input(folder .. "/" .. name, "own")
    return f and function()
      local text = files.rest(f)
      f:close()
      return text
    end
  end})
end

-- ---- connections ----

-- A connection has `socket`, `ends` (the time at which it is closed in any
-- case) and `text` (the bytes of the request so far). While the answer is being
-- sent, it has `answer` (the bytes of the answer) and `from` (the index of the
-- next byte to send). After that, `sent` is true until the peer closes the
-- connection.

local function answer(c, head, body)
  c.answer, c.from, c.ends = head .. body, 1, core.clock() + ANSWER
end

-- Receives data on a connection; returns false if the peer has closed it.
local function hear(c, folder)
  local text = c.socket:receive()
  if not text then return false end
  if c.sent then return true end
  c.text = c.text .. text
  local ends = c.text:find "\r?\n\r?\n"
  if ends and ends <= http.MOST then
    answer(c, http.answer(c.text, files_of(folder)))
  elseif #c.text > http.MOST then
    answer(c, http.refusal(431, "the header of a request is longer "
      .. "than " .. http.MOST .. " bytes"))
  end
  return true
end

-- Sends as many bytes as the peer accepts now; returns nil if the connection
-- has ended.
local function tell(c)
  c.from = c.socket:offer(c.answer, c.from)
  if c.from and c.from > #c.answer then
    c.answer, c.sent = nil, true
    c.socket:finish()
  end
  return c.from
end

-- Closes connections that have exceeded their time limit, and the oldest
-- connection if there are too many.
local function tidy(list)
  local now, oldest = core.clock(), 1
  for i = #list, 1, -1 do
    local c = list[i]
    if now > c.ends then
      if not (c.answer or c.sent) then
        answer(c, http.refusal(408, "the request was not complete in time"))
        tell(c)
      end
      table.remove(list, i).socket:close()
    end
  end
  if #list <= CONNECTIONS then return end
  for i, c in ipairs(list) do
    if c.ends < list[oldest].ends then oldest = i end
  end
  table.remove(list, oldest).socket:close()
end

-- Serves forever. Ctrl-C raises an error.
local function serve(listener, folder)
  local list = {}
  while true do
    local sockets, sends = {listener}, {}
    for i, c in ipairs(list) do
      sockets[i + 1], sends[i + 1] = c.socket, c.answer ~= nil
    end
    local i = sys.poll(sockets, 1, sends)
    if i == 1 then
      local socket = listener:accept()
      if socket then
        table.insert(list, 1, {socket = socket, text = "",
          ends = core.clock() + SECONDS})
      end
    -- A connection that was served moves to the end of the list.
    elseif i then
      local c = table.remove(list, i - 1)
      local goes_on
      if c.answer then goes_on = tell(c) else goes_on = hear(c, folder) end
      if goes_on then list[#list + 1] = c else c.socket:close() end
    end
    tidy(list)
  end
end

local function failed(message)
  report.tell("cutelua web: " .. message)
  return 1
end

--- Runs the command until Ctrl-C; returns an exit code if it cannot start.
---@param words string[]
---@return integer?
function web.main(words)
  local opt = cli.parse(words, SPEC)
  local folder, why = folder_of(opt.folder)
  if not folder then return failed(why) end
  local listener <close>, port = sys.listen(opt.port)
  if not listener then
    return failed(("port %d: %s; --port 0 chooses a free one [io]")
      :format(opt.port, port))
  end
  io.write(("The workshop is at http://127.0.0.1:%d/ (Ctrl-C ends it)\n")
    :format(port))
  io.flush()
  serve(listener, folder)
end

return web
-- SPDX-License-Identifier: MIT
