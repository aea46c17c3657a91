package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// ETag returns an entity tag for body (RFC 9110, section 8.8.3).
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// ServeDocument serves a prepared body, or answers 304 if the client already has it
// (RFC 9110, section 13.1.2). It ignores ranges.
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
		_, _ = w.Write(body) // an error means that the client has disconnected
	}
}
