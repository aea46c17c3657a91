package nodes

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// serviceOf returns the index of the node that serves a path: 0 for the identity provider, 1 for
// the fabric and 2 for recordings.
func serviceOf(path string) int {
	for i, prefixes := range [][]string{{"/api/fabric", "/subscriber"}, {"/api/laml", "/2010-04-01"}} {
		for _, prefix := range prefixes {
			if strings.HasPrefix(path, prefix) {
				return i + 1
			}
		}
	}
	return 0
}

// TestOneServiceEach shows that the services work together if each runs on its own node. Each node
// serves only the paths of its service.
func TestOneServiceEach(t *testing.T) {
	n := harness.StartNodes(t, serviceOf,
		harness.Config{Args: []string{"--services", "idp"}},
		harness.Config{Args: []string{"--services", "fabric"}},
		harness.Config{Args: []string{"--services", "recordings"}})
	l := logIn(t, n)
	n.Get(t, "/subscriber/info", harness.Bearer(l.tokens.AccessToken)).Want(t, 200)

	wav := harness.Tone(8000, 8)
	sid := l.project.Upload(t, wav)
	if got := n.Get(t, l.project.LaML("/Recordings/"+sid+".wav")).Want(t, 200); !bytes.Equal(got.Body, wav) {
		t.Errorf("the recording has %d bytes, want the %d that were uploaded", len(got.Body), len(wav))
	}

	service := l.project.NewClient(t, "service", "--access-token", "fabric", "--scope", "Voice")
	var made harness.Tokens
	service.Token(t, map[string][]string{"grant_type": {"client_credentials"}, "scope": {"Voice"}}).Want(t,
		200).Read(t, &made)
	n.Get(t, l.project.LaML("/Recordings"), harness.Bearer(made.AccessToken)).Want(t, 200)

	// A node does not serve the paths of other services. The OpenAPI document does not describe the
	// responses to such requests, so the requests bypass the harness, which checks responses
	// against it.
	for path, serving := range map[string]int{
		"/.well-known/openid-configuration": 0,
		"/oauth/jwks":                       0,
		"/api/fabric/addresses":             1,
		"/subscriber/info":                  1,
		l.project.LaML("/Recordings"):       2,
	} {
		for i, node := range n.Each {
			res, err := http.Get(node.HTTP + path)
			if err != nil {
				t.Fatalf("GET %s at node %d: %v", path, i, err)
			}
			_ = res.Body.Close() // only the status matters
			if got := res.StatusCode; (got == http.StatusNotFound) != (i != serving) {
				t.Errorf("GET %s at node %d = %d, want a success only at node %d", path, i, got, serving)
			}
		}
	}

	// If a command at one node revokes a token, the other nodes refuse it.
	n.Each[0].Command(t, l.tokens.AccessToken, "token", "revoke")
	harness.WithinASecond(t, "the fabric to refuse a revoked token", func() error {
		return n.Get(t, "/subscriber/info", harness.Bearer(l.tokens.AccessToken)).StatusIs(401)
	})
}
