package password

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

func TestVerify(t *testing.T) {
	h := New(2)
	const nfc, nfd = "caf\u00e9 au lait", "cafe\u0301 au lait"
	hash, err := h.Hash(t.Context(), nfc)
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Hash(t.Context(), nfc)
	if err != nil || other == hash || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("Hash = %q, then %q, %v, want two different argon2id hashes", hash, other, err)
	}

	tests := []struct {
		name, hash, password string
		want                 bool
	}{
		{"the same password", hash, nfc, true},
		{"decomposed", hash, nfd, true},
		{"another", hash, nfc + "x", false},
		{"with a NUL at the end", hash, nfc + "\x00", false},
		{"with a NUL in it", hash, nfc + "\x00x", false},
		{"none", hash, "", false},
		{"no hash", "", nfc, false},
		{"no hash and an empty password", "", "", false},
		{"huge", hash, strings.Repeat("\u0301", 100_000), false},
	}

	for _, tt := range tests {
		if got, err := h.Verify(t.Context(), tt.hash, tt.password); got != tt.want || err != nil {
			t.Errorf("%s: Verify = %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}

	for _, broken := range []string{"x", "$argon2id$v=19$m=19456,t=2,p=1$",
		"$argon2id$v=19$m=99999999,t=2,p=1$AAAA$AAAA", strings.Replace(hash, "v=19", "v=18", 1)} {
		if got, err := h.Verify(t.Context(), broken, nfc); got || err == nil {
			t.Errorf("Verify with the hash %q = %v, %v, want an error", broken, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		password string
		ok       bool
	}{
		{"seven77", false},
		{"eight888", true},
		{strings.Repeat("e\u0301", 72), true}, // 72 characters after NFC
		{strings.Repeat("x", 72), true},
		{strings.Repeat("x", 73), false},
		{strings.Repeat("x", 100_000), false},
		{"not \xff UTF-8", false},
	}

	for _, tt := range tests {
		if err := Check("password", tt.password); (err == nil) != tt.ok {
			t.Errorf("Check(%.20q) = %v, want ok %v", tt.password, err, tt.ok)
		}
	}
}

// TestQueue shows that callers whose turn would not come in time are refused immediately, and that
// a caller stops waiting when its context ends.
func TestQueue(t *testing.T) {
	h := New(1)
	h.sem <- struct{}{} // a task that never ends
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	for range queue {
		go func() {
			_, err := h.Hash(ctx, "password")
			errs <- err
		}()
	}

	for h.Waiting() < queue {
		runtime.Gosched()
	}
	if _, err := h.Hash(t.Context(), "password"); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Hash with a full queue = %v, want unavailable", err)
	}

	cancel()
	for range queue {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("Hash with a canceled context = %v, want canceled", err)
		}
	}
	if got := h.Waiting(); got != 0 {
		t.Errorf("%d callers are still waiting, want none", got)
	}
}
