package nodes

import (
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestClockSkew runs two nodes whose clocks differ by 30 seconds. Logins, tokens and revocations of
// each are valid at the other. A node whose clock is off by more than a minute is not ready.
func TestClockSkew(t *testing.T) {
	rows(t)
	t.Parallel()
	n := two(t)
	clock := n.Each[1].Clock(t)
	clock.Set(30 * time.Second)

	for range 2 { // so that a login begins once at each node
		l := logIn(t, n)
		for _, node := range n.Each {
			node.Get(t, "/subscriber/info", harness.Bearer(l.tokens.AccessToken)).Want(t, 200)
			node.Get(t, "/oauth/userinfo", harness.Bearer(l.tokens.AccessToken)).Want(t, 200)
			l.at(node).Refresh(t, l.tokens.RefreshToken).Want(t, 200).Read(t, &l.tokens)
			node.Get(t, node.Ops+"/readyz").Want(t, 200)
		}
	}

	for i, node := range n.Each {
		l := logIn(t, n)
		l.at(node).Revoke(t, l.tokens.RefreshToken).Want(t, 200)
		harness.WithinASecond(t, "a token that the other node has revoked", func() error {
			return n.Each[1-i].Get(t, "/subscriber/info", harness.Bearer(l.tokens.AccessToken)).StatusIs(401)
		})
	}

	for _, tt := range []struct {
		offset time.Duration
		ready  int
	}{{2 * time.Minute, 503}, {0, 200}, {-2 * time.Minute, 503}} {
		clock.Set(tt.offset)
		harness.Eventually(t, time.Minute, "the node to compare its clock", func() error {
			return n.Get(t, n.Each[1].Ops+"/readyz").StatusIs(tt.ready)
		})
	}
}
