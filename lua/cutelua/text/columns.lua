--- Formats tables as text.
local columns = {}

--- Returns rows of cells as lines of text, with the first `left` columns
-- left-aligned.
---@param rows string[][]
---@param left integer
---@return string
function columns.table(rows, left)
  local width, out = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, utf8.len(cell) or #cell)
    end
  end
  for k, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local pad = (" "):rep(width[i] - (utf8.len(cell) or #cell))
      cells[i] = i <= left and cell .. pad or pad .. cell
    end
    out[k] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  return table.concat(out, "\n")
end

return columns
-- SPDX-License-Identifier: MIT
