package bus_test

import (
	"context"
	"encoding/json"
	"errors"
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

// eachTransport runs test once for each kind of transport, with two ends of it.
func eachTransport(t *testing.T, test func(t *testing.T, a, b bus.Transport)) {
	for name, url := range map[string]func(servers.T) string{"Redis": servers.Redis, "Cluster": servers.Cluster} {
		t.Run(name, func(t *testing.T) {
			at := url(t)
			test(t, channel(t, at), channel(t, at))
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		at := servers.Postgres(t)
		test(t, notifier(t, at), notifier(t, at))
	})
}

func channel(t *testing.T, url string) bus.Transport {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Config{URL: url, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Channel()
}

func notifier(t *testing.T, url string) bus.Transport {
	t.Helper()
	n := database.NewNotifier(database.Config{URL: url})
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// start runs a node until the test ends. Its name is unique among all tests.
func start(t *testing.T, handle map[string]bus.Handler, transports ...bus.Transport) (b *bus.Bus, name string) {
	t.Helper()
	return startNode(t, [32]byte{1}, handle, transports...)
}

// startNode is like start, but lets the caller choose the secret.
func startNode(t *testing.T, secret [32]byte, handle map[string]bus.Handler, transports ...bus.Transport) (
	b *bus.Bus, name string) {
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
	for end := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		var answer string
		err := b.Ask(ctx, other, "hello", nil, &answer)
		cancel()
		if err == nil && answer == "hello" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("asking = %q, %v, want hello", answer, err)
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
		got := make(chan item, 1000)
		a, _ := start(t, nil, ta)
		take := func(_ context.Context, _ string, body json.RawMessage) (any, error) {
			var i item
			err := json.Unmarshal(body, &i)
			got <- i
			return nil, err
		}
		_, name := start(t, map[string]bus.Handler{"item": take}, tb)
		meet(t, a, name)

		const count = 100
		length := func(i int) int { return i * i * 97 % 60_000 }
		for i := range count {
			a.Send(name, "item", item{i, strings.Repeat("ä€", length(i)/5)})
		}

		for i := range count {
			select {
			case it := <-got:
				if it.Number != i || it.Text != strings.Repeat("ä€", length(i)/5) {
					t.Fatalf("message %d is number %d with %d bytes", i, it.Number, len(it.Text))
				}
			case <-time.After(time.Minute):
				t.Fatalf("message %d did not arrive", i)
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
		if err := a.Ask(t.Context(), name, "fail", nil, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("a failure arrives as %v, want an error without the secret", err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := a.Ask(ctx, uuid.NewString(), "hello", nil, nil); !errors.Is(err, problem.Unavailable) {
			t.Errorf("asking a node that is gone = %v, want unavailable", err)
		}
	})
}

// TestFallback shows that a message is sent through the second transport while the first is
// unavailable.
func TestFallback(t *testing.T) {
	at := servers.Postgres(t)
	const nowhere = "postgres://nobody@127.0.0.1:1/none"
	a, _ := start(t, nil, notifier(t, nowhere), notifier(t, at))
	_, name := start(t, nil, notifier(t, at))
	meet(t, a, name)
}

// TestAlone shows that a bus without transports refuses messages immediately.
func TestAlone(t *testing.T) {
	b := bus.New(bus.Config{Node: "a"})
	if !b.Alone() {
		t.Error("a bus without transports is not alone")
	}
	if err := b.Ask(t.Context(), "b", "hello", nil, nil); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Ask = %v, want unavailable", err)
	}
	b.Send("b", "hello", nil)
	if b.Dropped() != 1 {
		t.Errorf("%d messages were dropped, want 1", b.Dropped())
	}
}

// TestTooLarge shows that messages above the limit are refused even if the transport could carry
// them.
func TestTooLarge(t *testing.T) {
	b := bus.New(bus.Config{Node: "a", Transports: []bus.Transport{nil}})
	err := b.Ask(t.Context(), "b", "hello", slices.Repeat([]string{"x"}, 100_000), nil)
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Ask with 400 kB = %v, want too large", err)
	}
}

// TestSelf shows that a node gets an answer to its own request. Nodes use such requests to check a
// transport.
func TestSelf(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, _ bus.Transport) {
		b, name := start(t, nil, ta)
		meet(t, b, name)
	})
}

// TestBroadcast shows that a broadcast reaches all other nodes of an installation once and in
// order, even between other messages.
func TestBroadcast(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		listener := func() (bus.Handler, chan string) {
			got := make(chan string, 1000)
			return func(_ context.Context, _ string, body json.RawMessage) (any, error) {
				got <- string(body)
				return nil, nil
			}, got
		}

		secret := [32]byte([]byte(uuid.NewString())) // tests share the transports
		own, mine := listener()
		one, first := listener()
		other, second := listener()
		a, _ := startNode(t, secret, map[string]bus.Handler{"note": own}, ta)
		b, bName := startNode(t, secret, map[string]bus.Handler{"note": one}, tb)
		_, cName := startNode(t, secret, map[string]bus.Handler{"note": other}, tb)
		startNode(t, [32]byte{9}, map[string]bus.Handler{"note": own}, tb)
		for _, name := range []string{bName, cName} {
			meet(t, a, name)
		}

		for i := range 20 {
			a.Broadcast("note", i)
			a.Send(bName, "note", "direct")
		}

		var numbers []string
		for range 40 {
			if text := <-first; text != `"direct"` {
				numbers = append(numbers, text)
			}
		}

		for i := range 20 {
			if text := <-second; text != numbers[i] || text != strconv.Itoa(i) {
				t.Errorf("broadcast %d arrives as %s and as %s, want its number at both nodes", i, numbers[i], text)
			}
		}

		if len(mine) > 0 {
			t.Errorf("the sender or a node with another secret gets %s", <-mine)
		}
		if n := b.Refused(); n > 0 {
			t.Errorf("%d messages are refused, want none", n)
		}
	})
}
