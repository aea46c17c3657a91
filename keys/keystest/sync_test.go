package keystest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// counted is a store that counts calls of RingVersion, and whose embedded store can be replaced.
type counted struct {
	asked atomic.Int64
	mu    sync.Mutex
	*store.Store
}

// RingVersion counts a call. A ring calls it before the other methods, so it always notices a
// replaced store.
func (c *counted) RingVersion(ctx context.Context) (int64, error) {
	c.asked.Add(1)
	c.mu.Lock()
	rows := c.Store
	c.mu.Unlock()
	return rows.RingVersion(ctx)
}

// TestUnknownKid shows that a node accepts tokens whose kid it has not read yet. Unknown kids make
// it read the ring at most once a second.
func TestUnknownKid(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	count := &counted{Store: rows}
	fast, slow := open(t, clock.node(rows)), open(t, clock.node(count))
	for range 2 { // twice, so that the next key is unknown, too
		for _, use := range keys.Uses() {
			_, err := fast.Rotate(t.Context(), use, true)
			check(t, err)
		}
	}

	signed, err := fast.Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	sealed, err := fast.Sealer("sat", "SAT", "x").Seal(claims{"alice"})
	check(t, err)
	foreign, err := openRing(t, openStore(t)).Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)

	if _, ok := slow.VerifyJWS(signed, "JWT"); !ok {
		t.Error("a token that a key from another node signed is refused")
	}

	var opened claims
	if !slow.Sealer("sat", "SAT", "x").Open(sealed, &opened) {
		t.Error("a token that a key from another node sealed is refused")
	}

	flood := func() (asked int64) { // sends a thousand tokens with unknown kids
		before := count.asked.Load()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 20 {
					if _, ok := slow.VerifyJWS(foreign, "JWT"); ok {
						t.Error("a token of another ring is accepted")
					}
				}
			})
		}
		wg.Wait()
		return count.asked.Load() - before
	}

	clock.pass(time.Second)
	if asked := flood(); asked != 1 {
		t.Errorf("a thousand unknown kids within a second caused %d calls, want 1", asked)
	}

	clock.pass(time.Second - 1)
	if asked := flood(); asked != 0 {
		t.Errorf("just under a second later they caused %d calls, want 0", asked)
	}

	clock.pass(1)
	if asked := flood(); asked != 1 {
		t.Errorf("a second later they caused %d calls, want 1", asked)
	}
}

// hanging is a store that does not answer while hangs is set. When the caller's context ends, it
// advances clock by a second.
type hanging struct {
	*store.Store
	clock *manualClock
	hangs atomic.Bool
	asked atomic.Int64
}

// RingVersion does not answer while the store hangs.
func (h *hanging) RingVersion(ctx context.Context) (int64, error) {
	if h.hangs.Load() {
		h.asked.Add(1)
		<-ctx.Done()
		h.clock.pass(time.Second)
		return 0, ctx.Err()
	}
	return h.Store.RingVersion(ctx)
}

// TestUnknownKidsWhileStoreHangs shows that if the store hangs, several tokens with unknown kids
// cause only one read, for which all of them wait.
func TestUnknownKidsWhileStoreHangs(t *testing.T) {
	rows := &hanging{Store: openStore(t), clock: &manualClock{}}
	r := open(t, rows.clock.node(rows))
	foreign, err := openRing(t, openStore(t)).Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	rows.hangs.Store(true)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _ = r.VerifyJWS(foreign, "JWT") })
	}
	wg.Wait()
	if asked := rows.asked.Load(); asked != 1 {
		t.Errorf("ten tokens caused %d calls, want 1", asked)
	}
}

// TestStoreAway shows that a ring works while its store is unavailable, and recovers when the store
// is back.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		openRows := func() *store.Store {
			rows, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: dir})
			check(t, err)
			return rows
		}

		rows := &counted{Store: openRows()}
		ctx, stop := context.WithCancel(t.Context())
		r := open(t, keys.Config{Store: rows, Master: make([]byte, 32)})
		var log bytes.Buffer
		var work sync.WaitGroup
		work.Go(func() { r.Run(ctx, slog.New(slog.NewTextHandler(&log, nil))) })
		settle := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		settle(time.Hour + 500*time.Millisecond)
		check(t, r.Status().Err)
		if age := time.Since(r.Status().Synced); age != 500*time.Millisecond {
			t.Errorf("the last sync was %s ago, want half a second", age)
		}

		check(t, rows.Close())
		settle(25 * time.Hour) // until the sealing key is due
		if r.Status().Err == nil {
			t.Error("Status without a store reports no error")
		}
		if age := time.Since(r.Status().Synced); age < 25*time.Hour {
			t.Errorf("without a store, the last sync was %s ago, want at least 25 h", age)
		}

		signed, err := r.Sign(keys.RS256, "JWT", claims{"alice"})
		check(t, err)
		sealed, err := r.Sealer("sat", "SAT", "x").Seal(claims{"alice"})
		check(t, err)
		if _, ok := r.VerifyJWS(signed, "JWT"); !ok {
			t.Error("without a store, a token that the ring signed is refused")
		}
		var opened claims
		if !r.Sealer("sat", "SAT", "x").Open(sealed, &opened) {
			t.Error("without a store, a token that the ring sealed is refused")
		}
		if _, err := r.Rotate(t.Context(), keys.ES256, true); err == nil {
			t.Error("Rotate without a store: got nil, want an error")
		}

		again := openRows()
		rows.mu.Lock()
		rows.Store = again
		rows.mu.Unlock()
		settle(2 * time.Second)
		check(t, r.Status().Err)
		if age := time.Since(r.Status().Synced); age > time.Second {
			t.Errorf("when the store is back, the last sync was %s ago, want at most a second", age)
		}
		if since := time.Since(r.Status().Since[keys.Seal]); since > 2*time.Second {
			t.Errorf("the sealing key is %s old, want a new one", since)
		}

		stop()
		work.Wait()
		check(t, again.Close())
		for _, part := range []string{"level=ERROR", "works again", "a new key is in use"} {
			if n := strings.Count(log.String(), part); n != 1 {
				t.Errorf("the log has %q %d times, want once:\n%s", part, n, log.String())
			}
		}
	})
}

// TestOpenTogetherWithOtherMasters shows that if rings are opened concurrently with two master
// keys, one of the master keys wins. All keys are created under it, and opening a ring with the
// other one fails.
func TestOpenTogetherWithOtherMasters(t *testing.T) { eachStore(t, testOtherMasters) }

func testOtherMasters(t *testing.T, rows *store.Store) {
	masters := [2][]byte{bytes.Repeat([]byte{0}, 32), bytes.Repeat([]byte{1}, 32)}
	var errs [2][4]error // the results of opening a ring, by master key
	var wg sync.WaitGroup
	for m := range errs {
		for i := range errs[m] {
			wg.Go(func() {
				config := keys.Config{Store: rows, Master: masters[m], Custody: spared{}}
				_, errs[m][i] = keys.Open(context.Background(), config)
			})
		}
	}
	wg.Wait()

	winner, loser := 0, 1
	if errs[winner][0] != nil {
		winner, loser = 1, 0
	}
	for _, err := range errs[winner] {
		if err != nil {
			t.Errorf("Open with master key %d, which won: %v", winner, err)
		}
	}
	for _, err := range errs[loser] {
		if !errors.Is(err, keys.ErrMaster) {
			t.Errorf("Open with master key %d, which lost: got %v, want ErrMaster", loser, err)
		}
	}
	if n, want := len(records(t, rows)), 2*len(keys.Uses()); n != want { // current and next keys
		t.Errorf("there are %d keys, want %d", n, want)
	}
}

// interrupted is a store that calls meanwhile once, after it has read the master keys.
type interrupted struct {
	*store.Store
	meanwhile func()
}

// MasterKeys reads the master keys, and then calls meanwhile.
func (s *interrupted) MasterKeys(ctx context.Context) ([]keys.MasterRecord, error) {
	records, err := s.Store.MasterKeys(ctx)
	if run := s.meanwhile; run != nil {
		s.meanwhile = nil
		run()
	}
	return records, err
}

// TestMasterReplacedDuringSync shows that a ring keeps a new master key that it has read, even if a
// slower read began before the master key was replaced.
func TestMasterReplacedDuringSync(t *testing.T) {
	rows := openStore(t)
	check(t, rows.SealAudit(t.Context()))
	first, next := make([]byte, 32), bytes.Repeat([]byte{1}, 32)
	other := openRing(t, rows)
	slow := &interrupted{Store: rows}
	r := open(t, keys.Config{
		Store:   slow,
		Master:  first,
		Masters: func() ([][]byte, error) { return [][]byte{next, first}, nil },
	})

	_, err := other.Rotate(t.Context(), keys.ES256, true) // so that the ring must be read again
	check(t, err)
	slow.meanwhile = func() {
		p, err := other.Replace(t.Context(), next, false)
		check(t, err)
		chains, err := audit.NewKey(next, first)
		check(t, err)
		check(t, rows.ReplaceMaster(t.Context(), p, chains))
		check(t, r.Sync(t.Context()))
	}
	check(t, r.Sync(t.Context()))
	if _, fingerprint := r.BackupKey(); fingerprint != keys.Fingerprint(next) {
		t.Error("the ring uses the master key that was replaced, want the new one")
	}
}
