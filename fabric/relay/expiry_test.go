package relay_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// TestRevoked shows that a socket is closed when anything on which its token depends is revoked on
// another node. Sockets with other tokens stay open.
func TestRevoked(t *testing.T) {
	w := newWorld(t)
	here, there := w.node(relay.Limits{}), w.node(relay.Limits{})
	dependent := func(t *fabric.Token) {
		t.SessionID = "sid"
		t.GrantID = "grant"
		t.FamilyID = "family"
		t.KeyID = "key"
		t.IssuerID = "issuer"
		t.ParentID = "parent"
	}
	unrelated := func(t *fabric.Token) {
		t.ID = uuidOf("1")
		t.SubscriberID = uuidOf("2")
		t.ClientID = uuidOf("3")
		t.ProjectID = uuidOf("4")
	}

	for kind, id := range map[string]string{
		revocation.Token:      uuidOf("7"),
		revocation.Session:    "sid",
		revocation.Grant:      "grant",
		revocation.Family:     "parent",
		revocation.Subscriber: uuidOf("5"),
		revocation.Client:     uuidOf("c"),
		revocation.Key:        "key",
		revocation.Project:    w.project.ID,
	} {
		t.Run(kind, func(t *testing.T) {
			c, _ := here.connect(here.seal(dependent))
			c.must("subscriber.online")
			other, _ := here.connect(here.seal(unrelated))
			now := w.now()
			r := revocation.Revocation{Kind: kind, ID: id, Until: now, Expires: now.Add(time.Hour)}
			if err := there.revoked.Revoke(t.Context(), r); err != nil {
				t.Fatal(err)
			}

			c.wantTokenDead("revoked")
			c.wantTold("signalwire.disconnect")
			eventually(t, "the subscriber to be offline", func() bool { return there.online() == 0 })
			other.must("subscriber.online")
		})
	}
}

// TestKeyEnded shows that permanently retiring a sealing key closes only sockets whose tokens are
// sealed with that key.
func TestKeyEnded(t *testing.T) {
	w := newWorld(t)
	n := w.node(relay.Limits{})
	c, _ := n.connect(n.seal(nil))
	ended := ""
	for _, rec := range must[[]keys.Record](t)(w.rows.RingKeys(t.Context())) {
		if rec.Use == keys.Seal && rec.State == keys.Current {
			ended = rec.Kid
		}
	}
	if _, err := w.ring.Rotate(t.Context(), keys.Seal, true); err != nil {
		t.Fatal(err)
	}

	other, _ := n.connect(n.seal(nil))
	c.must("subscriber.online") // tokens of a retired key remain valid
	if err := w.ring.Retire(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	c.wantTokenDead("revoked")
	other.must("subscriber.online")
}

func TestExpired(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	soon := func(t *fabric.Token) { t.ExpiresAt = n.now().Add(time.Hour) }
	lively, _ := n.connect(n.seal(soon))
	lively.must("subscriber.online")
	deaf, _ := n.connect(n.seal(soon))
	deaf.deaf = true

	n.relay.WatchAt(time.Now().Add(2 * time.Hour))
	lively.wantTokenDead("expired")
	lively.wantTold("signalwire.disconnect")

	// The relay waits until the deaf client should have answered.
	n.relay.WatchAt(time.Now().Add(2 * time.Hour))
	n.relay.WatchAt(time.Now().Add(3 * time.Hour))
	deaf.wantTokenDead("expired")
	eventually(t, "the subscriber to be offline", func() bool { return n.online() == 0 })
}

// TestSilence shows that sockets of silent clients are closed, before and after they connect.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	nobody := w.node(relay.Limits{Authenticate: 100 * time.Millisecond}).dial()
	if code, reason := nobody.closed(); code != tooSlow {
		t.Errorf("the socket of a client that does not connect was closed with %d %q, want 4408", code, reason)
	}
	if len(nobody.requested) != 0 {
		t.Errorf("a client that does not connect received %+v, want nothing", nobody.requested)
	}

	n := w.node(relay.Limits{Ping: 100 * time.Millisecond, Silence: 10 * time.Second})
	lively, _ := n.connect(n.seal(nil))
	deaf, _ := n.connect(n.seal(nil))
	deaf.deaf = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if code, reason := deaf.closed(); code != tooSlow {
			t.Errorf("the socket of a client that answers nothing was closed with %d %q, want 4408", code, reason)
		}
	}()

	pings := 0
	lively.until("the deaf client to be disconnected", func(f frame) bool {
		if f.Method == "signalwire.ping" {
			pings++
		}
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})

	lively.must("subscriber.online")
	if pings < 2 {
		t.Errorf("a responsive client was pinged %d times, want at least 2", pings)
	}
}
