package laml

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// maxRanges is the maximum number of ranges per request. A request with more ranges gets the whole
// file.
const maxRanges = 4

// beyond is a range that begins after the end of any file.
const beyond = "9223372036854775807-"

// cleanRange changes the Range header so that http.ServeContent handles it correctly. It removes a
// header with an unknown unit, as RFC 9110, section 14.2 requires, or with too many ranges, as the
// same section permits. For a request for the last 0 bytes, http.ServeContent would respond with an
// invalid Content-Range. cleanRange replaces this range with a range that cannot be satisfied, as
// section 14.1.2 requires.
func cleanRange(h http.Header) {
	ranges, known := strings.CutPrefix(h.Get("Range"), "bytes=")
	specs := strings.Split(ranges, ",")
	if !known || len(specs) > maxRanges {
		h.Del("Range")
		return
	}

	for i, spec := range specs {
		first, suffix, _ := strings.Cut(spec, "-")
		n, err := strconv.ParseInt(strings.TrimSpace(suffix), 10, 64)
		if strings.TrimSpace(first) == "" && err == nil && n == 0 {
			specs[i] = beyond
		}
	}
	h.Set("Range", "bytes="+strings.Join(specs, ","))
}

// serveMedia serves a recording's media to callers whom the project permits to fetch it.
func (a *API) serveMedia(w http.ResponseWriter, r *http.Request, sid string, f recordings.Format) error {
	allowAnyOrigin(w.Header())
	wanted, download, err := parseWanted(r, f)
	if err != nil {
		return err
	}

	owner, auth, err := a.mayFetch(r, sid, wanted.Format)
	if err != nil {
		return err
	}

	media, err := a.recordings.Render(r.Context(), owner, sid, wanted)
	if err != nil {
		return err
	}
	defer media.Close()

	mediaHeaders(w.Header(), media, auth, download)
	defer a.noteAccess(w, r, owner, media, wanted.Format)
	switch {
	case a.offload != nil && media.Stored:
		a.handOver(w, media.Recording.MediaKey)
		return nil
	case a.redirect != nil && media.Stored && r.Method == http.MethodGet:
		return a.redirectTo(w, r, media)
	}

	cleanRange(r.Header)
	content := media.Content
	if media.Encoded {
		content = a.inTurn(w, r, content)
	}
	return sendContent(w, r, media.Recording.Created, content)
}

// noteAccess records that a client has requested media. The amount of data comes from the
// response's headers or, if another server sends the stored file, from the recording.
func (a *API) noteAccess(
	w http.ResponseWriter, r *http.Request, o recordings.Owner, media *recordings.Rendition, f recordings.Format,
) {
	if r.Method == http.MethodHead {
		return
	}
	length := media.Recording.Bytes
	if !media.Stored || a.offload == nil && a.redirect == nil {
		var err error
		length, err = strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
		if err != nil { // for example a 304
			return
		}
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	a.recordings.NoteAccess(r.Context(), recordings.Access{
		RecordingID: media.Recording.ID,
		Actor:       o.Actor(),
		Address:     address,
		Format:      f,
		Bytes:       length,
	})
}

// parseWanted parses the form in which the media is requested. download reports whether the browser
// should save it.
func parseWanted(r *http.Request, f recordings.Format) (w recordings.Wanted, download bool, err error) {
	w.Format = f
	if r.URL.RawQuery == "" {
		return w, false, nil
	}

	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return w, false, problem.New(problem.Malformed, "bad_request", "the query is invalid")
	}
	var wantsOriginal bool
	err = errors.Join(
		parseBool(query, "Download", &download),
		parseBool(query, original, &wantsOriginal),
		parseOneOrTwo(query, "RequestedChannels", &w.Channels),
		parseOneOrTwo(query, "Channel", &w.Leg),
	)
	if err != nil {
		return w, false, err
	}

	if w.Channels > 0 && w.Leg > 0 {
		return w, false, problem.BadParam("Channel", "set either Channel or RequestedChannels")
	}
	if !wantsOriginal {
		return w, download, nil
	}
	if w.Channels+w.Leg > 0 {
		return w, false, problem.BadParam(original, "the original cannot be converted to other channels")
	}
	if f == recordings.MP3 {
		return w, false, problem.BadParam(original, "request the original with .wav, whatever its format")
	}
	w.Format = recordings.Original
	return w, download, nil
}

// mediaHeaders sets the headers that describe the media.
func mediaHeaders(h http.Header, m *recordings.Rendition, auth recordings.MediaAuth, download bool) {
	disposition := "inline"
	if download {
		disposition = "attachment"
	}
	fileName := m.Recording.Sid + m.Ext // needs no escaping
	h.Set("Content-Type", m.Type)
	h.Set("Content-Disposition", disposition+`; filename="`+fileName+`"`)
	h.Set("ETag", `"`+m.Tag+`"`)
	setCaching(h, auth)
}

// unlikePages contains headers that prevent browsers from treating media as a page, no matter what
// was uploaded. All responses share its values.
var unlikePages = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Content-Security-Policy":      {"default-src 'none'; sandbox"},
	"X-Robots-Tag":                 {"noindex, nofollow, noarchive"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Resource-Policy": {"cross-origin"},
}

// setCaching sets Cache-Control and the headers in unlikePages.
func setCaching(h http.Header, auth recordings.MediaAuth) {
	// The response is not immutable, because a recording can be deleted.
	h.Set("Cache-Control", "public, max-age=300, must-revalidate")
	if auth != recordings.Public {
		h.Set("Cache-Control", "private, no-store")
	}
	h.Del("Pragma") // set if the handler first tried to serve the document
	maps.Copy(h, unlikePages)
}

// handOver lets the reverse proxy send a whole file. The proxy handles validators and ranges
// itself.
func (a *API) handOver(w http.ResponseWriter, key string) {
	header, value := a.offload(key)
	w.Header().Del("ETag")
	w.Header().Set(header, value)
	w.WriteHeader(http.StatusOK)
}

// allowAnyOrigin sets the CORS policy of media: scripts on any page may read the media, and the
// challenges of refused requests. Cookies are not sent (Fetch, section 3.3). The other resources of
// this API are for servers, so they have no CORS headers.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, DPoP-Nonce, X-Request-Id, Retry-After, "+
		"Accept-Ranges, Content-Range, Content-Length, ETag, Content-Disposition")
}

// preflight serves OPTIONS /Recordings/{file} for media.
func (a *API) preflight(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Allow", "DELETE, GET, HEAD, OPTIONS")
	if _, ext := parseFile(r.PathValue("file")); ext != ".json" {
		allowAnyOrigin(h)
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Authorization, DPoP, Range, If-Range")
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
