package fabrictest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store/storetest"
)

// nodes returns two nodes on the same stores. Calling pass advances their clock.
func nodes(t *testing.T) (one, two *fabric.Fabric, pass func(time.Duration)) {
	t.Helper()
	dir := storetest.Dir(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	rows := storetest.Open(t, dir, nil)
	sessions, err := sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })
	config := fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Revocations: revocation.New(rows, now),
		Sessions:    sessions,
		Now:         now,
	}
	pass = func(d time.Duration) { ahead.Add(int64(d)) }
	return fabric.New(config), fabric.New(config), pass
}

// sat returns the token of a subscriber.
func sat(subscriber string) fabric.Token {
	return fabric.Token{
		Kind:         fabric.SAT,
		ProjectID:    "p",
		SubscriberID: subscriber,
		ExpiresAt:    time.Now().Add(24 * time.Hour),
	}
}

// wantSockets fails the test unless a subscriber is online through this many sockets.
func wantSockets(t *testing.T, f *fabric.Fabric, when, subscriber string, want int) fabric.Presence {
	t.Helper()
	got, err := f.Presence.Find(t.Context(), "p", subscriber)
	if err != nil {
		t.Fatalf("%s: Presence.Find: %v", when, err)
	}
	if got.Sockets != want {
		t.Errorf("%s: %s has %d sockets, want %d", when, subscriber, got.Sockets, want)
	}
	if online := want > 0; got.Online() != online {
		t.Errorf("%s: %s is online: %v, want %v", when, subscriber, got.Online(), online)
	}
	return got
}

func TestPresence(t *testing.T) {
	one, two, pass := nodes(t)
	ctx := t.Context()
	ada := sat("ada")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	wantSockets(t, one, "at first", "ada", 0)
	do(one.Presence.Offline(ctx, ada, "a"))
	do(one.Presence.Online(ctx, ada, "a"))
	since := wantSockets(t, two, "one socket", "ada", 1).Since
	wantSockets(t, two, "another subscriber", "bob", 0)
	elsewhere, err := two.Presence.Find(ctx, "q", "ada")
	if err != nil || elsewhere.Online() {
		t.Errorf("Presence requested by another project = %+v, %v, want none", elsewhere, err)
	}

	pass(40 * time.Second)
	do(two.Presence.Online(ctx, ada, "b"))
	if got := wantSockets(t, one, "two sockets", "ada", 2); !got.Since.Equal(since) {
		t.Errorf("online since %v, want %v, when the first went online", got.Since, since)
	}

	pass(30 * time.Second)
	if got := wantSockets(t, one, "the first was silent for more than a minute", "ada", 1); !got.Since.After(since) {
		t.Errorf("online since %v, want a time after %v", got.Since, since)
	}

	do(one.Presence.Online(ctx, ada, "a"))
	wantSockets(t, two, "the first is back", "ada", 2)
	do(one.Presence.Offline(ctx, ada, "b")) // on either node
	do(one.Presence.Offline(ctx, ada, "b"))
	do(two.Presence.Offline(ctx, ada, "a"))
	wantSockets(t, two, "at the end", "ada", 0)
}

// TestPresenceRefused shows that only a SAT makes a subscriber online, and only until the SAT expires.
func TestPresenceRefused(t *testing.T) {
	one, _, pass := nodes(t)
	for _, kind := range []fabric.TokenKind{fabric.Guest, fabric.Invite, fabric.Service} {
		token := sat("ada")
		token.Kind = kind
		if err := one.Presence.Online(t.Context(), token, "a"); !errors.Is(err, problem.Forbidden) {
			t.Errorf("Online with a %s = %v, want forbidden", kind, err)
		}
		if resumed, err := one.Presence.Resume(t.Context(), token, "a", "b"); err != nil || resumed {
			t.Errorf("Resume with a %s = %v, %v, want false", kind, resumed, err)
		}
	}

	short := sat("ada")
	short.ExpiresAt = time.Now().Add(10 * time.Second)
	if err := one.Presence.Online(t.Context(), short, "a"); err != nil {
		t.Fatal(err)
	}

	wantSockets(t, one, "before the token expires", "ada", 1)
	pass(11 * time.Second)
	wantSockets(t, one, "after the token has expired", "ada", 0)
}

func TestResume(t *testing.T) {
	one, two, pass := nodes(t)
	ctx := t.Context()
	ada := sat("ada")
	if err := one.Presence.Online(ctx, ada, "a"); err != nil {
		t.Fatal(err)
	}

	resume := func(f *fabric.Fabric, token fabric.Token, lost, socket string, want bool) {
		t.Helper()
		if got, err := f.Presence.Resume(ctx, token, lost, socket); err != nil || got != want {
			t.Errorf("Resume of %s as %s = %v, %v, want %v", lost, socket, got, err, want)
		}
	}

	resume(two, sat("bob"), "a", "x", false)
	resume(two, ada, "z", "x", false)
	wantSockets(t, two, "without resuming", "ada", 1)
	resume(two, ada, "a", "b", true)
	wantSockets(t, one, "resumed immediately", "ada", 1)
	resume(two, ada, "a", "c", false)
	pass(50 * time.Minute)
	wantSockets(t, one, "lost for long", "ada", 0)
	resume(one, ada, "b", "c", true)
	wantSockets(t, two, "resumed after a while", "ada", 1)
	pass(2 * time.Hour)
	resume(one, ada, "c", "d", false)
	wantSockets(t, two, "lost for too long", "ada", 0)
}

// TestPresenceRace shows that 50 sockets can go online and offline concurrently, on two nodes.
func TestPresenceRace(t *testing.T) {
	one, two, _ := nodes(t)
	ada := sat("ada")
	onEach := func(do func(node *fabric.Fabric, socket string) error) {
		t.Helper()
		both := []*fabric.Fabric{one, two}
		var work sync.WaitGroup
		for i := range 50 {
			work.Go(func() {
				if err := do(both[i%2], fmt.Sprint(i)); err != nil {
					t.Errorf("socket %d: %v", i, err)
				}
			})
		}
		work.Wait()
	}

	onEach(func(node *fabric.Fabric, socket string) error {
		return node.Presence.Online(t.Context(), ada, socket)
	})
	wantSockets(t, one, "after all went online", "ada", 50)
	onEach(func(node *fabric.Fabric, socket string) error {
		return node.Presence.Offline(t.Context(), ada, socket)
	})
	wantSockets(t, one, "after all went offline", "ada", 0)
}

// TestTooManySockets shows how many sockets of a subscriber can be online.
func TestTooManySockets(t *testing.T) {
	one, _, pass := nodes(t)
	ada := sat("ada")
	for i := range 100 {
		if err := one.Presence.Online(t.Context(), ada, fmt.Sprint(i)); err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
	}
	if err := one.Presence.Online(t.Context(), ada, "one more"); !errors.Is(err, problem.RateLimited) {
		t.Errorf("Online of one more socket = %v, want rate limited", err)
	}
	if err := one.Presence.Online(t.Context(), ada, "7"); err != nil {
		t.Errorf("an online socket that renews: %v, want no error", err)
	}

	pass(2 * time.Minute)
	if err := one.Presence.Online(t.Context(), ada, "one more"); err != nil {
		t.Errorf("Online of one more socket after the others went offline = %v, want no error", err)
	}

	wantSockets(t, one, "at the end", "ada", 1)
}
