package attack

import (
	"strconv"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestUploadRate shows that a project's rate of uploads is enforced for both ways to upload, and
// that the response says when to try again.
func TestUploadRate(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	key, _ := p.CLI(t, "", "ingest-key", "create", "--name", "switch", "--project", p.ID)["key"].(string)
	p.CLI(t, "", "project", "update", p.ID, "--upload-rate", "1")

	sent := 0
	for name, upload := range map[string]func(harness.Option) harness.Answer{
		"POST": func(wave harness.Option) harness.Answer {
			return p.Post(t, p.LaML("/Recordings"), p.Basic(), wave)
		},
		"PUT": func(wave harness.Option) harness.Answer {
			return p.Do(t, "PUT", "/ingest/"+key+"/call-"+strconv.Itoa(sent)+".wav", wave)
		},
	} {
		// A slow machine may take longer for an upload than the limit requires between two.
		var a harness.Answer
		for tries := 0; tries < 5 && a.Status != 429; tries++ {
			sent++
			a = upload(harness.Body("audio/wav", harness.Tone(8000, 20+sent)))
		}
		wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != 429 || err != nil || wait < 1 || wait > 60 {
			t.Errorf("%s: %d with Retry-After %q, want 429 and up to 60 seconds", name, a.Status,
				a.Header.Get("Retry-After"))
		}
	}
}
