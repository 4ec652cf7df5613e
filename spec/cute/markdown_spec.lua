-- Tests the conversion of Markdown to HTML against expected HTML.
local markdown = require "cutelua.text.markdown"

describe("markdown", function()
  it("is paragraphs, headings, lists, tables and code", function()
    local text = [[
# A `b`
one
two

- a *b* c
  d
- **e f**

| x | y z |
|---|---|
| `1` | |
## Next
```lua
a < b -- `c` *d*

- e
```
end]]
    assert.equal(table.concat({"<h1>A <code>b</code></h1>", "<p>one\ntwo</p>",
      "<ul><li>a <em>b</em> c d</li><li><strong>e f</strong></li></ul>",
      '<div class="scroll"><table><tr><th>x</th><th>y z</th></tr><tr><td>'
        .. "<code>1</code></td><td></td></tr></table></div>",
      "<h2>Next</h2>",
      '<pre class="scroll">a &lt; b -- `c` *d*\n\n- e</pre>', "<p>end</p>"},
      "\n"), markdown.html(text))
    assert.equal("", markdown.html "\n\n")
  end)

  it("has numbers, bars in cells, comments, and other addresses", function()
    local asked = {}
    assert.equal('<h2 id="a-b-c">A: b <code>C</code></h2>'
      .. '\n<p><a href="<x.md>">y</a><img src="<p.svg>" '
      .. 'alt="z">\n1. is no list</p>\n<ol start="3"><li>a b</li><li>c</li>'
      .. '</ol>\n<div class="scroll"><table><tr><th>a|b</th></tr></table>'
      .. "</div>", markdown.html("## A: b `C`\n[y](x.md)![z](p.svg)\n"
      .. "1. is no list\n\n<!-- made -->\n3. a\n   b\n4. c\n| a\\|b |\n|---|",
      function(href, picture)
        asked[#asked + 1] = {href, picture}
        return "<" .. href .. ">"
      end))
    assert.same({{"x.md", false}, {"p.svg", true}}, asked)
  end)

  it("leaves text that only looks like it", function()
    for text, want in pairs {["2 * 3 * 4"] = "2 * 3 * 4", ["a `b"] = "a `b",
        ["`*a* **b** [c](d)`"] = "<code>*a* **b** [c](d)</code>",
        ["#1 and -2"] = "#1 and -2", ["a[i](j)"] = 'a<a href="j">i</a>',
        ["\0001\0"] = "\u{FFFD}1\u{FFFD}"} do
      assert.equal(want, markdown.inline(text))
    end
  end)

  it("lets no text become an element, and no link a program", function()
    local evil = '<script>alert(1)</script> <img src=x onerror="a()"> &lt;'
    assert.equal("<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x "
      .. "onerror=&quot;a()&quot;&gt; &amp;lt;</p>", markdown.html(evil))
    for _, href in ipairs {"javascript:alert", "JavaScript:x",
        "data:text/html,x", "vbscript:x", "/javascript:x", "file:x"} do
      local text = ("[go](%s)"):format(href)
      assert.equal(text, markdown.inline(text))
    end
    assert.equal('<a href="https://a.b/c?d=1&amp;e#f">go</a>',
                 markdown.inline "[go](https://a.b/c?d=1&e#f)")
    assert.equal('<a href="x.md&quot;onclick=&quot;a">go</a>',
                 markdown.inline '[go](x.md"onclick="a)')
    assert.equal('<a href="../x.md#y">a <code>b</code></a>',
                 markdown.inline "[a `b`](../x.md#y)")
  end)
end)
-- SPDX-License-Identifier: MIT
