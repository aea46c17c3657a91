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
	if want := "$argon2id$v=19$m=19456,t=2,p=1$"; !strings.HasPrefix(hash, want) {
		t.Errorf("Hash = %q, want a hash that begins with %q", hash, want)
	}
	other, err := h.Hash(t.Context(), nfc)
	if err != nil || other == hash {
		t.Errorf("Hash of the same password = %q, %v, want a different hash", other, err)
	}

	tests := []struct {
		name, hash, password string
		want                 bool
	}{
		{"the same password", hash, nfc, true},
		{"decomposed", hash, nfd, true},
		{"a different password", hash, nfc + "x", false},
		{"with a NUL at the end", hash, nfc + "\x00", false},
		{"with a NUL in it", hash, nfc + "\x00x", false},
		{"none", hash, "", false},
		{"no hash", "", nfc, false},
		{"no hash and an empty password", "", "", false},
		{"huge", hash, strings.Repeat("\u0301", 100_000), false},
	}

	for _, tt := range tests {
		if got, err := h.Verify(t.Context(), tt.hash, tt.password); err != nil || got != tt.want {
			t.Errorf("%s: Verify = %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}

	for _, broken := range []string{
		"x",
		"$argon2id$v=19$m=19456,t=2,p=1$",
		"$argon2id$v=19$m=99999999,t=2,p=1$AAAA$AAAA",
		strings.Replace(hash, "v=19", "v=18", 1),
	} {
		if got, err := h.Verify(t.Context(), broken, nfc); err == nil || got {
			t.Errorf("Verify with the hash %q = %v, %v, want false and an error", broken, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, password := range []string{
		"eight888",
		strings.Repeat("e\u0301", 72), // 72 characters after NFC
		strings.Repeat("x", 72),
	} {
		if err := Check("password", password); err != nil {
			t.Errorf("Check(%.20q) = %v, want nil", password, err)
		}
	}

	for _, password := range []string{
		"seven77",
		strings.Repeat("x", 73),
		strings.Repeat("x", 100_000),
		"not \xff UTF-8",
	} {
		if err := Check("password", password); err == nil {
			t.Errorf("Check(%.20q) = nil, want an error", password)
		}
	}
}

// TestQueue shows that callers are refused immediately while the queue is full, and that a caller
// stops waiting when its context ends.
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
		t.Errorf("Hash with a full queue = %v, want problem.Unavailable", err)
	}

	cancel()
	for range queue {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("Hash with a canceled context = %v, want context.Canceled", err)
		}
	}
	if got := h.Waiting(); got != 0 {
		t.Errorf("%d callers are still waiting, want none", got)
	}
}
