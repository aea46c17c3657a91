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

// shared is the first line of a stylesheet that needs the colors and fonts of all pages. indexed
// replaces the line with them, so that a browser needs only one file.
const shared = "@import \"tokens.css\";\n"

// kinds maps extensions to media types. Package mime is not used, because it would read and trust
// the machine's own table at each start.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// indexed reads the files when a page is first shown, because commands do not need them.
var indexed = sync.OnceValue(func() index {
	all := index{make(map[string]file), make(map[string]string)}
	entries, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	for _, e := range entries {
		body, err := fs.ReadFile(files, "files/"+e.Name())
		if err != nil {
			panic(err)
		}

		if rest, ok := bytes.CutPrefix(body, []byte(shared)); ok {
			tokens, err := fs.ReadFile(files, "files/tokens.css")
			if err != nil {
				panic(err)
			}
			body = append(bytes.Clone(tokens), rest...)
		}

		sum := sha256.Sum256(body)
		ext := path.Ext(e.Name())
		url := Prefix + strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		kind := kinds[ext]
		if kind == "" {
			panic("static: no media type for " + e.Name())
		}
		all.byURL[url], all.urls[e.Name()] = file{body, kind}, url
	}
	return all
})

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
		_, _ = w.Write(f.body) // fails only if the client has disconnected
	})
}
