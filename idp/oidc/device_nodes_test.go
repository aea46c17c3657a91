package oidc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/problem"
)

// TestDeviceAtNodes shows that each step of the device flow may reach a different node. Of fifty
// concurrent polls, only one gets tokens. The session store does not contain the codes in plain text.
func TestDeviceAtNodes(t *testing.T) {
	w := newWorld(t)
	other := w.second()
	api, err := oidc.New(oidc.Config{Provider: other, Sessions: other.Sessions, Browsers: w.rows, AuthURL: w.url})
	must(t, err)
	second := httptest.NewServer(api.Handler())
	t.Cleanup(second.Close)

	// Change the node before each step.
	first := w.url
	c := w.tv()
	d := w.newDevice(c)
	w.url = second.URL
	b := w.newBrowser()
	page := b.enter(d.userCode)
	w.url = first
	page = b.logIn(page, email, secret)
	w.url = second.URL

	for _, entry := range w.entries() {
		for _, code := range []string{d.code, d.userCode, strings.ReplaceAll(d.userCode, "-", "")} {
			if strings.Contains(entry, code) {
				t.Errorf("the session store contains %s: %s", code, entry)
			}
		}
	}

	wantStatus(t, "allowing on another node", b.consent(page, "allow"), http.StatusOK)
	w.url = first
	d.wantsOneOfMany(other)
}

// wantsOneOfMany polls fifty times concurrently, on two nodes. It checks that only one poll gets
// tokens.
func (d device) wantsOneOfMany(other *idp.Provider) {
	d.w.t.Helper()
	nodes := []*idp.Provider{d.w.idp, other}

	var mu sync.Mutex
	var polls sync.WaitGroup
	outcomes := make(map[string]int)
	for i := range 50 {
		polls.Go(func() {
			_, err := nodes[i%2].Devices.Redeem(context.Background(), d.c, d.code, nil, "")
			outcome := text(err)
			if p := problem.First(err); p != nil {
				outcome = p.Code
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[outcome]++
		})
	}
	polls.Wait()

	if n := outcomes["<nil>"]; n != 1 {
		d.w.t.Errorf("%d of 50 concurrent polls got tokens, want 1", n)
	}
	if n := outcomes["invalid_grant"] + outcomes["slow_down"]; n != 49 {
		d.w.t.Errorf("the outcomes of 50 concurrent polls are %v, want 49 refusals", outcomes)
	}
}
