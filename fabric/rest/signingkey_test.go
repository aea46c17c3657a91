package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const signingKeyPath = webhookPath + "/signing_key"

type signing struct {
	ID, Key string
	Next    *struct {
		ID, Key  string
		StartsAt string `json:"starts_at"`
	}
}

// signing returns the current signing key of the world's first project, and the next one.
func (w *world) signing(auth authorization) signing {
	w.t.Helper()
	r := w.call(auth, "GET", signingKeyPath, "")
	if r.status != http.StatusOK {
		w.t.Fatalf("GET %s: got %d %s, want 200", signingKeyPath, r.status, r.text)
	}
	return as[signing](w.t, r)
}

// wantSignedWith fails the test unless events are signed with the given key.
func (w *world) wantSignedWith(key string) {
	w.t.Helper()
	got, err := w.fabric.Webhooks.SigningKey(w.t.Context(), w.project.ID)
	if err != nil || got != key {
		w.t.Errorf("events are signed with %s, %v, want %s", got, err, key)
	}
}

func TestRotateSigningKey(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	first := w.signing(boss)
	if len(first.Key) != 67 {
		t.Fatalf("the first key has %d characters, want 67", len(first.Key))
	}
	if first.Next != nil {
		t.Fatalf("the first key has the successor %+v, want none", *first.Next)
	}
	if diff := cmp.Diff(first, w.signing(boss)); diff != "" {
		t.Fatalf("a second GET returns another key (-first +second):\n%s", diff)
	}

	rotated := as[signing](t, w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":3600}`))
	if rotated.Key != first.Key {
		t.Fatalf("during the overlap, the key is %s, want %s", rotated.Key, first.Key)
	}
	if rotated.Next == nil {
		t.Fatal("during the overlap, there is no next key")
	}
	if rotated.Next.Key == first.Key {
		t.Fatal("the next key is the same as the first")
	}
	w.wantSignedWith(first.Key)

	w.pass(time.Hour)
	now := w.signing(boss)
	if now.Key != rotated.Next.Key {
		t.Errorf("after the overlap, the key is %s, want %s", now.Key, rotated.Next.Key)
	}
	if now.Next != nil {
		t.Errorf("after the overlap, the next key is %+v, want none", *now.Next)
	}
	w.wantSignedWith(rotated.Next.Key)

	last := as[signing](t, w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":0}`))
	if last.Key == now.Key {
		t.Error("a rotation without overlap returns the same key")
	}
	if last.Next != nil {
		t.Errorf("a rotation without overlap returns the next key %+v, want none", *last.Next)
	}
	stored, err := w.rows.ListSigningKeys(t.Context(), w.project.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range stored {
		if strings.Contains(k.Sealed, last.Key) {
			t.Errorf("the signing key %s is stored unsealed", k.ID)
		}
	}
}

// TestSigningKeyOfFuture shows that a node whose clock is behind signs with the key that another
// node has just created. The project has only this key.
func TestSigningKeyOfFuture(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	rotated := as[signing](t, w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":0}`))
	w.pass(-time.Minute)
	if got := w.signing(boss); got.Key != rotated.Key {
		t.Errorf("the key is %s, want %s", got.Key, rotated.Key)
	}
	w.wantSignedWith(rotated.Key)
}

// TestRotateBehind shows that on a node whose clock is behind, a new key still comes after the
// current key, even if the overlap is shorter than the difference of the clocks.
func TestRotateBehind(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	current := as[signing](t, w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":0}`))
	w.pass(-time.Minute)
	rotated := as[signing](t, w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":10}`))
	if rotated.Key != current.Key {
		t.Errorf("during the overlap, the key is %s, want %s", rotated.Key, current.Key)
	}
	if rotated.Next == nil {
		t.Fatal("during the overlap, there is no next key")
	}

	w.pass(2 * time.Minute)
	if got := w.signing(boss); got.Key != rotated.Next.Key {
		t.Errorf("after the overlap, the key is %s, want %s", got.Key, rotated.Next.Key)
	}
	w.wantSignedWith(rotated.Next.Key)
}

func TestRotateSigningKeyFaults(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	for _, body := range []string{`{"overlap":-1}`, `{"overlap":99999999999}`, `{"overlap":"x"}`} {
		got := w.call(boss, "POST", signingKeyPath+"/rotate", body).faults(t)
		if got != "overlap:invalid_parameter" {
			t.Errorf("rotate with %s: got %s, want overlap:invalid_parameter", body, got)
		}
	}

	r := w.call(boss, "POST", signingKeyPath+"/rotate", `{"overlap":3600}`)
	r.wantStatus(t, "rotate", http.StatusOK)
	if got := w.call(boss, "POST", signingKeyPath+"/rotate", "").faults(t); got != "overlap:invalid_parameter" {
		t.Errorf("rotate again during the overlap: got %s, want overlap:invalid_parameter", got)
	}
}
