--- Streams, events and graphs. Streams are queues of work, events let one
-- stream wait for another, and graphs record work so that it can be repeated.
--
--     local s = cute.stream()
--     B:copy_from(A, {stream = s})
--     add(B, C):launch {grid = 8, block = 128, stream = s}
--     s:sync()
--
--     local step = cute.graph(function()
--       for i = 1, 20 do layer(X, W[i], Y):launch {grid = 8, block = 128} end
--     end)
--     step:launch()
--
-- In the simulator each command executes at once. A graph of the simulator
-- replays its recording, and rejects the same operations as a graph of a GPU.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"

local stream = {}

-- Returns the device with this name, or raises an error.
local function device_of(name)
  core.outside()
  local device, why = kernel.device(name)
  if not device then report.raise(why) end
  return device
end

local function must(value, message)
  if value == nil then report.raise(message) end
  return value
end

---------------------------------------------------------------------------
-- Streams and events of the simulator
---------------------------------------------------------------------------

-- Raises an error if the caller must not wait, because a graph is being
-- recorded. In the simulator a wait returns at once.
local function waits(what)
  if core.recording() then
    core.fail("in-graph", what .. " waits for the GPU, which runs nothing "
      .. "while a graph is captured")
  end
end

-- Raises an error if stream, event or graph x was closed. The simulator thus
-- behaves like a GPU.
local function open(x, what)
  core.outside()
  if x.closed then core.fail("closed", ("the %s was closed"):format(what)) end
end

local Event = {simulated = true, device = "sim"}
Event.__index = Event

--- Records the progress of a stream: the given one or, if absent, the current
-- stream.
function Event:record(of)
  open(self, "event")
  if of then open(of, "stream") end
  self.at = core.clock()
end

local function recorded(e)
  open(e, "event")
  if not e.at then
    core.fail("bad-argument", "the event was never recorded\n  call "
      .. "event:record() before this call")
  end
  return e.at
end

--- Waits until the stream has reached the event. Returns false if the event was
-- never recorded.
function Event:sync()
  open(self, "event")
  waits "sync"
  return self.at ~= nil
end

--- Reports whether the stream has reached the event.
function Event:done()
  open(self, "event")
  waits "done"
  return self.at ~= nil
end

--- Returns the milliseconds from this event to another. Both must be recorded
-- and complete.
function Event:elapsed(to)
  core.outside()
  waits "elapsed"
  return (recorded(to) - recorded(self)) * 1e3
end

--- Releases the event.
function Event:close() self.closed = true end

local Stream = {simulated = true, device = "sim"}
Stream.__index = Stream
function Stream.__tostring() return "stream of the simulator" end

--- Waits for all work of the stream.
function Stream:sync()
  open(self, "stream")
  waits "sync"
  return true
end

--- Reports whether all work of the stream is complete.
function Stream:done()
  open(self, "stream")
  waits "done"
  return true
end

--- Makes later work of the stream wait for an event, or for all current work of
-- another stream.
function Stream:wait(other)
  open(self, "stream")
  open(other, getmetatable(other) == Stream and "stream" or "event")
  return true
end

--- Records an event after all work of the stream, and returns it. The event is
-- new unless one is given.
function Stream:record(event)
  event = event or setmetatable({}, Event)
  event:record(self)
  return event
end

--- Releases the stream when all its work is complete.
function Stream:close() self.closed = true end

sign.class("event", Event, [[
  record(stream?) sync() done() elapsed(to: event) close()
]], "at")
sign.class("stream", Stream, [[
  sync() done() wait(event: event|stream) record(event?: event) close()
]])

---------------------------------------------------------------------------
-- Streams and events of any device
---------------------------------------------------------------------------

--- Makes a stream, which runs its work in order and concurrently with other
-- streams. Its methods are sync() (waits for all work), wait(event or stream),
-- record([event]) (which returns the event), done() (reports whether all work
-- is complete) and close().
---@param device? any if absent, the GPU or, without one, the simulator
function stream.stream(device)
  local d = device_of(device)
  if d.kind == "sim" then return setmetatable({}, Stream) end
  return must(d.dev:stream())
end

--- Returns a stream object for a stream of another library, such as PyTorch's.
-- The handle is the driver's CUstream as an integer. The library must keep the
-- stream open until the result is closed. For handle 0, the default stream,
-- returns nil: work without a stream uses the default stream.
---@param handle integer
---@param device? any the GPU if absent
---@return any?
function stream.external_stream(handle, device)
  local d = device_of(device)
  if handle == 0 then return nil end
  if d.kind == "sim" then return setmetatable({}, Stream) end
  return must(d.dev:foreign_stream(handle))
end

--- Makes an event. record([stream]) records the progress of a stream. sync()
-- waits until the stream has reached the event; done() reports whether it has.
-- elapsed(event) returns the time between two events in milliseconds.
---@param device? any
function stream.event(device)
  local d = device_of(device)
  if d.kind == "sim" then return setmetatable({}, Event) end
  return must(d.dev:event())
end

-- Returns the GPU of stream s, or nil for a stream of the simulator.
local function gpu_of(s)
  if s.device ~= "sim" then return device_of(s.device).dev end
end

--- Calls f(...) with this stream as the current stream. Launches and copies
-- without the option `stream` use the current stream.
---@param s any a stream
---@param f function
---@return any ... results of f
function stream.with_stream(s, f, ...)
  if core.typename(s) ~= "stream" and not (type(s) == "table" and s.simulated)
  then
    core.fail("bad-argument", "with_stream: a stream is needed, got "
      .. core.show(s))
  end
  core.outside()
  local dev = gpu_of(s)
  if not dev then
    open(s, "stream")
    if core.recording() then
      core.fail("in-graph", "a stream cannot be chosen while a graph is "
        .. "captured: the capture has a stream of its own")
    end
    return f(...)
  end
  local before = dev:use_stream(s)
  local _ <close> = setmetatable({}, {__close = function()
    dev:use_stream(before)
  end})
  return f(...)
end

--- Waits for all work of a device.
---@param device? any
function stream.synchronize(device)
  local d = device_of(device)
  if d.kind == "sim" then waits "sync" else d.dev:sync() end
end

---------------------------------------------------------------------------
-- Graphs
---------------------------------------------------------------------------

local Graph = {simulated = true, device = "sim"}
Graph.__index = Graph
function Graph.__tostring(g)
  return ("graph of the simulator, %d nodes"):format(g.nodes)
end

-- Runs f in the simulator while recording its launches and copies. Returns the
-- recording, a list of functions with their arguments.
local function record(f)
  core.outside()
  if core.recording() then
    core.fail("in-graph", "a graph cannot be captured inside the capture of "
      .. "another")
  end
  local list = {}
  local _ <close> = setmetatable({}, {__close = function()
    core.record(nil)
  end})
  core.record(list, f)
  return list
end

--- Runs all recorded work as one launch, on stream `on` or, if absent, on the
-- current stream.
function Graph:launch(on)
  open(self, "graph")
  if on then open(on, "stream") end
  if core.recording() then
    core.fail("in-graph", "a graph cannot be part of another graph: call the "
      .. "function that it was captured from")
  end
  local _ <close> = setmetatable({}, {__close = function()
    core.replaying(self.list, false)
  end})
  core.replaying(self.list, true)
  for _, call in ipairs(self.list) do
    call[1](table.unpack(call, 2, call.n))
  end
  return true
end

--- Runs all recorded work n times in sequence.
function Graph:launch_n(n, on)
  kernel.times(n)
  for _ = 1, n do self:launch(on) end
  return true
end

--- Records another function in place of the recorded one. This is cheap if only
-- numbers and tensors differ between the two recordings.
function Graph:update(f)
  self.list, self.closed = record(f), nil
  self.nodes, self.bytes = #self.list, core.recorded_bytes(self.list)
  return self
end

--- Releases the graph and the memory that it keeps.
function Graph:close() self.list, self.closed = {}, true end

sign.class("graph", Graph, [[
  launch(stream?) launch_n(n: integer, stream?) update(f: function) close()
]])

--- Records the launches, copies and fills of f without running them.
-- graph:launch([stream]) runs all of them as one launch. launch_n(n [, stream])
-- runs them n times, and update(f) records again. Every launch uses the numbers
-- and tensors of the recording, and the graph keeps their memory. Tensors that
-- f makes are the same in every launch. f must not wait, nor read data of the
-- GPU. If f closes a tensor (t:close()), later tensors of f can use its memory.
--
--     k = cute.kernel(function(x) x[0] = x[0] + 1 end)
--     x = cute.zeros({1}, cute.f32)
--     g = cute.graph(function()
--       k(x):launch {grid = 1, block = 1, device = "sim"}
--     end, {device = "sim"})
--     g:launch_n(5)
--     x(0)  --> 5.0
---@param f function
---@param opts? {device: any, stream: any} device: if absent, the GPU or,
-- without one, the simulator; stream: the stream to record, if f's launches
-- name one
---@return any graph graph.nodes: number of recorded launches, copies and fills;
-- graph.bytes: bytes of memory that the graph keeps
function stream.graph(f, opts)
  kernel.check_options(opts, {device = "string table",
                              stream = "userdata table"})
  opts = opts or {}
  local device = opts.device or opts.stream and opts.stream.device
  local d = device_of(device)
  if d.kind == "sim" then
    if opts.stream then open(opts.stream, "stream") end
    return setmetatable({}, Graph):update(f)
  end
  return d.dev:capture(f, opts.stream)
end

return stream
-- SPDX-License-Identifier: MIT
