--- What is called and not used. Kernels of a script: `add(x, y)` where
-- `add(x, y):launch {...}` is meant; a kernel is noted at its first call alone,
-- so that others cost a look at a field. Iterators in a kernel: `cute.when(c)`
-- and `cute.range(n)` alone, which no `for` takes.
local core = require "cute.core"

local unused = {}

-- Where the first call was, by kernel.
local places = {}

-- The script's line that called the product; nil: nobody did.
local function caller()
  for level = 4, 13 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      return ("%s:%d"):format(info.short_src, info.currentline)
    end
  end
end

--- Notes where kernel k is called.
---@param k table
function unused.note(k)
  k.called = true
  places[k] = caller()
end

-- Iterators of the kernel that is traced, in their order.
local iterators = {}

--- Notes an iterator of a kernel: once a `for` has called it, it is `begun`.
---@param iterator table
---@param what string "cute.when(c)"
function unused.iterator(iterator, what)
  iterators[#iterators + 1] = {iterator, what, caller()}
end

--- A kernel begins to be traced, or one is traced no more.
---@param those? table[] those of the kernel around it
---@return table[] those until now
function unused.iterators(those)
  local before = iterators
  iterators = those or {}
  return before
end

--- Fails where an iterator of the kernel was never called.
function unused.check_iterators()
  for _, it in ipairs(iterators) do
    if it[3] and not it[1].begun then
      error(("%s: %s is the iterator of a `for`, and none takes it "
        .. "[bad-argument]\n  write for ... in %s do ... end"):format(it[3],
        it[2], it[2]), 0)
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
