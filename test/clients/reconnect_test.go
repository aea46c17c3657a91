package clients

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestSignalWireReconnects shows that an online SDK reconnects by itself, and is online again,
// after the server has been stopped or killed and then restarted.
func TestSignalWireReconnects(t *testing.T) {
	harness.NotStorage(t)
	for where, load := range map[string]func(*testing.T, *harness.Server, string) sdk{"Chromium": inChromium,
		"Node": inNode} {
		t.Run(where, func(t *testing.T) {
			server := harness.Start(t)
			p := server.NewProject(t)
			v := visitor{p, p.NewSubscriber(t)}
			s := load(t, server, "3.30.0")
			s.open(v.token(t))
			s.do("online()", nil)

			for how, end := range map[string]func(){
				"stopped": func() {
					if err := server.Stop(t); err != nil {
						t.Fatal(err)
					}
				},
				"killed": server.Kill,
			} {
				s.eval(t, "events.length = 0", new(int))
				end()
				server.Restart(t)

				s.wantEvent("session.reconnecting")
				s.wantEvent("session.connected")
				if !v.online(t) {
					t.Errorf("the server was %s: the SDK is connected again, but the subscriber is offline", how)
				}
				s.do("client.getSubscriberInfo()", nil)
			}

			s.do("client.offline()", nil)
			v.wantOnline(t, false)
		})
	}
}

// TestSignalWireBeta shows which parts of the SDK's next version work. That version has a different
// interface. docs/divergences.md also lists these parts.
func TestSignalWireBeta(t *testing.T) {
	harness.NotStorage(t)
	server := harness.Shared(t)
	p := server.NewProject(t)
	v := visitor{p, p.NewSubscriber(t)}
	s := inChromium(t, server, "4.0.0-beta.12")
	token := v.token(t)
	s.eval(t, fmt.Sprintf("begin(%q)", token), new(int))
	s.awaitFalse("!client.isConnected || !client.isRegistered")
	v.wantOnline(t, true)

	var email string
	if s.do("client.user.email", &email); email != v.sub.Email {
		t.Errorf("client.user.email is %q, want %q", email, v.sub.Email)
	}

	s.do("client.unregister()", nil)
	v.wantOnline(t, false)
	s.do("client.register()", nil)
	v.wantOnline(t, true)

	var errs []string
	if s.eval(t, "events", &errs); len(errs) != 0 {
		t.Errorf("the errors so far are %q, want none", errs)
	}
	v.Command(t, token, "token", "revoke")
	s.awaitFalse("!events.length")
	v.wantOnline(t, false)
}

// awaitFalse waits until a JavaScript expression becomes false.
func (s sdk) awaitFalse(expression string) {
	s.Helper()
	harness.Eventually(s, patience, expression+" to become false", func() error {
		var still bool
		if s.eval(s.T, expression, &still); still {
			return errors.New("the expression is still true")
		}
		return nil
	})
}
