// Package sdk serves the browser SDK as a script to include and as a module. The files are built
// from src/ (see build/) and committed, so that building the server needs only Go.
package sdk

//go:generate go run ./build

import (
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/selvage/selvage/internal/web"
)

//go:embed dist/selvage.js dist/selvage.mjs
var dist embed.FS

// Readme is the documentation of the SDK, in Markdown.
//
//go:embed README.md
var Readme []byte

// Prefix is the path under which [Handler] serves.
const Prefix = "/sdk/"

// A Script is one format of the SDK.
type Script struct {
	URL       string // contains a hash of the content
	Integrity string // the integrity attribute (Subresource Integrity, section 3.5)

	body []byte
	etag string
}

// scripts returns the formats by name. They are described at the first use.
var scripts = sync.OnceValue(func() map[string]Script {
	all := make(map[string]Script)
	for _, name := range []string{"selvage.js", "selvage.mjs"} {
		body, err := dist.ReadFile("dist/" + name)
		if err != nil {
			panic(err) // the files are part of the binary
		}
		all[name] = Describe(name, body)
	}
	return all
})

// Describe returns the script with the given name and content.
func Describe(name string, body []byte) Script {
	short, long := sha256.Sum256(body), sha512.Sum384(body)
	ext := path.Ext(name)
	return Script{
		URL:       Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(short[:6]) + ext,
		Integrity: "sha384-" + base64.StdEncoding.EncodeToString(long[:]),
		body:      body, etag: web.ETag(body),
	}
}

// Find returns the SDK as a script to include ("selvage.js") or as a module ("selvage.mjs"). It
// panics for any other name.
func Find(name string) Script {
	s, ok := scripts()[name]
	if !ok {
		panic("sdk: no script " + name)
	}
	return s
}

// Handler serves the following to pages of any origin:
//
//	GET /sdk/selvage.js       and selvage.mjs: the current version
//	GET /sdk/selvage.HASH.js  and selvage.HASH.mjs: this version, cacheable forever
func Handler() http.Handler {
	mux := http.NewServeMux()
	for name, s := range scripts() {
		mux.Handle("GET "+Prefix+name, serve(s, "public, max-age=300"))
		mux.Handle("GET "+s.URL, serve(s, "public, max-age=31536000, immutable"))
	}
	return mux
}

func serve(s Script, caching string) http.Handler {
	return web.AnyOrigin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", caching)
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
		web.ServeDocument(w, r, "text/javascript; charset=utf-8", s.etag, s.body)
	}), http.MethodGet)
}
