package attack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
)

// TestR01Guessing shows that Sids are random, and that all guesses get the same response, which is
// a 404. Another test checks the limits on guesses.
func TestR01Guessing(t *testing.T) {
	p := project(t)
	sids := map[string]bool{}
	var bits [122]int
	for i := range 64 {
		sid := p.Upload(t, harness.Tone(800+i, 8))
		u, err := uuid.Parse(sid)
		if err != nil {
			t.Fatalf("the Sid %s is not a UUID: %v", sid, err)
		}
		if u.Version() != 4 {
			t.Fatalf("the Sid %s is a UUID of version %d, want 4", sid, u.Version())
		}
		if sids[sid] {
			t.Fatalf("two recordings have the Sid %s", sid)
		}
		sids[sid] = true
		for b, n := 0, 0; b < 128; b++ {
			if b/8 == 6 && b%8 < 4 || b/8 == 8 && b%8 < 2 {
				continue // version and variant of the UUID
			}
			bits[n] += int(u[b/8] >> (7 - b%8) & 1)
			n++
		}
	}

	for n, ones := range bits {
		if ones == 0 || ones == len(sids) {
			t.Errorf("bit %d is the same in every Sid", n)
		}
	}

	first := p.Get(t, p.LaML("/Recordings/"+uuid.NewString()+".wav")).Want(t, 404)
	for range 500 {
		a := p.Get(t, p.LaML("/Recordings/"+uuid.NewString()+".wav")).Want(t, 404)
		if !bytes.Equal(a.Body, first.Body) {
			t.Fatalf("a guess returned %s, want %s", a.Body, first.Body)
		}
	}

	for sid := range sids {
		if strings.Contains(p.Log(), sid) {
			t.Errorf("the log contains the Sid %s", sid)
		}
	}
}

// TestR05MP3Conditions requests an MP3 with validators and ranges. The parts match the whole file,
// and conditions have the same effect as for a stored file.
func TestR05MP3Conditions(t *testing.T) {
	p := project(t)
	path := p.LaML("/Recordings/" + p.Upload(t, harness.Tone(80_000, 8)) + ".mp3")
	whole := p.Get(t, path).Want(t, 200)
	etag, modified := whole.Header.Get("ETag"), whole.Header.Get("Last-Modified")

	for _, tt := range []struct {
		name   string
		opts   []harness.Option
		status int
		want   []byte
	}{
		{"If-Range fresh", []harness.Option{harness.Header("Range", "bytes=5000-5099"),
			harness.Header("If-Range", etag)}, 206, whole.Body[5000:5100]},
		{"If-Range stale", []harness.Option{harness.Header("Range", "bytes=0-9"),
			harness.Header("If-Range", `"old"`)}, 200, whole.Body},
		{"If-None-Match", []harness.Option{harness.Header("If-None-Match", etag)}, 304, nil},
		{"If-Modified-Since", []harness.Option{harness.Header("If-Modified-Since", modified)}, 304, nil},
		{"Accept-Encoding", []harness.Option{harness.Header("Accept-Encoding", "gzip, br")}, 200, whole.Body},
		{"the last 0 bytes", []harness.Option{harness.Header("Range", "bytes=-0")}, 416, nil},
		{"beyond", []harness.Option{harness.Header("Range", fmt.Sprintf("bytes=%d-", len(whole.Body)))}, 416, nil},
		{"a thousand ranges", []harness.Option{harness.Header(
			"Range", "bytes=0-"+strings.Repeat(",0-", 1000))}, 200, whole.Body},
	} {
		wantUnencoded(t, tt.name, p.Get(t, path, tt.opts...), tt.status, tt.want)
	}

	head := p.Do(t, "HEAD", path)
	if got, want := head.Header.Get("Content-Length"), fmt.Sprint(len(whole.Body)); got != want {
		t.Errorf("HEAD returned Content-Length %q, want %q", got, want)
	}
	if got := head.Header.Get("ETag"); got != etag {
		t.Errorf("HEAD returned the ETag %q, want %q", got, etag)
	}
}

// TestR08Deleted deletes a recording during a download. The download may finish, but nobody can
// request the recording again, and no bytes are left on disk.
func TestR08Deleted(t *testing.T) {
	p := project(t)
	wav := harness.Tone(8_000_000, 8) // more than socket buffers can hold
	sid := p.Upload(t, wav)
	path := p.LaML("/Recordings/" + sid + ".wav")
	for range 5 {
		p.Do(t, "HEAD", path).Want(t, 200)
	}

	res, err := http.Get(p.HTTP + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}

	p.Do(t, "DELETE", p.LaML("/Recordings/"+sid), p.Basic()).Want(t, 204)
	for _, end := range []string{"", ".wav", ".mp3", ".json", ".wav?Original=true"} {
		wantLaML(t, p.Get(t, p.LaML("/Recordings/"+sid+end), p.Basic()), 404, 20404)
	}

	rest, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		t.Errorf("the download failed after the recording was deleted: %v", err)
	}
	if want := int64(len(wav) - 1000); rest != want {
		t.Errorf("the rest of the download had %d bytes, want %d", rest, want)
	}
	harness.Eventually(t, time.Minute, "the bytes to be deleted", func() error {
		return filepath.WalkDir(filepath.Join(p.Data, "media"), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if info, err := e.Info(); err == nil && info.Size() == int64(len(wav)) {
				return fmt.Errorf("%s still contains the deleted recording", path)
			}
			return nil
		})
	})

	stub := p.Get(t, p.LaML("/Recordings?IncludeSoftDeleted=true"), p.Basic()).Want(t, 200)
	if !bytes.Contains(stub.Body, []byte(sid)) {
		t.Errorf("the list of deleted recordings has no entry: %s", stub.Body)
	}
}

// TestR11ManyMP3 requests many long MP3s at the same time and abandons them. The server still
// answers other requests, and the encoders stop.
func TestR11ManyMP3(t *testing.T) {
	harness.OneBackend(t)
	p := project(t)
	long := p.Upload(t, harness.Tone(20_000_000, 8)) // forty minutes
	short := p.LaML("/Recordings/" + p.Upload(t, harness.Tone(8000, 8)))
	ctx, gone := context.WithCancel(t.Context())

	var reading sync.WaitGroup
	for range 50 {
		reading.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "GET", p.HTTP+p.LaML("/Recordings/"+long+".mp3"), nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				return // the request was canceled before it was sent
			}
			defer res.Body.Close()
			_, _ = io.Copy(io.Discard, res.Body) // returns when the request is canceled
		})
	}

	// The test only checks that these requests are answered while the encoders are busy. It does
	// not measure how long they take.
	for range 10 {
		p.Get(t, short+".wav").Want(t, 200)
		p.Get(t, short+".mp3").Want(t, 200)
		p.Get(t, p.LaML("/Recordings"), p.Basic()).Want(t, 200)
	}

	gone()
	reading.Wait()
	p.Get(t, short+".mp3").Want(t, 200)
}

// TestSignedMedia shows that a project's media requires a valid link or credentials if its media
// policy is “signed”. A link is bound to its recording, format and expiry.
func TestSignedMedia(t *testing.T) {
	p := project(t)
	sid, other := p.Upload(t, harness.Tone(8000, 8)), p.Upload(t, harness.Tone(9000, 8))
	p.CLI(t, "", "project", "update", p.ID, "--media-auth", "signed")
	harness.Eventually(t, time.Minute, "the media to require a link", func() error {
		return p.Get(t, p.LaML("/Recordings/"+sid+".wav")).StatusIs(401)
	})

	link := fmt.Sprint(p.CLI(t, "", "recording", "link", sid, "--expires-in", "10m")["url"])
	_, query, _ := strings.Cut(link, "?")
	p.Get(t, p.LaML("/Recordings/"+sid+".wav?"+query)).Want(t, 200)

	for _, path := range []string{
		"/Recordings/" + other + ".wav?" + query, "/Recordings/" + sid + ".mp3?" + query,
		"/Recordings/" + sid + ".wav?Original=true&" + query,
		"/Recordings/" + sid + ".wav?" + strings.Replace(query, "exp=1", "exp=2", 1),
		"/Recordings/" + sid + ".wav?" + query + "&exp=9999999999",
		"/Recordings/" + sid + ".wav?" + query[:len(query)-1], "/Recordings/" + uuid.NewString() + ".wav?" + query,
	} {
		wantLaML(t, p.Get(t, p.LaML(path)), 403, 20403)
	}

	for _, path := range []string{"/Recordings?" + query, "/Recordings/" + sid + ".json?" + query} {
		wantLaML(t, p.Get(t, p.LaML(path)), 401, 20003)
	}

	mine := project(t)
	wantLaML(t, mine.Get(t, p.LaML("/Recordings/"+sid+".wav"), mine.Basic()), 404, 20404)
	sat := p.NewSAT(t, "ada")
	wantLaML(t, p.Get(t, p.LaML("/Recordings/"+sid+".wav"), harness.Bearer(sat.Token)), 401, 20003)

	wantLinksEnd(t, p, sid)
	if strings.Contains(p.Log(), "sig=") {
		t.Error("the log contains a signature")
	}
}

// wantLinksEnd checks that a link to media becomes invalid when the API key with which it was made
// is revoked, or when the subscriber who made it is disabled.
func wantLinksEnd(t *testing.T, p *harness.Project, sid string) {
	t.Helper()
	c := p.NewClient(t, "spa", "--first-party", "--access-token", "jwt", "--scope", "openid", "--scope", "Voice")
	sub := p.NewSubscriber(t)
	owned := fmt.Sprint(p.Post(t, p.LaML("/Recordings?SubscriberId="+sub.ID), p.Basic(),
		harness.Body("audio/wav", harness.Tone(8000, 8))).Want(t, 201).Object(t)["sid"])
	tokens, _ := c.SignIn(t, sub, "openid Voice")
	key := p.CLI(t, "", "key", "create", "--project", p.ID, "--scope", "Voice")
	made := func(sid string, by harness.Option) string {
		var doc struct {
			Media struct {
				URL string `json:"media_url"`
			}
		}
		p.Get(t, p.LaML("/Recordings/"+sid+".json"), by).Want(t, 200).Read(t, &doc)
		_, path, _ := strings.Cut(doc.Media.URL, "/api/laml")
		return "/api/laml" + path
	}

	lasting := made(sid, p.Basic())
	ofKey := made(sid, harness.Basic(p.ID, fmt.Sprint(key["key"])))
	ofSubscriber := made(owned, harness.Bearer(tokens.AccessToken))
	for _, link := range []string{lasting, ofKey, ofSubscriber} {
		p.Get(t, link).Want(t, 200)
	}

	p.Command(t, "", "key", "revoke", fmt.Sprint(key["id"]))
	p.Command(t, "", "subscriber", "update", sub.ID, "--disabled")
	for what, link := range map[string]string{"a revoked key": ofKey, "a disabled subscriber": ofSubscriber} {
		harness.WithinASecond(t, "the link of "+what+" to end", func() error { return p.Get(t, link).StatusIs(403) })
	}
	p.Get(t, lasting).Want(t, 200)
}
