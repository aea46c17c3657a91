// Package static holds the embedded files that pages need. Each is served under a name that
// contains a hash of its content, so that caches may keep it forever.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed files
var files embed.FS

// Prefix is the path under which [Handler] serves.
const Prefix = "/static/"

type file struct {
	body []byte
	kind string
}

// An index maps URLs and names to files.
type index struct {
	byURL map[string]file   // by URL, such as "/static/pages.0123456789ab.css"
	urls  map[string]string // URLs by name, such as "pages.css"
}

// shared are the stylesheets that others import in their first lines, in this order. indexed replaces
// the lines with the files, so that a browser needs only one file.
var shared = []string{"tokens.css", "factors.css"}

// kinds maps extensions to media types. Package mime is not used, because it would read and trust
// the machine's own table at each start.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// fonts are the files that stylesheets load by name. Their URLs replace the names.
var fonts = []string{"inter.woff2", "mono.woff2"}

// indexed reads the files when a page is first shown, because commands do not need them.
var indexed = sync.OnceValue(func() index {
	all := index{make(map[string]file), make(map[string]string)}
	for _, name := range fonts {
		all.add(name, read(name))
	}
	entries, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // the files are part of the binary
	}

	for _, e := range entries {
		body := withImports(read(e.Name()))
		for _, name := range fonts {
			body = bytes.ReplaceAll(body, []byte("url("+name+")"), []byte("url("+all.urls[name]+")"))
		}
		all.add(e.Name(), body)
	}
	return all
})

// withImports returns a stylesheet with the shared files in place of the lines that import them.
func withImports(body []byte) []byte {
	var imported []byte
	for _, name := range shared {
		if rest, ok := bytes.CutPrefix(body, []byte("@import \""+name+"\";\n")); ok {
			imported, body = append(imported, read(name)...), rest
		}
	}
	return append(imported, body...)
}

// read returns the content of an embedded file.
func read(name string) []byte {
	body, err := fs.ReadFile(files, "files/"+name)
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return body
}

// add adds a file under a URL that contains a hash of its content.
func (i index) add(name string, body []byte) {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	url := Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	kind := kinds[ext]
	if kind == "" {
		panic("static: no media type for " + name)
	}
	i.byURL[url], i.urls[name] = file{body, kind}, url
}

// Text returns the content of a file, such as "demo.js". It panics if the file does not exist.
func Text(name string) string { return string(read(name)) }

// URL returns the path of a file, such as "pages.css". It panics if the file does not exist.
func URL(name string) string {
	url, ok := indexed().urls[name]
	if !ok {
		panic("static: no file " + name)
	}
	return url
}

// Handler serves GET /static/{name}.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := indexed().byURL[r.URL.Path]
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}

		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Content-Length", strconv.Itoa(len(f.body)))
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		if f.kind == "font/woff2" {
			h.Set("Access-Control-Allow-Origin", "*") // framed samples of pages have an origin of their own
		}
		_, _ = w.Write(f.body) // fails only if the client has disconnected
	})
}
