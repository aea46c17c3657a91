package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session/redis"
	"github.com/selvage/selvage/test/servers"
)

// eachTransport runs test once for each kind of transport, with two transports that are connected to the
// same server.
func eachTransport(t *testing.T, test func(t *testing.T, a, b bus.Transport)) {
	t.Run("Redis", func(t *testing.T) {
		url := servers.Redis(t)
		test(t, newChannel(t, url), newChannel(t, url))
	})
	t.Run("Cluster", func(t *testing.T) {
		url := servers.Cluster(t)
		test(t, newChannel(t, url), newChannel(t, url))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := servers.Postgres(t)
		test(t, newNotifier(t, url), newNotifier(t, url))
	})
}

func newChannel(t *testing.T, url string) bus.Transport {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Config{URL: url, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Channel()
}

func newNotifier(t *testing.T, url string) bus.Transport {
	t.Helper()
	n := database.NewNotifier(database.Config{URL: url})
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// start runs a node until the test ends. The name of the node is unique among all tests.
func start(t *testing.T, handle map[string]bus.Handler, transports ...bus.Transport) (b *bus.Bus, name string) {
	t.Helper()
	return startNode(t, [32]byte{1}, handle, transports...)
}

// startNode is like start, but lets the caller choose the secret.
func startNode(
	t *testing.T, secret [32]byte, handle map[string]bus.Handler, transports ...bus.Transport,
) (b *bus.Bus, name string) {
	t.Helper()
	name = uuid.NewString()
	b = bus.New(bus.Config{Node: name, Secret: secret, Transports: transports})
	b.Handle("hello", func(context.Context, string, json.RawMessage) (any, error) { return "hello", nil })
	for kind, h := range handle {
		b.Handle(kind, h)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return b, name
}

// meet waits until b and the node named other can exchange messages.
func meet(t *testing.T, b *bus.Bus, other string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		var answer string
		err := b.Ask(ctx, other, "hello", nil, &answer)
		cancel()
		if err == nil && answer == "hello" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Ask = %q, %v, want hello", answer, err)
		}
	}
}

// TestOrder shows that messages of all sizes arrive whole and in order.
func TestOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		type item struct {
			Number int
			Text   string
		}
		received := make(chan item, 1000)
		a, _ := start(t, nil, ta)
		receive := func(_ context.Context, _ string, body json.RawMessage) (any, error) {
			var i item
			err := json.Unmarshal(body, &i)
			received <- i
			return nil, err
		}
		_, name := start(t, map[string]bus.Handler{"item": receive}, tb)
		meet(t, a, name)

		const count = 100
		text := func(number int) string {
			bytes := number * number * 97 % 60_000
			return strings.Repeat("ä€", bytes/len("ä€"))
		}
		for number := range count {
			a.Send(name, "item", item{number, text(number)})
		}

		for want := range count {
			select {
			case got := <-received:
				if got.Number != want {
					t.Fatalf("message %d arrives instead of message %d", got.Number, want)
				}
				if got.Text != text(want) {
					t.Fatalf("message %d arrives with %d bytes, want the %d bytes that were sent",
						want, len(got.Text), len(text(want)))
				}
			case <-time.After(time.Minute):
				t.Fatalf("message %d did not arrive", want)
			}
		}
	})
}

// TestErrors shows that an error meant for clients is passed to the other node, and that other
// errors are not.
func TestErrors(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		a, _ := start(t, nil, ta)
		_, name := start(t, map[string]bus.Handler{
			"refuse": func(context.Context, string, json.RawMessage) (any, error) {
				return nil, problem.BadParam("sdp", "sdp is wrong")
			},
			"fail": func(context.Context, string, json.RawMessage) (any, error) {
				return nil, errors.New("secret")
			},
		}, tb)
		meet(t, a, name)

		err := a.Ask(t.Context(), name, "refuse", nil, nil)
		want := problem.BadParam("sdp", "sdp is wrong")
		if p := problem.First(err); p == nil || *p != *want {
			t.Errorf("a refusal arrives as %#v, want the handler's problem", err)
		}
		err = a.Ask(t.Context(), name, "fail", nil, nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("a failure arrives as %v, want an error without the secret", err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := a.Ask(ctx, uuid.NewString(), "hello", nil, nil); !errors.Is(err, problem.Unavailable) {
			t.Errorf("Ask of a node that is gone = %v, want problem.Unavailable", err)
		}
	})
}

// TestFallback shows that a message is sent through the second transport while the first is
// unavailable.
func TestFallback(t *testing.T) {
	url := servers.Postgres(t)
	const nowhere = "postgres://nobody@127.0.0.1:1/none"
	a, _ := start(t, nil, newNotifier(t, nowhere), newNotifier(t, url))
	_, name := start(t, nil, newNotifier(t, url))
	meet(t, a, name)
}

// TestStandby shows that messages pass through the primary even if the URL names a standby first, as it
// does after a promotion. A standby refuses LISTEN and NOTIFY.
func TestStandby(t *testing.T) {
	pair := servers.OwnPostgresPair(t)
	u, err := url.Parse(pair.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	primary, standby, _ := strings.Cut(u.Host, ",")
	u.Host = standby + "," + primary
	a, _ := start(t, nil, newNotifier(t, u.String()))
	_, name := start(t, nil, newNotifier(t, u.String()))
	meet(t, a, name)
}

// TestAlone shows that a bus without transports refuses messages immediately.
func TestAlone(t *testing.T) {
	b := bus.New(bus.Config{Node: "a"})
	if !b.Alone() {
		t.Error("a bus without transports is not alone")
	}
	if err := b.Ask(t.Context(), "b", "hello", nil, nil); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Ask = %v, want problem.Unavailable", err)
	}
	b.Send("b", "hello", nil)
	if n := b.Dropped(); n != 1 {
		t.Errorf("%d messages were dropped, want 1", n)
	}
}

// TestTooLarge shows that messages above the limit are refused even if the transport could carry
// them.
func TestTooLarge(t *testing.T) {
	b := bus.New(bus.Config{Node: "a", Transports: []bus.Transport{nil}})
	err := b.Ask(t.Context(), "b", "hello", slices.Repeat([]string{"x"}, 100_000), nil)
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Ask with 400 kB = %v, want an error that the message is too large", err)
	}
}

// TestSelf shows that a node gets an answer to a request to itself. Nodes check a transport with such
// requests.
func TestSelf(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, _ bus.Transport) {
		b, name := start(t, nil, ta)
		meet(t, b, name)
	})
}

// TestBroadcast shows that broadcasts reach each other node of the installation once and in order, even
// if other messages are sent between them.
func TestBroadcast(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		collect := func(received chan<- string) map[string]bus.Handler {
			return map[string]bus.Handler{
				"note": func(_ context.Context, _ string, body json.RawMessage) (any, error) {
					received <- string(body)
					return nil, nil
				},
			}
		}

		secret := [32]byte([]byte(uuid.NewString())) // tests share the transports
		unwanted := make(chan string, 1000)
		receivedByB, receivedByC := make(chan string, 1000), make(chan string, 1000)
		a, _ := startNode(t, secret, collect(unwanted), ta)
		b, bName := startNode(t, secret, collect(receivedByB), tb)
		_, cName := startNode(t, secret, collect(receivedByC), tb)
		startNode(t, [32]byte{9}, collect(unwanted), tb)
		meet(t, a, bName)
		meet(t, a, cName)

		var want []string
		for i := range 20 {
			a.Broadcast("note", i)
			a.Send(bName, "note", "direct")
			want = append(want, strconv.Itoa(i))
		}

		var broadcastsToB, broadcastsToC []string
		for range 40 {
			if text := <-receivedByB; text != `"direct"` {
				broadcastsToB = append(broadcastsToB, text)
			}
		}
		for range 20 {
			broadcastsToC = append(broadcastsToC, <-receivedByC)
		}
		if !slices.Equal(broadcastsToB, want) {
			t.Errorf("the broadcasts that reach b are %v, want %v", broadcastsToB, want)
		}
		if !slices.Equal(broadcastsToC, want) {
			t.Errorf("the broadcasts that reach c are %v, want %v", broadcastsToC, want)
		}

		if len(unwanted) > 0 {
			t.Errorf("the sender or a node with a different secret gets %s", <-unwanted)
		}
		if n := b.Refused(); n > 0 {
			t.Errorf("%d messages are refused, want none", n)
		}
	})
}
