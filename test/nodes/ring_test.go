package nodes

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// patience is far longer than the one or two seconds after which each node notices a change of the
// ring.
const patience = time.Minute

// TestRingTurns rotates the keys for every use with a command that does not wait. Every token that
// either node creates from then on is valid at both nodes immediately.
func TestRingTurns(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	t.Parallel()
	n := two(t)
	p := n.NewProject(t)
	c := p.NewClient(t, "service", "--access-token", "jwt", "--scope", "Voice")
	for range 2 {
		n.Each[0].Command(t, "", "ring", "rotate", "--now")
		deadline := time.Now().Add(1500 * time.Millisecond) // both nodes notice the change before this
		for tick := time.NewTicker(askEvery); time.Now().Before(deadline); <-tick.C {
			for i, maker := range n.Each {
				l := login{project: p, client: c}
				token := grant(t, l.at(maker))
				n.Each[1-i].Get(t, p.LaML("/Recordings"), harness.Bearer(token)).Want(t, 200)
				sat := l.at(maker).NewSAT(t, "ada").Token
				n.Each[1-i].Get(t, "/subscriber/info", harness.Bearer(sat)).Want(t, 200)
			}
		}
	}
}

// TestRingEndedEverywhere retires keys with a command. The other node refuses everything that these
// keys have signed or sealed, and no longer publishes the keys.
func TestRingEndedEverywhere(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	t.Parallel()
	n := two(t)
	p := n.NewProject(t)
	token := grant(t, p.NewClient(t, "service", "--access-token", "jwt", "--scope", "Voice"))
	sat := p.NewSAT(t, "ada").Token
	there := n.Each[1]

	asks := map[string]func() harness.Answer{
		"a JWT": func() harness.Answer { return there.Get(t, p.LaML("/Recordings"), harness.Bearer(token)) },
		"a SAT": func() harness.Answer { return there.Get(t, "/subscriber/info", harness.Bearer(sat)) },
	}
	for _, ask := range asks {
		ask().Want(t, 200)
	}

	var ring []struct{ Kid, Use, State string }
	if err := json.Unmarshal([]byte(n.Each[0].Command(t, "", "ring", "list", "-o", "json")), &ring); err != nil {
		t.Fatal(err)
	}
	var ended []string
	for _, key := range ring {
		if key.State == "current" {
			n.Each[0].Command(t, "", "ring", "retire", key.Kid)
			ended = append(ended, key.Kid)
		}
	}

	for what, ask := range asks {
		harness.Eventually(t, patience, what+" to be refused at the other node", func() error {
			return ask().StatusIs(401)
		})
	}

	harness.Eventually(t, patience, "the ended keys to be removed from the JWKS", func() error {
		var set struct{ Keys []struct{ Kid string } }
		there.Get(t, "/oauth/jwks").Want(t, 200).Read(t, &set)
		for _, key := range set.Keys {
			if slices.Contains(ended, key.Kid) {
				return fmt.Errorf("%s is published", key.Kid)
			}
		}
		return nil
	})
}

// grant returns an access token that a client requests for itself.
func grant(t *testing.T, c *harness.Client) string {
	t.Helper()
	var tokens harness.Tokens
	c.Token(t, map[string][]string{"grant_type": {"client_credentials"}}).Want(t, 200).Read(t, &tokens)
	return tokens.AccessToken
}
