package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/recordings"
)

// dump returns all rows in the database by table, one line per row.
func dump(t *testing.T, s *Store, url string) map[string][]string {
	t.Helper()
	type column struct{ table, name string }
	scanColumn := func(row scanner) (c column, err error) {
		err = row.Scan(&c.table, &c.name)
		return c, err
	}
	catalog := `SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`
	if strings.HasPrefix(url, "postgres") {
		catalog = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()`
	}

	columns, err := gather(t.Context(), s.read(), "reading the catalog", scanColumn, catalog)
	if err != nil || len(columns) < 100 {
		t.Fatalf("the catalog has %d columns, %v, want at least 100", len(columns), err)
	}

	texts := make(map[string][]string) // the columns of each table, as SQL expressions
	for _, c := range columns {
		texts[c.table] = append(texts[c.table], `COALESCE(CAST("`+c.name+`" AS TEXT), '')`)
	}

	tables := make(map[string][]string)
	for table, columns := range texts {
		lines := `SELECT ` + strings.Join(columns, ` || '|' || `) + ` FROM "` + table + `"`
		tables[table], err = gather(t.Context(), s.read(), "dumping "+table, scanID, lines)
		if err != nil {
			t.Fatal(err)
		}
	}
	return tables
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

// plantCanary creates a subscriber with data in most of the tables that hold personal data.
func plantCanary(t *testing.T, s *Store) fabric.Subscriber {
	t.Helper()
	ctx := t.Context()
	now := time.Now()
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
	company := "Canary's"
	profile := fabric.SubscriberChange{Profile: fabric.Profile{CompanyName: &company}}
	signedIn := idp.Login{
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
		SessionID:    signedIn.ID,
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
	code := idp.RedeemedCode{Hash: grant.ID, GrantID: grant.ID, ClientID: "c", Expires: now}
	passkey := factor.Passkey{
		ID:         newID(),
		Owner:      factor.Owner{Kind: factor.Subscriber, ID: sub.ID},
		Credential: "cred",
		Name:       "Canary's phone",
		Record:     []byte(`{}`),
		Created:    now,
	}
	device := fabric.Device{
		ID:           newID(),
		ProjectID:    "p",
		SubscriberID: sub.ID,
		Type:         "iOS",
		Name:         "Canary's phone",
		TokenHash:    "x",
		Sealed:       "x",
		Created:      now,
	}
	steps := []func() error{
		func() error { return s.CreateWebhook(ctx, hook, 10) },
		func() error { return s.CreateSubscriber(ctx, sub, address) },
		func() error {
			_, err := s.UpdateSubscriber(ctx, "p", sub.ID, profile, now, nil)
			return err
		},
		func() error { return s.CreateLogin(ctx, signedIn, "hash") },
		func() error { return s.RedeemCode(ctx, code, grant) },
		func() error { return s.AddConsent(ctx, sub.ID, "c", []string{"email"}, now) },
		func() error { return s.CreatePasskey(ctx, passkey, false) },
		func() error {
			_, err := s.PutDevice(ctx, device, 10)
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

	addCanaryCalls(t, s, sub, address)
	self := chat.Party{MemberID: sub.ID, SubscriberID: sub.ID, AddressID: address.ID, Name: "Canary Bird"}
	peer := chat.Party{MemberID: "s", SubscriberID: "s", AddressID: newID()}
	addMessage(t, s, newMessage(self, peer, "a canary sings"))
	addCanaryRecordings(t, s, sub)
	return sub
}

// addCanaryCalls adds a call from the address of a subscriber, and one to it.
func addCanaryCalls(t *testing.T, s *Store, sub fabric.Subscriber, address fabric.Address) {
	t.Helper()
	outgoing := callAt("p", sub.Created)
	outgoing.From = calls.Party{
		Name:         "Canary Bird",
		Address:      address.Path(),
		AddressID:    address.ID,
		SubscriberID: sub.ID,
	}
	incoming := ended(callAt("p", sub.Created), calls.UserBusy, false)
	incoming.To = calls.Party{Name: address.Path(), Address: address.Path()}
	incoming.Dialed = address.Path() + "?channel=audio"
	saveCalls(t, s, outgoing, incoming)
}

// addCanaryRecordings adds recordings of a subscriber's calls, and recordings that name the subscriber.
// One of them belongs only to the subscriber and has a callback.
func addCanaryRecordings(t *testing.T, s *Store, sub fabric.Subscriber) {
	t.Helper()

	for _, r := range []struct {
		from, to      string
		subscriberIDs []string
	}{
		{from: "/private/canary?channel=audio", to: "+15550100000", subscriberIDs: []string{sub.ID}},
		{from: "/private/canary", to: "/private/bob", subscriberIDs: []string{sub.ID, "s"}},
		{from: "+15550199877", to: "/private/bob", subscriberIDs: []string{"s"}},
		{from: "CANARY@example.com"},
		{from: "/private/bob", to: "/private/bob", subscriberIDs: []string{"s"}},
	} {
		rec := recordings.Recording{
			ID:        newID(),
			Sid:       newID(),
			ProjectID: "p",
			Bytes:     10,
			Metadata:  recordings.Metadata{From: r.from, To: r.to},
			Created:   sub.Created,
		}
		if slices.Equal(r.subscriberIDs, []string{sub.ID}) {
			rec.Status = recordings.Completed
			rec.Callback = recordings.Callback{
				URL:    "https://example.com" + r.from,
				Method: "GET",
				Events: []string{"completed"},
			}
		}

		arrival := recordings.Arrival{Identity: rec.ID, SubscriberIDs: r.subscriberIDs}
		if _, _, err := s.AddRecording(t.Context(), rec, arrival); err != nil {
			t.Fatal(err)
		}
	}
}

// erasureOf returns the request to erase a subscriber by the names in its row and addresses.
func erasureOf(id string) fabric.ErasureRequest {
	until := time.Now().Add(time.Hour)
	return fabric.ErasureRequest{
		Revocation: revocation.Revocation{
			Kind:    revocation.Subscriber,
			ID:      id,
			Until:   until,
			Expires: until,
		},
		Names: func(s fabric.Subscriber, addresses []fabric.Address) (names []string) {
			for _, a := range addresses {
				names = append(names, a.Path())
			}
			return append(names, s.Email, s.Reference, s.Claims.PhoneNumber)
		},
	}
}
