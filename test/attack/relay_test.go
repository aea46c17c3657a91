package attack

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/test/harness"
)

// connectWith sends signalwire.connect over a new socket. It returns the code of the error in the
// server's answer, or 0 if the answer is not an error.
func connectWith(t *testing.T, s *harness.Server, params any) int {
	t.Helper()
	socket, status := s.Dial(t)
	if socket == nil {
		t.Fatalf("opening a socket returned the status %d, want an open socket", status)
	}
	defer socket.Abandon()

	return socket.Call(t, "signalwire.connect", params).Code()
}

// withToken returns the parameters of signalwire.connect that authenticate with a token.
func withToken(token any) map[string]any {
	return map[string]any{"authentication": map[string]any{"jwt_token": token}}
}

// isRefusal reports whether an error with this code means that the server did not authenticate the
// socket.
func isRefusal(code int) bool {
	return code == harness.CodeAuthenticationFailed || code == harness.CodeInvalidParams
}

// TestJ11RelayTokens shows that a socket can authenticate only with a SAT. Other kinds of tokens,
// malformed tokens and tokens in the wrong place are refused.
func TestJ11RelayTokens(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")
	if code := connectWith(t, p.Server, withToken(sat.Token)); code != 0 {
		t.Fatalf("connecting with a SAT returned the error %d, want no error", code)
	}

	service := p.NewClient(t, "service", "--scope", "Voice", "--access-token", "fabric")
	serviceToken := service.Token(t, clientCredentials()).Want(t, 200).Object(t)["access_token"]
	_, withoutHeader, _ := strings.Cut(sat.Token, ".")

	for name, token := range map[string]any{
		"a refresh token":              sat.RefreshToken,
		"a service token":              serviceToken,
		"an API key":                   p.Key,
		"an empty token":               "",
		"null":                         nil,
		"a list":                       []string{sat.Token},
		"a SAT without its header":     withoutHeader,
		"a SAT with an altered header": "e30." + withoutHeader,
		"two SATs":                     sat.Token + " " + sat.Token,
		"a SAT with more characters":   sat.Token + strings.Repeat("A", 4000),
	} {
		if code := connectWith(t, p.Server, withToken(token)); !isRefusal(code) {
			t.Errorf("connecting with %s returned the error %d, want a refusal", name, code)
		}
	}

	foreign := project(t)
	for name, params := range map[string]any{
		"a SAT outside authentication": map[string]any{"jwt_token": sat.Token},
		"a project and its API key": map[string]any{
			"authentication": map[string]any{"project": p.ID, "token": p.Key},
		},
		"a SAT and a different project": map[string]any{
			"authentication": map[string]any{"project": foreign.ID, "jwt_token": sat.Token},
		},
	} {
		if code := connectWith(t, p.Server, params); !isRefusal(code) {
			t.Errorf("connecting with %s returned the error %d, want a refusal", name, code)
		}
	}
}

// TestF11RelayForeign shows that a socket cannot act for another subscriber, even if it presents the
// protocol identifier of that subscriber's socket, or authenticates again with that subscriber's
// token.
func TestF11RelayForeign(t *testing.T) {
	p := project(t)
	ada := p.NewSAT(t, "ada")
	bob := p.NewSAT(t, "bob")
	online := func(id string) any {
		return p.CLI(t, "", "subscriber", "show", "--project", p.ID, id)["online"]
	}

	// Bob connects with the protocol identifier of ada's socket. This changes neither bob's presence
	// nor ada's.
	socket, protocol := p.Connect(t, ada.Token, "")
	socket.Call(t, "subscriber.online", nil)
	socket.Abandon()
	thief, _ := p.Connect(t, bob.Token, protocol)
	if online(bob.SubscriberID) != false {
		t.Error("bob is online after connecting with the protocol of ada's socket")
	}
	if online(ada.SubscriberID) != true {
		t.Error("ada is offline after bob connected with the protocol of ada's socket")
	}

	// A socket cannot authenticate again as a different subscriber.
	address := p.Address(t, ada.SubscriberID)
	for name, token := range map[string]string{
		"ada's SAT":     ada.Token,
		"a guest token": p.NewGuest(t, address).Token,
		"ada's invite":  p.NewInvite(t, ada.Token, address),
	} {
		r := thief.Call(t, "signalwire.reauthenticate", withToken(token))
		if r.Code() != harness.CodeValidationFailed {
			t.Errorf("reauthenticating with %s returned %+v %s, want the error %d", name, r.Error, r.Result,
				harness.CodeValidationFailed)
		}
	}
}

// TestF11RelayUnauthenticated shows that a socket cannot act for a subscriber before it has
// authenticated, even with a valid token in its requests.
func TestF11RelayUnauthenticated(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")
	socket, _ := p.Dial(t)

	for _, method := range []string{
		"subscriber.online", "subscriber.offline", "signalwire.reauthenticate", "webrtc.verto",
	} {
		r := socket.Call(t, method, withToken(sat.Token))
		if r.Code() != harness.CodeAuthenticationFailed {
			t.Errorf("%s before authentication returned %+v %s, want the error %d", method, r.Error, r.Result,
				harness.CodeAuthenticationFailed)
		}
	}
}

// The server allows this many unauthenticated sockets from one address, and keeps each open for
// this time.
const (
	maxSilent      = 200
	maxSilenceTime = 10 * time.Second
)

// TestI01Sockets opens sockets that never authenticate. The server refuses more than maxSilent of
// them from one address. It closes them all within a minute, and meanwhile answers other clients.
func TestI01Sockets(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")

	began := time.Now()
	silent := dialUntilRefused(t, s)
	if len(silent) < maxSilent {
		t.Errorf("%d silent sockets were opened before one was refused, want at least %d", len(silent), maxSilent)
	}
	for _, socket := range silent {
		if n := openWith(silent, socket); n > maxSilent {
			t.Fatalf("%d silent sockets were open at the same time, want at most %d", n, maxSilent)
		}
	}

	// The server closes the silent sockets, and meanwhile answers other clients.
	p.Get(t, "/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
	for i, socket := range silent {
		if code := socket.Closed(); code != harness.ClosedTimeout {
			t.Fatalf("silent socket %d was closed with code %d, want %d", i, code, harness.ClosedTimeout)
		}
	}

	if took := time.Since(began); took > time.Minute {
		t.Errorf("closing all silent sockets took %v, want at most a minute", took)
	}
	p.Connect(t, sat.Token, "")
}

// A silentSocket never authenticates. The server opened it between the times "dialed" and "opened".
type silentSocket struct {
	*harness.Socket
	dialed, opened time.Time
}

// openWith returns how many sockets were certainly open when the newest one was opened, including
// the newest. An older socket counts if it was opened before the newest was dialed, and if the
// server could not have closed it yet when the newest was opened.
func openWith(sockets []silentSocket, newest silentSocket) int {
	n := 1
	for _, older := range sockets {
		mayBeClosed := newest.opened.Sub(older.dialed) >= maxSilenceTime
		if older.opened.Before(newest.dialed) && !mayBeClosed {
			n++
		}
	}
	return n
}

// dialUntilRefused opens sockets until one is refused. It dials in parallel, in order to open many
// sockets before the server closes the first one for its silence.
func dialUntilRefused(t *testing.T, s *harness.Server) []silentSocket {
	t.Helper()

	var mu sync.Mutex
	var silent []silentSocket
	var refused atomic.Bool
	var dialing sync.WaitGroup
	deadline := time.Now().Add(time.Minute)

	for range 8 {
		dialing.Go(func() {
			for !refused.Load() {
				dialed := time.Now()
				if dialed.After(deadline) {
					t.Error("a minute passed, and no socket was refused")
					return
				}

				socket, status, err := s.TryDial()
				opened := time.Now()
				if socket == nil {
					refused.Store(true)
					if err != nil || status != http.StatusTooManyRequests {
						t.Errorf("a socket was refused with the status %d (error %v), want 429", status, err)
					}
					return
				}

				mu.Lock()
				silent = append(silent, silentSocket{Socket: socket, dialed: dialed, opened: opened})
				mu.Unlock()
			}
		})
	}
	dialing.Wait()

	t.Cleanup(func() {
		for _, s := range silent {
			s.Abandon()
		}
	})
	return silent
}

// TestI08RelayLog shows that neither a token nor the API key is in the log, even at the debug level.
func TestI08RelayLog(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_LOG__LEVEL=debug"}})
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")

	// Send the tokens in every place that the server might log.
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
		t.Errorf("the log does not contain \"socket closed\":\n%s", log)
	}

	for name, secret := range map[string]string{
		"SAT":           sat.Token,
		"refresh token": sat.RefreshToken,
		"key":           p.Key,
	} {
		for _, part := range strings.Split(secret, ".") {
			if len(part) > 20 && strings.Contains(log, part) {
				t.Errorf("the log contains the %s, or a part of it", name)
			}
		}
	}
}

// TestF05Messages shows that a socket stays open after unusual messages, such as deeply nested
// ones. A message larger than one MiB closes the socket, and the server still answers other clients.
func TestF05Messages(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")

	const ping = `{"jsonrpc":"2.0","id":1,"method":"signalwire.ping"}`
	nested := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	longMethod := strings.Repeat("m", 60_000)
	longID := strings.Repeat("i", 60_000)

	for name, text := range map[string]string{
		"nested":          `{"jsonrpc":"2.0","id":1,"method":"signalwire.ping","params":` + nested + `}`,
		"a long method":   `{"jsonrpc":"2.0","id":1,"method":"` + longMethod + `"}`,
		"a long id":       `{"jsonrpc":"2.0","id":"` + longID + `","method":"signalwire.ping"}`,
		"a large number":  `{"jsonrpc":"2.0","id":1e99999,"method":"signalwire.ping","params":{"timestamp":1e99999}}`,
		"duplicates":      `{"jsonrpc":"2.0","id":1,"id":2,"method":"subscriber.online","method":"signalwire.ping"}`,
		"a batch":         `[` + strings.Repeat(ping+",", 500) + `1]`,
		"control and RTL": `{"jsonrpc":"2.0","id":"\u0000\u202e","method":"\u001b[31m"}`,
	} {
		socket, _ := p.Connect(t, sat.Token, "")
		if err := socket.Send(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r := socket.Call(t, "signalwire.ping", nil); r.Error != nil {
			t.Errorf("%s: a ping after the message returned %+v", name, r.Error)
		}
	}

	socket, _ := p.Connect(t, sat.Token, "")
	large := `"` + strings.Repeat("a", 1<<20) + `"`
	if err := socket.Send(large); err == nil {
		const lost = -1 // the connection may be reset before the close frame arrives
		if code := socket.Closed(); code != int(websocket.StatusMessageTooBig) && code != lost {
			t.Errorf("after a message larger than 1 MiB, the socket was closed with %d, want %d",
				code, websocket.StatusMessageTooBig)
		}
	}
	p.Get(t, "/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
}
