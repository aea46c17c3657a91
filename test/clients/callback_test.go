package clients

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestCallbackValidators shows that the validators of both vendors accept the signature of a status
// callback.
func TestCallbackValidators(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p := s.NewProject(t)
	key := p.CLI(t, "", "webhook", "key", "show", "--project", p.ID)["key"].(string)

	for _, method := range []string{"POST", "GET"} {
		t.Run(method, func(t *testing.T) {
			r := harness.NewReceiver(t)
			query := url.Values{
				"CallSid":                       {"a call & " + method},
				"RecordingStatusCallbackMethod": {method},
				"RecordingStatusCallback":       {r.URL + "/recorded?of=a%20b&of=c"},
			}
			p.Post(t, p.LaML("/Recordings?"+query.Encode()), p.Basic(),
				harness.Body("audio/wav", harness.Tone(8000, 8))).Want(t, 201)
			harness.Eventually(t, time.Minute, "the callback", func() error {
				if len(r.Told()) == 0 {
					return errors.New("nothing was reported")
				}
				return nil
			})

			callback := r.Told()[0]
			origin := strings.TrimSuffix(r.URL, "/hook")
			runNode(t, "callback.mjs", map[string]string{
				"key":       key,
				"url":       origin + callback.Target,
				"method":    method,
				"body":      string(callback.Body),
				"signature": callback.Header.Get("X-SignalWire-Signature"),
			}, noVisit)
		})
	}
}
