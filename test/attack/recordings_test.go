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
	if o["status"] != float64(status) || o["code"] != float64(code) || o["message"] == "" ||
		o["more_info"] == "" || len(o) != 4 {
		t.Errorf("%d %s, want code %d in the compatibility API's format", a.Status, a.Body, code)
	}
}

// TestR02Sids shows that no Sid leads to a file outside the media directory.
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
			if a.Status < 400 && !insideRedirect(a) || a.Status >= 500 || bytes.Contains(a.Body, []byte("root:")) {
				t.Errorf("GET %.40s%s = %d %.80s", name, end, a.Status, a.Body)
			}
		}
	}

	wantLaML(t, p.Get(t, p.LaML("/Recordings/01900000-0000-7000-8000-000000000000.wav")), 404, 20404)
}

// insideRedirect reports whether a response is a redirect within the server that only cleans the
// path.
func insideRedirect(a harness.Answer) bool {
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
		if a.Status != tt.status || tt.want != nil && !bytes.Equal(a.Body, tt.want) ||
			a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s = %d with %d bytes (%v), want %d with %d", tt.name, a.Status, len(a.Body), a.Header,
				tt.status, len(tt.want))
		}
	}

	// Many ranges must not multiply the size of the response.
	two := p.Get(t, path, harness.Header("Range", "bytes=0-1,4-5"))
	if two.Status != 206 && two.Status != 200 || two.Status == 206 &&
		!strings.HasPrefix(two.Header.Get("Content-Type"), "multipart/byteranges") {
		t.Errorf("two ranges = %d %s, want both ranges or the file", two.Status, two.Header.Get("Content-Type"))
	}
	many := p.Get(t, path, harness.Header("Range", "bytes=0-"+strings.Repeat(",0-", 1000)))
	if len(many.Body) > 2*len(wav) || many.Status >= 500 {
		t.Errorf("a thousand ranges = %d with %d bytes of a file of %d", many.Status, len(many.Body), len(wav))
	}

	head := p.Do(t, "HEAD", p.LaML("/Recordings/01900000-0000-7000-8000-000000000000.mp3"))
	if head.Status != 404 || len(head.Body) != 0 {
		t.Errorf("HEAD of a missing .mp3 = %d, want 404 without a body", head.Status)
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
	if got := mine.Get(t, mine.LaML("/Recordings"), mine.Basic()).Want(
		t, 200).Object(t)["recordings"]; len(got.([]any)) != 0 {
		t.Errorf("the list shows %v, want no recordings", got)
	}
}

// TestR09Uploads uploads web pages as recordings. They are refused, or they are served like all
// media, with headers that prevent browsers from running them.
func TestR09Uploads(t *testing.T) {
	p := project(t)

	for _, page := range []string{"<html><script>alert(1)</script>", "<svg onload=alert(1)>",
		"RIFF\x10\x00\x00\x00WAVE<script>alert(1)</script>", ""} {
		a := p.Post(t, p.LaML("/Recordings"), p.Basic(), harness.Body("audio/wav", []byte(page)))
		switch {
		case a.Status >= 500:
			t.Errorf("an upload of %q = %d %s", page, a.Status, a.Body)
		case a.Status >= 400:
			if o := a.Object(t); o["message"] == "" || o["status"] != float64(a.Status) {
				t.Errorf("an upload of %q = %d %s", page, a.Status, a.Body)
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

// TestR13NoCredentials shows that everything except public media requires credentials that permit
// the access.
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
