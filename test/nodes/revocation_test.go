package nodes

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestEndedEverywhere ends a login or its tokens at one node, or with a command, and checks that
// the other node refuses the access token within a second.
func TestEndedEverywhere(t *testing.T) {
	t.Parallel()
	n := two(t)
	here, there := n.Each[0], n.Each[1]

	tests := []struct {
		name string
		end  func(*testing.T, *login)
	}{
		{"the token is revoked by its client", func(t *testing.T, l *login) {
			l.at(here).Revoke(t, l.tokens.AccessToken).Want(t, 200)
		}},
		{"the grant is revoked by its client", func(t *testing.T, l *login) {
			l.at(here).Revoke(t, l.tokens.RefreshToken).Want(t, 200)
		}},
		{"the token is revoked by the command", func(t *testing.T, l *login) {
			here.Command(t, l.tokens.AccessToken, "token", "revoke")
		}},
		{"the subscriber signs out", func(t *testing.T, l *login) {
			l.browser.Open(t, "/oauth/logout?"+url.Values{"id_token_hint": {l.tokens.IDToken}}.Encode()).Want(t, 200)
		}},
		{"the subscriber is disabled", func(t *testing.T, l *login) {
			here.Command(t, "", "subscriber", "update", l.sub.ID, "--disabled")
		}},
		{"the subscriber is deleted over REST", func(t *testing.T, l *login) {
			here.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+l.sub.ID, l.project.Basic()).Want(t, 204)
		}},
		{"the login is ended over REST", func(t *testing.T, l *login) {
			var all struct{ Data []struct{ ID string } }
			path := "/api/fabric/resources/subscribers/" + l.sub.ID + "/sessions"
			here.Get(t, path, l.project.Basic()).Want(t, 200).Read(t, &all)
			here.Do(t, "DELETE", path+"/"+all.Data[0].ID, l.project.Basic()).Want(t, 204)
		}},
		{"everything is revoked over REST", func(t *testing.T, l *login) {
			here.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+l.sub.ID+"/tokens",
				l.project.Basic()).Want(t, 204)
		}},
		{"everything is revoked by the command", func(t *testing.T, l *login) {
			here.Command(t, "", "subscriber", "revoke", l.sub.ID)
		}},
		{"the client is deleted",
			func(t *testing.T, l *login) { here.Command(t, "", "client", "delete", l.client.ID) }},
		{"the project is deleted", func(t *testing.T, l *login) {
			here.Command(t, "", "project", "delete", l.project.ID)
		}},
		{"the code is used again", func(t *testing.T, l *login) {
			l.at(here).Token(t, l.flow.Form(l.code)).WantError(t, 400, "invalid_grant")
		}},
		{"the refresh token is used again", func(t *testing.T, l *login) {
			var next harness.Tokens
			l.at(there).Refresh(t, l.tokens.RefreshToken).Want(t, 200).Read(t, &next)
			l.at(here).Refresh(t, next.RefreshToken).Want(t, 200)
			l.at(here).Refresh(t, l.tokens.RefreshToken).WantError(t, 400, "invalid_grant")
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := logIn(t, n)
			ask := func() harness.Answer {
				return there.Get(t, "/subscriber/info", harness.Bearer(l.tokens.AccessToken))
			}
			ask().Want(t, 200)
			tt.end(t, l)
			harness.WithinASecond(t, "the access token at the other node",
				func() error { return ask().StatusIs(401) })
		})
	}
}

// TestKeyEndedEverywhere revokes an API key with a command, and checks that the other node refuses
// the key and a token that was created with it.
func TestKeyEndedEverywhere(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := two(t)
	p := n.NewProject(t)
	sat := p.NewSAT(t, "ada")
	there := n.Each[1]

	asks := map[string]func() harness.Answer{
		"the key":   func() harness.Answer { return there.Get(t, "/api/fabric/resources/subscribers", p.Basic()) },
		"its token": func() harness.Answer { return there.Get(t, "/subscriber/info", harness.Bearer(sat.Token)) },
	}
	for _, ask := range asks {
		ask().Want(t, 200)
	}

	var keys []struct{ ID string }
	out := n.Each[0].Command(t, "", "key", "list", "--project", p.ID, "-o", "json")
	if err := json.Unmarshal([]byte(out), &keys); err != nil {
		t.Fatalf("decoding the list of keys: %v", err)
	}
	if len(keys) != 1 {
		t.Fatalf("key list = %v, want one key", keys)
	}

	n.Each[0].Command(t, "", "key", "revoke", keys[0].ID)
	for what, ask := range asks {
		harness.WithinASecond(t, what+" at the other node", func() error { return ask().StatusIs(401) })
	}
}

// A login is a subscriber's login in a browser, through a client that then redeems the code for
// tokens.
type login struct {
	project *harness.Project
	client  *harness.Client
	sub     harness.Subscriber
	browser *harness.Browser
	flow    *harness.Flow
	code    string
	tokens  harness.Tokens
}

func logIn(t *testing.T, n *harness.Nodes) *login {
	t.Helper()
	l := &login{project: n.NewProject(t)}
	l.client = l.project.NewClient(t, "web", "--access-token", "fabric")
	l.sub, l.browser, l.flow = l.project.NewSubscriber(t), l.client.Browser(), l.client.NewFlow(loginScope)
	l.code = l.flow.Code(t, l.browser, l.sub)
	l.flow.Redeem(t, l.code).Want(t, 200).Read(t, &l.tokens)
	return l
}

// at returns a copy of the client that sends requests only to node.
func (l *login) at(node *harness.Server) *harness.Client {
	p, c := *l.project, *l.client
	p.Server, c.Project = node, &p
	return &c
}
