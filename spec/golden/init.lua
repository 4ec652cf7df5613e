--- Checks cutelua against golden data: reference values, one JSON object a
-- line.
--
-- `make golden` calls main(). A file NAME.jsonl has one case per line. The
-- table golden.ops.NAME has a function for each op of the file, which gets the
-- decoded line. It returns true if the case passes; false and our result if it
-- fails; or nil if it does not cover the case. Ops without a function are
-- listed as not run. The modules in golden.modules add their functions to
-- golden.ops before the data first runs.
local json = require "dkjson"
local core = require "cute.core"

local golden = {
  ops = {},
  modules = {"spec.golden.layout", "spec.golden.atoms", "spec.golden.approx",
             "spec.golden.tensormap", "spec.golden.gmma", "spec.golden.ptx",
             "spec.golden.umma", "spec.golden.blackwell"},
  -- Field with the op's name, for files whose lines have no field `op`.
  op_field = {},
  -- files for which the table counts lines by the first word of their op
  families = {},
  shown = 5,  -- number of failing lines that are printed in full
}

-- ---- access.jsonl ----

local sim = require "spec.hardware.units"
local access = {}
golden.ops.access = access

-- In lines with exact = false the count is an estimate, and may be wrong by a
-- sixth.
local function agrees(case, got)
  local want = case.wavefronts or case.sectors
  local slack = case.exact == false and want / 6 or 0
  if math.abs(got - want) <= slack then return true end
  return false, got
end

for op, kind in pairs {["ld.shared"] = "load", ["st.shared"] = "store",
                       ["cp.async.ca"] = "cp.async"} do
  access[op] = function(case)
    return agrees(case, (sim.shared_wavefronts(kind, case.width, case.addr,
                                               case.mask)))
  end
end

for _, op in ipairs {"ldmatrix", "ldmatrix.trans", "stmatrix",
                     "stmatrix.trans"} do
  access[op] = function(case)
    return agrees(case, (sim.matrix_wavefronts(case.num, case.addr)))
  end
end

for _, op in ipairs {"ld.global", "st.global"} do
  access[op] = function(case)
    return agrees(case, sim.global_sectors(case.width, case.addr, case.mask))
  end
end

access["cp.async.cg"] = function(case)
  local src = {}
  for lane = 1, 32 do src[lane] = (lane - 1) * case.width end
  return agrees(case, (sim.cpasync_cg_wavefronts(case.addr, src, case.mask)))
end

-- ---- mma_numerics.jsonl ----

-- Parses the name of an instruction: "mma.sync.m16n8k16.f32.bf16.bf16.f32" (D A
-- B C), "wgmma.k16.f32.f16.f16".
local function instruction(op)
  local k, d, a, b = op:match "^mma%.sync%.m%d+n%d+k(%d+)%.(%w+)%.(%w+)%.(%w+)"
  local wgmma = not k
  if wgmma then k, d, a, b = op:match "^wgmma%.k(%d+)%.(%w+)%.(%w+)%.(%w+)$" end
  if not k then return nil end
  for _, name in ipairs {d, a, b} do
    if not core.find_dtype(name) then return nil end
  end
  return {a = a, b = b, c = d, k = math.tointeger(tonumber(k)),
          wgmma = wgmma, arch = 90}
end

local function words(text)
  local list = {}
  for w in text:gmatch "%x+" do list[#list + 1] = tonumber(w, 16) end
  return list
end

-- Returns a check that the simulator computes the golden line's result D, both
-- as a single dot product and in a tile.
local function numerics(kind)
  return function(case)
    local a, b, c = words(case.A), words(case.B), tonumber(case.C, 16)
    local want = tonumber(case.D, 16)
    local dot = sim.mma_dot(kind, a, b, c)
    local tile = sim.mma_tile(kind, 1, 1, a, b, {c})[1]
    if dot == want and tile == want then return true end
    return false, ("%x (term by term), %x (tile)"):format(dot, tile)
  end
end

golden.ops.mma_numerics = setmetatable({}, {__index = function(ops, op)
  local kind = instruction(op)
  if not kind then return nil end
  local check = numerics(kind)
  rawset(ops, op, check)
  return check
end})

-- ---- the runner ----

local function load_modules()
  for _, name in ipairs(golden.modules) do
    local ok, message = pcall(require, name)
    if not ok and not tostring(message):find(
        ("module '%s' not found"):format(name), 1, true) then
      error(message, 0)
    end
  end
end

local function files_of(dir)
  local quoted = "'" .. dir:gsub("'", "'\\''") .. "'"
  local p <close> = assert(io.popen("ls -1 " .. quoted .. " 2>/dev/null"))
  local names = {}
  for name in p:lines() do
    local stem = name:match "^(.*)%.jsonl$"
    if stem then names[#names + 1] = stem end
  end
  return names
end

local function new_row(file, op)
  return {file = file, op = op, passed = 0, failed = 0, not_run = 0,
          agreed = 0, differed = 0, declined = 0, rejected = 0}
end

-- Runs one case. Returns "passed"; "failed" and our result; or "not_run" if no
-- check covers it. Returns "declined" if our code rejects the call and the
-- result in the data contradicts the operation's definition. Returns "agreed"
-- or "differed" for a case that the data marks as inconsistent.
local function judge(check, case)
  local flagged = case.self_consistent == false
  if not check then return "not_run" end
  local ok, result, got = pcall(check, case)
  if not ok then result, got = false, "error: " .. tostring(result) end
  if ok and result == nil then return "not_run" end
  if flagged then return result == true and "agreed" or "differed" end
  if result == "declined" or result == "rejected" then return result, got end
  if result then return "passed" end
  return "failed", got
end

local function text_of(got)
  if type(got) == "table" then return json.encode(got) end
  return tostring(got)
end

-- Returns one row for each op of a file, for the printed table. Appends
-- failures to `failures` and declined cases to `declined`.
local function run_file(dir, file, failures, declined, rejected)
  local rows, by_op, number = {}, {}, 0
  local ops = golden.ops[file] or {}
  local op_field = golden.op_field[file] or "op"
  local f <close> = assert(io.open(dir .. "/" .. file .. ".jsonl", "r"))
  for line in f:lines() do
    number = number + 1
    if line:find "%S" then
      local decoded, case = pcall(json.decode, line)
      local good = decoded and type(case) == "table" and
                   type(case[op_field]) == "string"
      local op = good and case[op_field] or "(malformed line)"
      local named = golden.families[file] and op:match "^%w+" or op
      local row = by_op[named]
      if not row then
        row = new_row(file, named)
        by_op[named], rows[#rows + 1] = row, row
      end
      local verdict, got = "failed", "no JSON object with an op"
      if good then verdict, got = judge(ops[op], case) end
      row[verdict] = row[verdict] + 1
      if verdict == "declined" then
        declined[#declined + 1] = ("  %s.jsonl:%d: %s of %s is not %s"):format(
          file, number, op, table.concat(case.args, ", "), case.out)
      end
      if verdict == "rejected" then
        rejected[#rejected + 1] = ("  %s.jsonl:%d: %s: %s"):format(file, number,
          op, got)
      end
      if verdict == "failed" then
        failures.count = failures.count + 1
        if #failures < golden.shown then
          failures[#failures + 1] = ("%s.jsonl:%d: %s\n  got %s"):format(
            file, number, line, text_of(got))
        end
      end
    end
  end
  return rows
end

local COLUMNS = {"file", "op", "passed", "failed", "not run", "declined",
                 "rejected", "flagged"}

local function cells(row)
  local flagged = row.agreed + row.differed
  return {row.file, row.op, row.passed, row.failed, row.not_run,
          row.declined == 0 and "" or row.declined,
          row.rejected == 0 and "" or row.rejected, flagged == 0 and "" or
          ("%d (%d as the data)"):format(flagged, row.agreed)}
end

local function print_table(rows, out)
  local lines, width = {COLUMNS}, {}
  for _, row in ipairs(rows) do lines[#lines + 1] = cells(row) end
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do
      width[i] = math.max(width[i] or 0, #tostring(cell))
    end
  end
  for _, line in ipairs(lines) do
    local text = {}
    for i, cell in ipairs(line) do
      local left = i <= 2 or i == 8
      text[i] = ("%" .. (left and "-" or "") .. width[i] .. "s"):format(cell)
    end
    out((table.concat(text, "  "):gsub("%s+$", "")))
  end
end

-- Folders of the data: {variable, default}. The environment variable names a
-- folder. If it is not set, the folder is the default or, with `beside`, the
-- folder of this name next to the first folder.
local FOLDERS = {{"CUTELUA_GOLDEN_DIR", "../shared/golden"},
                 {"CUTELUA_GOLDEN_APPROX_DIR", beside = "golden-approx"},
                 {"CUTELUA_GOLDEN_HOPPER_DIR", beside = "golden-hopper"},
                 {"CUTELUA_GOLDEN_PTX_DIR", beside = "golden-ptx"},
                 {"CUTELUA_GOLDEN_BLACKWELL_DIR", beside = "golden-blackwell"}}

local function beside(dir, name)
  return (dir:gsub("/*$", ""):match "^(.*/)" or "") .. name
end

-- Returns the folders that contain data or that an environment variable names.
-- If there are none, returns all folders that the data could be in.
local function folders()
  local list, missing = {}, {}
  local first = os.getenv(FOLDERS[1][1]) or FOLDERS[1][2]
  for _, f in ipairs(FOLDERS) do
    local named = os.getenv(f[1])
    local dir = named or f[2] or beside(first, f.beside)
    if named or #files_of(dir) > 0 then list[#list + 1] = dir
    else missing[#missing + 1] = dir end
  end
  return #list > 0 and list or missing
end

--- Runs every *.jsonl file of folders. Prints a table, the declined cases, the
-- first failing lines in full, and last "N passed, N failed". Neither number
-- counts cases without a check, declined cases, and cases that the data marks
-- as inconsistent.
---@param dirs? string|string[] by default those of the variables
-- CUTELUA_GOLDEN_DIR, CUTELUA_GOLDEN_APPROX_DIR, CUTELUA_GOLDEN_HOPPER_DIR,
-- CUTELUA_GOLDEN_PTX_DIR, CUTELUA_GOLDEN_BLACKWELL_DIR
---@param out? fun(line: string) print by default
---@return table? counts passed, failed, not_run, flagged, declined, rejected,
-- rows
---@return string? message when there is no such data
function golden.run(dirs, out)
  dirs, out = dirs or folders(), out or print
  if type(dirs) == "string" then dirs = {dirs} end
  load_modules()
  local rows, failures, declined, rejected = {}, {count = 0}, {}, {}
  for _, dir in ipairs(dirs) do
    local files = files_of(dir)
    if #files == 0 then
      return nil, ("no golden data (*.jsonl) in %s"):format(dir)
    end
    for _, file in ipairs(files) do
      for _, row in ipairs(run_file(dir, file, failures, declined,
                                      rejected)) do
        rows[#rows + 1] = row
      end
    end
  end
  local sum = {passed = 0, failed = 0, not_run = 0, flagged = 0,
               declined = #declined, rejected = #rejected, rows = rows}
  for _, row in ipairs(rows) do
    sum.passed = sum.passed + row.passed
    sum.failed = sum.failed + row.failed
    sum.not_run = sum.not_run + row.not_run
    sum.flagged = sum.flagged + row.agreed + row.differed
  end
  print_table(rows, out)
  if #declined > 0 then
    out(("%d declined: rejected, and the data's answer is not the operation's "
         .. "definition"):format(#declined))
  end
  for _, line in ipairs(declined) do out(line) end
  if #rejected > 0 then
    out(("%d rejected: not modelled, as the message says"):format(#rejected))
  end
  for _, line in ipairs(rejected) do out(line) end
  for _, failure in ipairs(failures) do out(failure) end
  if failures.count > #failures then
    out(("... and %d more"):format(failures.count - #failures))
  end
  out(("%d not run, %d flagged"):format(sum.not_run, sum.flagged))
  out(("%d passed, %d failed"):format(sum.passed, sum.failed))
  return sum
end

--- `make golden`: runs the data and exits, with 0 if nothing failed.
---@param dirs? string|string[]
function golden.main(dirs)
  local sum, message = golden.run(dirs)
  if not sum then
    io.stderr:write(message, "\n")
    os.exit(1, true)
  end
  os.exit(sum.failed == 0 and sum.passed > 0, true)
end

return golden
-- SPDX-License-Identifier: MIT
