package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/revocation"
)

// The error codes that clients receive.
const (
	parseError           = -32700
	invalidRequest       = -32600
	methodNotFound       = -32601
	invalidParams        = -32602
	validationFailed     = -32003
	authenticationFailed = -32002
	refused              = -32000
)

// Codes with which the server closes sockets.
const (
	tokenDead = 4401
	tooSlow   = 4408
)

func TestConnect(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	for _, kind := range []fabric.TokenKind{fabric.SAT, fabric.Guest, fabric.Invite} {
		t.Run(string(kind), func(t *testing.T) {
			token := n.token(func(t *fabric.Token) {
				t.Kind = kind
				if kind == fabric.Guest {
					t.SubscriberID, t.ClientID = "", ""
				}
			})

			_, got := n.connect(must[string](t)(n.fabric.Tokens.Seal(token)))
			want := authorized{
				JTI:       token.ID,
				ProjectID: token.ProjectID,
				Subscriber: authorizedSubscriber{
					Version:       1,
					SubscriberID:  token.SubscriberID,
					ApplicationID: token.ClientID,
					ProjectID:     token.ProjectID,
					SpaceID:       got.Authorization.Subscriber.SpaceID,
					ExpiresAt:     token.ExpiresAt.Unix(),
				},
			}
			if got.Authorization != want {
				t.Errorf("the authorization is %+v, want %+v", got.Authorization, want)
			}
			if id := protocolToken(t, got.Protocol); id != token.ID {
				t.Errorf("the protocol is %q, want it to contain the token's id %s", got.Protocol, token.ID)
			}
			if got.Identity == "" {
				t.Error("there is no identity")
			}
			if got.ICEServers == nil {
				t.Error("there is no list of ICE servers")
			}
		})
	}
}

// protocolToken returns the id of the token in a protocol, which is the second of its three parts.
func protocolToken(t *testing.T, protocol string) string {
	t.Helper()
	parts := strings.Split(protocol, "_")
	if len(parts) != 3 {
		t.Fatalf("the protocol is %q, want three parts", protocol)
	}
	return parts[1]
}

// TestConnectRefused shows that invalid parameters and tokens are refused, and that the same socket can
// then connect with a valid token.
func TestConnectRefused(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	good := n.seal(nil)
	ended := n.token(func(t *fabric.Token) { t.ID = uuidOf("e") })
	if err := n.fabric.Tokens.Revoke(t.Context(), ended); err != nil {
		t.Fatal(err)
	}

	with := func(token string) string { return authentication(token) + "}" }
	kind := func(k fabric.TokenKind) string { return with(n.seal(func(t *fabric.Token) { t.Kind = k })) }
	tail := "AA"
	if strings.HasSuffix(good, tail) {
		tail = "QA"
	}

	expired := n.seal(func(t *fabric.Token) { t.ExpiresAt = n.now().Add(-time.Second) })
	revoked := must[string](t)(n.fabric.Tokens.Seal(ended))
	foreign := n.seal(func(t *fabric.Token) { t.Issuer = "http://elsewhere/" })
	project := `"project":"` + uuidOf("9") + `","jwt_token"`
	tests := []struct {
		name, params string
		want         int
	}{
		{"no params", `null`, invalidParams},
		{"a list", `[]`, invalidParams},
		{"no authentication", `{}`, invalidParams},
		{"no token", `{"authentication":{"project":"p","token":"secret"}}`, invalidParams},
		{"a number", `{"authentication":{"jwt_token":7}}`, invalidParams},
		{"garbage", with("garbage"), authenticationFailed},
		{"altered", with(good[:len(good)-2] + tail), authenticationFailed},
		{"a service token", kind(fabric.Service), authenticationFailed},
		{"a refresh token", kind(fabric.Refresh), authenticationFailed},
		{"expired", with(expired), authenticationFailed},
		{"revoked", with(revoked), authenticationFailed},
		{"of a different issuer", with(foreign), authenticationFailed},
		{"of another project", strings.Replace(with(good), `"jwt_token"`, project, 1), authenticationFailed},
		{
			"a protocol of another server",
			authentication(good) + `,"protocol":"signalwire_a_b_c"}`,
			validationFailed,
		},
		{
			"a state of another server",
			authentication(good) + `,"authorization_state":"abc"}`,
			validationFailed,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := n.dial()
			got := c.call("signalwire.connect", tt.params)
			got.wantCode(t, "connecting", tt.want)
			if tt.want == validationFailed && got.Error.Message != "Requester validation failed" {
				t.Errorf("the message is %q, want Requester validation failed", got.Error.Message)
			}

			c.call("subscriber.online", `{}`).wantCode(t, "subscriber.online after the refusal", authenticationFailed)
			c.connect(good)
			again := c.call("signalwire.connect", authentication(good)+"}")
			again.wantCode(t, "connecting twice", invalidRequest)
		})
	}
}

// TestConnectLater shows that a node that receives no revocations closes a socket that connects. It does
// not return an error, because clients would never reconnect after an error.
func TestConnectLater(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	good := n.seal(nil)
	before, _ := n.connect(good)
	n.ahead.Store(int64(time.Minute)) // the last poll for revocations was a minute ago
	n.ends()
	eventually(t, "the node to trust no token", func() bool {
		return n.fabric.Tokens.Revoked(n.token(nil)) != nil
	})
	c := n.dial()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"signalwire.connect","params":%s}}`, authentication(good)))
	if code, reason := c.closed(); code != 1013 {
		t.Errorf("the socket is closed with %d %q, want 1013", code, reason)
	}
	before.call("subscriber.online", `{}`).wantCode(t, "subscriber.online in the meantime", refused)
}

func TestReauthenticate(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	n.dial().reauthenticate(n.seal(nil)).wantCode(t, "reauthenticating before connecting", authenticationFailed)
	t.Run("SAT", func(t *testing.T) { testReauthenticate(t, n, fabric.SAT, fabric.Guest) })
	t.Run("guest", func(t *testing.T) { testReauthenticate(t, n, fabric.Guest, fabric.SAT) })
}

func testReauthenticate(t *testing.T, n *node, kind, other fabric.TokenKind) {
	seal := func(change func(*fabric.Token)) string {
		return n.seal(func(t *fabric.Token) {
			t.Kind = kind
			t.ExpiresAt = t.ExpiresAt.Add(time.Minute)
			t.ID = ""
			change(t)
		})
	}
	c, first := n.connect(seal(func(*fabric.Token) {}))

	expired := seal(func(t *fabric.Token) { t.ExpiresAt = n.now().Add(-time.Second) })
	subscriber := seal(func(t *fabric.Token) { t.SubscriberID = uuidOf("6") })
	project := seal(func(t *fabric.Token) { t.ProjectID = uuidOf("6") })
	otherKind := seal(func(t *fabric.Token) { t.Kind = other })
	c.reauthenticate("garbage").wantCode(t, "garbage", authenticationFailed)
	c.reauthenticate(expired).wantCode(t, "an expired token", authenticationFailed)
	c.reauthenticate(subscriber).wantCode(t, "a token of another subscriber", validationFailed)
	c.reauthenticate(project).wantCode(t, "a token of another project", validationFailed)
	c.reauthenticate(otherKind).wantCode(t, "another kind of token", validationFailed)

	longer := seal(func(t *fabric.Token) { t.ExpiresAt = t.ExpiresAt.Add(time.Hour) })
	params := fmt.Sprintf(`{"authentication":{"project":%q,"jwt_token":%q}}`, first.Authorization.ProjectID, longer)
	var second connected
	c.call("signalwire.reauthenticate", params).into(t, &second)
	if second.Authorization.JTI == first.Authorization.JTI {
		t.Errorf("the new token has the id %s of the old one", first.Authorization.JTI)
	}
	if second.Identity != first.Identity {
		t.Errorf("the identity is %s, want %s", second.Identity, first.Identity)
	}
	if id := protocolToken(t, second.Protocol); id != second.Authorization.JTI {
		t.Errorf("the protocol is %q, want it to contain the new token's id %s",
			second.Protocol, second.Authorization.JTI)
	}
	expiresLater := second.Authorization.Subscriber.ExpiresAt - first.Authorization.Subscriber.ExpiresAt
	if expiresLater < 3600 || expiresLater > 3660 {
		t.Errorf("the new token expires %d seconds later, want 3600 to 3660", expiresLater)
	}
}

// TestOldTokenRevoked shows that a socket stays open if an earlier token of it is revoked, and is closed
// if its current token is revoked.
func TestOldTokenRevoked(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	old := n.token(func(t *fabric.Token) { t.ID = uuidOf("a") })
	c, _ := n.connect(must[string](t)(n.fabric.Tokens.Seal(old)))
	current := n.token(func(t *fabric.Token) { t.ID = uuidOf("b") })
	c.reauthenticate(must[string](t)(n.fabric.Tokens.Seal(current))).wantCode(t, "reauthenticating", 0)
	revoke := func(token fabric.Token) {
		t.Helper()
		r := revocation.Revocation{
			Kind:    revocation.Token,
			ID:      token.ID,
			Until:   n.now().Add(time.Hour),
			Expires: n.now().Add(2 * time.Hour),
		}
		if err := n.revoked.Revoke(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	revoke(old)
	c.call("signalwire.ping", `{}`)
	c.call("subscriber.online", `{}`).wantCode(t, "subscriber.online after the old token was revoked", 0)
	revoke(current)
	if code, reason := c.closed(); code != tokenDead {
		t.Errorf("after its current token was revoked, the socket is closed with %d %q, want 4401", code, reason)
	}
}

// reauthenticate sends another token on a socket.
func (c *client) reauthenticate(token string) frame {
	c.t.Helper()
	return c.call("signalwire.reauthenticate", fmt.Sprintf(`{"authentication":{"jwt_token":%q}}`, token))
}
