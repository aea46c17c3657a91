package oidc_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// TestUserCodeWrong shows that unknown, used and expired codes get the same response.
func TestUserCodeWrong(t *testing.T) {
	w := newWorld(t)
	c := w.tv()
	used, old := w.newDevice(c), w.newDevice(c)

	b := w.newBrowser()
	b.consent(b.confirmation(used), "allow")
	page := b.confirmation(old)
	w.pass(10 * time.Minute)

	for name, code := range map[string]string{
		"none":                "",
		"short":               "BCDF",
		"long":                used.userCode + "B",
		"vowels":              "AEIO-UAEI",
		"no letters":          "1234-5678",
		"unknown":             "BBBB-BBBB",
		"huge":                strings.Repeat("B", 5000),
		"used":                used.userCode,
		"expired":             old.userCode,
		"markup":              `"><script>`,
		"not in the alphabet": strings.Repeat("ǰ", 8),
	} {
		got := b.enter(code)
		wantStatus(t, name, got, http.StatusUnprocessableEntity)
		wantText(t, name, got, `id="device-error"`)
		wantNoText(t, name, got, "<script")
	}

	wantStatus(t, "the page of an expired device", b.consent(page, "allow"), http.StatusBadRequest)
	old.wantsError("after the code expired", "expired_token")

	got := b.get("/device?user_code=" + url.QueryEscape(`"><script>`))
	wantStatus(t, "a link with an unknown code", got, http.StatusOK)
	wantText(t, "a link with an unknown code", got, `value=""`)
}

// TestUserCodeGuessed shows that the number of guesses at user codes is limited.
func TestUserCodeGuessed(t *testing.T) {
	w := newWorld(t)
	w.idp.DeviceGuesses = 5
	d := w.newDevice(w.tv())

	for _, guess := range []string{"BBBB-BBBB", "BBBB-BBBC", "BBBB-BBBD", "BBBB-BBBF", "BBBB-BBBG"} {
		wantStatus(t, "guessing "+guess, w.newBrowser().enter(guess), http.StatusUnprocessableEntity)
	}

	// Right codes are refused in the same way as wrong ones.
	for _, code := range []string{d.userCode, "BBBB-BBBH"} {
		got := w.newBrowser().enter(code)
		wantStatus(t, code+" after five guesses", got, http.StatusTooManyRequests)
		wantText(t, code+" after five guesses", got, "Too many codes")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%s after five guesses: no Retry-After, want one", code)
		}
	}

	w.pass(10*time.Minute + time.Second)
	b := w.newBrowser()
	d = w.newDevice(d.c)
	b.consent(b.confirmation(d), "allow")
	d.wantsTokens("after the limit expired")
}

// TestUserCodesGuessedAtOnce shows that the limit also applies to concurrent guesses.
func TestUserCodesGuessedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.idp.DeviceGuesses = 5

	guess := func(network string) error {
		_, _, err := w.idp.Devices.EnterUserCode(t.Context(), "BBBB-BBBB", network)
		return err
	}

	var checked atomic.Int64
	var guesses sync.WaitGroup
	for range 50 {
		guesses.Go(func() {
			err := guess("192.0.2.1")
			switch {
			case errors.Is(err, problem.NotFound):
				checked.Add(1)
			case !errors.Is(err, problem.RateLimited):
				t.Errorf("a guess: %v, want NotFound or RateLimited", err)
			}
		})
	}
	guesses.Wait()
	if n := checked.Load(); n != 5 {
		t.Errorf("%d of 50 concurrent guesses were looked up, want 5", n)
	}
	if err := guess("192.0.2.2"); !errors.Is(err, problem.NotFound) {
		t.Errorf("a guess from another network: %v, want NotFound", err)
	}
}
