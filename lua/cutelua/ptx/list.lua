--- `cutelua ptx FILE`: entries, parameters, shared memory, opcodes, and what
-- is rejected.
local core = require "cute.core"
local ptx = require "cutelua.ptx"

local list = {}

local HELP = [==[
usage: cutelua ptx FILE.ptx|FILE.cu
Lists the entries of PTX: parameters with their byte offsets, shared memory,
opcodes with their counts, and the opcodes that are not modelled.

Exit code: 0 all is modelled, 1 an error or something is not, 2 a wrong command
line.
]==]

local KIND = {b = "b", u = "u", s = "s", f = "f"}

local function parameters(entry)
  for i, p in ipairs(entry.parameters) do
    local size = p.array and ("[%d]"):format(p.count) or ""
    print(("  %2d  byte %4d  %s%d%s  %s"):format(i, p.offset,
      KIND[p.kind] or "?", p.bits, size, p.name))
  end
end

local function show(module, name)
  local entry = core.ptx_entry(module.module, name)
  print(("entry %s, line %d"):format(entry.name, entry.line))
  parameters(entry)
  for _, key in ipairs {"reqntid", "maxntid", "cluster"} do
    if entry[key] then
      print(("  %s %s"):format(key, table.concat(entry[key], " x ")))
    end
  end
  local codes = core.ptx_opcodes(module.module, name)
  local names, missing = {}, {}
  for op in pairs(codes) do names[#names + 1] = op end
  table.sort(names, function(a, b)
    if codes[a].count ~= codes[b].count then
      return codes[a].count > codes[b].count
    end
    return a < b
  end)
  for _, op in ipairs(names) do
    local c = codes[op]
    if not c.known then missing[#missing + 1] = op end
    print(("  %6d  %s%s"):format(c.count, op,
      c.known and "" or "  NOT MODELLED, line " .. c.line))
  end
  return #missing
end

function list.main(words)
  if words[1] == "--help" or words[1] == "-h" then
    io.write(HELP)
    return 0
  end
  if #words ~= 1 then
    io.stderr:write("cutelua ptx: one file is expected; --help\n")
    return 2
  end
  local path = words[1]
  local module = path:find "%.cu$" and ptx.cuda(path) or ptx.ptx(path)
  local missing = 0
  for _, name in ipairs(module:entries()) do
    missing = missing + show(module, name)
  end
  return missing == 0 and 0 or 1
end

return list
-- SPDX-License-Identifier: MIT
