-- Tests the server of `cutelua web`: its responses, the hosts that it accepts,
-- and how it ends.
local http = require "cutelua.program.http"
local json = require "dkjson"
local support = require "spec.support"

-- A client that starts the server and sends each text on its own connection.
-- Meanwhile, two other connections must not block the server: one is silent,
-- and one sends only the beginning of a request. The server drops such clients
-- after 30 s. Responses must arrive within 25 s, so the test detects a blocked
-- server, however slow the machine is.
local CLIENT = [=[
import json, re, signal, socket, subprocess, sys
program, folder, requests = sys.argv[1], sys.argv[2], json.load(sys.stdin)
p = subprocess.Popen([program, "web", "--port", "0", "--folder", folder],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
line = p.stdout.readline().decode()
port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line).group(1))
def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=25)
def ask(text):
    s, out = connect(), []
    s.sendall(text.encode())
    while True:
        piece = s.recv(1 << 20)
        if not piece: return b"".join(out).decode()
        out.append(piece)
silent, slow = connect(), connect()
slow.sendall(b"GET /a.txt HTT")
answers = [ask(requests[0])]
slow.sendall(b"P/1.1\r\nHost: localhost\r\n\r\n")
late = slow.recv(65536).decode()
answers += [ask(r) for r in requests[1:]]
# readers that take nothing do not hold up others
lazy = [connect() for _ in range(4)]
for s in lazy: s.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
while not lazy[3].recv(1): pass
beside = [ask(requests[0]) for _ in range(3)]
whole = ask("GET /big HTTP/1.1\r\nHost: [::1]:80\r\n\r\n")
busy = subprocess.run([program, "web", "--port", str(port), "--folder", folder],
                      capture_output=True)
other = None
try:
    name = socket.gethostbyname(socket.gethostname())
    if not name.startswith("127."):
        socket.create_connection((name, port), timeout=2)
        other = "heard at " + name
except OSError:
    pass
p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=60)
print(json.dumps({"line": line, "answers": answers, "late": late,
  "beside": beside, "whole": len(whole),
  "busy": busy.stderr.decode(), "busycode": busy.returncode, "port": port,
  "other": other, "err": err.decode(), "code": p.returncode}))
]=]

local function get(target, host)
  return ("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"):format(target,
    host or "127.0.0.1:8000")
end

describe("a server's answers", function()
  local files = {["index.html"] = function(name) return "<" .. name .. ">" end,
    ["a b.wasm"] = function() return "\0asm" end,
    ["gone.js"] = function() return nil end}

  local function answer(request)
    local head, body = http.answer(request, files)
    return head:match "^HTTP/1%.1 (%d%d%d) ", body, head
  end

  it("are files, with their types and isolation headers", function()
    local code, body, head = answer(get "/")
    assert.same({"200", "<index.html>"}, {code, body})
    for _, line in ipairs {"Content-Type: text/html; charset=utf-8",
        "Content-Length: 12", "Cross-Origin-Opener-Policy: same-origin",
        "Cross-Origin-Embedder-Policy: require-corp",
        "X-Content-Type-Options: nosniff"} do
      assert.truthy(head:find("\r\n" .. line .. "\r\n", 1, true), line)
    end
    assert.truthy(head:find "\r\n\r\n$")
    assert.equal("200", (answer(get "/index.html?x=1")))
    code, body, head = answer(get "/a%20b.wasm")
    assert.same({"200", "\0asm"}, {code, body})
    assert.truthy(head:find("Content-Type: application/wasm", 1, true))
    code, body, head = answer "HEAD /index.html HTTP/1.0\nhost:localhost \n\n"
    assert.same({"200", ""}, {code, body})
    assert.truthy(head:find("Content-Length: 12", 1, true))
  end)

  it("are sentences if there is no file", function()
    for request, want in pairs {
      [get "/x.html"] = "404 there is no such file here",
      [get "/../secret"] = "404 there is no such file here",
      [get "/%2e%2e/secret"] = "404 there is no such file here",
      [get "/..%2fsecret"] = "404 there is no such file here",
      [get "//etc/passwd"] = "404 there is no such file here",
      [get "/index.html%00.js"] = "404 there is no such file here",
      [get "/gone.js"] = "500 the file cannot be read",
      [get "/%zz"] = "400 this path names no file",
      [get "/a%2"] = "400 this path names no file",
      [get "/a%"] = "400 this path names no file",
      [get "http://other/"] = "400 this path names no file",
      [get "index.html"] = "400 this path names no file",
      ["GET /a b HTTP/1.1\r\n\r\n"] = "400 this is not an HTTP request",
      ["\22\3\1\0\r\n\r\n"] = "400 this is not an HTTP request",
      ["get / HTTP/1.1\r\n\r\n"] = "400 this is not an HTTP request",
      ["GET /\r\n\r\n"] = "400 this is not an HTTP request",
      ["GET / HTTP/2.0\r\n\r\n"] = "505 HTTP/2.0 is not supported",
      ["POST / HTTP/1.1\r\nHost: [::1]\r\n\r\n"] =
        "405 only GET and HEAD are supported",
    } do
      local code, body = answer(request)
      assert.equal(want .. "\n", code .. " " .. body)
    end
    local _, _, head = answer(
      "PUT / HTTP/1.1\r\nA: b\r\nHost: LOCALHOST:1\r\n\r\n")
    assert.truthy(head:find("\r\nAllow: GET, HEAD\r\n", 1, true))
  end)
end)

describe("a request's host", function()
  it("is a name of the loopback", function()
    for host, want in pairs {["127.0.0.1"] = 200, ["localhost"] = 200,
        ["localhost:8000"] = 200, ["[::1]:8000"] = 200, ["evil.example"] = 421,
        ["127.0.0.1.evil.example:8000"] = 421, ["localhost:80:80"] = 421,
        ["localhost@evil.example"] = 421, ["192.168.0.1"] = 421,
        ["0.0.0.0"] = 421, ["localhost\r\nHost: evil"] = 400,
        ["evil\r\nHost: localhost"] = 400, [""] = 421} do
      local head = http.answer(get("/", host),
        {["index.html"] = function() return "" end})
      assert.equal(tostring(want), head:match "^HTTP/1.1 (%d+)", host)
    end
    for _, request in ipairs {"GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Host: localhost\r\n\r\n"} do
      assert.equal("a request needs exactly one Host header\n",
                   (select(2, http.answer(request, {}))))
    end
  end)
end)

describe("cutelua web", function()
  local dir
  setup(function()
    dir = support.folder()
    support.write(dir .. "/index.html", "the page")
    support.write(dir .. "/a.txt", ("0123456789"):rep(1e5))
    support.write(dir .. "/.hidden", "hidden")
    os.execute(("cd %s; mkdir sub; echo sub >sub/x; ln -s a.txt link; "
      .. "ln -s /etc/passwd passwd; ln -s sub folder; mkfifo pipe; "
      .. "truncate -s 48M big"):format(dir))
  end)
  teardown(function() support.remove(dir) end)

  it("serves its folder to this machine, and ends by Ctrl-C #long", function()
    local out, err, code = support.exec({"python3", "-c", CLIENT,
      support.program, dir}, {stdin = json.encode {get "/",
        get("/" .. ("x"):rep(http.MOST)), get "/a.txt", get "/../a.txt",
        get "/.hidden", get "/link",
        get "/passwd", get "/folder/x", get "/sub/x", get "/sub", get "/pipe",
        get("/", "evil.example")}})
    assert.equal(0, code, err)
    local found = json.decode(out)
    local answers = found.answers
    assert.truthy(answers[1]:find "^HTTP/1.1 200 OK\r\n.*\r\n\r\nthe page$")
    assert.truthy(answers[2]:find "^HTTP/1.1 431 .*longer than 8192 bytes\n$")
    assert.equal(1e6, #answers[3]:match "\r\n\r\n(.*)$")
    assert.truthy(answers[4]:find "^HTTP/1.1 404 ")
    for i = 5, 11 do assert.truthy(answers[i]:find "^HTTP/1.1 404 ", i) end
    assert.truthy(answers[12]:find "^HTTP/1.1 421 ")
    for i = 1, 3 do assert.equal(answers[1], found.beside[i]) end
    assert.truthy(found.whole > 48 << 20)
    assert.truthy(found.late:find "^HTTP/1.1 200 OK\r\n")
    assert.equal(1, found.busycode)
    assert.equal(("cutelua web: port %d: Address already in use; --port 0 "
      .. "chooses a free one [io]\n"):format(found.port), found.busy)
    assert.is_nil(found.other)
    assert.equal(130, found.code)
    assert.truthy(found.err:find "interrupted", found.err)
  end)

  it("reports where it looked for a page", function()
    local _, err, code = support.exec {support.program, "web", "--folder",
      dir .. "/no"}
    assert.equal(1, code)
    assert.equal(("cutelua web: the page is not in %s/no: build it with make "
      .. "web, or pass its location with --folder [io]\n"):format(dir), err)
    os.execute(("cp %s %s/cutelua"):format(support.program, dir))
    _, err, code = support.exec {dir .. "/cutelua", "web"}
    assert.equal(1, code)
    assert.truthy(err:find(("not in %s/web nor in %s/../share/cutelua/web: ")
      :format(dir, dir), 1, true), err)
    local _, why, bad = support.exec {support.program, "web", "--port", "70000"}
    assert.equal(2, bad)
    assert.truthy(why:find("--port", 1, true), why)
  end)
end)
-- SPDX-License-Identifier: MIT
