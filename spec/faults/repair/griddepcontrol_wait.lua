-- Fault: a read comes before griddepcontrol_wait().
-- run: check --surgeon
-- expect: check: kernel first: ok
-- expect: check: kernel second: bug
-- expect: griddepcontrol_wait.lua:22: read of memory that the previous launch
--   writes, with no griddepcontrol_wait() in between: element 0 of global
--   tensor 'a' [dependent-launch]
-- expect: call cute.arch.griddepcontrol_wait() before the first access to
--   memory that the launches share
-- expect: fixed by cute.arch.griddepcontrol_wait() before
--   griddepcontrol_wait.lua:22
local cute = require "cute"
local arch = cute.arch

local function ints() return cute.zeros({64}, cute.i32) end
local x, y = ints(), ints()
cute.kernel("first", function(a)
  a[arch.thread_idx()] = 1
  arch.griddepcontrol_launch_dependents()
end)(x):launch {grid = 1, block = 64, device = "sim"}
cute.kernel("second", function(a, b)
  b[arch.thread_idx()] = a[arch.thread_idx()]
  arch.griddepcontrol_wait()
  b[arch.thread_idx()] = b[arch.thread_idx()] + a[63 - arch.thread_idx()]
end)(x, y):launch {grid = 1, block = 64, pdl = true, device = "sim"}
