--- Converts a record of findings to SARIF 2.1.0. Code hosts and editors show
-- SARIF at the changed lines of a file.
local codes = require "cutelua.findings.codes"
local uris = require "cutelua.text.uri"

local sarif = {}

local SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/"
  .. "schemas/sarif-schema-2.1.0.json"

-- Returns a path as a URI; a relative path as a relative reference.
local function uri(path)
  local scheme = path:find "^/" and "file://" or ""
  return scheme .. uris.escape((path:gsub("^%./", "")))
end

-- Returns the SARIF rules for all codes of the findings, and the index of each
-- rule.
local function rules_of(found)
  local used, list, index = {}, {}, {}
  for _, f in ipairs(found.findings) do used[f.code] = true end
  local function add(code, kind, about)
    index[code] = #list
    list[#list + 1] = {id = code,
      shortDescription = {text = about or (code:gsub("[/-]", " "))},
      help = {text = codes.page(kind)}}
  end
  for _, c in ipairs(codes.list()) do
    if used[c.code] then add(c.code, c.kind, c.about) end
  end
  for _, f in ipairs(found.findings) do
    if not index[f.code] then add(f.code, f.kind) end
  end
  return list, index
end

local function region(p)
  return {startLine = p.line, startColumn = p.column, endLine = p.line,
          endColumn = p.end_column, snippet = p.text and {text = p.text}}
end

-- Returns a finding's place in SARIF's form. An embedded module, whose name is
-- in brackets, is not a file of the script's author, so its location is a
-- logical one.
local function location(p, id)
  local out = {id = id, message = {text = p.role}}
  if p.file:find "^%[" then
    out.logicalLocations = {{fullyQualifiedName = p.file .. ":" .. p.line,
                             kind = "module"}}
  else
    out.physicalLocation = {artifactLocation = {uri = uri(p.file)},
                            region = region(p)}
  end
  return out
end

-- Returns the index of the first place in a file of the author, else 1.
local function own_place(places)
  for i, p in ipairs(places) do
    if not p.file:find "^%[" then return i end
  end
  return 1
end

-- Returns the steps of a schedule as a code flow; nil if a step's line is
-- unknown.
local function flow(schedule)
  local steps = {}
  for i, at in ipairs(schedule and schedule.lines or {}) do
    local file, line = at:match "^(.*):(%d+)$"
    if not file or file:find "^%[" then return nil end
    steps[i] = {location = {physicalLocation = {
        artifactLocation = {uri = uri(file)},
        region = {startLine = math.tointeger(line)}},
      message = {text = "warp " .. schedule.turns[i]}}}
  end
  return steps[1] and {{threadFlows = {{locations = steps}}}} or nil
end

local function fixes(f)
  local list = {}
  for i, e in ipairs(f.edits or {}) do
    local by, changes = {}, {}
    for _, c in ipairs(e.changes) do
      local one = by[c.file]
      if not one then
        one = {artifactLocation = {uri = uri(c.file)}, replacements = {}}
        by[c.file], changes[#changes + 1] = one, one
      end
      table.insert(one.replacements, {
        deletedRegion = {startLine = c.start.line,
          startColumn = c.start.column, endLine = c.stop.line,
          endColumn = c.stop.column},
        insertedContent = {text = c.text}})
    end
    list[i] = {description = {text = e.description}, artifactChanges = changes}
  end
  return list[1] and list or nil
end

local function result(f, index)
  local text = f.message
  if f.advice then text = text .. "\n" .. f.advice end
  local main, related = own_place(f.places), {}
  for i, p in ipairs(f.places) do
    if i ~= main then related[#related + 1] = location(p, i) end
  end
  local p = f.places[main]
  return {ruleId = f.code, ruleIndex = index[f.code], level = f.severity,
    message = {text = text}, locations = {p and location(p, main)},
    relatedLocations = related[1] and related,
    codeFlows = flow(f.counterexample and f.counterexample.schedule),
    fixes = fixes(f),
    partialFingerprints = {["cutelua/v1"] = ("%s %s %s"):format(f.code,
      f.kernel or "", p and p.text and p.text:match "^%s*(.-)%s*$" or "")},
    properties = {kind = f.kind, kernel = f.kernel, launch = f.launch,
      operands = f.operands, counterexample = f.counterexample}}
end

-- Returns notifications, in SARIF's form, about parts that were not checked.
local function notifications(found)
  local list = {}
  for i, o in ipairs(found.not_checked) do
    list[i] = {level = "note", message = {text = ("not checked: %s%s"):format(
      o.kernel and ("kernel %s: "):format(o.kernel) or "", o.text)}}
  end
  return list
end

--- Returns the SARIF log of a record of findings, as plain data.
---@param found table of cutelua.findings
---@return table
function sarif.of(found)
  local rules, index = rules_of(found)
  local results = {}
  for i, f in ipairs(found.findings) do results[i] = result(f, index) end
  return {["$schema"] = SCHEMA, version = "2.1.0", runs = {{
    tool = {driver = {name = found.tool.name, version = found.tool.version,
      rules = rules}},
    columnKind = "unicodeCodePoints",
    invocations = {{executionSuccessful = found.verdict ~= "error",
      exitCode = found.exit_code,
      toolExecutionNotifications = notifications(found)}},
    results = results,
    properties = {command = found.command, verdict = found.verdict,
                  checked = found.checked}}}}
end

return sarif
-- SPDX-License-Identifier: MIT
