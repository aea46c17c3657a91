package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestMailServerAway shows that an email requested while the mail server is down is delivered when
// the server is back. Its link is valid. The page confirms the request in any case.
func TestMailServerAway(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	m.inbox.Down()

	b := m.Browser()
	if page := m.forgot(t, b, sub.Email); !page.Has("mail-sent") {
		t.Fatalf("forgot = %d %s", page.Status, page.Body)
	}

	harness.Eventually(t, time.Minute, "a failed attempt", func() error {
		var waiting []struct {
			Attempts int
			Error    string
		}
		text := m.Command(t, "", "mail", "list", "--state", "pending", "-o", "json")
		if err := json.Unmarshal([]byte(text), &waiting); err != nil {
			return err
		}
		if len(waiting) != 1 || waiting[0].Attempts == 0 || waiting[0].Error == "" {
			return fmt.Errorf("the queue is %s, want one letter with an error", strings.TrimSpace(text))
		}
		return nil
	})

	m.inbox.Up()
	link := m.link(t, sub.Email, 1)
	b.Submit(t, b.Open(t, link), "password-submit",
		map[string]string{"new-password": "granite-otter-nine"}).Want(t, 200)
	sub.Password = "granite-otter-nine"
	m.spa.SignIn(t, sub, loginScope)
}
