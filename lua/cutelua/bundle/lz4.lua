--- Packs bytes as an LZ4 block. A cubin consists of tables and of 16-byte
-- instructions, which repeat each other, so LZ4 packs it to a fraction of its
-- size. The LZ4 decoder in the C code has only 40 lines.
local lz4 = {}

-- Rules of LZ4 blocks: the last LITERAL bytes of a block are literals, no match
-- begins in the last CLOSE bytes, and a match is at most FARTHEST bytes back.
local LITERAL, CLOSE, FARTHEST = 5, 12, 65535

-- Returns the bytes that follow a token to encode length n. A length below 15
-- fits into the token, so the result is "".
local function more(n)
  if n < 15 then return "" end
  n = n - 15
  return ("\xff"):rep(n // 255) .. string.char(n % 255)
end

-- Returns how many bytes from `a` on equal those from `b` on, up to position
-- `last`.
local function common(s, a, b, last)
  local n = 0
  while b + n + 7 <= last and s:sub(a + n, a + n + 7) == s:sub(b + n, b + n + 7)
  do
    n = n + 8
  end
  while b + n <= last and s:byte(a + n) == s:byte(b + n) do n = n + 1 end
  return n
end

--- Returns the bytes s as an LZ4 block.
---@param s string
---@return string
function lz4.pack(s)
  local out, known, at, from = {}, {}, 1, 1
  local last = #s - LITERAL
  while at + CLOSE <= #s do
    local word = s:sub(at, at + 3)
    local before = known[word]
    known[word] = at
    if before and at - before <= FARTHEST then
      local n = common(s, before, at, last)
      local literal, rest = at - from, n - 4
      out[#out + 1] = string.char(math.min(literal, 15) << 4
        | math.min(rest, 15)) .. more(literal) .. s:sub(from, at - 1)
        .. string.pack("<I2", at - before) .. more(rest)
      for i = at + 1, math.min(at + n - 1, #s - 4) do
        known[s:sub(i, i + 3)] = i
      end
      at = at + n
      from = at
    else
      at = at + 1
    end
  end
  local literal = #s - from + 1
  out[#out + 1] = string.char(math.min(literal, 15) << 4) .. more(literal)
    .. s:sub(from)
  return table.concat(out)
end

--- Returns the 64-bit FNV-1a hash of the bytes s.
---@param s string
---@return integer
function lz4.hash(s)
  local h = 0xcbf29ce484222325
  for i = 1, #s do h = (h ~ s:byte(i)) * 0x100000001b3 end
  return h
end

return lz4
-- SPDX-License-Identifier: MIT
