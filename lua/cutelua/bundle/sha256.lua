--- SHA-256, with which a certificate names texts and files.

-- Returns the first 32 bits of the fractional parts of p^power for the first n
-- primes p.
local function roots(n, power)
  local list, p = {}, 2
  while #list < n do
    local prime = true
    for d = 2, math.floor(p ^ 0.5) do prime = prime and p % d ~= 0 end
    if prime then
      local x = p ^ power
      list[#list + 1] = math.floor((x - math.floor(x)) * 2 ^ 32)
    end
    p = p + 1
  end
  return list
end

local K, START = roots(64, 1 / 3), roots(8, 1 / 2)

local function turn(x, n) return (x >> n | x << 32 - n) & 0xffffffff end

local function block(h, s, at)
  local w = {string.unpack(">I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4", s, at)}
  for i = 17, 64 do
    local a, b = w[i - 15], w[i - 2]
    w[i] = (w[i - 16] + w[i - 7] + (turn(a, 7) ~ turn(a, 18) ~ a >> 3)
      + (turn(b, 17) ~ turn(b, 19) ~ b >> 10)) & 0xffffffff
  end
  local a, b, c, d, e, f, g, x = table.unpack(h)
  for i = 1, 64 do
    local s1 = turn(e, 6) ~ turn(e, 11) ~ turn(e, 25)
    local t1 = x + s1 + (e & f ~ (~e & g)) + K[i] + w[i]
    local s0 = turn(a, 2) ~ turn(a, 13) ~ turn(a, 22)
    local t2 = s0 + (a & b ~ a & c ~ b & c)
    x, g, f, e, d, c, b, a = g, f, e, (d + t1) & 0xffffffff, c, b, a,
      (t1 + t2) & 0xffffffff
  end
  for i, v in ipairs {a, b, c, d, e, f, g, x} do
    h[i] = (h[i] + v) & 0xffffffff
  end
end

--- Returns the SHA-256 of bytes as 64 hexadecimal digits.
---@param s string
---@return string
local function sha256(s)
  local h = table.move(START, 1, 8, 1, {})
  local full = s .. "\x80" .. ("\0"):rep(-(#s + 9) % 64)
    .. string.pack(">I8", 8 * #s)
  for at = 1, #full, 64 do block(h, full, at) end
  return (("%08x"):rep(8)):format(table.unpack(h))
end

return sha256
-- SPDX-License-Identifier: MIT
