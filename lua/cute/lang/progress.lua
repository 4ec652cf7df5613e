--- How far a run on the simulator is, on a terminal, once it takes long.
local core = require "cute.core"

local progress = {AFTER = 2, EVERY = 0.5}  -- seconds

local function quiet() end  -- Lua is asked all the same: Ctrl-C stops a run

--- A function that is told which part is done (0 to 1) now and then, and shows
-- it in a line of its own; closing it takes the line away.
---@param name string of the kernel
---@param write? fun(text: string) nil: standard error, if it is a terminal
---@param now? fun(): number seconds
---@return fun(done: number) show
---@return table line to be closed
function progress.of(name, write, now)
  if not write and core.isatty(2) then
    write = function(text)
      io.stderr:write(text)
      io.stderr:flush()
    end
  end
  if not write then return quiet, setmetatable({}, {__close = quiet}) end
  now = now or core.clock
  local start, last, closed = now(), nil, false
  local function show(done)
    if closed then return end  -- the launch runs again
    local t = now() - start
    if t < progress.AFTER or last and t - last < progress.EVERY then return end
    last = t
    write(("\r\27[Ksimulating %s: %d %%, %.0f s (Ctrl-C stops it)")
      :format(core.visible(name, false), done * 100 // 1, t))
  end
  return show, setmetatable({}, {__close = function()
    if last then write "\r\27[K" end
    closed = true
  end})
end

return progress
