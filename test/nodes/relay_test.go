package nodes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/test/harness"
)

// soon limits how long a node may take to notice a change.
const soon = time.Minute

// wantOnline waits until a command that uses the first node's data reports that a subscriber is
// online or, if want is false, offline.
func wantOnline(t *testing.T, p *harness.Project, subscriber string, want bool) {
	t.Helper()
	harness.Eventually(t, soon, fmt.Sprintf("the subscriber to be online: %v", want), func() error {
		if got := p.CLI(t, "", "subscriber", "show", "--project", p.ID, subscriber)["online"]; got != want {
			return fmt.Errorf("online is %v", got)
		}
		return nil
	})
}

func online(t *testing.T, s *harness.Socket) {
	t.Helper()
	if r := s.Call(t, "subscriber.online", map[string]any{}); r.Error != nil {
		t.Fatalf("subscriber.online: %+v", r.Error)
	}
}

// TestOnlineSeenElsewhere shows that a subscriber is online while it has an online socket at either
// node.
func TestOnlineSeenElsewhere(t *testing.T) {
	n := two(t)
	here, there := n.Each[0], n.Each[1]
	p := n.NewProject(t)
	sat := p.NewSAT(t, "ada")
	a, _ := here.Connect(t, sat.Token, "")
	b, _ := there.Connect(t, sat.Token, "")

	wantOnline(t, p, sat.SubscriberID, false)
	online(t, a)
	wantOnline(t, p, sat.SubscriberID, true)

	online(t, b)
	a.Call(t, "subscriber.offline", map[string]any{})
	wantOnline(t, p, sat.SubscriberID, true)
	b.Call(t, "subscriber.offline", map[string]any{})
	wantOnline(t, p, sat.SubscriberID, false)
}

// TestRevokedElsewhere shows that revoking a token at one node closes the token's socket at the
// other node.
func TestRevokedElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)

	for name, end := range map[string]func(sat harness.SAT){
		"the token is revoked": func(sat harness.SAT) { n.Each[0].Command(t, sat.Token, "token", "revoke") },
		"all its tokens are revoked over REST": func(sat harness.SAT) {
			n.Each[0].Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sat.SubscriberID+"/tokens",
				p.Basic()).Want(t, 204)
		},
		"its refresh token is revoked over REST": func(sat harness.SAT) {
			n.Each[0].Post(t, "/api/fabric/subscribers/tokens/refresh", p.Basic(),
				harness.JSON(map[string]string{"refresh_token": sat.RefreshToken})).Want(t, 201)
			var used struct{ Data []struct{ ID string } }
			path := "/api/fabric/resources/subscribers/" + sat.SubscriberID + "/tokens"
			n.Each[0].Get(t, path, p.Basic()).Want(t, 200).Read(t, &used)
			n.Each[0].Do(t, "DELETE", path+"/"+used.Data[0].ID, p.Basic()).Want(t, 204)
		},
		"the subscriber is deleted": func(sat harness.SAT) {
			n.Each[0].Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sat.SubscriberID, p.Basic()).Want(t, 204)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sat := p.NewSAT(t, name)
			s, _ := n.Each[1].Connect(t, sat.Token, "")
			online(t, s)

			end(sat)
			harness.WithinASecond(t, name, func() error {
				_, err := s.TryCall("signalwire.ping", map[string]any{})
				if err == nil {
					return errors.New("the socket is still open")
				}
				return nil
			})
			if !s.WasTold("signalwire.disconnect") {
				t.Error("the client was not asked to disconnect")
			}
		})
	}
}

// TestSocketsMove shows that a client stays online if its node is stopped or killed and it
// reconnects at the other node.
func TestSocketsMove(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			n := two(t)
			p := n.NewProject(t)
			sat := p.NewSAT(t, "ada")
			s, protocol := n.Each[1].Connect(t, sat.Token, "")
			online(t, s)
			if how == "killed" {
				n.Each[1].Kill()
			} else if err := stop(t, n.Each[1], s); err != nil {
				t.Errorf("the node ended with %v", err)
			}
			wantOnline(t, p, sat.SubscriberID, true)
			again, _ := n.Each[0].Connect(t, sat.Token, protocol)
			again.Call(t, "subscriber.offline", map[string]any{})
			wantOnline(t, p, sat.SubscriberID, false)
		})
	}
}

// stop stops a node with an open socket. It checks that the client is asked to reconnect.
func stop(t *testing.T, node *harness.Server, s *harness.Socket) error {
	t.Helper()
	code := make(chan int, 1)
	go func() { code <- s.Closed() }()
	err := node.Stop(t)
	if got := <-code; got != int(websocket.StatusServiceRestart) {
		t.Errorf("the socket was closed with %d, want %d", got, websocket.StatusServiceRestart)
	}
	if !s.WasTold("signalwire.disconnect") {
		t.Error("the client was not asked to disconnect")
	}
	return err
}
