local cute = require "cute"
local x, y = cute.zeros({32}, cute.f32), cute.zeros({32}, cute.f32)
for i = 0, 31 do x[i] = i end
local k = cute.ptx(arg[1]):kernel "k"
k(x, y, 32):launch {grid = 1, block = 32}
print(y[5], y[31])
print(k(x, y, 32):check {grid = 1, block = 32})
