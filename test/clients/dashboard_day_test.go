package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestDashboardDay walks through an operator's first day. The operator opens the setup link, sets
// up the account, creates a key, an app and a room, and finds out why a login failed. The operator
// also uploads and plays a recording, and revokes a leaked key.
func TestDashboardDay(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	sub := p.NewSubscriber(t)
	b := ownTab(t, chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

	// An API key is shown once and works.
	b.do(goTo(s.PublicURL + home + "/keys/new"))
	b.fill("key-submit", "name", "billing backend")
	key := b.text("#secret code")
	list := "/api/laml/2010-04-01/Accounts/" + p.ID + "/Recordings.json"
	s.Get(t, list, harness.Basic(p.ID, key)).Want(t, 200)

	// An OAuth client is created.
	b.do(goTo(s.PublicURL + home + "/clients/new"))
	b.fill("client-submit", "f-name", "Acme Dialer", "f-redirect_uri", "http://localhost:3000/callback")
	b.until("the client", "document.body.innerText.includes('Acme Dialer') && document.querySelector('dl.facts')")

	// A room and its address are created with the form for conference rooms.
	b.do(goTo(s.PublicURL + home + "/kinds/conference_rooms"))
	b.fill("resource-submit", "f-name", "standup", "f-display_name", "Stand-up")
	b.until("the room", "document.body.innerText.includes('/public/standup')")

	// The operator searches by email address to find out why a login failed.
	b.do(goTo(s.AuthURL + "/account?project=" + p.ID))
	b.fill("login-submit", "username", sub.Email, "password", "not "+sub.Password)
	b.until("the error", "document.querySelector('#login-error')")
	b.do(goTo(s.PublicURL + home + "/audit"))
	b.do(write("#q", sub.Email), chromedp.KeyEvent("\r"))
	b.until("the reason",
		"location.search.includes('q=') && "+
			"document.querySelector('.why')?.textContent.includes('The password was wrong')")
	b.do(goTo(s.AuthURL + "/account?project=" + p.ID))
	b.fill("login-submit", "username", sub.Email, "password", sub.Password)
	b.arrive("/account")

	// A recording is uploaded and plays.
	file, err := filepath.Abs("../../cmd/selvage/internal/demo/welcome.wav")
	if err != nil {
		t.Fatal(err)
	}
	b.do(goTo(s.PublicURL+home+"/recordings/upload"),
		chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	b.fill("upload-submit", "f-From", "+15551234567")
	b.until("the player", "document.querySelector('#sound') && document.querySelector('.leg svg')")
	b.click("play")
	b.until("sound", "document.getElementById('sound').currentTime > 0.1")
	b.until("the played part", "Number(document.querySelector('clipPath rect').getAttribute('width')) > 1")
	link := eval[string](b, "location.pathname")
	b.do(goTo(s.PublicURL + link + "?t=3"))
	b.until("the link to a moment", "document.getElementById('sound')?.currentTime >= 3")

	// The button that copies the link gets its text back, however often it is clicked.
	label := b.text("#copy-at")
	eval[bool](b, `(() => {
		const { setTimeout } = window
		window.later = []
		window.setTimeout = (then, wait) => wait === 1500 ? later.push(then) : setTimeout(then, wait)
		navigator.clipboard.writeText = async () => {}
		return true
	})()`)
	b.click("copy-at")
	b.until("the copied link", "later.length === 1")
	b.click("copy-at")
	b.until("the link copied again", "later.length === 2")
	eval[bool](b, "(() => { later.forEach((then) => then()); return true })()")
	if got := b.text("#copy-at"); got != label {
		t.Errorf("the button then shows %q, want %q", got, label)
	}

	// A key found in a log is recognized and revoked.
	b.do(goTo(s.PublicURL + home + "/tokens"))
	b.fill("inspect", "f-token", "Authorization: Bearer "+key)
	b.until("the recognized key", "document.querySelector('#found')")
	if found := b.text("#found"); !strings.Contains(found, "an API key") ||
		!strings.Contains(found, "billing backend") {
		t.Errorf("the page shows %q for a leaked key, want its kind and name", found)
	}
	if drafts := eval[string](b, "JSON.stringify(Object.entries(sessionStorage))"); strings.Contains(drafts, key) {
		t.Error("the browser keeps a draft that contains the pasted key")
	}
	b.click("found-more")
	b.fill("revoke", "confirm", "billing backend")
	b.arrive(home + "/keys")
	s.Get(t, list, harness.Basic(p.ID, key)).Want(t, 401)
}
