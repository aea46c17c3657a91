package attack

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// connectWith sends signalwire.connect over a new socket. It returns the code of the error,
// or 0 if there is none.
func connectWith(t *testing.T, s *harness.Server, params any) int {
	t.Helper()
	socket, status := s.Dial(t)
	if socket == nil {
		t.Fatalf("opening a socket returned %d", status)
	}
	defer socket.Abandon()
	if r := socket.Call(t, "signalwire.connect", params); r.Error != nil {
		return r.Error.Code
	}
	return 0
}

func withToken(token any) map[string]any {
	return map[string]any{"authentication": map[string]any{"jwt_token": token}}
}

// TestJ11RelayTokens shows that a socket can authenticate only with a SAT. Other kinds of tokens,
// malformed tokens and tokens in the wrong place are refused.
func TestJ11RelayTokens(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")
	if got := connectWith(t, p.Server, withToken(sat.Token)); got != 0 {
		t.Fatalf("a SAT returned %d", got)
	}

	service, _ := p.NewClient(t, "service", "--scope", "Voice", "--access-token", "fabric").Token(t,
		clientCredentials()).Want(t, 200).Object(t)["access_token"].(string)
	parts := strings.Split(sat.Token, ".")

	for name, token := range map[string]any{
		"refresh": sat.RefreshToken, "service": service, "API key": p.Key, "empty": "", "null": nil,
		"list":      []string{sat.Token},
		"no header": strings.Join(parts[1:], "."), "altered header": "e30." + strings.Join(parts[1:], "."),
		"two tokens": sat.Token + " " + sat.Token,
		"long":       sat.Token + strings.Repeat("A", 4000),
	} {
		if got := connectWith(t, p.Server, withToken(token)); got != -32002 && got != -32602 {
			t.Errorf("%s returned %d, want -32002 or -32602", name, got)
		}
	}

	for name, params := range map[string]any{
		"another place": map[string]any{"jwt_token": sat.Token},
		"an API key":    map[string]any{"authentication": map[string]any{"project": p.ID, "token": p.Key}},
		"another project": map[string]any{"authentication": map[string]any{"project": project(t).ID,
			"jwt_token": sat.Token}},
	} {
		if got := connectWith(t, p.Server, params); got != -32002 && got != -32602 {
			t.Errorf("%s returned %d, want -32002 or -32602", name, got)
		}
	}
}

// TestF11RelayForeign shows that a socket cannot act for another subscriber. It has no success with
// the protocol of that subscriber's socket, with that subscriber's token, or before it has
// authenticated.
func TestF11RelayForeign(t *testing.T) {
	p := project(t)
	ada, bob := p.NewSAT(t, "ada"), p.NewSAT(t, "bob")
	online := func(id string) any { return p.CLI(t, "", "subscriber", "show", "--project", p.ID, id)["online"] }

	// Resuming ada's protocol with bob's token does not change the presence of either.
	s, protocol := p.Connect(t, ada.Token, "")
	s.Call(t, "subscriber.online", nil)
	s.Abandon()
	thief, _ := p.Connect(t, bob.Token, protocol)
	if online(bob.SubscriberID) != false || online(ada.SubscriberID) != true {
		t.Errorf("with the protocol of ada's socket bob is online: %v, ada: %v", online(bob.SubscriberID),
			online(ada.SubscriberID))
	}

	// A socket cannot change its subscriber.
	guest := p.NewGuest(t, p.Address(t, ada.SubscriberID))
	invite := p.NewInvite(t, ada.Token, p.Address(t, ada.SubscriberID))
	for name, token := range map[string]string{"another's SAT": ada.Token, "a guest token": guest.Token,
		"another subscriber's invite": invite} {
		if r := thief.Call(t, "signalwire.reauthenticate", withToken(token)); r.Error == nil ||
			r.Error.Code != -32003 {
			t.Errorf("a socket takes %s: %+v %s", name, r.Error, r.Result)
		}
	}

	stranger, _ := p.Dial(t)
	for _, method := range []string{"subscriber.online", "subscriber.offline", "signalwire.reauthenticate",
		"webrtc.verto"} {
		if r := stranger.Call(t, method, withToken(ada.Token)); r.Error == nil || r.Error.Code != -32002 {
			t.Errorf("%s before authentication returned %+v %s", method, r.Error, r.Result)
		}
	}
}

// TestI01Sockets opens sockets that never authenticate. At most 200 of them may be open from one
// address, and the server closes each after a limited time. The server still answers other clients.
func TestI01Sockets(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")

	// Count the sockets that were certainly open at the same time as each one. They opened before
	// it was dialed, and were too young to be closed when it opened.
	began := time.Now()
	silent := dialUntilRefused(t, s)
	for _, last := range silent {
		open := 1
		for _, other := range silent {
			if other.opened.Before(last.asked) && last.opened.Sub(other.asked) < authenticates {
				open++
			}
		}
		if open > strangers {
			t.Fatalf("%d silent sockets are open at once, want %d at most", open, strangers)
		}
	}

	if len(silent) < strangers {
		t.Errorf("%d silent sockets are open when the next is refused, want %d", len(silent), strangers)
	}

	p.Get(t, "/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
	for i, socket := range silent {
		if code := socket.Closed(); code != 4408 {
			t.Fatalf("silent socket %d is closed with %d, want 4408", i, code)
		}
	}

	if took := time.Since(began); took > time.Minute {
		t.Errorf("silent sockets are closed after %v, want %v", took, authenticates)
	}
	p.Connect(t, sat.Token, "")
}

// These constants are the limits for unauthenticated sockets from one address: their number, and
// how long they may stay open.
const (
	strangers     = 200
	authenticates = 10 * time.Second
)

// A silentSocket never authenticates. It was opened between the times asked and opened.
type silentSocket struct {
	*harness.Socket
	asked, opened time.Time
}

// dialUntilRefused opens sockets until one is refused. It dials in parallel, so that all sockets
// are open before the first has been silent for too long.
func dialUntilRefused(t *testing.T, s *harness.Server) (silent []silentSocket) {
	t.Helper()

	var mu sync.Mutex
	var all sync.WaitGroup
	var refused atomic.Bool

	for range 8 {
		all.Go(func() {
			for began := time.Now(); !refused.Load(); {
				asked := time.Now()
				if asked.Sub(began) > time.Minute {
					t.Error("no socket is refused")
					return
				}
				socket, status, err := s.TryDial()
				opened := time.Now()
				if socket == nil {
					if refused.Store(true); err != nil || status != http.StatusTooManyRequests {
						t.Errorf("a socket is refused with %d, %v, want 429", status, err)
					}
					return
				}
				mu.Lock()
				silent = append(silent, silentSocket{socket, asked, opened})
				mu.Unlock()
			}
		})
	}

	all.Wait()
	t.Cleanup(func() {
		for _, socket := range silent {
			socket.Abandon()
		}
	})
	return silent
}

// TestI08RelayLog shows that no token is in the log, even at the debug level.
func TestI08RelayLog(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LOG__LEVEL=debug"}})
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")

	// Use the tokens in every place that a log line could contain.
	socket, protocol := s.Connect(t, sat.Token, "")
	socket.Call(t, "subscriber.online", nil)
	socket.Call(t, "signalwire.reauthenticate", withToken(sat.RefreshToken))
	socket.Call(t, sat.Token, map[string]any{"canary": sat.Token})
	socket.Abandon()
	p.Connect(t, sat.Token, protocol)
	connectWith(t, s, withToken("canary-"+sat.RefreshToken))

	if err := s.Stop(t); err != nil {
		t.Error(err)
	}

	log := s.Log()
	if !strings.Contains(log, `"socket closed"`) {
		t.Errorf("the log does not mention sockets:\n%s", log)
	}

	for name, secret := range map[string]string{"SAT": sat.Token, "refresh token": sat.RefreshToken, "key": p.Key} {
		for _, part := range strings.Split(secret, ".") {
			if len(part) > 20 && strings.Contains(log, part) {
				t.Errorf("the %s is in the log", name)
			}
		}
	}
}

// TestF05Messages shows that a socket stays open after malformed and deeply nested messages. A
// message of one MiB is refused, and the server still answers other clients.
func TestF05Messages(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")

	for name, text := range map[string]string{
		"nested": `{"jsonrpc":"2.0","id":1,"method":"signalwire.ping","params":` +
			strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + "}",
		"a long method": fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, strings.Repeat("m", 60_000)),
		"a long id": fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"signalwire.ping"}`,
			strings.Repeat("i", 60_000)),
		"a number":        `{"jsonrpc":"2.0","id":1e99999,"method":"signalwire.ping","params":{"timestamp":1e99999}}`,
		"duplicate":       `{"jsonrpc":"2.0","id":1,"id":2,"method":"subscriber.online","method":"signalwire.ping"}`,
		"a batch":         `[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"signalwire.ping"},`, 500) + `1]`,
		"control and RTL": `{"jsonrpc":"2.0","id":"\u0000\u202e","method":"\u001b[31m"}`,
	} {

		s, _ := p.Connect(t, sat.Token, "")
		if err := s.Send(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r := s.Call(t, "signalwire.ping", nil); r.Error != nil {
			t.Errorf("%s: a ping after it returned %+v", name, r.Error)
		}
	}

	large, _ := p.Connect(t, sat.Token, "")
	if err := large.Send(`"` + strings.Repeat("a", 1<<20) + `"`); err == nil && large.Closed() == 0 {
		t.Error("a message of a MiB is accepted")
	}
	p.Get(t, "/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
}
