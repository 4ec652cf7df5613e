--- Lesson: your own epilogue.
local cute = require "cute"

return {
  title = "Your own epilogue",
  text = [==[
`cute.ops.gemm(A, B)` multiplies matrices of any types, strides and sizes: A
(M,K), B (N,K), the result (M,N). It chooses a kernel for the device, and
`explain` reports the choice:

```lua
ops = cute.ops
X, W = cute.full({100, 64}, 0.5, cute.bf16), cute.full({48, 64}, 1, cute.bf16)
ops.gemm(X, W, {device = "sim"})(99, 47)  --> 32.0
choice = tostring(ops.explain(X, W, {device = "sim:sm_80"}))
choice:match "gemm_%a+%d+"  --> gemm_sm80
```

A network applies further operations to the sums: a bias, a function, a
residual. A second kernel for them costs another trip through memory. An
*epilogue* applies them while the sums are in registers. It is a Lua function
of `acc`, a vector of a thread's sums, and of `at`, which knows their
positions:

```lua
bias = cute.full({48}, -30, cute.f32)
Y = ops.gemm(X, W, {device = "sim", epilogue = function(acc, at)
  return ops.relu(acc + at:col(bias))
end})
Y(99, 47)  --> 2.0
```

`at:col(v)` is the value of each column, `at:row(v)` of each row, and
`at:tile(T)` the elements of a matrix T at the same positions. The function is
traced into the kernel, so it may be any calculation. Several results are
several outputs, and `at:row_reduce` sums along rows without another pass:

```lua
Y, total = ops.gemm(X, W, {device = "sim", epilogue = function(acc, at)
  return acc, at:row_reduce("sum", acc)
end})
total(0)  --> 1536.0
```

Exercise: `layer(X, W, bias, R)` returns Y = R + max(X W^T + bias, 0) in bf16,
and also the largest |Y| of each row: "amax".

```exercise layer
function layer(X, W, bias, R)
  return cute.ops.gemm(X, W, {device = "sim", epilogue = function(acc, at)
    return acc
  end})
end
```
]==],
  exercises = {
    layer = {
      makes = "layer",
      hints = {"cute.ops.relu(x) is max(x, 0); at:tile(R) is R's value there.",
        'The second result: at:row_reduce("amax", y).'},
      solution = [[
function layer(X, W, bias, R)
  return cute.ops.gemm(X, W, {device = "sim", epilogue = function(acc, at)
    local y = cute.ops.relu(acc + at:col(bias)) + at:tile(R)
    return y, at:row_reduce("amax", y)
  end})
end]],
      check = function(env)
        local m, n, k = 33, 24, 16
        local X = cute.zeros({m, k}, cute.bf16)
        local W = cute.zeros({n, k}, cute.bf16)
        local R, bias = cute.zeros({m, n}, cute.bf16), cute.zeros({n}, cute.f32)
        for p = 0, k - 1 do
          for i = 0, m - 1 do X[{i, p}] = (i + p) % 3 - 1 end
          for j = 0, n - 1 do W[{j, p}] = (j * p) % 5 - 2 end
        end
        for j = 0, n - 1 do
          bias[j] = j % 4
          for i = 0, m - 1 do R[{i, j}] = (i + j) % 7 - 9 end
        end
        local Y, amax = env.layer(X, W, bias, R)
        if not amax then return nil, "the second result is missing" end
        for i = 0, m - 1 do
          local most = 0
          for j = 0, n - 1 do
            local sum = bias(j)
            for p = 0, k - 1 do sum = sum + X(i, p) * W(j, p) end
            local want = R(i, j) + math.max(sum, 0)
            most = math.max(most, math.abs(want))
            if Y(i, j) ~= want then
              return nil, ("Y(%d, %d) is %s, and should be %s"):format(i, j,
                Y(i, j), want)
            end
          end
          if amax(i) ~= most then
            return nil, ("the largest of row %d is %s, and should be %s")
              :format(i, amax(i), most)
          end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
