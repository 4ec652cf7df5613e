--- `cutelua web`: serves the workshop's page on the loopback address, to the
-- browser of this machine alone. A page from here may have threads, which one
-- of file:// may not.
local cli = require "cute.program.cli"
local core = require "cute.core"
local http = require "cute.program.http"
local link = require "cute.page.link"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local web = {}

local SPEC = {
  name = "web", script = "web",
  about = "Serves the workshop, a page in which kernels are written and "
    .. "simulated, on this machine's loopback address. Ctrl-C ends it.",
  options = {
    {"--port", "int", min = 0, max = 65535, default = link.PORT,
     help = "where; 0: one that is free"},
    {"--folder", "string", help = "what make web built; without it, web/ "
      .. "beside the program or in its share/cutelua"},
  },
}

-- Seconds that a request may take, and connections at a time.
local SECONDS, CONNECTIONS = 10, 64

-- ---- the folder ----

local function is_folder(path)
  return core.file_kind(path .. "/index.html") == "file"
end

-- The folder of the page; nil and a sentence.
local function folder_of(given)
  local list = {given}
  if not given then
    local home = sys.home() or ""
    list = {home .. "web", home .. "../share/cutelua/web"}
  end
  for _, path in ipairs(list) do
    if is_folder(path) then return path end
  end
  return nil, ("the page is not in %s: make web builds it, --folder says where "
    .. "it is [io]"):format(core.visible(table.concat(list, " nor in ")))
end

local function read_in(folder)
  return function(name)
    local f <close> = io.open(folder .. "/" .. name, "rb")
    return f and f:read "a"
  end
end

-- Its files, each with what reads it.
local function files_of(folder)
  local files, read = {}, read_in(folder)
  for _, name in ipairs(sys.files(folder)) do
    local kind = core.file_kind(folder .. "/" .. name)
    if kind == "file" then files[name] = read end
  end
  return files
end

-- ---- connections ----

-- A connection has `socket`, `text` (what came of its request), `ends` (when
-- it is closed in any case); `answered`: the other side is to close it.

local function answer(c, head, body)
  c.answered = true
  if c.socket:send(head) and c.socket:send(body) then c.socket:finish() end
end

-- What came on a connection; false: it is over.
local function hear(c, folder)
  local text = c.socket:receive()
  if not text then return false end
  if c.answered then return true end
  c.text = c.text .. text
  local ends = c.text:find "\r?\n\r?\n"
  if ends and ends <= http.MOST then
    answer(c, http.answer(c.text, files_of(folder)))
  elseif #c.text > http.MOST then
    answer(c, http.refusal(431, "a request's head has at most "
      .. http.MOST .. " bytes here"))
  end
  return true
end

local function drop(list, i)
  table.remove(list, i).socket:close()
end

-- Closes what takes too long, and the oldest where there are too many.
local function tidy(list)
  local now = os.time()
  for i = #list, 1, -1 do
    local c = list[i]
    if now > c.ends then
      if not c.answered then
        answer(c, http.refusal(408, "the request did not come in time"))
      end
      drop(list, i)
    end
  end
  while #list > CONNECTIONS do drop(list, 1) end
end

-- Serves for ever: Ctrl-C raises.
local function serve(listener, folder)
  local list = {}
  while true do
    local sockets = {listener}
    for i, c in ipairs(list) do sockets[i + 1] = c.socket end
    local i = sys.poll(sockets, 1)
    if i == 1 then
      local socket = listener:accept(SECONDS)
      if socket then
        list[#list + 1] = {socket = socket, text = "",
          ends = os.time() + SECONDS}
      end
    elseif i and not hear(list[i - 1], folder) then
      drop(list, i - 1)
    end
    tidy(list)
  end
end

local function failed(message)
  report.tell("cutelua web: " .. message)
  return 1
end

--- Runs the command, which Ctrl-C ends; returns its exit code where it cannot
-- begin.
---@param words string[]
---@return integer?
function web.main(words)
  local opt = cli.parse(words, SPEC)
  local folder, why = folder_of(opt.folder)
  if not folder then return failed(why) end
  local listener <close>, port = sys.listen(opt.port)
  if not listener then
    return failed(("port %d: %s; --port 0 takes one that is free [io]")
      :format(opt.port, port))
  end
  io.write(("The workshop is at http://127.0.0.1:%d/ (Ctrl-C ends it)\n")
    :format(port))
  io.flush()
  serve(listener, folder)
end

return web
