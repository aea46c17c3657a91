package attack

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/test/harness"
)

// TestS09FirstFactor lets many browsers that are signed in with only the password set up an
// account's second factor at the same time. One of them succeeds. The others must sign in again
// with that factor.
func TestS09FirstFactor(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	const crowd = 16

	browsers, pages, keys := make([]*harness.Browser, crowd), make([]harness.Page, crowd), make([]string, crowd)
	for i := range browsers {
		browsers[i] = p.Browser()
		login := browsers[i].Open(t, "/account?project="+p.ID)
		pages[i] = browsers[i].Submit(t, login, "login-submit",
			map[string]string{"username": sub.Email, "password": sub.Password})
		device := &factortest.Authenticator{Origin: p.AuthURL}
		keys[i] = string(device.Create([]byte(pages[i].Attribute(t, "passkey-form", "data-options"))))
	}

	answers := make([]harness.Page, crowd)
	harness.AtOnce(crowd, func(i int) {
		harness.Patiently(func() (int, error) {
			answers[i] = browsers[i].Submit(t, pages[i], "passkey-submit",
				map[string]string{"credential": keys[i], "name": "Mine"})
			return answers[i].Status, nil
		})
	})

	won := 0
	for i, a := range answers {
		switch {
		case a.Has("recovery-codes"):
			won++
		case !a.Has("login-submit"):
			t.Errorf("browser %d got neither recovery codes nor a login page: %d %s", i, a.Status, a.Body)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d browsers set up the account's first factor, want 1", won, crowd)
	}

	var factors struct{ Data []struct{ Type string } }
	p.Get(t, "/api/fabric/resources/subscribers/"+sub.ID+"/factors", p.Basic()).Want(t, http.StatusOK).Read(t,
		&factors)

	passkeys := 0
	for _, f := range factors.Data {
		if f.Type == "passkey" {
			passkeys++
		}
	}
	if passkeys != 1 {
		t.Errorf("the account has %d passkeys, want 1: %v", passkeys, factors.Data)
	}
}

// TestStreamNeedsFactor shows that the dashboard's event streams follow the rule for second
// factors. An open stream ends when its operator gets a role that requires a second factor. No new
// stream begins until the operator has presented one.
func TestStreamNeedsFactor(t *testing.T) {
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_OPERATORS__REQUIRE_FACTOR=owners"}})
	p := s.NewProject(t)
	email := newOperator(t, p, "viewer@"+p.ID)
	b := p.Browser()
	b.Submit(t, b.Open(t, "/dashboard"), "login-submit",
		map[string]string{"username": email, "password": operatorPassword})

	base := "/dashboard/projects/" + p.ID + "/recordings"
	stream := html.UnescapeString(livePattern.FindString(string(b.Open(t, base).Want(t, 200).Body)))
	if stream == "" {
		t.Fatal("the page does not name an event stream")
	}

	// The beginning of the response proves that the stream is open before the role changes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a stream that is not ended lasts 10 minutes
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.HTTP+stream, nil)
	if err != nil {
		t.Fatal(err)
	}

	b.Cookies()(r)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()

	lines := bufio.NewScanner(a.Body)
	if !lines.Scan() || a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream returned %d %s, want 200 text/event-stream", a.StatusCode,
			a.Header.Get("Content-Type"))
	}

	p.CLI(t, "", "operator", "update", email, "--role", "owner@"+p.ID)
	got := ""
	for lines.Scan() {
		got += lines.Text() + "\n"
	}
	if !strings.Contains(got, "event: end") {
		t.Errorf("after the change, the stream sent %q (error: %v), want event: end", got, lines.Err())
	}
	again := p.Get(t, stream, b.Cookies())
	if again.Status != http.StatusSeeOther {
		t.Errorf("following events without a second factor returned %d %s, want 303",
			again.Status, again.Body)
	}
}

var livePattern = regexp.MustCompile(`/dashboard/projects/[^"]*/recordings/live[^"]*`)
