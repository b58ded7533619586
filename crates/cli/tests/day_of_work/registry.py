"""A registry for npm, cargo and pip on the loopback interface, with one package each. Usage: registry.py PORT"""

import base64
import hashlib
import http.server
import io
import json
import sys
import tarfile
import zipfile

PORT = int(sys.argv[1])
HERE = f"http://127.0.0.1:{PORT}"


def archive(files):
    """A compressed archive of files with their contents."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def npm(name, files, **more):
    """The pages of a package for npm."""
    manifest = {"name": name, "version": "1.0.0", **more}
    files = {f"package/{path}": text for path, text in files.items()}
    tarball = archive({"package/package.json": json.dumps(manifest), **files})
    digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"tarball": f"{HERE}/{name}.tgz", "integrity": f"sha512-{digest}"}
    versions = {"1.0.0": {**manifest, "dist": dist}}
    listing = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": versions}
    return {f"/npm/{name}": json.dumps(listing).encode(), f"/{name}.tgz": tarball}


def cargo(name):
    """The pages of a crate for cargo's sparse protocol."""
    root = f"{name}-1.0.0"
    manifest = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n'
    crate = archive({f"{root}/Cargo.toml": manifest, f"{root}/src/lib.rs": "pub fn day() -> u8 { 7 }\n"})
    entry = {"name": name, "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    entry["cksum"] = hashlib.sha256(crate).hexdigest()
    return {
        "/cargo/config.json": json.dumps({"dl": f"{HERE}/crates"}).encode(),
        f"/cargo/{name[:2]}/{name[2:4]}/{name}": json.dumps(entry).encode(),
        f"/crates/{name}/1.0.0/download": crate,
    }


def pip(name):
    """The pages of a wheel for pip."""
    out = io.BytesIO()
    about = f"{name}-1.0.0.dist-info"
    with zipfile.ZipFile(out, "w") as wheel:
        wheel.writestr(f"{name}.py", "day = 7\n")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    file = f"{name}-1.0.0-py3-none-any.whl"
    return {
        f"/simple/{name}/": f'<a href="/{file}">{file}</a>'.encode(),
        f"/{file}": out.getvalue(),
    }


CREATE = """#!/usr/bin/env node
const fs = require("fs");
fs.writeFileSync("package.json", JSON.stringify({ name: "app", version: "1.0.0", scripts: { test: "node test.js" } }));
fs.writeFileSync("test.js", "if (require('daypack') !== 7) process.exit(1)");
"""

PAGES = {
    **npm("create-day", {"create.js": CREATE}, bin={"create-day": "create.js"}),
    **npm("daypack", {"index.js": "module.exports = 7\n"}),
    **cargo("daycrate"),
    **pip("daywheel"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = PAGES.get(self.path.split("?")[0])
        self.send_response(200 if page else 404)
        kind = "text/html" if self.path.startswith("/simple") else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
print("ready", flush=True)
server.serve_forever()
