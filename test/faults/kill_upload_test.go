package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// sweepDeadline limits how long files without a recording may remain after a start of the server.
const sweepDeadline = 90 * time.Second

// TestKillDuringUploads kills the server while recordings are uploaded. Acknowledged recordings are
// complete, and listed recordings can be fetched. In a directory, all other files are deleted. In a
// bucket, the server would delete them only when they are a day old, so the test does not check
// this.
func TestKillDuringUploads(t *testing.T) {
	harness.Rows(t)
	t.Run("directory", func(t *testing.T) { killDuringUploads(t, true) })
	t.Run("encrypted directory", func(t *testing.T) { killDuringUploads(t, true, "SELVAGE_RECORDINGS__ENCRYPT=true") })
	t.Run("bucket", func(t *testing.T) { killDuringUploads(t, false, bucketSettings(t)...) })
	t.Run("encrypted bucket", func(t *testing.T) {
		killDuringUploads(t, false, append(bucketSettings(t), "SELVAGE_RECORDINGS__ENCRYPT=true")...)
	})
}

// bucketSettings returns the settings that put media into a new bucket.
func bucketSettings(t *testing.T) (env []string) {
	t.Helper()
	store, bucket := servers.S3(t)
	for name, value := range store.Env(bucket) {
		env = append(env, name+"="+value)
	}
	return env
}

func killDuringUploads(t *testing.T, swept bool, env ...string) {
	t.Helper()
	const workers = 4
	s := harness.StartConfig(t, harness.Config{Env: env})
	p := s.NewProject(t)
	stored, fetched := map[string][]byte{}, map[string]bool{}

	for round := range rounds() {
		acked := newCounter()
		done := make([]map[string][]byte, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { done[i] = uploadUntilKilled(p, (round*workers+i)*1000, acked) })
		}

		cut := beginUpload(p)
		acked.await(6 + 3*(round%4))
		s.Kill()
		wg.Wait()
		cut()
		wantWhole(t, s)
		s.Restart(t)

		for _, each := range done {
			for sid, wav := range each {
				stored[sid] = wav
			}
		}
		wantRecordings(t, p, stored, fetched)
	}
	wantRecordings(t, p, stored, map[string]bool{})

	if !swept {
		return
	}
	listed := list(t, p)
	harness.Eventually(t, sweepDeadline, "the sweep of files without a recording", func() error {
		return checkKeys(filepath.Join(s.Data, "media"), len(listed))
	})
}

// uploadUntilKilled uploads one recording after another, all different, until the server is killed.
// It returns the acknowledged recordings by Sid.
func uploadUntilKilled(p *harness.Project, seed int, acked *counter) map[string][]byte {
	stored := map[string][]byte{}
	for i := 1; ; i++ {
		wav := harness.Tone(20_000+seed+i, 8)
		a, err := p.Try("POST", p.LaML("/Recordings"), p.Basic(), harness.Body("audio/wav", wav))
		if err == nil && a.Status == http.StatusServiceUnavailable && !isGone(p) {
			continue
		}
		if err != nil || a.Status != http.StatusCreated {
			return stored
		}

		var made struct{ Sid string }
		if json.Unmarshal(a.Body, &made) != nil {
			return stored
		}
		stored[made.Sid] = wav
		acked.add()
	}
}

// beginUpload begins an upload that does not end by itself. The returned function aborts the
// upload, and waits until it has failed.
func beginUpload(p *harness.Project) func() {
	body, feed := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, err := http.NewRequest(http.MethodPost, p.HTTP+p.LaML("/Recordings"), body)
		if err != nil {
			return
		}
		req.SetBasicAuth(p.ID, p.Key)
		req.Header.Set("Content-Type", "audio/wav")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close() // the listing shows whether a recording was created
		}
	}()

	if _, err := feed.Write(harness.Tone(100_000, 8)[:150_000]); err != nil {
		_ = feed.CloseWithError(err)
	}

	return func() {
		_ = feed.CloseWithError(io.ErrUnexpectedEOF)
		<-ended
	}
}

// wantRecordings checks that every acknowledged recording is listed. It fetches the listed recordings
// that are not in fetched, adds them to it, and compares the acknowledged ones with the uploads.
func wantRecordings(t *testing.T, p *harness.Project, stored map[string][]byte, fetched map[string]bool) {
	t.Helper()
	listed := map[string]bool{}
	for _, sid := range list(t, p) {
		listed[sid] = true
		if fetched[sid] {
			continue
		}
		fetched[sid] = true
		got := p.Get(t, p.LaML("/Recordings/"+sid+".wav")).Want(t, 200)
		if wav, acked := stored[sid]; acked && !bytes.Equal(got.Body, wav) {
			t.Errorf("the recording %s has %d bytes, which are not the %d bytes that were uploaded", sid,
				len(got.Body), len(wav))
		}
	}

	for sid := range stored {
		if !listed[sid] {
			t.Errorf("the recording %s was acknowledged, but is not listed", sid)
		}
	}
}

// list returns the Sids of a project's recordings.
func list(t *testing.T, p *harness.Project) (sids []string) {
	t.Helper()
	next := p.LaML("/Recordings?PageSize=200")
	for next != "" {
		var page struct {
			Recordings []struct{ Sid string }
			Next       string `json:"next_page_uri"`
		}
		p.Get(t, next, p.Basic()).Want(t, 200).Read(t, &page)
		for _, r := range page.Recordings {
			sids = append(sids, r.Sid)
		}
		next = page.Next
	}
	return sids
}

// checkKeys returns an error unless the files below dir belong to want media keys. The name of a
// file begins with its key.
func checkKeys(dir string, want int) error {
	keys := map[string]bool{}
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			key, _, _ := strings.Cut(d.Name(), ".")
			keys[key] = true
		}
		return err
	})
	if err == nil && len(keys) != want {
		err = fmt.Errorf("there are files of %d keys, want %d, one for each recording", len(keys), want)
	}
	return err
}
