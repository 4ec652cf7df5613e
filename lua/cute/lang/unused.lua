--- Kernels that a script calls, which makes a call, and does nothing with:
-- `add(x, y)` where `add(x, y):launch {...}` is meant. A kernel is noted at its
-- first call alone, so that others cost a look at a field.
local core = require "cute.core"

local unused = {}

-- Where the first call was, by kernel.
local places = {}

--- Notes where kernel k is called.
---@param k table
function unused.note(k)
  k.called = true
  for level = 3, 12 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      places[k] = ("%s:%d"):format(info.short_src, info.currentline)
      return
    end
  end
end

--- One of its calls is used: launched, traced, asked.
---@param k table
function unused.forget(k) places[k] = nil end

--- What to say of those that are left, once a line; they are forgotten.
---@return string[]
function unused.notes()
  local notes, known = {}, {}
  for k, place in pairs(places) do
    local note = ("%s: kernel %s was called and never launched: write "
      .. "%s(...):launch {grid = g, block = b}"):format(place, k.name, k.name)
    if not known[note] then known[note], notes[#notes + 1] = true, note end
  end
  table.sort(notes)
  places = {}
  return notes
end

--- Says what k(x) {grid = 1} lacks.
---@param call table
---@param opts any
function unused.called(call, opts)
  core.fail("bad-argument", ("a call of kernel %s was called, with %s\n  write "
    .. "%s(...):launch {grid = g, block = b}"):format(call.kernel.name,
    core.show(opts), call.kernel.name))
end

return unused
