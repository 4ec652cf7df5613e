--- Streams, events and graphs: what is queued where, what waits for what, and
-- what is queued again and again.
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
-- On the simulator all is done when it is said; a graph runs there what it
-- recorded, and refuses what a GPU refuses.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"

local stream = {}

-- The device of that name, or an error.
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

-- What waits does so for nothing, but cannot be in a graph.
local function waits(what)
  if core.recording() then
    core.fail("in-graph", what .. " waits for the GPU, which runs nothing "
      .. "while a graph is captured")
  end
end

-- An error where it was closed, as a GPU's is.
local function open(x, what)
  core.outside()
  if x.closed then core.fail("closed", ("the %s was closed"):format(what)) end
end

local Event = {simulated = true, device = "sim"}
Event.__index = Event

--- Notes how far a stream is: the current one, or that named.
function Event:record(of)
  open(self, "event")
  if of then open(of, "stream") end
  self.at = core.clock()
end

local function recorded(e)
  open(e, "event")
  if not e.at then
    core.fail("bad-argument", "the event was never recorded")
  end
  return e.at
end

--- Waits until the stream is there. False where it was never recorded.
function Event:sync()
  open(self, "event")
  waits "sync"
  return self.at ~= nil
end

--- Is the stream there already?
function Event:done()
  open(self, "event")
  waits "done"
  return self.at ~= nil
end

--- Milliseconds from this event to another; both were recorded and are done.
function Event:elapsed(to)
  core.outside()
  waits "elapsed"
  return (recorded(to) - recorded(self)) * 1e3
end

--- Gives it back to the driver.
function Event:close() self.closed = true end

local Stream = {simulated = true, device = "sim"}
Stream.__index = Stream
function Stream.__tostring() return "stream of the simulator" end

--- Waits for all that the stream was given.
function Stream:sync()
  open(self, "stream")
  waits "sync"
  return true
end

--- Is nothing of it left to do?
function Stream:done()
  open(self, "stream")
  waits "done"
  return true
end

--- What it is given from here on begins when an event, or all that another
-- stream was given, is done.
function Stream:wait(other)
  open(self, "stream")
  open(other, getmetatable(other) == Stream and "stream" or "event")
  return true
end

--- An event behind all that the stream was given: a new one, or that named.
function Stream:record(event)
  event = event or setmetatable({}, Event)
  event:record(self)
  return event
end

--- Gives it back to the driver, when all of it is done.
function Stream:close() self.closed = true end

sign.class("event", Event, [[
  record(stream?) sync() done() elapsed(to: event) close()
]], "at")
sign.class("stream", Stream, [[
  sync() done() wait(event: event|stream) record(event?: event) close()
]])

---------------------------------------------------------------------------
-- Both
---------------------------------------------------------------------------

--- A stream: what it is given runs in that order, beside other streams. It has
-- sync() (waits for all of it), wait(event or stream), record([event]), which
-- gives the event, done() (is nothing left?), close().
---@param device? any the GPU where there is one, when absent
function stream.stream(device)
  local d = device_of(device)
  if d.kind == "sim" then return setmetatable({}, Stream) end
  return must(d.dev:stream())
end

--- An event: record([stream]) notes how far a stream is; sync() waits until it
-- is there, done() asks, elapsed(event) is the time between two in
-- milliseconds.
---@param device? any
function stream.event(device)
  local d = device_of(device)
  if d.kind == "sim" then return setmetatable({}, Event) end
  return must(d.dev:event())
end

-- The GPU of a stream, nil for one of the simulator.
local function gpu_of(s)
  if s.device ~= "sim" then return device_of(s.device).dev end
end

--- f(...), where what names no stream goes to this one.
---@param s any a stream
---@param f function
---@return any ... of f
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
      core.fail("in-graph", "a graph that is captured has its stream")
    end
    return f(...)
  end
  local before = dev:use_stream(s)
  local _ <close> = setmetatable({}, {__close = function()
    dev:use_stream(before)
  end})
  return f(...)
end

--- Waits for all that a device was given.
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

-- What f launches and copies: a list of functions with arguments.
local function record(f)
  core.outside()
  if core.recording() then
    core.fail("in-graph", "a graph is captured inside the capture of another")
  end
  local list = {}
  local _ <close> = setmetatable({}, {__close = function()
    core.record(nil)
  end})
  core.record(list, f)
  return list
end

--- Runs all that was recorded as one launch, on a stream or the current one.
function Graph:launch(on)
  open(self, "graph")
  if on then open(on, "stream") end
  if core.recording() then
    core.fail("in-graph", "a graph cannot be part of another: call what it was "
      .. "captured of")
  end
  for _, call in ipairs(self.list) do
    call[1](table.unpack(call, 2, call.n))
  end
  return true
end

--- Runs all that was recorded n times, one run behind the other.
function Graph:launch_n(n, on)
  kernel.times(n)
  for _ = 1, n do self:launch(on) end
  return true
end

--- Makes it the graph of what another function launches; cheap where only
-- numbers and tensors differ.
function Graph:update(f)
  self.list, self.closed = record(f), nil
  self.nodes = #self.list
  return self
end

--- Gives it back, with the memory that it holds.
function Graph:close() self.list, self.closed = {}, true end

sign.class("graph", Graph, [[
  launch(stream?) launch_n(n: integer, stream?) update(f: function) close()
]])

--- What f launches, copies and fills, recorded and not run: graph:launch(
-- [stream]) runs all of it as one launch, launch_n(n [, stream]) n times, and
-- again; update(f) makes it another. Numbers and tensors are those of the
-- recording, and their memory stays with the graph; tensors that f makes are
-- the same ones in each launch. f may not wait, nor read what the GPU has.
--
--     k = cute.kernel(function(x) x[0] = x[0] + 1 end)
--     x = cute.zeros({1}, cute.f32)
--     g = cute.graph(function()
--       k(x):launch {grid = 1, block = 1, device = "sim"}
--     end, {device = "sim"})
--     g:launch_n(5)
--     x(0)  --> 5.0
---@param f function
---@param opts? {device: any, stream: any} the GPU where there is one, when
-- absent; the stream that is recorded, where f's launches name one
---@return any graph .nodes launches, copies and fills
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
