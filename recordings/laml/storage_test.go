package laml_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
	"github.com/selvage/selvage/store/storetest"
)

// keptIn returns a change of the configuration that keeps media elsewhere.
func keptIn(media recordings.Media) func(*server, *recordings.Config, *laml.Config) {
	return func(_ *server, c *recordings.Config, _ *laml.Config) { c.Media = media }
}

// sealed returns a store whose blobs are encrypted.
func sealed(s blob.Store) blob.Store {
	secret := sha256.Sum256([]byte("media"))
	return blob.NewSealed(s, true, func() [][sha256.Size]byte { return [][sha256.Size]byte{secret} })
}

// TestCorpusEverywhere shows that each file of the corpus gets the same responses wherever media is
// kept: to its upload in three ways, and to requests for each format and for ranges.
func TestCorpusEverywhere(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	plain := newServer(t, ingesting(new(atomic.Bool)))
	others := map[string]*server{
		"an encrypted directory": newServer(t, ingesting(new(atomic.Bool)),
			keptIn(sealed(storetest.Media(t, filepath.Join(t.TempDir(), "media"))))),
		"a bucket":            newServer(t, ingesting(new(atomic.Bool)), keptIn(storetest.Bucket(t))),
		"an encrypted bucket": newServer(t, ingesting(new(atomic.Bool)), keptIn(sealed(storetest.Bucket(t)))),
	}

	for _, f := range files {
		if filepath.Ext(f.Name()) == ".json" || f.IsDir() {
			continue
		}
		want := plain.storeInAllWays(t, f.Name())
		for where, s := range others {
			got := s.storeInAllWays(t, f.Name())
			for i := range want {
				if got[i].StatusCode != want[i].StatusCode || !bytes.Equal(got[i].body, want[i].body) {
					t.Errorf("%s in %s, response %d: %d with %d bytes, want %d with %d", f.Name(), where, i,
						got[i].StatusCode, len(got[i].body), want[i].StatusCode, len(want[i].body))
				}
			}
		}
	}
}

// storeInAllWays uploads a file in three ways, and returns the responses to requests for its media. The
// responses to uploads have no bodies, since these have Sids and times.
func (s *server) storeInAllWays(t *testing.T, name string) (all []answer) {
	t.Helper()
	file := corpusFile(t, name)
	typed := url.QueryEscape(name)
	for _, a := range []answer{
		s.do(t, "POST", s.path("/Recordings?CallSid=raw-"+typed), s.basic, body("", file),
			header("X-Recording-File-Name", name)),
		s.do(t, "PUT", "/ingest/"+ingestKey+"/"+url.PathEscape(name)+"?CallSid=put-"+typed, body("", file)),
	} {
		all = append(all, answer{Response: a.Response})
		if a.StatusCode != http.StatusCreated {
			continue
		}
		media := s.path("/Recordings/" + read[struct{ Sid string }](t, a).Sid)
		all = append(all, s.do(t, "GET", media+".wav"), s.do(t, "GET", media+".mp3"),
			s.do(t, "GET", media+".wav?Original=true"),
			s.do(t, "GET", media+".wav", header("Range", "bytes=40-99")),
			s.do(t, "GET", media+".mp3", header("Range", "bytes=-100")))
	}
	return all
}

// TestNeverShort shows that media that cannot be read whole is never sent as if it were whole: the
// response is an error or is aborted.
func TestNeverShort(t *testing.T) {
	where := filepath.Join(t.TempDir(), "media")
	s := newServer(t, keptIn(sealed(storetest.Media(t, where))))
	file := corpusFile(t, "speech_stereo_8k.wav")
	sid := s.upload(t, "speech_stereo_8k.wav", "")
	get := func() (int, []byte, error) {
		res, err := http.Get(s.URL + s.path("/Recordings/"+sid+".wav?Original=true"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		return res.StatusCode, got, err
	}
	if status, got, err := get(); status != 200 || err != nil || !bytes.Equal(got, file) {
		t.Fatalf("the media = %d with %d bytes, %v", status, len(got), err)
	}

	names, err := filepath.Glob(filepath.Join(where, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{170_000, 1000} { // the last piece, and the first
		for _, name := range names {
			damage(t, name, at)
		}
		if status, got, err := get(); status == 200 && err == nil {
			t.Errorf("after damage at %d: 200 with %d bytes of %d", at, len(got), len(file))
		}
	}
}

// damage changes a byte of a file, if it is that long.
func damage(t *testing.T, name string, at int64) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(content)) <= at {
		return
	}
	content[at] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
