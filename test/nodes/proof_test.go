package nodes

import (
	"net/url"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestProofElsewhere uses DPoP proofs at both nodes. A proof that one node has accepted is refused
// by the other. Each node accepts the other's nonces.
func TestProofElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	c := p.NewClient(t, "service", "--scope", "Voice", "--dpop-bound-access-tokens")
	h, thief := harness.NewHolder(t, p.Issuer()), harness.NewHolder(t, p.Issuer())
	here, there := n.Each[0], n.Each[1]

	const endpoint, api = "/oauth/token", "/api/fabric/resources/subscribers"
	ask := func(node *harness.Server, proof harness.Option) harness.Answer {
		form := url.Values{"grant_type": {"client_credentials"}, "scope": {"Voice"}}
		return node.Post(t, endpoint, append(c.Authenticated(form), proof)...)
	}
	read := func(node *harness.Server, token string, proof harness.Option) harness.Answer {
		return node.Get(t, api, harness.Header("Authorization", "DPoP "+token), proof)
	}

	var tokens harness.Tokens
	used := h.Proof("POST", endpoint, "", "")
	first := ask(here, used).Want(t, 200)
	first.Read(t, &tokens)
	ask(there, used).WantError(t, 400, "invalid_dpop_proof")
	ask(there, h.Proof("POST", endpoint, "", first.Header.Get("DPoP-Nonce"))).Want(t, 200)
	for _, node := range n.Each {
		ask(node, h.Proof("POST", endpoint, "", "made-up")).WantError(t, 400, "use_dpop_nonce")
	}

	used = h.Proof("GET", api, tokens.AccessToken, "")
	read(there, tokens.AccessToken, used).Want(t, 200)
	for _, node := range n.Each {
		read(node, tokens.AccessToken, used).Want(t, 401)
		read(node, tokens.AccessToken, thief.Proof("GET", api, tokens.AccessToken, "")).Want(t, 401)
		read(node, tokens.AccessToken, h.Proof("GET", api, tokens.AccessToken, "made-up")).Want(t, 401)
		node.Get(t, api, harness.Bearer(tokens.AccessToken)).Want(t, 401)
		read(node, tokens.AccessToken, h.Proof("GET", api, tokens.AccessToken, "")).Want(t, 200)
	}
}
