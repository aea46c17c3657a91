package oidc_test

import (
	"errors"
	"fmt"
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
	used, old := w.device(c), w.device(c)

	b := w.browser()
	b.consent(b.confirmation(used), "allow")
	page := b.confirmation(old)
	w.pass(10 * time.Minute)

	for name, code := range map[string]string{
		"none": "", "short": "BCDF", "long": used.user + "B", "vowels": "AEIO-UAEI",
		"no letters": "1234-5678", "unknown": "BBBB-BBBB", "huge": strings.Repeat("B", 5000),
		"used": used.user, "expired": old.user, "markup": `"><script>`, "not in the alphabet": strings.Repeat("ǰ", 8),
	} {
		got := b.enter(code)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="device-error"`) ||
			strings.Contains(got.body, "<script") {
			t.Errorf("%s: %d %s, want 422", name, got.status, got.body)
		}
	}

	if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
		t.Errorf("the page of an expired device: %d, want 400", got.status)
	}
	old.wants("after the code expired", "expired_token")

	if got := b.get("/device?user_code=" + url.QueryEscape(`"><script>`)); got.status != http.StatusOK ||
		!strings.Contains(got.body, `value=""`) {
		t.Errorf("a link with an unknown code: %d %s, want the form without a code", got.status, got.body)
	}
}

// TestUserCodeGuessed shows that the number of guesses at user codes is limited.
func TestUserCodeGuessed(t *testing.T) {
	w := newWorld(t)
	w.idp.DeviceGuesses = 5
	d := w.device(w.tv())

	for i := range 5 {
		if got := w.browser().enter(fmt.Sprintf("BBBB-BBB%c",
			"BCDFG"[i])); got.status != http.StatusUnprocessableEntity {
			t.Fatalf("guess %d: %d %s, want 422", i, got.status, got.body)
		}
	}

	// Right codes are refused in the same way as wrong ones.
	for _, code := range []string{d.user, "BBBB-BBBH"} {
		got := w.browser().enter(code)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" ||
			!strings.Contains(got.body, "Too many codes") {
			t.Errorf("%s after five guesses: %d %v %s, want 429", code, got.status, got.header, got.body)
		}
	}

	w.pass(10*time.Minute + time.Second)
	b := w.browser()
	d = w.device(d.c)
	b.consent(b.confirmation(d), "allow")
	d.wants("after the limit expired", "")
}

// TestUserCodesGuessedAtOnce shows that the limit also applies to concurrent guesses.
func TestUserCodesGuessedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.idp.DeviceGuesses = 5

	var looked atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, _, err := w.idp.Devices.EnterUserCode(t.Context(), "BBBB-BBBB", "192.0.2.1"); errors.Is(err,
				problem.NotFound) {
				looked.Add(1)
			} else if !errors.Is(err, problem.RateLimited) {
				t.Errorf("a guess: %v, want RateLimited", err)
			}
		})
	}

	all.Wait()
	if looked.Load() != 5 {
		t.Errorf("%d of 50 concurrent guesses were looked up, want 5", looked.Load())
	}
	if _, _, err := w.idp.Devices.EnterUserCode(t.Context(), "BBBB-BBBB", "192.0.2.2"); !errors.Is(err,
		problem.NotFound) {
		t.Errorf("a guess from another network: %v, want NotFound", err)
	}
}
