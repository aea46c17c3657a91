package laml

import (
	"net/http"
	"strings"
)

// maxRanges bounds the ranges of one request: who asks for more gets the whole.
const maxRanges = 4

// ignoreOdd drops a Range that is better ignored, as RFC 9110, section 14.2,
// allows for any and demands for an unknown unit.
func ignoreOdd(h http.Header) {
	if r := h.Get("Range"); !strings.HasPrefix(r, "bytes=") || strings.Count(r, ",") >= maxRanges {
		h.Del("Range")
	}
}

// serveWAV serves the bytes of a recording as they came in, to anybody.
func (a *API) serveWAV(w http.ResponseWriter, r *http.Request, sid string) error {
	h := w.Header()
	allowAnyOrigin(h)
	rec, media, err := a.recordings.Open(r.Context(), r.PathValue("AccountSid"), sid)
	if err != nil {
		return err
	}
	defer media.Close()
	h.Set("Content-Type", "audio/x-wav")
	h.Set("Content-Disposition", `inline; filename="`+rec.Sid+`.wav"`)
	h.Set("ETag", `"`+rec.SHA256+`"`)
	// Not immutable: a recording can be deleted.
	h.Set("Cache-Control", "public, max-age=300, must-revalidate")
	h.Del("Pragma") // of an attempt to give the document
	// Whatever was uploaded, no browser takes it for a page.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	ignoreOdd(r.Header)
	http.ServeContent(w, r, "", rec.Created, media)
	return nil
}

// allowAnyOrigin lets the scripts of any page read the media, which needs no
// cookie (Fetch, section 3.3).
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Accept-Ranges, Content-Range, Content-Length, ETag, Content-Disposition")
}

// preflight serves OPTIONS /Recordings/{file} for media.
func (a *API) preflight(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Allow", "DELETE, GET, HEAD, OPTIONS")
	if _, ext := parseFile(r.PathValue("file")); ext != ".json" {
		allowAnyOrigin(h)
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Range, If-Range")
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
