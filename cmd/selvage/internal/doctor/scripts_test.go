package doctor

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestScripts shows that doctor checks the webhook for scripts, without a request that the webhook
// could mistake for a call.
func TestScripts(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Errorf("the webhook got %s, want HEAD", r.Method)
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer hook.Close()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()

	for _, tt := range []struct {
		what, url string
		want      Verdict
	}{
		{"no webhook", "", Skipped},
		{"a running webhook", hook.URL + "/calls", Fine},
		{"a missing webhook", down.URL + "/calls", Broken},
	} {
		e := &Examination{Config: config.Config{Services: config.AllServices, ListenMedia: "127.0.0.1:0"}}
		e.Config.Calls.Scripts.Secret = "a secret for scripts"
		if err := e.Config.Calls.Scripts.URL.UnmarshalText([]byte(tt.url)); err != nil {
			t.Fatal(err)
		}
		found := callChecks{e}.scripts(t.Context())
		if len(found) != 1 || found[0].Status != tt.want {
			t.Errorf("with %s, doctor finds %+v, want %s", tt.what, found, tt.want)
		}
	}
}
