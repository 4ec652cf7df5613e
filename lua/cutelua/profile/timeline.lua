--- Timelines: when a launch's warps, ranges (cute.arch.range) and agents
-- (asynchronous hardware such as TMA) began and ended, by the model of an SM or
-- on a GPU.
--
--     local t = k(A, B, C):timeline {grid = 8, block = 256, device = "gpu"}
--     t:save "gemm.json"     -- for ui.perfetto.dev, chrome://tracing
--     t:save "gemm.svg"
--
-- device = "sim" (when absent): the times come from the replay of
-- cutelua.profile.estimate, with its options. They cover the clusters that one
-- SM runs or, if there are many, the first of them. device = "gpu": the kernel
-- is traced again, with code by which a lane of each warp stores clock values,
-- for at most `room` events per warp (1024 when absent).
--
-- A timeline has these fields:
--   kernel    name of the kernel
--   from      "model of H200", or the GPU's name
--   spans     {{kind = "warp", "range" or "agent", name =, block =, sm =,
--             warp =, begin =, stop =, file =, line =}, ...}, in nanoseconds
--             since the first begin
--   dropped   number of events that did not fit
--   overhead  on a GPU: {plain =, traced =}, the microseconds of a launch
--             without and with tracing
local core = require "cute.core"
local picture = require "cutelua.draw.picture"
local estimate = require "cutelua.profile.estimate"
local clock_plan = require "cutelua.profile.clocks"

local timeline = {}

local Timeline = {__closed = true}  -- traces do not record its fields
Timeline.__index = Timeline

---------------------------------------------------------------------------
-- Spans
---------------------------------------------------------------------------

-- Calls add(name, begin, stop) for each range in the events of a warp, which
-- are in order of time. An end belongs to the last open begin with the same
-- name. A range without an end ends with its warp.
local function pair(events, warp, add)
  local open = {}
  for _, e in ipairs(events) do
    if e.begins then
      open[#open + 1] = e
    else
      for i = #open, 1, -1 do
        if open[i].name == e.name then
          add(open[i].name, open[i].t, e.t)
          table.remove(open, i)
          break
        end
      end
    end
  end
  for _, e in ipairs(open) do add(e.name, e.t, warp.stop) end
end

-- Sorts the spans of a timeline and shifts their times to start at 0.
local function finish(self)
  local first = math.huge
  for _, s in ipairs(self.spans) do first = math.min(first, s.begin) end
  for _, s in ipairs(self.spans) do
    s.begin, s.stop = s.begin - first, s.stop - first
  end
  table.sort(self.spans, function(a, b)
    if a.block ~= b.block then return a.block < b.block end
    if a.warp ~= b.warp then return a.warp < b.warp end
    if a.begin ~= b.begin then return a.begin < b.begin end
    return a.stop > b.stop
  end)
  return setmetatable(self, Timeline)
end

---------------------------------------------------------------------------
-- Timeline of the model
---------------------------------------------------------------------------

--- Returns the timeline of a prepared launch, or of any object that estimate.of
-- takes, by the model of an SM.
---@param p table
---@param own table options of estimate
---@return table timeline
function timeline.by_model(p, own)
  local e, found = estimate.of(p, own, true)
  local ncta = p.program.cluster[1] * p.program.cluster[2]
    * p.program.cluster[3]
  local ns = (e.seconds - e.launch) / e.cycles * 1e9
  local self = {kernel = e.name, from = "model of " .. e.card, spans = {},
                dropped = 0}
  local warps = {}
  local function warp_of(x)
    local key = ("%d %d %d"):format(x.cluster, x.cta, x.warp)
    warps[key] = warps[key] or {events = {}}
    return warps[key]
  end
  local function add(kind, name, x, begin, stop)
    self.spans[#self.spans + 1] = {kind = kind, name = name,
      block = x.cluster * ncta + x.cta, sm = x.cta, warp = x.warp,
      begin = begin * ns, stop = stop * ns, file = x.file, line = x.line}
  end
  for _, x in ipairs(found.timing.events) do
    local w = warp_of(x)
    if x.kind == "warp" then
      w.at = x
      add("warp", "warp " .. x.warp, x, x.t, x.stop)
    elseif x.kind == "agent" then
      add("agent", x.name, x, x.t, x.stop)
    else
      w.events[#w.events + 1] = {name = x.name, begins = x.kind == "begin",
                                 t = x.t}
    end
  end
  for _, w in pairs(warps) do
    pair(w.events, w.at, function(name, begin, stop)
      add("range", name, w.at, begin, stop)
    end)
  end
  return finish(self)
end

local function of_call(call, opts)
  local own, launch = {}, {}
  for k, v in pairs(opts) do
    if estimate.OPTIONS[k] then own[k] = v else launch[k] = v end
  end
  launch.device = launch.device or "sim"
  return timeline.by_model(assert(call:compile(launch)), own)
end

---------------------------------------------------------------------------
-- Timeline of a GPU
---------------------------------------------------------------------------

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Returns the data that the warps stored, as a list of {block, warp, sm, clock
-- values when the warp begins and ends, events}. Also returns the number of
-- events that did not fit.
local function read(words, plan, blocks)
  local out, each = {}, clock_plan.HEAD + plan.room
  local dropped = 0
  for i = 0, blocks * plan.warps - 1 do
    local at = i * each
    local w = {block = i // plan.warps, warp = i % plan.warps,
               timer = words[at + 1], clock = words[at + 2],
               timer_end = words[at + 3], clock_end = words[at + 4],
               sm = words[at + 5], events = {}}
    dropped = dropped + math.max(words[at] - plan.room, 0)
    for n = 0, plan.room - 1 do
      local x = words[at + clock_plan.HEAD + n]
      if x == 0 then break end
      local number, ends, clock = clock_plan.event(x)
      -- The number of cycles since the warp's first clock value.
      local later = (clock - w.clock) & 0xffffffff
      w.events[#w.events + 1] = {name = plan.names[number + 1],
        begins = not ends, clock = w.clock + later}
    end
    out[#out + 1] = w
  end
  return out, dropped
end

-- Returns the nanoseconds per cycle, measured on the warp that ran longest.
-- Also returns the offset of each SM's clock, in nanoseconds.
local function clocks(warps)
  local longest = warps[1]
  for _, w in ipairs(warps) do
    if w.clock_end - w.clock > longest.clock_end - longest.clock then
      longest = w
    end
  end
  local ns = (longest.timer_end - longest.timer)
    / math.max(longest.clock_end - longest.clock, 1)
  local first, offsets = warps[1].timer, {}
  for _, w in ipairs(warps) do
    local list = offsets[w.sm] or {}
    offsets[w.sm] = list
    list[#list + 1] = (w.timer - first) - w.clock * ns
    list[#list + 1] = (w.timer_end - first) - w.clock_end * ns
  end
  for sm, list in pairs(offsets) do offsets[sm] = median(list) end
  return ns, offsets
end

local function by_gpu(call, opts)
  local kernel = require "cute.lang.kernel"
  local measure = require "cutelua.bench.measure"
  local k, launch = call.kernel, {}
  for name, v in pairs(opts) do launch[name] = v end
  launch.room = nil
  local room = opts.room or 1024
  if math.type(room) ~= "integer" or room < 1 then
    core.fail("bad-argument", ("timeline: room = %s; 1 event or more for each "
      .. "warp is needed")
      :format(core.show(room)))
  end
  local plain, why = call:compile(launch)
  if not plain then return nil, why end
  require "cutelua.profile.cards".need_blocks(k.name, plain.grid)
  local threads = plain.block[1] * plain.block[2] * plain.block[3]
  local blocks = plain.grid[1] * plain.grid[2] * plain.grid[3]
  local plan = clock_plan.plan(room, (threads + 31) // 32)
  local traced = kernel.kernel(k.name, {block = k.block, fmad = k.fmad,
    min_blocks = k.min_blocks, fastmath = k.fastmath},
    function(buffer, ...)
      plan:begin(buffer)
      k.func(...)
      plan:finish()
    end)
  local cute = require "cute"
  local count = blocks * plan.warps * (clock_plan.HEAD + room)
  local words = cute.zeros({count}, cute.i64, {device = plain.device.place})
  local with = traced(words, table.unpack(call, 1, call.n))
  local ok, run, message = pcall(with.compile, with, launch)
  clock_plan.forget()
  if not ok then error(run, 0) end
  if not run then return nil, message end

  local times = assert(measure.bench({{name = "plain", launch = plain},
    {name = "traced", launch = run}}, {rounds = 3, warm_ms = 5, hot_ms = 5,
    cold = false}))
  words:copy_from(cute.zeros({count}, cute.i64))
  run:launch()
  local warps, dropped = read(words:to "host", plan, blocks)
  local ns, offsets = clocks(warps)
  local self = {kernel = k.name, from = plain.device.name, spans = {},
    dropped = dropped, overhead = {plain = times.plain.hot.median * 1e3,
                                   traced = times.traced.hot.median * 1e3}}
  for _, w in ipairs(warps) do
    local function at(clock) return clock * ns + offsets[w.sm] end
    local function add(kind, name, begin, stop)
      self.spans[#self.spans + 1] = {kind = kind, name = name, block = w.block,
        sm = w.sm, warp = w.warp, begin = at(begin), stop = at(stop)}
    end
    add("warp", "warp " .. w.warp, w.clock, w.clock_end)
    for _, e in ipairs(w.events) do e.t = e.clock end
    pair(w.events, {stop = w.clock_end}, function(name, begin, stop)
      add("range", name, begin, stop)
    end)
  end
  return finish(self)
end

--- Returns the timeline of a call of a kernel: see the top of this file.
---@param call any
---@param opts table
---@return table? timeline nil, message if there is no GPU or no compiler
function timeline.of(call, opts)
  local device = require "cute.lang.devices".device(opts.device or "sim")
  if device and device.kind == "sim" then return of_call(call, opts) end
  return by_gpu(call, opts)
end

---------------------------------------------------------------------------
-- Text, Perfetto, pictures
---------------------------------------------------------------------------

-- Returns the sentence that explains warp time outside of named ranges, in
-- grey.
local function unnamed(spans)
  for _, s in ipairs(spans) do
    if s.kind == "range" then
      return "grey: a warp outside of the kernel's named ranges"
    end
  end
  return "grey: warps; cute.arch.range(name, f) in the kernel gives parts of "
    .. "their work names and colours"
end

function Timeline:__tostring()
  local sums, names, last = {}, {}, 0
  for _, s in ipairs(self.spans) do
    local name = s.kind == "warp" and "warps" or s.name
    if not sums[name] then
      names[#names + 1] = name
      sums[name] = {n = 0, ns = 0}
    end
    sums[name].n = sums[name].n + 1
    sums[name].ns = sums[name].ns + s.stop - s.begin
    last = math.max(last, s.stop)
  end
  local rows = {{"range", "times", "mean us", "all us"}}
  for _, name in ipairs(names) do
    local s = sums[name]
    rows[#rows + 1] = {name, tostring(s.n), ("%.3f"):format(s.ns / s.n * 1e-3),
                       ("%.1f"):format(s.ns * 1e-3)}
  end
  local text = {("timeline of %s, %s: %.2f us"):format(self.kernel, self.from,
                                                       last * 1e-3)}
  if self.overhead then
    text[#text + 1] = ("  a launch takes %.2f us without ranges, %.2f with "
      .. "them (%+.1f %%)"):format(self.overhead.plain, self.overhead.traced,
      100 * (self.overhead.traced / self.overhead.plain - 1))
  end
  if self.dropped > 0 then
    text[#text + 1] = ("  %d events were dropped: the buffer was "
      .. "full"):format(self.dropped)
  end
  text[#text + 1] = require "cutelua.text.columns".table(rows, 1)
  if self.spans[1] then text[#text + 1] = unnamed(self.spans) end
  return core.visible(table.concat(text, "\n"), true)
end

-- Returns the rows of a picture for the spans of one block. Each warp has a
-- row. Below them, each agent has as many rows as it needs so that its spans do
-- not overlap.
local function rows_of(spans)
  local rows, by = {}, {}
  local function row(key, label)
    if not by[key] then
      rows[#rows + 1] = {label = label, spans = {}}
      by[key] = rows[#rows]
    end
    return by[key]
  end
  for _, s in ipairs(spans) do
    if s.kind ~= "agent" then
      local r = row(s.warp, "warp " .. s.warp).spans
      r[#r + 1] = s
    end
  end
  local agents = {}
  for _, s in ipairs(spans) do
    if s.kind == "agent" then agents[#agents + 1] = s end
  end
  table.sort(agents, function(a, b)
    if a.begin ~= b.begin then return a.begin < b.begin end
    return a.stop < b.stop
  end)
  for _, s in ipairs(agents) do
    local n = 1
    while true do
      local r = row(s.name .. " " .. n, s.name)
      local before = r.spans[#r.spans]
      if not before or before.stop <= s.begin then
        r.spans[#r.spans + 1] = s
        break
      end
      n = n + 1
    end
  end
  return rows
end

local function by_block(spans)
  local list, by = {}, {}
  for _, s in ipairs(spans) do
    if not by[s.block] then
      by[s.block] = {number = s.block, sm = s.sm, spans = {}}
      list[#list + 1] = by[s.block]
    end
    table.insert(by[s.block].spans, s)
  end
  return list
end

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return ("\\u%04x"):format(c:byte())
  end) .. '"'
end

--- Returns the timeline as Chrome's trace events, which Perfetto reads: a
-- process for each block, a thread for each row, times in microseconds.
---@return string
function Timeline:json()
  local out = {}
  local function event(text, ...) out[#out + 1] = text:format(...) end
  for _, b in ipairs(by_block(self.spans)) do
    event('{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}',
          b.number, quoted(("block %d, SM %d"):format(b.number, b.sm)))
    for tid, row in ipairs(rows_of(b.spans)) do
      event('{"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":'
        .. '{"name":%s}}', b.number, tid, quoted(row.label))
      for _, s in ipairs(row.spans) do
        event('{"name":%s,"cat":"%s","ph":"X","pid":%d,"tid":%d,"ts":%.4f,'
          .. '"dur":%.4f}', quoted(s.name), s.kind, b.number, tid,
          s.begin * 1e-3, (s.stop - s.begin) * 1e-3)
      end
    end
  end
  return '{"displayTimeUnit":"ns","traceEvents":[\n'
    .. table.concat(out, ",\n") .. "\n]}\n"
end

-- Returns the names of ranges and agents with their total times, in order of
-- appearance. Also returns the colour class of each name.
local function legend_of(blocks)
  local list, by = {}, {}
  for _, b in ipairs(blocks) do
    for _, s in ipairs(b.spans) do
      if s.kind ~= "warp" then
        local entry = by[s.name]
        if not entry then
          entry = {name = s.name, class = #list % 8, count = 0, sum = 0}
          by[s.name], list[#list + 1] = entry, entry
        end
        entry.count = entry.count + 1
        entry.sum = entry.sum + (s.stop - s.begin) * 1e-3
      end
    end
  end
  return list, by
end

local function check_spans(blocks, limit)
  local n = 0
  for _, b in ipairs(blocks) do n = n + #b.spans end
  if n > limit then
    core.fail("limit", ("draw: %d spans of %d block%s are too many; the limit "
      .. "is %d\n  pass blocks = N for fewer blocks, or limit = N"):format(n,
      #blocks, #blocks == 1 and "" or "s", limit))
  end
end

-- Draws the first opts.blocks blocks (4 when absent), one panel for each. A
-- panel has a row for each warp, with its ranges, and rows for agents below.
function Timeline:__draw(opts)
  local blocks, most = by_block(self.spans), opts.blocks or 4
  if math.type(most) ~= "integer" or most < 1 then
    core.fail("bad-argument", ("draw: blocks = %s; 1 or more is needed"):format(
      core.show(most)))
  end
  local all, last = #blocks, 0
  for i = #blocks, most + 1, -1 do blocks[i] = nil end
  check_spans(blocks, picture.limit(opts))
  local legend, by = legend_of(blocks)
  local p = {title = ("%s, %s"):format(self.kernel, self.from),
             captions = {}, panels = {}, palette = "strong"}
  if all > most then
    p.captions[1] = ("the first %d of %d blocks: pass blocks = N for more")
      :format(most, all)
  end
  if self.spans[1] then
    p.captions[#p.captions + 1] = unnamed(self.spans)
  end
  for _, b in ipairs(blocks) do
    for _, s in ipairs(b.spans) do last = math.max(last, s.stop * 1e-3) end
  end
  for i, b in ipairs(blocks) do
    local panel = {name = ("block %d, SM %d"):format(b.number, b.sm),
      bars = {}, row_labels = {}, last = math.max(last, 1e-6), unit = "us",
      legend = i == 1 and legend or {}, place = {i, 1}}
    for row, r in ipairs(rows_of(b.spans)) do
      panel.row_labels[row] = r.label
      for _, s in ipairs(r.spans) do
        panel.bars[#panel.bars + 1] = {row = row, from = s.begin * 1e-3,
          to = s.stop * 1e-3, label = s.name,
          class = s.kind ~= "warp" and by[s.name].class or nil}
      end
    end
    p.panels[i] = panel
  end
  return p
end

--- Returns a picture of the first `blocks` blocks (4 when absent). Each warp
-- has a row that shows its ranges in colours. Below the warps are rows for
-- asynchronous units such as TMA.
---@param blocks? integer
---@return string svg
function Timeline:svg(blocks)
  return require "cutelua.draw".draw(self, {as = "svg", blocks = blocks,
                                       limit = picture.MOST})
end

--- Writes the timeline to a file whose name ends in .json or .svg.
---@param path string
---@return true
function Timeline:save(path)
  local kind = type(path) == "string" and path:match "%.(%l+)$"
  if kind ~= "json" and kind ~= "svg" then
    core.fail("bad-argument", ("timeline:save: %s; a name in .json or .svg is "
      .. "needed"):format(core.show(path)))
  end
  local ok, why = require "cutelua.program.cli".write_file(path,
                                                        self[kind](self))
  if not ok then core.fail("io", (why:gsub(" %[io%]$", ""))) end
  return true
end

return timeline
-- SPDX-License-Identifier: MIT
