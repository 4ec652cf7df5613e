--- What an epilogue is to a table of what was measured: 16 hexadecimal digits
-- of what it computes, reads and leaves, which say nothing of names, files,
-- sizes, or of numbers and tensors that it captures. Types of 16 bits are one,
-- as they are for speed.

-- An instruction's line of a dump without names; nil of what arguments are.
local function line_of(line)
  if line:find " arg #" or line:find " gmem " then return nil end
  return line:gsub("b?f16", "16-bit")
end

-- Values by the order in which they appear, whatever stood in front.
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

--- The fingerprint of a traced epilogue.
---@param ir string its instructions, of a dump without names
---@param words string[] what it asked of `at`, and its results
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
