--- Records evidence about a candidate's launches: their number in each call,
-- the differences between calls, launches whose results no output needs, and
-- tensors that the host changed.
--
-- A candidate's launches must depend only on the sizes, so calls with other
-- inputs must launch the same kernels. If a candidate keeps results of a call
-- in a tensor of its own, a later call with the same inputs executes fewer
-- instructions. To detect this, such tensors get their original contents again
-- before the last call.
local core = require "cute.core"
local kernel = require "cute.lang.kernel"

local launches = {}

local Log = {}
Log.__index = Log

--- Starts recording. Returns the log.
---@return table
function launches.new()
  return setmetatable({calls = {}, early = 0, current = nil, args = {},
    own = {}, last = {}, host = {}, text = {},
    dead = {}, changed = {}}, Log)
end

--- Marks the end of loading the candidate. Launches up to here precede the
-- first call.
function Log:loaded() self.is_loaded = true end

--- Sets the list of the task's arguments, whose buffers are watched.
---@param list table[] {name =, out =, buffer =, given = bytes of an input}
function Log:watch(list)
  self.list = list
  for _, a in ipairs(list) do self.args[a.buffer] = a end
end

--- Begins a call.
---@param restore boolean true: the candidate's own tensors get their original
-- contents
function Log:start(restore)
  self.current = {launches = {}, seen = {}, names = {}, count = 0, key = {},
                  restore = restore, instructions = 0}
  self.calls[#self.calls + 1] = self.current
  for _, a in ipairs(self.list) do
    self.current.seen[a.buffer] = a.buffer:bytes()
  end
end

-- Records that the host wrote a tensor.
local function host_wrote(self, name)
  if #self.host < 20 then table.insert(self.host, name) end
end

-- Returns a buffer's name in this call. If the buffer is new in this call,
-- records its contents; otherwise, records whether the host changed them.
local function buffer_name(self, call, b)
  local arg = self.args[b]
  local last = call.seen[b]
  if last then
    if b:bytes() ~= last then
      host_wrote(self, arg and arg.name or "a tensor of its own")
    end
    return arg and arg.name or call.names[b]
  end
  local now = b:bytes()
  local known = self.last[b] == now
  self.own[b] = self.own[b] or now
  call.count = call.count + 1
  call.names[b] = "own" .. call.count
  call.key[#call.key + 1] = known and self.own[b] or now
  if call.restore then
    now = self.own[b]
    b:set_bytes(now)
  end
  call.seen[b] = now
  return call.names[b]
end

--- Records a launch before it runs.
---@param program table
---@param launch table as core.sim_run takes it
---@return table note the launch, with a key that differs for different launches
function Log:before(program, launch)
  if not self.is_loaded then self.early = self.early + 1 end
  local call = self.current
  self.text[program] = self.text[program] or program.ir
  local words = {self.text[program], table.concat(launch.grid, ","),
                 table.concat(launch.block, ",")}
  local note = {program = program, args = {}}
  for i, v in ipairs(launch.args) do
    if core.typename(v[1]) == "buffer" then
      note.args[i] = v[1]
      words[#words + 1] = ("%s+%s:%s"):format(call
        and buffer_name(self, call, v[1]), v[2], v[3])
    else
      words[#words + 1] = tostring(v[2])
    end
  end
  note.key = table.concat(words, ";")
  if call then
    table.insert(call.launches, note)
    table.insert(call.key, note.key)
  end
  return note
end

--- Records the contents of memory after a launch.
---@param program table
---@param launch table
---@param instructions integer number of instructions that the launch executed
function Log:after(program, launch, instructions)
  local call = self.current
  if not call then return end
  call.instructions = call.instructions + instructions
  for i, v in ipairs(launch.args) do
    if core.typename(v[1]) == "buffer" and kernel.may_write(program.info, i)
    then
      call.seen[v[1]] = v[1]:bytes()
      self.last[v[1]] = call.seen[v[1]]
    end
  end
end

-- Records the launches whose results no output needs. Walks back from the last
-- launch to find them.
local function find_dead(self, call)
  local live = {}
  for _, a in ipairs(self.list) do live[a.buffer] = a.out end
  for n = #call.launches, 1, -1 do
    local note, needed = call.launches[n], false
    local info = note.program.info
    for i, b in pairs(note.args) do
      needed = needed or live[b] and kernel.may_write(info, i)
    end
    if not needed then
      self.dead[info.name] = true
    end
    for i, b in pairs(note.args) do
      local read = info.args[i].read or info.addresses
      if needed and read then live[b] = true end
    end
  end
end

--- Ends a call.
function Log:finish()
  local call = self.current
  find_dead(self, call)
  for _, a in ipairs(self.list) do
    local now = a.buffer:bytes()
    if now ~= call.seen[a.buffer] then host_wrote(self, a.name) end
    if not a.out and now ~= a.given then self.changed[a.name] = true end
  end
  call.key = table.concat(call.key, "\n")
  self.current = nil
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

--- Returns the evidence as plain data:
--   early         number of launches before the first call
--   counts        number of launches in each call
--   instructions  number of instructions in each call
--   other         number of the first call whose launches differ from those of
--                 the last call
--   dead          kernels whose results no output needs
--   host          tensors that the host wrote
--   changed       inputs that changed
---@return table
function Log:evidence()
  local counts, instructions, other = {}, {}, nil
  local last = self.calls[#self.calls]
  for i, call in ipairs(self.calls) do
    counts[i], instructions[i] = #call.launches, call.instructions
    if not other and call.key ~= last.key then other = i end
  end
  return {early = self.early, counts = counts, other = other,
          instructions = instructions,
          dead = sorted(self.dead), host = self.host,
          changed = sorted(self.changed)}
end

return launches
-- SPDX-License-Identifier: MIT
