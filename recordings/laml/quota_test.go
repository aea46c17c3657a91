package laml_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestQuotaExceeded shows the responses to uploads that do not fit into the project's quota.
func TestQuotaExceeded(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	quota := int64(100)
	change := fabric.ProjectChange{RecordingQuota: &quota}
	if _, err := s.store.UpdateProject(t.Context(), s.project, change, s.clock.now()); err != nil {
		t.Fatal(err)
	}

	file := corpusFile(t, "canonical_44.wav")
	for name, a := range map[string]answer{
		"POST": s.do(t, "POST", s.path("/Recordings"), s.basic, body("audio/wav", file)),
		"PUT":  s.do(t, "PUT", "/ingest/"+ingestKey+"/a.wav", body("", file)),
	} {
		if a.StatusCode != http.StatusForbidden || !strings.Contains(string(a.body), "its quota of 100") {
			t.Errorf("%s = %d %s, want 403 with the quota", name, a.StatusCode, a.body)
		}
	}
}
