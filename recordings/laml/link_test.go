package laml_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// links holds the URLs in a document.
type links struct {
	Media struct {
		MediaURL   *string `json:"media_url"`
		MP3URL     *string `json:"mp3_url"`
		URLExpires *string `json:"url_expires"`
	} `json:"media"`
}

// pathOf returns a link without the public URL at its beginning.
func pathOf(t *testing.T, link *string) string {
	t.Helper()
	path, ok := strings.CutPrefix(fmt.Sprint(*link), "https://example.com")
	if !ok {
		t.Fatalf("the link %s does not begin with the public URL", *link)
	}
	return path
}

func TestWhoMayFetchMedia(t *testing.T) {
	s := newServer(t, signing(t))
	own := s.upload(t, speech, "To=/private/alice")
	other := s.upload(t, speech, "")
	const unknown = "7f2c3a52-0b1d-4f6e-9a57-1c2d3e4f5a6b"
	nobody := func(*http.Request) {}
	wrong := func(r *http.Request) { r.SetBasicAuth(s.project, "wrong") }
	foreign := func(r *http.Request) { r.SetBasicAuth(s.addProject(t), key) }
	tests := []struct {
		auth   recordings.MediaAuth
		sid    string
		as     option
		status int
	}{
		{recordings.Public, own, nobody, 200},
		{recordings.Public, own, wrong, 200},
		{recordings.Public, unknown, nobody, 404},
		{recordings.Basic, own, nobody, 401},
		{recordings.Basic, unknown, nobody, 401}, // the response reveals nothing
		{recordings.Basic, own, wrong, 401},
		{recordings.Basic, own, foreign, 404},
		{recordings.Basic, own, s.basic, 200},
		{recordings.Basic, unknown, s.basic, 404},
		{recordings.Basic, own, asSubscriber, 200},
		{recordings.Basic, other, asSubscriber, 404},
		{recordings.Signed, own, nobody, 401},
		{recordings.Signed, own, s.basic, 200},
		{recordings.Signed, other, asSubscriber, 404},
		{"an unknown method", own, nobody, 401},
	}

	for _, tt := range tests {
		s.setMediaAuth(t, tt.auth)
		for _, end := range []string{"", ".wav", ".wav?Original=true", ".peaks.json"} {
			for _, method := range []string{"GET", "HEAD"} {
				a := s.do(t, method, s.path("/Recordings/"+tt.sid+end), tt.as)
				wantAccess(t, fmt.Sprintf("%s %s of a %s project", method, end, tt.auth), a, tt.auth, tt.status)
			}
		}
	}
}

// wantAccess checks the status of a response with media, whether caches may keep it, and whether the
// response asks for credentials.
func wantAccess(t *testing.T, name string, a answer, auth recordings.MediaAuth, status int) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s = %d, want %d", name, a.StatusCode, status)
	}
	isOpen := auth == recordings.Public && status == 200
	if cache := a.Header.Get("Cache-Control"); strings.HasPrefix(cache, "public") != isOpen {
		t.Errorf("%s = %d: Cache-Control = %q, want it public: %v", name, a.StatusCode, cache, isOpen)
	}
	needsCredentials := status == 401
	if challenge := a.Header.Get("WWW-Authenticate"); (challenge != "") != needsCredentials {
		t.Errorf("%s = %d: WWW-Authenticate = %q, want a challenge: %v",
			name, a.StatusCode, challenge, needsCredentials)
	}
}

// TestLinksEndWithMaker shows that a link becomes invalid when its maker is revoked. Links from
// other makers, and later links from the same maker, remain valid.
func TestLinksEndWithMaker(t *testing.T) {
	s := newServer(t, signing(t))
	sid := s.upload(t, speech, "")
	s.setMediaAuth(t, recordings.Signed)
	makeLink := func() string {
		doc := read[links](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic))
		return pathOf(t, doc.Media.MediaURL)
	}

	link := makeLink()
	s.ended = map[string]time.Time{"subscriber": s.clock.now()}
	s.wantGet(t, "a link whose maker is not revoked", link, 200)
	s.ended = map[string]time.Time{"key": s.clock.now()}
	s.wantGet(t, "a link whose maker is revoked", link, 403)
	s.clock.set(s.clock.now().Add(time.Second))
	s.wantGet(t, "a link made later", makeLink(), 200)

	// The signature covers the maker and the time.
	s.ended = nil
	unsigned := link[:strings.LastIndexByte(link, '.')]
	made := strconv.FormatInt(s.clock.now().UnixMicro(), 10) + "\nkey"
	later := base64.RawURLEncoding.EncodeToString([]byte(made))
	for _, forged := range []string{unsigned, unsigned + ".", unsigned + "." + later, link + "A", link + "."} {
		s.wantGet(t, "the link with another maker", forged, 403)
	}
	s.checkErr = problem.New(problem.Unavailable, "temporarily_unavailable", "later")
	s.wantGet(t, "a link while it is unknown whether its maker is revoked", link, 503)
}

// wantGet checks the status of a GET request without credentials.
func (s *server) wantGet(t *testing.T, name, path string, status int) {
	t.Helper()
	if a := s.do(t, "GET", path); a.StatusCode != status {
		t.Errorf("%s = %d, want %d", name, a.StatusCode, status)
	}
}

func TestSignedLinks(t *testing.T) {
	s := newServer(t, signing(t))
	sid := s.upload(t, speech, "")
	other := s.upload(t, speech, "")
	s.setMediaAuth(t, recordings.Signed)
	doc := read[links](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json?MediaUrlTtl=600"), s.basic))
	expires := s.clock.now().Add(600 * time.Second)
	wantText(t, "url_expires", doc.Media.URLExpires, expires.Format(time.RFC1123Z))

	wav := pathOf(t, doc.Media.MediaURL)
	query := wav[strings.Index(wav, "?"):]
	exp := expires.Unix()
	sig := strings.TrimPrefix(query, fmt.Sprintf("?exp=%d&sig=", exp))
	media := func(sid, end, query string) string { return s.path("/Recordings/" + sid + end + query) }
	elsewhere := strings.Replace(wav, s.project, s.addProject(t), 1)
	tests := []struct {
		name, path string
		status     int
	}{
		{"the link", wav, 200},
		{"the link with the other path prefix", strings.TrimPrefix(wav, "/api/laml"), 200},
		{"without the extension, which means the same", media(sid, "", query), 200},
		{"with a parameter that the signature does not cover", wav + "&Download=true", 200},
		{"as a different format", media(sid, ".mp3", query), 403},
		{"as the original", media(sid, ".wav", query+"&Original=true"), 403},
		{"of another recording", media(other, ".wav", query), 403},
		{"of an unknown recording", media("7f2c3a52-0b1d-4f6e-9a57-1c2d3e4f5a6b", ".wav", query), 403},
		{"of another project", elsewhere, 404}, // a public project without this recording
		{"with a later expiry", media(sid, ".wav", fmt.Sprintf("?exp=%d&sig=%s", exp+1, sig)), 403},
		{"with an expiry that never comes", media(sid, ".wav", "?exp=9999999999999&sig="+sig), 403},
		{"with an expiry beyond any date", media(sid, ".wav", "?exp=99999999999999999999&sig="+sig), 403},
		{"with a number in another notation", media(sid, ".wav", fmt.Sprintf("?exp=0%d&sig=%s", exp, sig)), 403},
		{"without expiry", media(sid, ".wav", "?sig="+sig), 403},
		{"without signature", media(sid, ".wav", fmt.Sprintf("?exp=%d", exp)), 401},
		{"with two signatures", wav + "&sig=" + sig, 403},
		{"with two expiries", wav + fmt.Sprintf("&exp=%d", exp+9), 403},
		{"with a changed letter", media(sid, ".wav", fmt.Sprintf("?exp=%d&sig=%s", exp, flip(sig))), 403},
		{"cut short", wav[:len(wav)-1], 403},
		{"the JSON with the link", media(sid, ".json", query), 401},
		{"the list with the link", s.path("/Recordings" + query), 401},
	}

	for _, tt := range tests {
		a := s.do(t, "GET", tt.path)
		if a.StatusCode != tt.status {
			t.Errorf("%s: GET %s = %d, want %d", tt.name, tt.path, a.StatusCode, tt.status)
		}
		if a.StatusCode == 200 {
			wantHeader(t, tt.name, a.Header, "Cache-Control", "private, no-store")
		}
	}

	changed := wav[:len(wav)-1]
	wantError(t, "a changed link", s.do(t, "GET", changed), 403, 20403)
	if a := s.do(t, "GET", changed, s.basic); a.StatusCode != 200 {
		t.Errorf("a changed link with valid credentials = %d, want 200", a.StatusCode)
	}
	if a := s.do(t, "DELETE", media(sid, "", query)); a.StatusCode != 401 {
		t.Errorf("DELETE with a link = %d, want 401", a.StatusCode)
	}

	s.setMediaAuth(t, recordings.Basic)
	s.wantGet(t, "a valid link to media that requires credentials", wav, 401)
	s.setMediaAuth(t, recordings.Signed)
	s.clock.set(time.Unix(exp-1, 0))
	s.wantGet(t, "the link in its last second", wav, 200)
	s.clock.set(time.Unix(exp, 0))
	s.wantGet(t, "the expired link", wav, 403)
}

// flip changes one character near the end of text, and escapes the result for a query.
func flip(text string) string {
	b := []byte(text)
	i := len(b) - 10
	b[i]++
	if b[i] > 'y' {
		b[i] = 'a'
	}
	return url.QueryEscape(string(b))
}

func TestLinksOfDocuments(t *testing.T) {
	s := newServer(t, signing(t))
	sid := s.upload(t, speech, "CallSid=c")
	s.setMediaAuth(t, recordings.Signed)
	document := read[links](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic))
	s.wantGet(t, "the media_url of the document", pathOf(t, document.Media.MediaURL), 200)

	page := s.do(t, "GET", s.path("/Calls/c/Recordings?MediaUrlTtl=60"), s.basic)
	listed := read[struct{ Recordings []links }](t, page).Recordings[0]
	s.wantGet(t, "the media_url of the list", pathOf(t, listed.Media.MediaURL), 200)

	for _, ttl := range []string{"0", "-1", "x", "2592001", "1e3"} {
		wantError(t, ttl, s.do(t, "GET", s.path("/Recordings/"+sid+".json?MediaUrlTtl="+ttl), s.basic), 400, 10000)
		wantError(t, ttl, s.do(t, "GET", s.path("/Recordings?MediaUrlTtl="+ttl), s.basic), 400, 10000)
	}

	s.setMediaAuth(t, recordings.Public)
	public := read[links](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic))
	if link := *public.Media.MediaURL; strings.Contains(link, "?") {
		t.Errorf("the media_url of a public project is %s, want it without a signature", link)
	}
	if expires := public.Media.URLExpires; expires != nil {
		t.Errorf("url_expires of a public project is %s, want null", *expires)
	}
}
