package keystest

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A verifier verifies tokens with the JWKS from a node. It caches the JWKS for as long as the
// response allows.
type verifier struct {
	set   jose.JSONWebKeySet
	until time.Time
}

// verify verifies a token. If the cached JWKS is too old, it first gets the JWKS of the given node.
func (v *verifier) verify(t *testing.T, node *keys.Ring, token string) error {
	t.Helper()
	if !time.Now().Before(v.until) {
		doc := node.JWKS()
		var set jose.JSONWebKeySet
		check(t, json.Unmarshal(doc.Body, &set))
		v.set = set
		v.until = time.Now().Add(doc.MaxAge)
	}

	algorithms := []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.PS256, jose.EdDSA}
	jws, err := jose.ParseSignedCompact(token, algorithms)
	check(t, err)
	_, err = jws.Verify(v.set)
	return err
}

// TestRotationUnderLoad shows that every node accepts the tokens from every other node, even if
// keys rotate as fast, and clocks differ as much, as is allowed. A verifier with a cached JWKS
// never gets a token with an unknown kid.
func TestRotationUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const publish = 10 * time.Minute
		rows, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
		check(t, err)
		defer rows.Close()

		nodes, sealers := make([]*keys.Ring, 3), make([]*keys.Sealer, 3)
		for i := range nodes {
			skew := time.Duration(i-1) * publish / 4
			nodes[i] = open(t, keys.Config{
				Store:           rows,
				Master:          make([]byte, 32),
				Now:             func() time.Time { return time.Now().Add(skew) },
				SigningRotation: publish,
				SealingRotation: publish,
				Publish:         publish,
			})
			sealers[i] = nodes[i].Sealer("sat", "SAT", "x")
		}

		verifiers := make([]verifier, 20)
		// Only the node with this index rotates keys. The index changes, so that a key may be created
		// by one node and promoted by another.
		busy := 0
		for second := 0; second < 2*60*60; second += 2 {
			for i, r := range nodes {
				check(t, r.Sync(t.Context()))
				if i == busy {
					check(t, r.Tend(t.Context()))
				}
			}
			if rand.IntN(100) == 0 {
				busy = rand.IntN(len(nodes))
			}

			time.Sleep(2 * time.Second)
			alg := []keys.Use{keys.ES256, keys.EdDSA}[rand.IntN(2)]
			if second%20 == 0 {
				alg = []keys.Use{keys.RS256, keys.PS256}[rand.IntN(2)]
			}

			maker, opener := rand.IntN(len(nodes)), rand.IntN(len(nodes))
			token, err := nodes[maker].Sign(alg, "JWT", claims{"alice"})
			check(t, err)
			if _, ok := nodes[opener].VerifyJWS(token, "JWT"); !ok {
				t.Fatalf("node %d refuses a token that node %d signed", opener, maker)
			}
			anyVerifier := &verifiers[rand.IntN(len(verifiers))]
			if err := anyVerifier.verify(t, nodes[rand.IntN(len(nodes))], token); err != nil {
				t.Fatalf("a verifier refuses a token that node %d signed: %v", maker, err)
			}

			sealed, err := sealers[maker].Seal(claims{"alice"})
			check(t, err)
			var got claims
			if !sealers[opener].Open(sealed, &got) {
				t.Fatalf("node %d does not open a token that node %d sealed", opener, maker)
			}
		}

		for _, use := range keys.Uses() {
			counts := states(t, rows, use)
			if n := counts[keys.Current]; n != 1 {
				t.Errorf("%s: there are %d current keys, want 1", use, n)
			}
			if n := counts[keys.Next]; n != 1 {
				t.Errorf("%s: there are %d next keys, want 1", use, n)
			}
			if n := counts[keys.Retired]; n < 6 {
				t.Errorf("%s: there are %d retired keys, want at least 6", use, n)
			}
		}
	})
}

// TestRunHearsOfRetire shows that a node refuses a key at most 1.5 s after another node has revoked
// it.
func TestRunHearsOfRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
		check(t, err)
		defer rows.Close()
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		defer work.Wait()
		defer stop()

		config := keys.Config{Store: rows, Master: make([]byte, 32)}
		here, there := open(t, config), open(t, config)
		work.Go(func() { there.Run(ctx, slog.New(slog.DiscardHandler)) })
		token, err := here.Sign(keys.ES256, "JWT", claims{"alice"})
		check(t, err)
		time.Sleep(time.Second / 2)
		check(t, here.Retire(t.Context(), kid(t, rows, keys.ES256, keys.Current)))
		revoked := time.Now()
		for {
			if _, ok := there.VerifyJWS(token, "JWT"); !ok {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(revoked); took > 1500*time.Millisecond {
			t.Errorf("the other node accepted the token for %s, want at most 1.5 s", took)
		}
	})
}
