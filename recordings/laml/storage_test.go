package laml_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
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

// keptIn returns an option for newServer that keeps the media in the given storage.
func keptIn(media recordings.Media) func(*server, *recordings.Config, *laml.Config) {
	return func(_ *server, c *recordings.Config, _ *laml.Config) { c.Media = media }
}

// sealed returns a store whose blobs are encrypted.
func sealed(s blob.Store) blob.Store {
	secret := sha256.Sum256([]byte("media"))
	return blob.NewSealed(s, true, func() [][sha256.Size]byte { return [][sha256.Size]byte{secret} })
}

// everywhere returns a server for each kind of storage.
func everywhere(t *testing.T) map[string]*server {
	t.Helper()
	directory := storetest.Media(t, filepath.Join(t.TempDir(), "media"))
	return map[string]*server{
		"a directory":            newServer(t, ingesting(new(atomic.Bool))),
		"an encrypted directory": newServer(t, ingesting(new(atomic.Bool)), keptIn(sealed(directory))),
		"a bucket":               newServer(t, ingesting(new(atomic.Bool)), keptIn(storetest.Bucket(t))),
		"an encrypted bucket":    newServer(t, ingesting(new(atomic.Bool)), keptIn(sealed(storetest.Bucket(t)))),
	}
}

// TestCorpusEverywhere shows that each file of the corpus gets the same responses with each kind of
// storage. Each file is uploaded in four ways, and requested in all formats and in ranges.
func TestCorpusEverywhere(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	others := everywhere(t)
	plain := others["a directory"]
	delete(others, "a directory")

	for _, f := range files {
		if filepath.Ext(f.Name()) == ".json" || f.IsDir() {
			continue
		}
		want := plain.storeInAllWays(t, f.Name())
		for where, s := range others {
			got := s.storeInAllWays(t, f.Name())
			if len(got) != len(want) {
				t.Errorf("%s in %s has %d responses, want %d", f.Name(), where, len(got), len(want))
				continue
			}
			for i := range want {
				name := fmt.Sprintf("%s in %s, response %d", f.Name(), where, i)
				if got[i].StatusCode != want[i].StatusCode {
					t.Errorf("%s = %d, want %d", name, got[i].StatusCode, want[i].StatusCode)
				}
				wantFile(t, name, got[i], want[i].body)
			}
		}
	}
}

// storeInAllWays stores a file in four ways, and returns the responses to requests for its media.
// It leaves out the bodies of responses to uploads, because these contain Sids and times.
func (s *server) storeInAllWays(t *testing.T, name string) (responses []answer) {
	t.Helper()
	file := corpusFile(t, name)
	escaped := url.QueryEscape(name)
	asForm := form(t, part{
		name:  "ngfile",
		file:  name,
		kind:  "application/octet-stream",
		value: string(file),
	})
	for _, a := range []answer{
		s.do(t, "POST", s.path("/Recordings?CallSid=raw-"+escaped),
			s.basic, body("", file), header("X-Recording-File-Name", name)),
		s.do(t, "PUT", "/ingest/"+ingestKey+"/"+url.PathEscape(name)+"?CallSid=put-"+escaped,
			body("", file)),
		s.do(t, "POST", "/ingest/"+ingestKey+"/?CallSid=form-"+escaped, asForm),
	} {
		responses = append(responses, answer{Response: a.Response})
		if a.StatusCode == http.StatusCreated {
			sid := read[struct{ Sid string }](t, a).Sid
			responses = append(responses, s.mediaOf(t, sid)...)
		}
	}

	rec, _, err := s.rules.Ingest(t.Context(), recordings.Upload{
		ProjectID: s.project,
		Body:      bytes.NewReader(file),
		Hints:     []string{name},
		Imported:  true,
		Describe: func() (recordings.Description, error) {
			return recordings.Description{Path: "/var/spool/" + name}, nil
		},
	})
	if err != nil {
		return append(responses, answer{Response: new(http.Response), body: []byte(err.Error())})
	}
	return append(responses, s.mediaOf(t, rec.Sid)...)
}

// mediaOf returns the responses to requests for the media of a recording.
func (s *server) mediaOf(t *testing.T, sid string) []answer {
	t.Helper()
	media := s.path("/Recordings/" + sid)
	return []answer{
		s.do(t, "GET", media+".wav"),
		s.do(t, "GET", media+".mp3"),
		s.do(t, "GET", media+".wav?Original=true"),
		s.do(t, "GET", media+".wav", header("Range", "bytes=40-99")),
		s.do(t, "GET", media+".mp3", header("Range", "bytes=-100")),
	}
}

// TestNeverShort shows that media that cannot be completely read is never sent as if it were
// complete. The response is an error or is aborted.
func TestNeverShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "media")
	s := newServer(t, keptIn(sealed(storetest.Media(t, dir))))
	file := corpusFile(t, stereo)
	sid := s.upload(t, stereo, "")
	fetch := func() (content []byte, err error) {
		res, err := http.Get(s.URL + s.path("/Recordings/"+sid+".wav?Original=true"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			return nil, errors.New(res.Status)
		}
		return io.ReadAll(res.Body)
	}

	content, err := fetch()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, file) {
		t.Fatalf("the media has %d bytes, want the %d bytes of the file", len(content), len(file))
	}

	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int{170_000, 1000} { // the last piece, and the first
		for _, name := range names {
			damage(t, name, offset)
		}
		if content, err := fetch(); err == nil {
			t.Errorf("after damage at byte %d, a request returned %d of %d bytes, want an error",
				offset, len(content), len(file))
		}
	}
}

// damage changes a byte of a file, if the file is long enough.
func damage(t *testing.T, name string, offset int) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) <= offset {
		return
	}
	content[offset] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
