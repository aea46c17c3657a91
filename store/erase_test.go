package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/test/servers"
)

func TestEraseSubscriber(t *testing.T) { EachDatabase(t, testEraseSubscriber) }

// testEraseSubscriber shows that no row identifies a subscriber who was erased, and that other
// people's data remains.
func testEraseSubscriber(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	planted := 0
	for _, lines := range dump(t, s, c.URL) {
		if strings.Contains(strings.ToLower(strings.Join(lines, "\n")), canaries[0]) {
			planted++
		}
	}

	if planted < 6 {
		t.Fatalf("the canary is in %d tables, too few for this test", planted)
	}
	_, err := s.EraseSubscriber(t.Context(), "other", erasureOf(sub.ID), time.Now())
	if !errors.Is(err, problem.NotFound) {
		t.Fatalf("erasing the subscriber of another project: %v, want not found", err)
	}

	if _, err := s.FindSubscriber(t.Context(), "p", sub.ID); err != nil {
		t.Fatalf("the subscriber was erased by another project: %v", err)
	}

	erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !erasure.Found {
		t.Error("EraseSubscriber does not find the subscriber")
	}
	for what, want := range map[string]int64{
		"subscribers":        1,
		"addresses":          1,
		"sessions":           1,
		"grants":             1,
		"consents":           1,
		"passkeys":           1,
		"devices":            1,
		"recordings":         1,
		"webhook_deliveries": 4,
	} {
		if n := erasure.Deleted[what]; n != want {
			t.Errorf("%d rows of %s are deleted, want %d: %v", n, what, want, erasure.Deleted)
		}
	}

	if n := erasure.Anonymized["recordings"]; n != 3 {
		t.Errorf("%d recordings are anonymized, want 3", n)
	}
	if n := erasure.Anonymized["calls"]; n != 2 {
		t.Errorf("%d calls are anonymized, want 2", n)
	}
	if len(erasure.Sessions) != 1 {
		t.Errorf("the erased logins are %q, want one", erasure.Sessions)
	}
	if len(erasure.Media) != 1 {
		t.Errorf("the erased media are %q, want those of one recording", erasure.Media)
	}
	wantNoCanary(t, s, c.URL)

	ofProject := recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}}
	left := listRecordings(t, s, ofProject, page.Query{Size: 10})
	if len(left.Items) != 4 {
		t.Fatalf("%d recordings remain, want 4", len(left.Items))
	}
	for _, r := range left.Items {
		parties := r.From + " " + r.To
		if !slices.Contains([]string{"/private/bob /private/bob", " /private/bob", " "}, parties) {
			t.Errorf("a recording still has the addresses %q", parties)
		}
	}

	_, err = s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("EraseSubscriber of an erased subscriber = %v, want not found", err)
	}
	if _, err := s.FindSubscriber(t.Context(), "p", "s"); err != nil {
		t.Errorf("finding another subscriber: %v", err)
	}
}

// TestEraseManyCalls shows that the number of statements that read all webhook deliveries does not depend on
// the number of the erased subscriber's calls.
func TestEraseManyCalls(t *testing.T) {
	c := Config{URL: preparedServer(t), Audit: auditKey(t), Patience: time.Minute}
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	for range 20 {
		made := callAt("p", time.Now())
		made.From.SubscriberID = sub.ID
		saveCalls(t, s, made)
	}
	servers.SQL(t, c.URL, `CREATE SEQUENCE statements;
		CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS
			'BEGIN PERFORM nextval(''statements''); RETURN NULL; END';
		CREATE TRIGGER noted AFTER DELETE ON webhook_deliveries FOR EACH STATEMENT EXECUTE FUNCTION note();`)

	erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if n := erasure.Anonymized["calls"]; n != 22 {
		t.Errorf("%d calls are anonymized, want 22", n)
	}
	var statements int
	if err := s.read().Row(t.Context(), `SELECT last_value FROM statements`).Scan(&statements); err != nil {
		t.Fatal(err)
	}
	if statements > 5 {
		t.Errorf("%d statements deleted deliveries of 22 calls, want at most 5", statements)
	}
}

func TestEraseDuringCall(t *testing.T) { EachDatabase(t, testEraseDuringCall) }

// testEraseDuringCall shows that if a party is erased during a call, its data is not written again
// when the call ends.
func testEraseDuringCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	running := callAt("p", time.Now())
	running.From = calls.Party{Name: "Canary Bird", Address: "/private/canary", SubscriberID: sub.ID}
	saveCalls(t, s, running)
	if _, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now()); err != nil {
		t.Fatal(err)
	}
	saveCalls(t, s, ended(running, calls.NormalClearing, true))
	wantNoCanary(t, s, c.URL)
}
