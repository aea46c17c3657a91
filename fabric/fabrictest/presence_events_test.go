package fabrictest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store/storetest"
)

// A pair is two nodes with a project. The project's webhook receives presence events.
type pair struct {
	t        *testing.T
	one, two *fabric.Fabric
	webhook  fabric.Webhook
	token    fabric.Token // the subscriber's token
	pass     func(time.Duration)
}

func newPair(t *testing.T) *pair {
	t.Helper()
	ctx := t.Context()
	dir := storetest.Dir(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	rows := storetest.Open(t, dir, nil)
	sessions, err := sessionsql.Open(ctx, sessionsql.Config{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })

	config := fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Passwords:   password.Weak(1),
		Revocations: revocation.New(rows, now),
		Sessions:    sessions,
		Now:         now,
	}
	one := fabric.New(config)
	project, err := one.Projects.Create(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	email := "ada@example.com"
	subscriber, err := one.Subscribers.Create(ctx, project.ID, fabric.SubscriberInput{Email: &email})
	if err != nil {
		t.Fatal(err)
	}
	url := "https://example.com/"
	events := []string{"subscriber.online", "subscriber.offline"}
	webhook, err := one.Webhooks.Create(ctx, project.ID, fabric.WebhookInput{URL: &url, Events: &events})
	if err != nil {
		t.Fatal(err)
	}

	return &pair{
		t:       t,
		one:     one,
		two:     fabric.New(config),
		webhook: webhook,
		token: fabric.Token{
			Kind:         fabric.SAT,
			ProjectID:    project.ID,
			SubscriberID: subscriber.ID,
			ExpiresAt:    now().Add(24 * time.Hour),
		},
		pass: func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

// deliveries returns the events that were sent, newest first.
func (p *pair) deliveries() []fabric.Delivery {
	p.t.Helper()
	query := page.Query{Size: page.MaxSize}
	sent, err := p.one.Deliveries.List(p.t.Context(), p.token.ProjectID, p.webhook.ID, "", query)
	if err != nil {
		p.t.Fatal(err)
	}
	return sent.Items
}

// want fails the test unless exactly these events were sent, oldest first.
func (p *pair) want(when string, events ...string) {
	p.t.Helper()
	var got []string
	for _, d := range slices.Backward(p.deliveries()) {
		got = append(got, strings.TrimPrefix(string(d.Event), "subscriber."))
		if !strings.Contains(string(d.Body), `"email":"ada@example.com"`) {
			p.t.Errorf("%s was sent, want an event about the subscriber", d.Body)
		}
	}

	if !slices.Equal(got, events) {
		p.t.Errorf("%s: events %v, want %v", when, got, events)
	}
}

// do fails the test if one of the errors is not nil.
func (p *pair) do(errs ...error) {
	p.t.Helper()
	if err := errors.Join(errs...); err != nil {
		p.t.Fatal(err)
	}
}

// resume fails the test unless a socket takes the place of a lost one on the given node.
func (p *pair) resume(node *fabric.Fabric, lost, socket string) {
	p.t.Helper()
	resumed, err := node.Presence.Resume(p.t.Context(), p.token, lost, socket)
	if err != nil || !resumed {
		p.t.Fatalf("Resume of %s as %s = %v, %v, want true", lost, socket, resumed, err)
	}
}

// TestAnnounce shows that the start of the first socket and the end of the last socket are
// announced, no matter which node they are on.
func TestAnnounce(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("the first socket", "online")
	p.do(p.two.Presence.Online(ctx, p.token, "b"), p.one.Presence.Online(ctx, p.token, "a"))
	p.do(p.one.Presence.Offline(ctx, p.token, "a"))
	p.want("one of two closed", "online")
	p.do(p.two.Presence.Offline(ctx, p.token, "b"), p.one.Presence.Offline(ctx, p.token, "b"))
	p.want("both closed", "online", "offline")
	p.do(p.two.Presence.Online(ctx, p.token, "c"))
	p.want("back again", "online", "offline", "online")
	p.pass(50 * time.Second)
	p.resume(p.one, "c", "d")
	p.do(p.two.Presence.CheckStale(ctx))
	p.want("on another node", "online", "offline", "online")
}

// TestAnnounceLost shows that another node announces the end of a socket whose node is down.
func TestAnnounceLost(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.do(p.one.Presence.Online(ctx, p.token, "a"), p.two.Presence.CheckStale(ctx))
	p.want("online", "online")
	p.pass(30 * time.Second)
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.pass(31 * time.Second)
	p.do(p.two.Presence.CheckStale(ctx))
	p.want("still there", "online")
	p.pass(40 * time.Second)
	p.do(p.two.Presence.CheckStale(ctx), p.one.Presence.CheckStale(ctx))
	p.want("lost", "online", "offline")
	p.resume(p.two, "a", "b")
	p.want("resumed", "online", "offline", "online")
}

// TestAnnounceLater shows that a subscriber who is online while a webhook is enabled is announced at
// the next renewal.
func TestAnnounceLater(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	enable := func(enabled bool) {
		t.Helper()
		change := fabric.WebhookInput{Enabled: &enabled}
		if _, err := p.one.Webhooks.Update(ctx, p.token.ProjectID, p.webhook.ID, change); err != nil {
			t.Fatal(err)
		}
	}

	enable(false)
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("while the webhook is disabled")
	enable(true)
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("after the webhook was enabled", "online")
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("at the next renewal", "online")
}

// TestAnnounceRace shows that the events about many sockets that are opened and closed concurrently on
// both nodes alternate and end with the final state.
func TestAnnounceRace(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	var work sync.WaitGroup
	for i := range 12 {
		node := []*fabric.Fabric{p.one, p.two}[i%2]
		socket := string(rune('a' + i))
		work.Go(func() {
			for range 4 {
				if err := node.Presence.Online(ctx, p.token, socket); err != nil {
					t.Error(err)
				}
				if err := node.Presence.Offline(ctx, p.token, socket); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()

	sent := p.deliveries()
	if len(sent) == 0 {
		t.Fatal("no events were sent, want some")
	}
	want, next := fabric.SubscriberOnline, fabric.SubscriberOffline
	for _, d := range slices.Backward(sent) {
		if d.Event != want {
			t.Errorf("the event %s is %s, want %s", d.ID, d.Event, want)
		}
		want, next = next, want
	}

	if last := sent[0].Event; last != fabric.SubscriberOffline {
		t.Errorf("the last event is %s, want %s", last, fabric.SubscriberOffline)
	}
}
