package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/recordings"
)

func TestEraseSubscriber(t *testing.T) { EachDatabase(t, testEraseSubscriber) }

// dump returns all rows in the database by table, one line per row.
func dump(t *testing.T, s *Store, url string) map[string][]string {
	t.Helper()
	type column struct{ table, name string }
	catalog := `SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`
	if strings.HasPrefix(url, "postgres") {
		catalog = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()`
	}

	columns, err := gather(t.Context(), s.read(), "reading the catalog",
		func(row scanner) (c column, err error) { return c, row.Scan(&c.table, &c.name) }, catalog)
	if err != nil || len(columns) < 100 {
		t.Fatalf("%d columns, %v, want at least 100", len(columns), err)
	}

	texts := make(map[string][]string)
	for _, c := range columns {
		texts[c.table] = append(texts[c.table], `COALESCE(CAST("`+c.name+`" AS TEXT), '')`)
	}

	all := make(map[string][]string)
	for table, of := range texts {
		all[table], err = gather(t.Context(), s.read(), "dumping "+table,
			func(row scanner) (line string, err error) { return line, row.Scan(&line) },
			`SELECT `+strings.Join(of, ` || '|' || `)+` FROM "`+table+`"`)
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// canaries are texts that must not occur anywhere in the database after an erasure.
var canaries = []string{"canary", "+15550199877"}

func wantNoCanary(t *testing.T, s *Store, url string) {
	t.Helper()
	for table, lines := range dump(t, s, url) {
		for _, line := range lines {
			for _, canary := range canaries {
				if strings.Contains(strings.ToLower(line), canary) {
					t.Errorf("%s contains %q: %s", table, canary, line)
				}
			}
		}
	}
}

// plantCanary creates a subscriber with data in every table that holds personal data.
func plantCanary(t *testing.T, s *Store) fabric.Subscriber {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	sub := fabric.Subscriber{
		ID:           newID(),
		ProjectID:    "p",
		Email:        "canary@example.com",
		Reference:    "canary-7",
		PasswordHash: "hash",
		Person:       fabric.Person{FirstName: "Canary", LastName: "Bird", JobTitle: "canary"},
		Claims:       fabric.StandardClaims{PhoneNumber: "+15550199877", Nickname: "canary"},
		Created:      now,
		Updated:      now,
	}

	hook := fabric.Webhook{
		ID:        newID(),
		ProjectID: "p",
		URL:       "https://hook.example/",
		Events:    []fabric.EventName{"*"},
		Enabled:   true,
		Created:   now,
		Updated:   now,
	}
	name := "Canary's"
	login := idp.Login{
		ID:           newID(),
		ProjectID:    "p",
		SubscriberID: sub.ID,
		UserAgent:    "curl/8",
		Address:      "192.0.2.1",
		AuthTime:     now,
		Expires:      now.Add(time.Hour),
	}
	grant := idp.Grant{
		ID:           newID(),
		ProjectID:    "p",
		ClientID:     "c",
		SubscriberID: sub.ID,
		SessionID:    login.ID,
		Scope:        []string{"openid"},
		Created:      now,
		IdleUntil:    now.Add(time.Hour),
		Expires:      now.Add(time.Hour),
	}
	address := fabric.Address{
		ID:          newID(),
		ProjectID:   "p",
		ResourceID:  sub.ID,
		Type:        fabric.TypeSubscriber,
		Context:     fabric.Private,
		Name:        "canary",
		DisplayName: "Canary Bird",
		Created:     now,
	}
	steps := []func() error{
		func() error { return s.CreateWebhook(ctx, hook, 10) },
		func() error { return s.CreateSubscriber(ctx, sub, address) },
		func() error {
			_, err := s.UpdateSubscriber(
				ctx, "p", sub.ID, fabric.SubscriberChange{Profile: fabric.Profile{CompanyName: &name}}, now, nil)
			return err
		},
		func() error { return s.CreateLogin(ctx, login, "hash") },
		func() error {
			return s.RedeemCode(ctx, idp.RedeemedCode{
				Hash:     grant.ID,
				GrantID:  grant.ID,
				ClientID: "c",
				Expires:  now,
			}, grant)
		},
		func() error { return s.AddConsent(ctx, sub.ID, "c", []string{"email"}, now) },
		func() error {
			return s.CreatePasskey(ctx, factor.Passkey{
				ID:         newID(),
				Owner:      factor.Owner{Kind: factor.Subscriber, ID: sub.ID},
				Credential: "cred",
				Name:       "Canary's phone",
				Record:     []byte(`{}`),
				Created:    now,
			}, false)
		},
		func() error {
			_, err := s.PutDevice(ctx, fabric.Device{
				ID:           newID(),
				ProjectID:    "p",
				SubscriberID: sub.ID,
				Type:         "iOS",
				Name:         "Canary's phone",
				TokenHash:    "x",
				Sealed:       "x",
				Created:      now,
			}, 10)
			return err
		},
		func() error {
			return s.change(ctx, audit.None("a mail of a test"), func(t tx) error {
				return t.Later(ctx, `INSERT INTO mails
					(id, project_id, subscriber_id, kind, recipient, facts, state, created, due)
					VALUES ('m', 'p', '', 'reset', 'Canary@example.com', '{}', 'sent', 1, 0)`)
			})
		},
	}

	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}

	made, got := callAt("p", now), ended(callAt("p", now), calls.UserBusy, false)
	made.From = calls.Party{Name: "Canary Bird", Address: address.Path(), AddressID: address.ID, SubscriberID: sub.ID}
	got.To, got.Dialed = calls.Party{Name: address.Path(), Address: address.Path()}, address.Path()+"?channel=audio"
	saveCalls(t, s, made, got)
	own := chat.Party{MemberID: sub.ID, SubscriberID: sub.ID, AddressID: address.ID, Name: "Canary Bird"}
	addMessage(t, s, written(own, chat.Party{MemberID: "s", SubscriberID: "s", AddressID: newID()}, "a canary sings"))

	for _, r := range []struct {
		from, to string
		of       []string
	}{
		{"/private/canary?channel=audio", "+15550100000", []string{sub.ID}},
		{"/private/canary", "/private/bob", []string{sub.ID, "s"}},
		{"+15550199877", "/private/bob", []string{"s"}}, {"CANARY@example.com", "", nil},
		{"/private/bob", "/private/bob", []string{"s"}},
	} {
		rec := recordings.Recording{
			ID:        newID(),
			Sid:       newID(),
			ProjectID: "p",
			Bytes:     10,
			Metadata:  recordings.Metadata{From: r.from, To: r.to},
			Created:   now,
		}
		if len(r.of) == 1 && r.of[0] == sub.ID {
			rec.Status = recordings.Completed
			rec.Callback = recordings.Callback{
				URL:    "https://example.com" + r.from,
				Method: "GET",
				Events: []string{"completed"},
			}
		}

		if _, _, err := s.AddRecording(ctx, rec,
			recordings.Arrival{Identity: rec.ID, SubscriberIDs: r.of}); err != nil {
			t.Fatal(err)
		}
	}
	return sub
}

func eraser(id string) fabric.Eraser {
	until := time.Now().Add(time.Hour)
	return fabric.Eraser{
		Revocation: revocation.Revocation{
			Kind:    revocation.Subscriber,
			ID:      id,
			Until:   until,
			Expires: until,
		},
		Names: func(s fabric.Subscriber, all []fabric.Address) (names []string) {
			for _, a := range all {
				names = append(names, a.Path())
			}
			return append(names, s.Email, s.Reference, s.Claims.PhoneNumber)
		},
	}
}

// testEraseSubscriber shows that no row identifies an erased subscriber, and that the data of
// others remains.
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
	if _, err := s.EraseSubscriber(t.Context(), "other",
		eraser(sub.ID), time.Now()); !errors.Is(err, problem.NotFound) {
		t.Fatalf("erasing the subscriber of another project: %v, want not found", err)
	}

	if _, err := s.FindSubscriber(t.Context(), "p", sub.ID); err != nil {
		t.Fatalf("the subscriber was erased by another project: %v", err)
	}

	e, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}

	got, _ := json.Marshal(e.Deleted)
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
		if e.Deleted[what] != want {
			t.Errorf("%d %s are deleted, want %d: %s", e.Deleted[what], what, want, got)
		}
	}

	if !e.Found || e.Anonymised["recordings"] != 3 || e.Anonymised["calls"] != 2 ||
		len(e.Sessions) != 1 || len(e.Media) != 1 {
		t.Errorf("the erasure is %+v, want 3 anonymized recordings and 2 calls, one session and one media", e)
	}
	wantNoCanary(t, s, c.URL)

	left, err := s.ListRecordings(t.Context(), recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}},
		page.Query{Size: 10})
	if err != nil || len(left.Items) != 4 {
		t.Fatalf("%d recordings remain, %v, want 4", len(left.Items), err)
	}
	for _, r := range left.Items {
		if ends := fmt.Sprint(r.From, " ", r.To); ends != "/private/bob /private/bob" &&
			ends != " /private/bob" && ends != " " {
			t.Errorf("a recording still has the address %q", ends)
		}
	}

	if again, err := s.EraseSubscriber(t.Context(), "p",
		eraser(sub.ID), time.Now()); !errors.Is(err, problem.NotFound) {
		t.Errorf("EraseSubscriber again = %+v, %v, want not found: only deliveries to webhooks remain",
			again, err)
	}
	if _, err := s.FindSubscriber(t.Context(), "p", "s"); err != nil {
		t.Errorf("finding another subscriber: %v", err)
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
	if _, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now()); err != nil {
		t.Fatal(err)
	}
	saveCalls(t, s, ended(running, calls.NormalClearing, true))
	wantNoCanary(t, s, c.URL)
}
