package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// ringOf opens the key ring of a store, with the master key from which the store's audit key is
// derived.
func ringOf(t *testing.T, s *Store, candidates ...[]byte) *keys.Ring {
	t.Helper()
	ring, err := keys.Open(t.Context(), keys.Config{
		Store:   s,
		Master:  candidates[0],
		Masters: func() ([][]byte, error) { return candidates, nil },
		Replaced: func(m keys.Masters) {
			key, err := audit.NewKey(m.Newest(), m.Earlier()...)
			if err != nil {
				t.Error(err)
			}
			s.AuditBy(key)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func replaceMaster(t *testing.T, s *Store, ring *keys.Ring, next []byte, earlier ...[]byte) error {
	t.Helper()
	p, err := ring.Replace(t.Context(), next, false)
	if err != nil {
		return err
	}
	key, err := audit.NewKey(next, earlier...)
	if err != nil {
		t.Fatal(err)
	}
	return s.ReplaceMaster(t.Context(), p, key)
}

// TestReplaceMaster shows that the audit trail can be verified across two rotations of the master
// key while another process writes to it. VerifyAudit reports every change to the trail.
func TestReplaceMaster(t *testing.T) { EachDatabase(t, testReplaceMaster) }

func testReplaceMaster(t *testing.T, c Config) {
	masters := [][]byte{make([]byte, 32), bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)}
	s := opened(t, c)
	ring := ringOf(t, s, masters...)
	node := opened(t, c)
	other := ringOf(t, node, masters...)
	node.OnReplacedMaster(func(ctx context.Context) error { return other.Sync(ctx) })

	var made atomic.Int64
	createProject := func() error {
		name := fmt.Sprint("p-", made.Add(1))
		return node.CreateProject(t.Context(), projectNow(name, name))
	}

	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			if err := createProject(); err != nil {
				t.Errorf("a change during the rotation: %v", err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 2 {
		if err := replaceMaster(t, s, ring, masters[i+1], masters[:i+1]...); err != nil {
			t.Fatal(err)
		}
		if err := ring.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	close(stop)
	done.Wait()
	if err := createProject(); err != nil {
		t.Fatal(err)
	}

	count, broken := verified(t, s)
	if broken != nil {
		t.Fatalf("VerifyAudit found %v, want nothing broken", broken)
	}
	if want := made.Load() + 3; count < want {
		t.Fatalf("VerifyAudit = %d events, want at least %d", count, want)
	}
	if _, broken := verified(t, node); broken != nil {
		t.Errorf("VerifyAudit by the other process found %v, want nothing broken", broken)
	}

	for _, sql := range []string{
		`UPDATE audit SET action = 'x' WHERE id = (SELECT MIN(id) FROM audit)`,
		`UPDATE audit SET action = 'x' WHERE id = (SELECT MAX(id) FROM audit)`,
		`UPDATE audit_spans SET seq = seq + 1 WHERE generation = 0`,
		`UPDATE audit_spans SET hash = 'x' WHERE generation = 1`,
		`DELETE FROM audit_spans WHERE generation = 1`,
		`DELETE FROM audit_spans`,
		`UPDATE audit_heads SET mac = ''`,
	} {
		wantDetected(t, s, sql)
	}
}

// wantDetected changes the trail with sql and then restores it. The test fails unless verification
// detects the change, and finds nothing broken once the trail is restored.
func wantDetected(t *testing.T, s *Store, sql string) {
	t.Helper()
	saved := []string{"audit", "audit_heads", "audit_spans"}
	for _, table := range saved {
		tamper(t, s, `CREATE TABLE saved_`+table+` AS SELECT * FROM `+table)
	}
	tamper(t, s, sql)
	wantBroken(t, s, sql)
	for _, table := range saved {
		tamper(t, s, `DELETE FROM `+table+`; INSERT INTO `+table+` SELECT * FROM saved_`+table+
			`; DROP TABLE saved_`+table)
	}
	if _, broken := verified(t, s); broken != nil {
		t.Fatalf("after the trail was restored, VerifyAudit found %v", broken)
	}
}

// TestReplaceMasterOnce shows that only one of two concurrent rotations succeeds, and that a
// process without the new key changes nothing.
func TestReplaceMasterOnce(t *testing.T) { EachDatabase(t, testReplaceMasterOnce) }

func testReplaceMasterOnce(t *testing.T, c Config) {
	first, second := make([]byte, 32), bytes.Repeat([]byte("1"), 32)
	s := opened(t, c)
	ring := ringOf(t, s, first)
	replacement, err := ring.Replace(t.Context(), second, false)
	if err != nil {
		t.Fatal(err)
	}

	key, err := audit.NewKey(second, first)
	if err != nil {
		t.Fatal(err)
	}

	if err := s.ReplaceMaster(t.Context(), replacement, key); err != nil {
		t.Fatal(err)
	}
	err = s.ReplaceMaster(t.Context(), replacement, key)
	if !errors.Is(err, problem.Conflict) && !errors.Is(err, errReplaced) {
		t.Errorf("the same replacement again = %v, want a conflict", err)
	}

	err = s.CreateProject(t.Context(), projectNow("p", "p"))
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("a change by a process without the new key = %v, want unavailable", err)
	}
	if err := ring.Sync(t.Context()); !errors.Is(err, keys.ErrMaster) {
		t.Errorf("Sync without the new key = %v, want %v", err, keys.ErrMaster)
	}
	token, err := ring.Sealer("test", "t", "").Seal("x")
	if err != nil || token == "" {
		t.Errorf("sealing by a process without the new key = %q, %v, want a token", token, err)
	}

	_, err = keys.Open(t.Context(), keys.Config{Store: s, Master: first})
	if !errors.Is(err, keys.ErrMaster) {
		t.Errorf("Open with the old key = %v, want %v", err, keys.ErrMaster)
	}
	if _, err := ringOf(t, s, second).Replace(t.Context(), first, false); !errors.Is(err, keys.ErrSameMaster) {
		t.Errorf("going back to the first key = %v, want %v", err, keys.ErrSameMaster)
	}
}

// TestReseal shows that each secret is sealed again once, and that an unreadable secret does not keep
// the others from being sealed.
func TestReseal(t *testing.T) { EachDatabase(t, testReseal) }

func testReseal(t *testing.T, c Config) {
	s := opened(t, c)
	for i := range 2*resealBatch + 1 {
		name := fmt.Sprintf("host%05d", i)
		if err := s.PutCertificate(t.Context(), name, "old "+name); err != nil {
			t.Fatal(err)
		}
	}

	column := SecretColumn{
		Table:  "certificates",
		Column: "sealed",
		Key:    []string{"name"},
		Name:   func(key []string) string { return key[0] },
	}
	bad := errors.New("unreadable")
	again := func(name, sealed string) (string, bool, error) {
		switch {
		case name == "host00003":
			return "", false, bad
		case !strings.HasSuffix(sealed, name):
			t.Errorf("the secret of %s is %q", name, sealed)
		}
		return "new " + name, strings.HasPrefix(sealed, "new "), nil
	}

	n, err := s.Reseal(t.Context(), column, again)
	if n != 2*resealBatch {
		t.Errorf("Reseal = %d secrets, want %d", n, 2*resealBatch)
	}
	if !errors.Is(err, bad) {
		t.Errorf("Reseal = %v, want the error of the unreadable secret", err)
	}

	n, err = s.Reseal(t.Context(), column, again)
	if n != 0 {
		t.Errorf("Reseal again = %d secrets, want none", n)
	}
	if !errors.Is(err, bad) {
		t.Errorf("Reseal again = %v, want the error of the unreadable secret", err)
	}

	sealed, err := s.FindCertificate(t.Context(), "host00999")
	if err != nil || sealed != "new host00999" {
		t.Errorf("a secret after Reseal = %q, %v, want %q", sealed, err, "new host00999")
	}
}

// TestSealedColumns lists the columns with secrets. A new column must be added to secretColumns in
// package server, or be listed here with a reason.
func TestSealedColumns(t *testing.T) { EachDatabase(t, testSealedColumns) }

func testSealedColumns(t *testing.T, c Config) {
	want := []string{
		"certificates.sealed", "devices.sealed", "grants.seed", "master_keys.sealed", "resources.secrets",
		"ring.sealed", "signing_keys.sealed", "sip_addresses.secrets", "sip_credentials.secrets", "totps.sealed",
		"upstreams.secret",
	}

	var got []string
	err := opened(t, c).Snapshot(t.Context(), func(s *Snapshot) error {
		tables, err := s.Tables(t.Context())
		if err != nil {
			return err
		}
		for _, table := range tables {
			for _, name := range table.Names() {
				if slices.Contains([]string{"sealed", "secret", "secrets", "seed"}, name) {
					got = append(got, table.Name+"."+name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("columns with secrets are %q, want %q", got, want)
	}
}
