package faults

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestAuditAway removes the table of the audit trail from a running server's database. All changes
// and logins are refused, and reads succeed. When the table is back, the server recovers by itself.
func TestAuditAway(t *testing.T) {
	harness.Rows(t)
	s := harness.Start(t)
	if s.Database() != "" {
		t.Skip("the database is not a file")
	}
	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party")
	sub := p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, "openid offline_access")

	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Data, "selvage.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}

	do(`ALTER TABLE audit RENAME TO audit_away`)
	created := map[string]any{"email": "late@example.com", "password": "fathom-lantern-late"}
	p.Post(t, "/api/fabric/resources/subscribers", p.Basic(), harness.JSON(created)).Want(t, 503)
	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub.ID, p.Basic()).Want(t, 503)

	f := c.NewFlow("openid offline_access")
	code, err := f.QuickCode(b.Cookies())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.QuickRedeem(code); err == nil {
		t.Error("a code was redeemed without an audit event")
	}

	for _, password := range []string{sub.Password, "wrong"} {
		browser := c.Browser()
		page := browser.Open(t, c.NewFlow("openid").URL())
		page = browser.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": password})
		if page.Left != nil || page.Status != 503 {
			t.Errorf("a login with the password %q returned %d (redirect to %v), want 503", password,
				page.Status, page.Left)
		}
	}

	// Reads need no audit event.
	p.Get(t, "/api/fabric/resources/subscribers/"+sub.ID, p.Basic()).Want(t, 200)

	do(`ALTER TABLE audit_away RENAME TO audit`)
	if _, err := f.QuickRedeem(code); err != nil {
		t.Errorf("redeeming the code after the table is back: %v", err)
	}
	p.Post(t, "/api/fabric/resources/subscribers", p.Basic(), harness.JSON(created)).Want(t, 201)
	if report := s.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify: %v, want an intact trail", report)
	}
}
