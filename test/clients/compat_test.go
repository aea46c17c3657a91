package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestCompatibilityAPI lets the unmodified client of the compatibility API
// fetch, list, page through and remove recordings.
func TestCompatibilityAPI(t *testing.T) {
	s := harness.Shared(t)
	tests := []struct {
		name, base, space string
		env               []string
	}{
		{"plain HTTP", s.HTTP, "unused.example", nil},
		{"TLS by the local CA", "", strings.TrimPrefix(s.HTTPS, "https://"), []string{"NODE_EXTRA_CA_CERTS=" + filepath.Join(s.Data, "ca.pem")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := s.NewProject(t)
			var sids []string
			for i := range 5 {
				sids = append(sids, p.Upload(t, harness.Tone(8000*(i+1), 8+i)))
			}
			runNode(t, "compatibility-api.mjs", map[string]string{
				"project": p.ID, "key": p.Key, "base": tt.base, "space": tt.space, "sids": strings.Join(sids, " "),
			}, noVisit, tt.env...)
		})
	}
}
