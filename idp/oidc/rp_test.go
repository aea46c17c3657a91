package oidc_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/page"
)

// An rp is a client that receives back-channel logouts. It records the logout tokens.
type rp struct {
	w      *world
	client idp.Client
	secret string

	mu     sync.Mutex
	status int
	tokens []string
}

// newRP registers a client that receives logouts.
func (w *world) newRP(change func(*idp.Client)) *rp {
	w.t.Helper()
	r := &rp{w: w, status: http.StatusOK}
	srv := httptest.NewServer(r)
	w.t.Cleanup(srv.Close)
	r.client, r.secret = w.client(func(c *idp.Client) {
		withLogout(c)
		c.Type, c.AuthMethod, c.BackchannelLogoutURI = idp.Web, idp.AuthPost, srv.URL+"/logout?tenant=1"
		if change != nil {
			change(c)
		}
	})
	return r
}

// ServeHTTP receives a logout, which must be a form with only the logout token.
func (r *rp) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	received := req.Method + " " + req.RequestURI + " " + req.Header.Get("Content-Type")
	if want := "POST /logout?tenant=1 application/x-www-form-urlencoded"; received != want {
		r.w.t.Errorf("the client received %s, want %s", received, want)
	}
	for _, header := range []string{"Cookie", "Authorization"} {
		if value := req.Header.Get(header); value != "" {
			r.w.t.Errorf("the client received the %s %s, want none", header, value)
		}
	}
	if err := req.ParseForm(); err != nil {
		r.w.t.Errorf("the client received an invalid form: %v", err)
	}
	if len(req.PostForm) != 1 || len(req.PostForm["logout_token"]) != 1 {
		r.w.t.Errorf("the client received %v, want only one logout token", req.PostForm)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = append(r.tokens, req.PostForm.Get("logout_token"))
	w.Header().Set("Location", "http://127.0.0.1:1/") // must not be followed
	w.WriteHeader(r.status)
}

// answer sets the status of the next responses.
func (r *rp) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// receiveLogouts waits until the client has received want logouts, and its last response has been
// recorded. It returns the tokens.
func (r *rp) receiveLogouts(want int) []string {
	r.w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		r.mu.Lock()
		tokens, status := slices.Clone(r.tokens), r.status
		r.mu.Unlock()
		isUnrecorded := func(l fabric.Logout) bool { return l.Status != status }
		if len(tokens) >= want && !slices.ContainsFunc(r.logouts(), isUnrecorded) {
			return tokens
		}
	}
	r.w.t.Fatalf("client %s received %+v, want %d logout tokens", r.client.ID, r.logouts(), want)
	return nil
}

// logouts lists the deliveries of logouts to the client.
func (r *rp) logouts() []fabric.Logout {
	r.w.t.Helper()
	deliveries, err := r.w.fabric.Deliveries.ListLogouts(context.Background(), r.w.project.ID, r.client.ID, "",
		page.Query{Size: page.MaxSize})
	must(r.w.t, err)
	return deliveries.Items
}

// signIn signs in to the client with a browser, and returns the ID token.
func (r *rp) signIn(b *browser, who string) string {
	r.w.t.Helper()
	got := b.authorize(request(r.client))
	if got.location == nil {
		got = b.logIn(got, who, secret)
	}
	set := r.w.redeem(r.client, got.param("code"), "client_secret", r.secret).json(r.w.t)
	return text(set["id_token"])
}

// deliver runs the delivery of logouts until the test ends.
func (w *world) deliver() {
	d := deliver.New(deliver.Config{
		Queue:   w.rows.Logouts.Queue(),
		Client:  egress.Policy{Allow: []string{"127.0.0.1"}}.Client(),
		Now:     w.now,
		Agent:   "test",
		Writer:  oidc.LogoutWriter(w.idp),
		Verdict: oidc.LogoutVerdict,
		Log:     slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// wantLogout checks that the client has one logout, and checks its state, its last status and its
// number of attempts.
func (r *rp) wantLogout(state fabric.DeliveryState, status, attempts int) {
	r.w.t.Helper()
	logouts := r.logouts()
	if len(logouts) != 1 {
		r.w.t.Fatalf("there are %d logouts, want 1: %+v", len(logouts), logouts)
	}
	got := logouts[0]
	if got.State != state {
		r.w.t.Errorf("the logout is %s, want %s", got.State, state)
	}
	if got.Status != status {
		r.w.t.Errorf("the last status of the logout is %d, want %d", got.Status, status)
	}
	if got.Attempts != attempts {
		r.w.t.Errorf("the logout was sent %d times, want %d", got.Attempts, attempts)
	}
}
