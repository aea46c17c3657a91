package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A burst is a measurement of the server's memory during parallel uploads.
type burst struct {
	Uploads int     `json:"uploads"`  // how many ran in parallel
	Idle    float64 `json:"idle_mib"` // anonymous memory before the uploads
	Most    float64 `json:"most_mib"` // the most anonymous memory during the uploads
}

// manyUploads is the number of parallel uploads.
const manyUploads = 100

// uploadsAtOnce starts manyUploads parallel clients, each of which uploads two recordings of ten
// minutes to a separate server. It measures the memory that the server uses during this time.
func uploadsAtOnce(p *harness.Program, s settings, prefix []string) *burst {
	const name = "parallel uploads"
	if !s.only.MatchString(name) {
		return nil
	}
	p.Logf("%s, %d", name, manyUploads)
	server := harness.StartConfig(p, harness.Config{Prefix: prefix, Env: []string{procs}})
	w := &world{Project: server.NewProject(p), speech: speechOf(p, 600)}
	w.Upload(p, harness.Tone(400, 1))

	b := &burst{Uploads: manyUploads, Idle: anonymousMiB(p, server.PID())}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			b.Most = max(b.Most, anonymousMiB(p, server.PID()))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()

	var uploading sync.WaitGroup
	for range manyUploads {
		uploading.Go(func() {
			for range 2 {
				if err := w.stream(); err != nil {
					p.Fatalf("%s: %v", name, err)
				}
			}
		})
	}
	uploading.Wait()
	close(stop)
	<-watched
	return b
}

// stream uploads w.speech with a different last sample each time. Unlike upload, it does not copy
// the other bytes.
func (w *world) stream() error {
	common := w.speech[:len(w.speech)-2]
	last := binary.LittleEndian.AppendUint16(nil, uint16(w.uploads.Add(1)))
	body := io.MultiReader(bytes.NewReader(common), bytes.NewReader(last))
	req, err := http.NewRequest(http.MethodPost, w.HTTP+w.LaML("/Recordings"), body)
	if err != nil {
		return err
	}

	req.ContentLength = int64(len(w.speech))
	req.Header.Set("Content-Type", "audio/wav")
	req.SetBasicAuth(w.ID, w.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		return fmt.Errorf("uploading: status %d %.300s, error %v", res.StatusCode, text, err)
	}
	return nil
}
