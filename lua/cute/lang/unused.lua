--- Detects calls whose result is not used: of kernels, and of iterators. For
-- kernels, such a call is `add(x, y)` where `add(x, y):launch {...}` is meant.
-- Only the first call of a kernel is recorded, so later calls cost one field
-- access. For iterators in a kernel, such a call is `cute.when(c)` or
-- `cute.range(n)` outside of a `for`.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"

local unused = {}

--- The line of the script with the first call of each kernel that was called
-- but not used, by kernel.
unused.places = {}

-- Returns the place and the text of the script's line that made the current
-- call, or nil if there is none.
local function caller()
  for level = 4, 13 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      return ("%s:%d"):format(info.short_src, info.currentline), info
    end
  end
end

--- Records the line of the script at which kernel k is called.
function unused.note(k)
  k.called = true
  unused.places[k] = caller()
end

-- The iterators that the kernel being traced made so far: {iterator, text of
-- the call, line of the script, description of the calling function}.
local iterators = {}

--- Records an iterator of a kernel. It is marked as `begun` when a `for` first
-- calls it.
---@param iterator table
---@param what string "cute.when(c)"
function unused.iterator(iterator, what)
  iterators[#iterators + 1] = {iterator, what, caller()}
end

--- Begins an empty list of iterators when the trace of a kernel begins, or
-- restores the list `those` of the enclosing kernel when the trace of an inner
-- kernel ends.
---@param those? table[] iterators of the kernel around it
---@return table[] those until now
function unused.iterators(those)
  local before = iterators
  iterators = those or {}
  return before
end

--- Raises an error if an iterator of the kernel was never called.
function unused.check_iterators()
  for _, it in ipairs(iterators) do
    if it[3] and not it[1].begun then
      local explain = sign.workshop.idle_iterator
      error(("%s: %s"):format(it[3], explain
        and explain(it[2], source.line(it[4].source, it[4].currentline))
        or it[2] .. " is an iterator that no `for` loop uses [bad-argument]"),
        0)
    end
  end
end

--- Marks a call of kernel k as used: launched, traced or inspected.
function unused.forget(k) unused.places[k] = nil end

--- Raises the error for k(x) {grid = 1}, where `:launch` is missing.
function unused.called(call, opts)
  core.fail("bad-argument", ("kernel %s: :launch is missing before %s\n  "
    .. "write %s(...):launch {grid = g, block = b}"):format(call.kernel.name,
    core.show(opts), call.kernel.name))
end

return unused
-- SPDX-License-Identifier: MIT
