-- Prints a hash of the results of string.find, match, gmatch and gsub for
-- random patterns and texts, errors included. Untrusted states of libcutelua
-- have versions of these functions that must do what Lua's do.
local seed = 7
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return (seed >> 8) % n + 1
end

local ITEMS = {"a", "b", "c", ".", "%a", "%d", "[ab]", "[^a]", "[a-c]", "%w",
  "%s", "%S", "(a)", "()", "(b*)", "%1", "%b()", "%f[%a]", "$", "^", "x", "%%",
  "(", "[]]", "[^]]", "[%a-]", "%2", "[a%]", "(.-)"}
local MARKS = {"", "", "", "*", "+", "-", "?"}
local CHARACTERS = {"a", "b", "c", "d", "1", "2", " ", "(", ")", "x", "%",
  "\0", "-"}
local REPLACEMENTS = {"<%0>", "%1", "x", "%2", "%"}

local function text(n)
  local out = {}
  for i = 1, n do out[i] = CHARACTERS[random(#CHARACTERS)] end
  return table.concat(out)
end

local function pattern()
  local out = {random(6) == 1 and "^" or ""}
  for _ = 1, random(5) do
    out[#out + 1] = ITEMS[random(#ITEMS)] .. MARKS[random(#MARKS)]
  end
  return table.concat(out)
end

local hash = 0
local function note(...)
  for i = 1, select("#", ...) do
    local s = tostring((select(i, ...)))
    for j = 1, #s do hash = (hash * 31 + s:byte(j)) % 1000000007 end
    hash = (hash * 31 + 7) % 1000000007
  end
end

local function bang(a, b)
  if a == "a" then return false end
  return (a or "") .. "!" .. tostring(b)
end

for _ = 1, 4000 do
  local s, p = text(random(12) - 1), pattern()
  note(pcall(string.find, s, p, random(6) - 3))
  note(pcall(string.find, s, text(random(3) - 1), 1, true))
  note(pcall(string.match, s, p, random(8) - 4))
  note(pcall(string.gsub, s, p, REPLACEMENTS[random(#REPLACEMENTS)],
             random(4) == 1 and random(3) - 1 or nil))
  note(pcall(string.gsub, s, p, bang))
  note(pcall(string.gsub, s, p, {a = "Z", b = false}))
  note(pcall(function()
    for a, b in s:gmatch(p, random(3)) do note(a, b) end
  end))
end
print(hash)
-- SPDX-License-Identifier: MIT
