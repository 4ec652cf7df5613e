--- Identifies an epilogue in tables of measurements by 16 hexadecimal digits,
-- which depend on its computations, loads and results. The digits do not depend
-- on names, files, sizes, or captured numbers and tensors. All 16-bit types
-- have the same speed, so they yield the same digits.

-- Returns a line of an IR dump, with all 16-bit float types replaced by one
-- name. Returns nil for a line that describes an argument.
local function line_of(line)
  if line:find " arg #" or line:find " gmem " then return nil end
  return line:gsub("b?f16", "16-bit")
end

-- Renumbers the values in the text of a trace in the order in which they first
-- appear.
local function renumbered(text)
  local names, n = {}, 0
  return (text:gsub("%%%d+", function(name)
    if not names[name] then
      n = n + 1
      names[name] = "%" .. n
    end
    return names[name]
  end))
end

--- Returns the fingerprint of an epilogue from `ir`, the dump of its trace, and
-- `words` about its loads and results.
---@param ir string the epilogue's instructions, from a dump without names
---@param words string[] the epilogue's calls of methods of `at`, and its
-- results
---@return string
return function(ir, words)
  local list = {}
  for line in ir:gmatch "[^\n]+" do list[#list + 1] = line_of(line) end
  local text = table.concat(words, "\n") .. "\n"
    .. renumbered(table.concat(list, "\n"))
  local h = -0x340d631b7bdddcdb  -- FNV-1a
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end
-- SPDX-License-Identifier: MIT
