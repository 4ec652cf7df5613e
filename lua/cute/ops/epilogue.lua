--- What becomes of the sums of a product: alpha, C and beta.
local cute = require "cute"

local epilogue = {}

---------------------------------------------------------------------------
-- Numbers of a call
---------------------------------------------------------------------------

-- A number is an argument of the kernel, of which Lua's floats are f32: one of
-- f64 goes as its two halves.
local function pass(list, x, sums)
  local n = list.n
  if sums == cute.f64 then
    list[n + 1], list[n + 2] = string.unpack("<i4i4", string.pack("<d", x))
    list.n = n + 2
  else
    list[n + 1], list.n = x, n + 1
  end
end

-- The number of the kernel from the arguments at i, and the place behind them.
local function take(args, i, sums)
  if sums ~= cute.f64 then return args[i], i + 1 end
  local low, high = args[i]:to(cute.u32), args[i + 1]
  local bits = high:to(cute.i64) << 32 | low:to(cute.i64)
  return bits:bitcast(cute.f64), i + 2
end

-- A factor as sums of this type want it: floats, or whole numbers for whole
-- sums.
local function factor(x, sums)
  if not sums.is_integer then return x + 0.0 end
  return math.tointeger(x) or x
end

-- A matrix with its modes exchanged.
local function turned(t)
  return cute.make_tensor(t.iterator, cute.select(t.layout, {1, 0}))
end

--- What follows the sums of problem p by choice c: {finish = what gemm_sm80 and
-- gemm_sm90 take as epilogue, or nil, more(list, C, o): appends what it takes}.
function epilogue.new(p, c, alpha, beta)
  local has_alpha, has_beta, has_c = alpha ~= nil, beta ~= nil, p.c
  if not (has_alpha or has_c) then
    return {more = function() end}
  end
  local function finish(acc, at, ...)
    local args, i = {...}, 1
    local function scaled(x)
      local by
      by, i = take(args, i, p.sums)
      if p.sums.is_integer and by.dtype ~= cute.i32 then
        x = x:to(cute.f32)
      end
      return x * by
    end
    if has_alpha then acc = scaled(acc) end
    if has_c then
      local was = at.load(c.swap and turned(args[i]) or args[i])
      i = i + 1
      if has_beta then was = scaled(was) end
      if was.dtype ~= acc.dtype then  -- whole sums with a factor that is not
        was, acc = was:to(cute.f32), acc:to(cute.f32)
      end
      acc = acc + was
    end
    return acc
  end
  local function more(list, C, options)
    if has_alpha then pass(list, factor(options.alpha, p.sums), p.sums) end
    if has_c then list[list.n + 1], list.n = C, list.n + 1 end
    if has_beta then pass(list, factor(options.beta, p.sums), p.sums) end
  end
  return {finish = finish, more = more}
end

return epilogue
