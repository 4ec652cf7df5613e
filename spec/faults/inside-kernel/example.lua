-- The example of the error kind `inside-kernel` in docs/errors.md.
-- expect: cutelua: kernel 'other' was used inside kernel 'k' [inside-kernel]
-- expect: spec/faults/inside-kernel/example.lua:14 in kernel k
-- expect: call a plain Lua function instead
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local other = cute.kernel("other", function(mX) mX[{0, 0}] = 1 end)  -- wrong
-- mend: local function other(mX, tid) mX[{0, tid}] = 1 end
run(function(mX)
  other(X):launch {grid = 1, block = 1}  -- wrong
  -- mend: other(mX, cute.arch.thread_idx())       -- a plain Lua function
end, X)
