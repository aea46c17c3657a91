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

	tests := []struct {
		name string
		url  string
		want Verdict
	}{
		{name: "no webhook", url: "", want: Skipped},
		{name: "a running webhook", url: hook.URL + "/calls", want: Fine},
		{name: "a missing webhook", url: down.URL + "/calls", want: Broken},
	}
	for _, tt := range tests {
		e := &Examination{Config: config.Config{Services: config.AllServices, ListenMedia: "127.0.0.1:0"}}
		e.Config.Calls.Scripts.Secret = "a secret for scripts"
		if err := e.Config.Calls.Scripts.URL.UnmarshalText([]byte(tt.url)); err != nil {
			t.Fatal(err)
		}
		found := callChecks{e}.scripts(t.Context())
		if len(found) != 1 || found[0].Status != tt.want {
			t.Errorf("with %s, doctor found %+v, want one finding with the status %s", tt.name, found, tt.want)
		}
	}
}
