package clients

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/test/harness"
)

// A drawer is a mail transport that keeps the last message.
type drawer struct{ last mail.Message }

func (d *drawer) Send(_ context.Context, m mail.Message) error {
	d.last = m
	return nil
}

// kinds lists all kinds of email.
var kinds = []mail.Kind{
	mail.Reset, mail.Verify, mail.Invitation, mail.ChangeAddress, mail.AddressChanged, mail.AddressTaken,
	mail.Registration, mail.Registered,
	mail.PasswordChanged, mail.PasswordSet, mail.FactorChanged, mail.NewDevice, mail.Test,
	mail.OperatorDevice, mail.OperatorFactor, mail.OperatorPassword, mail.OperatorLink, mail.OperatorAdded,
}

// withLinks maps each kind of email that contains a link to the path of the link.
var withLinks = map[mail.Kind]string{
	mail.Reset:         "reset",
	mail.Verify:        "verify",
	mail.Invitation:    "invite",
	mail.ChangeAddress: "change-address",
	mail.Registration:  "welcome",
}

// TestScreensOfMails shows every kind of email as HTML, and checks it like a screen. If
// SELVAGE_TEST_MAILS names a directory, screenshots are saved there.
func TestScreensOfMails(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := newScreens(t)
	defer s.index()
	var d drawer
	post := mail.New(mail.Config{Transport: &d, Sender: mail.Sender{Address: "no-reply@acme.example"}})

	facts := map[string]string{
		"minutes": "30",
		"hours":   "24",
		"days":    "7",
		"inviter": "Grace Hopper",
		"old":     "ada@example.com",
		"new":     "ada@example.org",
		"when":    "2026-11-22T12:30:00Z",
		"agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
			"Chrome/148.0.0.0 Safari/537.36",
		"address": "203.0.113.9",
		"role":    "admin",
		"what":    "passkey_added",
		"name":    "Phone",
	}

	for _, kind := range kinds {
		draft := mail.Draft{
			Kind:  kind,
			To:    "ada@example.com",
			Brand: mail.Brand{Name: "Acme Dialer", Color: "#1f6f43"},
			Facts: facts,
		}
		if strings.HasPrefix(string(kind), "operator_") {
			draft.Brand = mail.Brand{Name: "selvage at id.acme.example"}
		}
		if path := withLinks[kind]; path != "" {
			draft.Link = "https://id.acme.example/" + path + "?token=mZ3vN0kq7Qx1bT5cY8rL2wJ6hF4gD9sA-uPeOiKnVtE"
		}

		if err := post.Deliver(context.Background(), "picture", draft); err != nil {
			t.Fatal(err)
		}

		s.do(goTo(asURL(d.last)))
		s.stop("mail-" + string(kind))
		s.keep("mail-"+string(kind), 600, "light")
		if kind == mail.Reset {
			s.keep("mail-"+string(kind)+"-dark", 600, "dark")
			s.keep("mail-"+string(kind)+"-phone", 390, "light")
		}

		draft.Language = "de"
		if err := post.Deliver(context.Background(), "picture", draft); err != nil {
			t.Fatal(err)
		}
		s.translated("mail-"+string(kind), asURL(d.last), "de")
	}
}

// asURL returns a data URL with the HTML of an email.
func asURL(m mail.Message) string {
	return "data:text/html;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(m.HTML))
}

// keep saves a screenshot for the documentation, if SELVAGE_TEST_MAILS is set.
func (s *screens) keep(name string, wide int64, theme string) {
	s.Helper()
	dir := os.Getenv("SELVAGE_TEST_MAILS")
	if dir == "" {
		return
	}
	s.look(wide, 400, theme)

	raw, err := chromedp.Run(s.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o644)
	}
	if err != nil {
		s.Fatal(err)
	}
}
