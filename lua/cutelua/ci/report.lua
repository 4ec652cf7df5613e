--- Writes the results of `cutelua ci`: one record of all findings, which is
-- also the source of the SARIF file; a Code Quality report for GitLab; and a
-- badge.
local core = require "cute.core"
local json = require "cutelua.text.json"
local sys = require "cute.sys"

local report = {}

--- The statuses of checked scripts, the worst first: {status, words in a
-- summary, color of a badge}.
report.STATUSES = {
  {"bug", "with bugs", "e05d44"}, {"error", "with errors", "fe7d37"},
  {"incomplete", "not covered", "dfb317"}, {"ok", "ok", "4c1"},
  {"idle", "without launches", "9f9f9f"}}

local EXIT = {bug = 1, error = 1, incomplete = 3, ok = 0, idle = 1}

--- Returns how many of the checked scripts (items) have each status, and the
-- worst status; "idle" if there are no items.
---@param items table[]
---@return table<string, integer> counts
---@return string worst
function report.counts(items)
  local counts, worst = {}, nil
  for _, item in ipairs(items) do
    counts[item.status] = (counts[item.status] or 0) + 1
  end
  for _, row in ipairs(report.STATUSES) do
    worst = worst or counts[row[1]] and row[1]
  end
  return counts, worst or "idle"
end

--- Returns the exit code for the worst status.
---@param worst string
---@return integer
function report.exit_code(worst) return EXIT[worst] end

local function appended(to, list, change)
  for _, one in ipairs(list or {}) do
    local copy = {}
    for k, v in pairs(one) do copy[k] = v end
    change(copy)
    to[#to + 1] = copy
  end
end

--- Returns one record of the findings of all checked scripts (items). Its field
-- `checked` names the script of each launch.
---@param items table[]
---@return table
function report.record(items)
  local _, worst = report.counts(items)
  local all = {tool = {name = "cutelua", version = sys.version}, command = "ci",
    verdict = worst == "idle" and "error" or worst,
    exit_code = EXIT[worst], findings = {}, checked = {}, not_checked = {}}
  for _, item in ipairs(items) do
    local before = #all.findings
    appended(all.findings, item.record.findings, function(f)
      f.follows = f.follows and f.follows + before
    end)
    appended(all.checked, item.record.checked, function(c)
      c.script = item.path
    end)
    appended(all.not_checked, item.record.not_checked, function(o)
      o.text = ("%s: %s"):format(item.path, o.text)
    end)
    if item.status == "idle" then
      table.insert(all.not_checked, {what = "launches", text =
        item.path .. ": the script launched nothing"})
    end
  end
  return all
end

-- GitLab's words for severities.
local SEVERITY = {error = "major", warning = "minor", note = "info"}

--- Returns a Code Quality report of GitLab.
---@param record table
---@return string
function report.gitlab(record)
  local list, known = {}, {}
  for i, f in ipairs(record.findings) do
    local p = f.places[1]
    local id = ("%s %s %s %s"):format(f.code, p.file, f.kernel, p.text)
    known[id] = (known[id] or 0) + 1
    list[i] = {description = f.message, check_name = f.code,
      fingerprint = core.sha256(id .. known[id]),
      severity = SEVERITY[f.severity],
      location = {path = p.file, lines = {begin = p.line}}}
  end
  return json.encode(list) .. "\n"
end

-- Returns the text and the color of a badge.
local function message_of(items)
  local counts, worst = report.counts(items)
  for _, row in ipairs(report.STATUSES) do
    if row[1] == worst and counts[worst] then
      return ("%d %s"):format(counts[worst], row[2]), row[3]
    end
  end
  return "nothing checked", "9f9f9f"
end

local SVG = [==[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img"
 aria-label="cutelua: %s"><title>cutelua: %s</title>
<rect width="%d" height="20" rx="3" fill="#555"/>
<rect x="54" width="%d" height="20" rx="3" fill="#%s"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="42">cutelua</text>
<text x="60" y="14" textLength="%d">%s</text></g></svg>
]==]

-- The width of a character of a badge in pixels.
local CHARACTER = 6.5

--- Returns a badge: an SVG picture if the file's name ends in .svg, else the
-- JSON of an endpoint of shields.io.
---@param items table[]
---@param path string
---@return string
function report.badge(items, path)
  local text, color = message_of(items)
  if not path:find "%.svg$" then
    return json.encode {schemaVersion = 1, label = "cutelua", message = text,
                        color = color} .. "\n"
  end
  local width = math.ceil(#text * CHARACTER)
  return SVG:format(width + 66, text, text, width + 66, width + 12, color,
                    width, text)
end

return report
-- SPDX-License-Identifier: MIT
