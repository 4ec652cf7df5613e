-- Fuzzes the PTX parser and translation with libFuzzer: `ptx.lua SECONDS`. The
-- first inputs are the PTX of our own kernels and of spec/ptx/, and one text
-- for each opcode of core/ptx/rows.c.
package.path = "./?.lua;" .. package.path
local libfuzzer = require "spec.libfuzzer"
local texts = require "spec.ptx.texts"
local ptxdoc = dofile "tools/ptxdoc.lua"

local LARGEST = 12000  -- largest input in bytes
local SCRIPTS = {"softmax", "transpose", "copy_tma", "copy_async", "reduce",
                 "histogram", "scan", "topk", "copy_vector"}
local seconds = tonumber(arg[1]) or 60

local function write(folder, name, text)
  if #text > LARGEST then return end
  local f <close> = assert(io.open(folder .. "/" .. name, "wb"))
  f:write(text)
end

-- Writes the dictionary: opcodes, modifiers, registers.
local function dictionary(path)
  local f <close> = assert(io.open(path, "wb"))
  local seen = {}
  local function add(word)
    if not seen[word] then f:write(('"%s"\n'):format(word)) end
    seen[word] = true
  end
  for _, row in ipairs(ptxdoc.rows()) do
    add(row.name .. ".")
    for word in row.takes:gmatch "[^%s*]+" do add("." .. word) end
  end
  for word in ("%tid.x %laneid %cluster_ctarank .param .shared .local .global "
      .. ".const .reg .entry .func .align .extern .visible bra ret .loc "
      .. "inlined_at .branchtargets .callprototype"):gmatch "%S+" do
    add(word)
  end
end

local function of_scripts(folder)
  for _, name in ipairs(SCRIPTS) do
    local p <close> = io.popen(("%s scripts/%s.lua --arch sm_90a --emit ptx")
      :format(arg[-1] or "build/cutelua", name))
    write(folder, name, p:read "a")
  end
end

-- Writes a PTX text for each opcode, with operands of plausible types.
local function of_rows(folder)
  local HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    .. ".visible .entry k(.param .u64 p) {\n.shared .align 16 .b8 s[256];\n"
    .. ".reg .b32 a<4>; .reg .b64 b<4>; .reg .b16 h<4>; .reg .pred q<2>;\n"
    .. "ld.param.u64 b0, [p];\n"
  for i, row in ipairs(ptxdoc.rows()) do
    local width = row.takes:match "[busf](%d+)" or "32"
    local r = width == "64" and "b" or width == "16" and "h" or "a"
    for k, args in ipairs {"%s1, %s2, %s3", "%s1, %s2", "[s], %s1, %s2",
                           "%s1, [b0]", "q0, %s1, %s2"} do
      local text = ("%s.%s %s;\n"):format(row.name,
        row.takes:match "[^%s*]*$", args:gsub("%%s", r))
      write(folder, ("row%d.%d"):format(i, k), HEAD .. text .. "ret;\n}\n")
    end
  end
end

libfuzzer.run("ptx", "spec/ptx/fuzz.c", {"base", "atoms", "ir", "ptx"},
  ("-max_total_time=%d -max_len=%d -dict=ptx.dict"):format(seconds, LARGEST),
  function(folder)
    dictionary((folder:gsub("ptx%-corpus$", "ptx.dict")))
    texts.each(function(name, text) write(folder, name, text) end)
    of_scripts(folder)
    of_rows(folder)
  end)
print(("ptx: %d seconds without a crash, a leak or a rejected translation")
  :format(seconds))
-- SPDX-License-Identifier: MIT
