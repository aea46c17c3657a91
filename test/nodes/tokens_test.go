package nodes

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// A grantee is a subscriber for whom tokens are created at one node.
type grantee struct {
	*harness.Project
	harness.SAT
	address string
}

// newGrantee creates a grantee in a project.
func newGrantee(t *testing.T, n *harness.Nodes, p *harness.Project) *grantee {
	t.Helper()
	g := &grantee{Project: p, SAT: p.NewSAT(t, t.Name())}
	g.address = p.Address(t, g.SubscriberID)
	return g
}

// at returns a copy of the project that sends requests only to node.
func (g *grantee) at(node *harness.Server) *harness.Project {
	p := *g.Project
	p.Server = node
	return &p
}

// TestTokensElsewhere creates each kind of token at one node and uses it at both. It ends the token
// in several ways at the other node, and checks that the first node then refuses it.
func TestTokensElsewhere(t *testing.T) {
	n := two(t)
	here, there := n.Each[1], n.Each[0] // commands use the data of the node there
	p := n.NewProject(t)
	// Each of these functions creates a token.
	sat := func(t *testing.T, g *grantee) string { return g.at(here).NewSAT(t, t.Name()).Token }
	guest := func(t *testing.T, g *grantee) string { return g.at(here).NewGuest(t, g.address).Token }
	invite := func(t *testing.T, g *grantee) string { return g.at(here).NewInvite(t, g.Token, g.address) }
	embed := func(t *testing.T, g *grantee) string {
		key := g.CLI(t, "", "token", "embed", "--address", g.address)["token"]
		token, _ := here.Post(t, "/api/fabric/embeds/tokens",
			harness.JSON(map[string]any{"token": key})).Want(t, 201).Object(t)["token"].(string)
		return token
	}

	// Each of these functions ends a token.
	revoke := func(t *testing.T, _ *grantee, token string) { there.Command(t, token, "token", "revoke") }
	subscriber := func(g *grantee) string { return "/api/fabric/resources/subscribers/" + g.SubscriberID }
	remove := func(t *testing.T, g *grantee, _ string) {
		there.Do(t, "DELETE", subscriber(g), g.Basic()).Want(t, 204)
	}

	disable := func(t *testing.T, g *grantee, _ string) {
		there.Command(t, "", "subscriber", "update", g.SubscriberID, "--disabled")
	}
	everything := func(t *testing.T, g *grantee, _ string) {
		there.Do(t, "DELETE", subscriber(g)+"/tokens", g.Basic()).Want(t, 204)
	}

	endKeys := func(t *testing.T, g *grantee, _ string) {
		there.Command(t, "", "token", "embed", "revoke", "--project", g.ID,
			onlyID(t, there, "token", "embed", "list", "--project", g.ID))
	}

	tests := []struct {
		name string
		make func(*testing.T, *grantee) string
		end  func(*testing.T, *grantee, string)
	}{
		{"SAT revoked", sat, revoke},
		{"SAT of a deleted subscriber", sat, remove},
		{"SAT of a disabled subscriber", sat, disable},
		{"SAT of a revoked subscriber", sat, everything},
		{"guest token revoked", guest, revoke},
		{"invite revoked", invite, revoke},
		{"invite of a deleted subscriber", invite, remove},
		{"invite of a revoked subscriber", invite, everything},
		{"revoked guest token of an embed key", embed, revoke},
		{"guest token of a revoked embed key", embed, endKeys},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := p
			if tt.name == "guest token of a revoked embed key" {
				p = n.NewProject(t) // a new project has no other embed key
			}
			g := newGrantee(t, n, p)
			token := tt.make(t, g)
			const path = "/api/fabric/addresses"
			for _, node := range n.Each {
				node.Get(t, path, harness.Bearer(token)).Want(t, 200)
			}

			s, _ := here.Connect(t, token, "")
			tt.end(t, g, token)
			harness.WithinASecond(t, "the token at the node that created it", func() error {
				return here.Get(t, path, harness.Bearer(token)).StatusIs(401)
			})
			if code := s.Closed(); code < 1000 || !s.WasTold("signalwire.disconnect") {
				t.Errorf("the socket at the other node is closed with %d, asked to disconnect: %v", code,
					s.WasTold("signalwire.disconnect"))
			}
		})
	}
}

// onlyID returns the id that a command lists. It ends the test unless there is exactly one.
func onlyID(t *testing.T, node *harness.Server, command ...string) string {
	t.Helper()
	id := node.Command(t, "", append(command, "-o", "id")...)
	if len(id) != 37 {
		t.Fatalf("%v lists %q, want one id", command, id)
	}
	return id[:36]
}

// TestFamilyElsewhere uses a refresh token at one node, and uses it again at the other node. The
// second use ends the token's family at both nodes.
func TestFamilyElsewhere(t *testing.T) {
	rows(t)
	n := two(t)
	p := n.NewProject(t)
	for i, first := range n.Each {
		t.Run(fmt.Sprintf("at node %d first", i), func(t *testing.T) {
			second := n.Each[1-i]
			sat := p.NewSAT(t, t.Name())
			refresh := func(node *harness.Server, token string) harness.Answer {
				return node.Post(t, "/api/fabric/subscribers/tokens/refresh", p.Basic(),
					harness.JSON(map[string]string{"refresh_token": token}))
			}

			var next harness.SAT
			refresh(first, sat.RefreshToken).Want(t, 201).Read(t, &next)
			second.Get(t, "/subscriber/info", harness.Bearer(next.Token)).Want(t, 200)
			refresh(second, sat.RefreshToken).Want(t, 422)

			for _, node := range n.Each {
				for _, token := range []string{sat.Token, next.Token} {
					harness.WithinASecond(t, "a token of the ended family", func() error {
						return node.Get(t, "/subscriber/info", harness.Bearer(token)).StatusIs(401)
					})
				}
				refresh(node, next.RefreshToken).Want(t, 422)
			}
		})
	}
}

// TestDevicesElsewhere registers a device at one node, and again at the other node. Both
// registrations return the same device. After one node has deleted the device, the other node does
// not find it.
func TestDevicesElsewhere(t *testing.T) {
	rows(t)
	n := two(t)
	p := n.NewProject(t)
	sat := p.NewSAT(t, "ada")
	register := func(node *harness.Server) string {
		a := node.Post(t, "/subscriber/devices", harness.Bearer(sat.Token),
			harness.JSON(`{"device_type":"iOS","device_token":"abc"}`))
		id, _ := a.Want(t, 200, 201).Object(t)["id"].(string)
		return id
	}

	a, b := register(n.Each[0]), register(n.Each[1])
	if a == "" || a != b {
		t.Errorf("the device is %q at one node and %q at the other, want the same id", a, b)
	}
	n.Each[1].Do(t, "DELETE", "/subscriber/devices/"+a, harness.Bearer(sat.Token)).Want(t, 204)
	n.Each[0].Do(t, "DELETE", "/subscriber/devices/"+a, harness.Bearer(sat.Token)).Want(t, 404)
}
