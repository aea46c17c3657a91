package canaries

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// declared lists the places where a secret may be in plain text, and the reasons.
var declared = []struct{ secret, place, reason string }{
	{"recording Sid", "rows", "it is the name of the recording, which the LaML API requires"},
	{"recording Sid", "export of a subscriber", "the subscriber may fetch the recording"},
	{"message", "rows", "a person wrote it for others to read"},
	{"message", "export of a subscriber", "it was sent to the subscriber"},
	{"recording Sid", "list of recordings", "a key with Voice may fetch the recording"},
}

func isDeclared(secret, place string) bool {
	for _, d := range declared {
		if d.secret == secret && strings.HasPrefix(place, d.place) {
			return true
		}
	}
	return false
}

// find returns the form in which text contains secret, or "" if text does not contain it.
func find(text, secret string) string {
	written := forms(secret)
	for _, how := range slices.Sorted(maps.Keys(written)) {
		if strings.Contains(text, written[how]) {
			return how
		}
	}
	return ""
}

// TestCanaries uses secrets as intended, and then sends each secret to places where it does not
// belong. It searches for all secrets everywhere, while the server runs and after it has stopped.
func TestCanaries(t *testing.T) {
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LOG__LEVEL=debug", harness.AllowLocal,
		"SELVAGE_LISTEN_SIP=127.0.0.1:0", "SELVAGE_PHONE_PORTS=0"}})
	n := plant(t, s)
	answers := n.spray(t)
	n.sprayPhones(t)

	found := map[string]bool{}
	look := func(places map[string][]byte) {
		for _, place := range slices.Sorted(maps.Keys(places)) {
			for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
				if how := find(string(places[place]), n.secrets[name]); how != "" && !isDeclared(name, place) {
					found["the "+name+" is in "+place+", "+how] = true
				}
			}
		}
	}

	look(answers)
	look(n.exports(t))
	look(served(t, s))
	look(stored(t, s))
	look(backedUp(t, s))
	if err := s.Stop(t); err != nil {
		t.Error(err)
	}
	look(stored(t, s))
	look(map[string][]byte{"the log": []byte(s.Log())})

	for _, what := range slices.Sorted(maps.Keys(found)) {
		t.Error(what)
	}
	if !strings.Contains(s.Log(), "/oauth/token") {
		t.Errorf("the log has the level debug, but does not mention a request to /oauth/token:\n%s", s.Log())
	}
	t.Logf("%d secrets, %d answers: found %d times", len(n.secrets), len(answers), len(found))
}
