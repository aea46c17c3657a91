package clients

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/test/harness"
)

// openRows opens a server's database, so that a test can write call records into it.
func openRows(t *testing.T, s *harness.Server) *store.Store {
	t.Helper()
	rows, err := store.Open(t.Context(), store.Config{URL: s.Database(), Dir: s.Data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})

	master, err := keys.ReadMaster(filepath.Join(s.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := audit.NewKey(master)
	if err != nil {
		t.Fatal(err)
	}
	rows.AuditBy(chain)
	return rows
}

// addCall writes the record of a call that began the given number of minutes ago. It returns the ID
// of the call. talked is how long the parties were connected. If cause is set, the call has ended.
func addCall(
	t *testing.T, rows *store.Store, projectID string, from, to calls.Party,
	minutes int, talked time.Duration, cause calls.Cause,
) string {
	t.Helper()
	began := time.Now().Add(-time.Duration(minutes) * time.Minute)
	r := calls.Record{
		Key:       uuid.Must(uuid.NewV7()).String(),
		ID:        uuid.NewString(),
		ProjectID: projectID,
		Node:      "gone",
		From:      from,
		To:        to,
		Dialed:    to.Address,
		State:     calls.Ringing,
		Created:   began,
	}
	if talked > 0 {
		r.State, r.Answered = calls.InCall, began.Add(4*time.Second)
	}
	if cause.Text != "" {
		r.State, r.Cause, r.Ended = calls.Completed, cause, began.Add(4*time.Second+talked)
		r.Received, r.Lost = 50*int64(talked/time.Second), int64(3*minutes)
		r.Jitter, r.RoundTrip, r.Transport = 3*time.Millisecond, 41*time.Millisecond, "udp"
	}

	if err := rows.SaveCall(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// TestScreensOfCalls shows that the pages about calls pass the screen checks. Calls are turned
// off, because otherwise the server would end the calls that the test writes into the database.
func TestScreensOfCalls(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	server := harness.Start(t, "--listen-media", "off")
	p := server.NewProject(t)
	ada, bob := p.NewSubscriber(t), p.NewSubscriber(t)
	s := newScreens(t)
	defer s.index()
	link := server.CLI(t, "", "operator", "setup-link")["url"].(string)
	s.do(goTo(link))
	s.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	s.arrive(home)

	rows := openRows(t, server)
	alice := calls.Party{Name: "Ada Lovelace", Address: "/private/ada", SubscriberID: ada.ID}
	callee := calls.Party{Name: rtlName, Address: "/private/" + longApp, SubscriberID: bob.ID}
	guest, erased := calls.Party{Name: "Guest"}, calls.Party{}
	unknown := calls.Party{Name: "/private/nobody", Address: "/private/nobody"}
	recorded := addCall(t, rows, p.ID, alice, callee, 95, 67*time.Minute, calls.NormalClearing)
	addCall(t, rows, p.ID, callee, alice, 80, 0, calls.NoAnswer)
	addCall(t, rows, p.ID, guest, alice, 70, 0, calls.UserBusy)
	addCall(t, rows, p.ID, alice, unknown, 60, 0, calls.UnallocatedNumber)
	addCall(t, rows, p.ID, erased, alice, 50, 12*time.Second, calls.TokenRevoked)
	addCall(t, rows, p.ID, alice, guest, 40, 0, calls.OriginatorCancel)
	runs := addCall(t, rows, p.ID, alice, callee, 12, time.Minute, calls.Cause{})
	addCall(t, rows, p.ID, guest, callee, 0, 0, calls.Cause{})
	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", recorded,
		"../../cmd/selvage/internal/demo/welcome.wav")

	for _, at := range []struct{ name, path string }{
		{"calls", "/calls"}, {"calls-missed", "/calls?result=missed"}, {"calls-none", "/calls?caller=x"},
		{"calls-wrong", "/calls?after=tomorrow"}, {"call", "/calls/" + recorded}, {"call-live", "/calls/" + runs},
		{"subscriber-of-calls", "/subscribers/" + ada.ID}, {"audit-of-calls", "/audit?action=call"},
	} {
		s.open("dashboard-"+at.name, p.PublicURL+home+at.path)
	}
	s.do(goTo(p.PublicURL + home + "/calls/" + runs))
	s.click("hang-up")
	s.until("the notice", "document.querySelector('.notice:not([hidden])')")
	s.stop("dashboard-call-hung-up")
}
