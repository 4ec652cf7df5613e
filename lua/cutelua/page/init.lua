--- Collects the data of a page about launches on the simulator: source texts
-- side by side with matching lines, the cost of each line, the kernel's
-- tensors, and the simulator's reports. cutelua.page.view draws the page;
-- docs/explain.md is the user's guide.
--
-- A key is the number of a Lua line that produced code. Fields of a launch:
-- name, facts = {{what, value, true if the value is bad}, ...}, missing =
--   {sentence, ...}.
-- keys: {{file, line}, ...}, where `file` is the number of one of the page's
--   files. Only `things` uses keys greater than the launch's number `lines`.
-- cu: {text = {line, ...}, at = {key or 0, ...}}.
-- ptx, sass: {text =, at = {line of cu or 0, ...}}; sass.live: the
--   number of live registers at each line.
-- counts: by key: {issued =, waits =, passes =, conflicts =, sectors =,
--   registers =, ops = {{op, tensors, count, passes, conflicts, sectors,
--   bytes}, ...}}.
-- notes: {{key = 0 if no line is known, kind = "bad" or "warn", text =, also
--   = key of the other line, rest = {{key =, text =}, ...} of faults that may
--   follow from this one}, ...}.
-- things: {{name =, kind =, space =, layout =, key =, more =, picture =}, ...}:
--   the tensors, layouts and tiled operations of the kernel's variables.
-- conflicts: {{key =, text =, picture =}, ...}.
-- estimate, log: texts.
--
-- In these tables, a picture is given by its number among the page's pictures.
-- A lazy page, for programs that query it interactively, draws pictures
-- (page:picture) and makes estimates (page:costs) only on request, and uses no
-- compiler.
local asm = require "cutelua.text.asm"
local core = require "cute.core"
local json = require "cutelua.text.json"
local source = require "cute.lang.source"
local faults = require "cutelua.text.faults"
local simreport = require "cute.lang.simreport"

local page = {}

---------------------------------------------------------------------------
-- Files and keys
---------------------------------------------------------------------------

local Page = {}
Page.__index = Page

--- Makes an empty page: files = {{name =, lines =}, ...}, kernels, pictures.
---@param lazy? boolean
---@return table
function page.new(lazy)
  return setmetatable({files = {}, kernels = {}, pictures = {}, lazy = lazy,
                       known = {}, drawn = 0, drawings = {}, asked = {},
                       launches = {}}, Page)
end

-- Returns the number of a chunk among the page's files; adds the chunk if it is
-- new.
local function file_number(self, chunk)
  local n = self.known[chunk]
  if n then return n end
  n = #self.files + 1
  local lines = {}
  for line in ((source.text(chunk) or "") .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line:gsub("\r$", "")
  end
  if lines[#lines] == "" then lines[#lines] = nil end
  self.files[n] = {name = source.short(chunk), lines = lines}
  self.known[chunk] = n
  return n
end

-- Returns a function that maps a Lua line to its key, which is the line's index
-- in `keys`. The first call for a line adds the line to `keys`.
local function key_maker(self, keys)
  local by = {}
  return function(chunk, line)
    if not (chunk and line) or line < 1 then return 0 end
    local file = file_number(self, chunk)
    local name = file .. ":" .. line
    if not by[name] then
      keys[#keys + 1] = {file, line}
      by[name] = #keys
    end
    return by[name]
  end
end

---------------------------------------------------------------------------
-- Texts
---------------------------------------------------------------------------

local function cuda(program, arch, key)
  local at = {}
  local text, places = program.fn:emit(tonumber(arch:match "%d+"))
  local out = {}
  for line in text:gmatch "([^\n]*)\n" do
    local n = #out + 1
    local place = places[n]
    out[n], at[n] = line, place and key(place[1], place[2]) or 0
  end
  return {text = out, at = at}
end

local function listing(l)
  if not l then return nil end
  for i, line in ipairs(l.at) do l.at[i] = line or 0 end
  return l
end

---------------------------------------------------------------------------
-- Counters
---------------------------------------------------------------------------

local function counts_of(counts, key)
  local c = counts[key] or {ops = {}}
  counts[key] = c
  return c
end

local function add(c, name, n) c[name] = (c[name] or 0) + n end

local function tensors_of(s)
  if not (s.shared and s.global) then return s.shared or s.global or "" end
  return s.out and s.shared .. " > " .. s.global or s.global .. " > "
    .. s.shared
end

-- Adds the memory traffic of the whole grid, from a launch's report, to the
-- counts of each source line.
local function add_traffic(counts, report, key)
  for _, s in ipairs(report.lines) do
    local c = counts_of(counts, key(s.file, s.line))
    add(c, "passes", s.wavefronts)
    add(c, "conflicts", s.conflicts)
    add(c, "sectors", s.sectors)
    c.ops[#c.ops + 1] = {s.op, tensors_of(s), s.count, s.wavefronts,
                         s.conflicts, s.sectors, s.bytes}
  end
end

-- Adds two estimates to the counts of each source line: the number of
-- instructions that one cluster issues for the line, and the time that the
-- cluster's warps wait there.
local function add_estimate(counts, estimate, key)
  for _, l in ipairs(estimate.lines) do
    local c = counts_of(counts, key(l.file, l.line))
    add(c, "issued", l.slots)
    add(c, "waits", l.stall)
  end
end

-- Adds to the counts of each line the largest number of live registers in its
-- machine code, and its numbers of spill loads and stores.
local function add_registers(counts, sass, cu)
  for i, text in ipairs(sass.text) do
    local key = cu.at[sass.at[i]] or 0
    local live = sass.live[i]
    if key > 0 and (live > 0 or text:find "%f[%w][SL][TD]L%f[%W]") then
      local c = counts_of(counts, key)
      c.registers = math.max(c.registers or 0, live)
      if text:find "%f[%w]STL%f[%W]" then add(c, "stores", 1) end
      if text:find "%f[%w]LDL%f[%W]" then add(c, "loads", 1) end
    end
  end
end

---------------------------------------------------------------------------
-- Notes
---------------------------------------------------------------------------

local function add_faults(notes, report, key)
  local known, rests = {}, {}
  for _, r in ipairs(report.reports) do
    if r.leads and not rests[r.leads] then rests[r.leads] = {} end
  end
  for i, r in ipairs(report.reports) do
    local at, text = key(r.file, r.line), faults.text(r, known)
    local rest = rests[r.leads]
    if rest then
      rest[#rest + 1] = {key = at, text = text}
    else
      notes[#notes + 1] = {kind = "bad", key = at, text = text,
        also = r.line2 and key(r.file2, r.line2), rest = rests[i]}
    end
  end
end

-- Adds the compiler's warnings to the notes. A warning such as "script.lua:31:
-- ... (k.cu:12)" becomes a note on this line of the script.
local function add_warnings(self, notes, compiled, program, key)
  local chunks = {}
  for chunk in pairs(self.known) do chunks[source.short(chunk)] = chunk end
  local function note(text)
    local file, line = text:match "^([^:]+):(%d+): "
    -- A warning without a file name is about the page's only file.
    if not file and not self.files[2] then
      file, line = self.files[1] and self.files[1].name,
                   text:match "^line (%d+): "
    end
    notes[#notes + 1] = {kind = "warn", text = text,
      key = key(chunks[file], math.tointeger(tonumber(line)))}
  end
  for _, text in ipairs(compiled and compiled.warnings or {}) do note(text) end
  for _, text in ipairs(compiled and compiled.losses or {}) do
    if text:find "spills" then note(text) end
  end
  for _, text in ipairs(program.warnings) do note(text) end
end

local function add_spills(notes, counts, keys)
  for key = 1, #keys do
    local c, parts = counts[key], {}
    for _, what in ipairs {"store", "load"} do
      local n = c and c[what .. "s"]
      parts[#parts + 1] = n and ("%d %s%s"):format(n, what, n > 1 and "s" or "")
    end
    if #parts > 0 then
      notes[#notes + 1] = {kind = "warn", key = key,
        text = "registers spill here: " .. table.concat(parts, ", ")}
    end
  end
end

---------------------------------------------------------------------------
-- Tensors
---------------------------------------------------------------------------

local KINDS = {tensor = true, tiled = true, layout = true}
-- Limit of the total size of all pictures of a page, as JSON in bytes.
local MOST_BYTES = 900 << 10
-- The largest number of cells of one picture.
local MOST_CELLS = 8192
-- An element may be held by several threads. This is the largest number of
-- threads that a picture lists for it, besides the first one.
local MOST_HOLDERS = 16

-- Returns the part of a large layout that a picture shows: the first two modes
-- and, if these have too many elements, at most 32 by 64 elements of them.
local function part_of(layout)
  local cute = require "cute"
  local n = cute.rank(layout)
  if n > 2 then
    local at = {cute._, cute._}
    for i = 3, n do at[i] = 0 end
    layout = layout(table.unpack(at))
  end
  if cute.size(layout) <= MOST_CELLS then return layout end
  return cute.composition(layout, {
    cute.make_layout(math.min(cute.size(layout, 0), 32)),
    cute.make_layout(math.min(cute.size(layout, 1), 64))})
end

-- Returns the picture of x in the form that the page's script takes. Draws only
-- a part of a large layout.
local function drawn(x)
  local draw, part = require "cutelua.draw", nil
  if type(x) == "string" then
    x = core.parse(x)
    part = core.size(x) > MOST_CELLS
    if part then x = part_of(x) end
  end
  local data = require "cutelua.draw.html".data(draw.picture(x, {
    limit = MOST_CELLS}))
  data.part = part and ("a part of it: %s"):format(x) or nil
  -- An element that is broadcast is held by all threads. The picture keeps only
  -- some of these threads.
  for _, panel in ipairs(data.panels) do
    for at, list in pairs(panel.more or {}) do
      if #list > 2 * MOST_HOLDERS then
        panel.more[at] = table.move(list, 1, 2 * MOST_HOLDERS, 1, {})
      end
    end
  end
  return data
end

-- Returns the number of x's picture on the page. Makes the picture if the page
-- has none with this label. Returns nil if the layout of x is dynamic, or if
-- the page has too many pictures.
local function picture(self, x, label)
  local known = self.drawings[label]
  if known ~= nil then return known or nil end
  if self.lazy and type(x) == "string" and not pcall(core.parse, x) then
    self.drawings[label] = false  -- dynamic layout: no picture
    return nil
  elseif self.lazy then
    self.asked[#self.asked + 1] = x
    self.drawings[label] = #self.asked
    return #self.asked
  end
  local ok, data = pcall(drawn, x)
  local size = ok and #json.encode(data) or 0
  ok = ok and self.drawn + size <= MOST_BYTES
  if ok then
    self.drawn = self.drawn + size
    self.pictures[#self.pictures + 1] = data
  end
  self.drawings[label] = ok and #self.pictures
  return ok and #self.pictures or nil
end

--- Returns the n-th picture of a lazy page (one that draws on request), in the
-- form that the page's script takes. Raises an error if it cannot be drawn.
---@param n integer
---@return table? data nil if there is no such picture
function Page:picture(n)
  local x = self.asked[n]
  return x and drawn(x)
end

-- Returns the memory space and the layout of a kernel's tensor. Both are parsed
-- from the tensor's text, because only the text is kept after the trace.
local function tensor_parts(text)
  local pointer, layout = text:match "^(.-) o (.*)$"
  local space = (pointer or ""):match "^ptr%[(.-)%]"
  return space or "coordinates", layout or text
end

local function add_thing(things, seen, name, value, place)
  local kind = core.typename(value)
  if not KINDS[kind] then return end
  local text = core.visible(tostring(value), true)
  local first, more = text:match "^([^\n]*)\n?(.*)$"
  local id = name .. " " .. text
  if seen[id] or kind == "layout" and seen[name] then return end
  seen[id], seen[name] = true, true
  local thing = {name = name, kind = kind, key = place}
  if kind == "tensor" then
    thing.space, thing.layout = tensor_parts(text)
  elseif kind == "layout" then
    thing.layout = text
  else
    thing.kind, thing.layout, thing.more = first, "", more
    seen[thing] = {value, text}
  end
  things[#things + 1] = thing
end

-- Adds pictures to `things`. Tensors in shared memory get theirs first, because
-- the size of all pictures is limited.
local function add_pictures(self, things, seen)
  local function draw(want)
    for _, t in ipairs(things) do
      local own = seen[t]
      if not t.picture and want(t, own) then
        t.picture = picture(self, own and own[1] or t.layout,
                            own and own[2] or t.layout)
      end
    end
  end
  draw(function(t) return t.space and t.space:find "smem" end)
  draw(function(_, own) return own end)
  draw(function(t) return t.space ~= "coordinates" and t.layout ~= "1:0" end)
end

-- Returns the tensors, layouts and tiled operations that the kernel's variables
-- held during the trace. Fields of plain tables in variables count, too.
local function things_of(self, program, key)
  local things, seen = {}, {}
  for _, e in ipairs(program.locals and program.locals.list or {}) do
    local place = key(e.file, e.line)
    add_thing(things, seen, e.name, e.value, place)
    if type(e.value) == "table" and not getmetatable(e.value) then
      local names = {}
      for k, v in next, e.value do
        if type(k) == "string" and KINDS[core.typename(v)] then
          names[#names + 1] = k
        end
      end
      table.sort(names)
      for _, k in ipairs(names) do
        add_thing(things, seen, e.name .. "." .. k, e.value[k], place)
      end
    end
  end
  add_pictures(self, things, seen)
  return things
end

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

local function times(t)
  local text = table.concat(t, " x ")
  return (text:gsub(" x 1$", ""):gsub(" x 1$", ""))
end

local function facts_of(program, launch, report, made)
  local facts = {}
  local function fact(what, value, bad)
    facts[#facts + 1] = {what, tostring(value), bad or nil}
  end
  fact("target", program.arch)
  fact("grid", times(launch.grid))
  fact("block", times(launch.block))
  if times(program.cluster) ~= "1" then
    fact("cluster", times(program.cluster))
  end
  fact("shared memory", program.info.smem .. " bytes")
  local r = made.compiled and made.compiled.resources
  if r and r.registers then
    local spilled = (r.spill_stores or 0) + (r.spill_loads or 0)
    fact("registers", r.registers)
    fact("spilled", spilled .. " bytes", spilled > 0)
  end
  fact("conflicts", ("%d in %d passes"):format(report:total "conflicts",
    report:total "wavefronts"), report:total "conflicts" > 0)
  fact("sectors", report:total "sectors")
  local _, leaders = report:followers()
  fact("reports", leaders, leaders > 0)
  return facts
end

-- Estimates a launch's time on a GPU of its architecture. Returns nil and the
-- reason if no estimate is possible.
local function estimate_of(program, launch, made)
  local card = require "cutelua.profile.cards".of(launch.sm)
  if not card then return nil, "no estimate: no card of " .. program.arch end
  local r = made.compiled and made.compiled.resources
  local estimate = require "cutelua.profile.estimate"
  local ok, e = pcall(estimate.of, estimate.launched(program, launch),
    {card = card, registers = r and r.registers})
  if ok then return e end
  return nil, "no estimate: " .. core.visible(tostring(e), true)
end

local function conflicts_of(self, report, key)
  local out = {}
  for i, c in ipairs(report:conflicts()) do
    if i > 8 then break end
    out[i] = {key = key(c.file, c.line), text = tostring(c),
              picture = picture(self, c, tostring(c))}
  end
  return out
end

local NO_CUDA = "This PTX has instructions that have no CUDA C."
local NO_COMPILER = "PTX, SASS and registers are not here: CUDA's compiler "
  .. "makes them, which no page has; `cutelua explain SCRIPT -o k.html` shows "
  .. "them where it is installed"

-- Returns the page's entry for a launch. costs: true to estimate its time.
local function kernel_of(self, program, launch, report, costs)
  local keys, counts, notes = {}, {}, {}
  local key = key_maker(self, keys)
  local has_cuda = require "cute.lang.kernel".has_cuda
  local plain = not program.info.ptx or has_cuda(program, program.arch)
  local cu = plain and cuda(program, program.arch, key)
    or {text = {"// " .. NO_CUDA}, at = {0}}
  local made = not plain and {missing = {NO_CUDA}}
    or self.lazy and {missing = {NO_COMPILER}} or asm.of(program, program.arch)
  local e, why
  if report.ok and costs then
    e, why = estimate_of(program, launch, made)
    made.missing[#made.missing + 1] = why
  end
  add_traffic(counts, report, key)
  if e then add_estimate(counts, e, key) end
  local ptx, sass = listing(made.ptx), listing(made.sass)
  if sass then add_registers(counts, sass, cu) end
  add_faults(notes, report, key)
  add_warnings(self, notes, made.compiled, program, key)
  add_spills(notes, counts, keys)
  local lines = #keys
  local facts = facts_of(program, launch, report, made)
  if e then
    facts[#facts + 1] = {"on " .. e.card,
      ("%.3g us, bound by %s"):format(e.seconds * 1e6, e.bound)}
  end
  return {name = program.info.name, launches = 1,
    facts = facts, missing = made.missing, keys = keys, lines = lines,
    cu = cu, ptx = ptx, sass = sass, counts = counts, notes = notes,
    things = things_of(self, program, key),
    conflicts = conflicts_of(self, report, key),
    estimate = e and tostring(e), log = made.compiled and made.compiled.log}
end

--- Adds a launch on the simulator to the page.
---@param program table
---@param launch table as core.sim_run took it, with record = true
---@param report table the result of core.sim_run
---@return table kernel of the page
function Page:add(program, launch, report)
  simreport.attach(report, program)
  local n = #self.kernels + 1
  self.launches[n] = self.lazy and {program, launch, report} or nil
  self.kernels[n] = kernel_of(self, program, launch, report, not self.lazy)
  return self.kernels[n]
end

--- Estimates the costs of the n-th kernel of a lazy page (one that estimates on
-- request). Returns the kernel with costs, which replaces the kernel without
-- costs in the page.
---@param n integer
---@return table? kernel nil if there is no such launch
function Page:costs(n)
  local known, before = self.launches[n], self.kernels[n]
  if not known then return nil end
  local k = kernel_of(self, known[1], known[2], known[3], true)
  k.launches = before.launches
  self.kernels[n] = k
  return k
end

--- Adds the error that stopped the script. If the message names a line, the
-- error is shown there.
---@param message string
function Page:fail(message)
  local report = require "cute.lang.report"
  local parts = report.parse(message)
  local chunk
  for name in pairs(self.known) do
    if parts.file and (name:sub(2) == parts.file) then chunk = name end
  end
  chunk = chunk or parts.file and (source.text("@" .. parts.file)
    and "@" .. parts.file)
  local keys = {}
  local at = key_maker(self, keys)(chunk, parts.line)
  local text = not parts.file and message
    or source.short(parts.file) .. message:sub(#parts.file + 1)
  self.kernels[#self.kernels + 1] = {name = "error", failed = true,
    facts = {}, missing = {}, keys = keys, lines = #keys, counts = {},
    things = {}, conflicts = {},
    notes = {{kind = "bad", key = at, text = core.visible(text, true)}}}
end

--- Returns the timeline of the warps and agents of the n-th launch of a lazy
-- page: see cutelua.profile.timeline. Raises an error if no estimate is
-- possible.
---@param n integer
---@return table? timeline nil if there is no such launch
function Page:timeline(n)
  local known = self.launches[n]
  if not known then return nil end
  local program, launch = known[1], known[2]
  local card = require "cutelua.profile.cards".of(launch.sm)
  if not card then
    core.fail("wrong-arch", "no timeline: cutelua has no model of a card "
      .. "with the architecture " .. program.arch)
  end
  local launched = require "cutelua.profile.estimate".launched
  return require "cutelua.profile.timeline".by_model(launched(program, launch),
    {card = card})
end

--- Returns a kernel of a page as a table to encode as JSON, with named fields.
---@param k table
---@return table
function page.plain(k)
  local out, counts = {}, {}
  for name, v in pairs(k) do out[name] = v end
  for key, c in pairs(k.counts) do counts[tostring(key)] = c end
  out.counts = counts
  return out
end

--- Returns the page as a table to encode as JSON, the input of the page's
-- script.
---@return table
function Page:plain()
  local kernels = {}
  for i, k in ipairs(self.kernels) do kernels[i] = page.plain(k) end
  return {files = self.files, kernels = kernels, pictures = self.pictures}
end

-- The largest number of CUDA C lines that Page:explained shows for a line of
-- the script.
local MOST_SHOWN = 8

-- Returns the lines of a kernel that produced code, in the order of the script.
-- Each has its text, its counts, and the first lines of its CUDA C.
local function lines_of(self, k, chunks)
  local list = {}
  for key = 1, k.lines do
    local file, n = table.unpack(k.keys[key])
    local c = k.counts[key] or {}
    list[key] = {file = chunks[file], line = n, cuda = {}, cuda_lines = 0,
      text = self.files[file].lines[n], issued = c.issued, waits = c.waits,
      passes = c.passes, conflicts = c.conflicts, sectors = c.sectors,
      registers = c.registers}
  end
  for i, key in ipairs(k.cu and k.cu.at or {}) do
    local one, text = list[key], k.cu.text[i]
    if one and not text:find "^%s*//" then
      one.cuda_lines = one.cuda_lines + 1
      if #one.cuda < MOST_SHOWN then one.cuda[#one.cuda + 1] = text end
    end
  end
  table.sort(list, function(a, b)
    return a.file < b.file or a.file == b.file and a.line < b.line
  end)
  return list
end

--- Returns a list with one entry for each kernel of the page, for other
-- programs; pictures and listings are omitted. An entry is {kernel =, facts =
-- text by name, lines = {{file =, line =, text =, issued =, waits =, passes =,
-- conflicts =, sectors =, registers =, cuda = the first lines of its CUDA C,
-- cuda_lines = the number of all its CUDA C lines}, ...}, tensors = {{name =,
-- kind =, space =, layout =, file =, line = the line of its variable}, ...},
-- estimate = text}.
---@return table[]
function Page:explained()
  local chunks, list = {}, {}
  for chunk, n in pairs(self.known) do chunks[n] = chunk:gsub("^[@=]", "") end
  for i, k in ipairs(self.kernels) do
    local facts, tensors = {}, {}
    for _, f in ipairs(k.facts) do facts[f[1]] = tostring(f[2]) end
    for n, t in ipairs(k.things) do
      local place = k.keys[t.key] or {}
      tensors[n] = {name = t.name, kind = t.kind, space = t.space,
                    layout = t.layout, file = chunks[place[1]],
                    line = place[2]}
    end
    list[i] = {kernel = k.name, facts = facts, tensors = tensors,
               lines = lines_of(self, k, chunks), estimate = k.estimate}
  end
  return list
end

--- Returns the page as the text of an HTML file.
---@param title string
---@param workshop? {address: string, script: table} what the page's button
-- opens
---@return string html
function Page:html(title, workshop)
  return require "cutelua.page.view".html(title, self:plain(), workshop)
end

return page
-- SPDX-License-Identifier: MIT
