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
	ctx, dir := t.Context(), storetest.Dir(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	rows := storetest.Open(t, dir, nil)
	sessions, err := sessionsql.Open(ctx, sessionsql.Config{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = sessions.Close() })
	c := fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Passwords:   password.Weak(1),
		Revocations: revocation.New(rows, now),
		Sessions:    sessions,
		Now:         now,
	}
	p := &pair{t: t, one: fabric.New(c), two: fabric.New(c), pass: func(d time.Duration) { ahead.Add(int64(d)) }}
	project, err := p.one.Projects.Create(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}

	url, email := "https://example.com/", "ada@example.com"
	events := []string{"subscriber.online", "subscriber.offline"}
	s, serr := p.one.Subscribers.Create(ctx, project.ID, fabric.SubscriberInput{Email: &email})
	p.webhook, err = p.one.Webhooks.Create(ctx, project.ID, fabric.WebhookInput{URL: &url, Events: &events})
	if err != nil || serr != nil {
		t.Fatal(err, serr)
	}

	p.token = fabric.Token{
		Kind:         fabric.SAT,
		ProjectID:    project.ID,
		SubscriberID: s.ID,
		ExpiresAt:    now().Add(24 * time.Hour),
	}
	return p
}

// want fails the test unless exactly these events were sent, oldest first.
func (p *pair) want(when string, events ...string) {
	p.t.Helper()
	all, err := p.one.Deliveries.List(p.t.Context(), p.token.ProjectID, p.webhook.ID, "", page.Query{Size: 100})
	if err != nil {
		p.t.Fatal(err)
	}

	var got []string
	for _, d := range slices.Backward(all.Items) {
		got = append(got, strings.TrimPrefix(string(d.Event), "subscriber."))
		if !strings.Contains(string(d.Body), `"email":"ada@example.com"`) {
			p.t.Errorf("%s was sent, which is not about the subscriber", d.Body)
		}
	}

	if !slices.Equal(got, events) {
		p.t.Errorf("%s: events %v, want %v", when, got, events)
	}
}

func (p *pair) do(errs ...error) {
	p.t.Helper()
	if err := errors.Join(errs...); err != nil {
		p.t.Fatal(err)
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
	if resumed, err := p.one.Presence.Resume(ctx, p.token, "c", "d"); err != nil || !resumed {
		t.Fatalf("Resume = %v, %v", resumed, err)
	}

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
	if resumed, err := p.two.Presence.Resume(ctx, p.token, "a", "b"); err != nil || !resumed {
		t.Fatalf("Resume = %v, %v", resumed, err)
	}

	p.want("resumed", "online", "offline", "online")
}

// TestAnnounceLater creates a webhook while a subscriber is online. The next renewal announces
// the subscriber.
func TestAnnounceLater(t *testing.T) {
	p := newPair(t)
	ctx, off, on := t.Context(), false, true
	update := func(enabled *bool) {
		t.Helper()
		_, err := p.one.Webhooks.Update(ctx, p.token.ProjectID, p.webhook.ID, fabric.WebhookInput{Enabled: enabled})
		if err != nil {
			t.Fatal(err)
		}
	}

	update(&off)
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("no webhook wants it")
	update(&on)
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("a webhook wants it", "online")
	p.do(p.one.Presence.Online(ctx, p.token, "a"))
	p.want("it was announced", "online")
}

// TestAnnounceRace opens and closes many sockets on both nodes concurrently. The events must
// alternate and end with the final state.
func TestAnnounceRace(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	var work sync.WaitGroup
	for i := range 12 {
		f := []*fabric.Fabric{p.one, p.two}[i%2]
		work.Go(func() {
			id := string(rune('a' + i))
			for range 4 {
				err := errors.Join(f.Presence.Online(ctx, p.token, id), f.Presence.Offline(ctx, p.token, id))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}

	work.Wait()
	all, err := p.one.Deliveries.List(ctx, p.token.ProjectID, p.webhook.ID, "", page.Query{Size: 1000})
	if err != nil || len(all.Items) == 0 {
		t.Fatalf("%d events were sent, %v", len(all.Items), err)
	}

	for i, d := range slices.Backward(all.Items) {
		want := fabric.SubscriberOnline
		if (len(all.Items)-1-i)%2 == 1 {
			want = fabric.SubscriberOffline
		}
		if d.Event != want {
			t.Errorf("event %d of %d is %s, want %s", len(all.Items)-i, len(all.Items), d.Event, want)
		}
	}

	if last := all.Items[0].Event; last != fabric.SubscriberOffline {
		t.Errorf("the last event says that the subscriber is %s, want offline", last)
	}
}
