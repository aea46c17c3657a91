package cluster

import (
	"fmt"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// Prove signs a subscriber in at the first node, uses the token at the second node, and revokes the
// token at the third node. It calls report with each step. If the nodes do not act as one, it ends
// the test.
func (c *Cluster) Prove(t harness.T, report func(step string)) {
	t.Helper()
	p := c.NewProject(t)
	client := p.NewClient(t, "web", "--first-party", "--access-token", "fabric")

	c.Pin(0)
	tokens, _ := client.SignIn(t, p.NewSubscriber(t), "openid offline_access")
	report("node 1 signed a subscriber in and issued a token")

	c.Each[1].Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200)
	report("node 2 accepts the token")

	c.Pin(2)
	client.Revoke(t, tokens.RefreshToken).Want(t, 200)
	began := time.Now()
	c.Pin(-1)
	for i, node := range c.Each {
		harness.Eventually(t, time.Minute, fmt.Sprintf("node %d to refuse the token", i+1), func() error {
			return node.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).StatusIs(401)
		})
	}
	report(fmt.Sprintf("node 3 revoked its login, and all nodes refused the token %d ms later",
		time.Since(began).Milliseconds()))
}
