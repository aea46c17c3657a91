package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// ETag returns the entity tag of some bytes (RFC 9110, section 8.8.3).
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// ServeDocument answers with bytes that were ready, or with 304 to who has them
// (RFC 9110, section 13.1.2). Parts of them are not given.
func ServeDocument(w http.ResponseWriter, r *http.Request, kind, etag string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", etag)
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Header["If-None-Match"] != nil || r.Header["If-Match"] != nil {
		r.Header.Del("Range")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have gone
	}
}
