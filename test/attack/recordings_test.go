package attack

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// wantLaML checks that a response is an error in the format of the compatibility API.
func wantLaML(t *testing.T, a harness.Answer, status, code int) {
	t.Helper()
	o := a.Want(t, status).Object(t)
	if len(o) != 4 {
		t.Errorf("the error %s has %d members, want 4", a.Body, len(o))
	}
	if o["status"] != float64(status) {
		t.Errorf("the error has the status %v, want %d", o["status"], status)
	}
	if o["code"] != float64(code) {
		t.Errorf("the error has the code %v, want %d", o["code"], code)
	}
	for _, member := range []string{"message", "more_info"} {
		if o[member] == "" {
			t.Errorf("the error %s has an empty %s", a.Body, member)
		}
	}
}

// TestR02Sids shows that no Sid in a URL leads to a file other than a recording.
func TestR02Sids(t *testing.T) {
	p := project(t)
	sid := p.Upload(t, harness.Tone(8000, 8))
	secret := filepath.Join(p.Data, "media", "planted.wav")
	if err := os.Symlink("/etc/passwd", secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(secret) })

	for _, name := range []string{
		"..%2f..%2fetc%2fpasswd", "..%5c..%5cetc", "%2e%2e%2fmaster.key", "planted", "planted.wav", "..", ".wav",
		"%00", sid + "%00", sid + "%2f..", sid[:35], sid + "0", strings.Repeat("a", 5<<10), "' OR 1=1--", "%",
	} {
		for _, end := range []string{"", ".wav", ".json", ".mp3", ".exe", "/"} {
			a := rawGet(t, p, p.LaML("/Recordings/"+name+end))
			refused := a.Status >= 400 && a.Status < 500
			redirected := a.Status < 400 && isCleaned(a)
			if !refused && !redirected {
				t.Errorf("GET %.40s%s = %d %.80s, want a refusal or a redirect", name, end, a.Status, a.Body)
			}
			if bytes.Contains(a.Body, []byte("root:")) {
				t.Errorf("GET %.40s%s returned the contents of /etc/passwd", name, end)
			}
		}
	}

	wantLaML(t, p.Get(t, p.LaML("/Recordings/01900000-0000-7000-8000-000000000000.wav")), 404, 20404)
}

// isCleaned reports whether a response redirects to a different path of the server, as the server
// does to clean a path.
func isCleaned(a harness.Answer) bool {
	return (a.Status == 301 || a.Status == 307 || a.Status == 308) && strings.HasPrefix(a.Header.Get("Location"), "/")
}

// rawGet requests a path exactly as given, even one that clients would normally clean.
func rawGet(t *testing.T, p *harness.Project, path string) harness.Answer {
	t.Helper()
	return p.Get(t, "/", func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + path })
}

// TestR05Conditions requests a recording with unusual ranges and validators.
func TestR05Conditions(t *testing.T) {
	p := project(t)
	wav := harness.Tone(8000, 8)
	path := p.LaML("/Recordings/" + p.Upload(t, wav) + ".wav")
	whole := p.Get(t, path).Want(t, 200)
	etag, modified := whole.Header.Get("ETag"), whole.Header.Get("Last-Modified")

	tests := []struct {
		name   string
		opts   []harness.Option
		status int
		want   []byte
	}{
		{"If-Range fresh", []harness.Option{harness.Header("Range", "bytes=0-9"),
			harness.Header("If-Range", etag)}, 206, wav[:10]},
		{"If-Range stale", []harness.Option{harness.Header("Range", "bytes=0-9"),
			harness.Header("If-Range", `"old"`)}, 200, wav},
		{"If-Range weak", []harness.Option{harness.Header("Range", "bytes=0-9"),
			harness.Header("If-Range", "W/"+etag)}, 200, wav},
		{"If-None-Match", []harness.Option{harness.Header("If-None-Match", etag)}, 304, nil},
		{"If-None-Match any", []harness.Option{harness.Header("If-None-Match", "*")}, 304, nil},
		{"If-Match other", []harness.Option{harness.Header("If-Match", `"old"`)}, 412, nil},
		{"If-Modified-Since", []harness.Option{harness.Header("If-Modified-Since", modified)}, 304, nil},
		{"Accept-Encoding", []harness.Option{harness.Header("Accept-Encoding", "gzip, br")}, 200, wav},
		{"beyond", []harness.Option{harness.Header("Range", fmt.Sprintf("bytes=%d-", len(wav)))}, 416, nil},
		{"negative", []harness.Option{harness.Header("Range", "bytes=--1")}, 416, nil},
		{"suffix too long", []harness.Option{harness.Header("Range", "bytes=-999999999")}, 206, wav},
	}

	for _, tt := range tests {
		a := p.Get(t, path, tt.opts...)
		wantUnencoded(t, tt.name, a, tt.status, tt.want)
	}

	two := p.Get(t, path, harness.Header("Range", "bytes=0-1,4-5")).Want(t, 200, 206)
	if kind := two.Header.Get("Content-Type"); two.Status == 206 && !strings.HasPrefix(kind, "multipart/byteranges") {
		t.Errorf("the Content-Type of two ranges is %q, want multipart/byteranges", kind)
	}

	// Many ranges must not multiply the size of the response.
	many := p.Get(t, path, harness.Header("Range", "bytes=0-"+strings.Repeat(",0-", 1000)))
	if many.Status >= 500 {
		t.Errorf("a request with a thousand ranges returned the status %d, want less than 500", many.Status)
	}
	if limit := 2 * len(wav); len(many.Body) > limit {
		t.Errorf("a thousand ranges returned %d bytes, want at most %d", len(many.Body), limit)
	}

	head := p.Do(t, "HEAD", p.LaML("/Recordings/01900000-0000-7000-8000-000000000000.mp3")).Want(t, 404)
	if len(head.Body) != 0 {
		t.Errorf("HEAD of a missing .mp3 returned %d bytes, want none", len(head.Body))
	}
}

// wantUnencoded checks the status of a response and that it has no Content-Encoding. Unless want is
// nil, it also checks the body.
func wantUnencoded(t *testing.T, request string, a harness.Answer, status int, want []byte) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%s = %d, want %d", request, a.Status, status)
	}
	if want != nil && !bytes.Equal(a.Body, want) {
		t.Errorf("%s returned %d bytes that differ from the %d bytes of the recording", request, len(a.Body),
			len(want))
	}
	if got := a.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("%s returned Content-Encoding %q, want none", request, got)
	}
}

// TestR07OtherAccounts shows that an account cannot read, list or delete recordings of another
// account.
func TestR07OtherAccounts(t *testing.T) {
	mine, theirs := project(t), project(t)
	wav := harness.Tone(8000, 8)
	sid := theirs.Upload(t, wav)

	for _, end := range []string{"", ".wav", ".json"} {
		for _, opts := range [][]harness.Option{{}, {mine.Basic()},
			{mine.Basic(), harness.Header("Accept", "application/json")}} {
			if end == ".json" && len(opts) == 0 {
				continue
			}
			wantLaML(t, mine.Get(t, mine.LaML("/Recordings/"+sid+end), opts...), 404, 20404)
		}
	}

	wantLaML(t, mine.Do(t, "DELETE", mine.LaML("/Recordings/"+sid), mine.Basic()), 404, 20404)
	for _, method := range []string{"GET", "DELETE"} {
		wantLaML(t, mine.Do(t, method, theirs.LaML("/Recordings/"+sid+".json"), mine.Basic()), 404, 20404)
	}
	wantLaML(t, mine.Get(t, theirs.LaML("/Recordings"), mine.Basic()), 404, 20404)
	wantLaML(t, mine.Post(t, theirs.LaML("/Recordings"), mine.Basic(), harness.Body("audio/wav", wav)), 404, 20404)

	if got := theirs.Get(t, theirs.LaML("/Recordings/"+sid+".wav")).Want(t, 200).Body; !bytes.Equal(got, wav) {
		t.Errorf("the recording was changed")
	}
	list := mine.Get(t, mine.LaML("/Recordings"), mine.Basic()).Want(t, 200).Object(t)
	if got := list["recordings"].([]any); len(got) != 0 {
		t.Errorf("the list shows %v, want no recordings", got)
	}
}

// TestR09Uploads uploads web pages as recordings. The server either refuses them, or serves them
// like all media, with headers that prevent browsers from running them.
func TestR09Uploads(t *testing.T) {
	p := project(t)

	for _, page := range []string{"<html><script>alert(1)</script>", "<svg onload=alert(1)>",
		"RIFF\x10\x00\x00\x00WAVE<script>alert(1)</script>", ""} {
		a := p.Post(t, p.LaML("/Recordings"), p.Basic(), harness.Body("audio/wav", []byte(page)))
		switch {
		case a.Status >= 500:
			t.Errorf("uploading %q returned %d %s, want a status below 500", page, a.Status, a.Body)
		case a.Status >= 400:
			o := a.Object(t)
			if o["message"] == "" {
				t.Errorf("the refusal of the upload %q has no message", page)
			}
			if o["status"] != float64(a.Status) {
				t.Errorf("the refusal of the upload %q has the status %v, want %d", page, o["status"], a.Status)
			}
		default:
			sid := fmt.Sprint(a.Object(t)["sid"])
			if got := p.Get(t, p.LaML("/Recordings/"+sid+".wav")); got.Status == 200 {
				wantMediaHeaders(t, got)
			}
		}
	}

	path := p.LaML("/Recordings/" + p.Upload(t, harness.Tone(8000, 8)))
	for _, end := range []string{"", ".wav", ".mp3", ".wav?Channel=1", ".wav?Original=true"} {
		wantMediaHeaders(t, p.Get(t, path+end).Want(t, 200))
		wantMediaHeaders(t, p.Do(t, "HEAD", path+end).Want(t, 200))
		wantMediaHeaders(t, p.Get(t, path+end, harness.Header("Range", "bytes=0-1")).Want(t, 206))
	}
}

func wantMediaHeaders(t *testing.T, a harness.Answer) {
	t.Helper()
	for field, want := range map[string]string{
		"Content-Type":            "audio/",
		"X-Content-Type-Options":  "nosniff",
		"Content-Disposition":     "inline",
		"Content-Security-Policy": "default-src 'none'; sandbox",
		"X-Robots-Tag":            "noindex",
	} {
		if got := a.Header.Get(field); !strings.HasPrefix(got, want) {
			t.Errorf("media has the header %s: %q, want %q", field, got, want)
		}
	}
}

// TestR13NoCredentials shows that every request except one for public media requires credentials
// that permit it.
func TestR13NoCredentials(t *testing.T) {
	p := project(t)
	sid := p.Upload(t, harness.Tone(8000, 8))
	sat := p.NewSAT(t, "ada")
	address := p.Address(t, sat.SubscriberID)

	callers := map[string]harness.Option{
		"nobody":              func(*http.Request) {},
		"a guest":             harness.Bearer(p.NewGuest(t, address).Token),
		"a SAT":               harness.Bearer(sat.Token),
		"an invite":           harness.Bearer(p.NewInvite(t, sat.Token, address)),
		"a key without Voice": harness.Basic(p.ID, p.NewKey(t, "Messaging")),
		"a wrong key":         harness.Basic(p.ID, "PTwrong"),
		"a key as a token":    harness.Bearer(p.Key),
	}

	for who, by := range callers {
		t.Run(who, func(t *testing.T) {
			for _, prefix := range []string{"/api/laml/2010-04-01", "/2010-04-01"} {
				base := prefix + "/Accounts/" + p.ID + "/Recordings"
				for _, path := range []string{base, base + ".json", base + "/" + sid + ".json"} {
					wantLaML(t, p.Get(t, path, by), 401, 20003)
				}
				wantLaML(t, p.Do(t, "DELETE", base+"/"+sid, by), 401, 20003)
				wantLaML(t, p.Do(t, "DELETE", base+"/"+sid+".json", by), 401, 20003)
				wantLaML(t, p.Post(t, base, by, harness.Body("audio/wav", harness.Tone(800, 8))), 401, 20003)
				wantLaML(t, p.Post(t, base+"?Status=in-progress&CallSid=c", by), 401, 20003)
				wantLaML(t, p.Post(t, prefix+"/Accounts/"+p.ID+"/Calls/c/Recordings", by), 401, 20003)
				wantLaML(t, p.Get(t, base+"/"+sid+"/Transcriptions.json", by), 401, 20003)
			}
		})
	}

	p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200)
}

// TestR13SubscriberToken shows that a subscriber's token with Voice can read the subscriber's own
// recordings, but cannot store or delete any.
func TestR13SubscriberToken(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "spa", "--first-party", "--access-token", "fabric", "--scope", "openid", "--scope",
		"Voice", "--scope", "offline_access")
	tokens, _ := c.SignIn(t, sub, "openid Voice")

	others := p.Upload(t, harness.Tone(8000, 8))
	a := p.Post(t, p.LaML("/Recordings?SubscriberId="+sub.ID), p.Basic(),
		harness.Body("audio/wav", harness.Tone(9000, 8))).Want(t, 201)
	own := fmt.Sprint(a.Object(t)["sid"])
	by := harness.Bearer(tokens.AccessToken)

	var list struct{ Recordings []struct{ Sid string } }
	p.Get(t, p.LaML("/Recordings"), by).Want(t, 200).Read(t, &list)
	if len(list.Recordings) != 1 || list.Recordings[0].Sid != own {
		t.Errorf("the subscriber sees %v, want only %s", list.Recordings, own)
	}

	p.Get(t, p.LaML("/Recordings/"+own+".json"), by).Want(t, 200)
	wantLaML(t, p.Get(t, p.LaML("/Recordings/"+others+".json"), by), 404, 20404)
	p.Do(t, "DELETE", p.LaML("/Recordings/"+own), by).Want(t, 401, 403)
	p.Post(t, p.LaML("/Recordings"), by, harness.Body("audio/wav", harness.Tone(800, 8))).Want(t, 401, 403)
	p.Get(t, p.LaML("/Recordings/"+own+".json"), p.Basic()).Want(t, 200)
}
