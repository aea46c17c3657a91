package dpop_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/spent"
)

// TestOnce shows that only one of several concurrent uses of a proof succeeds, and that clients
// with different keys may use the same jti.
func TestOnce(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	proof := h.proof(t, w.now)
	var callers sync.WaitGroup
	var accepted atomic.Int64
	for range 50 {
		callers.Go(func() {
			if _, err := w.Verify(context.Background(), []string{proof}, use); err == nil {
				accepted.Add(1)
			}
		})
	}

	callers.Wait()
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d of 50 uses of a proof succeeded, want 1", n)
	}

	same := newHolder(t).proof(t, w.now, "jti", "a")
	if _, err := w.Verify(t.Context(), []string{same}, use); err != nil {
		t.Error(err)
	}
	if _, err := w.Verify(t.Context(), []string{h.proof(t, w.now, "jti", "a")}, use); err != nil {
		t.Errorf("a jti that another key has used: %v, want success", err)
	}
}

// TestOnceAlone shows that the only node of an installation accepts each proof once, whether or not
// the verifier remembers the header of the proof. The next process of the node refuses the proof, too,
// even if the first process has not closed the log.
func TestOnceAlone(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	dir := t.TempDir()
	node := func() *dpop.Verifier {
		log, err := spent.Open(spent.Config{Dir: dir, Now: w.config.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		c := w.config
		c.Used = log
		return dpop.New(c)
	}

	first := node()
	var proofs []string
	for range 3 {
		proof := h.proof(t, w.now)
		proofs = append(proofs, proof)
		if _, err := first.Verify(t.Context(), []string{proof}, use); err != nil {
			t.Fatalf("Verify of a new proof = %v, want success", err)
		}
	}
	for age := time.Duration(0); age < time.Minute; age += 10 * time.Second {
		for _, v := range []*dpop.Verifier{first, node()} {
			for _, proof := range proofs {
				if _, err := v.Verify(t.Context(), []string{proof}, use); !errors.Is(err, dpop.ErrUsed) {
					t.Errorf("Verify of a proof used %s ago = %v, want ErrUsed", age, err)
				}
			}
		}
		w.now = w.now.Add(10 * time.Second)
	}
}

// TestNonce shows that a nonce is accepted for at least five minutes, and for less than eleven.
func TestNonce(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	nonce := w.Nonce()
	verifyAfter := func(age time.Duration) error {
		w.now = time.Now().Add(age)
		_, err := w.Verify(t.Context(), []string{h.proof(t, w.now, "nonce", nonce)}, use)
		return err
	}
	if err := verifyAfter(5 * time.Minute); err != nil {
		t.Errorf("Verify with a nonce from five minutes ago = %v, want success", err)
	}
	if err := verifyAfter(11 * time.Minute); err == nil {
		t.Error("Verify with a nonce from eleven minutes ago succeeds, want an error")
	}
}

// TestReplacedKey shows that one second after the key was replaced, the server offers nonces that are
// valid with the new key, and refuses earlier nonces.
func TestReplacedKey(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	key := "first"
	c := w.config
	c.Key = func(string) [32]byte { return sha256.Sum256([]byte(key)) }
	v := dpop.New(c)
	verify := func(nonce string) error {
		_, err := v.Verify(t.Context(), []string{h.proof(t, w.now, "nonce", nonce)}, use)
		return err
	}

	old := v.Nonce()
	if err := verify(old); err != nil {
		t.Fatal(err)
	}
	key = "second"
	w.now = w.now.Add(time.Second)
	if err := verify(v.Nonce()); err != nil {
		t.Errorf("the new nonce: %v, want success", err)
	}
	err := verify(old)
	if p := problem.First(err); p == nil || p.Code != "use_dpop_nonce" {
		t.Errorf("the nonce with the old key: %v, want use_dpop_nonce", err)
	}
}
