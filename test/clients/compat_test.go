package clients

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
)

// TestRecordingsClients shows that unmodified client libraries for the recordings API can fetch,
// list, filter, page through and delete recordings, including those of a call, and can control a
// live recording.
func TestRecordingsClients(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	ca := "NODE_EXTRA_CA_CERTS=" + filepath.Join(s.Data, "ca.pem")
	tests := []struct {
		name, library, base, space string
		env                        []string
	}{
		{"compatibility-api", "compatibility-api", s.HTTP, "unused.example", nil},
		{"compatibility-api, TLS by the local CA", "compatibility-api", "",
			strings.TrimPrefix(s.HTTPS, "https://"), []string{ca}},
		{"twilio", "twilio", s.HTTP, "", nil},
		{"twilio, TLS by the local CA", "twilio", s.HTTPS, "", []string{ca}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := s.NewProject(t)
			call, conference, live := uuid.NewString(), uuid.NewString(), uuid.NewString()
			queries := []string{"", "?CallSid=" + call, "?ConferenceSid=" + conference, "", ""}

			var sids []string
			for i, query := range queries {
				upload := p.Post(t, p.LaML("/Recordings"+query), p.Basic(),
					harness.Body("audio/wav", harness.Tone(8000*(i+1), 8+i))).Want(t, 201)
				sids = append(sids, upload.Object(t)["sid"].(string))
			}

			shared := map[string]string{
				"library": tt.library,
				"project": p.ID,
				"key":     p.Key,
				"base":    tt.base,
				"space":   tt.space,
			}
			with := func(more map[string]string) map[string]string {
				all := maps.Clone(shared)
				maps.Copy(all, more)
				return all
			}

			runNode(t, "recordings.mjs",
				with(map[string]string{
					"sids":       strings.Join(sids, " "),
					"call":       call,
					"conference": conference,
				}), noVisit, tt.env...)

			announced := p.Post(t, p.LaML("/Recordings?Status=in-progress&CallSid="+live), p.Basic()).Want(t,
				201).Object(t)["sid"].(string)
			runNode(t, "live.mjs", with(map[string]string{"live": live, "announced": announced}), noVisit, tt.env...)
		})
	}
}
