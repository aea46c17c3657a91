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
				if t.Kind = kind; kind == fabric.Guest {
					t.SubscriberID, t.ClientID = "", ""
				}
			})
			_, got := n.connect(must[string](t)(n.fabric.Tokens.Seal(token)))
			a := got.Authorization
			if a.JTI != token.ID || a.ProjectID != token.ProjectID ||
				a.Subscriber.ProjectID != token.ProjectID || a.Subscriber.SubscriberID != token.SubscriberID ||
				a.Subscriber.ApplicationID != token.ClientID ||
				a.Subscriber.ExpiresAt != token.ExpiresAt.Unix() || a.Subscriber.Version != 1 {
				t.Errorf("connecting with %+v returned %+v, want its claims", token, a)
			}

			if parts := strings.Split(got.Protocol, "_"); len(parts) != 3 || parts[1] != token.ID ||
				got.Identity == "" || got.ICEServers == nil {
				t.Errorf("connecting returned the protocol %q, the identity %q, the ICE servers %v",
					got.Protocol, got.Identity, got.ICEServers)
			}
		})
	}
}

// TestConnectRefused connects with invalid parameters and tokens. The same socket then connects
// with a valid token.
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

	tests := []struct {
		name, params string
		code         int
		message      string
	}{
		{"no params", `null`, invalidParams, ""},
		{"a list", `[]`, invalidParams, ""},
		{"no authentication", `{}`, invalidParams, ""},
		{"no token", `{"authentication":{"project":"p","token":"secret"}}`, invalidParams, ""},
		{"a number", `{"authentication":{"jwt_token":7}}`, invalidParams, ""},
		{"garbage", with("garbage"), authenticationFailed, ""},
		{"altered", with(good[:len(good)-2] + tail), authenticationFailed, ""},
		{"a service's", kind(fabric.Service), authenticationFailed, ""},
		{"a refresh token", kind(fabric.Refresh), authenticationFailed, ""},
		{"expired", with(n.seal(func(t *fabric.Token) { t.ExpiresAt = n.now().Add(-time.Second) })),
			authenticationFailed, ""},
		{"revoked", with(must[string](t)(n.fabric.Tokens.Seal(ended))), authenticationFailed, ""},
		{"of a different issuer", with(n.seal(func(t *fabric.Token) { t.Issuer = "http://elsewhere/" })),
			authenticationFailed, ""},
		{"of another project", strings.Replace(with(good), `"jwt_token"`,
			`"project":"`+uuidOf("9")+`","jwt_token"`, 1), authenticationFailed, ""},
		{"a protocol of another server", authentication(good) + `,"protocol":"signalwire_a_b_c"}`,
			validationFailed, "Requester validation failed"},
		{"a state of another server", authentication(good) + `,"authorization_state":"abc"}`,
			validationFailed, "Requester validation failed"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := n.dial()
			got := c.call("signalwire.connect", tt.params)
			if got.code() != tt.code || tt.message != "" && got.Error.Message != tt.message {
				t.Errorf("connecting returned %+v %s, want the code %d", got.Error, got.Result, tt.code)
			}
			if got := c.call("subscriber.online", `{}`); got.code() != authenticationFailed {
				t.Errorf("subscriber.online after it returned %+v %s, want authenticationFailed", got.Error, got.Result)
			}
			c.connect(good)
			if got := c.call("signalwire.connect", authentication(good)+"}"); got.code() != invalidRequest {
				t.Errorf("connecting twice returned %+v %s, want invalidRequest", got.Error, got.Result)
			}
		})
	}
}

// TestConnectLater connects to a node that receives no revocations. The node closes the socket
// instead of returning an error, because clients would never reconnect after an error.
func TestConnectLater(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	good := n.seal(nil)
	before, _ := n.connect(good)
	n.ahead.Store(int64(time.Minute)) // the revocations have not been polled yet
	n.ends()
	eventually(t, "the node to trust no token", func() bool { return n.fabric.Tokens.Revoked(n.token(nil)) != nil })
	c := n.dial()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"signalwire.connect","params":%s}}`, authentication(good)))
	if code, reason := c.closed(); code != 1013 {
		t.Errorf("the socket is closed with %d %q, want 1013", code, reason)
	}
	if got := before.call("subscriber.online", `{}`); got.code() != refused {
		t.Errorf("subscriber.online in the meantime returned %+v %s, want refused", got.Error, got.Result)
	}
}

func TestReauthenticate(t *testing.T) {
	w := newWorld(t)
	n := w.node(relay.Limits{})
	for _, kind := range []fabric.TokenKind{fabric.SAT, fabric.Guest} {
		make := func(change func(*fabric.Token)) string {
			return n.seal(func(t *fabric.Token) {
				t.Kind, t.ExpiresAt = kind, t.ExpiresAt.Add(time.Minute)
				t.ID = ""
				if change != nil {
					change(t)
				}
			})
		}

		other := fabric.Guest
		if kind == fabric.Guest {
			other = fabric.SAT
		}

		c, first := n.connect(make(nil))
		for name, tt := range map[string]struct {
			token string
			code  int
		}{
			"garbage": {"garbage", authenticationFailed},
			"expired": {make(func(t *fabric.Token) { t.ExpiresAt = w.now().Add(-time.Second) }),
				authenticationFailed},
			"another subscriber":    {make(func(t *fabric.Token) { t.SubscriberID = uuidOf("6") }), validationFailed},
			"another project":       {make(func(t *fabric.Token) { t.ProjectID = uuidOf("6") }), validationFailed},
			"another kind of token": {make(func(t *fabric.Token) { t.Kind = other }), validationFailed},
		} {
			body := fmt.Sprintf(`{"authentication":{"jwt_token":%q}}`, tt.token)
			if got := c.call("signalwire.reauthenticate", body); got.code() != tt.code {
				t.Errorf("%s, %s: got %+v %s, want the code %d", kind, name, got.Error, got.Result, tt.code)
			}
		}

		var second connected
		token := make(func(t *fabric.Token) { t.ExpiresAt = t.ExpiresAt.Add(time.Hour) })
		c.call("signalwire.reauthenticate",
			fmt.Sprintf(`{"authentication":{"project":%q,"jwt_token":%q}}`, first.Authorization.ProjectID,
				token)).into(t, &second)
		longer := second.Authorization.Subscriber.ExpiresAt - first.Authorization.Subscriber.ExpiresAt // in seconds
		if second.Authorization.JTI == first.Authorization.JTI || second.Identity != first.Identity ||
			longer < 3600 || longer > 3660 || strings.Split(second.Protocol, "_")[1] != second.Authorization.JTI {
			t.Errorf("%s: a new token returned %+v after %+v", kind, second, first)
		}
	}

	body := fmt.Sprintf(`{"authentication":{"jwt_token":%q}}`, n.seal(nil))
	if got := n.dial().call("signalwire.reauthenticate", body); got.code() != authenticationFailed {
		t.Errorf("reauthenticating before connecting returned %+v %s, want authenticationFailed", got.Error, got.Result)
	}
}

// TestOldTokenRevoked shows that a socket stays open if its earlier token is revoked.
func TestOldTokenRevoked(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	old := n.token(func(t *fabric.Token) { t.ID = uuidOf("a") })
	c, _ := n.connect(must[string](t)(n.fabric.Tokens.Seal(old)))
	var r connected
	c.call("signalwire.reauthenticate", fmt.Sprintf(
		`{"authentication":{"jwt_token":%q}}`, n.seal(func(t *fabric.Token) { t.ID = uuidOf("b") }))).into(t, &r)
	for _, id := range []string{old.ID, uuidOf("b")} {
		r := revocation.Revocation{
			Kind:    revocation.Token,
			ID:      id,
			Until:   n.now().Add(time.Hour),
			Expires: n.now().Add(2 * time.Hour),
		}
		if err := n.revoked.Revoke(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if id == old.ID {
			c.call("signalwire.ping", `{}`)
			if got := c.call("subscriber.online", `{}`); got.Error != nil {
				t.Errorf("after the old token was revoked, subscriber.online returned %+v, want no error", got.Error)
			}
		}
	}

	if code, reason := c.closed(); code != tokenDead {
		t.Errorf("after its own token was revoked, the socket is closed with %d %q, want 4401", code, reason)
	}
}
