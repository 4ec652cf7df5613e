--- Converts pictures to HTML pages. In a page, hovering over a cell highlights
-- the cells of its thread in all panels, a slider steps through passes, and
-- layouts can be edited. The JavaScript of the pages is in script.lua.
local html = require "cutelua.text.html"
local palette = require "cutelua.draw.palette"
local script = require "cutelua.draw.script"

local page = {}

-- The largest number of cells of a layout that the user enters in the page.
local LIMIT = 1 << 15

--- The style that a page needs for pictures, in addition to `page.script`.
page.style = [[
.picture p { margin: 4px 0; }
.picture .tools { display: flex; flex-wrap: wrap; gap: 6px 14px;
  align-items: center; padding: 10px 0 2px; position: sticky; top: 0;
  background: var(--back); z-index: 1; }
.picture .step { display: inline-flex; flex-wrap: wrap; gap: 6px;
  align-items: center; }
.picture .slider { width: min(220px, 40vw); }
.picture .one { width: 8ch; font: inherit; color: var(--fore);
  background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: 2px 6px; }
.picture .fit[hidden], .picture .one[hidden] { display: none; }
.picture .said { min-height: 1.5em; }
.picture .panels { display: grid; gap: 12px 28px; justify-content: start;
  grid-template-columns: repeat(var(--panels), auto); }
.picture h2 .dim { font-weight: 400; font-size: 13px; }
.picture .panel { min-width: 0; }
.picture .scroll { overflow-x: auto; }
.picture .panel svg { max-width: none; display: block; height: auto;
  width: calc(var(--w) * var(--scale, 1)); }
.picture.meet .panel { align-self: end;
  width: calc(var(--w) * var(--scale, 1)); }
.picture.meet .panels { overflow-x: auto; }
.picture .panel text { font: 11px ui-monospace, SFMono-Regular, Menlo,
  Consolas, "DejaVu Sans Mono", monospace; fill: var(--dim); }
.picture .c text { fill: #1d2127; text-anchor: middle; pointer-events: none; }
.picture .grid .c rect { stroke: var(--back); }
.picture .none { fill: var(--panel); } .picture .idle { fill: var(--rule); }
.picture .s { text-anchor: middle; } .picture .e { text-anchor: end; }
.picture .c { transition: opacity .12s; cursor: default; }
.picture.some .c { opacity: .3; }
.picture.some .c.lit { opacity: 1; }
.picture .grid .c.lit rect { stroke: var(--fore); stroke-width: 1.4; }
.picture .edit { display: flex; gap: 8px; align-items: baseline; }
.picture .edit input { max-width: 100%; min-width: 0; font-size: 13px;
  padding: 4px 8px; border: 1px solid var(--rule); border-radius: 6px;
  background: var(--panel); color: var(--fore); }
.picture .error:empty { display: none; }
.picture .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; }
.picture .legend i { display: inline-block; width: 10px; height: 10px;
  border-radius: 2px; margin-right: 6px; }
@media (max-width: 900px) {
  .picture:not(.meet) .panels { display: block; }
}
@media (prefers-reduced-motion: reduce) { .picture .c { transition: none; } }
]]

page.script = script.algebra .. script.picture

-- Returns the first n entries of a list, with false in place of nil, because
-- lists in JSON have no gaps.
local function dense(list, n)
  local out = {}
  for i = 1, n do
    local v = list[i]
    out[i] = v ~= nil and (type(v) == "table" and tostring(v) or v)
  end
  return out
end

-- Returns, for each cell of a panel, the threads and values that hold it in
-- addition to the first ones. The result is a table whose keys are cell numbers
-- as text, or nil if no cell has more than one holder.
local function more_of(panel)
  if not panel.more or not next(panel.more) then return nil end
  local out = {}
  for i, list in pairs(panel.more) do
    out[tostring(i)] = table.move(list, 1, #list, 1, {})
  end
  return out
end

local function panel_of(panel, p)
  local out = {name = panel.name, palette = panel.palette or p.palette,
    place = panel.place, rowName = panel.row_name,
    columnName = panel.column_name, rowLabels = panel.row_labels,
    columnLabels = panel.column_labels}
  if panel.bars then
    out.bars, out.last, out.unit = panel.bars, panel.last, panel.unit
    out.legend = panel.legend
    return out
  end
  local n = panel.rows * panel.columns
  out.rows, out.columns = panel.rows, panel.columns
  out.label, out.class = dense(panel.label, n), dense(panel.class, n)
  out.ids, out.more = {}, more_of(panel)
  for name, list in pairs(panel.ids) do out.ids[name] = dense(list, n) end
  local edit = panel.edit
  if edit and panel.by then
    out.edit = {text = edit.text, tile = edit.tile, turned = edit.turned,
      across = edit.across, bits = edit.bits, by = panel.by,
      labels = panel.labels}
  else
    out.caption = panel.caption
  end
  out.note = panel.note
  return out
end

--- Returns a picture in the form that the page's script takes.
---@param p table see cutelua.draw.picture
---@return table
function page.data(p)
  local data = {captions = p.captions, panels = {}, limit = LIMIT,
    unlabelled = p.unlabelled, meet = p.meet, palettes = {}}
  for _, name in ipairs {"hues", "shades", p.palette} do
    local list = {}
    for i, c in ipairs(palette.colours(name)) do list[i] = palette.hex(c) end
    data.palettes[name] = list
  end
  for i, panel in ipairs(p.panels) do data.panels[i] = panel_of(panel, p) end
  return data
end

-- Returns the largest number of panels that a picture places side by side.
local function beside(p)
  local most = 1
  for _, panel in ipairs(p.panels) do
    most = math.max(most, panel.place and panel.place[2] or 1)
  end
  return most
end

--- Returns the page of a picture.
---@param p table
---@return string
function page.of(p)
  return html.page {title = (p.title or "picture"):match "[^\n]*",
    style = page.style, data = page.data(p),
    body = ('<div id="picture" style="--panels: %d"></div>\n<noscript><p>'
      .. "This picture is drawn by a script.</p></noscript>"):format(beside(p)),
    script = page.script
      .. 'cutePicture(document.getElementById("picture"), page);\n'}
end

return page
-- SPDX-License-Identifier: MIT
