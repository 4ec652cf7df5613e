--- Markdown as HTML: what lessons and the documents are written in, and no
-- more of it: paragraphs, headings, lists, tables, code, emphasis, links.
-- What is text stays text: nothing of it becomes an element of its own.
local html = require "cute.html"

local markdown = {}

-- An address that a link may have: of the web, or a file's.
local function is_safe(href)
  return href:find "^https?://" or not href:find "^[%s/\\]*[%w+.-]*:"
end

--- A line of text: code, emphasis, links.
---@param text string
---@return string html
function markdown.inline(text)
  local codes = {}
  local out = html.escape(text):gsub("`([^`]+)`", function(code)
    codes[#codes + 1] = code
    return ("\0%d\0"):format(#codes)  -- html.escape leaves no \0
  end)
  out = out:gsub("%[([^%[%]]+)%]%(([^()%s]+)%)", function(said, href)
    return is_safe(href) and ('<a href="%s">%s</a>'):format(href, said) or nil
  end)
  out = out:gsub("%*%*([^%s*][^*]*)%*%*", "<strong>%1</strong>")
    :gsub("%*(%a[^*]*)%*", "<em>%1</em>")
  return (out:gsub("%z(%d+)%z", function(n)
    return "<code>" .. codes[tonumber(n)] .. "</code>"
  end))
end

local inline = markdown.inline

local function row(line, cell)
  local out = {}
  for text in (line:match "^|(.*)|%s*$" .. "|"):gmatch "%s*(.-)%s*|" do
    out[#out + 1] = ("<%s>%s</%s>"):format(cell, inline(text), cell)
  end
  return "<tr>" .. table.concat(out) .. "</tr>"
end

local function table_of(lines)
  local out = {'<div class="scroll"><table>'}
  for i, line in ipairs(lines) do
    if i ~= 2 then out[#out + 1] = row(line, i == 1 and "th" or "td") end
  end
  out[#out + 1] = "</table></div>"
  return table.concat(out)
end

local function list_of(lines)
  local items = {}
  for _, line in ipairs(lines) do
    local text = line:match "^%- (.*)$"
    if text then items[#items + 1] = text
    else items[#items] = items[#items] .. " " .. line:match "^%s*(.*)$" end
  end
  for i, text in ipairs(items) do items[i] = inline(text) end
  return "<ul><li>" .. table.concat(items, "</li><li>") .. "</li></ul>"
end

--- A text of several blocks.
---@param text string
---@return string html
function markdown.html(text)
  local out, block, kind = {}, {}, nil
  local function close()
    local said = table.concat(block, "\n")
    if kind == "code" then
      out[#out + 1] = '<pre class="scroll">' .. html.escape(said) .. "</pre>"
    elseif kind == "list" then out[#out + 1] = list_of(block)
    elseif kind == "table" then out[#out + 1] = table_of(block)
    elseif kind == "text" then
      out[#out + 1] = "<p>" .. inline(said) .. "</p>"
    end
    block, kind = {}, nil
  end
  local function add(want, line)
    if kind ~= want then close() end
    kind, block[#block + 1] = want, line
  end
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local level, title = line:match "^(#+) (.*)$"
    if line:find "^```" then
      local open = kind ~= "code"
      close()
      kind = open and "code" or nil
    elseif kind == "code" then block[#block + 1] = line
    elseif line == "" then close()
    elseif level then
      close()
      out[#out + 1] = ("<h%d>%s</h%d>"):format(#level, inline(title), #level)
    elseif line:find "^|.*|%s*$" then add("table", line)
    elseif line:find "^%- " or kind == "list" then add("list", line)
    else add("text", line) end
  end
  close()
  return table.concat(out, "\n")
end

return markdown
